"""Sentences of the first seed that no other test shows (docs/seed-coverage.md says which), each through the executor's own doors."""

import ast
import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.test import RequestFactory

from apps.activity.models import Entry
from apps.api import doorway, executor, gate, ratelimit, registry
from apps.api.call import Answer, Audience, Call, Listing, Outcome, Refusal
from apps.api.models import Confirmation, IdempotencyRecord
from apps.api.people import Scope
from apps.api.ratelimit import Bucket
from apps.api.registry import Registry
from tests.accounts.factories import make_expired_session
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.person import Person, answer, make_person, refusal
from tests.api.shop import PERMISSION, SCOPE, Shop, put, stored
from tests.api.test_flow_table import fresh_address

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

ROOT = Path(__file__).resolve().parent.parent.parent
CHAINS: dict[str, Sequence[gate.Step]] = {
    name: chain for name, chain in vars(gate).items() if name.isupper() and isinstance(chain, tuple)
}


def entered(machine: Machine, *, ip: str = "127.0.0.1", **headers: str) -> Call:
    """A call that has passed steps 1 to 3, as a transport makes it."""
    audience: Audience = "admin" if machine.text else "public"
    request = RequestFactory().post("/mcp", headers=machine.headers(headers), REMOTE_ADDR=ip)
    call = doorway.call_of(request, audience)
    assert executor.enter(call) is None
    return call


def execute(machine: Machine, name: str, body: Any = None, *, call: Call | None = None, **options: Any) -> Outcome:
    call = call or entered(machine)
    return executor.execute(call, call.audience, name, {} if body is None else body, **options)


# --- The executor's doors -------------------------------------------------------------------------------------------------------------


def test_execute_returns_the_bytes_that_call_sends(machine: Machine) -> None:
    found = execute(machine, "system.problems")
    assert isinstance(found, Answer)
    sent = machine.call("system.problems")
    assert (sent.content, sent.json()) == (found.body, found.result)
    assert found.headers["RateLimit-Policy"] == sent.headers["RateLimit-Policy"] == '"key";q=600;w=60'


def test_nothing_runs_for_a_call_that_has_not_entered(machine: Machine) -> None:
    call = doorway.call_of(RequestFactory().post("/mcp", headers=machine.headers()), "admin")
    for ask in (
        lambda: executor.execute(call, "admin", "probe.echo", {}),
        lambda: executor.visible(call, "admin"),
        lambda: executor.execute(entered(machine), "public", "probe.look", {}),
    ):
        with pytest.raises(RuntimeError):
            ask()


def test_a_refusal_has_a_code_a_detail_a_context_and_the_limiters_headers(machine: Machine) -> None:
    stranger = factories.make_machine(scopes=[])
    found = execute(stranger, "probe.echo")
    assert isinstance(found, Refusal)
    assert (found.status, found.problem.code, found.problem.context) == (403, "forbidden", {"scope": probe.READ})
    assert found.problem.detail
    assert "RateLimit" in found.headers
    assert stranger.call("probe.echo").json()["detail"] == found.problem.detail


def test_an_outcome_that_never_reached_the_limiter_has_no_headers(person: Person) -> None:
    person.session = make_expired_session(person.user)
    found = person.call("probe.echo")
    assert isinstance(found, Refusal)
    assert (found.status, found.headers) == (401, {})


def test_the_entry_of_a_write_is_there_when_execute_returns(machine: Machine) -> None:
    execute(machine, "probe.store", {"name": "a"})
    assert Entry.objects.get(action="api.request").metadata["outcome"] == "ok"
    execute(machine, "probe.store", {"name": "broken"})
    assert Entry.objects.filter(action="api.request", metadata__code="internal_error").count() == 1


def test_a_transport_may_say_how_a_name_is_to_be_read(machine: Machine) -> None:
    found = execute(machine, "probe_echo", {"text": "x"}, resolve_name=lambda name: name.replace("_", "."))
    assert answer(found)["text"] == "x"
    assert refusal(execute(machine, "probe_echo", {"text": "x"})) == (404, "not_found", None)


