"""Listening to a chat in this process: after the checks alone, told after the commit, as often as one subscribed (CH-5)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from apps.agent import conversations, listening, writing
from apps.agent.models import Conversation
from apps.api.problems import Problem
from tests.agent.factories import make_chat, make_person
from tests.api.person import Person

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _nobody_left() -> Iterator[None]:
    yield
    listening._receivers.clear()


def subscribe(person: Person, chat: object, receiver: Callable[[Mapping[str, Any]], object]) -> str:
    return conversations.subscribe(person.ref, chat, impersonated=False, receiver=receiver)


def write(person: Person, chat: Conversation, text: str = "Hello.") -> None:
    conversations.add_message(person.ref, chat.pk, {"content": text}, impersonated=False)


def test_a_subscriber_is_told_of_every_stored_message_by_its_uuid_and_fetches_it() -> None:
    person, frames = make_person(), list[Mapping[str, Any]]()
    chat = make_chat(person.user)
    assert subscribe(person, chat.pk, frames.append) == conversations.topic(chat.pk)
    write(person, chat, "secret words")
    (frame,) = frames
    assert frame == {"type": "agent_message_added", "conversation": str(chat.pk), "message": frame["message"]}
    shape = conversations.get_message(person.ref, chat.pk, frame["message"], impersonated=False)
    assert shape["content"] == "secret words"


def test_nobody_is_told_before_the_commit_or_of_what_was_undone() -> None:
    person, frames = make_person(), list[Mapping[str, Any]]()
    chat = make_chat(person.user)
    subscribe(person, chat.pk, frames.append)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        writing.person_text(chat.pk, person.user.pk, "Hello.", client_uuid=None, now=timezone.now())
        assert frames == []
        _ = 1 / 0
    assert frames == []


def test_a_subscriber_of_one_chat_hears_nothing_of_another() -> None:
    person, frames = make_person(), list[Mapping[str, Any]]()
    subscribe(person, make_chat(person.user).pk, frames.append)
    write(person, make_chat(person.user))
    assert frames == []


def test_whoever_subscribes_twice_hears_everything_twice_and_nothing_once_they_left() -> None:
    person, frames = make_person(), list[Mapping[str, Any]]()
    chat = make_chat(person.user)
    topic = subscribe(person, chat.pk, frames.append)
    subscribe(person, chat.pk, frames.append)
    write(person, chat)
    assert len(frames) == 2
    conversations.unsubscribe(topic, frames.append)
    write(person, chat)
    assert len(frames) == 2


def test_to_leave_needs_no_checks_and_no_subscription() -> None:
    conversations.unsubscribe(conversations.topic(uuid4()), print)


def test_who_is_refused_is_not_subscribed() -> None:
    person, owner, frames = make_person(is_superuser=True), make_person(), list[Mapping[str, Any]]()
    chat = make_chat(owner.user)
    for ref, uuid, impersonated in (
        (person.ref, chat.pk, False),
        (owner.ref, chat.pk, True),
        (None, chat.pk, False),
        (owner.ref, "odd", False),
    ):
        with pytest.raises(Problem):
            conversations.subscribe(ref, uuid, impersonated=impersonated, receiver=frames.append)
    write(owner, chat)
    assert frames == []


def test_a_subscriber_that_fails_keeps_nothing_from_the_others_or_from_the_writer() -> None:
    person, frames = make_person(), list[Mapping[str, Any]]()
    chat = make_chat(person.user)

    def fail(frame: Mapping[str, Any]) -> None:
        raise RuntimeError

    subscribe(person, chat.pk, fail)
    subscribe(person, chat.pk, frames.append)
    write(person, chat)
    assert len(frames) == 1
