"""Writes that wait for another person (SPEC 12), through the doors: a machine asks over REST, people decide, the run is checked anew."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from apps.activity.models import Entry
from apps.api import ToolError, deciding, fingerprint, preview, row, runs, sweeps
from apps.api.deciding import Decision
from apps.api.models import Approval, IdempotencyRecord, Setting, Vote
from apps.api.problems import Problem
from tests.api import factories
from tests.api.factories import Machine
from tests.api.person import Person, make_person
from tests.api.shop import PERMISSION, SCOPE, Shop, make_module, put

pytestmark = pytest.mark.sqlite

NAMED: dict[str, Any] = {"type": "object", "properties": {"to": {}, "extra": {"type": "integer", "default": 1}}}
DECIDES = [PERMISSION, deciding.PERMISSION]


class Prices:
    """`shop.run` sets the setting `price`; the machine's key requires an approval. Tasks are run by the test itself."""

    def __init__(self, shop: Shop) -> None:
        self.fail: BaseException | None = None
        self.ran: list[Any] = []
        module = make_module()
        rights: dict[str, Any] = {"scope": SCOPE, "permission": PERMISSION, "input_schema": NAMED}
        module.tool("shop.run", **rights)(self.set).preview(self.show)
        put("price", 1)
        shop.open(module)
        self.owner = factories.make_owner(superuser=True)
        self.machine = factories.make_machine(owner=self.owner, scopes=[SCOPE], requires_approval=True)
        self.approver = make_person(permissions=DECIDES)

    def set(self, given: Any, ctx: Any) -> Any:
        self.ran.append((given, ctx))
        put("price", given.get("to", 2))
        ctx.log("shop.price_set", "price", "1")
        if self.fail is not None:
            raise self.fail
        return {"ran": len(self.ran)}

    def show(self, given: Any, ctx: Any) -> Any:
        now = dict(Setting.objects.filter(name="price").values_list("name", "value"))
        shown = preview("Set.", [row("price", "price", before=now.get("price"), after=given.get("to", 2))])
        return shown, fingerprint(["price"], now)

    def ask(self, **body: Any) -> Any:
        return self.machine.call("shop.run", body)

    def asked(self, **body: Any) -> Approval:
        return Approval.objects.get(pk=self.ask(**body).json()["approval_id"])

    def decide(
        self, approval: Approval, who: Person | None = None, *, version: int | None = None, **fields: Any
    ) -> Any:
        seen = Approval.objects.get(pk=approval.pk).preview_version if version is None else version
        decision = Decision(**{"approve": True, "version": seen, **fields})
        return deciding.decide((who or self.approver).ref, approval.pk, decision, impersonated=False)


@pytest.fixture
def prices(shop: Shop, settings: Any) -> Prices:
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    return Prices(shop)


def keep_task(name: str, *arguments: str) -> None:
    """The test delivers the tasks itself."""


def price() -> Any:
    return Setting.objects.get(name="price").value


def state(approval: Approval) -> tuple[str, str]:
    found = Approval.objects.get(pk=approval.pk)
    return found.state, found.code


def entries(action: str) -> list[Entry]:
    return list(Entry.objects.filter(action=action).order_by("created_at", "pk"))


def refused(call: Callable[[], Any]) -> tuple[str, Any]:
    with pytest.raises(Problem) as found:
        call()
    return found.value.code, found.value.context.get("reason")


# --- Asked ------------------------------------------------------------------------------------------------------------