def test_no_name_is_read_for_a_visitor_whom_the_limiter_refused(visitor: Machine) -> None:
    ip = fresh_address()
    bucket = Bucket(policy="network", name=f"network:{ip}", budget=60)
    left: list[int] = []

    def resolve(name: str) -> str:
        left.append(ratelimit.levels([bucket])[0].remaining)
        return name.replace("_", ".")

    def ask() -> Outcome:
        return execute(visitor, "probe_look", call=entered(visitor, ip=ip), resolve_name=resolve)

    assert isinstance(ask(), Answer)
    assert left == [59], "the unit of the entry is paid before the name is read"
    assert ratelimit.charge([(bucket, 59)]).admitted
    assert refusal(ask())[:2] == (429, "rate_limited")
    assert left == [59]


def test_a_transport_may_leave_the_idempotency_header_unread(machine: Machine) -> None:
    header = {"Idempotency-Key": "k"}
    for name in ("a", "b"):
        found = execute(
            machine, "probe.store", {"name": name}, call=entered(machine, **header), idempotency_header=False
        )
        assert answer(found)["name"] == name
    assert not IdempotencyRecord.objects.exists()
    field = {"name": "c", "idempotency_key": "l"}
    execute(machine, "probe.store", field, call=entered(machine, **header), idempotency_header=False)
    assert IdempotencyRecord.objects.get().key == "l"
    execute(machine, "probe.store", {"name": "d"}, call=entered(machine, **header))
    assert set(IdempotencyRecord.objects.values_list("key", flat=True)) == {"k", "l"}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_a_row_of_functions_of_the_call_alone(name: str) -> None:
    assert {tuple(inspect.signature(step).parameters) for step in CHAINS[name]} == {("call",)}
    assert len({step.__name__ for step in CHAINS[name]}) == len(CHAINS[name])


# --- What a listing shows -------------------------------------------------------------------------------------------------------------


def test_visible_returns_what_list_sends_for_one_unit(machine: Machine) -> None:
    found = executor.visible(entered(machine), "admin")
    assert isinstance(found, Listing)
    assert [tool.name for tool in found.tools] == machine.tools()
    assert {"probe.echo", "system.whoami"} < set(machine.tools())
    assert found.headers["RateLimit"].startswith('"key";r=599')


def test_a_visitor_sees_every_public_tool_and_no_other(visitor: Machine) -> None:
    found = executor.visible(entered(visitor, ip=fresh_address()), "public")
    assert isinstance(found, Listing)
    assert [tool.name for tool in found.tools] == visitor.tools() == ["probe.look"]


def test_the_list_says_of_each_tool_what_a_client_needs(machine: Machine) -> None:
    rows = machine.client.get("/api/v1/tools", headers=machine.headers()).json()["tools"]
    assert {tuple(row) for row in rows} == {
        (
            "name",
            "title",
            "description",
            "scope",
            "input_schema",
            "output_schema",
            "annotations",
            "danger",
            "price",
        )
    }
    (store,) = (row for row in rows if row["name"] == "probe.store")
    tool = registry.current().find("admin", "probe.store")
    assert tool is not None
    assert store["input_schema"] == executor.input_schema(tool)
    assert (store["scope"], store["danger"]) == (probe.WRITE, "none")
    assert set(store["annotations"]) == {"read_only", "destructive", "idempotent", "open_world"}


