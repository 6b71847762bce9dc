"""A turn and its cards by HTTP alone, from a browser's session, and no answer holds what a tool got or gave (CH-6)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from apps.agent.models import Card
from apps.api import registry
from tests.agent import scripted
from tests.agent.chatting import Chatter, make_chatter, run_queued
from tests.agent.desk import SECRET_ARGUMENT, SECRET_RESULT, make_desk, puts
from tests.agent.factories import sign_in
from tests.agent.scripted import Text, ToolCall
from tests.api import factories
from tests.api.probe import CHANGE

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def chatter(transactional_db: None, settings: Any) -> Iterator[Chatter]:
    settings.API_SEND_TASK = "tests.agent.chatting.keep_task"
    factories.set_setting("api_session_write_modules", ["desk"])
    with registry.using(make_desk()):
        yield make_chatter(permissions=[CHANGE])


class Browser:
    """Keeps every byte that it is sent."""

    def __init__(self, client: Client, chatter: Chatter) -> None:
        self.client, self.base, self.seen = client, f"/api/agent/conversations/{chatter.chat.pk}", ""

    def get(self, path: str) -> Any:
        return self._kept(self.client.get(f"{self.base}{path}"))

    def post(self, path: str, body: Any = None) -> Any:
        data = json.dumps({} if body is None else body)
        return self._kept(self.client.post(f"{self.base}{path}", data, content_type="application/json"))

    def _kept(self, answer: Any) -> Any:
        self.seen += answer.content.decode() + str(answer.headers)
        return answer


@pytest.fixture
def browser(chatter: Chatter) -> Browser:
    return Browser(sign_in(chatter.person.user), chatter)


def test_a_turn_and_a_confirmed_write_by_http_alone(chatter: Chatter, browser: Browser) -> None:
    assert browser.get("/turn").json() == {"turn": None}
    sent = browser.post("/messages", {"content": "Put the lamp"})
    assert (sent.status_code, sent.json()["turn"]["state"]) == (202, "queued")
    look = ToolCall(id="1", name="desk_find", arguments=json.dumps({"text": SECRET_ARGUMENT}))
    put = ToolCall(id="2", name="desk_put", arguments=json.dumps({"name": "lamp", "value": 7}))
    with scripted.playing([Text(text="Let me see."), look, put], [Text(text="Please confirm.")]):
        run_queued()
    assert browser.get("/turn").json()["turn"]["state"] == "done"
    found = browser.get("/messages").json()["messages"]
    assert [row["role"] for row in found] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [set(call) for call in found[1]["tool_calls"]] == [{"id", "name"}] * 2
    (card,) = browser.get("/confirmations").json()["confirmations"]
    assert (card["state"], card["title"], card["arguments"]) == ("waiting", "Put", {"name": "lamp", "value": 7})
    before = puts()
    decided = browser.post(f"/confirmations/{card['uuid']}/confirm")
    assert (decided.status_code, decided.json()["confirmation"]["state"], puts(before)) == (200, "used", 1)
    again = browser.post(f"/confirmations/{card['uuid']}/confirm")
    assert (again.status_code, again.json()["code"], again.json()["reason"]) == (409, "confirm_token_invalid", "used")
    with scripted.playing([Text(text="It is there.")]):
        run_queued()
    assert browser.get("/messages").json()["messages"][-1]["content"] == "It is there."
    assert SECRET_RESULT not in browser.seen
    assert SECRET_ARGUMENT not in browser.seen


def test_a_refusal_of_the_tool_keeps_its_words_inside(chatter: Chatter, browser: Browser) -> None:
    put = ToolCall(id="2", name="desk_put", arguments=json.dumps({"name": "lamp", "fail": "refuse"}))
    with scripted.playing([put], [Text(text="Please confirm.")]):
        chatter.ask()
    decided = browser.post(f"/confirmations/{Card.objects.get().pk}/confirm").json()
    assert (decided["code"], decided["confirmation"]["state"]) == ("desk_closed", "used")
    browser.get("/messages")
    assert SECRET_RESULT not in browser.seen


def test_reject_stop_and_retry_by_http(chatter: Chatter, browser: Browser) -> None:
    put = ToolCall(id="2", name="desk_put", arguments=json.dumps({"name": "lamp"}))
    with scripted.playing([put], [Text(text="Please confirm.")]):
        chatter.ask()
    rejected = browser.post(f"/confirmations/{Card.objects.get().pk}/reject").json()
    assert rejected["confirmation"]["state"] == "rejected"
    assert browser.post("/turn/stop").json()["turn"]["state"] == "stopped"
    assert browser.post("/turn/stop").status_code == 200
    tried = browser.post("/turn/retry")
    assert (tried.status_code, tried.json()["turn"]["state"]) == (202, "queued")
    busy = browser.post("/turn/retry")
    assert (busy.status_code, busy.json()["code"]) == (409, "turn_running")
    assert browser.post("/messages", {"content": "And?"}).json()["code"] == "turn_running"


def test_a_card_of_a_tool_that_is_closed_now_is_not_shown_and_not_confirmed(chatter: Chatter, browser: Browser) -> None:
    put = ToolCall(id="2", name="desk_put", arguments=json.dumps({"name": "lamp"}))
    with scripted.playing([put], [Text(text="Please confirm.")]):
        chatter.ask()
    factories.set_setting("api_session_write_modules", [])
    assert browser.get("/confirmations").json() == {"confirmations": []}
    before = puts()
    refused = browser.post(f"/confirmations/{Card.objects.get().pk}/confirm")
    assert (refused.status_code, refused.json()["code"], puts(before)) == (403, "module_write_disabled", 0)
    assert Card.objects.get().state == "waiting"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/turn"),
        ("post", "/turn/stop"),
        ("post", "/turn/retry"),
        ("get", "/confirmations"),
        ("post", "/confirmations/00000000-0000-4000-8000-000000000000/confirm"),
        ("post", "/confirmations/00000000-0000-4000-8000-000000000000/reject"),
    ],
)
def test_a_stranger_and_a_visitor_find_nothing(chatter: Chatter, method: str, path: str) -> None:
    stranger = Browser(sign_in(make_chatter(permissions=[CHANGE]).person.user), chatter)
    visitor = Browser(Client(), chatter)
    found = getattr(stranger, method)(path)
    assert (found.status_code, found.json()["code"]) == (404, "not_found")
    found = getattr(visitor, method)(path)
    assert (found.status_code, found.json()["code"]) == (401, "unauthorized")


@pytest.mark.parametrize("path", ["/turn/stop", "/turn/retry", "/confirmations/x/confirm", "/confirmations/x/reject"])
def test_no_write_without_the_token_of_the_browser(chatter: Chatter, path: str) -> None:
    browser = Browser(sign_in(chatter.person.user, enforce_csrf_checks=True), chatter)
    found = browser.post(path)
    assert (found.status_code, found.json()["code"], found.json()["reason"]) == (403, "forbidden", "csrf")


def test_an_odd_uuid_of_a_card_is_nobodys(chatter: Chatter, browser: Browser) -> None:
    assert browser.post("/confirmations/odd/confirm").status_code == 404
    assert browser.post("/confirmations/odd/reject", {"more": 1}).json()["code"] == "validation_failed"
