"""Chats' sockets at real servers: one process and several, 500 sockets, a Redis that goes away in the middle (CH-5, C1, C2, C19, C20)."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections, transaction
from django.test import Client
from django.utils import timezone
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from apps.agent import access, writing
from apps.agent.models import Conversation, Message
from apps.api import broadcast
from tests import services
from tests.accounts.factories import make_user
from tests.agent import overheard, tab
from tests.agent.factories import make_chat, make_messages
from tests.agent.overheard import Overheard
from tests.agent.tab import Tab
from tests.sockets import HERE, browser_of, outside

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "The text itself, which no frame may hold."


class Embedded(services.Program):
    """`make run`'s process, that also tells at a signal."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.agent.embedded_process", "--port", str(self.port)]


def store(chats: Iterable[Conversation], times: int = 1) -> None:
    """What a worker does: each line in a transaction of its own, with its event."""
    for _ in range(times):
        for chat in chats:
            with transaction.atomic():
                writing.append(chat.pk, role=Message.Role.ASSISTANT, now=timezone.now(), content=CANARY)


def stored(chat: Conversation) -> list[str]:
    """All messages of the chat, in their order."""
    rows = Message.objects.filter(conversation=chat).order_by("number")
    return [str(uuid) for uuid in rows.values_list("pk", flat=True)]


async def until(is_so: Callable[[], Any], seconds: float = 60) -> None:
    """Look until it is."""
    async with asyncio.timeout(seconds):
        while not is_so():
            await asyncio.sleep(0.02)


def with_tabs(tabs: list[Tab], then: Callable[[], Awaitable[None]]) -> None:
    """While they live and listen."""

    async def run() -> None:
        living = [asyncio.create_task(each.live()) for each in tabs]
        try:
            for each in tabs:
                await asyncio.wait_for(each.listens.wait(), 120)
            await then()
        finally:
            for task in living:
                task.cancel()
            await asyncio.gather(*living, return_exceptions=True)

    asyncio.run(run())


def member() -> Any:
    return make_user(permissions=[access.PERMISSION])


@dataclass(frozen=True, kw_only=True)
class Several:
    """A process of pages, one of sockets, and this one as a worker, that meet in a Redis."""

    pages: services.Program
    sockets: services.Program

    def tab(self, browser: Client, chat: Conversation, address: str = "192.0.2.1") -> Tab:
        return Tab(socket_url=self.sockets.url, rest_url=self.pages.url, browser=browser, chat=chat.pk, address=address)


@pytest.fixture
def several(start_program: Callable[..., services.Program], redis_server: services.Redis, settings: Any) -> Several:
    environment = {"REDIS_URL": redis_server.url, "TRUSTED_PROXY_HOPS": "1"}
    config = {"hosts": [redis_server.url], "prefix": "tollhouse"}
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "config.redis_layer.RedisLayer", "CONFIG": config}}
    return Several(pages=start_program("granian", **environment), sockets=start_program("asgi", **environment))


# --- One process ------------------------------------------------------------------------------------------------------


def test_250_events_of_task_threads_of_the_embedded_process_all_arrive(process_environment: dict[str, str]) -> None:
    person = member()
    chat = make_chat(person)
    make_messages(chat, 250)
    connections.close_all()
    program = Embedded("uvicorn", {**process_environment, "REDIS_URL": ""})
    try:
        program.start()
        here = Tab(socket_url=program.url, rest_url=program.url, browser=browser_of(person), chat=chat.pk)

        async def run() -> None:
            assert program.process is not None
            program.process.send_signal(10)  # SIGUSR1
            await until(lambda: len(here.told) == 250)

        with_tabs([here], run)
    finally:
        program.remove()
    assert sorted(here.told) == sorted(stored(chat))
    assert all(tab.is_known(frame) for frame in here.frames)


def test_a_foreign_page_is_refused_at_the_handshake(start_program: Callable[..., services.Program]) -> None:
    person = member()
    program = start_program("asgi")
    cookie = {"Cookie": f"sessionid={browser_of(person).cookies['sessionid'].value}"}
    url = program.url.replace("http", "ws") + "/ws/agent/"
    for origin in (Origin("https://evil.example.org"), None):
        with pytest.raises(InvalidStatus) as refused:
            connect(url, origin=origin, additional_headers=cookie)
        assert refused.value.response.status_code == 403
    with connect(url, origin=Origin(HERE), additional_headers=cookie) as socket:
        socket.send('{"type": "ping"}')
        assert json.loads(socket.recv(10)) == {"type": "pong"}


# --- Several processes ------------------------------------------------------------------------------------------------