def test_what_the_listed_schema_takes_is_what_a_call_takes(shop: Shop) -> None:
    """The root is closed though the module said nothing; a nested object has the module's own rule."""
    parts = {
        "open": {"type": "object", "properties": {"a": {}}},
        "closed": {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
    }
    machine = shop.read(lambda given, ctx: {"given": given}, input_schema={"type": "object", "properties": parts})
    (row,) = (tool for tool in _listed(machine) if tool["name"] == "shop.run")
    assert row["input_schema"]["additionalProperties"] is False
    assert row["input_schema"]["properties"] == parts
    for body, status in (
        ({}, 200),
        ({"other": 1}, 422),
        ({"open": {"other": 1}}, 200),
        ({"closed": {"a": 1}}, 200),
        ({"closed": {"other": 1}}, 422),
    ):
        assert machine.call("shop.run", body).status_code == status


@pytest.mark.parametrize(("replay", "fields"), [(True, {"idempotency_key"}), (False, set())])
def test_a_write_that_is_not_replayed_lists_no_idempotency_key(shop: Shop, replay: bool, fields: set[str]) -> None:
    machine = shop.write(lambda given, ctx: {}, replay=replay)
    (row,) = (tool for tool in _listed(machine) if tool["name"] == "shop.run")
    assert set(row["input_schema"]["properties"]) == {"dry_run", "confirm_token"} | fields


def test_a_read_lists_no_control_field(machine: Machine) -> None:
    reads = [tool for tool in _listed(machine) if tool["annotations"]["read_only"]]
    assert len(reads) > 2
    control = {"dry_run", "confirm_token", "idempotency_key"}
    assert not any(control & set(tool["input_schema"].get("properties", {})) for tool in reads)


def test_every_name_in_a_schema_is_a_text() -> None:
    for tool in registry.current().declared():
        assert all(isinstance(name, str) for name in _names(executor.input_schema(tool)))


def _listed(machine: Machine) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = machine.client.get("/api/v1/tools", headers=machine.headers()).json()["tools"]
    return rows


def _names(schema: Any) -> Iterator[object]:
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _names(part)
    if isinstance(schema, dict):
        yield from schema


def test_the_price_of_the_three_examples_and_of_what_has_no_rows(tools: Registry) -> None:
    read, write = tools.find("admin", "probe.echo"), tools.find("admin", "probe.store")
    public = tools.find("public", "probe.look")
    assert executor.cost(read, {"fields": ["a"] * 300}) == 1
    assert executor.cost(public, {"lines": [0] * 50}) == 1
    assert executor.cost(write, {"rows": [0] * 120}) == 3
    assert executor.cost(None, {"rows": [0] * 120}) == 1
    assert executor.cost(write, [0] * 120) == 1


# --- The context ----------------------------------------------------------------------------------------------------------------------


def test_a_long_piece_of_work_may_tell_its_progress_in_an_ordinary_call(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        ctx.progress({"done": 0.5})
        return {"done": put("a")}

    assert shop.write(handler).call("shop.run").json() == {"done": "a"}


def test_every_preview_knows_that_it_is_one_and_no_run_does(shop: Shop) -> None:
    told: list[tuple[str, bool]] = []

    def shown(given: Any, ctx: Any) -> Any:
        told.append(("preview", ctx.dry_run))
        return {"summary": "x"}, "fixed"

    def handler(given: Any, ctx: Any) -> Any:
        told.append(("run", ctx.dry_run))
        return {"done": True}

    machine = shop.write(handler, shown=shown, danger="always")
    code = machine.call("shop.run").json()["confirm_token"]
    assert machine.call("shop.run", {"confirm_token": code}).json() == {"done": True}
    factories.set_setting("api_session_write_modules", ["shop"])
    person = make_person(permissions=[PERMISSION])
    assert answer(person.redeem(person.held("shop.run"), "shop.run")) == {"done": True}
    assert told == [("preview", True), ("preview", True), ("run", False)] * 2


def test_a_visitors_handler_is_told_of_no_session_and_no_confirmation(shop: Shop) -> None:
    factories.set_setting("api_public_enabled", True)
    shop.read(
        lambda given, ctx: {"told": [ctx.scope, ctx.via, ctx.confirmation_uuid, ctx.approved_by_uuid]},
        audience="public",
        scope=None,
        permission=None,
    )
    assert Machine().call("shop.run", REMOTE_ADDR=fresh_address()).json() == {"told": [None] * 4}


# --- On behalf of a live session ------------------------------------------------------------------------------------------------------


@pytest.fixture
def person(tools: Registry) -> Person:
    """Holds the probe's rights, in a place where the agent may act in the probe."""
    factories.set_setting("api_session_write_modules", ["probe"])
    return make_person(permissions=[probe.VIEW, probe.CHANGE])


def test_a_listing_for_a_session_has_reads_alone_unless_writes_are_asked_for(person: Person) -> None:
    found = executor.visible_for(person.ref, "admin", impersonated=False)
    assert isinstance(found, Listing)
    assert [tool.name for tool in found.tools] == ["probe.echo", "probe.search"]
    assert found.headers["RateLimit"].startswith('"person";r=299')
    assert person.tools() == ["probe.act", "probe.echo", "probe.search", "probe.store", "probe.weigh"]


def test_an_agent_may_act_in_no_module_until_somebody_says_so(tools: Registry) -> None:
    person = make_person(permissions=[probe.VIEW, probe.CHANGE])
    assert person.tools() == ["probe.echo", "probe.search"]
    assert refusal(person.call("probe.store", {"name": "a"})) == (403, "module_write_disabled", None)
    factories.set_setting("api_session_write_modules", ["probe"])
    assert "probe.store" in person.tools()


@pytest.mark.parametrize("allow", ["write", "", None])
def test_a_listing_takes_no_other_word(person: Person, allow: Any) -> None:
    with pytest.raises(ValueError, match="allow"):
        person.visible(allow=allow)


def test_a_spent_budget_refuses_the_listing_too(person: Person) -> None:
    factories.set_setting("api_person_budget", 1)
    assert person.tools()
    assert refusal(person.visible()) == (429, "rate_limited", None)


def test_invalid_arguments_leave_a_held_write_waiting(person: Person) -> None:
    uuid = person.held("probe.store", {"name": "a"})
    assert refusal(person.redeem(uuid, "probe.store", {"name": "a", "odd": 1}))[:2] == (422, "validation_failed")
    assert refusal(person.redeem(uuid, "probe.store", {"name": 7}))[:2] == (422, "validation_failed")
    assert answer(person.redeem(uuid, "probe.store", {"name": "a"}))["name"] == "a"


@pytest.mark.parametrize("odd", [{"via": ""}, {"via": "x" * 65}, {"via": 7}, {"request_context": {"user": "x"}}])
def test_a_confirmation_takes_the_same_options_as_the_call(person: Person, odd: dict[str, Any]) -> None:
    uuid = person.held("probe.store", {"name": "a"})
    with pytest.raises(ValueError, match=r".+"):
        person.redeem(uuid, "probe.store", {"name": "a"}, **odd)
    assert Confirmation.objects.get().state == "waiting"


def test_of_a_held_call_only_a_hash_is_kept(person: Person) -> None:
    person.held("probe.store", {"name": "an-input-canary"})
    kept = [repr(row) for model in apps.get_models() if model._meta.managed for row in model._default_manager.values()]
    assert len(kept) > 10
    assert not [row for row in kept if "canary" in row]


def test_a_persons_read_is_filtered_by_the_scope_of_the_session(shop: Shop) -> None:
    shop.read(lambda given, ctx: {"may": [ctx.scope.can(name) for name in (PERMISSION, "api.add_apikey")]})
    person = make_person(permissions=[PERMISSION])
    assert answer(person.call("shop.run")) == {"may": [True, False]}
    machine = factories.make_machine(scopes=[SCOPE])
    assert machine.call("shop.run").json() == {"may": [True, True]}


def test_a_write_that_is_not_ticked_runs_and_stores_nothing(shop: Shop) -> None:
    shop.write(lambda given, ctx: {"done": put("a")})
    person = make_person(permissions=[PERMISSION])
    assert refusal(person.call("shop.run"))[:2] == (403, "module_write_disabled")
    assert (stored(), Confirmation.objects.count(), IdempotencyRecord.objects.count()) == ([], 0, 0)


def test_a_reference_to_a_session_is_made_where_the_signed_session_is_read_and_nowhere_else() -> None:
    """No view, form, frame or task can name a session: what stands for one is built from the signed session, for the news of its own end,
    and from the row of a turn, which keeps the one that its sender came with. The demo opens
    a session for its example chats, and ends it."""
    makers = [
        path.relative_to(ROOT).as_posix()
        for folder in ("apps", "config")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("SessionRef")
    ]
    known = ["apps/accounts/sessions.py", "apps/accounts/sessions.py", "apps/agent/calls.py", "config/demo_chats.py"]
    assert sorted(makers) == known


# --- Availability ---------------------------------------------------------------------------------------------------------------------


def test_availability_believes_the_scope_that_it_is_given(person: Person) -> None:
    type(person.user).objects.update(is_active=False)
    scope = Scope(person_id=str(person.user.pk), name="given", permissions=frozenset({probe.VIEW}))
    available = [row.name for row in executor.tool_availability(scope) if row.status == "available"]
    assert available == ["probe.echo", "probe.search"]
    assert refusal(person.call("probe.echo"))[:2] == (401, "unauthorized")
