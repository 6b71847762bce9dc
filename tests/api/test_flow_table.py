"""What a call pays and leaves (RF-14), which fault is the answer (RF-1 to RF-9), and what a call costs (RL-1, RL-3)."""

import hashlib
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.utils import timezone

from apps.activity.models import Entry
from apps.api import Module, ToolError, canonical, fingerprint, lifesigns, preview, ratelimit
from apps.api.lifesigns import Work
from apps.api.models import IdempotencyRecord
from apps.api.ratelimit import Bucket
from tests.api import factories
from tests.api.factories import Machine
from tests.api.shop import PERMISSION, SCOPE, Shop, put, stored

pytestmark = pytest.mark.sqlite

TOKEN = "stands for the token of the door's visitor"
WRONG = "th_live_000000000000_" + "0" * 38
_numbers = itertools.count(1)


def fresh_address() -> str:
    """Budgets of visitors outlive a test where this process's memory is the store."""
    number = next(_numbers)
    return f"198.51.{number // 250}.{number % 250}"


def make_store() -> Module:
    """Tools of both audiences with prices above one."""
    module = Module(key="shop", name="Shop", problems={"sold_out": (409, "Sold out")})
    rows: dict[str, Any] = {
        "type": "object",
        "properties": {"rows": {"type": "array"}, "fault": {"type": "string"}, "more": {"type": "array"}},
    }
    public = {"type": "object", "properties": {"rows": {"type": "array"}, "visitor": {"type": "string"}}}
    paid: dict[str, Any] = {"cost": lambda given: max(1, len(given.get("rows", [])))}
    rights: dict[str, Any] = {"scope": SCOPE, "permission": PERMISSION}
    reads: dict[str, Any] = {"annotations": {"read_only": True}}

    def shown(given: dict[str, Any], ctx: Any) -> Any:
        return preview("Something."), fingerprint(["something"], {})

    def write(given: dict[str, Any], ctx: Any) -> dict[str, Any]:
        put("effect")
        if given.get("fault") == "refuses":
            raise ToolError("sold_out", "Nothing is left.")
        if given.get("fault") == "raises":
            raise RuntimeError
        return {"done": True}

    def read(given: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"rows": len(given.get("rows", []))}

    module.tool("shop.write", input_schema=rows, max_items=200, **rights)(write).preview(shown)
    module.tool("shop.unlimited", input_schema=rows, **rights)(write).preview(shown)
    module.tool("shop.act", input_schema=rows, danger="always", max_items=200, **rights)(write).preview(shown)
    module.tool("shop.read", input_schema=rows, **rights, **reads)(read)
    module.tool("shop.search", input_schema=rows, **rights, **reads, **paid)(read)
    module.tool("shop.browse", input_schema=public, audience="public", client_token="visitor", **reads, **paid)(read)
    module.tool("shop.order", input_schema=public, audience="public", client_token="visitor")(write).preview(shown)
    return module


@dataclass(kw_only=True)
class Door:
    """One caller of each kind at a fresh address, and what each has spent so far."""

    machine: Machine
    visitor: Machine
    ip: str = field(default_factory=fresh_address)
    token: str = field(default_factory=lambda: f"the-visitor-{next(_numbers):06}")

    def key(self, tool: str, body: Any = None, *, query: str = "", **extra: Any) -> Any:
        return self.machine.call(tool + query, body, REMOTE_ADDR=self.ip, **extra)

    def public(self, tool: str, body: Any = None, *, query: str = "", **extra: Any) -> Any:
        if isinstance(body, dict) and body.get("visitor") == TOKEN:
            body = {**body, "visitor": self.token}
        return self.visitor.call(tool + query, body, REMOTE_ADDR=self.ip, **extra)

    def spent(self) -> dict[str, int]:
        found = ratelimit.levels(list(self.buckets().values()))
        return {level.bucket.policy: level.bucket.budget - level.remaining for level in found}

    def buckets(self) -> dict[str, Bucket]:
        assert self.machine.key is not None
        token = hashlib.sha256(self.token.encode()).hexdigest()
        return {
            "key": Bucket(
                policy="key", name=f"key:{self.machine.key.family_id}", budget=self.machine.key.budget or 600
            ),
            "network": Bucket(policy="network", name=f"network:{self.ip}", budget=60),
            "token": Bucket(policy="token", name=f"token:{token}", budget=60),
        }

    def leave(self, policy: str, units: int) -> None:
        """Spend a budget but for these units."""
        bucket = self.buckets()[policy]
        level = ratelimit.levels([bucket])[0]
        assert ratelimit.charge([(bucket, level.remaining - units)]).admitted


