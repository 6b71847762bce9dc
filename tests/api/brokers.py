"""Brokers for tests: this process's Celery application pointed at one, and one that takes connections and never says a word."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pointed_at(url: str) -> Iterator[None]:
    """`config.celery.send` sends there."""
    # Imported late: the module checks the program, and a check may look at the database.
    from config.celery import app

    before = app.conf.broker_write_url, app.conf.broker_url
    try:
        app.conf.broker_write_url = app.conf.broker_url = url
        app.amqp._producer_pool = None
        yield
    finally:
        app.conf.broker_write_url, app.conf.broker_url = before
        app.amqp._producer_pool = None


@contextmanager
def silent() -> Iterator[str]:
    """The address of a Redis that hangs."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(50)
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}/0"
