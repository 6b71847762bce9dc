"""The chat's pages as HTML: who is let in, what a fragment holds, and what never gets there (UI-1, CH-4)."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from apps.agent.models import Card, Conversation, Message, Turn
from apps.agent.pages import urls
from tests.accounts.factories import make_owner
from tests.agent.factories import (
    make_card,
    make_chat,
    make_message,
    make_messages,
    make_person,
    make_tool_message,
    make_turn,
    sign_in,
)
from tests.api.factories import set_setting
from tests.api.person import Person

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

PATHS = ["/chat/", "/chat/list/", "/chat/tools/", "/chat/{chat}/", "/chat/{chat}/thread/"]
# All that the write scope of the catalogue asks for.
SHOPKEEPER = [f"catalogue.{verb}_product" for verb in ("view", "change", "add", "delete")]
OF_ONE_CHAT = [path for path in PATHS if "{chat}" in path]


def paths(chat: object = "") -> list[str]:
    return [path.format(chat=chat) for path in PATHS]


def html(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content[:300]
    return answer.content.decode()


def articles(page: str) -> list[str]:
    return re.findall(r'data-message="([0-9a-f-]{36})"', page)


def signed_in(**fields: Any) -> tuple[Person, Client, Conversation]:
    person = make_person(**fields)
    return person, sign_in(person.user), make_chat(person.user, title="Lamps")


# --- Who is let in ----------------------------------------------------------------------------------------------------


def test_every_path_of_the_pages_is_tried_below() -> None:
    tried = {*PATHS, "/chat/leave/"}
    assert {f"/chat/{one.pattern}".replace("<str:uuid>", "{chat}") for one in urls.urlpatterns} == tried


def test_a_visitor_is_led_to_sign_in() -> None:
    for path in [*paths(uuid4()), "/chat/leave/"]:
        answer = Client().get(path)
        assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/sign-in/")


def test_who_may_not_use_the_assistant_gets_a_page_that_says_so() -> None:
    person, client, chat = signed_in()
    person.user.user_permissions.clear()
    for path in paths(chat.pk):
        assert "The assistant is not open to you" in html(client, path, 403)


def test_an_impersonator_sees_no_chat() -> None:
    person, client = make_person(), sign_in(make_owner())
    chat = make_chat(person.user, title="canary-of-a-title")
    make_message(chat, "canary-of-a-text")
    assert client.post("/impersonate/", {"user_pk": str(person.user.pk)}).status_code == 302
    for path in paths(chat.pk):
        page = html(client, path, 403)
        assert "Chats are closed while you look as somebody else" in page
        assert "canary" not in page


@pytest.mark.parametrize("path", OF_ONE_CHAT)
def test_anothers_chat_a_deleted_one_and_no_uuid_are_the_same_page(path: str) -> None:
    _, client, _ = signed_in()
    mine = Conversation.objects.get()
    deleted = make_chat(mine.user, status=Conversation.Status.DELETED)
    others = make_chat(make_person().user)
    seen = {html(client, path.format(chat=name), 404) for name in (deleted.pk, others.pk, uuid4(), "x", "%00", "a'b")}
    assert len({re.sub(r"nonce-\w+|csrfmiddlewaretoken.*?>", "", page) for page in seen}) == 1


def test_nothing_but_reading_is_done_by_these_paths() -> None:
    _, client, chat = signed_in()
    for path in paths(chat.pk):
        assert client.post(path, {"content": "x"}).status_code == 405
    assert Message.objects.count() == 0


def test_no_browser_keeps_a_page_and_the_policy_lets_nothing_else_in() -> None:
    _, client, chat = signed_in()
    answer = client.get(f"/chat/{chat.pk}/")
    policy = answer["Content-Security-Policy"]
    assert "no-store" in answer["Cache-Control"]
    for rule in ("default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", answer.content.decode())


# --- What a page holds ------------------------------------------------------------------------------------------------


def test_the_page_begins_at_the_end_of_the_chat_and_offers_what_is_earlier() -> None:
    _, client, chat = signed_in()
    made = make_messages(chat, 60)
    page = html(client, f"/chat/{chat.pk}/")
    assert articles(page) == [str(one.pk) for one in made[10:]]
    assert "data-earlier" in page
    before = html(client, f"/chat/{chat.pk}/thread/?before={made[10].pk}")
    assert articles(before) == [str(one.pk) for one in made[:10]]
    assert "data-has-earlier" not in before


def test_a_fragment_holds_what_came_after_and_what_is_asked_for_by_name_once() -> None:
    _, client, chat = signed_in()
    made = make_messages(chat, 5)
    strange = make_message(make_chat(make_person().user))
    also = f"{made[0].pk},{made[4].pk},{strange.pk},{uuid4()},x"
    page = html(client, f"/chat/{chat.pk}/thread/?after={made[2].pk}&also={also}")
    assert sorted(articles(page)) == sorted(str(one.pk) for one in (made[3], made[4], made[0]))
    assert ">Lamps</h1>" in page
    assert articles(html(client, f"/chat/{chat.pk}/thread/?after=")) == [str(one.pk) for one in made]


def test_a_fragment_that_was_cut_says_that_there_is_more() -> None:
    _, client, chat = signed_in()
    make_messages(chat, 201)
    page = html(client, f"/chat/{chat.pk}/thread/?after=")
    assert len(articles(page)) == 200
    assert "data-again" in page


def test_a_cursor_that_is_none_of_the_chat_is_refused_and_nothing_breaks() -> None:
    _, client, chat = signed_in()
    for cursor in (uuid4(), "x", "%00", "' OR 1=1"):
        for name in ("after", "before"):
            assert "This can't be shown" in html(client, f"/chat/{chat.pk}/thread/?{name}={cursor}", 422)
    assert "This can't be shown" in html(client, "/chat/list/?cursor=nonsense", 422)


def test_neither_a_result_nor_a_models_arguments_reach_a_page() -> None:
    _, client, chat = signed_in()
    calls = [{"id": "c1", "name": "catalogue_list_products", "arguments": '{"query": "canary-of-arguments"}'}]
    make_message(chat, "Looking.", role="assistant", tool_calls=calls)
    make_tool_message(chat, result={"products": ["canary-of-a-result"]})
    for path in (f"/chat/{chat.pk}/", f"/chat/{chat.pk}/thread/?after="):
        page = html(client, path)
        assert "List products" in page
        assert "1 result" in page
        assert "canary" not in page


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        ("confirmation_required", "proposed, nothing has changed yet"),
        ("forbidden", "✕"),
        ("some_code_of_a_tool", "some code of a tool"),
    ],
)
def test_a_call_tells_what_became_of_it(outcome: str, told: str) -> None:
    _, client, chat = signed_in()
    summary = {"name": "catalogue.gone", "outcome": outcome, "count": None, "truncated": False}
    make_tool_message(chat, result={}, tool_summary=summary)
    page = html(client, f"/chat/{chat.pk}/")
    assert told in page
    assert "catalogue.gone" in page


def test_a_cut_result_is_told() -> None:
    _, client, chat = signed_in()
    summary = {"name": "catalogue.list_products", "outcome": "ok", "count": 300, "truncated": True}
    make_tool_message(chat, result={}, tool_summary=summary)
    assert "300 results, the assistant got the beginning only" in html(client, f"/chat/{chat.pk}/")
    Message.objects.update(tool_summary={**summary, "count": None})
    assert ">the assistant got the beginning only<" in html(client, f"/chat/{chat.pk}/")


@pytest.mark.parametrize(
    ("state", "told", "again"),
    [
        ("queued", "about to answer", False),
        ("running", "is answering", False),
        ("done", "", False),
        ("failed", "ended early", True),
        ("stopped", "Stopped.", True),
        ("interrupted", "was interrupted", True),
    ],
)
def test_the_line_below_tells_how_the_turn_stands(state: str, told: str, again: bool) -> None:
    person, client, chat = signed_in()
    make_turn(chat, person.session, state=Turn.State(state))
    page = html(client, f"/chat/{chat.pk}/")
    assert told in page
    assert ("data-retry" in page) is again
    assert (f'data-turn="{state}" data-running' in page) is (state in ("queued", "running"))


# --- Cards ------------------------------------------------------------------------------------------------------------


def test_a_card_of_a_tool_that_is_not_visible_now_shows_neither_arguments_nor_preview() -> None:
    person, client, chat = signed_in(permissions=SHOPKEEPER)
    set_setting("api_session_write_modules", ["catalogue"])
    message = make_tool_message(chat, result={})
    make_card(message, arguments={"reason": "canary-of-arguments"}, preview={"summary": "canary-of-a-preview"})
    shown = html(client, f"/chat/{chat.pk}/")
    assert ("canary-of-arguments" in shown, "canary-of-a-preview" in shown) == (True, True)
    set_setting("api_session_write_modules", [])
    hidden = html(client, f"/chat/{chat.pk}/")
    assert "canary" not in hidden
    assert "data-decide" not in hidden
    assert person.user.pk


def test_a_card_that_was_confirmed_and_refused_says_why() -> None:
    _, client, chat = signed_in(permissions=SHOPKEEPER)
    set_setting("api_session_write_modules", ["catalogue"])
    message = make_tool_message(chat, result={})
    make_card(message, state=Card.State.USED, code="conflict", decided_at=timezone.now())
    page = html(client, f"/chat/{chat.pk}/")
    assert "confirmed, but refused" in page
    assert 'class="reason"' in page


# --- The list, the tools and the way out ------------------------------------------------------------------------------


def test_the_list_is_the_persons_own_and_marks_the_chat_that_is_open() -> None:
    person, client, chat = signed_in()
    make_chat(make_person().user, title="canary-of-another")
    make_chat(person.user, title="<script>alert(1)</script>")
    page = html(client, f"/chat/list/?here={chat.pk}")
    assert page.count("<li") == 2
    assert page.count('aria-current="page"') == 1
    assert "canary" not in page
    assert "&lt;script&gt;" in page
    assert "No chat has these words" in html(client, "/chat/list/?q=nothing-like-it")


def test_the_tools_are_those_that_may_be_called_now() -> None:
    _, client, _ = signed_in(permissions=SHOPKEEPER)
    names = [one["name"] for one in client.get("/chat/tools/").json()["tools"]]
    assert "catalogue_list_products" in names
    assert "catalogue_update_prices" not in names
    set_setting("api_session_write_modules", ["catalogue"])
    assert "catalogue_update_prices" in [one["name"] for one in client.get("/chat/tools/").json()["tools"]]


def test_a_link_leads_to_a_page_with_its_host_and_nowhere_else() -> None:
    _, client, _ = signed_in()
    page = html(client, "/chat/leave/?to=https%3A%2F%2Fshop.example.org%2Fa%3Fb%3D%2522")
    assert "<strong>shop.example.org</strong>" in page
    for to in ("javascript:alert(1)", "//x.example.org", "/chat/", "", "data:text/html,x", "https://", "http://[x"):
        assert client.get("/chat/leave/", {"to": to}).status_code == 404


def test_a_switched_off_assistant_is_closed_for_everybody() -> None:
    _, client, chat = signed_in()
    set_setting("agent_enabled", False)
    assert "not open to you" in html(client, f"/chat/{chat.pk}/", 403)