def test_every_write_of_such_a_key_is_queued_and_runs_nothing(prices: Prices) -> None:
    answer = prices.ask(to=5)
    body = answer.json()
    approval = Approval.objects.get()
    assert answer.status_code == 200
    assert set(body) == {
        "status",
        "approval_id",
        "preview",
        "expires_at",
        "expires_in_seconds",
        "url",
        "approvals_needed",
    }
    assert (body["status"], body["approval_id"], body["approvals_needed"]) == ("pending_approval", str(approval.pk), 1)
    assert body["url"].endswith(f"/approvals/{approval.pk}/")
    assert body["expires_in_seconds"] == pytest.approx(72 * 3600, abs=5)
    assert (price(), prices.ran, approval.state) == (1, [], "pending")
    assert approval.arguments == {"to": 5, "extra": 1}
    (entry,) = entries("api.request")
    assert (entry.metadata["outcome"], entry.metadata["confirmation_uuid"]) == ("pending_approval", str(approval.pk))


def test_a_repeat_gets_the_same_approval_marked_and_recorded(prices: Prices) -> None:
    first, second = prices.ask(to=5), prices.ask(to=5)
    assert second.json()["approval_id"] == first.json()["approval_id"]
    assert ("Idempotent-Replayed" in first.headers, "Idempotent-Replayed" in second.headers) == (False, True)
    assert len(entries("api.request")) == 2
    assert prices.ask(to=6).json()["approval_id"] != first.json()["approval_id"]


def test_another_idempotency_key_asks_for_the_same_approval(prices: Prices) -> None:
    first = prices.ask(to=5, idempotency_key="a").json()
    assert prices.ask(to=5, idempotency_key="b").json()["approval_id"] == first["approval_id"]
    assert (
        list(IdempotencyRecord.objects.values_list("state", "approval_id"))
        == [("waiting", UUID(first["approval_id"]))] * 2
    )


def test_a_preview_needs_no_approval_and_a_code_is_none_here(prices: Prices) -> None:
    assert prices.ask(dry_run=True).json()["status"] == "preview"
    assert prices.ask(confirm_token="x").json()["reason"] == "invalid"
    assert Approval.objects.count() == 0


def test_fifty_wait_at_most(prices: Prices) -> None:
    for number in range(50):
        prices.ask(to=number)
    assert prices.ask(to="more").json()["reason"] == "too_many_waiting"
    assert prices.ask(to=7).status_code == 200


def test_a_row_past_its_time_does_not_stand_in_the_way(prices: Prices) -> None:
    old = prices.asked(to=5)
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert prices.asked(to=5).pk != old.pk
    assert state(old) == ("expired", "")


# --- Decided ----------------------------------------------------------------------------------------------------------


def test_an_approved_write_runs_once_with_the_arguments_that_were_shown(prices: Prices) -> None:
    approval = prices.asked(to=5)
    assert prices.decide(approval, note="Fine.") == "approved"
    for _ in range(3):
        runs.run(approval.pk)
    ((given, ctx),) = prices.ran
    assert (given, price(), state(approval)) == ({"to": 5, "extra": 1}, 5, ("done", ""))
    assert (ctx.confirmation_uuid, ctx.approved_by_uuid, ctx.via) == (
        str(approval.pk),
        str(prices.approver.user.pk),
        None,
    )
    assert ctx.actor.key.uuid == prices.machine.key.uuid  # type: ignore[union-attr]


def test_the_run_writes_its_own_entry_with_the_approvers_and_is_not_charged(prices: Prices) -> None:
    approval = prices.asked(to=5)
    prices.decide(approval)
    factories.set_setting("api_key_budget", 1)
    runs.run(approval.pk)
    entry = entries("api.request")[-1]
    assert (entry.actor_kind, entry.metadata["outcome"], entry.metadata["confirmation_uuid"]) == (
        "key",
        "ok",
        str(approval.pk),
    )
    assert entry.metadata["approvers"] == [str(prices.approver.user.pk)]
    (decided,) = entries("api.approval_decided")
    assert (decided.actor_uuid, decided.mode, decided.metadata["decision"]) == (
        str(prices.approver.user.pk),
        "manual",
        "approve",
    )


