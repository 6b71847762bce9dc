"""`python -m config.serve`: the whole program in one process, on a fresh database too.

In order: take the port, check, migrate, fill an empty database with the demo (in debug), say where to look, sweep now and
by its timers beside it, serve until Ctrl-C or SIGTERM.
"""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
from typing import Any

from django.core.management import call_command
from django.core.management.base import SystemCheckError

from config import env, startup

# A request gets this long to end when the process is told to.
GRACE_SECONDS = 3


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to stop; the exit code."""
    options = _options(arguments)
    try:
        listener = _listen(options.host, options.port)
    except OSError as error:
        _say(
            f"Can't listen on {options.host} port {options.port}: {error.strerror}. Choose another one: make run PORT=8001"
        )
        return 1
    url = f"http://{options.host}:{listener.getsockname()[1]}"
    if env.flag("DEBUG", default=False):
        os.environ.setdefault("BASE_URL", url)
    try:
        startup.prepare()
    except SystemCheckError as error:
        _say(str(error))
        return 1
    call_command("migrate", verbosity=0, interactive=False)
    _welcome(url)
    _sweep()
    _serve(listener)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m config.serve", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    return parser.parse_args(arguments)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named TCP, or asyncio leaves Nagle's algorithm on: each answer on a kept connection then waits 40 ms for the client's ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    return listener


def _welcome(url: str) -> None:
    from django.conf import settings  # set up by now

    _say(f"Tollhouse answers at {url} (Ctrl-C stops it)")
    _say(f"  chat        {url}/chat/")
    _say(f"  admin site  {url}/admin/")
    _say(f"  API         {url}/api/v1/tools")
    _say(f"  health      {url}/readyz")
    if settings.DEBUG:
        from config import demo

        report = demo.fill_when_empty()
        if report is not None:
            _say(_introduction(report))


def _introduction(report: Any) -> str:
    people = [f"  {role:<10}{person['email']}  {person['password']}" for role, person in report["people"].items()]
    keys = [f"  {name:<10}{key}" for name, key in report["keys"].items()]
    return "\n".join(
        [
            "The database was empty: it now holds a demo. These are shown once:",
            *people,
            *keys,
            "`DEBUG=1 .venv/bin/python manage.py seed_demo` makes new passwords and keys.",
        ]
    )


def _sweep() -> None:
    from apps.api import sweeps  # set up by now

    sweeps.start()


def _serve(listener: socket.socket) -> None:
    import uvicorn  # after the checks: what fails there should fail fast

    # Uvicorn gives the signal back to the handler that it found: stopping when asked to is no error.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    server = uvicorn.Server(
        uvicorn.Config(
            "config.asgi:application",
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=GRACE_SECONDS,
            # A socket is told, it has next to nothing to say.
            ws_max_size=64 * 1024,
        )
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    server.run(sockets=[listener])
    # A thread that is still in a request had its grace: it doesn't hold the exit.
    timer = threading.Timer(1, os._exit, [0])
    timer.daemon = True
    timer.start()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
