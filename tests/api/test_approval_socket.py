"""The websocket of approvals: who may listen, what they are told, and when they are sent away. The application is the real one."""

import asyncio
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from channels.layers import channel_layers
from django.test import Client
from django.utils import timezone
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from apps.accounts import passwords, sessions
from apps.accounts.models import LiveSession, User
from apps.api import approval_events, approval_queue, arrival, broadcast, deciding, live_sockets, standing
from apps.api.models import Approval
from apps.api.ratelimit import doors
from apps.api.ratelimit.memory import MemoryStore
from config import sockets
from tests.accounts.factories import make_group, make_user
from tests.api import factories
from tests.api.shop import PERMISSION, Shop
from tests.api.test_approvals import DECIDES, Prices
from tests.catalogue.factories import make_category
from tests.services import Redis
from tests.sockets import HERE, ODD, Socket, browser_of, listening, outside, ready, told_first

pytestmark = pytest.mark.sqlite

REDIS = {"BACKEND": "config.redis_layer.RedisLayer"}


@pytest.fixture
def prices(shop: Shop, settings: Any) -> Prices:
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "config.layers.OneProcessLayer"}}
    return Prices(shop)


@pytest.fixture(autouse=True)
def _nothing_left_to_send() -> Iterator[None]:
    yield
    broadcast._sender.flush(5)


def changed(uuid: Any) -> dict[str, str]:
    return {"type": "approval_changed", "approval": str(getattr(uuid, "pk", uuid))}


# --- Who may listen ---------------------------------------------------------------------------------------------------

ORIGINS = {
    "foreign": {"origin": "https://evil.example.org"},
    "missing": {"origin": ""},
    "null": {"origin": "null"},
    "another port": {"origin": "http://testserver:81"},
    "a host that begins alike": {"origin": "http://testserver.example.org"},
    "a host that is not ours": {"origin": "https://evil.example.org", "host": "evil.example.org"},
    "no host": {"origin": "https://elsewhere", "host": ""},
}


@pytest.mark.parametrize("headers", ORIGINS.values(), ids=ORIGINS)
def test_a_page_of_another_origin_is_refused_before_it_is_accepted(prices: Prices, headers: dict[str, str]) -> None:
    assert told_first(browser_of(prices.approver.user), **headers) is None


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        ({"origin": "https://localhost:8443", "host": "localhost:8443"}, True),
        ({"origin": "https://[::1]:8443", "host": "[::1]:8443"}, True),
        ({"origin": "http://localhost:8443", "host": "localhost:8443"}, False),
    ],
)
def test_a_page_of_the_host_that_was_asked_is_ours_if_it_came_by_tls(
    settings: Any, headers: dict[str, str], is_ours: bool
) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert sockets.comes_from_here(pairs) is is_ours
    settings.SESSION_COOKIE_SECURE = False
    assert sockets.comes_from_here(pairs)


def test_a_visitor_is_accepted_and_sent_away_with_a_code(prices: Prices) -> None:
    assert told_first(None) == 4401
    assert told_first(None, cookie="sessionid=nonsense") == 4401


def test_who_may_not_decide_is_sent_away(prices: Prices) -> None:
    assert told_first(browser_of(make_user(permissions=[PERMISSION]))) == 4403


def test_a_session_that_is_over_is_sent_away(prices: Prices) -> None:
    client = browser_of(prices.approver.user)
    LiveSession.objects.update(ended_at=timezone.now(), end_reason=LiveSession.EndReason.REVOKED)
    assert told_first(client) == 4401


def test_a_browser_session_of_an_older_password_is_sent_away(prices: Prices) -> None:
    client = browser_of(prices.approver.user)
    User.objects.filter(pk=prices.approver.user.pk).update(password="another one")
    assert told_first(client) == 4401


def test_no_uuid_that_a_client_names_stands_for_a_session(prices: Prices) -> None:
    session = prices.approver.session
    for cookie in (f"live_session={session.pk}", f"sessionid={session.pk}"):
        assert told_first(None, cookie=cookie) == 4401


def test_another_path_is_sent_away(prices: Prices) -> None:
    assert told_first(browser_of(prices.approver.user), path="/ws/other/") == 4404
    assert told_first(None, path="/ws/other/", origin="https://evil.example.org") is None


# --- How many ---------------------------------------------------------------------------------------------------------


