"""What a fragment asks of the database does not grow with the chat: counted, since a timed test would prove nothing (SP-1)."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.agent.models import Message
from tests.agent.factories import make_chat, make_message, make_messages, make_person, sign_in
from tests.api.person import Person

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def _asked(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as asked:
        assert client.get(path).status_code == 200
    return len(asked)


def _fragment(person: Person, client: Client, count: int) -> tuple[int, int]:
    """Queries of a fragment with one message that grew, and of the whole page, in a chat of so many messages."""
    chat = make_chat(person.user)
    make_messages(chat, count)
    draft = make_message(chat, "Half of", role=Message.Role.ASSISTANT, live=True)
    path = f"/chat/{chat.pk}/thread/?also={draft.pk}"
    assert str(draft.pk) in client.get(path).content.decode()
    return _asked(client, path), _asked(client, f"/chat/{chat.pk}/")


def test_a_fragment_and_a_page_cost_the_same_in_a_long_chat() -> None:
    person = make_person()
    client = sign_in(person.user)
    assert _fragment(person, client, 60) == _fragment(person, client, 2_000)


def test_a_page_of_many_messages_costs_no_query_for_each() -> None:
    person = make_person()
    client = sign_in(person.user)
    few, many = make_chat(person.user), make_chat(person.user)
    make_messages(few, 2)
    make_messages(many, 50)
    client.get(f"/chat/{few.pk}/")
    assert _asked(client, f"/chat/{few.pk}/") == _asked(client, f"/chat/{many.pk}/")
