"""The adapter against both wire formats over real sockets: what is sent, what is understood, what becomes of each failure."""

import asyncio
import time
from typing import Any

import pytest

from apps.agent.providers.adapter import DirectModel
from apps.agent.providers.protocol import Piece, Proposed, Resulted, Said, Text, ToolCall, Usage
from tests.agent.providers import BOTH, HISTORY, LOOKUP, WIRES, answer, ask, connection_to, failure, run
from tests.agent.wire import anthropic, openai
from tests.agent.wire.script import Call, Cut, End, Finish, Raw, Refuse, Say, Silence, Together

CALL = Call("call_9", "catalogue_list_products", ('{"que', 'ry": "b', 'olt"}'))


def error(name: str, message: str, **fields: Any) -> Any:
    return (anthropic.error if name == "anthropic" else openai.error)(message, **fields)


@BOTH
def test_an_answer_comes_in_pieces_and_ends_with_its_tokens(name: str) -> None:
    with WIRES[name]([Say("Two "), Say("bolts."), Finish(input_tokens=21, output_tokens=5)]) as wire:
        found = answer(connection_to(wire))
    assert found == [Text(text="Two "), Text(text="bolts."), Usage(input_tokens=21, output_tokens=5)]
    assert wire.refusals == []


@BOTH
def test_the_pieces_arrive_while_the_provider_still_writes(name: str) -> None:
    async def first(model: DirectModel) -> Piece:
        async for piece in model.answer(ask()):
            return piece
        raise AssertionError

    with WIRES[name]([Say("Two "), Silence()]) as wire:
        assert run(first, connection_to(wire)) == Text(text="Two ")


@BOTH
def test_a_call_in_fragments_is_whole(name: str) -> None:
    with WIRES[name]([Say("I look."), CALL, Finish()]) as wire:
        found = answer(connection_to(wire), ask(tools=[LOOKUP]))
    assert found[1] == ToolCall(id="call_9", name="catalogue_list_products", arguments='{"query": "bolt"}')
    assert isinstance(found[2], Usage)


@BOTH
def test_calls_that_come_together_are_told_apart_and_stay_in_order(name: str) -> None:
    other = Call("call_10", "catalogue_list_products", ('{"query"', ': "nut"}'))
    with WIRES[name]([Together((CALL, other)), Finish()]) as wire:
        calls = [piece for piece in answer(connection_to(wire), ask(tools=[LOOKUP])) if isinstance(piece, ToolCall)]
    assert [(call.id, call.arguments) for call in calls] == [
        ("call_9", '{"query": "bolt"}'),
        ("call_10", '{"query": "nut"}'),
    ]


@BOTH
@pytest.mark.parametrize("text", ['{"query": ', "[1]", "nonsense", '{"query": "a"}{"query": "b"}'])
def test_arguments_that_are_no_object_pass_as_they_are(name: str, text: str) -> None:
    with WIRES[name]([Call("call_9", "catalogue_list_products", (text[:3], text[3:])), Finish()]) as wire:
        found = answer(connection_to(wire), ask(tools=[LOOKUP]))
    assert found[0] == ToolCall(id="call_9", name="catalogue_list_products", arguments=text)


@BOTH
def test_a_call_without_arguments_has_an_empty_object(name: str) -> None:
    with WIRES[name]([Call("call_9", "catalogue_list_products", ()), Finish()]) as wire:
        found = answer(connection_to(wire), ask(tools=[LOOKUP]))
    assert found[0] == ToolCall(id="call_9", name="catalogue_list_products", arguments="{}")


@BOTH
def test_tokens_of_a_cache_are_told_apart(name: str) -> None:
    written = 300 if name == "anthropic" else 0
    sent = Finish(input_tokens=100, output_tokens=5, cache_read=40, cache_write=written)
    with WIRES[name]([Say("Yes."), sent]) as wire:
        usage = answer(connection_to(wire))[-1]
    # All of the input, those of the cache included: OpenAI counts them in, Anthropic beside.
    whole = 100 if name == "openai" else 440
    assert usage == Usage(input_tokens=whole, output_tokens=5, cache_read_tokens=40, cache_write_tokens=written)


@BOTH
def test_a_whole_history_is_taken_by_a_strict_server(name: str) -> None:
    with WIRES[name]([Say("Yes."), Finish()]) as wire:
        answer(connection_to(wire), ask(*HISTORY, tools=[LOOKUP], max_output_tokens=77))
    assert wire.refusals == []
    sent = wire.requests[0].body
    limit = sent.get("max_tokens") or sent.get("max_completion_tokens")
    assert (limit, sent["model"], "Be brief." in str(sent)) == (77, "wire-1", True)


