"""Calls on behalf of a live session (LS-1 to LS-7): who may call what, what is held, what is paid and what is left behind."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import LiveSession
from apps.accounts.sessions import SessionRef
from apps.activity.models import Entry
from apps.api import executor, ratelimit
from apps.api.call import Answer, Outcome, Refusal
from apps.api.models import Confirmation, Setting
from apps.api.ratelimit import Bucket
from tests.accounts.factories import make_expired_session, make_group, make_owner
from tests.api import factories, probe
from tests.api.person import Person, answer, make_person, refusal
from tests.api.shop import PERMISSION, Shop, put, stored

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tools")]

RIGHTS = [probe.VIEW, probe.CHANGE]
STORED = {"name": "thing", "value": 5}
BUDGET = 300


@pytest.fixture
def person() -> Person:
    """Holds the probe's rights, in a place where the agent may act in the probe."""
    factories.set_setting("api_session_write_modules", ["probe"])
    return make_person(permissions=RIGHTS)


def left(person: Person) -> int:
    bucket = Bucket(policy="person", name=f"person:{person.user.pk}", budget=BUDGET)
    return ratelimit.levels([bucket])[0].remaining


def entries() -> list[dict[str, Any]]:
    found = Entry.objects.filter(action="api.request").order_by("created_at", "pk")
    return [{key: one.metadata.get(key) for key in ("outcome", "code", "confirmation_uuid")} for one in found]


# --- Reads ------------------------------------------------------------------------------------------------------------


def test_a_read_runs_and_leaves_no_entry(person: Person) -> None:
    assert answer(person.call("probe.echo", {"text": "hello"}, allow="read"))["text"] == "hello"
    assert (left(person), Entry.objects.count()) == (BUDGET - 1, 0)


def test_without_allow_a_write_is_refused_before_anything_runs(person: Person) -> None:
    found = executor.execute_as(person.ref, "admin", "probe.store", STORED, impersonated=False)
    assert refusal(found) == (403, "forbidden", None)
    assert (left(person), Entry.objects.count(), Confirmation.objects.count()) == (BUDGET - 1, 0, 0)


def test_the_limiters_headers_name_the_person(person: Person) -> None:
    found = person.call("probe.echo")
    assert isinstance(found, Answer)
    assert '"person";q=300;w=60' in found.headers["RateLimit-Policy"]


def test_all_sessions_of_a_person_pay_from_one_budget(person: Person) -> None:
    factories.set_setting("api_person_budget", 2)
    person.call("probe.echo")
    person.elsewhere().call("probe.echo")
    assert refusal(person.call("probe.echo")) == (429, "rate_limited", None)


def test_a_session_costs_one_query_besides_the_one_for_the_settings(person: Person) -> None:
    person.call("probe.echo")
    with CaptureQueriesContext(connection) as found:
        person.call("probe.echo")
    asked = [row["sql"] for row in found if row["sql"].startswith("SELECT") and "api_bucket" not in row["sql"]]
    assert ["accounts_livesession" in sql for sql in asked if "api_setting" not in sql] == [True]


# --- Who may ----------------------------------------------------------------------------------------------------------


def ended(person: Person) -> object:
    LiveSession.objects.update(ended_at=timezone.now(), end_reason="signed_out")
    return person.ref


def unconfirmed(person: Person) -> object:
    factories.set_setting("accounts_email_required", True)
    return person.ref


def unreferred(person: Person) -> object:
    factories.set_setting("accounts_referral_required", True)
    return person.ref


def blocked(person: Person) -> object:
    type(person.user).objects.update(is_active=False)
    return person.ref


