"""The chats over `/api/agent/`: the shapes, who is refused with which problem, and bodies, methods and parameters (CH-6)."""

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from apps.accounts.models import LiveSession, User
from apps.agent import conversations
from apps.agent.models import Conversation, Message, Turn
from apps.agent.rest import urls
from apps.api.models import ApiKey
from tests.accounts.factories import make_owner, switch_on
from tests.agent.factories import (
    make_chat,
    make_message,
    make_messages,
    make_person,
    make_tool_message,
    make_turn,
    sign_in,
)
from tests.api import problem
from tests.api.factories import make_key, revoke, set_setting

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

ROOT = "/api/agent/conversations"
CHAT = {"uuid", "title", "status", "message_count", "last_message_at", "created_at"}
MESSAGE = {
    "uuid", "number", "version", "role", "content", "live", "created_at", "tool_calls", "tool_result", "tool_summary",
}  # fmt: skip
TURN = {"uuid", "state", "code", "started_at", "ended_at"}

# Every path and method of this part, with a body that would do.
CALLS: dict[str, tuple[str, str, Any]] = {
    "list": ("get", "", None),
    "search": ("get", "?q=lamp", None),
    "create": ("post", "", {"title": "x"}),
    "show": ("get", "/{chat}", None),
    "rename": ("patch", "/{chat}", {"title": "Other"}),
    "delete": ("delete", "/{chat}", None),
    "archive": ("post", "/{chat}/archive", None),
    "unarchive": ("post", "/{chat}/unarchive", None),
    "restore": ("post", "/{chat}/restore", None),
    "messages": ("get", "/{chat}/messages", None),
    "send": ("post", "/{chat}/messages", {"content": "Hello."}),
    "message": ("get", "/{chat}/messages/{message}", None),
    "turn": ("get", "/{chat}/turn", None),
    "stop": ("post", "/{chat}/turn/stop", None),
    "retry": ("post", "/{chat}/turn/retry", None),
    "confirmations": ("get", "/{chat}/confirmations", None),
    "confirm": ("post", "/{chat}/confirmations/{message}/confirm", None),
    "reject": ("post", "/{chat}/confirmations/{message}/reject", None),
}
OF_ONE_CHAT = [name for name, (_, path, _body) in CALLS.items() if "{chat}" in path]


@pytest.fixture(autouse=True)
def _no_worker(settings: Settings) -> None:
    """A turn stays queued: what it does is shown elsewhere."""
    settings.API_SEND_TASK = "tests.agent.test_rest.nowhere"


def nowhere(name: str, *arguments: str) -> None:
    """A broker that is away."""


def call(client: Client, name: str, chat: object = "", message: object = "", **headers: str) -> Any:
    method, path, body = CALLS[name]
    return send(client, method, ROOT + path.format(chat=chat, message=message), body, **headers)