@BOTH
def test_the_schema_of_a_tool_is_sent_as_it_is(name: str) -> None:
    with WIRES[name]([Say("Yes."), Finish()]) as wire:
        answer(connection_to(wire), ask(tools=[LOOKUP]))
    tool = wire.requests[0].body["tools"][0]
    schema = tool["input_schema"] if name == "anthropic" else tool["function"]["parameters"]
    assert schema == LOOKUP.schema


@BOTH
@pytest.mark.parametrize(
    "history",
    [
        (Said(text="One"), Said(text="Two")),
        (Said(text="One"), Proposed(text=" "), Said(text="Two")),
        (Said(text="One"), Proposed(text="Two"), Said(text="Three")),
        (
            Said(text="One"),
            Proposed(calls=(ToolCall(id="a", name="x", arguments="[]"),)),
            Resulted(call_id="a", name="x", text="{}"),
            Said(text="Two"),
        ),
        *(
            (
                Said(text="One"),
                Proposed(calls=(ToolCall(id="a", name="x", arguments=arguments),)),
                Resulted(call_id="a", name="x", text="{}"),
            )
            for arguments in (
                '{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}', '{"a": "\\ud800"}', '{"a": ' + "[" * 500 + "]" * 500 + "}",
            )
        ),
    ],
)  # fmt: skip
def test_odd_but_well_formed_histories_are_taken(name: str, history: Any) -> None:
    with WIRES[name]([Say("Yes."), Finish()]) as wire:
        answer(connection_to(wire), ask(*history))
    assert wire.refusals == []


@BOTH
def test_an_orphan_is_refused_by_the_server_and_is_a_typed_failure(name: str) -> None:
    orphan = Proposed(calls=(ToolCall(id="a", name="x", arguments="{}"),))
    with WIRES[name]([Say("Yes."), Finish()]) as wire:
        found = failure(connection_to(wire), ask(Said(text="One"), orphan, Said(text="Two")))
    assert (found.code, len(wire.refusals)) == ("provider_refused", 1)


@BOTH
def test_an_answer_that_was_cut_at_its_limit_says_so(name: str) -> None:
    reason = "max_tokens" if name == "anthropic" else "length"
    with WIRES[name]([Say("Two bo"), CALL, Finish(reason=reason)]) as wire:
        found = answer(connection_to(wire))
    # The call stood last, so it may not be whole.
    assert [type(piece) for piece in found] == [Text, Usage]
    assert isinstance(found[-1], Usage)
    assert found[-1].is_cut


def test_a_server_that_says_nothing_of_tokens_has_not_counted_them() -> None:
    with openai.OpenAI([Say("Yes."), Finish(has_usage=False)]) as wire:
        assert answer(connection_to(wire))[-1] == Usage(is_counted=False)


def test_a_wrong_key_is_unauthorized() -> None:
    for wire in (openai.OpenAI([Finish()]), anthropic.Anthropic([Finish()])):
        with wire:
            found = failure(connection_to(wire, key="sk-canary-wrong-key"))
        assert found.code == "provider_unauthorized"
        assert "canary" not in str(found)


@BOTH
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "provider_unauthorized"),
        (403, "provider_unauthorized"),
        (404, "provider_refused"),
        (400, "provider_refused"),
        (413, "context_overflow"),
        (429, "provider_rate_limited"),
        (500, "provider_overloaded"),
        (502, "provider_overloaded"),
        (503, "provider_overloaded"),
        (529, "provider_overloaded"),
    ],
)
def test_each_status_of_a_provider_has_its_code(name: str, status: int, code: str) -> None:
    with WIRES[name]([Refuse(status, error(name, "The canary asked for bolts."))]) as wire:
        found = failure(connection_to(wire))
    assert (found.code, len(wire.requests)) == (code, 1)
    assert "canary" not in str(found)


@BOTH
def test_a_rate_limit_says_how_long(name: str) -> None:
    with WIRES[name]([Refuse(429, error(name, "Slow down."), {"retry-after": "17"})]) as wire:
        found = failure(connection_to(wire))
    assert (found.code, found.retry_after) == ("provider_rate_limited", 17.0)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("openai", openai.error("Too long.", code="context_length_exceeded")),
        ("openai", openai.error("This model's maximum context length is 8192 tokens.")),
        ("openai", {"object": "error", "message": "the prompt exceeds the context window", "code": 400}),
        ("anthropic", anthropic.error("prompt is too long: 210000 tokens > 200000 maximum")),
    ],
)
def test_a_history_that_is_too_long_for_the_model_has_a_code_of_its_own(name: str, body: Any) -> None:
    with WIRES[name]([Refuse(400, body)]) as wire:
        assert failure(connection_to(wire)).code == "context_overflow"


@BOTH
def test_an_error_inside_the_stream_has_the_code_of_the_same_error_before_it(name: str) -> None:
    kind = {"kind": "overloaded_error"} if name == "anthropic" else {"kind": "server_error", "code": "server_error"}
    with WIRES[name]([Say("Two "), Refuse(0, error(name, "Overloaded.", **kind)), Silence()]) as wire:
        assert failure(connection_to(wire)).code == "provider_overloaded"


