"""The services that the suite needs, started by the suite: a pytest plugin (`-p tests.services`), loaded before Django.

PostgreSQL and Redis of its own run on free loopback ports with their data in a temporary folder, and end with the run,
also after Ctrl-C or a crash. With xdist the controller starts them and the workers inherit the environment; each worker
has a Redis database of its own. `TEST_DATABASE=sqlite` selects the embedded part: a SQLite file, no Redis. What can't
be had is skipped with a line that says so, except in CI (`CI=true`), where the run fails.
"""

import atexit
import contextlib
import ctypes
import os
import platform
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
import redis

# Set by the process that started the services, so that its children (xdist workers, nested runs) don't.
_STARTED = "TOLLHOUSE_TEST_SERVICES"
_SECRETS = {
    "DEBUG": "0",
    "EMBEDDED": "0",
    "SECRET_KEY": "a-secret-of-the-test-suite-that-opens-nothing-anywhere",
    "API_KEY_PEPPERS": "test:a-pepper-of-the-test-suite",
    "ACTIVITY_MAC_KEYS": "test:a-mac-key-of-the-test-suite",
    "MODEL_KEY_SECRETS": "test:a-model-key-secret-of-the-test-suite",
    "ALLOWED_HOSTS": "testserver,localhost,127.0.0.1,[::1]",
    "BASE_URL": "http://testserver",
    "SECURE_SSL_REDIRECT": "0",
    "TRUSTED_PROXY_HOPS": "0",
}


class Missing(Exception):
    """A service can't be had on this machine; the text says why."""


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Service:
    """A server process of our own on `port`, which it keeps when it is started again. Data lives in `folder`."""

    name: ClassVar[str]
    # What ends it in order.
    farewell: ClassVar[signal.Signals] = signal.SIGTERM

    def __init__(self) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"tollhouse-{self.name.lower()}-"))
        self.user: int | None = None
        self.environment: Mapping[str, str] | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """The command line of the server."""
        raise NotImplementedError

    def answers(self) -> bool:
        """True when the server answers a client."""
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """Whom its processes run as: the arguments of subprocess."""
        if self.user is None:
            return {}
        return {"user": self.user, "group": pwd.getpwuid(self.user).pw_gid, "extra_groups": []}

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with (self.folder / "server.log").open("ab") as out:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.folder,
                env=self.environment,
                start_new_session=True,
                **self.identity(),
                # This process has one thread when the services start.
                preexec_fn=partial(_end_with_parent, self.farewell) if sys.platform == "linux" else None,  # noqa: PLW1509
            )
        deadline = time.monotonic() + 30
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise Missing(f"{self.name} does not start: {(self.folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End the server in order, and by force after ten seconds."""
        self._signal(self.farewell)
        if self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        self.kill()

    def kill(self) -> None:
        """End the server as a crash would."""
        self._signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait(10)
            self.process = None

    def pause(self) -> None:
        """Stop the server where it stands: clients connect and get no answer."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server go on."""
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        """Stop the server and remove its data."""
        self.resume()
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        # Its own process group: only what we started. A crash or a pause takes the children of PostgreSQL too.
        if self.process is None or self.process.poll() is not None:
            return
        if number in {signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT}:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)


class Redis(Service):
    """Redis without persistence: what a restart finds is empty."""

    name = "Redis"

    @property
    def url(self) -> str:
        """Database 0 of this server."""
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        """Loopback only, 64 databases: one for each xdist worker."""
        binary = shutil.which("redis-server")
        if binary is None:
            raise Missing("redis-server is not installed.")
        options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--databases", "64"]
        return [binary, "--port", str(self.port), "--dir", str(self.folder), *options]

    def answers(self) -> bool:
        """Ping."""
        with contextlib.suppress(redis.RedisError), redis.Redis(port=self.port, socket_timeout=1) as client:
            return bool(client.ping())
        return False

    def version(self) -> str:
        """Of the server."""
        with redis.Redis(port=self.port) as client:
            return str(client.info("server")["redis_version"])