REFERENCES: dict[str, tuple[str, Callable[[Person], object]]] = {
    "ended": ("session_gone", ended),
    "expired": ("session_gone", lambda person: SessionRef(make_expired_session(person.user).pk, person.user.pk)),
    "unknown": ("session_gone", lambda person: SessionRef(uuid4(), person.user.pk)),
    "none": ("session_gone", lambda person: None),
    "a pair that is no reference": ("session_gone", lambda person: (person.session.pk, person.user.pk)),
    "texts": (
        "session_gone",
        lambda person: SessionRef(cast(UUID, str(person.session.pk)), cast(UUID, str(person.user.pk))),
    ),
    "another person's": ("mismatch", lambda person: SessionRef(person.session.pk, make_person().user.pk)),
    "nobody's": ("mismatch", lambda person: SessionRef(person.session.pk, uuid4())),
    "blocked": ("inactive", blocked),
    "unconfirmed": ("unconfirmed", unconfirmed),
    "without a referral code": ("referral_required", unreferred),
}
DOORS: dict[str, Callable[[object], Any]] = {
    "execute_as": lambda ref: executor.execute_as(ref, "admin", "probe.echo", {}, impersonated=False),
    "redeem_as": lambda ref: executor.redeem_as(ref, "admin", uuid4(), "probe.store", STORED, impersonated=False),
    "reject_as": lambda ref: executor.reject_as(ref, uuid4(), impersonated=False),
    "visible_for": lambda ref: executor.visible_for(ref, "admin", impersonated=False),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("reference", REFERENCES)
def test_a_session_that_may_not_act_is_refused_with_its_reason_for_nothing(
    person: Person, reference: str, door: str
) -> None:
    reason, make = REFERENCES[reference]
    assert refusal(DOORS[door](make(person))) == (401, "unauthorized", reason)
    assert (left(person), Entry.objects.filter(action="api.request").count()) == (BUDGET, 0)


def test_a_person_who_is_confirmed_and_referred_may_act_where_both_are_asked_for() -> None:
    factories.set_setting("accounts_email_required", True)
    factories.set_setting("accounts_referral_required", True)
    person = make_person(permissions=RIGHTS, email_confirmed_at=timezone.now(), referral_code="friend")
    assert answer(person.call("probe.echo"))


def test_the_owner_may_call_everything_that_is_open(person: Person) -> None:
    user = make_owner()
    owner = Person(
        user=user, session=LiveSession.objects.create(user=user, expires_at=timezone.now() + timedelta(hours=1))
    )
    assert owner.tools() == ["probe.act", "probe.echo", "probe.search", "probe.store", "probe.weigh"]


def test_a_session_that_acts_as_a_role_has_the_rights_of_that_role_alone(person: Person) -> None:
    reader = make_group(permissions=[probe.VIEW])
    person.user.groups.set([reader, make_group(permissions=[probe.CHANGE])])
    person.session.acting_role = reader
    person.session.save()
    assert person.tools() == ["probe.echo", "probe.search"]
    assert "probe.store" in person.elsewhere().tools()


def test_the_owner_who_acts_as_a_role_is_no_owner_for_that_time(person: Person) -> None:
    user, reader = make_owner(), make_group(permissions=[probe.VIEW])
    user.groups.add(reader)
    owner = Person(
        user=user,
        session=LiveSession.objects.create(
            user=user, expires_at=timezone.now() + timedelta(hours=1), acting_role=reader
        ),
    )
    assert owner.tools() == ["probe.echo", "probe.search"]


def test_a_session_that_acts_as_a_role_which_its_person_never_had_is_none(person: Person) -> None:
    LiveSession.objects.update(acting_role=make_group(permissions=RIGHTS))
    assert refusal(person.call("probe.echo")) == (401, "unauthorized", "session_gone")


# --- Impersonation ----------------------------------------------------------------------------------------------------


LOOKS = ("execute_as", "visible_for")
ACTS: dict[str, Callable[[Person, bool], Any]] = {
    "execute_as all": lambda person, said: person.call("probe.echo", impersonated=said),
    "visible_for all": lambda person, said: person.visible(impersonated=said),
    "redeem_as": lambda person, said: person.redeem(uuid4(), "probe.store", STORED, impersonated=said),
    "reject_as": lambda person, said: person.reject(uuid4(), impersonated=said),
}


@pytest.mark.parametrize("act", ACTS)
def test_an_impersonated_session_is_refused_before_a_single_query(person: Person, act: str) -> None:
    with CaptureQueriesContext(connection) as asked:
        found = ACTS[act](person, True)
    assert refusal(found) == (403, "impersonated", None)
    assert len(asked) == 0


@pytest.mark.parametrize("act", ACTS)
def test_the_sessions_own_row_says_that_it_is_impersonated_whatever_the_caller_says(person: Person, act: str) -> None:
    LiveSession.objects.update(impersonator=make_owner())
    assert refusal(ACTS[act](person, False)) == (403, "impersonated", None)


@pytest.mark.parametrize("said", [True, False])
def test_an_impersonated_session_may_read(person: Person, said: bool) -> None:
    LiveSession.objects.update(impersonator=make_owner())
    assert answer(person.call("probe.echo", allow="read", impersonated=said))
    assert person.tools(allow="read", impersonated=said) == ["probe.echo", "probe.search"]


def test_whoever_impersonates_must_be_able_to_still(person: Person) -> None:
    looker = make_owner()
    LiveSession.objects.update(impersonator=looker)
    type(looker).objects.filter(pk=looker.pk).update(is_superuser=False)
    assert refusal(person.call("probe.echo", allow="read")) == (401, "unauthorized", "session_gone")


@pytest.mark.parametrize("door", DOORS)
def test_nobody_may_leave_out_whether_the_session_is_impersonated(person: Person, door: str) -> None:
    bare: dict[str, Callable[[], object]] = {
        "execute_as": lambda: executor.execute_as(person.ref, "admin", "probe.echo", {}),  # type: ignore[call-arg]
        "redeem_as": lambda: executor.redeem_as(person.ref, "admin", uuid4(), "probe.store", {}),  # type: ignore[call-arg]
        "reject_as": lambda: executor.reject_as(person.ref, uuid4()),  # type: ignore[call-arg]
        "visible_for": lambda: executor.visible_for(person.ref, "admin"),  # type: ignore[call-arg]
    }
    with pytest.raises(TypeError):
        bare[door]()


# --- What (LS-1) ------------------------------------------------------------------------------------------------------


def hidden(person: Person) -> None:
    factories.set_setting("api_disabled_tools", ["probe.store"])


def api_off(person: Person) -> None:
    factories.set_setting("api_disabled_modules", ["probe"])


def module_off(person: Person) -> None:
    factories.set_setting("disabled_modules", ["probe"])


def box_off(person: Person) -> None:
    factories.set_setting("api_session_write_modules", ["other"])


def box_unreadable(person: Person) -> None:
    factories.set_setting("api_session_write_modules", "probe")


def no_permission(person: Person) -> None:
    factories.revoke(person.user, probe.CHANGE)


def unreadable(name: str) -> Callable[[Person], None]:
    return lambda person: factories.set_setting(name, {"odd": 1})


CLOSED: dict[str, tuple[Callable[[Person], None], str, int, str]] = {
    "unknown": (lambda person: None, "probe.nothing", 404, "not_found"),
    "public": (lambda person: None, "probe.look", 404, "not_found"),
    "hidden": (hidden, "probe.store", 404, "not_found"),
    "api off": (api_off, "probe.store", 404, "not_found"),
    "hidden list unreadable": (unreadable("api_disabled_tools"), "probe.echo", 404, "not_found"),
    "closed list unreadable": (unreadable("api_disabled_modules"), "probe.echo", 404, "not_found"),
    "module off": (module_off, "probe.store", 404, "module_disabled"),
    "modules unreadable": (unreadable("disabled_modules"), "probe.echo", 404, "module_disabled"),
    "system": (lambda person: None, "system.whoami", 403, "forbidden"),
    "box off": (box_off, "probe.store", 403, "module_write_disabled"),
    "box unreadable": (box_unreadable, "probe.store", 403, "module_write_disabled"),
    "permission": (no_permission, "probe.store", 403, "forbidden"),
}


@pytest.mark.parametrize("why", CLOSED)
def test_a_closed_tool_costs_one_unit_and_leaves_nothing(person: Person, why: str) -> None:
    close, tool, status, code = CLOSED[why]
    close(person)
    for outcome in (person.call(tool, STORED), person.redeem(uuid4(), tool, STORED)):
        assert refusal(outcome)[:2] == (status, code)
    assert (left(person), Entry.objects.count(), Confirmation.objects.count()) == (BUDGET - 2, 0, 0)
    assert tool not in person.tools()


def test_the_order_of_the_refusals_is_that_of_the_specification(person: Person) -> None:
    """Everything is wrong at first; each line mends the first fault."""
    module_off(person)
    api_off(person)
    box_off(person)
    no_permission(person)
    factories.set_setting("api_person_budget", 1_000)
    LiveSession.objects.update(ended_at=timezone.now(), end_reason="signed_out")

    def asked(**options: Any) -> str:
        return refusal(person.call("probe.store", {"odd": 1}, **options))[1]

    assert asked(impersonated=True) == "impersonated"
    assert asked() == "unauthorized"
    LiveSession.objects.update(ended_at=None, end_reason="")
    assert asked() == "not_found"
    factories.set_setting("api_disabled_modules", [])
    assert asked() == "module_disabled"
    factories.set_setting("disabled_modules", [])
    assert asked(allow="read") == "forbidden"
    assert asked() == "module_write_disabled"
    factories.set_setting("api_session_write_modules", ["probe"])
    assert asked() == "forbidden"
    factories.grant(person.user, probe.CHANGE)
    assert asked() == "validation_failed"


def test_a_scope_needs_the_permission_of_every_open_tool_on_it(shop: Shop) -> None:
    from tests.api.shop import make_module

    module = make_module()
    module.tool("shop.see", scope="shop:run", permission="api.view_setting", annotations={"read_only": True})(
        lambda ctx: {}
    )
    shop.open(module)
    person = make_person(permissions=["api.view_setting"])
    assert refusal(person.call("shop.see"))[1] == "forbidden"
    factories.set_setting("api_disabled_tools", ["shop.put"])
    assert isinstance(person.call("shop.see"), Answer)


def test_neither_maintenance_nor_the_switch_of_the_http_api_stops_a_session(person: Person) -> None:
    factories.set_setting("maintenance_mode", True)
    factories.set_setting("api_admin_enabled", False)
    assert answer(person.call("probe.echo"))
    assert answer(person.call("probe.store", STORED))["status"] == "confirmation_required"


def test_keys_never_read_the_list_of_modules_in_which_an_agent_may_act() -> None:
    machine = factories.make_machine(scopes=[probe.READ, probe.WRITE])
    assert machine.call("probe.store", STORED).status_code == 200


def test_settings_that_cannot_be_read_close_every_tool(person: Person) -> None:
    for name in ("api_disabled_tools", "api_disabled_modules", "disabled_modules", "api_session_write_modules"):
        Setting.objects.update_or_create(name=name, defaults={"value": 7})
    assert person.tools() == []


# --- Writes are held --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "body"), [("probe.store", STORED), ("probe.act", {}), ("probe.weigh", {"weight": 1})])
def test_a_write_never_runs_on_the_first_call_dangerous_or_not(person: Person, tool: str, body: Any) -> None:
    found = answer(person.call(tool, body))
    row = Confirmation.objects.get()
    assert set(found) == {"status", "confirmation_id", "preview", "expires_at", "expires_in_seconds"}
    assert (found["status"], found["confirmation_id"], found["expires_in_seconds"]) == (
        "confirmation_required",
        row.pk,
        900,
    )
    assert (row.caller, row.digest, row.state) == (f"person:{person.user.pk}", None, "waiting")
    assert "thing" not in stored()
    assert entries() == [{"outcome": "confirmation_required", "code": None, "confirmation_uuid": str(row.pk)}]


def test_the_setting_says_how_long_a_call_is_held(person: Person) -> None:
    factories.set_setting("api_hold_minutes", 3)
    assert answer(person.call("probe.store", STORED))["expires_in_seconds"] == 180


def test_a_dry_run_is_a_preview_and_holds_nothing(person: Person) -> None:
    found = answer(person.call("probe.store", {**STORED, "dry_run": True}))
    assert (found["status"], Confirmation.objects.count()) == ("preview", 0)
    assert entries() == [{"outcome": "preview", "code": None, "confirmation_uuid": None}]


@pytest.mark.parametrize("field", ["confirm_token", "idempotency_key"])
def test_a_session_sends_neither_code_nor_key(person: Person, field: str) -> None:
    found = person.call("probe.store", {**STORED, field: "x"})
    assert isinstance(found, Refusal)
    assert (found.status, found.problem.context["errors"][0]["pointer"]) == (422, f"/{field}")
    assert Confirmation.objects.count() == 0


@pytest.mark.parametrize("field", ["confirm_token", "idempotency_key", "dry_run"])
def test_a_confirmation_takes_no_control_field_and_stays_good(person: Person, field: str) -> None:
    uuid = person.held("probe.store", STORED)
    found = person.redeem(uuid, "probe.store", {**STORED, field: field == "dry_run" or "x"})
    assert isinstance(found, Refusal)
    assert (found.status, found.problem.context["errors"][0]["pointer"]) == (422, f"/{field}")
    assert answer(person.redeem(uuid, "probe.store", STORED))["name"] == "thing"


@pytest.mark.parametrize("field", ["confirm_token", "idempotency_key", "dry_run"])
def test_a_read_takes_no_control_field_from_a_session_either(person: Person, field: str) -> None:
    assert refusal(person.call("probe.echo", {field: "x"}))[:2] == (422, "validation_failed")


def test_a_hundred_held_calls_are_the_most_that_wait_for_one_person(person: Person) -> None:
    for _ in range(100):
        factories.make_confirmation(caller=f"person:{person.user.pk}")
    assert refusal(person.call("probe.store", STORED)) == (409, "conflict", "too_many_waiting")


def test_a_price_of_many_rows_is_paid_by_the_person(person: Person) -> None:
    person.call("probe.store", {**STORED, "rows": [1] * 120})
    assert left(person) == BUDGET - 3


def test_a_preview_that_refuses_is_the_answer_and_nothing_is_held(person: Person) -> None:
    assert refusal(person.call("probe.store", {"name": "refused"}))[:2] == (409, "probe_refused")
    assert Confirmation.objects.count() == 0
    assert entries() == [{"outcome": "error", "code": "probe_refused", "confirmation_uuid": None}]


def test_what_was_refused_for_its_price_leaves_no_entry(person: Person) -> None:
    factories.set_setting("api_person_budget", 1)
    person.call("probe.store", STORED)
    assert refusal(person.call("probe.store", STORED))[1] == "rate_limited"
    assert len(entries()) == 1


def test_a_key_in_the_arguments_is_refused_and_stored_nowhere(person: Person) -> None:
    machine = factories.make_machine(scopes=[probe.READ])
    found = person.call("probe.store", {"name": f"see {machine.text}"})
    assert refusal(found)[:2] == (400, "credential_in_body")
    assert machine.text is not None
    assert machine.text not in json.dumps([entry.metadata for entry in Entry.objects.all()])
    assert Confirmation.objects.count() == 0
    assert machine.key is not None
    machine.key.refresh_from_db()
    assert machine.key.exposed_at is not None


@pytest.mark.parametrize(
    "body",
    [{"name": "\x00"}, {"name": "\ud800"}, {"name": "a", "value": 2**63}, {"name": float("nan")}, [], "text", None, 7],
)
def test_a_models_odd_arguments_are_a_clear_error(person: Person, body: Any) -> None:
    found = executor.execute_as(person.ref, "admin", "probe.store", body, impersonated=False, allow="all")
    assert refusal(found)[:2] == (422, "validation_failed")
    assert (Confirmation.objects.count(), entries()[0]["code"]) == (0, "validation_failed")


# --- Options and context (LS-7) ---------------------------------------------------------------------------------------


ODD: dict[str, dict[str, Any]] = {
    "allow": {"allow": "write"},
    "no allow": {"allow": None},
    "empty via": {"via": ""},
    "long via": {"via": "é" * 33},
    "via that is no text": {"via": 7},
    "via with a line break": {"via": "a\nb"},
    "impersonated": {"impersonated": None},
    "impersonated as a text": {"impersonated": "no"},
    "unknown fact": {"request_context": {"user": "x"}},
    "language": {"request_context": {"language": 7}},
    "hosts": {"request_context": {"hosts": "example.org"}},
    "request id": {"request_context": {"request_id": "a b"}},
    "address": {"request_context": {"ip": "nowhere"}},
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_option_raises_before_anything_is_read_or_charged(person: Person, odd: str) -> None:
    with CaptureQueriesContext(connection) as asked, pytest.raises(ValueError, match=r".+"):
        person.call("probe.echo", **ODD[odd])
    assert (len(asked), left(person)) == (0, BUDGET)


def test_only_the_admin_audience_has_sessions(person: Person) -> None:
    for door in (
        executor.visible_for,
        lambda ref, audience, **more: executor.execute_as(ref, audience, "probe.look", {}, **more),
    ):
        with pytest.raises(ValueError, match="audience"):
            door(person.ref, "public", impersonated=False)


class Seen:
    """`shop.run` writes down the context that it got."""

    def __init__(self, shop: Shop) -> None:
        self.found: list[Any] = []
        shop.read(self.see)

    def see(self, given: Any, ctx: Any) -> Any:
        self.found.append(ctx)
        return {}


def test_what_the_caller_did_not_give_is_none_to_the_handler(shop: Shop, settings: Any) -> None:
    settings.API_REQUEST_CONTEXT = "tests.api.test_session_calls.never_called"
    seen = Seen(shop)
    person = make_person(permissions=[PERMISSION])
    answer(person.call("shop.run"))
    (ctx,) = seen.found
    assert (ctx.language, ctx.base_url, ctx.hosts, ctx.currency, ctx.request_id) == (None,) * 5
    assert (ctx.via, ctx.audience, ctx.dry_run, ctx.confirmation_uuid, ctx.approved_by_uuid) == (
        "session",
        "admin",
        False,
        None,
        None,
    )
    assert (ctx.actor.kind, ctx.actor.ip, ctx.scope.person_id, ctx.scopes) == (
        "user",
        "",
        str(person.user.pk),
        {"shop:run"},
    )


def never_called(request: Any) -> Any:
    raise AssertionError("the host's hook wants a request, and a session's call has none")


def test_the_context_is_what_the_caller_gives(shop: Shop) -> None:
    seen = Seen(shop)
    person = make_person(permissions=[PERMISSION])
    given = {
        "language": "de-AT",
        "base_url": "https://example.org/",
        "hosts": ["example.org", "www.example.org"],
        "currency": "CHF",
        "request_id": "abc-1",
        "ip": "198.51.100.7",
    }
    answer(person.call("shop.run", via="agent", request_context=given))
    (ctx,) = seen.found
    assert (ctx.language, ctx.base_url, ctx.hosts) == ("de", "https://example.org", ("example.org", "www.example.org"))
    assert (ctx.currency, ctx.request_id, ctx.actor.ip, ctx.via) == ("CHF", "abc-1", "198.51.100.7", "agent")


def test_the_entry_of_a_persons_write_says_who_and_on_whose_behalf_and_never_what(person: Person) -> None:
    context = {"request_id": "abc-1", "ip": "198.51.100.7"}
    uuid = answer(person.call("probe.store", {"name": "secret thing"}, via="agent", request_context=context))[
        "confirmation_id"
    ]
    entry = Entry.objects.get(action="api.request")
    assert (entry.actor_kind, entry.actor_uuid, entry.resource_type, entry.resource_uuid) == (
        "user",
        str(person.user.pk),
        "user",
        str(person.user.pk),
    )
    assert (entry.request_id, entry.ip, entry.target, entry.mode) == ("abc-1", "198.51.100.7", "probe.store", "auto")
    assert entry.metadata == {
        "via": "agent",
        "tool": "probe.store",
        "request_id": "abc-1",
        "outcome": "confirmation_required",
        "code": None,
        "confirmation_uuid": str(uuid),
    }


def test_a_call_inside_a_callers_transaction_is_refused(person: Person) -> None:
    from django.db import transaction

    with transaction.atomic():
        found: Outcome = person.call("probe.echo")
    assert refusal(found)[:2] == (500, "internal_error")


def test_a_rule_about_people_that_raises_lets_nobody_through(person: Person, settings: Any) -> None:
    settings.API_PEOPLE = "tests.api.broken_people"
    assert refusal(person.call("probe.echo"))[:2] == (500, "internal_error")


def test_the_effect_of_a_confirmed_write_is_there_and_the_held_one_was_not(person: Person) -> None:
    uuid = person.held("probe.store", STORED)
    put("unrelated")
    assert answer(person.redeem(uuid, "probe.store", STORED)) == {"name": "thing", "value": 5}
    assert Setting.objects.get(name="thing").value == 5
