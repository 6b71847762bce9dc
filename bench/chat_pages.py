"""SP-4, the pages of a long chat: each in the time of one of a short chat."""

import http.client
import time

from bench import people
from bench.figures import Figure, median, ratio
from bench.people import Member
from bench.server import Server
from bench.world import HOST, World

LONG, SHORT = 100_000, 100
CALLS_A_ROUND = 40


def measure(server: Server, world: World, *, rounds: int) -> list[Figure]:
    """Over REST with a session, call by call in turns: the newest page, and one in the middle."""
    long, short = people.make(2)
    middles = [_fill(long, LONG), _fill(short, SHORT)]
    pages = {
        "the newest page": ("latest=1", "latest=1"),
        "a page in the middle": tuple(f"after={middle}" for middle in middles),
    }
    found = []
    for name, (of_long, of_short) in pages.items():
        ours, theirs = _times(server, _call(long, of_long), _call(short, of_short), count=rounds * CALLS_A_ROUND)
        share = ratio(ours, theirs)
        found.append(
            Figure(
                requirement="SP-4",
                name=f"{name} of a chat of {LONG:,} messages, beside one of {SHORT}",
                value=median(ours),
                unit="ms",
                baseline=median(theirs),
                ratio=share,
                wanted="ratio < 1.2",
                met=share < 1.2,
            )
        )
    return found


Call = tuple[str, dict[str, str]]


def _times(server: Server, one: Call, other: Call, *, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each call; the first ones do not count."""
    wire = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    pairs = [(_time(wire, one), _time(wire, other)) for _ in range(count + 10)][10:]
    return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]


def _time(wire: http.client.HTTPConnection, call: Call) -> float:
    path, headers = call
    started = time.perf_counter()
    wire.request("GET", path, headers=headers)
    answer = wire.getresponse()
    body = answer.read()
    taken = (time.perf_counter() - started) * 1_000
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {body[:500]!r}")
    return taken


def _call(member: Member, query: str) -> Call:
    headers = {"Host": HOST, "X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https", "Cookie": member.cookie}
    return f"/api/agent/conversations/{member.chat.pk}/messages?limit=50&{query}", headers


def _fill(member: Member, count: int) -> str:
    """The uuid of the message in the middle."""
    from django.db import connection
    from django.utils import timezone

    from apps.agent.models import Message

    now = timezone.now()
    rows = [
        Message(
            conversation=member.chat, number=number, role=Message.Role.USER, content=f"Text {number}", created_at=now
        )
        for number in range(1, count + 1)
    ]
    made = Message.objects.bulk_create(rows, batch_size=5_000)
    member.chat.message_count = count
    member.chat.save(update_fields=["message_count"])
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM ANALYZE {connection.ops.quote_name(Message._meta.db_table)}")
    # Fifty follow it in the shorter chat too.
    return str(made[count // 2 - 1].pk)