def test_a_rejection_ends_it_with_one_no(prices: Prices) -> None:
    approval = prices.asked(to=5)
    assert prices.decide(approval, approve=False, note="Too much.") == "rejected"
    runs.run(approval.pk)
    assert (price(), state(approval)) == (1, ("rejected", ""))
    found = prices.machine.call("system.get_approval", {"approval_id": str(approval.pk)}).json()
    assert (found["status"], found["reason"], found["result"]) == ("rejected", "Too much.", None)


def test_a_quorum_needs_distinct_people(shop: Shop, prices: Prices) -> None:
    machine = factories.make_machine(owner=prices.owner, scopes=[SCOPE], requires_approval=True, approvers_needed=2)
    approval = Approval.objects.get(pk=machine.call("shop.run", {}).json()["approval_id"])
    assert prices.decide(approval) == "pending"
    assert refused(lambda: prices.decide(approval)) == ("conflict", "not_pending")
    assert refused(lambda: prices.decide(approval, prices.approver.elsewhere())) == ("conflict", "not_pending")
    assert Approval.objects.get(pk=approval.pk).approvals == 1
    assert prices.decide(approval, make_person(permissions=DECIDES)) == "approved"


def test_a_stale_page_decides_nothing(prices: Prices) -> None:
    approval = prices.asked(to=5)
    assert refused(lambda: prices.decide(approval, version=2)) == ("conflict", "stale_preview")
    assert (state(approval), Vote.objects.count(), entries("api.approval_decided")) == (("pending", ""), 0, [])


def test_what_is_decided_or_past_its_time_is_decided_no_more(prices: Prices) -> None:
    approval = prices.asked(to=5)
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert refused(lambda: prices.decide(approval)) == ("conflict", "not_pending")
    Approval.objects.update(expires_at=timezone.now() + timedelta(hours=1))
    prices.decide(approval, approve=False)
    assert refused(lambda: prices.decide(approval, make_person(permissions=DECIDES))) == ("conflict", "not_pending")


def owner_of_the_key(prices: Prices) -> Person:
    from tests.accounts.factories import make_live_session

    return Person(user=prices.owner, session=make_live_session(prices.owner))


def maker_of_the_key(prices: Prices) -> Person:
    maker = make_person(permissions=DECIDES)
    type(prices.machine.key).objects.update(created_by=maker.user)  # type: ignore[union-attr]
    return maker


@pytest.mark.parametrize("asker", [owner_of_the_key, maker_of_the_key])
def test_who_asks_decides_nothing_a_superuser_is_no_exception(
    prices: Prices, asker: Callable[[Prices], Person]
) -> None:
    approval = prices.asked(to=5)
    assert refused(lambda: prices.decide(approval, asker(prices)))[0] == "forbidden"
    assert state(approval) == ("pending", "")


@pytest.mark.parametrize("rights", [[], [PERMISSION], [deciding.PERMISSION]])
def test_who_lacks_one_of_the_two_permissions_sees_nothing_there(prices: Prices, rights: list[str]) -> None:
    approval = prices.asked(to=5)
    stranger = make_person(permissions=rights)
    assert refused(lambda: prices.decide(approval, stranger)) == ("not_found", None)
    missing = Approval(pk=uuid4())
    assert refused(lambda: prices.decide(missing, stranger, version=1)) == ("not_found", None)


def test_a_session_that_is_over_or_impersonated_decides_nothing(prices: Prices) -> None:
    approval = prices.asked(to=5)
    seen = Decision(approve=True, version=1)
    assert (
        refused(lambda: deciding.decide(prices.approver.ref, approval.pk, seen, impersonated=True))[0] == "impersonated"
    )
    assert refused(lambda: deciding.decide(None, approval.pk, seen, impersonated=False))[0] == "unauthorized"
    prices.approver.session.impersonator = factories.make_owner(superuser=True)
    prices.approver.session.save()
    assert refused(lambda: prices.decide(approval))[0] == "impersonated"
    assert state(approval) == ("pending", "")


# --- At the run (AP-4) ------------------------------------------------------------------------------------------------


