"""Chats by the checked functions: what each takes, changes and answers, and to whom (CH-2, CH-3)."""

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
import time_machine
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import LiveSession
from apps.accounts.sessions import SessionRef
from apps.agent import conversations, shapes
from apps.agent.models import Conversation, Message
from apps.api.problems import Problem
from tests.accounts.factories import make_live_session, make_user
from tests.agent.factories import (
    make_chat,
    make_message,
    make_messages,
    make_person,
    make_tool_message,
)
from tests.api.factories import revoke, set_setting
from tests.api.person import Person

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

Status = Conversation.Status
NO: dict[str, Any] = {"impersonated": False}

# Every function of a session, as a call for a person and one chat of somebody's.
DOORS: Mapping[str, Callable[[object, Any, Any], Any]] = {
    "authorize_session": lambda ref, chat, message: conversations.authorize_session(ref, **NO),
    "create_conversation": lambda ref, chat, message: conversations.create_conversation(ref, {"title": "x"}, **NO),
    "list_conversations": lambda ref, chat, message: conversations.list_conversations(ref, **NO),
    "search": lambda ref, chat, message: conversations.search(ref, "words", **NO),
    "get_conversation": lambda ref, chat, message: conversations.get_conversation(ref, chat, **NO),
    "describe_conversation": lambda ref, chat, message: conversations.describe_conversation(ref, chat, **NO),
    "get_message": lambda ref, chat, message: conversations.get_message(ref, chat, message, **NO),
    "list_messages": lambda ref, chat, message: conversations.list_messages(ref, chat, **NO),
    "add_message": lambda ref, chat, message: conversations.add_message(ref, chat, {"content": "Hello."}, **NO),
    "rename_conversation": lambda ref, chat, message: conversations.rename_conversation(ref, chat, "Other", **NO),
    "archive_conversation": lambda ref, chat, message: conversations.archive_conversation(ref, chat, **NO),
    "unarchive_conversation": lambda ref, chat, message: conversations.unarchive_conversation(ref, chat, **NO),
    "delete_conversation": lambda ref, chat, message: conversations.delete_conversation(ref, chat, **NO),
    "restore_conversation": lambda ref, chat, message: conversations.restore_conversation(ref, chat, **NO),
    "subscribe": lambda ref, chat, message: conversations.subscribe(ref, chat, **NO),
}
OF_ONE_CHAT = [
    name for name in DOORS if name not in ("authorize_session", "create_conversation", "list_conversations", "search")
]


def problem_of(call: Callable[[], Any]) -> Problem:
    with pytest.raises(Problem) as caught:
        call()
    return caught.value


def code_of(call: Callable[[], Any]) -> str:
    return problem_of(call).code


def titles(page: conversations.ChatPage) -> list[str]:
    return [chat["title"] for chat in page["conversations"]]


def written(chat: Conversation) -> tuple[Any, ...]:
    """Everything of the chat's rows."""
    row = Conversation.objects.filter(pk=chat.pk).values().first()
    return row, list(Message.objects.filter(conversation=chat).order_by("number").values_list("pk", "content"))


# --- Who may --------------------------------------------------------------------------------------------------------------------------


def test_every_function_of_a_session_is_among_the_doors_that_are_tried_here() -> None:
    functions = {
        name
        for name, function in inspect.getmembers(conversations, inspect.isfunction)
        if function.__module__ == conversations.__name__
        and not name.startswith("_")
        and "ref" in inspect.signature(function).parameters
    }
    assert functions == set(DOORS)


@pytest.mark.parametrize("name", DOORS)
def test_no_function_has_a_default_for_the_impersonation(name: str) -> None:
    parameter = inspect.signature(getattr(conversations, name)).parameters["impersonated"]
    assert (parameter.kind, parameter.default) == (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty)
    assert next(iter(inspect.signature(getattr(conversations, name)).parameters)) == "ref"


@pytest.mark.parametrize("name", DOORS)
def test_an_impersonated_call_reads_and_writes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    person = make_person()
    chat = make_chat(person.user)
    message = make_message(chat)
    before = written(chat)
    monkeypatch.setitem(NO, "impersonated", True)
    with django_assert_num_queries(0):
        assert code_of(lambda: DOORS[name](person.ref, chat.pk, message.pk)) == "impersonated"
    assert written(chat) == before


