"""Who opens a socket: the live session of its handshake's browser session, within the limits of its door (RL-6).

Nothing of a handshake is read but its cookie and, behind trusted proxies, the address that they wrote.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from django.conf import settings
from django.http import parse_cookie

from apps.api import addresses, people, session_news
from apps.api.ratelimit import doors
from apps.api.standing import OVER, TOO_MANY, Closed

# A minute. Every page that is opened opens a socket, and many people may share an office's address.
NETWORK_CONNECTS = 600
SESSION_CONNECTS = 60
# Of one person at the same time in this process, whichever sockets they are.
MOST_OPEN = 20

_open: Counter[str] = Counter()


def reference(scope: Any) -> object:
    """What stands for the live session. Raises Closed. It asks the database and the cache: in a thread."""
    _count("socket.network", addresses.network(_address(scope)), NETWORK_CONNECTS)
    cookies = parse_cookie("; ".join(_values(scope, b"cookie")))
    key = cookies.get(settings.SESSION_COOKIE_NAME)
    ref = None
    if key:
        store = import_module(settings.SESSION_ENGINE).SessionStore(key)
        ref = people.current().reference_in(store)
    if ref is None:
        raise Closed(OVER)
    _count("socket.session", session_news.group(ref), SESSION_CONNECTS)
    return ref


@contextmanager
def place(person_id: str) -> Iterator[None]:
    """One of the person's places, until the end. Raises Closed where all are taken."""
    if _open[person_id] >= MOST_OPEN:
        raise Closed(TOO_MANY)
    _open[person_id] += 1
    try:
        yield
    finally:
        _open[person_id] -= 1
        if not _open[person_id]:
            del _open[person_id]


def _count(group: str, caller: str, most: int) -> None:
    if doors.passed(group=group, caller=caller, most=most) is not None:
        raise Closed(TOO_MANY)


def _address(scope: Any) -> str:
    host = (scope.get("client") or ("",))[0]
    return addresses.caller({"REMOTE_ADDR": host, "HTTP_X_FORWARDED_FOR": ",".join(_values(scope, b"x-forwarded-for"))})


def _values(scope: Any, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