def revoke_key(prices: Prices) -> None:
    type(prices.machine.key).objects.update(revoked_at=timezone.now())  # type: ignore[union-attr]


def block_owner(prices: Prices) -> None:
    type(prices.owner).objects.filter(pk=prices.owner.pk).update(is_active=False)


def demote_owner(prices: Prices) -> None:
    type(prices.owner).objects.filter(pk=prices.owner.pk).update(is_superuser=False)


def hide_tool(prices: Prices) -> None:
    factories.set_setting("api_disabled_tools", ["shop.run"])


def close_module(prices: Prices) -> None:
    factories.set_setting("disabled_modules", ["shop"])


def take_scope(prices: Prices) -> None:
    type(prices.machine.key).objects.update(scopes=[])  # type: ignore[union-attr]


def break_arguments(prices: Prices) -> None:
    Approval.objects.update(arguments={"other": 1})


GONE: dict[str, tuple[Callable[[Prices], None], str]] = {
    "key revoked": (revoke_key, "unauthorized"),
    "owner blocked": (block_owner, "unauthorized"),
    "owner demoted": (demote_owner, "forbidden"),
    "tool hidden": (hide_tool, "not_found"),
    "module off": (close_module, "module_disabled"),
    "scope taken": (take_scope, "forbidden"),
    "arguments do not fit any more": (break_arguments, "validation_failed"),
}


@pytest.mark.parametrize("gone", GONE)
def test_a_right_that_is_gone_after_the_approval_fails_the_run_with_its_reason(prices: Prices, gone: str) -> None:
    change, code = GONE[gone]
    approval = prices.asked(to=5)
    prices.decide(approval)
    change(prices)
    runs.run(approval.pk)
    assert (state(approval), price(), prices.ran) == (("failed", code), 1, [])
    assert entries("api.approval_failed")[-1].metadata["code"] == code


@pytest.mark.parametrize(("name", "value"), [("api_admin_enabled", False), ("maintenance_mode", True)])
def test_while_the_api_is_off_or_under_maintenance_the_run_waits(prices: Prices, name: str, value: bool) -> None:
    approval = prices.asked(to=5)
    prices.decide(approval)
    factories.set_setting(name, value)
    runs.run(approval.pk)
    assert state(approval) == ("approved", "")
    Setting.objects.filter(name=name).delete()
    runs.run(approval.pk)
    assert state(approval) == ("done", "")


def test_changed_values_go_back_to_the_approvers_with_the_new_preview_and_no_votes(prices: Prices) -> None:
    approval = prices.asked(to=5)
    prices.decide(approval)
    put("price", 7)
    Setting.objects.filter(name="price").update(value=7)
    runs.run(approval.pk)
    found = Approval.objects.get(pk=approval.pk)
    assert (found.state, found.approvals, found.preview_version, price(), prices.ran) == ("pending", 0, 2, 7, [])
    assert found.preview is not None
    assert found.preview["rows"][0]["before"] == 7
    assert Vote.objects.get().cleared_at is not None
    assert entries("api.approval_reopened")[-1].metadata["why"] == "values_changed"
    assert refused(lambda: prices.decide(approval, version=1)) == ("conflict", "stale_preview")
    assert prices.decide(approval) == "approved"
    runs.run(approval.pk)
    assert (price(), state(approval)) == (5, ("done", ""))


def test_after_three_times_it_goes_back_no_more(prices: Prices) -> None:
    approval = prices.asked(to=5)
    for value in (10, 11, 12, 13):
        prices.decide(approval)
        Setting.objects.filter(name="price").update(value=value)
        runs.run(approval.pk)
    assert state(approval) == ("failed", "changed")


def test_a_vote_that_counts_no_more_at_the_run_sends_it_back(prices: Prices) -> None:
    approval = prices.asked(to=5)
    prices.decide(approval)
    factories.revoke(prices.approver.user, PERMISSION)
    runs.run(approval.pk)
    assert (state(approval), prices.ran) == (("pending", ""), [])
    assert entries("api.approval_reopened")[-1].metadata["why"] == "votes_lost"


