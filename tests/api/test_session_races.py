"""Live sessions with others beside them: confirmations that race, processes that die, rights that go away under a running loop."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from apps.accounts import passwords, sessions
from apps.accounts.models import LiveSession, User
from apps.activity.models import Entry
from apps.api import registry
from apps.api.call import Answer
from apps.api.models import Confirmation, KeyFamily
from tests.accounts.factories import make_group, make_live_session, make_user
from tests.api import factories, once
from tests.api.once import Gate
from tests.api.person import Person, refusal
from tests.api.probe import CHANGE
from tests.api.together import at_once

pytestmark = pytest.mark.alone

MANY = 12


@pytest.fixture
def person(postgres_url: str) -> Iterator[Person]:
    """Holds the rights of the module `once` by a role, where the agent may act in it."""
    factories.set_setting("api_session_write_modules", ["once"])
    user = make_user(groups=[make_group(permissions=[CHANGE])])
    with registry.using(once.make_once()):
        yield Person(user=user, session=make_live_session(user))


def ending(outcome: Any) -> str:
    return "ran" if isinstance(outcome, Answer) else str(refusal(outcome)[2])


# --- One row ----------------------------------------------------------------------------------------------------------


def test_many_confirmations_of_one_row_run_once(person: Person) -> None:
    before, uuid = KeyFamily.objects.count(), person.held("once.count")
    found = at_once(*[lambda: person.redeem(uuid, "once.count")] * MANY)
    assert Counter(map(ending, found)) == {"ran": 1, "used": MANY - 1}
    assert KeyFamily.objects.count() == before + 1
    assert Entry.objects.filter(action="api.request", metadata__outcome="ok").count() == 1


def test_a_confirmation_and_a_rejection_at_once_are_decided_once(person: Person) -> None:
    for _ in range(8):
        before, uuid = KeyFamily.objects.count(), person.held("once.count")
        calls: list[Callable[[], Any]] = [lambda uuid=uuid: person.redeem(uuid, "once.count")] * 2  # type: ignore[misc]
        calls += [lambda uuid=uuid: person.reject(uuid)] * 2  # type: ignore[misc]
        found = at_once(*calls)
        state = Confirmation.objects.get(pk=uuid).state
        assert Counter(map(ending, found)) == {"ran": 1, state: 3}
        assert KeyFamily.objects.count() == before + (state == "used")
    rejected = Confirmation.objects.filter(state="rejected").count()
    assert Entry.objects.filter(action="api.confirmation_rejected").count() == rejected


def test_many_rejections_of_one_row_leave_one_entry(person: Person) -> None:
    uuid = person.held("once.count")
    found = at_once(*[lambda: person.reject(uuid)] * MANY)
    assert Counter(map(ending, found)) == {"ran": 1, "rejected": MANY - 1}
    assert Entry.objects.filter(action="api.confirmation_rejected").count() == 1


def test_two_that_find_the_values_changed_get_one_new_row(person: Person) -> None:
    factories.set_setting("price", 1)
    body = {"name": "price", "value": 5}
    uuid = person.held("once.set", body)
    factories.set_setting("price", 2)
    found = at_once(*[lambda: person.redeem(uuid, "once.set", body)] * 4)
    assert Counter(map(ending, found)) == {"ran": 1, "expired": 3}
    assert sorted(Confirmation.objects.values_list("state", flat=True)) == ["expired", "waiting"]


def test_a_hundred_at_most_wait_however_many_ask_at_once(person: Person) -> None:
    for _ in range(98):
        factories.make_confirmation(caller=f"person:{person.user.pk}")
    found = at_once(*[lambda: person.call("once.count")] * 6)
    assert Counter(map(ending, found)) == {"ran": 2, "too_many_waiting": 4}


# --- Another process --------------------------------------------------------------------------------------------------


class Loop:
    """A process that calls for the session, one call at a time, as an assistant's request loop does."""

    def __init__(self, person: Person, environment: dict[str, str]) -> None:
        arguments = json.dumps([str(person.session.pk), str(person.user.pk)])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.api.session_process", arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def send(self, tool: str, body: Any = None, *, door: str = "execute_as", uuid: object = None) -> None:
        assert self.process.stdin is not None
        wanted = {"door": door, "tool": tool, "body": body or {}, "uuid": str(uuid)}
        self.process.stdin.write(json.dumps(wanted) + "\n")
        self.process.stdin.flush()

    def call(self, tool: str, body: Any = None, **more: Any) -> dict[str, Any]:
        self.send(tool, body, **more)
        found: dict[str, Any] = json.loads(self.line())
        return found


@pytest.fixture
def loop(person: Person, process_environment: dict[str, str]) -> Iterator[Loop]:
    found = Loop(person, process_environment)
    yield found
    with suppress(ProcessLookupError):
        found.process.kill()
    found.process.communicate()


