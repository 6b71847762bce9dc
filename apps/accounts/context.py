"""What every page may show of the person who looks at it. Nothing is asked for until a template does."""

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from apps.accounts import roles
from apps.accounts.models import User


def account(request: HttpRequest) -> dict[str, Any]:
    """`role_choice`: the roles that the header offers, or None."""
    return {"role_choice": SimpleLazyObject(lambda: _role_choice(request))}


def _role_choice(request: HttpRequest) -> roles.Choice | None:
    # An answer that was made before the middleware for people has nobody.
    person = getattr(request, "user", None)
    return roles.choice(person) if isinstance(person, User) else None