def test_a_declared_refusal_of_the_handler_is_the_end_with_its_code(prices: Prices) -> None:
    approval = prices.asked(to=5, idempotency_key="k")
    prices.decide(approval)
    prices.fail = ToolError("sold_out", "Nothing is left.")
    runs.run(approval.pk)
    assert (state(approval), price()) == (("failed", "sold_out"), 1)
    found = prices.machine.call("system.get_approval", {"approval_id": str(approval.pk)}).json()
    assert (found["code"], found["reason"]) == ("sold_out", "Nothing is left.")


def test_a_crash_of_the_handler_fails_it_and_undoes_everything(prices: Prices) -> None:
    approval = prices.asked(to=5)
    prices.decide(approval)
    prices.fail = RuntimeError("a secret detail")
    runs.run(approval.pk)
    assert (state(approval), price(), entries("shop.price_set")) == (("failed", "internal_error"), 1, [])


# --- What the machine learns ------------------------------------------------------------------------------------------


def test_the_idempotency_key_is_answered_by_the_end_of_its_approval(prices: Prices) -> None:
    approval = prices.asked(to=5, idempotency_key="k")
    prices.decide(approval)
    assert prices.ask(to=5, idempotency_key="k").json()["status"] == "pending_approval"
    runs.run(approval.pk)
    done = prices.ask(to=5, idempotency_key="k")
    assert (done.json(), done.headers["Idempotent-Replayed"]) == ({"ran": 1}, "true")
    assert len(prices.ran) == 1


def reject(prices: Prices, approval: Approval) -> None:
    prices.decide(approval, approve=False)


def expire(prices: Prices, approval: Approval) -> None:
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def cancel(prices: Prices, approval: Approval) -> None:
    prices.machine.call("system.cancel_approval", {"approval_id": str(approval.pk)})


def fail(prices: Prices, approval: Approval) -> None:
    prices.decide(approval)
    hide_tool(prices)
    runs.run(approval.pk)
    Setting.objects.filter(name="api_disabled_tools").delete()


@pytest.mark.parametrize(
    ("end", "reason"), [(reject, "rejected"), (expire, "expired"), (cancel, "cancelled"), (fail, "failed")]
)
def test_a_key_whose_approval_ended_without_a_result_says_why_and_wants_a_new_key(
    prices: Prices, end: Any, reason: str
) -> None:
    approval = prices.asked(to=5, idempotency_key="k")
    end(prices, approval)
    body = prices.ask(to=5, idempotency_key="k").json()
    assert (body["code"], body["reason"], body["retry"]) == ("conflict", f"approval_{reason}", "new_key")
    assert prices.ask(to=5, idempotency_key="new").json()["approval_id"] != str(approval.pk)


def test_the_requester_takes_it_back_by_tool_and_by_rest(prices: Prices) -> None:
    approval = prices.asked(to=5)
    found = prices.machine.client.delete(f"/api/v1/approvals/{approval.pk}", headers=prices.machine.headers())
    assert (found.status_code, found.json()["status"]) == (200, "cancelled")
    again = prices.machine.call("system.cancel_approval", {"approval_id": str(approval.pk)})
    assert (again.status_code, again.json()["reason"]) == (409, "not_pending")
    (entry,) = entries("api.approval_cancelled")
    assert (entry.actor_kind, entry.resource_uuid) == ("key", str(approval.pk))


def test_another_familys_approval_and_none_are_one_answer(prices: Prices) -> None:
    approval = prices.asked(to=5)
    stranger = factories.make_machine(scopes=[SCOPE])
    for method in (stranger.client.get, stranger.client.delete):
        theirs, none, odd = (
            method(f"/api/v1/approvals/{uuid}", headers=stranger.headers({"X-Request-ID": "same"}))
            for uuid in (approval.pk, uuid4(), "odd")
        )
        assert theirs.status_code == 404
        assert (theirs.content, none.content) == (none.content, odd.content)
    assert state(approval) == ("pending", "")


