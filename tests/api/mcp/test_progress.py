"""Progress over SSE (MC-1): when an answer is a stream, and what is in it."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils.functional import lazy

from apps.activity.models import Entry
from apps.api import registry
from apps.api.mcp import progress, streaming
from apps.api.mcp.progress import Step
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.mcp.client import ERAS, Client, left
from tests.api.mcp.listening import ACCEPTS, parse
from tests.api.mcp.walking import tools as walking
from tests.api.shop import Shop

pytestmark = pytest.mark.sqlite

TWO: dict[str, Any] = {"first": [{"done": 1, "total": 2, "message": "half"}], "then": [{"done": 2, "total": 2}]}


@pytest.fixture
def walker(transactional_db: None) -> Iterator[Machine]:
    with registry.using(walking.module):
        yield factories.make_machine(scopes=[probe.READ, probe.WRITE])


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest, walker: Machine) -> Client:
    return Client(machine=walker, version=request.param)


@pytest.fixture
def modern(walker: Machine) -> Client:
    return Client(machine=walker)


def ask(client: Client, tool: str, arguments: dict[str, Any], *, mark: Any = "mine", accept: str = ACCEPTS) -> Any:
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": mark}}
    return client.send("tools/call", params, headers={"Accept": accept})


def messages(answer: Any) -> list[dict[str, Any]]:
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/event-stream")
    return parse(b"".join(answer.streaming_content))


def steps(answer: Any) -> list[tuple[Any, Any, Any]]:
    """Progress, total and message of each notification."""
    told = [message["params"] for message in messages(answer)[:-1]]
    return [(params["progress"], params.get("total"), params.get("message")) for params in told]


def is_json(answer: Any) -> bool:
    return bool(answer.status_code == 200 and answer.headers["Content-Type"] == "application/json" and answer.json())


def test_a_tool_that_reports_is_answered_by_its_steps_and_then_its_result(client: Client) -> None:
    plain = client.call("walk_look", TWO)
    for token in ("mine", "ünï", 0, -7):
        first, *between, last = messages(ask(client, "walk_look", TWO, mark=token))
        told = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
        # A step that another one follows at once may be left out.
        assert first["params"] in (told, {"progressToken": token, "progress": 2, "total": 2})
        assert {message["method"] for message in (first, *between)} == {"notifications/progress"}
        assert all("id" not in message for message in (first, *between))
        assert last["result"] == plain


@pytest.mark.parametrize("accept", ["application/json", "*/*", "text/*", "", "application/json, text/event-stream;q=0"])
def test_a_client_that_names_no_streams_gets_json(modern: Client, accept: str) -> None:
    assert is_json(ask(modern, "walk_look", TWO, accept=accept))


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json, Text/Event-Stream;q=0.5", ACCEPTS])
def test_a_client_that_names_them_gets_a_stream(modern: Client, accept: str) -> None:
    assert messages(ask(modern, "walk_look", TWO, accept=accept))


@pytest.mark.parametrize("token", [None, True, 1.5, [], {}, "x" * 300])
def test_what_is_no_token_asks_for_nothing(modern: Client, token: Any) -> None:
    assert is_json(ask(modern, "walk_look", TWO, mark=token))


def test_what_ends_without_a_report_is_json(modern: Client) -> None:
    assert is_json(ask(modern, "walk_look", {}))
    assert is_json(ask(modern, "walk_nowhere", {}))
    assert is_json(ask(modern, "walk_go", {**TWO, "dry_run": True}))
    assert is_json(ask(modern, "walk_go", {"nope": 1}))


def test_a_fault_of_the_protocol_is_one_and_costs_one_unit(modern: Client) -> None:
    before = left(modern.send("tools/list"))
    answer = modern.send(
        "tools/call", {"name": "walk_look", "arguments": [], "_meta": {"progressToken": 1}}, headers={"Accept": ACCEPTS}
    )
    assert (answer.status_code, answer.json()["error"]["code"], left(answer)) == (400, -32602, before - 1)


def test_the_stream_has_the_headers_of_every_answer(modern: Client) -> None:
    before = left(modern.send("tools/list"))
    params = {"name": "walk_look", "arguments": TWO, "_meta": {"progressToken": 1}}
    answer = modern.send("tools/call", params, headers={"Accept": ACCEPTS, "X-Request-ID": "mine"})
    assert messages(answer)
    assert left(answer) == before - 1
    assert {name: answer.headers[name] for name in ("X-Request-ID", "Cache-Control", "X-Accel-Buffering")} == {
        "X-Request-ID": "mine",
        "Cache-Control": "no-store",
        "X-Accel-Buffering": "no",
    }


def test_a_visitor_is_told_as_well(walker: Machine) -> None:
    factories.set_setting("api_public_enabled", True)
    *told, last = messages(ask(Client(machine=Machine()), "walk_gaze", TWO))
    assert told[-1]["params"]["progress"] == 2
    assert last["result"]["structuredContent"] == {"seen": True}


def test_where_there_is_no_thread_the_call_runs_all_the_same(modern: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    assert is_json(ask(modern, "walk_look", TWO))
    assert streaming._slots._free == streaming.MOST


def test_a_write_streams_and_its_repeat_is_a_replay(modern: Client) -> None:
    given = {**TWO, "idempotency_key": "mine"}
    *_, last = messages(ask(modern, "walk_go", given))
    again = ask(modern, "walk_go", given)
    assert again.json()["result"]["structuredContent"] == last["result"]["structuredContent"]
    assert again.json()["result"]["_meta"]["Idempotent-Replayed"] is True
    assert Entry.objects.filter(action="api.request", metadata__outcome="ok").count() == 1


@pytest.mark.parametrize(
    ("end", "code"), [("refuse", "walk_refused"), ("break", "internal_error"), ("leave", "internal_error")]
)
def test_a_call_that_fails_after_a_report_says_so_at_the_end_of_the_stream(modern: Client, end: str, code: str) -> None:
    *_, last = messages(ask(modern, "walk_go", {**TWO, "end": end}))
    assert last["result"]["isError"] is True
    assert json.loads(last["result"]["content"][0]["text"])["code"] == code
    assert Entry.objects.get(action="api.request").metadata["outcome"] == "error"
    assert streaming._slots._free == streaming.MOST


def test_a_crash_outside_of_the_gate_ends_a_stream_without_an_invitation_to_repeat(shop: Shop, settings: Any) -> None:
    """What was answered may be committed by then."""
    settings.API_MCP_KEEP_ALIVE_SECONDS = 0.05
    crashes, begun = False, threading.Event()

    def title() -> str:
        if crashes:
            begun.wait(10)
            raise RuntimeError("a secret")
        return "Run"

    machine = shop.write(lambda given, ctx: {}, title=lazy(title, str)(), danger="always")
    crashes = True
    answer = ask(Client(machine=machine, capabilities={"elicitation": {}}), "shop_run", {})
    begun.set()
    (last,) = messages(answer)
    told = json.loads(last["result"]["content"][0]["text"])
    assert (told["code"], told["retry"]) == ("internal_error", "never")
    assert "secret" not in str(last)


def test_ten_thousand_reports_are_few_events_and_the_last_is_told(modern: Client) -> None:
    told = steps(ask(modern, "walk_look", {"many": 10_000}))
    assert len(told) < 20
    assert told[-1] == (10_000, 10_000, None)
    assert [step[0] for step in told] == sorted({step[0] for step in told})


def test_odd_reports_break_nothing(modern: Client) -> None:
    *told, last = messages(ask(modern, "walk_go", {"odd": True}))
    assert (
        told[-1]["params"]["progress"] == 5
    )  # those without a number are counted, and what says less than that is not told
    assert last["result"]["isError"] is False


@pytest.mark.parametrize(
    ("reports", "told"),
    [
        ([0.25, 0.5], [(0.25, 1, None), (0.5, 1, None)]),
        ([{"done": 3}, {"done": 3}, {"done": 2}, {"done": 4, "total": 9}], [(3, None, None), (4, 9, None)]),
        ([{"done": 0, "total": 2}, {"done": 1, "total": 2}], [(0, 2, None), (1, 2, None)]),
        (
            ["packing", {"message": "sending"}, {"names": []}],
            [(1, None, "packing"), (2, None, "sending"), (3, None, None)],
        ),
        (["packing", {"done": 5, "message": "sent"}, "late"], [(1, None, "packing"), (5, None, "sent")]),
        ([{"done": 2**63}, {"done": float("nan")}, True], [(1, None, None), (2, None, None), (3, None, None)]),
        (["x" * 5_000], [(1, None, "x" * 1_000)]),
        (["a\ud800b"], [(1, None, "a?b")]),
        ([None], [(1, None, None)]),
    ],
)
def test_steps_only_rise(reports: list[Any], told: list[Any]) -> None:
    last: Step | None = None
    found = []
    for report in reports:
        step = progress.step_of(report, after=last)
        if step is not None:
            last = step
            found.append((step.progress, step.total, step.message))
    assert found == told


def test_a_write_that_waits_for_an_approval_is_answered_at_once(walker: Machine) -> None:
    held = factories.make_machine(scopes=[probe.WRITE], requires_approval=True)
    answer = ask(Client(machine=held), "walk_go", TWO)
    assert answer.json()["result"]["structuredContent"]["status"] == "pending_approval"
