"""Where the gate meets people (PS-1): the protocol that `settings.API_PEOPLE` implements, and a default for any user model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest

if TYPE_CHECKING:
    from apps.api.switches import Switches


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What a person may do at this moment. `person_id` is str(pk) of the user; permissions are `app_label.codename`."""

    person_id: str
    name: str
    is_superuser: bool = False
    permissions: frozenset[str] = field(default_factory=frozenset)

    def can(self, permission: str) -> bool:
        return self.is_superuser or permission in self.permissions

    def can_all(self, permissions: frozenset[str]) -> bool:
        return self.is_superuser or permissions <= self.permissions


# Why a session may not act now (PS-3). A reference that is none at all stands for no session either.
Refused = Literal["session_gone", "mismatch", "inactive", "unconfirmed", "referral_required"]

REASONS: Mapping[Refused, str] = {
    "session_gone": "The session is over.",
    "mismatch": "The session is not this person's.",
    "inactive": "The account is blocked.",
    "unconfirmed": "The e-mail address of the account is not confirmed.",
    "referral_required": "The account needs a referral code.",
}


@dataclass(frozen=True, kw_only=True)
class Session:
    """A live session that may act now. `scope` is the person's, narrowed to the role that the session acts as."""

    scope: Scope
    is_impersonated: bool = False


class People(Protocol):
    """What the gate asks about people. A module with these functions is one."""

    def owner_sql(self, vendor: str, owner: str) -> str | None:
        """An SQL scalar subquery that gives the facts of the person whose pk is the expression `owner`, as JSON.

        It becomes part of the one statement that verifies a key (KY-2). None: the facts are read by `owner_scope`.
        """

    def owner_scope(self, owner_id: object, facts: Mapping[str, Any] | None, switches: "Switches") -> Scope | None:
        """The owner's full scope, or None when the owner may not act now (PS-3's gates)."""

    def session(self, ref: object, switches: "Switches") -> Session | Refused:
        """What the reference stands for at this moment, or the reason why it may not act. Never raises for an odd reference."""

    def reference(self, request: HttpRequest) -> object | None:
        """What `session` is asked about for this request: taken from its signed browser session alone. None for a visitor."""

    def reference_in(self, browser_session: SessionBase) -> object | None:
        """The same of a browser session without a request, as a socket's handshake has one."""

    def holds(self, request: HttpRequest) -> bool:
        """Whether the session of this request still is what it was when the request began; asked in a transaction, to its end."""

    def is_impersonated(self, request: HttpRequest) -> bool:
        """Whether somebody looks at the site as the person of this request (PS-6)."""

    def acts_as_role(self, request: HttpRequest) -> bool:
        """Whether the session of this request is narrowed to one role (PS-4). A key never is, so none is handed out meanwhile."""


class DefaultPeople:
    """Keys of active users, permissions as Django's backends grant them. No sessions, and nobody decides approvals."""

    def owner_sql(self, vendor: str, owner: str) -> str | None:
        return None

    def owner_scope(self, owner_id: object, facts: Mapping[str, Any] | None, switches: "Switches") -> Scope | None:
        user = get_user_model()._default_manager.filter(pk=cast(Any, owner_id)).first()
        if user is None or not user.is_active:
            return None
        return Scope(
            person_id=str(user.pk),
            name=user.get_username(),
            is_superuser=bool(getattr(user, "is_superuser", False)),
            permissions=frozenset(user.get_all_permissions()) if hasattr(user, "get_all_permissions") else frozenset(),
        )

    def session(self, ref: object, switches: "Switches") -> Session | Refused:
        return "session_gone"

    def reference(self, request: HttpRequest) -> object | None:
        return None

    def reference_in(self, browser_session: SessionBase) -> object | None:
        return None

    def holds(self, request: HttpRequest) -> bool:
        return True

    def is_impersonated(self, request: HttpRequest) -> bool:
        return False

    def acts_as_role(self, request: HttpRequest) -> bool:
        return False


_default = DefaultPeople()


def user(person_id: str) -> Any:
    """The row of a person by `Scope.person_id`."""
    return get_user_model()._default_manager.get(pk=person_id)


def current() -> People:
    """The people of this project: the module that `API_PEOPLE` names, else the default."""
    name = getattr(settings, "API_PEOPLE", "")
    return _named(name) if name else _default


@cache
def _named(module: str) -> People:
    return cast(People, import_module(module))