def test_a_rotated_key_owns_the_familys_approvals(prices: Prices) -> None:
    from apps.api import keys

    approval = prices.asked(to=5)
    assert prices.machine.key is not None
    _, text = keys.rotate(prices.machine.key, grace=timedelta(0), by=prices.owner, actor=factories.SYSTEM)
    successor = Machine(text=text)
    assert successor.call("system.get_approval", {"approval_id": str(approval.pk)}).status_code == 200
    prices.decide(approval)
    runs.run(approval.pk)
    assert state(approval) == ("done", "")


def test_the_list_pages_and_filters_by_the_true_state(prices: Prices) -> None:
    asked = [prices.asked(to=number) for number in range(5)]
    Approval.objects.filter(pk=asked[0].pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    first = prices.machine.call("system.list_approvals", {"limit": 3}).json()
    second = prices.machine.call("system.list_approvals", {"limit": 3, "cursor": first["next_cursor"]}).json()
    found = [row["approval_id"] for row in first["approvals"] + second["approvals"]]
    assert found == [str(approval.pk) for approval in reversed(asked)]
    assert second["next_cursor"] is None
    expired = prices.machine.call("system.list_approvals", {"status": "expired"}).json()["approvals"]
    assert [row["approval_id"] for row in expired] == [str(asked[0].pk)]
    assert state(asked[0]) == ("pending", "")
    assert prices.machine.call("system.list_approvals", {"cursor": "odd"}).status_code == 422


# --- Sweeps -----------------------------------------------------------------------------------------------------------


def test_the_sweep_writes_what_reading_computes(prices: Prices) -> None:
    late, unstarted, lost, fresh = (prices.asked(to=number) for number in range(4))
    past = timezone.now() - timedelta(seconds=1)
    Approval.objects.filter(pk=late.pk).update(expires_at=past)
    Approval.objects.filter(pk=unstarted.pk).update(state="approved", start_before=past)
    Approval.objects.filter(pk=lost.pk).update(state="running", attempt=1)
    assert sweeps.sweep_approvals(is_server=True).ended == 3
    assert [state(approval) for approval in (late, unstarted, lost, fresh)] == [
        ("expired", ""),
        ("failed", "not_started"),
        ("failed", "interrupted"),
        ("pending", ""),
    ]
    assert len(entries("api.approval_expired")) + len(entries("api.approval_failed")) == 3
    assert sweeps.sweep_approvals(is_server=True).ended == 0


sent: list[str] = []


def note_task(name: str, *arguments: str) -> None:
    sent.append(arguments[0])


def test_what_nobody_started_is_sent_again(prices: Prices, settings: Any) -> None:
    approval = prices.asked(to=5)
    prices.decide(approval)
    settings.API_SEND_TASK = "tests.api.test_approvals.note_task"
    sent.clear()
    assert sweeps.sweep_approvals(is_server=True).sent == 0
    Approval.objects.update(sent_at=timezone.now() - timedelta(minutes=2))
    assert [sweeps.sweep_approvals(is_server=True).sent for _ in range(2)] == [1, 0]
    assert sent == [str(approval.pk)]


def test_input_and_preview_go_after_their_time_and_the_outcome_stays(prices: Prices) -> None:
    approval = prices.asked(to=5)
    prices.decide(approval)
    runs.run(approval.pk)
    Approval.objects.update(ended_at=timezone.now() - timedelta(days=31))
    assert sweeps.sweep().approval_inputs == 1
    found = Approval.objects.get()
    assert (found.arguments, found.preview, found.state) == (None, None, "done")
    described = prices.machine.call("system.get_approval", {"approval_id": str(approval.pk)}).json()
    assert (described["result"], described["preview"]) == ({"ran": 1}, None)