def sign_out(person: Person) -> None:
    rows = LiveSession.objects.filter(pk=person.session.pk)
    sessions.end(rows, reason=sessions.Reason.SIGNED_OUT, by=sessions.SYSTEM, now=timezone.now())


def block(person: Person) -> None:
    person.user.is_active = False
    person.user.save()


def block_by_a_statement(person: Person) -> None:
    User.objects.filter(pk=person.user.pk).update(is_active=False)


def take_role(person: Person) -> None:
    person.user.groups.clear()


def delete_role(person: Person) -> None:
    Group.objects.all().delete()


def take_permission(person: Person) -> None:
    person.user.groups.get().permissions.clear()


def change_password(person: Person) -> None:
    passwords.change(person.user, "another long and quiet password", keep=person.elsewhere().session.pk)


def untick(person: Person) -> None:
    factories.set_setting("api_session_write_modules", [])


def hide(person: Person) -> None:
    factories.set_setting("api_disabled_tools", ["once.count"])


def impersonate(person: Person) -> None:
    LiveSession.objects.filter(pk=person.session.pk).update(impersonator=make_user(is_superuser=True))


LOSSES: dict[str, tuple[Callable[[Person], None], tuple[int, str, str | None]]] = {
    "signed out": (sign_out, (401, "unauthorized", "session_gone")),
    "blocked": (block, (401, "unauthorized", "session_gone")),
    "blocked by a statement": (block_by_a_statement, (401, "unauthorized", "inactive")),
    "role removed": (take_role, (403, "forbidden", None)),
    "role deleted": (delete_role, (403, "forbidden", None)),
    "permission removed": (take_permission, (403, "forbidden", None)),
    "password changed elsewhere": (change_password, (401, "unauthorized", "session_gone")),
    "box unticked": (untick, (403, "module_write_disabled", None)),
    "tool hidden": (hide, (404, "not_found", None)),
    "impersonated": (impersonate, (403, "impersonated", None)),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_the_next_call_of_a_running_loop_in_another_process_is_refused(person: Person, loop: Loop, loss: str) -> None:
    lose, refused = LOSSES[loss]
    held = loop.call("once.count")
    assert held["result"]["status"] == "confirmation_required"
    lose(person)
    for found in (
        loop.call("once.count"),
        loop.call("once.count", door="redeem_as", uuid=held["result"]["confirmation_id"]),
    ):
        assert (found["status"], found["code"], found["reason"]) == refused
    assert Confirmation.objects.get().state == "waiting"


def test_a_box_ticked_here_opens_the_next_call_of_another_process(person: Person, loop: Loop) -> None:
    untick(person)
    assert loop.call("once.count")["code"] == "module_write_disabled"
    factories.set_setting("api_session_write_modules", ["once"])
    assert loop.call("once.count")["status"] == 200


def test_a_row_held_here_is_confirmed_in_another_process(person: Person, loop: Loop) -> None:
    uuid = person.held("once.count")
    assert loop.call("once.count", door="redeem_as", uuid=uuid)["status"] == 200
    assert ending(person.redeem(uuid, "once.count")) == "used"


@pytest.mark.parametrize("point", ["preview", "before", "after"])
def test_a_confirmation_killed_before_its_commit_leaves_the_row_good_and_no_effect(
    person: Person, loop: Loop, tmp_path: Path, point: str
) -> None:
    gate = Gate(tmp_path)
    body = {"gate": str(gate.path), "hold": point}
    before, uuid = KeyFamily.objects.count(), person.held("once.count", body)
    Path(f"{gate.path}.{point}").unlink(missing_ok=True)
    with gate.closed():
        loop.send("once.count", body, door="redeem_as", uuid=uuid)
        gate.wait_for(point)
        loop.process.send_signal(signal.SIGKILL)
        loop.process.wait()
    assert (KeyFamily.objects.count(), Confirmation.objects.get().state) == (before, "waiting")
    assert ending(person.redeem(uuid, "once.count", body)) == "ran"
    assert KeyFamily.objects.count() == before + 1


def test_a_confirmation_killed_after_its_commit_is_done(person: Person, loop: Loop, tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    body = {"gate": str(gate.path), "hold": "committed"}
    before, uuid = KeyFamily.objects.count(), person.held("once.count", body)
    with gate.closed():
        loop.send("once.count", body, door="redeem_as", uuid=uuid)
        gate.wait_for("committed")
        loop.process.send_signal(signal.SIGKILL)
        loop.process.wait()
    assert KeyFamily.objects.count() == before + 1
    assert ending(person.redeem(uuid, "once.count", body)) == "used"
    assert Entry.objects.filter(action="api.request", metadata__outcome="ok").count() == 1