@pytest.fixture
def door(shop: Shop) -> Door:
    machine = shop.open(make_store())
    factories.set_setting("api_public_enabled", True)
    return Door(machine=machine, visitor=Machine())


def requests() -> list[tuple[str, str | None]]:
    return [
        (entry.metadata["outcome"], entry.metadata["code"])
        for entry in Entry.objects.filter(action="api.request").order_by("created_at")
    ]


def switch(name: str, value: Any) -> Callable[[Door], None]:
    return lambda door: factories.set_setting(name, value)


def spend(policy: str, leaving: int = 0) -> Callable[[Door], None]:
    return lambda door: door.leave(policy, leaving)


def earlier(state: str, received: dict[str, Any] | None = None) -> Callable[[Door], None]:
    """A twin of `shop.write` with 120 rows came with the key "a" before, and this became of it."""

    def before(door: Door) -> None:
        assert door.machine.key is not None
        record = IdempotencyRecord.objects.create(
            caller=f"key:{door.machine.key.family_id}",
            tool="shop.write",
            key="a",
            input_hash=canonical.digest("shop.write", ROWS_120 if received is None else received),
            state=state,
            **({"status": 200, "body": b'{"done":true}', "finished_at": timezone.now()} if state == "done" else {}),
        )
        if state == "running":
            lifesigns.begin(Work(kind="call", uuid=record.uuid, attempt=1))

    return before


def lose_permission(door: Door) -> None:
    assert door.machine.key is not None
    owner = door.machine.key.owner
    owner.is_superuser = False
    owner.save(update_fields=["is_superuser"])


def require_approval(door: Door) -> None:
    assert door.machine.key is not None
    door.machine.key.requires_approval = True
    door.machine.key.save(update_fields=["requires_approval"])


# --- RF-14 ----------------------------------------------------------------------------------------------------------------------------

