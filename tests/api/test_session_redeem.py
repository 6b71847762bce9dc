"""A person's second word (LS-3): confirmed with the rights of now and run once, or rejected; every reason, and what is left behind."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core import mail
from django.utils import timezone

from apps.accounts.models import LiveSession
from apps.activity.models import Entry
from apps.api import Module, ToolError, fingerprint, preview, row
from apps.api.call import Answer, Refusal
from apps.api.models import Confirmation, IdempotencyRecord, Setting
from tests.api import factories
from tests.api.person import Person, answer, make_person, refusal
from tests.api.shop import PERMISSION, SCOPE, Shop, make_module, put

pytestmark = pytest.mark.sqlite

NAMED: dict[str, Any] = {"type": "object", "properties": {"to": {}, "extra": {"type": "integer", "default": 1}}}


class Prices:
    """`shop.run` sets the setting `price`, which its preview shows; `shop.other` is its double, `shop.mail` sends a letter."""

    def __init__(self, shop: Shop) -> None:
        self.fail: BaseException | None = None
        self.ran: list[Any] = []
        module = make_module()
        rights: dict[str, Any] = {"scope": SCOPE, "permission": PERMISSION, "input_schema": NAMED}
        for name in ("shop.run", "shop.other"):
            module.tool(name, **rights)(self.set).preview(self.show)
        module.tool("shop.mail", reach="external", **rights)(self.send).preview(self.show)
        put("price", 1)
        self.machine = shop.open(module)
        factories.set_setting("api_session_write_modules", ["shop"])
        self.person = make_person(permissions=[PERMISSION])

    def set(self, given: Any, ctx: Any) -> Any:
        self.ran.append(ctx)
        put("price", given.get("to", 2))
        ctx.log("shop.price_set", "price", "1")
        if self.fail is not None:
            raise self.fail
        return {"ran": len(self.ran)}

    def send(self, given: Any, ctx: Any) -> Any:
        self.ran.append(ctx)
        mail.send_mail("Stock", "Please.", None, ["supplier@example.org"])
        if self.fail is not None:
            raise self.fail
        return {"ran": len(self.ran)}

    def show(self, given: Any, ctx: Any) -> Any:
        now = dict(Setting.objects.filter(name="price").values_list("name", "value"))
        shown = preview("Set.", [row("price", "price", before=now.get("price"), after=given.get("to", 2))])
        return shown, fingerprint(["price"], now)

    def held(self, tool: str = "shop.run", **body: Any) -> UUID:
        found: UUID = self.person.held(tool, body)
        return found

    def redeem(self, uuid: object, tool: str = "shop.run", **body: Any) -> Any:
        return self.person.redeem(uuid, tool, body)


@pytest.fixture
def prices(shop: Shop) -> Prices:
    return Prices(shop)


def price() -> Any:
    return Setting.objects.get(name="price").value


def states() -> list[str]:
    return list(Confirmation.objects.order_by("created_at").values_list("state", flat=True))


def entries(action: str = "api.request") -> list[dict[str, Any]]:
    return [entry.metadata for entry in Entry.objects.filter(action=action).order_by("created_at", "pk")]


# --- Confirmed --------------------------------------------------------------------------------------------------------


def test_a_confirmed_write_runs_once_under_its_row(prices: Prices) -> None:
    uuid = prices.held(to=5)
    assert answer(prices.redeem(uuid, to=5)) == {"ran": 1}
    (ctx,) = prices.ran
    assert (ctx.confirmation_uuid, ctx.via, ctx.approved_by_uuid) == (str(uuid), "session", None)
    assert (price(), states()) == (5, ["used"])


def test_the_entry_of_a_confirmation_is_the_persons_own_act_and_commits_with_the_effect(prices: Prices) -> None:
    uuid = prices.held()
    prices.person.redeem(uuid, "shop.run", {}, via="agent", request_context={"request_id": "second"})
    entry = Entry.objects.filter(action="api.request").latest("created_at")
    assert (entry.mode, entry.actor_kind, entry.resource_type, entry.resource_uuid) == (
        "manual",
        "user",
        "user",
        str(prices.person.user.pk),
    )
    assert entry.metadata == {
        "via": "agent",
        "tool": "shop.run",
        "request_id": "second",
        "outcome": "ok",
        "code": None,
        "confirmation_uuid": str(uuid),
    }
    own = Entry.objects.get(action="shop.price_set")
    assert (own.actor_kind, own.actor_uuid, own.metadata["via"]) == ("user", str(prices.person.user.pk), "agent")


def test_any_live_session_of_the_person_may_confirm(prices: Prices) -> None:
    uuid = prices.held()
    assert answer(prices.person.elsewhere().redeem(uuid, "shop.run", {}))


def test_the_uuid_may_come_as_a_text(prices: Prices) -> None:
    assert answer(prices.redeem(str(prices.held())))


def test_members_in_another_order_are_the_same_input(prices: Prices) -> None:
    uuid = prices.person.held("shop.run", {"to": {"a": 1, "b": 2}, "extra": 3})
    assert answer(prices.person.redeem(uuid, "shop.run", {"extra": 3.0, "to": {"b": 2, "a": 1}}))


def test_a_confirmation_costs_the_price_of_the_call(prices: Prices) -> None:
    uuid = prices.held()
    factories.set_setting("api_person_budget", 1)
    assert refusal(prices.redeem(uuid))[1] == "rate_limited"
    factories.set_setting("api_person_budget", 300)
    assert answer(prices.redeem(uuid))


def test_an_external_write_is_sent_once_and_has_its_record(prices: Prices) -> None:
    uuid = prices.held("shop.mail")
    assert len(mail.outbox) == 0
    assert answer(prices.redeem(uuid, "shop.mail")) == {"ran": 1}
    assert refusal(prices.redeem(uuid, "shop.mail")) == (409, "confirm_token_invalid", "used")
    record = IdempotencyRecord.objects.get(state="done")
    assert (len(mail.outbox), record.caller) == (1, f"person:{prices.person.user.pk}")


def test_an_external_write_that_breaks_is_unknown_and_its_row_is_spent(prices: Prices) -> None:
    uuid = prices.held("shop.mail")
    prices.fail = RuntimeError("after the letter")
    found = prices.redeem(uuid, "shop.mail")
    assert refusal(found)[0] == 500
    assert (states(), IdempotencyRecord.objects.get().state) == (["used"], "unknown")
    assert refusal(prices.redeem(uuid, "shop.mail"))[2] == "used"


def test_a_declared_refusal_of_the_handler_spends_the_row(prices: Prices) -> None:
    uuid = prices.held()
    prices.fail = ToolError("sold_out", "Nothing is left.")
    assert refusal(prices.redeem(uuid))[1] == "sold_out"
    assert (price(), states()) == (1, ["used"])


def test_a_crash_of_the_handler_leaves_the_row_good(prices: Prices) -> None:
    uuid = prices.held()
    prices.fail = RuntimeError("a secret detail")
    assert refusal(prices.redeem(uuid))[1] == "internal_error"
    assert (price(), states()) == (1, ["waiting"])
    prices.fail = None
    assert answer(prices.redeem(uuid))


# --- Refused ----------------------------------------------------------------------------------------------------------


def test_what_is_nobodys_and_what_is_anothers_are_one_answer(prices: Prices) -> None:
    stranger = make_person(permissions=[PERMISSION])
    uuid = prices.held()
    theirs = stranger.redeem(uuid, "shop.run", {})
    none = stranger.redeem(uuid4(), "shop.run", {})
    assert isinstance(theirs, Refusal)
    assert isinstance(none, Refusal)
    assert refusal(theirs) == (409, "confirm_token_invalid", "invalid")
    assert (theirs.status, theirs.body) == (none.status, none.body)
    assert set(theirs.headers) == set(none.headers)
    assert (states(), price()) == (["waiting"], 1)


@pytest.mark.parametrize("odd", ["", "nothing", None, 7, [], "\x00", "0" * 5_000])
def test_what_can_be_no_uuid_is_nobodys_row(prices: Prices, odd: object) -> None:
    assert refusal(prices.redeem(odd)) == (409, "confirm_token_invalid", "invalid")
    assert refusal(prices.person.reject(odd)) == (409, "confirm_token_invalid", "invalid")
    assert entries()[-1]["confirmation_uuid"] is None


def test_the_row_of_a_key_is_not_a_persons_and_a_persons_not_a_keys(prices: Prices) -> None:
    prices.machine.call("shop.run", {"dry_run": False})
    theirs = factories.make_confirmation(tool="shop.run", caller=f"key:{prices.machine.key.family_id}")  # type: ignore[union-attr]
    assert refusal(prices.redeem(theirs.pk))[2] == "invalid"
    uuid = prices.held()
    found = prices.machine.call("shop.run", {"confirm_token": str(uuid)})
    assert found.json()["reason"] == "invalid"


def test_other_arguments_and_another_tool_leave_the_row_waiting(prices: Prices) -> None:
    uuid = prices.held(to=5)
    for found in (prices.redeem(uuid, to=6), prices.redeem(uuid), prices.redeem(uuid, "shop.other", to=5)):
        assert refusal(found) == (409, "confirm_token_invalid", "other_arguments")
    assert answer(prices.redeem(uuid, to=5))


def test_a_used_row_is_used(prices: Prices) -> None:
    uuid = prices.held()
    prices.redeem(uuid)
    assert refusal(prices.redeem(uuid)) == (409, "confirm_token_invalid", "used")
    assert refusal(prices.person.reject(uuid)) == (409, "confirm_token_invalid", "used")
    assert entries()[-1] == {
        "via": "session",
        "tool": "shop.run",
        "request_id": "",
        "outcome": "error",
        "code": "confirm_token_invalid",
        "confirmation_uuid": str(uuid),
    }


def test_an_expired_row_is_expired(prices: Prices) -> None:
    uuid = prices.held()
    Confirmation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert refusal(prices.redeem(uuid)) == (409, "confirm_token_invalid", "expired")
    assert refusal(prices.person.reject(uuid)) == (409, "confirm_token_invalid", "expired")


def test_a_rejected_row_is_rejected(prices: Prices) -> None:
    uuid = prices.held()
    assert answer(prices.person.reject(uuid)) == {"status": "rejected", "confirmation_id": uuid}
    assert refusal(prices.redeem(uuid)) == (409, "confirm_token_invalid", "rejected")
    assert refusal(prices.person.reject(uuid)) == (409, "confirm_token_invalid", "rejected")
    assert (states(), price()) == (["rejected"], 1)


def test_a_rejection_is_the_persons_own_act_and_leaves_one_entry(prices: Prices) -> None:
    uuid = prices.held()
    prices.person.reject(uuid, via="agent")
    prices.person.reject(uuid, via="agent")
    entry = Entry.objects.get(action="api.confirmation_rejected")
    assert (entry.mode, entry.actor_uuid, entry.module, entry.target) == (
        "manual",
        str(prices.person.user.pk),
        "shop",
        "shop.run",
    )
    assert entry.metadata == {"via": "agent", "tool": "shop.run", "confirmation_uuid": str(uuid)}


def test_a_stranger_rejects_nothing(prices: Prices) -> None:
    uuid = prices.held()
    assert refusal(make_person(permissions=[PERMISSION]).reject(uuid))[2] == "invalid"
    assert (states(), entries("api.confirmation_rejected")) == (["waiting"], [])


def test_a_rejection_costs_nothing_and_needs_no_right_but_the_session(prices: Prices) -> None:
    uuid = prices.held()
    factories.set_setting("api_person_budget", 1)
    factories.set_setting("api_session_write_modules", [])
    factories.revoke(prices.person.user, PERMISSION)
    assert answer(prices.person.reject(uuid))


def lose_session(prices: Prices) -> None:
    LiveSession.objects.update(ended_at=timezone.now(), end_reason="signed_out")


def close_box(prices: Prices) -> None:
    factories.set_setting("api_session_write_modules", [])


def hide(prices: Prices) -> None:
    factories.set_setting("api_disabled_tools", ["shop.run"])


def switch_module_off(prices: Prices) -> None:
    factories.set_setting("disabled_modules", ["shop"])


def lose_right(prices: Prices) -> None:
    factories.revoke(prices.person.user, PERMISSION)


@pytest.mark.parametrize(
    ("lose", "code"),
    [
        (lose_session, "unauthorized"),
        (close_box, "module_write_disabled"),
        (hide, "not_found"),
        (switch_module_off, "module_disabled"),
        (lose_right, "forbidden"),
    ],
)
def test_what_was_lost_since_the_preview_refuses_the_confirmation_and_leaves_the_row_waiting(
    prices: Prices, lose: Any, code: str
) -> None:
    uuid = prices.held()
    lose(prices)
    assert refusal(prices.redeem(uuid))[1] == code
    assert (states(), price(), prices.ran) == (["waiting"], 1, [])


# --- Changed values ---------------------------------------------------------------------------------------------------


def test_changed_values_answer_the_prompt_of_a_new_row(prices: Prices) -> None:
    first = prices.held()
    put("price", 7)
    found = answer(prices.redeem(first))
    second = found["confirmation_id"]
    assert (found["status"], found["reason"], found["preview"]["rows"][0]["before"]) == (
        "confirmation_required",
        "changed",
        7,
    )
    assert "confirm_token" not in found
    assert (states(), price(), prices.ran) == (["expired", "waiting"], 7, [])
    assert entries()[-1] == {
        "via": "session",
        "tool": "shop.run",
        "request_id": "",
        "outcome": "confirmation_required",
        "code": None,
        "confirmation_uuid": str(second),
        "replaces_confirmation_uuid": str(first),
    }
    assert refusal(prices.redeem(first))[2] == "expired"
    assert answer(prices.redeem(second))


def test_a_changed_external_write_asks_anew_too(prices: Prices) -> None:
    first = prices.held("shop.mail")
    put("price", 7)
    found = prices.redeem(first, "shop.mail")
    assert isinstance(found, Answer)
    assert (found.result["reason"], len(mail.outbox)) == ("changed", 0)
    assert IdempotencyRecord.objects.count() == 0


def test_a_hold_that_a_person_made_is_listed_with_their_name(prices: Prices) -> None:
    prices.held()
    assert Confirmation.objects.get().actor_name == str(prices.person.user.email)


def test_a_person_with_a_long_address_can_hold_a_write(shop: Shop) -> None:
    module: Module = make_module()
    shop.open(module)
    factories.set_setting("api_session_write_modules", ["shop"])
    person: Person = make_person(
        permissions=[PERMISSION], email=f"{'a' * 60}@{'b' * 60}.{'c' * 60}.{'d' * 50}.example.org"
    )
    assert person.held("shop.put", {"name": "thing"})
