"""The list of chats in the admin site: that they are there and whose, and never a word of them (CH-4)."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.agent.models import Conversation
from tests.accounts.factories import make_owner, make_user
from tests.agent.factories import make_card, make_chat, make_message, make_person, make_tool_message, make_turn, sign_in

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

LIST = "/admin/agent/conversation/"
CANARY = "CANARY"


@pytest.fixture
def operator() -> Client:
    return sign_in(make_owner())


def make_talk() -> Conversation:
    """A chat whose every text, argument and result would be found on a page that shows it."""
    person = make_person(email="somebody@example.org")
    chat = make_chat(person.user, title=f"{CANARY} title")
    turn = make_turn(chat, person.session, state="done")
    make_message(chat, f"{CANARY} text")
    calls = [{"id": "1", "name": "catalogue_list_products", "arguments": f'{{"query": "{CANARY}"}}'}]
    make_message(chat, f"{CANARY} answer", role="assistant", tool_calls=calls, turn=turn)
    held = make_tool_message(chat, result={"rows": [CANARY]}, turn=turn)
    make_card(held, arguments={"sku": CANARY})
    return chat


def test_an_operator_sees_that_a_chat_is_there_and_whose_and_no_word_of_it(operator: Client) -> None:
    chat = make_talk()
    for path in (LIST, f"{LIST}{chat.pk}/change/"):
        page = operator.get(path)
        assert page.status_code == 200
        text = page.content.decode()
        assert str(chat.pk) in text
        assert "somebody@example.org" in text
        assert CANARY not in text


def test_the_history_page_and_every_other_page_of_it_shows_no_word_either(operator: Client) -> None:
    chat = make_talk()
    for path in (f"{LIST}{chat.pk}/history/", f"{LIST}{chat.pk}/delete/", f"{LIST}add/", f"{LIST}?q={CANARY}"):
        assert CANARY not in operator.get(path).content.decode().replace(f"q={CANARY}", "").replace(
            f'value="{CANARY}"', ""
        )


def test_a_search_for_words_of_a_chat_finds_nothing_and_one_for_whose_it_is_does(operator: Client) -> None:
    chat = make_talk()

    def hits(term: str) -> int:
        return int(operator.get(LIST, {"q": term}).context["cl"].result_count)

    assert [hits(term) for term in (f"{CANARY} title", CANARY, "text", str(uuid4()))] == [0] * 4
    assert [hits(term) for term in (str(chat.pk), "somebody@example.org")] == [1, 1]


def test_nobody_changes_adds_or_deletes_a_chat_here(operator: Client) -> None:
    chat = make_talk()
    for path in (f"{LIST}add/", f"{LIST}{chat.pk}/delete/"):
        assert operator.post(path, {"post": "yes"}).status_code == 403
    assert operator.post(f"{LIST}{chat.pk}/change/", {"title": "x"}).status_code == 403
    operator.post(LIST, {"action": "delete_selected", "_selected_action": [str(chat.pk)], "post": "yes"})
    assert Conversation.objects.get().title == f"{CANARY} title"


def test_who_may_not_view_chats_finds_no_list() -> None:
    chat = make_talk()
    staff = sign_in(make_user(is_staff=True))
    assert {staff.get(path).status_code for path in (LIST, f"{LIST}{chat.pk}/change/")} == {403}
    may = sign_in(make_user(is_staff=True, permissions=["agent.view_conversation"]))
    assert may.get(LIST).status_code == 200


def test_the_list_costs_as_much_for_many_as_for_one(operator: Client) -> None:
    make_talk()
    operator.get(LIST)
    counts = []
    for more in (0, 30):
        for _ in range(more):
            make_chat(make_person().user)
        with CaptureQueriesContext(connection) as found:
            operator.get(LIST)
        counts.append(len(found))
    assert counts[0] == counts[1]
