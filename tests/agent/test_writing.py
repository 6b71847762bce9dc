"""What is stored of a chat's line: its number, the chat's count, time and title, the event; once for each client-made uuid (CH-3)."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from apps.agent import writing
from apps.agent.models import Conversation, Message
from apps.api.problems import Problem
from tests.agent.factories import make_chat, make_person
from tests.api.together import at_once

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]


def write(chat: Conversation, content: str = "Hello.", *, client_uuid: UUID | None = None) -> writing.Written:
    with transaction.atomic():
        return writing.person_text(chat.pk, chat.user_id, content, client_uuid=client_uuid, now=timezone.now())


def test_a_text_is_stored_with_its_number_and_the_chat_follows() -> None:
    chat = make_chat(make_person().user, created_at=timezone.now() - timedelta(days=1))
    first, second = write(chat, "Which lamps are out of stock?").message, write(chat, "And which are not?").message
    chat.refresh_from_db()
    assert (first.number, second.number, chat.message_count) == (1, 2, 2)
    assert chat.last_message_at == second.created_at > first.created_at
    assert chat.title == "Which lamps are out of stock?"
    assert first.role == Message.Role.USER


def test_an_untitled_chat_takes_the_first_60_characters_and_a_titled_one_keeps_its_own() -> None:
    untitled, titled = make_chat(make_person().user), make_chat(make_person().user, title="Lamps")
    write(untitled, "\n  " + "ä" * 70)
    write(titled)
    untitled.refresh_from_db()
    titled.refresh_from_db()
    assert (untitled.title, titled.title) == ("ä" * 60, "Lamps")


def test_listeners_are_told_of_it_after_the_commit_by_uuids_alone(heard: list[dict[str, Any]]) -> None:
    chat = make_chat(make_person().user)
    with transaction.atomic():
        message = writing.person_text(
            chat.pk, chat.user_id, "secret words", client_uuid=None, now=timezone.now()
        ).message
        assert heard == []
    assert heard == [{"type": "agent_message_added", "conversation": str(chat.pk), "message": str(message.pk)}]


def test_what_is_undone_is_not_told(heard: list[dict[str, Any]]) -> None:
    chat = make_chat(make_person().user)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        writing.person_text(chat.pk, chat.user_id, "Hello.", client_uuid=None, now=timezone.now())
        _ = 1 / 0
    chat.refresh_from_db()
    assert (heard, chat.message_count, Message.objects.count()) == ([], 0, 0)


def test_a_second_send_of_the_same_message_answers_with_the_first(heard: list[dict[str, Any]]) -> None:
    chat, sent = make_chat(make_person().user), uuid4()
    first, again = write(chat, client_uuid=sent), write(chat, "Other words.", client_uuid=sent)
    chat.refresh_from_db()
    assert (first.is_new, again.is_new) == (True, False)
    assert again.message == first.message
    assert (again.message.content, chat.message_count, len(heard)) == ("Hello.", 1, 1)


def test_the_same_client_uuid_in_another_chat_is_another_message() -> None:
    sent, owner = uuid4(), make_person().user
    assert write(make_chat(owner), client_uuid=sent).is_new
    assert write(make_chat(owner), client_uuid=sent).is_new


@pytest.mark.parametrize("status", ["deleted", "theirs", "unknown"])
def test_nothing_is_stored_in_a_chat_that_is_not_there_for_its_writer(status: str) -> None:
    owner = make_person().user
    chat = make_chat(owner, status=status) if status == "deleted" else make_chat(make_person().user)
    if status == "unknown":
        chat.delete()
        chat.pk = uuid4()
    chat.user_id = owner.pk
    with pytest.raises(Problem) as caught:
        write(chat)
    assert (caught.value.code, Message.objects.count()) == ("not_found", 0)


def test_the_loops_own_line_goes_into_an_archived_chat_and_not_into_a_deleted_one(heard: list[dict[str, Any]]) -> None:
    owner = make_person().user
    archived, deleted = make_chat(owner, status="archived"), make_chat(owner, status="deleted")
    with transaction.atomic():
        stored = writing.append(archived.pk, role=Message.Role.ASSISTANT, now=timezone.now(), content="Here.")
        assert writing.append(deleted.pk, role=Message.Role.ASSISTANT, now=timezone.now(), content="Here.") is None
    assert stored is not None
    assert (stored.number, len(heard), Message.objects.count()) == (1, 1, 1)
    archived.refresh_from_db()
    assert (archived.status, archived.title) == ("archived", "")


def test_the_time_of_a_chat_never_goes_back() -> None:
    chat = make_chat(make_person().user)
    before = chat.last_message_at
    with transaction.atomic():
        writing.append(chat.pk, role=Message.Role.NOTICE, now=before - timedelta(seconds=1))
    chat.refresh_from_db()
    assert chat.last_message_at == before


def test_a_line_outside_a_transaction_is_a_fault_of_the_program() -> None:
    chat = make_chat(make_person().user)
    with pytest.raises(RuntimeError):
        writing.append(chat.pk, role=Message.Role.NOTICE, now=timezone.now())


def test_a_models_text_loses_only_what_can_not_be_kept() -> None:
    chat = make_chat(make_person().user)
    with transaction.atomic():
        stored = writing.append(chat.pk, role=Message.Role.ASSISTANT, now=timezone.now(), content="a\x00b \udcff ü 😀")
    assert stored is not None
    stored.refresh_from_db()
    assert stored.content == "ab ? ü 😀"


# --- A person's text ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "blank"),
        (" \n\t\u2003", "blank"),
        ("x" * 11, "too_long"),
        ("a\x00b", "unreadable"),
        ("\ud800", "unreadable"),
        (None, "unreadable"),
        (7, "unreadable"),
        (["text"], "unreadable"),
    ],
)
def test_a_text_that_is_blank_too_long_or_none_is_refused(content: object, reason: str) -> None:
    with pytest.raises(Problem) as caught:
        writing.checked_content(content, max_chars=10)
    assert (caught.value.code, caught.value.kind.status, caught.value.context["reason"]) == (
        "content_invalid",
        422,
        reason,
    )


def test_a_text_is_counted_in_characters_and_kept_as_it_is() -> None:
    assert writing.checked_content(" ä😀 \n", max_chars=5) == " ä😀 \n"


# --- Several at once ------------------------------------------------------------------------------------------------------------------


@pytest.mark.alone
def test_20_parallel_writers_get_the_numbers_1_to_20_in_the_order_of_their_commits() -> None:
    chat = make_chat(make_person().user)
    order: list[int] = []

    numbers = at_once(*[lambda: write_noting(chat, order)] * 20)
    chat.refresh_from_db()
    assert sorted(numbers) == list(range(1, 21))
    assert order == sorted(order)
    assert chat.message_count == Message.objects.filter(conversation=chat).count() == 20


def write_noting(chat: Conversation, order: list[int]) -> int:
    """The number is noted while the chat's row is held, so the notes are in the order of the commits."""
    with transaction.atomic():
        message = writing.person_text(chat.pk, chat.user_id, "Hello.", client_uuid=None, now=timezone.now()).message
        order.append(message.number)
    return message.number


