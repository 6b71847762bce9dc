"""Finding chats by title and by what their person wrote, and by nothing that anybody else did."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from apps.agent import conversations, search
from apps.api.problems import Problem
from tests.agent.factories import make_chat, make_message, make_messages, make_person, make_tool_message
from tests.api.person import Person

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def found(person: Person, text: str) -> list[str]:
    page = conversations.search(person.ref, text, impersonated=False)
    return [chat["title"] for chat in page["conversations"]]


def test_a_chat_is_found_by_its_title_and_by_its_persons_words() -> None:
    person = make_person()
    make_chat(person.user, title="Garden lamps")
    make_message(make_chat(person.user, title="Beds"), "Which walnut table is out of stock?")
    assert found(person, "lamps") == ["Garden lamps"]
    assert found(person, "walnut") == found(person, "STOCK") == ["Beds"]
    assert found(person, "sofa") == []


@pytest.mark.parametrize("role", ["assistant", "tool", "notice"])
def test_what_the_assistant_or_a_tool_said_finds_nothing(role: str) -> None:
    person = make_person()
    chat = make_chat(person.user, title="Beds")
    fields = {"tool_result": {"name": "walnut"}, "tool_summary": {"name": "walnut"}} if role == "tool" else {}
    make_message(chat, "walnut", role=role, **fields)
    make_tool_message(chat, result={"products": [{"name": "walnut"}]})
    assert found(person, "walnut") == []


def test_only_ones_own_chats_are_searched_archived_ones_too_and_deleted_ones_not() -> None:
    person = make_person()
    for title, status in (("a lamp", "active"), ("put away lamp", "archived"), ("deleted lamp", "deleted")):
        make_chat(person.user, title=title, status=status)
    make_chat(make_person().user, title="their lamp")
    make_message(make_chat(make_person().user), "lamp")
    assert sorted(found(person, "lamp")) == ["a lamp", "put away lamp"]


def test_all_words_must_be_in_the_title_or_in_one_text() -> None:
    person = make_person()
    chat = make_chat(person.user, title="Beds")
    make_message(chat, "a walnut table")
    make_message(chat, "a brass lamp")
    assert found(person, "table walnut") == ["Beds"]
    assert found(person, "walnut lamp") == []
    assert found(person, "beds walnut") == []


def test_the_beginning_of_the_last_word_is_enough_while_somebody_types() -> None:
    person = make_person()
    make_message(make_chat(person.user, title="Beds"), "a walnut table, BED-0002")
    assert found(person, "walnut ta") == ["Beds"]
    assert found(person, "BED-0002") == found(person, "bed-00") == ["Beds"]


@pytest.mark.parametrize("text", ["größe", "GRÖSSE lampe", "ランプ"])
def test_words_of_any_language_are_found_as_they_were_written(text: str) -> None:
    person = make_person()
    make_message(make_chat(person.user, title="Beds"), f"die {text} hier")
    assert found(person, text) == ["Beds"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x00",
        "\ud800",
        "???",
        "%",
        "_",
        "'",
        "' OR 1=1 --",
        "zz & | !",
        ":*",
        "(((",
        "\\",
        "<b>",
        "l%p",
        "l_mp",
    ],
)
def test_signs_are_no_words_and_no_language_of_their_own(text: str) -> None:
    person = make_person()
    make_chat(person.user, title="lamp")
    make_message(make_chat(person.user, title="other"), "a lamp")
    assert found(person, text) == []


def test_a_very_long_text_is_stored_and_searched_at_its_beginning() -> None:
    person = make_person()
    long = "walnut " + " ".join(f"{n:x}-{n:o}" for n in range(90_000))
    make_message(make_chat(person.user, title="Long"), long)
    assert len(long) > 900_000
    assert found(person, "walnut") == ["Long"]


def test_too_long_a_question_is_refused() -> None:
    with pytest.raises(Problem) as caught:
        conversations.search(make_person().ref, "x" * (search.MOST_CHARS + 1), impersonated=False)
    assert (caught.value.code, caught.value.context["errors"][0]["pointer"]) == ("validation_failed", "/q")


def test_the_hits_come_in_the_order_and_the_pages_of_the_list() -> None:
    person, now = make_person(), timezone.now()
    for number in range(7):
        make_chat(person.user, title=f"lamp {number}", created_at=now - timedelta(minutes=number))
    first = conversations.search(person.ref, "lamp", impersonated=False, limit=4)
    second = conversations.search(person.ref, "lamp", impersonated=False, limit=4, cursor=first["next_cursor"])
    titles = [chat["title"] for page in (first, second) for chat in page["conversations"]]
    assert titles == [f"lamp {number}" for number in range(7)]
    assert second["next_cursor"] is None


def test_the_words_of_texts_have_an_index_on_postgresql() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    person, chats = make_person(), [make_chat(make_person().user) for _ in range(3)]
    for chat in chats:
        make_messages(chat, 2_000)
    make_messages(make_chat(person.user), 2_000)
    make_message(make_chat(person.user, title="Beds"), "walnut")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE agent_message")
    assert "agent_message_words" in search.matching(person.user.pk, "walnut").explain()
    assert found(person, "walnut") == ["Beds"]
