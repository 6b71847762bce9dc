"""The demo model: what it makes of sentences and commands, about tools that it knows by their schemas alone."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from apps.agent import results as outcomes
from apps.agent.demo import model, telling
from apps.agent.providers.protocol import Ask, Line, Piece, Proposed, Resulted, Said, Text, ToolCall, ToolOffer, Usage
from apps.api import registry
from apps.api.call import Answer

ISBN = {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$", "examples": ["BK0001"], "description": "The book's number."}
CONTROL = {"dry_run": {"type": "boolean"}, "confirm_token": {"type": "string"}, "idempotency_key": {"type": "string"}}


def offer(
    name: str, description: str, properties: dict[str, Any], *, required: Sequence[str] = (), **more: Any
) -> ToolOffer:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolOffer(name=name, description=description, schema=schema, **more)


# A module that nobody wrote the model for.
LIBRARY = [
    offer("library_list_books", "Books by their title.", {"query": {"type": "string"}, "is_lent": {"type": "boolean"}}),
    offer("library_get_book", "One book and its fee.", {"isbn": ISBN}, required=["isbn"]),
    offer(
        "library_set_fees",
        "Set the fees of books.",
        {
            "books": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"isbn": ISBN, "fee": {"type": "number"}},
                    "required": ["isbn", "fee"],
                },
            },
            **CONTROL,
        },
        required=["books"],
        is_write=True,
    ),
    offer("library_remove_book", "Remove a book.", {"isbn": ISBN, **CONTROL}, required=["isbn"], is_write=True),
    offer(
        "library_create_reader",
        "Create a reader.",
        {"name": {"type": "string", "description": "Their name."}, "age": {"type": "integer"}, **CONTROL},
        required=["name"],
        is_write=True,
    ),
]


def shop() -> list[ToolOffer]:
    tools = (tool for tool in registry.current().of("admin") if tool.module.key == "catalogue")
    return [
        ToolOffer(name=one.alias, description=str(one.description), schema=one.input_schema, is_write=one.is_write)
        for one in tools
    ]


def talk(text: str, tools: Sequence[ToolOffer], *results: Any) -> model.Reply:
    """What is answered after each round of calls came to the next result."""
    history: list[Line] = [Said(text=text)]
    said = model.reply(Ask(instructions="", history=history, tools=tools))
    for result in results:
        history += [Proposed(text=said.text, calls=said.calls)]
        outcome = Answer(result=result, body=json.dumps(result).encode(), outcome="ok")
        shown = outcomes.of("x", outcome, most_chars=8_000).told
        history += [Resulted(call_id=call.id, name=call.name, text=shown) for call in said.calls]
        said = model.reply(Ask(instructions="", history=history, tools=tools))
    return said


def calls(reply: model.Reply) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in reply.calls]


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("Which lamps are out of stock?", "list_products", {"category": "lamps", "in_stock": False}),
        (
            "show lamps under 20 in stock",
            "list_products",
            {"category": "lamps", "in_stock": True, "max_price": "20.00"},
        ),
        ("Which chairs cost more than 100?", "list_products", {"query": "chair", "min_price": "100.00"}),
        ("find products called Alder", "list_products", {"query": "Alder"}),
        ('search products for "desk lamp"', "list_products", {"query": "desk lamp"}),
        ("show the first 5 products", "list_products", {"limit": 5}),
        ("what is the price of LMP-0002?", "get_product", {"sku": "LMP-0002"}),
        ("raise the price of SKU LMP-0002 by 5 %", "get_product", {"sku": "LMP-0002"}),
        (
            "set the price of LMP-0002 to 19,90",
            "update_prices",
            {"changes": [{"sku": "LMP-0002", "price": "19.90"}]},
        ),
        ("take 3 from the stock of LMP-0002", "adjust_stock", {"changes": [{"sku": "LMP-0002", "delta": -3}]}),
        ("add 5 to the stock of LMP-0002", "adjust_stock", {"changes": [{"sku": "LMP-0002", "delta": 5}]}),
        ("delete LMP-0001 and LMP-0002", "delete_products", {"skus": ["LMP-0001", "LMP-0002"]}),
        ("/catalogue.list_products query=lamp", "list_products", {"query": "lamp"}),
        (
            '/tool catalogue_list_products query="desk lamp" limit=5',
            "list_products",
            {"query": "desk lamp", "limit": 5},
        ),
        ("/catalogue_delete_products skus=LMP-0001,LMP-0002", "delete_products", {"skus": ["LMP-0001", "LMP-0002"]}),
        ("/catalogue_list_products in_stock=no", "list_products", {"in_stock": False}),
        (
            '/catalogue_update_prices changes=[{"sku": "LMP-0002", "price": "19.90"}] reason="two words"',
            "update_prices",
            {"changes": [{"sku": "LMP-0002", "price": "19.90"}], "reason": "two words"},
        ),
    ],
)
def test_a_sentence_or_a_command_calls_the_tool_of_the_shop(text: str, tool: str, arguments: Any) -> None:
    assert calls(talk(text, shop())) == [(f"catalogue_{tool}", arguments)]


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("which books are not lent?", "list_books", {"is_lent": False}),
        ("show book BK0002", "get_book", {"isbn": "BK0002"}),
        ("set the fee of BK0002 to 3", "set_fees", {"books": [{"isbn": "BK0002", "fee": 3.0}]}),
        ("please remove the book BK0002", "remove_book", {"isbn": "BK0002"}),
        ("/library.create_reader name=Reader age=41", "create_reader", {"name": "Reader", "age": 41}),
    ],
)
def test_a_module_it_has_never_seen_works_by_its_words(text: str, tool: str, arguments: Any) -> None:
    assert calls(talk(text, LIBRARY)) == [(f"library_{tool}", arguments)]


@pytest.mark.parametrize(("change", "price"), [("raise", "20.90"), ("lower", "18.91")])
def test_a_change_by_per_cent_is_reckoned_from_what_it_is_now(change: str, price: str) -> None:
    said = talk(f"{change} the price of LMP-0002 by 5 %", shop(), {"sku": "LMP-0002", "price": "19.90"})
    assert calls(said) == [("catalogue_update_prices", {"changes": [{"sku": "LMP-0002", "price": price}]})]


def test_two_things_are_read_first_and_changed_together() -> None:
    history: list[Line] = [Said(text="raise the fee of BK0001 and BK0002 by 2")]
    said = model.reply(Ask(instructions="", history=history, tools=LIBRARY))
    assert calls(said) == [("library_get_book", {"isbn": "BK0001"}), ("library_get_book", {"isbn": "BK0002"})]
    history += [Proposed(calls=said.calls)]
    for call, fee in zip(said.calls, (1, 2.5), strict=True):
        history += [Resulted(call_id=call.id, name=call.name, text=f"Found: {json.dumps({'fee': fee})}")]
    then = model.reply(Ask(instructions="", history=history, tools=LIBRARY))
    books = [{"isbn": "BK0001", "fee": 3.0}, {"isbn": "BK0002", "fee": 4.5}]
    assert calls(then) == [("library_set_fees", {"books": books})]


def test_a_held_write_is_left_to_the_card() -> None:
    held = {"status": "confirmation_required", "confirmation_id": "x", "preview": {"summary": "1 book goes"}}
    said = talk("remove book BK0002", LIBRARY, held)
    assert not said.calls
    assert "1 book goes" in said.text
    assert "card" in said.text


@pytest.mark.parametrize(
    ("note", "text"),
    [
        (
            "confirmed it, and it ran. Its outcome: " + json.dumps({"outcome": "ok", "data": {"removed": 1}}),
            "removed: 1",
        ),
        ("rejected it: it did not run.", "leave it as it is"),
        ("confirmed it; what came of it is not known: look before you propose it again.", "look before you repeat"),
        (
            "confirmed it, but it was refused and did not run. Its outcome: "
            + json.dumps({"outcome": "gone", "data": {"status": 404, "code": "gone", "detail": "It is gone."}}),
            "It is gone",
        ),
    ],
)
def test_what_became_of_a_card_is_told_and_nothing_is_called_again(note: str, text: str) -> None:
    history: list[Line] = [Said(text="remove book BK0002"), Proposed(text="Please look at the card.")]
    history += [Said(text=f"(Server: about your call demo-1-0 of library.remove_book: the person {note})")]
    said = model.reply(Ask(instructions="", history=history, tools=LIBRARY))
    assert not said.calls
    assert text in said.text


def test_what_the_server_adds_is_no_part_of_the_persons_text() -> None:
    text = "(Server: your answer ended here, code stopped.)\n\nshow book BK0002"
    assert calls(talk(text, LIBRARY)) == [("library_get_book", {"isbn": "BK0002"})]


def test_a_refusal_is_told_with_its_faults() -> None:
    errors = [{"pointer": "/isbn", "message": "unknown"}]
    said = talk(
        "remove book BK0002", LIBRARY, {"status": 422, "code": "x", "detail": "No such book.", "errors": errors}
    )
    assert not said.calls
    assert "No such book" in said.text
    assert "`/isbn`" in said.text


def test_a_read_that_is_refused_proposes_no_change() -> None:
    said = talk("raise the fee of BK0001 by 5 %", LIBRARY, {"status": 404, "code": "not_found", "detail": "Gone."})
    assert not said.calls
    assert "Gone" in said.text


def test_rows_become_a_table_in_which_nothing_is_markup() -> None:
    rows = [{"title": "<b>*x*</b> | [y](http://example.org)", "fee": 1, "created_at": "2026"}]
    text = talk("which books are lent?", LIBRARY, {"books": rows, "count": 30, "next": None}).text
    assert "I found 30 books. The first 1:" in text
    assert r"\<b\>\*x\*\</b\> \| \[y\]\(http://example.org\)" in text
    assert "created" not in text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"books": []}, "I found no books."),
        ({"books": [{"title": "one"}]}, "I found 1 book:"),
        ({"title": "one", "lent": True, "note": None}, "- lent: yes"),
        ({}, "It is done."),
        ({"parts": [1, 2]}, "It is done."),
    ],
)
def test_every_other_result_is_told_too(result: Any, text: str) -> None:
    assert text in talk("which books are lent?", LIBRARY, result).text


def test_a_cut_result_is_said_to_be_too_long() -> None:
    assert "too long" in telling.result(telling.data('{"books": [{"title": "on'), tool="library_list_books")
    assert (
        telling.result(telling.data("no JSON"), tool="x") == "`x` answered, but its answer was too long to read here."
    )


@pytest.mark.parametrize("text", ["hello", "", "what is the weather like?", "?!", "💡", "delete everything"])
def test_what_it_does_not_understand_is_answered_with_what_it_can_do_and_calls_nothing(text: str) -> None:
    said = talk(text, shop())
    assert not said.calls
    assert "/catalogue_" in said.text


def test_a_result_that_came_to_nothing_or_was_cut_is_told_as_that() -> None:
    fault = outcomes.fault("x", "arguments_invalid", "The arguments are no JSON object.").told
    assert "The arguments are no JSON object." in telling.result(telling.data(fault), tool="x")
    assert "before this call had a result" in telling.result(telling.data(outcomes.INTERRUPTED), tool="x")
    long = outcomes.of("x", Answer(result={}, body=b'{"rows": [1, 2, 3]}', outcome="ok"), most_chars=5).told
    assert "too long" in telling.result(telling.data(long), tool="x")


def test_whoever_may_do_nothing_is_told_so() -> None:
    assert talk("hello", []).text == "There is nothing that I may look up or change for you here."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("/nope x=1", "There is no tool `nope`"),
        ("/tool", "Name a tool"),
        ("/library_get_book", "also needs `isbn`"),
        ("/library_get_book isbn", "Write `key=value`"),
        ("/library_get_book name=x", "has no field `name`"),
        ("/library_create_reader name=x dry_run=true", "has no field `dry_run`"),
        ("/library_create_reader name=x age=old", "must be of the type integer"),
        ('/library_get_book isbn="x', "not closed"),
        ("/library_set_fees books=[1", "`books` must be JSON that is closed"),
        ("/library_set_fees books=1,x", "must be of the type array"),
    ],
)
def test_a_command_that_is_wrong_says_what_is_wrong_and_calls_nothing(text: str, fault: str) -> None:
    said = talk(text, LIBRARY)
    assert not said.calls
    assert fault in said.text


def test_a_command_that_was_refused_is_told_and_not_repeated() -> None:
    said = talk("/library_get_book isbn=BK0001", LIBRARY, {"status": 404, "code": "not_found", "detail": "Gone."})
    assert not said.calls
    assert "Gone" in said.text


def test_what_is_missing_is_asked_for_by_its_description() -> None:
    said = talk("create a new reader", LIBRARY)
    assert not said.calls
    assert "`name`: Their name." in said.text.replace("\\", "")


async def streamed(ask: Ask) -> list[Piece]:
    found = model.DemoModel()
    try:
        return [piece async for piece in found.answer(ask)]
    finally:
        await found.close()


def test_the_answer_comes_in_pieces_and_ends_with_its_calls_and_no_tokens() -> None:
    pieces = asyncio.run(streamed(Ask(instructions="", history=[Said(text="show book BK0001")], tools=LIBRARY)))
    assert "".join(piece.text for piece in pieces if isinstance(piece, Text)) == "Let me look that up."
    assert len([piece for piece in pieces if isinstance(piece, Text)]) > 1
    assert [piece.name for piece in pieces if isinstance(piece, ToolCall)] == ["library_get_book"]
    assert pieces[-1] == Usage()