ROWS_120 = {"rows": [0] * 120}
THREE = {"rows": [1, 2, 3], "visitor": TOKEN}
HUGE = b'{"rows": "' + b"x" * 2_000_001 + b'"}'


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table. `before` is done first; the units are what this one call took. `until`: a later issue changes the line."""

    call: Callable[[Door], Any]
    status: int
    code: str | None = None
    before: Callable[[Door], None] | None = None
    key: int = 0
    network: int = 0
    token: int = 0
    entry: tuple[str, str | None] | None = None
    until: str = ""


def _key(tool: str, body: Any = None, **extra: Any) -> Callable[[Door], Any]:
    return lambda door: door.key(tool, body, **extra)


def _public(tool: str, body: Any = None, **extra: Any) -> Callable[[Door], Any]:
    return lambda door: door.public(tool, body, **extra)


def _as(text: str) -> Callable[[Door], Any]:
    def call(door: Door) -> Any:
        return door.machine.client.post(
            "/api/v1/tools/shop.write",
            "{}",
            content_type="application/json",
            headers={"Authorization": text},
            REMOTE_ADDR=door.ip,
        )

    return call


def _other_media(door: Door) -> Any:
    return door.machine.client.post(
        "/api/v1/tools/shop.write",
        "a=b",
        content_type="text/plain",
        headers=door.machine.headers(),
        REMOTE_ADDR=door.ip,
    )


def _listing(door: Door) -> Any:
    return door.machine.client.get("/api/v1/tools", headers=door.machine.headers(), REMOTE_ADDR=door.ip)


def _public_listing(door: Door) -> Any:
    return door.visitor.client.get("/api/v1/public/tools", REMOTE_ADDR=door.ip)


TABLE: dict[str, Row] = {
    # 1 to 3: nothing is paid, nothing is left.
    "1 key: API off": Row(
        before=switch("api_admin_enabled", False), call=_key("shop.write"), status=403, code="api_disabled"
    ),
    "1 key: maintenance": Row(
        before=switch("maintenance_mode", True), call=_key("shop.write"), status=503, code="maintenance"
    ),
    "1 public: API off": Row(
        before=switch("api_public_enabled", False), call=_public("shop.browse"), status=403, code="api_disabled"
    ),
    "1 public: maintenance": Row(
        before=switch("maintenance_mode", True), call=_public("shop.browse"), status=503, code="maintenance"
    ),
    "2 key: credential in the URL": Row(
        call=_key("shop.write", query="?token=1"), status=400, code="credential_in_url"
    ),
    "2 public: credential in the URL": Row(
        call=_public("shop.browse", query="?token=1"), status=400, code="credential_in_url"
    ),
    "3 key: unknown": Row(call=_as(f"Bearer {WRONG}"), status=401, code="unauthorized"),
    "3 key: doubled": Row(call=_as("Bearer a, Bearer b"), status=400, code="bad_request"),
    # The body is refused.
    "body key: no JSON": Row(call=_key("shop.write", "{"), status=400, code="invalid_json", key=1),
    "body key: no object": Row(call=_key("shop.write", "[]"), status=400, code="invalid_json", key=1),
    "body key: too large": Row(call=_key("shop.write", HUGE), status=413, code="body_too_large", key=1),
    "body key: media type": Row(call=_other_media, status=415, code="unsupported_media_type", key=1),
    "body key: credential": Row(
        call=_key("shop.write", {"rows": [WRONG]}), status=400, code="credential_in_body", key=1
    ),
    "body key: no unit left": Row(before=spend("key"), call=_key("shop.write", "{"), status=429, code="rate_limited"),
    "body public: no JSON": Row(call=_public("shop.browse", "{"), status=400, code="invalid_json", network=1),
    "body public: credential": Row(
        call=_public("shop.browse", {"visitor": WRONG}), status=400, code="credential_in_body", network=1
    ),
    "body public: no unit left": Row(
        before=spend("network"), call=_public("shop.browse", "{"), status=429, code="rate_limited"
    ),
    # 4: the tool is not there for this caller. The price of 120 rows plays no part.
    "4 key: unknown": Row(call=_key("shop.nothing", ROWS_120), status=404, code="not_found", key=1),
    "4 key: hidden": Row(
        before=switch("api_disabled_tools", ["shop.write"]),
        call=_key("shop.write", ROWS_120),
        status=404,
        code="not_found",
        key=1,
    ),
    "4 key: module off": Row(
        before=switch("disabled_modules", ["shop"]),
        call=_key("shop.write", ROWS_120),
        status=404,
        code="module_disabled",
        key=1,
    ),
    "4 key: scope": Row(before=lose_permission, call=_key("shop.write", ROWS_120), status=403, code="forbidden", key=1),
    "4 key: no unit left": Row(before=spend("key"), call=_key("shop.nothing"), status=429, code="rate_limited"),
    "4 public: unknown": Row(call=_public("shop.nothing", THREE), status=404, code="not_found", network=1),
    "4 public: a tool for keys": Row(call=_public("shop.write", THREE), status=404, code="not_found", network=1),
    "4 public: module off": Row(
        before=switch("disabled_modules", ["shop"]),
        call=_public("shop.browse", THREE),
        status=404,
        code="module_disabled",
        network=1,
    ),
    # 5: refused by the toll.
    "5 key: 3 units, 2 left": Row(
        before=spend("key", 2), call=_key("shop.write", ROWS_120), status=429, code="rate_limited"
    ),
    "5 public: the network is spent": Row(
        before=spend("network"), call=_public("shop.browse", THREE), status=429, code="rate_limited"
    ),
    "5 public: 3 units, 2 left of the network": Row(
        before=spend("network", 2), call=_public("shop.browse", THREE), status=429, code="rate_limited", network=1
    ),
    "5 public: 3 units, 2 left of the token": Row(
        before=spend("token", 2), call=_public("shop.browse", THREE), status=429, code="rate_limited", network=1
    ),
    # 6: refused input has paid in full.
    "6 key: schema": Row(
        call=_key("shop.write", {**ROWS_120, "odd": 1}),
        status=422,
        code="validation_failed",
        key=3,
        entry=("error", "validation_failed"),
    ),
    "6 key: too many rows": Row(
        call=_key("shop.write", {"rows": [0] * 900}),
        status=422,
        code="too_many_items",
        key=4,
        entry=("error", "too_many_items"),
    ),
    "6 key: a read": Row(call=_key("shop.search", {**THREE}), status=422, code="validation_failed", key=3),
    "6 public": Row(
        call=_public("shop.browse", {**THREE, "odd": 1}),
        status=422,
        code="validation_failed",
        network=3,
        token=3,
    ),
    "6 public: a token that is none": Row(
        call=_public("shop.browse", {"rows": [1, 2, 3], "visitor": "short"}),
        status=422,
        code="validation_failed",
        network=3,
    ),
    # 7 and 8.
    "7 key: a first call": Row(
        call=_key("shop.write", {**ROWS_120, "idempotency_key": "a"}), status=200, key=3, entry=("ok", None)
    ),
    "7 key: replay": Row(
        before=earlier("done"), call=_key("shop.write", ROWS_120, headers={"Idempotency-Key": "a"}), status=200, key=3
    ),
    "7 key: twin running": Row(
        before=earlier("running"),
        call=_key("shop.write", {**ROWS_120, "idempotency_key": "a"}),
        status=409,
        code="idempotency_in_progress",
        key=3,
        entry=("error", "idempotency_in_progress"),
    ),
    "7 key: key reused": Row(
        before=earlier("done", {"rows": []}),
        call=_key("shop.write", {**ROWS_120, "idempotency_key": "a"}),
        status=422,
        code="idempotency_key_reused",
        key=3,
        entry=("error", "idempotency_key_reused"),
    ),
    "7 key: outcome unknown": Row(
        before=earlier("unknown"),
        call=_key("shop.write", {**ROWS_120, "idempotency_key": "a"}),
        status=409,
        code="idempotency_outcome_unknown",
        key=3,
        entry=("error", "idempotency_outcome_unknown"),
    ),
    "7 public: a key without a token": Row(
        call=_public("shop.order", {"idempotency_key": "a"}), status=422, code="validation_failed", network=1
    ),
    "7 public: a first call": Row(
        call=_public("shop.order", {**THREE, "idempotency_key": "a"}), status=200, network=1, token=1
    ),
    "8 key: preview": Row(
        call=_key("shop.write", {**ROWS_120, "dry_run": True}), status=200, key=3, entry=("preview", None)
    ),
    "8 key: preview of a dangerous call": Row(
        call=_key("shop.act", {**ROWS_120, "dry_run": True}), status=200, key=3, entry=("preview", None)
    ),
    "8 key: preview of a key that needs approval": Row(
        before=require_approval,
        call=_key("shop.write", {**ROWS_120, "dry_run": True}),
        status=200,
        key=3,
        entry=("preview", None),
    ),
    "8 key: prompt": Row(
        call=_key("shop.act", ROWS_120),
        status=200,
        key=3,
        entry=("confirmation_required", None),
    ),
    "8 key: refused code": Row(
        call=_key("shop.act", {**ROWS_120, "confirm_token": "none of ours"}),
        status=409,
        code="confirm_token_invalid",
        key=3,
        entry=("error", "confirm_token_invalid"),
    ),
    "8 key: queued": Row(
        before=require_approval,
        call=_key("shop.write", ROWS_120),
        status=200,
        key=3,
        entry=("pending_approval", None),
        until="Approvals",
    ),
    "8 public: preview": Row(call=_public("shop.order", {**THREE, "dry_run": True}), status=200, network=1, token=1),
    # 9 to 11: the handler ran.
    "9 key: done": Row(call=_key("shop.write", ROWS_120), status=200, key=3, entry=("ok", None)),
    "9 key: refused": Row(
        call=_key("shop.write", {**ROWS_120, "fault": "refuses"}),
        status=409,
        code="sold_out",
        key=3,
        entry=("error", "sold_out"),
    ),
    "9 key: raised": Row(
        call=_key("shop.write", {**ROWS_120, "fault": "raises"}),
        status=500,
        code="internal_error",
        key=3,
        entry=("error", "internal_error"),
    ),
    "9 key: a read": Row(call=_key("shop.read", ROWS_120), status=200, key=1),
    "9 key: a read with a price": Row(call=_key("shop.search", {"rows": [1, 2, 3]}), status=200, key=3),
    "9 key: a tool of core": Row(call=_key("system.whoami"), status=200, key=1),
    "9 public: done": Row(call=_public("shop.browse", THREE), status=200, network=3, token=3),
    "9 public: without a token": Row(call=_public("shop.browse", {"rows": [1, 2, 3]}), status=200, network=3),
    "9 public: a write": Row(call=_public("shop.order", THREE), status=200, network=1, token=1),
    # Listings.
    "listing key": Row(call=_listing, status=200, key=1),
    "listing key: no unit left": Row(before=spend("key"), call=_listing, status=429, code="rate_limited"),
    "listing public": Row(call=_public_listing, status=200, network=1),
    "listing public: off": Row(
        before=switch("api_public_enabled", False), call=_public_listing, status=403, code="api_disabled"
    ),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_what_a_call_pays_and_leaves(door: Door, row: Row) -> None:
    if row.before is not None:
        row.before(door)
    before = door.spent()
    answer = row.call(door)
    after = door.spent()
    assert (answer.status_code, answer.json().get("code") if row.status >= 400 else None) == (row.status, row.code)
    taken = {policy: after[policy] - before[policy] for policy in after}
    assert taken == {"key": row.key, "network": row.network, "token": row.token}
    assert requests() == ([row.entry] if row.entry else [])
    assert stored_effects() == (["effect"] if row.status == 200 and _ran(answer) else [])


def stored_effects() -> list[str]:
    return [name for name in stored() if name == "effect"]


def _ran(answer: Any) -> bool:
    return bool(answer.json().get("done")) and "Idempotent-Replayed" not in answer.headers


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_every_answer_has_its_request_id_and_the_headers_of_what_it_reached(door: Door, row: Row) -> None:
    if row.before is not None:
        row.before(door)
    answer = row.call(door)
    assert answer.headers["X-Request-ID"]
    if row.status >= 400:
        assert answer.json()["request_id"] == answer.headers["X-Request-ID"]
        assert answer["Content-Type"] == "application/problem+json"
    reached = row.key or row.network or row.token or row.code == "rate_limited"
    assert ("RateLimit" in answer.headers, "RateLimit-Policy" in answer.headers) == (bool(reached), bool(reached))
    waits = row.status == 429 or row.code in ("maintenance", "idempotency_in_progress")
    assert ("Retry-After" in answer.headers) == waits


# --- The first failure is the answer --------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Request:
    """A call of the dangerous `shop.act` to which faults are added."""

    door: Door
    query: str = ""
    authorization: str = ""
    body: str = field(default_factory=lambda: json.dumps({"rows": [0] * 300, "odd": 1}))

    def send(self) -> Any:
        path = f"/api/v1/tools/shop.act{self.query}"
        headers = {"Authorization": self.authorization or f"Bearer {self.door.machine.text}"}
        return self.door.machine.client.post(
            path, self.body, content_type="application/json", headers=headers, REMOTE_ADDR=self.door.ip
        )


def _set(name: str, value: Any) -> Callable[[Request], None]:
    return lambda request: factories.set_setting(name, value)


# In the order of the flow: what to do, and the answer when nothing earlier is wrong.
FAULTS: list[tuple[str, Callable[[Request], Any]]] = [
    ("api_disabled", _set("api_admin_enabled", False)),
    ("maintenance", _set("maintenance_mode", True)),
    ("credential_in_url", lambda request: setattr(request, "query", "?api_key=1")),
    ("unauthorized", lambda request: setattr(request, "authorization", f"Bearer {WRONG}")),
    ("invalid_json", lambda request: setattr(request, "body", "{")),
    ("not_found", _set("api_disabled_tools", ["shop.act"])),
    ("module_disabled", _set("disabled_modules", ["shop"])),
    ("forbidden", lambda request: lose_permission(request.door)),
    ("rate_limited", lambda request: request.door.leave("key", 1)),
    ("too_many_items", lambda request: None),
]


@pytest.mark.parametrize("at", range(len(FAULTS)), ids=[code for code, _ in FAULTS])
def test_the_first_failure_is_the_answer(door: Door, at: int) -> None:
    request = Request(door=door)
    for _, add in FAULTS[at:]:
        add(request)
    assert request.send().json()["code"] == FAULTS[at][0]
    assert stored_effects() == []


def test_too_many_rows_come_before_the_schema_and_the_schema_before_danger(door: Door) -> None:
    answers = [
        door.key("shop.act", body).json()
        for body in ({"rows": [0] * 201, "odd": 1}, {"rows": [0] * 200, "odd": 1}, {"rows": [0] * 200})
    ]
    assert [answer.get("code") for answer in answers] == ["too_many_items", "validation_failed", None]
    assert answers[2]["status"] == "confirmation_required"


def test_a_visitors_entry_comes_before_the_body_and_the_body_before_the_lookup(door: Door) -> None:
    door.leave("network", 1)
    assert door.public("no.such", "{").json()["code"] == "invalid_json"
    assert door.public("no.such", "{").json()["code"] == "rate_limited"


# --- RF-4: what does not exist --------------------------------------------------------------------------------------------------------


def test_what_is_hidden_and_what_does_not_exist_are_one_answer(door: Door) -> None:
    def bytes_of(answer: Any) -> tuple[int, bytes, list[str]]:
        return answer.status_code, answer.content, sorted(answer.headers)

    def ask(tool: str, caller: Callable[..., Any] = door.key) -> tuple[int, bytes, list[str]]:
        return bytes_of(caller(tool, {}, headers={"X-Request-ID": "the-same"}))

    unknown = ask("shop.nothing")
    assert unknown[0] == 404
    assert ask("shop.browse") == unknown, "a public tool"
    assert ask("shop_write") == unknown, "the spelling of MCP"
    assert ask("SHOP.WRITE") == unknown
    assert ask("shop.write%00") == unknown
    factories.set_setting("api_disabled_tools", ["shop.write"])
    assert ask("shop.write") == unknown
    factories.set_setting("api_disabled_tools", [])
    factories.set_setting("api_disabled_modules", ["shop"])
    assert ask("shop.write") == unknown
    factories.set_setting("disabled_modules", ["shop"])
    assert ask("shop.write") == unknown, "hidden is stronger than off"
    assert ask("shop.nothing", door.public)[:2] == unknown[:2]
    assert ask("shop.browse", door.public)[:2] == unknown[:2]
    assert ask("shop.write", door.public)[:2] == unknown[:2]


def test_a_missing_scope_names_the_scope_and_a_module_that_is_off_says_so(door: Door) -> None:
    stranger = factories.make_machine(scopes=["probe:read"])
    assert stranger.call("shop.read").json()["scope"] == SCOPE
    factories.set_setting("disabled_modules", ["shop"])
    assert stranger.call("shop.read").json()["code"] == "module_disabled"
    assert stranger.call("system.whoami").status_code == 200


# --- RF-13: control fields ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [{"dry_run": True}, {"dry_run": False}, {"confirm_token": "a"}, {"idempotency_key": "a"}]
)
def test_a_control_field_on_a_read_is_refused(door: Door, given: dict[str, Any]) -> None:
    answer = door.key("shop.read", given)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, f"/{next(iter(given))}")
    assert door.public("shop.browse", given).status_code == 422


def test_a_read_does_not_look_at_the_idempotency_header(door: Door) -> None:
    for value in ("a", "", '"', "x" * 300):
        assert door.key("shop.read", {}, headers={"Idempotency-Key": value}).status_code == 200
        assert door.public("shop.browse", {}, headers={"Idempotency-Key": value}).status_code == 200


@pytest.mark.parametrize(
    ("body", "header"),
    [({"idempotency_key": "a"}, "b"), ({}, ""), ({}, '"a'), ({}, "x" * 256), ({"idempotency_key": None}, "a")],
)
def test_an_odd_idempotency_key_by_either_door_runs_nothing(door: Door, body: dict[str, Any], header: str) -> None:
    for call, tool in ((door.key, "shop.write"), (door.public, "shop.order")):
        answer = call(
            tool, {**body, **({"visitor": TOKEN} if call == door.public else {})}, headers={"Idempotency-Key": header}
        )
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/idempotency_key")
    assert stored_effects() == []


@pytest.mark.parametrize(
    "body",
    [
        {"confirm_token": ""},
        {"confirm_token": None},
        {"confirm_token": "a", "dry_run": True},
        {"idempotency_key": None},
        {"idempotency_key": "é"},
        {"dry_run": 1},
        {"dry_run": "true"},
        {"dry_run": None},
        {"Dry_Run": True},
    ],
)
def test_a_control_field_that_is_none_or_odd_runs_nothing(door: Door, body: dict[str, Any]) -> None:
    answer = door.key("shop.write", body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, f"/{next(iter(body))}")
    assert stored_effects() == []


def test_dry_run_false_is_an_ordinary_call(door: Door) -> None:
    assert door.key("shop.write", {"dry_run": False}).json() == {"done": True}
    assert stored_effects() == ["effect"]


# --- RL-1 and RL-3: prices ------------------------------------------------------------------------------------------------------------

PRICES: list[tuple[str, dict[str, Any], int]] = [
    ("shop.write", {}, 1),
    ("shop.write", {"rows": []}, 1),
    ("shop.write", {"rows": [0] * 50}, 1),
    ("shop.write", {"rows": [0] * 51}, 2),
    ("shop.write", {"rows": [0] * 100}, 2),
    ("shop.write", {"rows": [0] * 101}, 3),
    ("shop.write", {"rows": [0], "more": [0] * 60}, 2),
    ("shop.write", {"rows": [[0] * 400]}, 1),
    ("shop.write", {"fault": "x" * 400}, 1),
    ("shop.write", {"rows": [0] * 200}, 4),
    ("shop.write", {"rows": [0] * 5000}, 4),
    ("shop.unlimited", {"rows": [0] * 999}, 20),
    ("shop.unlimited", {"rows": [0] * 5000}, 20),
    ("shop.read", {"rows": [0] * 500}, 1),
    ("shop.search", {"rows": [0] * 7}, 7),
]


@pytest.mark.parametrize(("tool", "body", "units"), PRICES, ids=range(len(PRICES)))
def test_the_price_of_a_call(door: Door, tool: str, body: dict[str, Any], units: int) -> None:
    door.key(tool, body)
    assert door.spent()["key"] == units


@pytest.mark.parametrize("price", [0, -1, 1.0, True, "1", None, LookupError()], ids=repr)
def test_a_price_that_is_none_is_a_500_and_runs_nothing(shop: Shop, price: Any) -> None:
    def cost(given: Any) -> Any:
        if isinstance(price, Exception):
            raise price
        return price

    machine = shop.write(lambda given, ctx: {"done": put("effect")}, cost=cost)
    answer = machine.call("shop.run")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert (stored(), requests()) == ([], [])


def test_a_declared_price_is_cut_to_1000_and_holds_for_a_write_too(shop: Shop) -> None:
    factories.set_setting("api_key_budget", 1_000)
    machine = shop.write(lambda given, ctx: {"done": True}, cost=lambda given: 5_000)
    answer = machine.call("shop.run")
    assert (answer.status_code, answer.headers["RateLimit"].split(";")[1]) == (200, "r=0")


def test_a_price_above_the_whole_budget_says_how_many_rows_fit(shop: Shop) -> None:
    shop.open(make_store())
    machine = factories.make_machine(scopes=[SCOPE], budget=20)
    factories.set_setting("api_key_budget", 2)
    assert machine.call("shop.unlimited", {"rows": [0] * 5000}).status_code == 200
    machine = factories.make_machine(scopes=[SCOPE])
    answer = machine.call("shop.write", ROWS_120)
    assert answer.status_code == 429
    assert {"code": "rate_limited", "retry": "never", "rows_that_fit": 100}.items() <= answer.json().items()
    assert "Retry-After" not in answer.headers
    assert machine.call("shop.write", {"rows": [0] * 100}).status_code == 200


def test_a_visitors_price_above_the_whole_budget_of_the_network_never_fits(door: Door) -> None:
    answer = door.public("shop.browse", {"rows": [0] * 61})
    assert (answer.status_code, answer.json()["retry"]) == (429, "never")
    assert "Retry-After" not in answer.headers
    assert door.spent()["network"] == 1
    fitting = Door(machine=door.machine, visitor=door.visitor)
    assert fitting.public("shop.browse", {"rows": [0] * 60}).status_code == 200


def test_the_last_unit_is_usable_and_a_refused_charge_takes_nothing(door: Door) -> None:
    door.leave("key", 2)
    assert door.key("shop.write", ROWS_120).status_code == 429
    assert door.key("shop.write", {"rows": [0] * 100}).status_code == 200
    refused = door.key("shop.write")
    assert (refused.status_code, refused.json()["retry"]) == (429, "later")
    assert 1 <= int(refused.headers["Retry-After"]) <= 61


def test_keys_of_one_owner_have_budgets_of_their_own(door: Door) -> None:
    assert door.machine.key is not None
    other = factories.make_machine(scopes=[SCOPE], owner=door.machine.key.owner)
    door.leave("key", 0)
    assert door.key("shop.read").status_code == 429
    assert other.call("shop.read").status_code == 200


def test_visitors_of_one_network_share_its_budget_whatever_their_tokens(door: Door) -> None:
    door.leave("network", 1)
    assert door.public("shop.browse", {"visitor": "another-visitor-of-it"}).status_code == 200
    assert door.public("shop.browse", {"visitor": "a-third-visitor-of-it"}).status_code == 429


def test_one_visitor_has_one_budget_in_all_networks(door: Door) -> None:
    door.leave("token", 1)
    assert door.public("shop.browse", {"visitor": TOKEN}).status_code == 200
    door.ip = fresh_address()
    answer = door.public("shop.browse", {"visitor": TOKEN})
    assert answer.status_code == 429
    assert [part.split(";")[0] for part in answer.headers["RateLimit"].split(", ")] == ['"network"', '"token"']