def send(client: Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """A str or bytes body is sent as it is."""
    data = body if isinstance(body, str | bytes) else "" if body is None else json.dumps(body)
    return client.generic(method.upper(), path, data, content_type="application/json", headers=headers)


def seen(answer: Any) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers, without what names the request itself."""
    document = json.loads(answer.content)
    document.pop("request_id")
    headers = {name: value for name, value in answer.headers.items() if name not in ("X-Request-ID", "Content-Length")}
    return answer.status_code, json.dumps(document).encode(), headers


# --- What a person gets ---------------------------------------------------------------------------------------------------------------


def test_a_chat_goes_through_its_life() -> None:
    client = sign_in(make_person().user)
    made = send(client, "post", ROOT, {"title": "Lamps"})
    chat = made.json()
    assert (made.status_code, set(chat), chat["title"], chat["status"]) == (201, CHAT, "Lamps", "active")
    path = f"{ROOT}/{chat['uuid']}"
    assert send(client, "get", ROOT).json() == {"conversations": [chat], "next_cursor": None}
    assert send(client, "get", path).json() == chat
    assert send(client, "patch", path, {"title": "Beds"}).json()["title"] == "Beds"
    assert send(client, "post", f"{path}/archive").json()["status"] == "archived"
    assert send(client, "get", ROOT).json()["conversations"] == []
    assert send(client, "post", f"{path}/unarchive").json()["status"] == "active"
    assert send(client, "delete", path).json()["status"] == "deleted"
    problem.of(send(client, "get", path), 404, "not_found")
    assert send(client, "post", f"{path}/restore").json() == {**chat, "title": "Beds"}


def test_a_text_is_accepted_with_its_message_and_the_turn_that_answers_it() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    sent = send(client, "post", f"{ROOT}/{chat.pk}/messages", {"content": "Which lamps?", "client_uuid": str(uuid4())})
    found = sent.json()
    assert (sent.status_code, set(found)) == (202, {"message", "turn"})
    assert (set(found["message"]), set(found["turn"])) == (MESSAGE, TURN)
    assert (found["message"]["role"], found["message"]["content"], found["turn"]["state"]) == (
        "user", "Which lamps?", "queued",
    )  # fmt: skip
    turn = Turn.objects.get(pk=found["turn"]["uuid"])
    live = LiveSession.objects.exclude(pk=person.session.pk).get()
    assert (turn.session_uuid, turn.conversation_id) == (live.pk, chat.pk)


def test_what_the_turn_is_told_of_the_request_is_the_servers_own_word() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    headers = {
        "X-Request-ID": "r-1",
        "Accept-Language": "de",
        "Host": "testserver",
        "X-Forwarded-Host": "evil.example.org",
    }
    call(client, "send", chat.pk, **headers)
    assert Turn.objects.get().request_context == {
        "language": "de",
        "base_url": "http://testserver",
        "hosts": ["testserver"],
        "currency": "EUR",
        "request_id": "r-1",
        "ip": "127.0.0.1",
    }


def test_a_second_send_of_one_message_is_the_first_one() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    body = {"content": "Hello.", "client_uuid": str(uuid4())}
    first = send(client, "post", f"{ROOT}/{chat.pk}/messages", body)
    again = send(client, "post", f"{ROOT}/{chat.pk}/messages", body)
    assert (again.status_code, again.json()) == (202, first.json())
    assert (Message.objects.count(), Turn.objects.count()) == (1, 1)


def test_a_text_while_a_turn_is_running_is_409_and_not_stored() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    make_turn(chat, person.session)
    found = problem.of(call(client, "send", chat.pk), 409, "turn_running")
    assert (found["retry"], Message.objects.count()) == ("later", 0)


def test_messages_come_in_pages() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    rows = make_messages(chat, 5)

    def page(query: str) -> list[int]:
        found = send(client, "get", f"{ROOT}/{chat.pk}/messages{query}").json()
        assert set(found) == {"messages"}
        return [row["number"] for row in found["messages"]]

    assert page("") == [1, 2, 3, 4, 5]
    assert page("?limit=2") == [1, 2]
    assert page(f"?after={rows[2].pk}") == [4, 5]
    assert page(f"?before={rows[2].pk}&limit=1") == [2]
    assert page("?latest=1&limit=2") == [4, 5]


def test_a_stale_tab_adds_to_the_chat_as_it_is_now_and_overwrites_nothing() -> None:
    person = make_person()
    stale, client, chat = sign_in(person.user), sign_in(person.user), make_chat(person.user)
    make_messages(chat, 2)
    seen_then = call(stale, "messages", chat.pk).json()["messages"]
    call(client, "send", chat.pk)
    Turn.objects.update(state=Turn.State.DONE, ended_at=timezone.now())
    sent = call(stale, "send", chat.pk).json()["message"]
    after = call(stale, "messages", chat.pk).json()["messages"]
    assert (sent["number"], after[:2]) == (4, seen_then)
    assert [row["number"] for row in after] == [1, 2, 3, 4]


def test_one_message_is_what_the_page_had() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    message = make_message(chat, "Ünd 😀 <b>")
    found = call(client, "message", chat.pk, message.pk).json()
    assert found == call(client, "messages", chat.pk).json()["messages"][0]
    assert (set(found), found["content"], found["tool_result"]) == (MESSAGE, "Ünd 😀 <b>", None)


def test_neither_a_tools_result_nor_its_arguments_come_out_of_any_path() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user, title="Lamps")
    calls = [{"id": "call-1", "name": "catalogue_list_products", "arguments": '{"query": "CANARY-A"}'}]
    asked = make_message(chat, "Looking.", role="assistant", tool_calls=calls)
    told = make_tool_message(chat, result={"products": [{"sku": "CANARY-R"}]})
    answers = [
        call(client, name, chat.pk, message.pk)
        for message in (asked, told)
        for name in ("list", "show", "messages", "message", "rename", "archive")
    ]
    assert all(answer.status_code == 200 for answer in answers)
    assert not [answer.content for answer in answers if b"CANARY" in answer.content]
    shown = call(client, "messages", chat.pk).json()["messages"]
    assert shown[0]["tool_calls"] == [{"id": "call-1", "name": "catalogue_list_products"}]
    assert (shown[1]["tool_result"], shown[1]["tool_summary"]["count"]) == (None, 1)


def test_the_paths_lead_there_with_a_slash_at_their_end_too() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    assert send(client, "get", f"{ROOT}/").status_code == 200
    assert send(client, "get", f"{ROOT}/{chat.pk}/messages/").status_code == 200


def test_no_answer_may_be_kept_by_anybody() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    answers = [call(client, "show", chat.pk), call(client, "show", uuid4()), call(Client(), "show", chat.pk)]
    assert {answer["Cache-Control"] for answer in answers} == {"no-store"}
    assert all(answer["X-Request-ID"] for answer in answers)


def test_every_path_and_method_is_among_the_calls_that_are_tried_here() -> None:
    found = set()
    for pattern in urls.urlpatterns:
        view: Any = pattern.callback
        path = re.sub(
            r"\(\?P<(\w+)>[^)]*\)", lambda group: "{chat}" if group[1] == "uuid" else "{message}", str(pattern.pattern)
        )
        path = path.removeprefix("^conversations").removesuffix(r"/?\Z")
        found |= {(name, path) for name in view.view_class.http_method_names if name != "head"}
    assert found == {(method, path.partition("?")[0]) for method, path, _ in CALLS.values()}


# --- Who is refused -------------------------------------------------------------------------------------------------------------------


def rows() -> tuple[Any, ...]:
    return list(Conversation.objects.order_by("pk").values()), list(Message.objects.order_by("pk").values())


@pytest.mark.parametrize("name", CALLS)
def test_a_visitor_is_401_and_told_how_one_gets_in(name: str) -> None:
    chat = make_chat(make_person().user)
    before = rows()
    answer = call(Client(), name, chat.pk, uuid4())
    found = problem.of(answer, 401, "unauthorized")
    assert (found["reason"], answer["WWW-Authenticate"]) == ("session_gone", 'Session realm="agent"')
    assert rows() == before


@pytest.mark.parametrize("name", CALLS)
def test_a_session_that_ended_is_401(name: str) -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    LiveSession.objects.update(ended_at=timezone.now(), end_reason="revoked")
    assert problem.of(call(client, name, chat.pk, uuid4()), 401, "unauthorized")["reason"] == "session_gone"


@pytest.mark.parametrize("name", CALLS)
def test_an_impersonator_gets_the_code_of_the_assistant_and_no_page(name: str) -> None:
    person, operator = make_person(), make_owner()
    chat = make_chat(person.user)
    message = make_message(chat)
    client, before = sign_in(operator), rows()
    assert client.post("/impersonate/", {"user_pk": str(person.user.pk)}).status_code == 302
    assert LiveSession.objects.filter(impersonator=operator, ended_at=None).exists()
    problem.of(call(client, name, chat.pk, message.pk), 403, "impersonated")
    assert rows() == before


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("setting", "reason"),
    [("accounts_email_required", "unconfirmed"), ("accounts_referral_required", "referral_required")],
)
def test_a_person_behind_a_gate_is_401_with_the_reason_and_led_to_no_page(name: str, setting: str, reason: str) -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    switch_on(setting)
    assert problem.of(call(client, name, chat.pk, uuid4()), 401, "unauthorized")["reason"] == reason


@pytest.mark.parametrize("name", CALLS)
def test_a_blocked_person_is_401(name: str) -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    User.objects.filter(pk=person.user.pk).update(is_active=False)
    problem.of(call(client, name, chat.pk, uuid4()), 401, "unauthorized")


@pytest.mark.parametrize("name", CALLS)
def test_without_the_permission_or_the_module_it_is_403(name: str) -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    revoke(person.user, "agent.use_assistant")
    problem.of(call(client, name, chat.pk, uuid4()), 403, "forbidden")
    owner = sign_in(make_owner())
    set_setting("agent_enabled", False)
    problem.of(call(owner, name, chat.pk, uuid4()), 403, "forbidden")


@pytest.mark.parametrize("name", OF_ONE_CHAT)
def test_anothers_a_deleted_an_unknown_and_a_malformed_chat_are_one_answer_to_the_byte(name: str) -> None:
    person = make_person()
    client = sign_in(person.user)
    theirs, deleted = make_chat(make_person().user), make_chat(person.user, status="deleted")
    if name == "restore":  # not gone for this one: an hour later it is
        Conversation.objects.filter(pk=deleted.pk).update(deleted_at=timezone.now() - conversations.RESTORABLE)
    message = make_message(theirs)
    before = rows()
    odd = (
        theirs.pk,
        deleted.pk,
        uuid4(),
        "odd",
        "%00",
        "%F0%9F%98%80",
        f"%7B{theirs.pk}%7D",
        "x" * 500,
        str(theirs.pk).replace("-", ""),
    )
    answers = [seen(call(client, name, uuid, message.pk)) for uuid in odd]
    assert answers[0][0] == 404
    assert json.loads(answers[0][1])["code"] == "not_found"
    assert answers == [answers[0]] * len(odd)
    assert rows() == before


def test_a_message_that_is_not_of_this_chat_is_the_same_answer() -> None:
    person = make_person()
    client, chat, other = sign_in(person.user), make_chat(person.user), make_chat(person.user)
    message, theirs = make_message(other), make_message(make_chat(make_person().user))
    answers = [seen(call(client, "message", chat.pk, odd)) for odd in (message.pk, theirs.pk, uuid4(), "odd")]
    assert answers == [seen(call(client, "show", uuid4()))] * 4


def test_no_key_opens_these_paths() -> None:
    owner = make_owner()
    _, text = make_key(owner=owner, scopes=["catalogue:read"])
    problem.of(call(Client(), "list", Authorization=f"Bearer {text}"), 401, "unauthorized")


# --- CSRF, bodies, methods, parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, (method, _, _b) in CALLS.items() if method != "get"])
def test_a_write_needs_the_token_of_the_browsers_own_session(name: str) -> None:
    person = make_person()
    client = sign_in(person.user, enforce_csrf_checks=True)
    chat = make_chat(person.user, status="deleted" if name == "restore" else "active")
    before = rows()
    for headers in ({}, {"X-CSRFToken": "x" * 32}):
        assert problem.of(call(client, name, chat.pk, uuid4(), **headers), 403, "forbidden")["reason"] == "csrf"
    assert rows() == before
    client.get("/account/sessions/")
    token = client.cookies["csrftoken"].value
    # Let in: there is no turn to try again, and no card of that uuid.
    passed = (409,) if name == "retry" else (404,) if name in ("confirm", "reject") else (200, 201, 202)
    assert call(client, name, chat.pk, uuid4(), **{"X-CSRFToken": token}).status_code in passed


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("", "GET, HEAD, POST"),
        ("/{chat}", "GET, HEAD, PATCH, DELETE"),
        ("/{chat}/archive", "POST"),
        ("/{chat}/unarchive", "POST"),
        ("/{chat}/restore", "POST"),
        ("/{chat}/messages", "GET, HEAD, POST"),
        ("/{chat}/messages/{message}", "GET, HEAD"),
        ("/{chat}/turn", "GET, HEAD"),
        ("/{chat}/turn/stop", "POST"),
        ("/{chat}/turn/retry", "POST"),
        ("/{chat}/confirmations", "GET, HEAD"),
        ("/{chat}/confirmations/{message}/confirm", "POST"),
        ("/{chat}/confirmations/{message}/reject", "POST"),
    ],
)
def test_another_method_is_405_with_those_that_there_are(path: str, allowed: str) -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    whole = ROOT + path.format(chat=chat.pk, message=uuid4())
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - set(allowed.split(", ")):
        answer = send(client, method, whole)
        problem.of(answer, 405, "method_not_allowed")
        assert answer["Allow"] == allowed
    for method in {"GET", "HEAD"} & set(allowed.split(", ")):
        assert send(client, method, whole).status_code in (200, 404)


WRITES = [name for name, (_, _path, body) in CALLS.items() if body is not None]


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ('{"title": "a", "title": "b"}', 400, "invalid_json"),
        ("{", 400, "invalid_json"),
        ("[1]", 400, "invalid_json"),
        ('{"title": "\\u0000", "content": "\\u0000"}', 400, "invalid_json"),
        ('{"title": "\\ud800", "content": "\\ud800"}', 400, "invalid_json"),
        (b'{"title": "\xff"}', 400, "invalid_json"),
        ('{"title": "a", "content": "a", "owner": "x"}', 422, "validation_failed"),
        ('{"title": "a", "content": "a", "status": "deleted"}', 422, "validation_failed"),
        ('{"title": "a", "content": "a", "role": "assistant"}', 422, "validation_failed"),
        (" " * 2_000_001, 413, "body_too_large"),
    ],
)
def test_a_body_is_read_strictly_and_nothing_is_stored_of_an_odd_one(
    name: str, body: Any, status: int, code: str
) -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user, title="Before")
    before = rows()
    method, path, _ = CALLS[name]
    problem.of(send(client, method, ROOT + path.format(chat=chat.pk), body), status, code)
    assert rows() == before


@pytest.mark.parametrize(
    "name", [name for name, (method, _, body) in CALLS.items() if method != "get" and body is None]
)
def test_a_call_that_takes_nothing_takes_no_member(name: str) -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    method, path, _ = CALLS[name]
    whole, before = ROOT + path.format(chat=chat.pk, message=uuid4()), rows()
    problem.of(send(client, method, whole, {"force": True}), 422, "validation_failed")
    assert rows() == before
    assert send(client, method, whole, {}).status_code in (200, 404, 409)


def test_another_media_type_is_415() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    answer = client.post(
        f"{ROOT}/{chat.pk}/messages", "content=Hello.", content_type="application/x-www-form-urlencoded"
    )
    problem.of(answer, 415, "unsupported_media_type")
    assert Message.objects.count() == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "unreadable"),
        ({"content": "  "}, "blank"),
        ({"content": 5}, "unreadable"),
        ({"content": "x" * 40_001}, "too_long"),
    ],
)
def test_a_text_that_can_not_be_stored_says_why(body: Any, reason: str) -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    found = problem.of(send(client, "post", f"{ROOT}/{chat.pk}/messages", body), 422, "content_invalid")
    assert (found["reason"], Message.objects.count()) == (reason, 0)


@pytest.mark.parametrize("body", [{}, {"title": ""}, {"title": None}, {"title": 5}, {"title": "x" * 201}])
def test_a_title_that_is_none_says_where(body: Any) -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    found = problem.of(send(client, "patch", f"{ROOT}/{chat.pk}", body), 422, "validation_failed")
    assert found["errors"][0]["pointer"] == "/title"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("?cursor=x", 422, "invalid_cursor"),
        ("?cursor=", 422, "invalid_cursor"),
        ("?q=lamp&cursor=x", 422, "invalid_cursor"),
        ("?limit=0", 422, "validation_failed"),
        ("?limit=-1", 422, "validation_failed"),
        ("?limit=many", 422, "validation_failed"),
        ("?limit=%D9%A3", 422, "validation_failed"),
        ("?limit=", 422, "validation_failed"),
        ("?limit=99999999999", 422, "validation_failed"),
        ("?limit=1&limit=2", 422, "validation_failed"),
        ("?status=deleted", 422, "validation_failed"),
        (f"?q={'x' * 201}", 422, "validation_failed"),
        ("/{chat}?all=1", 422, "validation_failed"),
        ("/{chat}/messages?after=x", 422, "invalid_cursor"),
        ("/{chat}/messages?after=", 422, "invalid_cursor"),
        ("/{chat}/messages?after={message}&before={message}", 422, "invalid_cursor"),
        ("/{chat}/messages?after={message}&latest=1", 422, "invalid_cursor"),
        ("/{chat}/messages?latest=0", 422, "validation_failed"),
        ("/{chat}/messages?latest=", 422, "validation_failed"),
        ("/{chat}/messages?page=2", 422, "validation_failed"),
        ("/{chat}/messages/{message}?full=1", 422, "validation_failed"),
        ("/{chat}/turn?full=1", 422, "validation_failed"),
        ("/{chat}/confirmations?state=waiting", 422, "validation_failed"),
    ],
)
def test_a_parameter_that_is_none_of_this_path_is_refused(path: str, status: int, code: str) -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    message = make_message(chat)
    problem.of(send(client, "get", ROOT + path.format(chat=chat.pk, message=message.pk)), status, code)


def test_more_than_a_page_holds_is_a_page() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    make_messages(chat, 201)
    assert len(send(client, "get", f"{ROOT}/{chat.pk}/messages?limit=500").json()["messages"]) == 200


def test_a_key_in_a_text_is_refused_marked_and_goes_nowhere() -> None:
    person = make_person()
    client, chat = sign_in(person.user), make_chat(person.user)
    key, text = make_key()
    body = {"content": f"It does not work: {text}, why?"}
    problem.of(send(client, "post", f"{ROOT}/{chat.pk}/messages", body), 400, "credential_in_body")
    assert (Message.objects.count(), ApiKey.objects.get(pk=key.pk).exposed_at is None) == (0, False)


@pytest.mark.parametrize("name", ["api_key", "Token", "SECRET", "authorization"])
def test_a_credential_in_the_url_is_refused(name: str) -> None:
    client = sign_in(make_person().user)
    problem.of(send(client, "get", f"{ROOT}?{name}=x"), 400, "credential_in_url")


# A problem in place of a page closes the page's answer, and with it the connection: not in the transaction of a test.
@pytest.mark.django_db(transaction=True)
def test_a_path_that_leads_nowhere_is_a_problem_too() -> None:
    client = sign_in(make_person().user)
    for path in ("/api/agent/", "/api/agent/nothing", f"{ROOT}/{uuid4()}/nothing"):
        problem.of(send(client, "get", path), 404, "not_found")


# --- Search ---------------------------------------------------------------------------------------------------------------------------


def test_a_search_answers_as_the_list_does() -> None:
    person = make_person()
    client = sign_in(person.user)
    make_chat(person.user, title="Beds")
    chat = make_chat(person.user, title="Lamps")
    found = send(client, "get", f"{ROOT}?q=lamp").json()
    assert ([row["uuid"] for row in found["conversations"]], found["next_cursor"]) == ([str(chat.pk)], None)
    assert len(send(client, "get", f"{ROOT}?q=%20").json()["conversations"]) == 2


# --- What it costs --------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_prepared")
@pytest.mark.parametrize("many", [1, 40])
def test_the_queries_of_a_request_do_not_grow_with_chats_or_messages(
    many: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    person = make_person()
    client, chats = sign_in(person.user), [make_chat(person.user) for _ in range(many)]
    rows = make_messages(chats[0], many)
    # The browser session, the person and their live session as for every page; the three checks; what was asked for.
    for path, queries in (
        ("", 7),
        (f"/{chats[0].pk}", 7),
        (f"/{chats[0].pk}/messages", 8),
        (f"/{chats[0].pk}/messages?before={rows[-1].pk}", 9),
        (f"/{chats[0].pk}/messages/{rows[0].pk}", 8),
    ):
        with django_assert_num_queries(queries):
            assert send(client, "get", ROOT + path).status_code == 200
