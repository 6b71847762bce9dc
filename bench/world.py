"""Where the benchmarks run: PostgreSQL and Redis of their own, production settings, the demo catalogue and keys.

The services come from `tests.services` and end with the run. Django is set up by `build`, so nothing of the project that
needs its settings is imported at the top.
"""

import atexit
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management import call_command

from bench import cpu
from tests import services

HOST = "bench.example.org"
HUGE_BUDGET = 1_000_000
EMPTY_BUDGET = 20

_ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "DEBUG": "0",
    "EMBEDDED": "0",
    "SECRET_KEY": "a-secret-of-the-benchmarks-that-opens-nothing-anywhere-at-all",
    "API_KEY_PEPPERS": "bench:a-pepper-of-the-benchmarks",
    "ACTIVITY_MAC_KEYS": "bench:a-mac-key-of-the-benchmarks",
    "MODEL_KEY_SECRETS": "bench:a-model-key-secret-of-the-benchmarks",
    "ALLOWED_HOSTS": HOST,
    "BASE_URL": f"https://{HOST}",
    # As behind nginx, which ends TLS: the proxy's two headers come with every request of the load.
    "TRUSTED_PROXY_HOPS": "1",
}


@dataclass(frozen=True, kw_only=True)
class World:
    """What the measurements need to know. The keys are of an ordinary person whose permissions come by a role."""

    folder: Path
    postgres: services.Postgres
    redis: services.Redis
    sku: str
    key: str
    poor_key: str  # with the smallest budget that a key may have

    def headers(self, key: str) -> dict[str, str]:
        """Of a call with the key that comes through the proxy."""
        return {
            "Host": HOST,
            "X-Forwarded-For": "192.0.2.7",
            "X-Forwarded-Proto": "https",
            "Content-Type": "application/json",
            "Authorization": f"Bearer {key}",
        }

    def cpu_seconds(self) -> float:
        """What PostgreSQL and Redis have used so far."""
        return sum(cpu.seconds(process) for process in self._processes())

    def pin(self, cores: set[int]) -> None:
        """Keep PostgreSQL and Redis on these cores."""
        for process in self._processes():
            cpu.pin(process, cores)

    def _processes(self) -> list[int]:
        return [service.process.pid for service in (self.postgres, self.redis) if service.process is not None]


def build() -> World:
    """Start the services, set Django up, migrate and fill."""
    folder = Path(tempfile.mkdtemp(prefix="tollhouse-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.update(_ENVIRONMENT)
    postgres, redis = services.Postgres(), services.Redis()
    for service in (postgres, redis):
        atexit.register(service.remove)
        service.start()
    os.environ |= {"DATABASE_URL": postgres.url, "REDIS_URL": redis.url}

    from config import startup

    startup.prepare()
    # The table is what this process says; its log lines go where those of the servers go.
    _log_to(folder / "bench.log")
    call_command("migrate", verbosity=0, interactive=False)
    sku = _fill_catalogue()
    owner = _owner()
    return World(
        folder=folder,
        postgres=postgres,
        redis=redis,
        sku=sku,
        key=_key(owner, HUGE_BUDGET),
        poor_key=_key(owner, EMPTY_BUDGET),
    )


def _log_to(path: Path) -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(path.open("w"))


def _fill_catalogue() -> str:
    """The demo's shop. The SKU of a product in the middle."""
    from apps.catalogue import demo
    from apps.catalogue.models import Product

    products = demo.fill()
    return Product.objects.order_by("sku")[products // 2].sku


def _owner() -> Any:
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group, Permission

    role = Group.objects.create(name="Shop")
    role.permissions.set(Permission.objects.filter(content_type__app_label="catalogue"))
    manager: Any = get_user_model()._default_manager
    owner = manager.create_user(email="bench@example.org", password=None)
    owner.groups.add(role)
    return owner


def _key(owner: Any, budget: int) -> str:
    from apps.activity import log
    from apps.api import keys

    grant = keys.Grant(name="bench", scopes=["catalogue:read", "catalogue:write"], budget=budget)
    _, text = keys.create(grant, owner=owner, actor=log.Actor(kind="system", name="bench"))
    return text
