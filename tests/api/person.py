"""A person in a live session, for the tests of the gate's four functions for sessions (section 17)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import SessionRef
from apps.api import executor
from apps.api.call import Answer, Listing, Outcome, Refusal
from tests.accounts.factories import make_live_session, make_user


@dataclass(kw_only=True)
class Person:
    """Calls as an assistant does: `allow="all"`, not impersonated, unless the test says otherwise."""

    user: User
    session: LiveSession
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def ref(self) -> SessionRef:
        return SessionRef(self.session.pk, self.user.pk)

    def call(self, tool: str, body: Any = None, **options: Any) -> Outcome:
        given = {"impersonated": False, "allow": "all", **self.options, **options}
        return executor.execute_as(self.ref, "admin", tool, {} if body is None else body, **given)

    def redeem(self, uuid: object, tool: str, body: Any = None, **options: Any) -> Outcome:
        given = {"impersonated": False, **self.options, **options}
        return executor.redeem_as(self.ref, "admin", uuid, tool, {} if body is None else body, **given)

    def reject(self, uuid: object, **options: Any) -> Outcome:
        return executor.reject_as(self.ref, uuid, **{"impersonated": False, **options})

    def visible(self, **options: Any) -> Listing | Refusal:
        return executor.visible_for(self.ref, "admin", **{"impersonated": False, "allow": "all", **options})

    def tools(self, **options: Any) -> list[str]:
        found = self.visible(**options)
        assert isinstance(found, Listing)
        return [tool.name for tool in found.tools]

    def held(self, tool: str, body: Any = None) -> Any:
        """The confirmation's uuid of a write that was held."""
        return answer(self.call(tool, body))["confirmation_id"]

    def elsewhere(self) -> "Person":
        """The same person in another session of theirs."""
        return Person(user=self.user, session=make_live_session(self.user))


def make_person(*, permissions: Iterable[str] = (), **fields: Any) -> Person:
    user = make_user(permissions=list(permissions), **fields)
    return Person(user=user, session=make_live_session(user))


def answer(outcome: Outcome) -> dict[str, Any]:
    assert isinstance(outcome, Answer), outcome
    return outcome.result


def refusal(outcome: Outcome | Listing) -> tuple[int, str, Any]:
    """Status, code and reason of a refusal."""
    assert isinstance(outcome, Refusal), outcome
    return outcome.status, outcome.problem.code, outcome.problem.context.get("reason")
