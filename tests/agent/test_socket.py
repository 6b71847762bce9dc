"""The websocket of chats: who may listen to what, what they are told, and when they are sent away. The application is the real one."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from channels.layers import channel_layers
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import LiveSession, User
from apps.agent import access, audience, consumers, events
from apps.agent.models import AgentSetting, Conversation
from apps.api import arrival, broadcast, live_sockets, standing
from tests import sockets
from tests.accounts.factories import make_owner, make_user
from tests.agent.factories import make_chat
from tests.api.factories import revoke, set_setting
from tests.sockets import ODD, Socket, outside

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

PATH = "/ws/agent/"
NOT_FOUND = {"type": "error", "code": "not_found"}
REDIS = {"BACKEND": "config.redis_layer.RedisLayer"}

listening = partial(sockets.listening, path=PATH)
told_first = partial(sockets.told_first, path=PATH)


@pytest.fixture(autouse=True)
def _one_process(settings: Any) -> Iterator[None]:
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "config.layers.OneProcessLayer"}}
    yield
    broadcast._sender.flush(5)


@pytest.fixture
def person() -> User:
    return make_user(permissions=[access.PERMISSION])


@pytest.fixture
def browser(person: User) -> Client:
    return sockets.browser_of(person)


@pytest.fixture
def chat(person: User) -> Conversation:
    return make_chat(person)


async def subscribe(socket: Socket, *chats: Any) -> None:
    """Said and done: the answer to a ping comes after it."""
    for chat in chats:
        await socket.say({"type": "subscribe", "conversation": str(getattr(chat, "pk", chat))})
    await socket.say({"type": "ping"})
    assert await socket.told() == {"type": "pong"}


def added(chat: Conversation, message: UUID) -> dict[str, str]:
    uuid = str(chat.pk)
    frame = {"type": "agent_message_added", "topic": f"agent:conv:{uuid}", "conversation": uuid}
    return {**frame, "message": str(message)}


async def told_of(socket: Socket, chat: Conversation) -> None:
    """The socket hears of the chat, and had nothing else to tell."""
    message = uuid4()
    await outside(events.message_added, chat.pk, message)
    assert await socket.told() == added(chat, message)


# --- Who may listen ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["https://evil.example.org", "", "null", "http://testserver:81"])
def test_a_foreign_page_and_one_without_an_origin_are_refused_at_the_handshake(browser: Client, origin: str) -> None:
    assert told_first(browser, origin=origin) is None


def test_a_visitor_is_accepted_and_sent_away_with_a_code() -> None:
    assert told_first(None) == 4401
    assert told_first(None, cookie="sessionid=nonsense") == 4401


def test_who_may_not_use_the_assistant_is_sent_away(browser: Client, person: User) -> None:
    revoke(person, access.PERMISSION)
    assert told_first(browser) == 4403


@pytest.mark.parametrize(("name", "value"), [("agent_enabled", False), ("disabled_modules", ["agent"])])
def test_an_assistant_that_is_switched_off_sends_everybody_away(browser: Client, name: str, value: Any) -> None:
    set_setting(name, value)
    assert told_first(browser) == 4403


def test_a_person_whose_assistant_is_switched_off_subscribes_to_nothing(
    browser: Client, person: User, chat: Conversation
) -> None:
    AgentSetting.objects.create(user=person, is_enabled=False)

    async def run(socket: Socket) -> Any:
        await socket.say({"type": "subscribe", "conversation": str(chat.pk)})
        return await socket.told()

    assert listening(browser, run) == 4403


def test_a_person_whose_assistant_is_switched_off_meanwhile_is_sent_away_at_once(
    browser: Client, person: User, chat: Conversation
) -> None:
    async def run(socket: Socket) -> Any:
        await subscribe(socket, chat)
        await outside(lambda: AgentSetting.objects.create(user=person, is_enabled=False))
        return await socket.told()

    assert listening(browser, run) == 4403


def test_somebody_who_looks_at_the_site_as_the_person_is_sent_away(browser: Client, person: User) -> None:
    LiveSession.objects.filter(user=person).update(impersonator=make_owner())
    assert told_first(browser) == 4403


def test_nobody_subscribes_to_what_is_not_theirs(browser: Client, person: User, chat: Conversation) -> None:
    hidden = [make_chat(make_user()).pk, make_chat(person, status="deleted").pk, uuid4(), "no uuid", ""]

    async def run(socket: Socket) -> None:
        for uuid in hidden:
            await socket.say({"type": "subscribe", "conversation": str(uuid)})
            assert await socket.told() == NOT_FOUND
        await subscribe(socket, chat)
        for uuid in hidden[:3]:
            await outside(events.message_added, uuid, uuid4())
        await told_of(socket, chat)

    listening(browser, run)


def test_only_the_session_of_the_cookie_counts(browser: Client, person: User, chat: Conversation) -> None:
    session = LiveSession.objects.get(user=person)
    stranger = sockets.browser_of(make_user(permissions=[access.PERMISSION]))

    async def run(socket: Socket) -> None:
        for name in ("session", "session_uuid", "user", "ref"):
            await socket.say({"type": "subscribe", "conversation": str(chat.pk), name: str(session.pk)})
            assert await socket.told() == ODD
        await socket.say({"type": "subscribe", "conversation": str(chat.pk)})
        assert await socket.told() == NOT_FOUND

    listening(stranger, run)


# --- What they are told -----------------------------------------------------------------------------------------------


def test_every_event_is_told_by_known_keys_and_uuids(browser: Client, chat: Conversation) -> None:
    one, other = uuid4(), uuid4()
    about = {"topic": f"agent:conv:{chat.pk}", "conversation": str(chat.pk)}

    async def run(socket: Socket) -> None:
        await subscribe(socket, chat)
        await told_of(socket, chat)
        await outside(partial(events.message_updated, version=3), chat.pk, one)
        frame = {"type": "agent_message_updated", **about, "message": str(one), "version": 3}
        assert await socket.told() == frame
        await outside(events.turn_changed, chat.pk, other)
        assert await socket.told() == {"type": "agent_turn_changed", **about, "turn": str(other)}
        await outside(events.confirmation_changed, chat.pk, one)
        assert await socket.told() == {"type": "agent_confirmation_changed", **about, "confirmation": str(one)}

    listening(browser, run)


def test_an_event_leaves_after_its_commit_and_never_without_one(browser: Client, chat: Conversation) -> None:
    message = uuid4()

    def undone() -> None:
        with transaction.atomic():
            events.message_added(chat.pk, uuid4())
            transaction.set_rollback(True)

    def done() -> None:
        with transaction.atomic():
            events.message_added(chat.pk, message)

    async def run(socket: Socket) -> None:
        await subscribe(socket, chat)
        await outside(undone)
        await outside(done)
        assert await socket.told() == added(chat, message)

    listening(browser, run)


def test_a_chat_that_was_left_is_told_no_more_and_subscribing_twice_tells_once(
    browser: Client, person: User, chat: Conversation
) -> None:
    other = make_chat(person)

    async def run(socket: Socket) -> None:
        await subscribe(socket, chat, chat, other)
        await told_of(socket, chat)
        await socket.say({"type": "unsubscribe", "conversation": str(chat.pk)})
        await socket.say({"type": "unsubscribe", "conversation": "no uuid"})
        await subscribe(socket)
        await outside(events.message_added, chat.pk, uuid4())
        await told_of(socket, other)

    listening(browser, run)


def delete(chat: Conversation) -> None:
    Conversation.objects.filter(pk=chat.pk).update(status="deleted", deleted_at=chat.created_at)


def give_away(chat: Conversation) -> None:
    Conversation.objects.filter(pk=chat.pk).update(user=make_user())


@pytest.mark.parametrize("lose", [delete, give_away])
def test_an_event_of_a_chat_that_was_lost_meanwhile_never_arrives(
    browser: Client, person: User, chat: Conversation, lose: Callable[[Conversation], None]
) -> None:
    other = make_chat(person)

    async def run(socket: Socket) -> None:
        await subscribe(socket, chat, other)
        await told_of(socket, chat)
        await outside(lose, chat)
        await outside(events.message_added, chat.pk, uuid4())
        assert await socket.told() == NOT_FOUND
        await outside(events.message_added, chat.pk, uuid4())
        await told_of(socket, other)

    listening(browser, run)


def test_a_lost_chat_is_noticed_without_an_event(
    browser: Client, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "CHECK_SECONDS", 0.05)

    async def run(socket: Socket) -> None:
        await subscribe(socket, chat)
        await outside(delete, chat)
        assert await socket.told() == NOT_FOUND

    listening(browser, run)


def test_250_events_of_task_threads_all_arrive(browser: Client, chat: Conversation) -> None:
    messages = [uuid4() for _ in range(250)]

    async def run(socket: Socket) -> set[str]:
        await subscribe(socket, chat)
        with ThreadPoolExecutor(25) as pool:
            list(pool.map(partial(events.message_added, chat.pk), messages))
        missing = {str(message) for message in messages}
        while missing:
            frame = await socket.told()
            assert frame == added(chat, UUID(frame["message"]))
            missing.remove(frame["message"])  # once each
        return missing

    assert listening(browser, run) == set()


def test_versions_of_a_draft_that_wait_are_the_newest_one(
    browser: Client, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers.ChatEvents, "gap_seconds", 0.5)
    draft = uuid4()

    async def run(socket: Socket) -> list[int]:
        await subscribe(socket, chat)
        await told_of(socket, chat)
        for version in range(2, 42):
            await outside(partial(events.message_updated, version=version), chat.pk, draft)
        told = [await socket.told()]
        while told[-1]["version"] != 41:
            told.append(await socket.told())
        return [frame["version"] for frame in told]

    told = listening(browser, run)
    assert told == sorted(told)
    assert len(told) < 20


def test_what_a_message_of_the_layer_holds_beside_known_keys_is_not_told(browser: Client, chat: Conversation) -> None:
    message = uuid4()
    frame = {"type": events.MESSAGE_ADDED, "conversation": str(chat.pk), "message": str(message)}
    odd = [
        {"type": "chat.event"},
        {"type": "chat.event", "frame": None},
        {"type": "chat.event", "frame": {**frame, "type": "agent_content"}},
        {"type": "chat.event", "frame": {**frame, "message": "the text itself"}},
        {"type": "chat.event", "frame": {**frame, "version": "the text itself"}},
        {"type": "chat.event", "frame": {**frame, "content": "the text itself"}},
    ]

    async def run(socket: Socket) -> None:
        await subscribe(socket, chat)
        for sent in odd:
            await channel_layers["default"].group_send(f"agent.conv.{chat.pk}", sent)
        assert await socket.told() == added(chat, message)

    listening(browser, run)


# --- How often they are asked about -----------------------------------------------------------------------------------


def test_a_session_costs_one_query_a_second_however_many_events_and_sockets_it_has(
    browser: Client, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    of_session = access.of_session

    def counted(ref: object, stored: str) -> Any:
        with CaptureQueriesContext(connection) as queries:
            found = of_session(ref, stored)
        assert len(queries) == 1
        asked.append(ref)
        return found

    monkeypatch.setattr(standing, "FRESH_SECONDS", 60.0)
    monkeypatch.setattr(access, "of_session", counted)

    async def run(socket: Socket) -> None:
        second = await sockets.ready(browser, path=PATH)
        await subscribe(socket, chat)
        asked.clear()  # to subscribe asks it all
        await subscribe(second, chat)
        asked.clear()
        for _ in range(3):
            message = uuid4()
            await outside(events.message_added, chat.pk, message)
            assert await socket.told() == await second.told() == added(chat, message)
        await second.leave()

    listening(browser, run)
    assert asked == []


def test_sockets_that_ask_at_the_same_time_are_answered_by_one_query(
    person: User, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[UUID]] = []
    look = audience._owners

    def counted(chats: set[UUID]) -> audience.Owners:
        asked.append(set(chats))
        return look(chats)

    monkeypatch.setattr(audience, "_owners", counted)
    chats = [chat.pk, *(make_chat(person).pk for _ in range(19)), make_chat(person, status="deleted").pk]

    async def run() -> list[audience.Owners]:
        return await asyncio.gather(*(audience.of([uuid]) for uuid in chats for _ in range(5)))

    found = asyncio.run(run())
    owner = audience.Owner(person_id=str(person.pk), is_shut_out=False)
    assert asked == [set(chats)]
    assert all(answer == dict.fromkeys(chats[:-1], owner) for answer in found)


# --- When they are sent away ------------------------------------------------------------------------------------------


def test_a_log_out_in_one_tab_closes_the_sockets_of_the_other_tabs_and_no_other_session(
    browser: Client, person: User, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "FRESH_SECONDS", 600.0)
    elsewhere = sockets.browser_of(person)

    async def run(socket: Socket) -> None:
        tab, other = await sockets.ready(browser, path=PATH), await sockets.ready(elsewhere, path=PATH)
        approvals = Socket(browser)
        await subscribe(other, chat)
        await outside(browser.post, "/sign-out/")
        assert [await socket.told(), await tab.told()] == [4401, 4401]
        await told_of(other, chat)
        assert await approvals.open()
        assert await approvals.told() == 4401
        for left in (tab, other, approvals):
            await left.leave()

    listening(browser, run)


def test_a_session_that_is_over_is_told_nothing_even_when_the_news_of_it_is_lost(
    browser: Client, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "FRESH_SECONDS", 0.0)

    def end() -> None:
        LiveSession.objects.update(ended_at=chat.created_at, end_reason=LiveSession.EndReason.REVOKED)

    async def run(socket: Socket) -> Any:
        await subscribe(socket, chat)
        await outside(end)
        await outside(events.message_added, chat.pk, uuid4())
        return await socket.told()

    assert listening(browser, run) == 4401


def test_a_session_that_ended_is_noticed_without_an_event(
    browser: Client, monkeypatch: pytest.MonkeyPatch, chat: Conversation
) -> None:
    monkeypatch.setattr(standing, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(standing, "FRESH_SECONDS", 0.0)

    async def run(socket: Socket) -> Any:
        await outside(lambda: LiveSession.objects.update(ended_at=chat.created_at, end_reason="revoked"))
        return await socket.told()

    assert listening(browser, run) == 4401


def test_a_layer_that_was_interrupted_sends_everybody_away_to_come_again(
    browser: Client, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_sockets, "SPREAD_SECONDS", 0.0)

    async def run(socket: Socket) -> Any:
        await subscribe(socket, chat)
        await channel_layers["default"].group_send(f"agent.conv.{chat.pk}", {"type": "layer.interrupted"})
        return await socket.told()

    assert listening(browser, run) == 1012


def test_a_client_that_takes_nothing_is_sent_away_before_it_costs_much(
    browser: Client, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_sockets, "MOST_WAITING", 10)
    monkeypatch.setattr(consumers.ChatEvents, "gap_seconds", 1.0)

    async def run(socket: Socket) -> Any:
        await subscribe(socket, chat)
        await told_of(socket, chat)
        for _ in range(11):
            await outside(events.message_added, chat.pk, uuid4())
        return await socket.told()

    assert listening(browser, run) == 1012


# --- What they say ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "[]",
        "null",
        '{"type": "ping", "more": 1}',
        '{"type": "subscribe"}',
        '{"type": "subscribe", "conversation": null}',
        '{"type": "subscribe", "conversation": ["a"]}',
        '{"type": "chat.event", "conversation": "a"}',
        '{"type": "unsubscribe", "conversation": 1}',
        "[" * 900,
        '"' + "x" * 5_000,
    ],
)
def test_a_frame_that_is_none_of_the_three_gets_an_error(browser: Client, frame: str) -> None:
    async def run(socket: Socket) -> Any:
        await socket.say(frame)
        return await socket.told()

    assert listening(browser, run) == ODD


def test_a_socket_listens_to_twenty_chats(browser: Client, person: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_sockets, "MAX_FRAMES", 100)
    chats = [make_chat(person) for _ in range(21)]

    async def run(socket: Socket) -> None:
        await subscribe(socket, *chats[:20], chats[0])
        await socket.say({"type": "subscribe", "conversation": str(chats[20].pk)})
        assert await socket.told() == {"type": "error", "code": "too_many_items"}
        await told_of(socket, chats[19])
        await socket.say({"type": "unsubscribe", "conversation": str(chats[0].pk)})
        await subscribe(socket, chats[20])
        await told_of(socket, chats[20])

    listening(browser, run)


def test_too_many_frames_close_the_socket(browser: Client) -> None:
    async def run(socket: Socket) -> Any:
        for _ in range(live_sockets.MAX_FRAMES + 1):
            await socket.say({"type": "ping"})
        while (told := await socket.told()) == {"type": "pong"}:
            pass
        return told

    assert listening(browser, run) == 4429


def test_both_kinds_of_sockets_share_the_places_of_a_person(
    browser: Client, person: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "MOST_OPEN", 1)
    person.user_permissions.add(*make_user(permissions=["api.decide_approval"]).user_permissions.all())

    async def run(socket: Socket) -> Any:
        approvals = Socket(browser)
        assert await approvals.open()
        told = await approvals.told()
        await approvals.leave()
        return told

    assert listening(browser, run) == 4429


def test_nothing_is_kept_of_a_socket_that_left(browser: Client, chat: Conversation) -> None:
    layer = channel_layers["default"]

    async def run(socket: Socket) -> None:
        await subscribe(socket, chat)
        assert f"agent.conv.{chat.pk}" in layer._groups

    listening(browser, run)
    assert (layer._groups, layer._boxes, dict(arrival._open)) == ({}, {}, {})
