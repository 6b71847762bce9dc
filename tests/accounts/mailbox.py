"""The mails that were sent, and the links in them."""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar

from django.conf import settings
from django.core import mail
from django.db import connection

from apps.accounts import mails

T = TypeVar("T")


def sent() -> list[Any]:
    """Every mail so far. One thread sends them in order, so that all are sent when it gets to this."""
    mails._thread.submit(lambda: None).result(10)
    return mail.outbox


def link() -> str:
    """The path of the link in the last mail."""
    (found,) = re.findall(rf"{re.escape(settings.BASE_URL)}(/\S+)", sent()[-1].body.split("\n\n", 2)[2])
    return str(found)


def at_once(acts: Sequence[Callable[[], T]]) -> Iterator[T]:
    """What these give, each in a thread of its own, begun at the same moment."""
    start = Barrier(len(acts))

    def run(act: Callable[[], T]) -> T:
        start.wait()
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        yield from pool.map(run, acts)
