"""What a handler gets and what becomes of its answer (MT-3, MT-4). Effects, faults and previews of writes: `test_effect`."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from pytest_django import Settings

from apps.activity.models import Entry
from apps.api import Context, Module, ToolError, registry
from apps.api.problems import CORE
from tests.api import factories, problem
from tests.api.factories import Machine
from tests.api.shop import PERMISSION, SCOPE, Shop, put, stored

pytestmark = pytest.mark.sqlite


def test_an_answer_is_encoded_as_plain_json_in_utf_8(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        return {
            "price": Decimal("19.90"),
            "uuid": UUID(int=1),
            "at": datetime(2026, 2, 3, tzinfo=UTC),
            "title": gettext_lazy("Price"),
            "text": "grüß dich 😀",
        }

    answer = shop.read(handler).call("shop.run")
    assert answer.headers["Content-Type"] == "application/json"
    assert "grüß dich 😀" in answer.content.decode()
    assert answer.json() == {
        "price": "19.90",
        "uuid": "00000000-0000-0000-0000-000000000001",
        "at": "2026-02-03T00:00:00+00:00",
        "title": "Price",
        "text": "grüß dich 😀",
    }


def test_effects_are_added_to_the_answer(shop: Shop) -> None:
    assert shop.read(lambda given, ctx: ({"a": 1}, ["b"])).call("shop.run").json() == {"a": 1, "effects": ["b"]}


@pytest.mark.parametrize("code", CORE)
def test_a_handler_may_refuse_with_every_code_of_core(shop: Shop, code: str) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        raise ToolError(code, "Because.", field="value")

    found = problem.of(shop.read(handler).call("shop.run"), CORE[code].status, code)
    assert (found["detail"], found["field"]) == ("Because.", "value")


def test_a_code_of_another_module_is_no_code(transactional_db: None) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        raise ToolError("sold_out", "A detail of the inside.")

    other = Module(key="other", name="Other", problems={"sold_out": (409, "Sold out")})
    mine = Module(key="shop", name="Shop")
    reads: Any = {"read_only": True}
    mine.tool("shop.run", scope=SCOPE, permission=PERMISSION, input_schema={}, annotations=reads)(handler)
    with registry.using(other, mine):
        answer = factories.make_machine(scopes=[SCOPE]).call("shop.run")
    problem.of(answer, 500, "internal_error")
    assert b"inside" not in answer.content


def test_root_defaults_are_filled_in_for_a_handler_that_takes_the_object(shop: Shop) -> None:
    properties = {"limit": {"type": "integer", "default": 20}, "query": {"type": "string"}}
    machine = shop.read(lambda given, ctx: {"given": given}, input_schema={"type": "object", "properties": properties})
    assert machine.call("shop.run").json() == {"given": {"limit": 20}}
    assert machine.call("shop.run", {"limit": 5, "query": "a"}).json() == {"given": {"limit": 5, "query": "a"}}


def test_a_read_records_nothing_even_when_it_logs(shop: Shop) -> None:
    def handler(given: Any, ctx: Context) -> Any:
        ctx.log("shop.row_stored", "setting", "a")
        return {}

    assert shop.read(handler).call("shop.run").status_code == 200
    assert not Entry.objects.filter(module="shop").exists()


def _told(ctx: Context) -> dict[str, Any]:
    return {
        "kind": ctx.actor.kind,
        "audience": ctx.audience,
        "scopes": sorted(ctx.scopes),
        "superuser": ctx.scope.is_superuser if ctx.scope else None,
        "language": ctx.language,
        "currency": ctx.currency,
        "hosts": list(ctx.hosts or ()),
        "base_url": ctx.base_url,
        "request_id": ctx.request_id,
        "via": ctx.via,
        "dry_run": ctx.dry_run,
        "approved_by_uuid": ctx.approved_by_uuid,
        "confirmation_uuid": ctx.confirmation_uuid,
        "extra": dict(ctx.extra),
    }


def tenant(request: HttpRequest) -> dict[str, Any]:
    return {"tenant": request.headers["X-Tenant"]}


def test_the_context_tells_a_handler_about_its_call(shop: Shop, settings: Settings) -> None:
    settings.API_CURRENCY = "CHF"
    settings.API_REQUEST_CONTEXT = f"{__name__}.tenant"
    machine = shop.read(lambda given, ctx: _told(ctx))
    headers = {"Accept-Language": "fr, de;q=0.9, en;q=0.8", "X-Request-ID": "from-the-client", "X-Tenant": "acme"}
    assert machine.call("shop.run", headers=headers).json() == {
        "kind": "key",
        "audience": "admin",
        "scopes": [SCOPE],
        "superuser": True,
        "language": "de",
        "currency": "CHF",
        "hosts": ["testserver", "localhost", "127.0.0.1", "[::1]"],
        "base_url": "http://testserver",
        "request_id": "from-the-client",
        "via": None,
        "dry_run": False,
        "approved_by_uuid": None,
        "confirmation_uuid": None,
        "extra": {"tenant": "acme"},
    }


_asked: list[str] = []


def counting(request: HttpRequest) -> dict[str, Any]:
    _asked.append(request.path)
    return {"number": len(_asked)}


def test_the_host_is_asked_once_a_call_however_often_its_module_is(shop: Shop, settings: Settings) -> None:
    settings.API_REQUEST_CONTEXT = f"{__name__}.counting"
    _asked.clear()
    machine = shop.write(lambda given, ctx: dict(ctx.extra), danger=lambda given, ctx: False)
    assert machine.call("shop.run").json() == {"number": 1}
    assert len(_asked) == 1


def test_a_host_function_that_fails_runs_nothing(shop: Shop, settings: Settings) -> None:
    settings.API_REQUEST_CONTEXT = f"{__name__}.tenant"
    machine = shop.write(lambda given, ctx: {"name": put("a")})
    problem.of(machine.call("shop.run"), 500, "internal_error")
    assert stored() == []


def test_a_visitor_has_no_scope(shop: Shop) -> None:
    factories.set_setting("api_public_enabled", True)
    shop.read(lambda given, ctx: _told(ctx), audience="public", scope=None, permission=None)
    told = Machine().call("shop.run").json()
    assert (told["kind"], told["audience"], told["scopes"], told["superuser"]) == ("public", "public", [], None)


def test_the_scope_is_the_owners_and_not_narrowed_by_the_keys_scopes(shop: Shop) -> None:
    shop.read(lambda given, ctx: {"may": [ctx.scope.can(name) for name in (PERMISSION, "api.add_apikey", "api.x")]})
    owner = factories.make_owner(permissions=[PERMISSION, "api.add_apikey"])
    machine = factories.make_machine(owner=owner, scopes=[SCOPE])
    assert machine.call("shop.run").json() == {"may": [True, True, False]}


def test_a_preview_knows_that_it_is_one(shop: Shop) -> None:
    machine = shop.write(lambda given, ctx: {}, shown=lambda given, ctx: ({"dry_run": ctx.dry_run}, "mark"))
    assert machine.call("shop.run", {"dry_run": True}).json() == {"status": "preview", "preview": {"dry_run": True}}