class Postgres(Service):
    """A PostgreSQL cluster; as root it runs as an unprivileged user, since it refuses root."""

    name = "PostgreSQL"
    farewell = signal.SIGINT  # the fast shutdown

    def __init__(self) -> None:
        super().__init__()
        if os.geteuid() == 0:
            self.user = _unprivileged()
            os.chown(self.folder, self.user, pwd.getpwuid(self.user).pw_gid)
        initdb = [_postgres("initdb"), "-D", "data", "-U", "tollhouse", "-A", "trust", "-E", "UTF8", "--no-sync"]
        made = subprocess.run(
            [*initdb, "--locale=C.UTF-8"],
            cwd=self.folder,
            **self.identity(),
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise Missing(f"initdb fails: {made.stderr[-2000:]}")

    @property
    def url(self) -> str:
        """Its maintenance database."""
        return f"postgresql://tollhouse@127.0.0.1:{self.port}/postgres"

    def command(self) -> list[str]:
        """Fast rather than safe: the data lives as long as the run."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [_postgres("postgres"), "-D", "data", "-p", str(self.port), *options]

    def answers(self) -> bool:
        """A client may log in."""
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url, connect_timeout=2):
            return True
        return False

    def version(self) -> str:
        """Of the server."""
        with psycopg.connect(self.url) as connection:
            number = connection.info.server_version
        return f"{number // 10_000}.{number % 10_000}"


class Program(Service):
    """The program itself behind a server: "uvicorn" as `make run` has it; as production has them, "granian" and, for sockets, "asgi"."""

    name = "Tollhouse"

    def __init__(self, server: str, environment: Mapping[str, str]) -> None:
        super().__init__()
        self.server = server
        self.environment = {**environment, "EMBEDDED": "1" if server == "uvicorn" else "0"}

    @property
    def url(self) -> str:
        """Without a last slash."""
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        """One process, so that what it keeps in memory is seen by every request."""
        match self.server:
            case "uvicorn":
                return [sys.executable, "-m", "config.serve", "--port", str(self.port)]
            case "granian":
                options = ["--interface", "wsgi", "--workers", "1", "--blocking-threads", "8", "--no-ws"]
                program = [sys.executable, "-m", "granian", "--host", "127.0.0.1", "--port", str(self.port)]
                return [*program, *options, "config.wsgi:application"]
            case "asgi":
                options = ["--port", str(self.port), "--lifespan", "off", "--no-server-header", "--no-proxy-headers"]
                return [sys.executable, "-m", "uvicorn", *options, "config.asgi:application"]
            case _:
                raise ValueError(self.server)

    def answers(self) -> bool:
        """Health answers."""
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:  # noqa: S310
            return int(answer.status) == 200
        return False

    def log(self) -> str:
        """What it wrote so far."""
        return (self.folder / "server.log").read_text()


class Tasks(Service):
    """A process of Celery's: the "worker", which answers once it is ready, or "beat", whose schedule file is in its folder."""

    name = "Celery"

    def __init__(self, role: str, environment: Mapping[str, str], *, application: str = "config.celery") -> None:
        super().__init__()
        self.role = role
        self.application = application
        self.environment = environment

    def command(self) -> list[str]:
        """As an operator starts it; two at a time."""
        program = [sys.executable, "-m", "celery", "-A", self.application, self.role, "--loglevel", "INFO"]
        return [*program, *(["--concurrency", "2"] if self.role == "worker" else ["--schedule", "schedule"])]

    def answers(self) -> bool:
        """It says so."""
        return ("beat: Starting" if self.role == "beat" else " ready.") in self.log()

    def log(self) -> str:
        """What it wrote so far."""
        return (self.folder / "server.log").read_text()


def _postgres(program: str) -> str:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name == "15")
    for folder in reversed(folders):
        if (folder / program).exists():
            return str(folder / program)
    binary = shutil.which(program)
    if binary is None:
        raise Missing(f"PostgreSQL's {program} is not installed.")
    return binary


def _unprivileged() -> int:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_uid
    raise Missing("PostgreSQL refuses to run as root, and there is no user to run it as.")


def _end_with_parent(farewell: signal.Signals) -> None:
    # In the child: the kernel sends the signal when the run dies without a word (PR_SET_PDEATHSIG).
    ctypes.CDLL(None).prctl(1, farewell)


