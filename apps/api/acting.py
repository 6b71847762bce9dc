"""Who does something on a page, as the services and their entries want to know it."""

from typing import Any, TypedDict

from django.http import HttpRequest

from apps.activity import log as activity
from apps.api import addresses, doorway


class Acting(TypedDict):
    """Keyword arguments of `keys`, `settings_store` and the like."""

    actor: activity.Actor
    request_id: str
    ip: str | None


def of(request: HttpRequest) -> Acting:
    """The signed-in person, the request and its address."""
    person: Any = request.user
    name = getattr(person, "get_full_name", person.get_username)()
    return {
        "actor": activity.Actor(kind="user", uuid=str(person.pk), name=name),
        "request_id": doorway.request_id(request),
        "ip": addresses.caller(request.META) or None,
    }
