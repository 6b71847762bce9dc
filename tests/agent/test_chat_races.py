"""Several who change, read or write one chat at the same moment, each with a connection of their own; and a chat of 100,000 messages."""

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.agent import conversations
from apps.agent.models import Conversation, Message
from apps.api.problems import Problem
from tests.agent.factories import make_chat, make_person
from tests.api.person import Person
from tests.api.together import at_once

pytestmark = [pytest.mark.alone, pytest.mark.django_db(transaction=True)]

Change = Callable[[Person, Conversation], object]


def rename(person: Person, chat: Conversation) -> object:
    return conversations.rename_conversation(person.ref, chat.pk, "Renamed", impersonated=False)


def archive(person: Person, chat: Conversation) -> object:
    return conversations.archive_conversation(person.ref, chat.pk, impersonated=False)


def unarchive(person: Person, chat: Conversation) -> object:
    return conversations.unarchive_conversation(person.ref, chat.pk, impersonated=False)


def delete(person: Person, chat: Conversation) -> object:
    return conversations.delete_conversation(person.ref, chat.pk, impersonated=False)


def restore(person: Person, chat: Conversation) -> object:
    return conversations.restore_conversation(person.ref, chat.pk, impersonated=False)


def write(person: Person, chat: Conversation) -> object:
    return conversations.add_message(person.ref, chat.pk, {"content": "Hello."}, impersonated=False)


def outcome(change: Change, person: Person, chat: Conversation) -> str:
    try:
        change(person, chat)
    except Problem as problem:
        return problem.code
    return "ok"


def race(person: Person, chat: Conversation, *changes: Change) -> list[str]:
    return at_once(*[lambda change=change: outcome(change, person, chat) for change in changes])


@pytest.mark.sqlite
def test_20_parallel_messages_are_numbered_1_to_20_without_a_gap_or_a_double() -> None:
    person = make_person()
    chat = make_chat(person.user)
    assert race(person, chat, *[write] * 20) == ["ok"] * 20
    chat.refresh_from_db()
    numbers = Message.objects.filter(conversation=chat).order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, 21))
    assert chat.message_count == 20


@pytest.mark.sqlite
def test_of_12_who_delete_one_does_and_of_12_who_restore_one_does() -> None:
    person = make_person()
    chat = make_chat(person.user)
    assert sorted(race(person, chat, *[delete] * 12)) == ["not_found"] * 11 + ["ok"]
    assert sorted(race(person, chat, *[restore] * 12)) == ["not_found"] * 11 + ["ok"]


@pytest.mark.sqlite
@pytest.mark.parametrize("other", [rename, archive, unarchive, write])
def test_what_comes_beside_a_delete_never_brings_the_chat_back(other: Change) -> None:
    person = make_person()
    for _ in range(8):
        chat = make_chat(person.user, title="Before")
        results = race(person, chat, delete, other, other, other)
        chat.refresh_from_db()
        assert results[0] == "ok"
        assert set(results[1:]) <= {"ok", "not_found"}
        assert (chat.status, chat.deleted_at is None) == ("deleted", False)
        assert chat.message_count == Message.objects.filter(conversation=chat).count()


@pytest.mark.parametrize(("one", "two"), list(combinations([rename, archive, delete, restore, write], 2)))
def test_whatever_comes_together_leaves_a_chat_that_one_order_of_them_would_have_left(one: Change, two: Change) -> None:
    person = make_person()
    for _ in range(4):
        chat = make_chat(person.user, title="Before")
        results = race(person, chat, one, two)
        chat.refresh_from_db()
        assert set(results) <= {"ok", "not_found"}
        assert (state(chat), results) in possible(person, one, two)


def possible(person: Person, one: Change, two: Change) -> list[tuple[Any, list[str]]]:
    """What the two orders leave and answer."""
    found = []
    for first, second in ((one, two), (two, one)):
        chat = make_chat(person.user, title="Before")
        answers = {change: outcome(change, person, chat) for change in (first, second)}
        chat.refresh_from_db()
        found.append((state(chat), [answers[one], answers[two]]))
    return found


def state(chat: Conversation) -> tuple[Any, ...]:
    return chat.title, chat.status, chat.status_before, chat.deleted_at is None, chat.message_count


def test_a_page_read_beside_writers_has_no_gap_that_is_filled_later() -> None:
    """Number order is commit order: whoever reads up to a number has everything before it."""
    person = make_person()
    chat = make_chat(person.user)
    pages: list[list[int]] = []

    def read() -> None:
        for _ in range(15):
            found = conversations.list_messages(person.ref, chat.pk, impersonated=False, limit=200)
            pages.append([row["number"] for row in found])

    at_once(*[lambda: [outcome(write, person, chat) for _ in range(4)]] * 6, read, read)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in pages)