@pytest.mark.alone
def test_12_parallel_sends_of_one_message_store_it_once() -> None:
    chat, sent = make_chat(make_person().user), uuid4()
    written = at_once(*[lambda: write(chat, client_uuid=sent)] * 12)
    assert [one.is_new for one in written].count(True) == 1
    assert len({one.message.pk for one in written}) == 1
    chat.refresh_from_db()
    assert chat.message_count == 1


@pytest.mark.alone
def test_a_delete_beside_writers_leaves_no_line_after_it() -> None:
    chat = make_chat(make_person().user)

    def delete() -> int:
        with transaction.atomic():
            rows = Conversation.objects.filter(pk=chat.pk)
            return rows.update(status="deleted", deleted_at=timezone.now(), status_before="active")

    def store() -> bool:
        with transaction.atomic():
            return writing.append(chat.pk, role=Message.Role.NOTICE, now=timezone.now()) is not None

    results = at_once(delete, *[store] * 12)
    chat.refresh_from_db()
    assert chat.message_count == Message.objects.count() == results[1:].count(True)


# --- One place ------------------------------------------------------------------------------------------------------------------------

AGENT = Path(__file__).resolve().parent.parent.parent / "apps" / "agent"


def test_every_line_of_a_chat_is_stored_by_one_function_and_no_door_stores_any_but_a_persons_text() -> None:
    sources = {
        path.relative_to(AGENT): path.read_text() for path in AGENT.rglob("*.py") if "migrations" not in path.parts
    }
    makers = {
        str(path) for path, text in sources.items() if re.search(r"(?<!class )\bMessage(\.objects\.\w*create)?\(", text)
    }
    assert makers == {"writing.py"}
    doors = {
        path: text
        for path, text in sources.items()
        if path.parts[0] in ("rest", "admin", "conversations.py", "consumers.py")
    }
    assert len(doors) > 8
    assert [str(path) for path, text in doors.items() if "writing.append" in text] == []