@pytest.mark.parametrize("name", DOORS)
def test_an_operator_who_looks_as_the_person_is_refused_by_the_sessions_own_row(name: str) -> None:
    person = make_person()
    chat = make_chat(person.user)
    message = make_message(chat)
    before = written(chat)
    looking = make_live_session(person.user, impersonator=make_user(is_superuser=True, is_staff=True))
    ref = SessionRef(looking.pk, person.user.pk)
    assert code_of(lambda: DOORS[name](ref, chat.pk, message.pk)) == "impersonated"
    assert written(chat) == before


def end_session(person: Person) -> None:
    LiveSession.objects.filter(pk=person.session.pk).update(ended_at=timezone.now(), end_reason="signed_out")


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize(
    ("close", "code"),
    [
        (end_session, "unauthorized"),
        (lambda person: revoke(person.user, "agent.use_assistant"), "forbidden"),
        (lambda person: set_setting("disabled_modules", ["agent"]), "forbidden"),
    ],
    ids=["signed out", "without the permission", "module off"],
)
def test_what_closes_the_assistant_closes_every_function_and_nothing_is_written(
    name: str, close: Callable[[Person], None], code: str
) -> None:
    person = make_person()
    chat = make_chat(person.user)
    message = make_message(chat)
    before = written(chat)
    close(person)
    assert code_of(lambda: DOORS[name](person.ref, chat.pk, message.pk)) == code
    assert (written(chat), Conversation.objects.count()) == (before, 1)


@pytest.mark.parametrize("name", OF_ONE_CHAT)
def test_the_chat_of_another_is_as_one_that_is_not_there_for_every_function(name: str) -> None:
    person, owner = make_person(is_superuser=True), make_person()
    theirs = make_chat(owner.user, title="Theirs")
    message = make_message(theirs)
    before = written(theirs)
    found = {_words(partial(DOORS[name], person.ref, odd, message.pk)) for odd in (theirs.pk, uuid4(), "odd", None, 4)}
    assert found == {("not_found", 404, "Not found.", "{}", "{}")}
    assert written(theirs) == before


@pytest.mark.parametrize("name", [name for name in OF_ONE_CHAT if name != "restore_conversation"])
def test_a_deleted_chat_is_gone_for_every_function_but_the_one_that_takes_it_back(name: str) -> None:
    person = make_person()
    chat = make_chat(person.user, status=Status.DELETED)
    message = make_message(chat)
    before = written(chat)
    assert code_of(lambda: DOORS[name](person.ref, chat.pk, message.pk)) == "not_found"
    assert written(chat) == before


def _words(call: Callable[[], Any]) -> tuple[str, int, str, str, str]:
    problem = problem_of(call)
    return problem.code, problem.kind.status, problem.detail, str(problem.context), str(problem.headers)


def test_the_first_check_that_fails_is_the_answer() -> None:
    person, theirs = make_person(), make_chat(make_person().user)
    revoke(person.user, "agent.use_assistant")
    assert code_of(lambda: conversations.get_conversation(person.ref, theirs.pk, impersonated=False)) == "forbidden"
    end_session(person)
    assert code_of(lambda: conversations.get_conversation(person.ref, theirs.pk, impersonated=False)) == "unauthorized"
    assert code_of(lambda: conversations.get_conversation(person.ref, theirs.pk, impersonated=True)) == "impersonated"


def test_authorize_session_answers_whose_session_it_is() -> None:
    person = make_person()
    assert conversations.authorize_session(person.ref, impersonated=False) == person.user.pk


# --- Making, listing ------------------------------------------------------------------------------------------------------------------


def test_a_new_chat_is_empty_active_and_its_makers_whatever_else_was_asked_for() -> None:
    person, other = make_person(), make_person()
    asked = {
        "title": " Lamps ",
        "status": "deleted",
        "user": other.user.pk,
        "user_id": other.user.pk,
        "message_count": 7,
    }
    shape = conversations.create_conversation(person.ref, asked, impersonated=False)
    row = Conversation.objects.get(pk=shape["uuid"])
    assert (row.user_id, row.status, row.title, row.message_count) == (person.user.pk, Status.ACTIVE, "Lamps", 0)
    assert row.last_message_at == row.created_at