class Suite:
    """What this run uses: addresses for the environment, versions for the summary, reasons for what is missing."""

    def __init__(self) -> None:
        self.sqlite = os.environ.get("TEST_DATABASE", "postgresql") == "sqlite"
        self.missing: dict[str, str] = {}
        self.versions: dict[str, str] = {}

    def start(self) -> None:
        """Start the services and put their addresses into the environment, before Django reads it."""
        os.environ.update(_SECRETS)
        os.environ["EMBEDDED"] = "1" if self.sqlite else "0"
        folder = Path(tempfile.mkdtemp(prefix="tollhouse-tests-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        # Also where PostgreSQL is missing: tests without a database run, and none touches a developer's file.
        os.environ["DATABASE_URL"] = f"sqlite:///{folder / 'tests.sqlite3'}"
        os.environ["REDIS_URL"] = ""
        if not self.sqlite:
            self._start("DATABASE_URL", Postgres)
            self._start("REDIS_URL", Redis)
        os.environ[_STARTED] = ",".join(self.missing) or "all"

    def inherit(self, worker: str) -> None:
        """In a child of the run: the same servers, but a Redis database for each xdist worker."""
        self.missing = dict.fromkeys(set(os.environ[_STARTED].split(",")) - {"all"}, "it can't be had here.")
        url = os.environ.get("REDIS_URL", "")
        if url and worker.startswith("gw"):
            os.environ["REDIS_URL"] = f"{url.rpartition('/')[0]}/{int(worker[2:]) + 1}"

    def _start(self, variable: str, kind: Callable[[], Postgres | Redis]) -> None:
        try:
            service = kind()
            atexit.register(service.remove)
            service.start()
        except Missing as reason:
            name = kind.__name__
            if os.environ.get("CI") == "true":
                raise pytest.UsageError(f"In CI every service is needed. {reason}") from None
            self.missing[name] = str(reason)
        else:
            os.environ[variable] = service.url
            self.versions[service.name] = service.version()


_suite = Suite()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(args: list[str]) -> Generator[None, Any, Any]:
    """Before pytest-django loads the settings."""
    if _STARTED in os.environ:
        _suite.inherit(os.environ.get("PYTEST_XDIST_WORKER", ""))
    elif not {"--help", "-h", "--version", "--co", "--collect-only"} & set(args):
        # SIGTERM ends the run as Ctrl-C does, so that the services end too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        _suite.start()
    else:
        os.environ.update({**_SECRETS, "EMBEDDED": "1", "REDIS_URL": "", "DATABASE_URL": "sqlite://"})
    return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what can't run here, and say so."""
    for item in items:
        if (reason := _obstacle(item)) is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


def _obstacle(item: pytest.Item) -> str | None:
    fixtures = set(getattr(item, "fixturenames", ()))
    if _suite.sqlite and item.get_closest_marker("sqlite") is None:
        return "not a part of the SQLite suite"
    if "Postgres" in _suite.missing and (
        item.get_closest_marker("django_db") or fixtures & {"db", "transactional_db", "postgres_url", "postgres_server"}
    ):
        return f"needs PostgreSQL: {_suite.missing['Postgres'].splitlines()[0]}"
    if "Redis" in _suite.missing and fixtures & {"redis_url", "redis_server"}:
        return f"needs Redis: {_suite.missing['Redis'].splitlines()[0]}"
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name what the run used; the workers of xdist have no terminal."""
    for name, reason in _suite.missing.items():
        terminalreporter.write_line(f"Not there: {name}. {reason.splitlines()[0]} Its tests were skipped.")
    terminalreporter.write_line(f"Used: {', '.join(f'{name} {version}' for name, version in used().items())}")


def used() -> Mapping[str, str]:
    """Names and versions of all that the run stands on."""
    import sqlite3  # the module's name would hide the attribute

    import django

    found = {"Python": platform.python_version(), "Django": django.__version__, **_suite.versions}
    if _suite.sqlite:
        found["SQLite"] = sqlite3.sqlite_version
    if (chromium := shutil.which("chromium")) is not None:
        answer = subprocess.run([chromium, "--version"], capture_output=True, text=True, check=False)
        found["Chromium"] = answer.stdout.split()[1] if len(answer.stdout.split()) > 1 else "of unknown version"
    return found