@BOTH
@pytest.mark.parametrize("end", [Cut(), End()], ids=["the connection breaks", "the body ends in order"])
def test_a_stream_that_ends_before_the_answer_is_cut(name: str, end: Any) -> None:
    with WIRES[name]([Say("Two "), end]) as wire:
        assert failure(connection_to(wire)).code == "provider_cut"


@BOTH
def test_a_connection_that_breaks_before_a_word_is_cut(name: str) -> None:
    with WIRES[name]([Cut()]) as wire:
        assert failure(connection_to(wire)).code == "provider_cut"


@BOTH
def test_nobody_at_the_address_is_unreachable(name: str) -> None:
    with WIRES[name]([Finish()]) as wire:
        connection = connection_to(wire)
    assert failure(connection).code == "provider_unreachable"


@BOTH
@pytest.mark.parametrize("steps", [[Silence()], [Say("Two "), Silence()]], ids=["before a word", "in the middle"])
def test_a_provider_that_hangs_is_given_up(name: str, steps: Any) -> None:
    with WIRES[name](steps) as wire:
        found = failure(connection_to(wire, silence_seconds=0.3))
        assert wire.client_gone.wait(5)
    assert found.code == "provider_timeout"


@BOTH
@pytest.mark.parametrize(
    "data",
    [
        b"event: message_start\ndata: {broken\n\n",
        b"event: message_start\ndata: [1\n\n",
        b"event: message_start\ndata: \xff\xfe\n\n",
    ],
    ids=["no JSON", "half of a list", "no text"],
)
def test_a_stream_that_makes_no_sense_is_invalid(name: str, data: bytes) -> None:
    with WIRES[name]([Raw(data), Finish()]) as wire:
        assert failure(connection_to(wire)).code == "provider_invalid"


@BOTH
def test_a_body_that_is_no_stream_is_a_failure(name: str) -> None:
    with WIRES[name]([Refuse(200, b"<html>Welcome</html>", {"Content-Type": "text/html"})]) as wire:
        assert failure(connection_to(wire)).code in {"provider_invalid", "provider_cut"}


@BOTH
def test_an_answer_that_the_provider_holds_back_is_refused(name: str) -> None:
    reason = "refusal" if name == "anthropic" else "content_filter"
    with WIRES[name]([Say("Two "), Finish(reason=reason)]) as wire:
        assert failure(connection_to(wire)).code == "provider_refused"


@BOTH
@pytest.mark.parametrize("steps", [[Silence()], [Say("Two "), Silence()]], ids=["before a word", "in the middle"])
def test_stopping_closes_the_connection_while_the_provider_says_nothing(name: str, steps: Any) -> None:
    async def stopped(model: DirectModel) -> float:
        async def listen() -> None:
            async for _ in model.answer(ask()):
                pass

        listener = asyncio.create_task(listen())
        assert await asyncio.to_thread(wire.silent.wait, 10)
        asked_at = time.monotonic()
        listener.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listener
        assert await asyncio.to_thread(wire.client_gone.wait, 5)
        return wire.gone_at - asked_at

    with WIRES[name](steps) as wire:
        assert run(stopped, connection_to(wire)) < 1


@BOTH
def test_closing_the_iterator_between_two_pieces_closes_the_connection(name: str) -> None:
    async def stopped(model: DirectModel) -> float:
        pieces: Any = model.answer(ask())
        await anext(pieces)
        asked_at = time.monotonic()
        await pieces.aclose()
        assert await asyncio.to_thread(wire.client_gone.wait, 5)
        return wire.gone_at - asked_at

    with WIRES[name]([Say("Two "), Silence()]) as wire:
        assert run(stopped, connection_to(wire)) < 1


@BOTH
def test_each_turn_has_a_connection_of_its_own_that_ends_with_it(name: str) -> None:
    with WIRES[name]([Say("Yes."), Finish()]) as wire:
        for _ in range(3):
            answer(connection_to(wire))
        assert wire.opened == 3


@BOTH
def test_nothing_of_the_environment_is_sent(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (
        "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_BASE_URL", "OPENAI_CUSTOM_HEADERS", "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL",
    ):  # fmt: skip
        monkeypatch.setenv(variable, "http://canary.example.org")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-canary: canary")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with WIRES[name]([Say("Yes."), Finish()]) as wire:
        answer(connection_to(wire))
    request = wire.requests[0]
    assert "canary" not in str(request)
    assert not [header for header in request.headers if header.startswith(("x-stainless", "openai-"))]


def test_an_endpoint_without_a_key_is_sent_none() -> None:
    with openai.OpenAI([Say("Yes."), Finish()]) as wire:
        failure(connection_to(wire, key=""))
        assert "authorization" not in wire.requests[0].headers