@pytest.mark.parametrize("attrs", [None, {}, {"title": None}])
def test_a_chat_needs_no_title(attrs: Any) -> None:
    assert conversations.create_conversation(make_person().ref, attrs, impersonated=False)["title"] == ""


def test_a_chat_has_the_members_of_the_specification_and_no_other() -> None:
    shape = conversations.create_conversation(make_person().ref, impersonated=False)
    assert set(shape) == {"uuid", "title", "status", "message_count", "last_message_at", "created_at"}


def test_the_list_has_ones_own_active_chats_the_newest_message_first() -> None:
    person, now = make_person(), timezone.now()
    for title, minutes, status in (
        ("old", 30, Status.ACTIVE),
        ("new", 10, Status.ACTIVE),
        ("put away", 5, Status.ARCHIVED),
        ("gone", 4, Status.DELETED),
    ):
        make_chat(person.user, title=title, status=status, created_at=now - timedelta(minutes=minutes))
    make_chat(make_person().user, title="theirs")
    make_chat(person.user, title="just begun, and empty")
    page = conversations.list_conversations(person.ref, impersonated=False)
    assert titles(page) == ["just begun, and empty", "new", "old"]
    assert page["next_cursor"] is None


def test_a_message_brings_its_chat_to_the_top_of_the_list() -> None:
    person, now = make_person(), timezone.now()
    first = make_chat(person.user, title="first", created_at=now - timedelta(hours=2))
    make_chat(person.user, title="second", created_at=now - timedelta(hours=1))
    conversations.add_message(person.ref, first.pk, {"content": "Again."}, impersonated=False)
    assert titles(conversations.list_conversations(person.ref, impersonated=False)) == ["first", "second"]