def test_what_one_process_stores_another_tells_and_a_log_out_elsewhere_closes(several: Several) -> None:
    person = member()
    chat, other = make_chat(person), make_chat(member())
    browser, elsewhere = browser_of(person), browser_of(person)
    first, second, staying = several.tab(browser, chat), several.tab(browser, chat), several.tab(elsewhere, chat)

    async def run() -> None:
        await outside(store, [chat, other])
        await until(lambda: first.told and second.told and staying.told)
        await outside(browser.post, "/sign-out/")
        await until(lambda: first.codes and second.codes, 5)
        await outside(store, [chat])
        await until(lambda: len(staying.told) == 2)

    with_tabs([first, second, staying], run)
    assert (first.codes, second.codes, staying.codes[:-1]) == ([4401], [4401], [])
    assert first.told == second.told == stored(chat)[:1]
    assert staying.told == stored(chat)


def test_after_a_time_without_a_socket_exactly_what_was_missed_is_caught_up(several: Several) -> None:
    person = member()
    chat = make_chat(person)
    store([chat])
    here = several.tab(browser_of(person), chat)
    missed: list[str] = []

    async def run() -> None:
        assert here.caught_up == await outside(stored, chat)
        here.listens.clear()
        await here.leave()
        await outside(store, [chat], 3)
        missed.extend((await outside(stored, chat))[1:])
        # Some of them may come while the socket is still closing or opens again.
        await here.listens.wait()
        assert here.caught_up[1:] == missed
        await outside(store, [chat])
        await until(lambda: len(here.known) == 5)

    with_tabs([here], run)
    everything = stored(chat)
    assert here.caught_up == everything[:4]
    assert here.told[-1] == everything[4]


def test_a_server_that_sleeps_is_found_out_by_a_ping_and_caught_up_with(several: Several) -> None:
    """Nothing closes a socket whose other end was frozen, or cut off: no answer comes, that is all."""
    person = member()
    chat = make_chat(person)
    here = several.tab(browser_of(person), chat)

    async def answers() -> bool:
        assert here.wire is not None
        before = len(here.frames)
        await here.wire.send('{"type": "ping"}')
        with suppress(TimeoutError):
            await until(lambda: len(here.frames) > before, 1)
        return len(here.frames) > before

    async def run() -> None:
        assert await answers()
        several.sockets.pause()
        assert not await answers()
        await outside(store, [chat], 3)
        here.listens.clear()
        assert here.wire is not None
        here.wire.transport.abort()
        several.sockets.resume()
        await asyncio.wait_for(here.listens.wait(), 30)

    with_tabs([here], run)
    assert here.caught_up == stored(chat)


@pytest.mark.alone
def test_500_sockets_lose_nothing_over_a_restart_of_redis_and_no_text_leaves_the_database(
    several: Several, redis_server: services.Redis
) -> None:
    people = [member() for _ in range(50)]
    chats = [make_chat(person) for person in people]
    tabs = []
    for number, (person, chat) in enumerate(zip(people, chats, strict=True)):
        browser = browser_of(person)
        tabs += [several.tab(browser, chat, f"198.51.100.{number}") for _ in range(10)]

    async def all_know() -> None:
        wanted = {chat.pk: set(await outside(stored, chat)) for chat in chats}
        await until(lambda: all(each.known == wanted[each.chat] for each in tabs), 120)

    async def run() -> None:
        await outside(store, chats, 4)
        await all_know()
        assert all(len(each.told) == 4 for each in tabs)
        redis_server.kill()
        await outside(store, chats, 4)
        redis_server.start()
        await outside(store, chats, 4)
        await all_know()
        # They came again and hear as before.
        await until(lambda: all(each.listens.is_set() and len(each.codes) == 1 for each in tabs), 120)
        heard_before = [len(each.told) for each in tabs]
        await outside(store, chats)
        await until(lambda: all(len(each.told) > before for each, before in zip(tabs, heard_before, strict=True)), 120)
        await all_know()

    with Overheard(redis_server.port) as heard:
        with_tabs(tabs, run)
        broadcast._sender.flush(10)
    assert {code for each in tabs for code in each.codes[:1]} == {1012}
    assert all(tab.is_known(frame) for each in tabs for frame in each.frames)
    assert len(heard.published()) >= 50 * 9
    assert [said for said in heard.published() if not overheard.is_known(*said)] == []
    assert {name for name in heard.subscribed() if not overheard.is_ours(name)} == set()
    assert not any(CANARY.encode() in line for line in heard.lines)


def test_the_watch_itself_finds_a_text() -> None:
    """What the 500 sockets are held to could fail."""
    uuid = str(uuid4())
    frame = {"type": "agent_message_added", "topic": f"agent:conv:{uuid}", "conversation": uuid, "message": uuid}
    channel = f"tollhouse__group__agent.conv.{uuid}"
    assert overheard.is_known(channel, {"type": "chat.event", "frame": frame})
    assert not overheard.is_known(channel, {"type": "chat.event", "frame": {**frame, "content": CANARY}})
    assert not overheard.is_known(channel, {"type": "chat.event", "frame": frame, "content": CANARY})
    assert not overheard.is_known(f"tollhouse__group__agent.conv.{UUID(int=0)}", {"type": "chat.event", "frame": frame})
    assert not overheard.is_known("tollhouse__group__other", {"type": "session.changed"})