# --- A very long chat -----------------------------------------------------------------------------------------------------------------

LONG = 100_000


@pytest.fixture
def long_chat() -> tuple[Person, Conversation]:
    """Of 100,000 messages, beside another one as long, with what the planner knows of them."""
    person = make_person()
    chat, other = make_chat(person.user), make_chat(person.user)
    for row in (other, chat):
        key = row._meta.pk.get_db_prep_value(row.pk, connection)
        moment = connection.ops.adapt_datetimefield_value(timezone.now())
        with connection.cursor() as cursor:
            cursor.execute(_FILL[connection.vendor], [key, moment, LONG])
            cursor.execute("ANALYZE agent_message" if connection.vendor == "postgresql" else "ANALYZE")
        row.message_count = LONG
        row.save(update_fields=["message_count"])
    return person, chat


_COLUMNS = "uuid, conversation_id, number, version, role, content, live, code, tool_calls, tool_call_id, created_at"
_FILL = {
    "postgresql": f"INSERT INTO agent_message ({_COLUMNS})"
    " SELECT gen_random_uuid(), %s, n, 1, 'assistant', 'Text ' || n, false, '', '[]', '', %s FROM generate_series(1, %s) n",
    "sqlite": f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {LONG})"
    f" INSERT INTO agent_message ({_COLUMNS})"
    " SELECT lower(hex(randomblob(16))), %s, n, 1, 'assistant', 'Text ' || n, 0, '', '[]', '', %s FROM numbers LIMIT %s",
}


@pytest.mark.sqlite
def test_every_page_of_a_chat_of_100000_messages_reads_no_more_than_the_page(
    long_chat: tuple[Person, Conversation],
) -> None:
    person, chat = long_chat
    middle = Message.objects.get(conversation=chat, number=LONG // 2).pk
    for options, numbers in (
        ({}, range(1, 51)),
        ({"after": middle}, range(LONG // 2 + 1, LONG // 2 + 51)),
        ({"before": middle}, range(LONG // 2 - 50, LONG // 2)),
        ({"latest": True}, range(LONG - 49, LONG + 1)),
    ):
        with CaptureQueriesContext(connection) as captured:
            page = conversations.list_messages(person.ref, chat.pk, impersonated=False, **options)
        assert [row["number"] for row in page] == list(numbers)
        statements = [row["sql"] for row in captured.captured_queries if 'FROM "agent_message"' in row["sql"]]
        assert len(statements) in (1, 2)
        for statement in statements:
            _must_seek(statement)


def _must_seek(statement: str) -> None:
    """By an index, without sorting, and without reading rows that are not on the page."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
            steps = [row[3] for row in cursor.fetchall()]
            assert all(step.startswith("SEARCH") for step in steps), steps
            return
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        found = cursor.fetchone()[0]
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    for node in _nodes(plan):
        assert node["Node Type"] in ("Limit", "Index Scan", "Index Only Scan"), node
        assert node["Actual Rows"] <= 50
        assert node.get("Rows Removed by Filter", 0) == 0


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for part in plan.get("Plans", []) for node in _nodes(part))]


def test_a_page_of_a_person_with_5000_chats_is_read_in_the_order_of_an_index() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    person, now = make_person(), timezone.now()
    for owner, count in ((person.user, 5_000), (make_person().user, 5_000)):
        moments = [now - timedelta(seconds=number // 3) for number in range(count)]
        Conversation.objects.bulk_create(Conversation(user=owner, created_at=at, last_message_at=at) for at in moments)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE agent_conversation")
    cursor_of_page: str | None = None
    for _ in range(3):
        with CaptureQueriesContext(connection) as captured:
            page = conversations.list_conversations(person.ref, impersonated=False, cursor=cursor_of_page)
        (statement,) = [row["sql"] for row in captured.captured_queries if 'FROM "agent_conversation"' in row["sql"]]
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
            plan = cursor.fetchone()[0][0]["Plan"]
        for node in _nodes(plan):
            assert node["Node Type"] in ("Limit", "Index Scan"), node
            # At most those of the very same moment.
            assert node["Actual Rows"] <= 21
            assert node.get("Rows Removed by Filter", 0) <= 3
        cursor_of_page = page["next_cursor"]
        assert len(page["conversations"]) == 20
