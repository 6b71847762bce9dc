"""What a model is sent is well formed, whatever is stored (TU-2)."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.agent import history, notices, results
from apps.agent.providers.protocol import Proposed, Resulted, Said, ToolCall
from tests.agent.well_formed import faults


@dataclass
class Row:
    """A stored message."""

    number: int
    role: str
    content: str = ""
    code: str = ""
    tool_calls: Any = field(default_factory=list)
    tool_call_id: str = ""
    tool_result: Any = None


_IDS = st.sampled_from(["a", "b", "c", "a_2"])
_CALL = st.one_of(
    st.fixed_dictionaries(
        {"id": _IDS, "name": st.sampled_from(["shop_run", "shop_put"]), "arguments": st.text(max_size=30)}
    ),
    st.sampled_from([None, {}, {"id": "a"}, {"id": 1, "name": "x"}, {"id": "", "name": "x"}, {"id": "b", "name": "x"}]),
)
_CALLS: st.SearchStrategy[Any] = st.one_of(st.lists(_CALL, max_size=4), st.sampled_from([None, {}, "odd"]))
_RESULT = st.one_of(
    st.builds(lambda text: {"text": text}, st.text(max_size=120)), st.sampled_from([None, {}, [], {"text": 1}])
)
_CODES = st.sampled_from(["", "unknown", *sorted(notices.TEXTS)])
_TEXT = st.text(max_size=60)


@st.composite
def chats(draw: st.DrawFn) -> list[Row]:
    """Any order of any rows: what a crash, a stop, a decided card or a bad hand may leave."""
    rows: list[Row] = []
    number = draw(st.sampled_from([1, 1, 7]))
    for role in draw(
        st.lists(st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "notice"]), max_size=14)
    ):
        row = Row(number=number, role=role, content=draw(_TEXT))
        if role == "assistant":
            row.tool_calls = draw(_CALLS)
        if role == "tool":
            row.tool_call_id, row.tool_result = draw(_IDS), draw(_RESULT)
        if role == "notice":
            row.code, row.tool_result = draw(_CODES), draw(_RESULT)
        rows.append(row)
        number += 1
    return rows


@settings(max_examples=1_500, deadline=None)
@given(chats(), st.integers(min_value=1, max_value=600))
def test_a_history_of_any_stored_messages_is_well_formed(rows: list[Row], most_chars: int) -> None:
    try:
        found = history.build(rows, most_chars=most_chars)
    except history.TooLong:
        return
    assert faults(found.lines) == []


@settings(max_examples=800, deadline=None)
@given(chats(), st.integers(min_value=1, max_value=600))
def test_a_window_is_cut_only_before_a_persons_message_and_keeps_the_newest(rows: list[Row], most_chars: int) -> None:
    whole = history.build(rows, most_chars=1_000_000)
    try:
        found = history.build(rows, most_chars=most_chars)
    except history.TooLong:
        return
    if not found.is_cut:
        assert found.lines == whole.lines
        return
    if rows and found.lines:
        starts = [row.content or history._NO_TEXT for row in rows if row.role == "user"]
        first = found.lines[0]
        assert isinstance(first, Said)
        assert any(first.text.startswith(start) for start in starts)
        if rows[0].number == 1:
            assert sum(map(history._line_chars, found.lines)) <= most_chars + 2 * len(rows) + len(history._GO_ON)


def test_a_card_that_is_decided_between_two_calls_comes_after_both_results() -> None:
    rows = [
        Row(1, "user", "Do both"),
        Row(2, "assistant", tool_calls=[call("a"), call("b")]),
        Row(3, "tool", tool_call_id="a", tool_result={"text": "held"}),
        Row(4, "notice", code="confirmed", tool_result={"text": "The person confirmed."}),
        Row(5, "tool", tool_call_id="b", tool_result={"text": "found"}),
    ]
    assert history.build(rows, most_chars=1_000).lines == (
        Said(text="Do both"),
        Proposed(
            calls=(ToolCall(id="a", name="shop_run", arguments="{}"), ToolCall(id="b", name="shop_run", arguments="{}"))
        ),
        Resulted(call_id="a", name="shop_run", text="held"),
        Resulted(call_id="b", name="shop_run", text="found"),
        Said(text="The person confirmed."),
    )


def test_a_stop_between_a_call_and_its_result_closes_the_call() -> None:
    rows = [
        Row(1, "user", "Look"),
        Row(2, "assistant", "Let me see", tool_calls=[call("a")]),
        Row(3, "notice", "Stopped.", code="stopped"),
        Row(4, "user", "And now?"),
    ]
    lines = history.build(rows, most_chars=1_000).lines
    assert lines[2] == Resulted(call_id="a", name="shop_run", text=results.INTERRUPTED)
    assert lines[3] == Said(text="(Server: your answer ended here, code stopped.)\n\nAnd now?")


def test_the_oldest_results_of_a_long_turn_are_left_out_first() -> None:
    rows = [Row(1, "user", "Go")]
    for number in range(4):
        rows.append(Row(len(rows) + 1, "assistant", tool_calls=[call(f"c{number}")]))
        rows.append(Row(len(rows) + 1, "tool", tool_call_id=f"c{number}", tool_result={"text": "x" * 1_000}))
    found = history.build(rows, most_chars=2_600)
    told = [line.text for line in found.lines if isinstance(line, Resulted)]
    assert (told[:2], told[2:]) == ([results.LEFT_OUT] * 2, ["x" * 1_000] * 2)
    assert found.is_cut


def test_a_text_that_does_not_fit_is_refused() -> None:
    with pytest.raises(history.TooLong):
        history.build([Row(1, "user", "x" * 100)], most_chars=99)


def test_what_is_told_as_data_can_always_be_read_as_json() -> None:
    assert json.loads(results.INTERRUPTED)["outcome"] == "interrupted"
    assert json.loads(results.LEFT_OUT)["outcome"] == "left_out"


def call(key: str) -> dict[str, str]:
    return {"id": key, "name": "shop_run", "arguments": "{}"}