def test_the_list_comes_in_pages_of_20_and_at_most_50_and_each_chat_once() -> None:
    person, now = make_person(), timezone.now()
    for number in range(75):
        # Five at a time have the very same moment.
        make_chat(person.user, title=str(number), created_at=now - timedelta(minutes=number // 5))
    first = conversations.list_conversations(person.ref, impersonated=False)
    assert (len(first["conversations"]), first["next_cursor"] is None) == (20, False)
    seen, cursor = titles(first), first["next_cursor"]
    while cursor is not None:
        page = conversations.list_conversations(person.ref, impersonated=False, cursor=cursor, limit=7)
        seen, cursor = [*seen, *titles(page)], page["next_cursor"]
    assert len(seen) == 75 == len(set(seen))
    assert [int(title) // 5 for title in seen] == sorted(int(title) // 5 for title in seen)
    assert len(conversations.list_conversations(person.ref, impersonated=False, limit=500)["conversations"]) == 50


def test_the_last_page_that_is_exactly_full_has_no_cursor() -> None:
    person = make_person()
    for _ in range(3):
        make_chat(person.user)
    assert conversations.list_conversations(person.ref, impersonated=False, limit=3)["next_cursor"] is None


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "bnVsbA==", "WzFd", "W10=", "eyJhIjoxfQ==", "WyIyMDI2LTExLTMwVDEyOjAwOjAwIiwgIngiXQ==", "é", "W" * 5000, 7],
)  # fmt: skip
def test_what_is_no_cursor_is_refused(cursor: Any) -> None:
    call = lambda: conversations.list_conversations(make_person().ref, impersonated=False, cursor=cursor)  # noqa: E731
    assert (code_of(call), problem_of(call).kind.status) == ("invalid_cursor", 422)


@pytest.mark.usefixtures("_prepared")
def test_a_list_costs_the_checks_and_one_query_however_many_chats_there_are(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    person = make_person()
    for _ in range(30):
        make_message(make_chat(person.user))
    for limit in (1, 25):
        with django_assert_num_queries(4):
            conversations.list_conversations(person.ref, impersonated=False, limit=limit)


# --- Reading --------------------------------------------------------------------------------------------------------------------------


def page(person: Person, chat: Conversation, **options: Any) -> list[int]:
    """The numbers of the messages on a page."""
    return [row["number"] for row in conversations.list_messages(person.ref, chat.pk, impersonated=False, **options)]


def test_messages_come_oldest_first_from_either_end_and_between() -> None:
    person = make_person()
    chat = make_chat(person.user)
    rows = make_messages(chat, 260)
    assert page(person, chat) == list(range(1, 51))
    assert page(person, chat, limit=1_000) == list(range(1, 201))
    assert page(person, chat, after=rows[49].pk) == list(range(51, 101))
    assert page(person, chat, after=str(rows[257].pk)) == [259, 260]
    assert page(person, chat, latest=True, limit=3) == [258, 259, 260]
    assert page(person, chat, before=rows[257].pk, limit=3) == [255, 256, 257]
    assert page(person, chat, before=rows[0].pk) == page(person, chat, after=rows[-1].pk) == []


def test_a_cursor_must_be_a_message_of_this_chat_and_the_only_one() -> None:
    person = make_person()
    chat, other = make_chat(person.user), make_chat(person.user)
    mine, foreign = make_message(chat).pk, make_message(other).pk
    odd: list[dict[str, Any]] = [
        {"after": foreign}, {"before": foreign}, {"after": uuid4()}, {"after": "x"}, {"before": ""}, {"after": 3},
        {"after": mine, "before": mine}, {"after": mine, "latest": True}, {"before": mine, "latest": True},
    ]  # fmt: skip
    codes = {code_of(partial(page, person, chat, **options)) for options in odd}
    assert codes == {"invalid_cursor"}


@pytest.mark.usefixtures("_prepared")
@pytest.mark.parametrize(
    ("options", "queries"), [({}, 5), ({"latest": True}, 5), ({"after": 0}, 6), ({"before": 299}, 6)]
)
def test_a_page_costs_the_same_few_queries_in_a_long_chat_as_in_a_short_one(
    options: dict[str, Any], queries: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    person = make_person()
    chat = make_chat(person.user)
    rows = make_messages(chat, 300)
    given = {name: rows[at].pk if name != "latest" else at for name, at in options.items()}
    for limit in (1, 200):
        with django_assert_num_queries(queries):
            conversations.list_messages(person.ref, chat.pk, impersonated=False, limit=limit, **given)


@pytest.mark.usefixtures("_prepared")
def test_a_whole_chat_has_all_its_messages_oldest_first(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    person = make_person()
    chat = make_chat(person.user, title="Lamps")
    make_messages(chat, 230)
    with django_assert_num_queries(5):
        whole = conversations.get_conversation(person.ref, chat.pk, impersonated=False)
    assert (whole["title"], [row["number"] for row in whole["messages"]]) == ("Lamps", list(range(1, 231)))


def test_a_chat_is_described_without_its_messages() -> None:
    person = make_person()
    chat = make_chat(person.user, title="Lamps")
    make_messages(chat, 2)
    shape = conversations.describe_conversation(person.ref, str(chat.pk), impersonated=False)
    assert (shape["title"], shape["message_count"], "messages" in shape) == ("Lamps", 2, False)


def test_a_message_is_found_in_its_own_chat_alone() -> None:
    person = make_person()
    chat, other = make_chat(person.user), make_chat(person.user)
    message = make_message(chat, "Here.")
    shape = conversations.get_message(person.ref, chat.pk, message.pk, impersonated=False)
    assert (shape["uuid"], shape["content"]) == (message.pk, "Here.")
    odd = [(other.pk, message.pk), (chat.pk, uuid4()), (chat.pk, "x"), (chat.pk, None)]
    codes = {code_of(partial(conversations.get_message, person.ref, *at, impersonated=False)) for at in odd}
    assert codes == {"not_found"}


def test_what_a_tool_returned_does_not_even_leave_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    person = make_person()
    chat = make_chat(person.user)
    message = make_tool_message(chat, result={"products": [{"sku": "SECRET-1"}]})
    loaded: list[frozenset[str]] = []

    def look(row: Message) -> dict[str, Any]:
        loaded.append(frozenset(row.get_deferred_fields()))
        return {}

    monkeypatch.setattr(shapes, "message", look)
    conversations.get_conversation(person.ref, chat.pk, impersonated=False)
    conversations.list_messages(person.ref, chat.pk, impersonated=False)
    conversations.get_message(person.ref, chat.pk, message.pk, impersonated=False)
    assert loaded == [frozenset({"tool_result"})] * 3


# --- Writing --------------------------------------------------------------------------------------------------------------------------


def test_only_the_text_and_the_clients_uuid_are_taken_from_a_new_message() -> None:
    person, sent = make_person(), uuid4()
    chat = make_chat(person.user)
    asked = {
        "content": "Hello.",
        "client_uuid": str(sent),
        "role": "assistant",
        "number": 9,
        "live": True,
        "tool_calls": [{"id": "1", "name": "x"}],
        "tool_result": {"a": 1},
        "tool_summary": {"name": "x"},
        "tokens": 5,
        "cost": 5,
        "code": "x",
    }
    shape = conversations.add_message(person.ref, chat.pk, asked, impersonated=False)
    row = Message.objects.get(pk=shape["uuid"])
    assert (row.role, row.number, row.live, row.client_uuid) == ("user", 1, False, sent)
    assert (row.tool_calls, row.tool_result, row.tool_summary, row.code, row.turn_id) == ([], None, None, "", None)


def test_a_text_is_at_most_as_long_as_a_turn_takes_it() -> None:
    person = make_person()
    chat = make_chat(person.user)
    set_setting("agent_history_chars", 1_000)
    conversations.add_message(person.ref, chat.pk, {"content": "x" * 1_000}, impersonated=False)
    found = problem_of(
        lambda: conversations.add_message(person.ref, chat.pk, {"content": "x" * 1_001}, impersonated=False)
    )
    assert (found.code, found.context) == ("content_invalid", {"reason": "too_long", "max_chars": 1_000})
    assert Message.objects.count() == 1


@pytest.mark.parametrize(
    "attrs", [{}, {"content": None}, {"content": "  "}, {"text": "Hello."}, {"content": ["Hello."]}]
)
def test_a_message_without_a_text_is_refused_and_nothing_stored(attrs: dict[str, Any]) -> None:
    person = make_person()
    chat = make_chat(person.user)
    before = written(chat)
    assert (
        code_of(lambda: conversations.add_message(person.ref, chat.pk, attrs, impersonated=False)) == "content_invalid"
    )
    assert written(chat) == before


def test_a_client_uuid_that_is_none_is_refused() -> None:
    person = make_person()
    chat = make_chat(person.user)
    attrs = {"content": "Hello.", "client_uuid": "x"}
    assert (
        code_of(lambda: conversations.add_message(person.ref, chat.pk, attrs, impersonated=False))
        == "validation_failed"
    )


def test_a_second_send_answers_with_the_first_message() -> None:
    person = make_person()
    chat = make_chat(person.user)
    attrs = {"content": "Hello.", "client_uuid": uuid4()}
    first = conversations.add_message(person.ref, chat.pk, attrs, impersonated=False)
    assert conversations.add_message(person.ref, chat.pk, attrs, impersonated=False) == first
    assert Message.objects.count() == 1


# --- Changing -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "stored"), [("Lamps", "Lamps"), ("  Lamps\n", "Lamps"), ("ä" * 200, "ä" * 200), ("<b>x</b>", "<b>x</b>")]
)
def test_a_chat_is_renamed(title: str, stored: str) -> None:
    person = make_person()
    chat = make_chat(person.user, title="Before")
    assert conversations.rename_conversation(person.ref, chat.pk, title, impersonated=False)["title"] == stored
    chat.refresh_from_db()
    assert chat.title == stored


@pytest.mark.parametrize("title", ["", " \n\t", "x" * 201, None, 7, "a\x00b", "\ud800"])
def test_a_title_that_is_blank_too_long_or_none_is_refused(title: Any) -> None:
    person = make_person()
    chat = make_chat(person.user, title="Before")
    found = problem_of(lambda: conversations.rename_conversation(person.ref, chat.pk, title, impersonated=False))
    assert (found.code, found.context["errors"][0]["pointer"]) == ("validation_failed", "/title")
    chat.refresh_from_db()
    assert chat.title == "Before"


def test_an_archived_chat_leaves_the_list_can_be_opened_and_written_to_and_comes_back() -> None:
    person = make_person()
    chat = make_chat(person.user, title="Lamps")
    assert conversations.archive_conversation(person.ref, chat.pk, impersonated=False)["status"] == "archived"
    assert titles(conversations.list_conversations(person.ref, impersonated=False)) == []
    conversations.add_message(person.ref, chat.pk, {"content": "Hello."}, impersonated=False)
    opened = conversations.get_conversation(person.ref, chat.pk, impersonated=False)
    assert (opened["status"], len(opened["messages"])) == ("archived", 1)
    assert conversations.unarchive_conversation(person.ref, chat.pk, impersonated=False)["status"] == "active"
    assert titles(conversations.list_conversations(person.ref, impersonated=False)) == ["Lamps"]


def test_archiving_twice_changes_nothing_more() -> None:
    person = make_person()
    chat = make_chat(person.user)
    first = conversations.archive_conversation(person.ref, chat.pk, impersonated=False)
    assert conversations.archive_conversation(person.ref, chat.pk, impersonated=False) == first


def test_a_deleted_chat_keeps_its_row_and_messages_and_is_deleted_once() -> None:
    person = make_person()
    chat = make_chat(person.user)
    make_messages(chat, 2)
    assert conversations.delete_conversation(person.ref, chat.pk, impersonated=False)["status"] == "deleted"
    chat.refresh_from_db()
    assert (chat.status, chat.deleted_at is None, Message.objects.count()) == (Status.DELETED, False, 2)
    assert code_of(lambda: conversations.delete_conversation(person.ref, chat.pk, impersonated=False)) == "not_found"


@pytest.mark.parametrize("status", [Status.ACTIVE, Status.ARCHIVED])
def test_a_chat_that_is_restored_is_as_it_was(status: str) -> None:
    person = make_person()
    chat = make_chat(person.user, status=status, title="Lamps")
    make_messages(chat, 2)
    before = conversations.get_conversation(person.ref, chat.pk, impersonated=False)
    conversations.delete_conversation(person.ref, chat.pk, impersonated=False)
    assert conversations.restore_conversation(person.ref, chat.pk, impersonated=False)["status"] == status
    assert conversations.get_conversation(person.ref, chat.pk, impersonated=False) == before
    chat.refresh_from_db()
    assert (chat.deleted_at, chat.status_before) == (None, "")


def test_a_chat_can_be_restored_for_an_hour() -> None:
    person = make_person()
    early, late = make_chat(person.user), make_chat(person.user)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        for chat in (early, late):
            conversations.delete_conversation(person.ref, chat.pk, impersonated=False)
        clock.shift(timedelta(minutes=59, seconds=59))
        conversations.restore_conversation(person.ref, early.pk, impersonated=False)
        clock.shift(timedelta(seconds=1))
        assert (
            code_of(lambda: conversations.restore_conversation(person.ref, late.pk, impersonated=False)) == "not_found"
        )


def test_what_somebody_else_deleted_can_not_be_restored() -> None:
    person, theirs = make_person(is_superuser=True), make_chat(make_person().user, status=Status.DELETED)
    before = written(theirs)
    call = partial(conversations.restore_conversation, person.ref, theirs.pk, impersonated=False)
    assert code_of(call) == "not_found"
    assert written(theirs) == before


def test_what_was_not_deleted_can_not_be_restored() -> None:
    person = make_person()
    chat = make_chat(person.user)
    assert code_of(lambda: conversations.restore_conversation(person.ref, chat.pk, impersonated=False)) == "not_found"


@pytest.mark.usefixtures("_prepared")
@pytest.mark.parametrize(
    "name",
    [
        "rename_conversation",
        "archive_conversation",
        "unarchive_conversation",
        "delete_conversation",
        "restore_conversation",
    ],
)
def test_a_change_is_one_conditional_update(name: str, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    person = make_person()
    chat = make_chat(person.user, status=Status.DELETED if name == "restore_conversation" else Status.ACTIVE)
    # The checks, a savepoint of the test's transaction and its release, the update, and the row as it is then.
    with django_assert_num_queries(3 + 4) as captured:
        DOORS[name](person.ref, chat.pk, None)
    statements = [query["sql"] for query in captured.captured_queries]
    assert [sql.startswith("UPDATE") for sql in statements].count(True) == 1


# --- Listening ------------------------------------------------------------------------------------------------------------------------


def test_a_topic_is_named_by_the_chat() -> None:
    uuid = UUID("0fcaf422-c63f-47f4-9638-bac18d164b06")
    assert conversations.topic(uuid) == "agent:conv:0fcaf422-c63f-47f4-9638-bac18d164b06"