def test_a_person_has_so_many_sockets_and_no_more(prices: Prices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "MOST_OPEN", 2)
    first, second = browser_of(prices.approver.user), browser_of(prices.approver.user)
    stranger = browser_of(make_user(permissions=DECIDES))

    async def run(socket: Socket) -> None:
        beside, third, of_another = await ready(second), Socket(first), await ready(stranger)
        assert await third.open()
        assert await third.told() == 4429
        await beside.leave()
        again = await ready(first)
        for left in (third, of_another, again):
            await left.leave()

    listening(first, run)
    assert not arrival._open


@pytest.mark.parametrize("limit", ["NETWORK_CONNECTS", "SESSION_CONNECTS"])
def test_whoever_opens_sockets_too_fast_is_sent_away(
    prices: Prices, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(arrival, limit, 3)
    client = browser_of(prices.approver.user)

    async def run() -> Any:
        socket = Socket(client)
        assert await socket.open()
        await socket.say("odd")
        told = await socket.told()
        await socket.leave()
        return told

    told = [asyncio.run(run()) for _ in range(8)]
    assert told[:3] == [ODD] * 3
    # The minute of the limit may end in between, once.
    assert told.count(4429) >= 2


def test_connects_are_counted_while_the_cache_is_away(
    prices: Prices, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CACHES = {"default": {"BACKEND": "config.cache.RedisCache", "LOCATION": "redis://127.0.0.1:1"}}
    monkeypatch.setattr(arrival, "NETWORK_CONNECTS", 1)
    monkeypatch.setattr(doors, "_local", MemoryStore())
    client = browser_of(prices.approver.user)
    listening(client, lambda socket: asyncio.sleep(0))
    assert told_first(client) == 4429


def test_a_layer_that_is_away_closes_the_socket(prices: Prices, settings: Any) -> None:
    settings.CHANNEL_LAYERS = {"default": {**REDIS, "CONFIG": {"hosts": ["redis://127.0.0.1:1"]}}}
    assert told_first(browser_of(prices.approver.user)) == 1011


# --- What they are told -----------------------------------------------------------------------------------------------


def test_what_is_asked_and_decided_is_told_by_its_uuid_alone(prices: Prices) -> None:
    async def run(socket: Socket) -> None:
        approval = await outside(lambda: prices.asked(to=5))
        assert await socket.told() == changed(approval)
        await outside(prices.decide, approval)
        assert await socket.told() == changed(approval)

    listening(browser_of(prices.approver.user), run)


def test_only_what_the_person_may_look_at_is_told(prices: Prices) -> None:
    other = Approval.objects.get(pk=prices.asked(to=5).pk)
    Approval.objects.filter(pk=other.pk).update(tool="catalogue.update_prices")

    async def run(socket: Socket) -> None:
        approval_events.changed(other.pk)
        approval_events.changed(uuid4())
        approval = await outside(lambda: prices.asked(to=6))
        assert await socket.told() == changed(approval)

    listening(browser_of(prices.approver.user), run)


def test_a_right_that_is_lost_counts_for_the_next_event(prices: Prices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "FRESH_SECONDS", 0.0)

    async def run(socket: Socket) -> Any:
        await outside(factories.revoke, prices.approver.user, deciding.PERMISSION)
        await outside(lambda: prices.asked(to=5))
        return await socket.told()

    assert listening(browser_of(prices.approver.user), run) == 4403


def sign_out(client: Client, person: Any) -> None:
    client.post("/sign-out/")


def block(client: Client, person: Any) -> None:
    person.is_active = False
    person.save()


def new_password(client: Client, person: Any) -> None:
    passwords.change(person, "another long and quiet password", keep=None)


def revoke(client: Client, person: Any) -> None:
    rows = LiveSession.objects.filter(user=person)
    sessions.end(rows, reason=sessions.Reason.REVOKED, by=sessions.actor(person), now=timezone.now())


def lose_the_role(client: Client, person: Any) -> None:
    person.groups.clear()


@pytest.mark.parametrize("end", [sign_out, block, new_password, revoke, lose_the_role])
def test_a_session_that_ends_closes_its_sockets_at_once(
    prices: Prices, monkeypatch: pytest.MonkeyPatch, end: Callable[[Client, Any], None]
) -> None:
    # Neither an event nor a look would come in the time of the test.
    monkeypatch.setattr(standing, "FRESH_SECONDS", 600.0)
    person = prices.approver.user
    client = browser_of(person)
    role = make_group(permissions=DECIDES)
    person.groups.add(role)
    LiveSession.objects.filter(user=person).update(acting_role=role)
    other = prices.approver.elsewhere()

    async def run(socket: Socket) -> Any:
        await outside(end, client, person)
        return await socket.told()

    assert listening(client, run) == 4401
    assert LiveSession.objects.filter(pk=other.session.pk).exists()


def test_a_right_that_is_taken_away_counts_at_once(prices: Prices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "FRESH_SECONDS", 600.0)
    person = prices.approver.user

    async def run(socket: Socket) -> Any:
        await outside(person.user_permissions.clear)
        return await socket.told()

    assert listening(browser_of(person), run) == 4403


def test_another_session_of_the_person_goes_on(prices: Prices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "FRESH_SECONDS", 0.0)
    person = prices.approver.user
    first, second = browser_of(person), browser_of(person)

    async def run(socket: Socket) -> Any:
        await outside(sign_out, second, person)
        approval = await outside(lambda: prices.asked(to=5))
        assert await socket.told() == changed(approval)

    listening(first, run)


def test_a_session_that_ended_is_noticed_without_an_event(prices: Prices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "CHECK_SECONDS", 0.05)
    client = browser_of(prices.approver.user)

    async def run(socket: Socket) -> Any:
        await outside(sign_out, client, None)
        return await socket.told()

    assert listening(client, run) == 4401


def test_events_from_many_threads_all_arrive(prices: Prices) -> None:
    uuids = [uuid4() for _ in range(250)]
    pattern = Approval.objects.get(pk=prices.asked(to=5).pk)
    rows = [
        Approval(pk=uuid, family=pattern.family, key=pattern.key, tool="shop.run", input_hash=uuid.hex,
                 created_at=pattern.created_at, expires_at=pattern.expires_at)
        for uuid in uuids
    ]  # fmt: skip
    Approval.objects.bulk_create(rows)

    async def run(socket: Socket) -> set[str]:
        with ThreadPoolExecutor(25) as pool:
            list(pool.map(approval_events.changed, uuids))
        missing = {str(uuid) for uuid in uuids}
        while missing:
            missing.discard((await socket.told())["approval"])
        return missing

    assert listening(browser_of(prices.approver.user), run) == set()


def test_the_session_is_asked_once_for_many_events_and_sockets(prices: Prices, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    looker = approval_queue.looker

    def counted(ref: object) -> Any:
        asked.append(ref)
        return looker(ref)

    monkeypatch.setattr(standing, "FRESH_SECONDS", 60.0)
    monkeypatch.setattr(approval_queue, "looker", counted)
    client = browser_of(prices.approver.user)

    async def run(socket: Socket) -> None:
        second = Socket(client)
        assert await second.open()
        for number in range(3):
            approval = await outside(lambda number=number: prices.asked(to=number))
            assert await socket.told() == await second.told() == changed(approval)
        await second.leave()

    listening(client, run)
    assert len(asked) == 1


# --- What they say ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame", ["", "{", "[]", '{"type": "subscribe"}', '{"type": "ping", "more": 1}', "[" * 900, '"' + "x" * 5_000]
)
def test_a_frame_that_is_no_ping_gets_an_error(prices: Prices, frame: str) -> None:
    async def run(socket: Socket) -> Any:
        await socket.say({"type": "ping"})
        await socket.say(frame)
        return await socket.told()

    expected = ODD
    assert listening(browser_of(prices.approver.user), run) == expected


def test_too_many_frames_close_the_socket(prices: Prices) -> None:
    async def run(socket: Socket) -> Any:
        for _ in range(live_sockets.MAX_FRAMES + 1):
            await socket.say({"type": "ping"})
        return await socket.told()

    assert listening(browser_of(prices.approver.user), run) == 4429


# --- The layers -------------------------------------------------------------------------------------------------------


def test_nothing_is_kept_of_a_socket_that_left(prices: Prices) -> None:
    async def run(socket: Socket) -> None:
        assert channel_layers["default"]._groups

    listening(browser_of(prices.approver.user), run)
    layer = channel_layers["default"]
    assert (layer._groups, layer._boxes) == ({}, {})


def test_events_go_through_redis_where_there_are_several_processes(
    prices: Prices, settings: Any, redis_url: str
) -> None:
    settings.CHANNEL_LAYERS = {"default": {**REDIS, "CONFIG": {"hosts": [redis_url], "prefix": "tests"}}}

    async def run(socket: Socket) -> None:
        approval = await outside(lambda: prices.asked(to=5))
        assert await socket.told() == changed(approval)

    listening(browser_of(prices.approver.user), run)


def test_a_redis_that_is_away_or_silent_neither_fails_nor_delays_who_asks(
    prices: Prices, settings: Any, redis_server: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CHANNEL_LAYERS = {"default": {**REDIS, "CONFIG": {"hosts": [redis_server.url]}}}
    sent = threading.Event()
    send = broadcast._sender._sent

    async def noticed(name: broadcast.Name, note: broadcast.Note) -> bool:
        if done := await send(name, note):
            sent.set()
        return done

    monkeypatch.setattr(broadcast, "AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(broadcast._sender, "_sent", noticed)
    redis_server.pause()
    before = timezone.now()
    approval = prices.asked(to=5)
    assert prices.decide(approval) == "approved"
    assert (timezone.now() - before).total_seconds() < broadcast.SEND_SECONDS
    assert not sent.is_set()
    redis_server.resume()
    assert sent.wait(20)  # what could not be sent is sent when it is back


def test_what_can_not_be_sent_is_given_up_in_the_end(
    prices: Prices, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CHANNEL_LAYERS = {"default": {**REDIS, "CONFIG": {"hosts": ["redis://127.0.0.1:1"]}}}
    monkeypatch.setattr(broadcast, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(broadcast, "KEPT_SECONDS", 0.1)
    prices.asked(to=5)
    broadcast._sender.flush(20)
    assert broadcast._sender._noted == {}


def test_a_host_without_a_layer_asks_and_decides_without_one(prices: Prices, settings: Any) -> None:
    settings.CHANNEL_LAYERS = {}
    assert prices.decide(prices.asked(to=5)) == "approved"
    assert broadcast._sender._noted == {}


def test_the_embedded_program_tells_over_a_real_socket(
    prices: Prices, start_program: Callable[..., Any], settings: Any
) -> None:
    make_category(slug="lamps")
    person = make_user(permissions=[*DECIDES, "catalogue.add_product"])
    client = browser_of(person)
    machine = factories.make_machine(scopes=["catalogue:write"], requires_approval=True)
    program = start_program("uvicorn", DEBUG="1")
    address = program.url.replace("http", "ws") + "/ws/approvals/"
    cookie = {"Cookie": f"sessionid={client.cookies['sessionid'].value}"}
    with pytest.raises(InvalidStatus) as refused:
        connect(address, origin=Origin("https://evil.example.org"), additional_headers=cookie)
    assert refused.value.response.status_code == 403
    with connect(address, origin=Origin(program.url), additional_headers=cookie) as socket:
        socket.send("odd")
        assert json.loads(socket.recv(10)) == ODD
        uuid = ask(program.url, machine.text)
        assert json.loads(socket.recv(10)) == changed(uuid)
        client.post("/sign-out/")
        with pytest.raises(ConnectionClosed) as closed:
            for _ in range(100):
                ask(program.url, machine.text)
                socket.recv(10)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401


def test_in_production_one_process_answers_and_another_tells(
    prices: Prices, start_program: Callable[..., Any], settings: Any, redis_url: str
) -> None:
    make_category(slug="lamps")
    client = browser_of(make_user(permissions=[*DECIDES, "catalogue.add_product"]))
    machine = factories.make_machine(scopes=["catalogue:write"], requires_approval=True)
    answering, telling = start_program("granian"), start_program("asgi")
    address = telling.url.replace("http", "ws") + "/ws/approvals/"
    cookie = {"Cookie": f"sessionid={client.cookies['sessionid'].value}"}
    with connect(address, origin=Origin(HERE), additional_headers=cookie) as socket:
        socket.send("odd")
        assert json.loads(socket.recv(10)) == ODD
        uuid = ask(answering.url, machine.text)
        assert json.loads(socket.recv(10)) == changed(uuid)


def ask(url: str, key: str | None) -> UUID:
    """A machine asks over HTTP for a price of its own."""
    body = {"sku": f"NEW-{uuid4().hex[:8]}".upper(), "name": "New", "category": "lamps", "price": "1.00"}
    request = urllib.request.Request(  # noqa: S310
        f"{url}/api/v1/tools/catalogue.create_product",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        return UUID(json.load(answer)["approval_id"])
