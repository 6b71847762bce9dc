"""Deleted chats are purged after their days, with everything that hung on them, and nothing else is (CH-2)."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from apps.agent import conversations, purge
from apps.agent.models import Card, Conversation, Message, ModelCall, Turn
from apps.api.problems import Problem
from tests.agent.factories import (
    make_card,
    make_chat,
    make_message,
    make_messages,
    make_person,
    make_tool_message,
    make_turn,
)
from tests.api.factories import set_setting
from tests.api.person import Person
from tests.api.together import at_once

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

SETTING = "agent_purge_deleted_after_days"


def make_deleted(person: Person, *, days: float, **fields: Any) -> Conversation:
    """Deleted so many days ago."""
    return make_chat(person.user, status="deleted", deleted_at=timezone.now() - timedelta(days=days), **fields)


def fill(chat: Conversation, person: Person) -> ModelCall:
    """Messages, turns that follow each other, cards that replace each other, and what a model took."""
    now = timezone.now()
    first = make_turn(chat, person.session, state=Turn.State.DONE)
    second = make_turn(chat, person.session, state=Turn.State.DONE, follows=first)
    make_message(chat, turn=first)
    held = make_tool_message(chat, result={}, turn=first)
    newer = make_card(held, told_in=second)
    make_card(held, replaced_by=newer, told_in=second)
    return ModelCall.objects.create(
        user=person.user, turn=first, provider="openai", model="m", input_tokens=7, started_at=now, ended_at=now
    )


def left() -> set[Any]:
    return set(Conversation.objects.values_list("pk", flat=True))


def test_a_chat_that_was_deleted_long_enough_ago_is_gone_with_all_that_hung_on_it() -> None:
    person = make_person()
    set_setting(SETTING, 30)
    gone, kept = make_deleted(person, days=30.1), make_deleted(person, days=29.9)
    call, other = fill(gone, person), fill(kept, person)
    assert purge.purge_deleted().chats_purged == 1
    assert left() == {kept.pk}
    for model, count in ((Message, 2), (Turn, 2), (Card, 2)):
        assert {row.conversation_id for row in model._default_manager.all()} == {kept.pk}
        assert model._default_manager.count() == count
    call.refresh_from_db()
    other.refresh_from_db()
    assert (call.turn_id, call.input_tokens, other.turn_id is None) == (None, 7, False)


def test_active_and_archived_chats_stay_however_old_they_are() -> None:
    person = make_person()
    set_setting(SETTING, 1)
    old = timezone.now() - timedelta(days=4_000)
    chats = [make_chat(person.user, created_at=old, status=status) for status in ("active", "archived")]
    assert purge.purge_deleted().chats_purged == 0
    assert left() == {chat.pk for chat in chats}


@pytest.mark.parametrize("stored", [0, None, "soon", -1, True])
def test_without_a_number_of_days_nothing_is_ever_purged(stored: Any) -> None:
    if stored is not None:
        set_setting(SETTING, stored)
    chat = make_deleted(make_person(), days=4_000)
    assert purge.purge_deleted().chats_purged == 0
    assert left() == {chat.pk}


def test_a_long_chat_is_purged_by_statements_and_not_row_by_row(django_assert_max_num_queries: Any) -> None:
    person = make_person()
    set_setting(SETTING, 1)
    make_messages(make_deleted(person, days=2), 5_000)
    with django_assert_max_num_queries(12):
        assert purge.purge_deleted().chats_purged == 1
    assert Message.objects.count() == 0


def test_a_restored_chat_is_not_purged_and_a_purged_one_not_restored() -> None:
    person = make_person()
    set_setting(SETTING, 1)
    chat = make_deleted(person, days=0)
    conversations.restore_conversation(person.ref, chat.pk, impersonated=False)
    late = make_deleted(person, days=2)
    assert purge.purge_deleted().chats_purged == 1
    assert left() == {chat.pk}
    with pytest.raises(Problem):
        conversations.restore_conversation(person.ref, late.pk, impersonated=False)


def test_a_chat_that_is_restored_after_it_was_found_stays() -> None:
    """The round has listed it; before its turn comes, its person takes it back."""
    person, before = make_person(), timezone.now() - timedelta(days=1)
    restored, deleted_again = make_chat(person.user), make_deleted(person, days=0)
    assert [purge._purged(chat.pk, before) for chat in (restored, deleted_again)] == [False, False]
    assert left() == {restored.pk, deleted_again.pk}


def test_a_chat_that_somebody_holds_waits_for_the_next_round_and_keeps_no_other_up() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    person = make_person()
    set_setting(SETTING, 1)
    held, free = make_deleted(person, days=3), make_deleted(person, days=2)
    with transaction.atomic():
        Conversation.objects.select_for_update().get(pk=held.pk)
        assert at_once(purge.purge_deleted)[0].chats_purged == 1
    assert left() == {held.pk}
    assert free.pk not in left()
    assert purge.purge_deleted().chats_purged == 1


@pytest.mark.alone
def test_two_rounds_at_once_purge_each_chat_once() -> None:
    person = make_person()
    set_setting(SETTING, 1)
    for _ in range(12):
        make_message(make_deleted(person, days=2))
    rounds = at_once(purge.purge_deleted, purge.purge_deleted, purge.purge_deleted)
    assert sum(found.chats_purged for found in rounds) == 12
    assert left() == set()


def test_the_command_that_sweeps_purges_too(capsys: pytest.CaptureFixture[str]) -> None:
    set_setting(SETTING, 1)
    make_deleted(make_person(), days=2)
    call_command("sweep")
    assert left() == set()
    assert "chats_purged" in capsys.readouterr().out


def test_beat_asks_for_it_every_hour() -> None:
    from config import celery

    entry = celery.app.conf.beat_schedule["purge_chats"]
    assert (entry["task"], entry["schedule"].run_every) == ("tollhouse.purge_chats", timedelta(hours=1))
    assert "tollhouse.purge_chats" in celery.app.tasks
