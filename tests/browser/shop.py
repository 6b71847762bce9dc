"""The program as `make run` starts it, on a new database with its demo, for what is shown or measured outside of the test suite."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, Playwright

from tests.agent.wire.script import Step
from tests.services import Program

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Shop:
    """The running program."""

    url: str
    people: dict[str, dict[str, str]]


@contextmanager
def running(folder: Path) -> Iterator[Shop]:
    """Its data is in the folder. From here on this process reads the same database."""
    os.environ.update(
        DEBUG="1",
        DATABASE_URL=f"sqlite:///{folder / 'shop.sqlite3'}",
        MODEL_NETWORKS="127.0.0.0/8",
        DJANGO_SETTINGS_MODULE="config.settings",
        DJANGO_ALLOW_ASYNC_UNSAFE="1",
        PYTHONPATH=str(ROOT),
    )
    program = Program("uvicorn", os.environ)
    try:
        program.start()
        os.environ["EMBEDDED"] = "1"
        seed = [sys.executable, "manage.py", "seed_demo", "--json"]
        seeded = subprocess.run(seed, cwd=ROOT, check=True, capture_output=True, text=True)
        import django

        django.setup()
        yield Shop(url=program.url, people=json.loads(seeded.stdout)["people"])
    finally:
        program.remove()


@contextmanager
def endpoint(*answers: Sequence[Step]) -> Iterator[None]:
    """A model of our own as the default one, which plays these answers."""
    from apps.agent import endpoint_keys
    from apps.agent.models import ModelEndpoint
    from tests.agent.wire.openai import OpenAI
    from tests.agent.wire.server import KEY

    with OpenAI(*answers) as wire:
        row = ModelEndpoint(name="Wire", provider="openai", base_url=wire.url, model="wire-1", is_default=True)
        endpoint_keys.put(row, KEY)
        row.save()
        yield


def signed_in(context: BrowserContext, shop: Shop, role: str) -> Page:
    """A page of the demo's member, approver or operator."""
    page = context.new_page()
    person = shop.people[role]
    page.goto("/sign-in/")
    page.get_by_label("E-mail address").fill(person["email"])
    page.get_by_label("Password").fill(person["password"])
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "sign-in" not in url)
    return page


def launch(playwright: Playwright) -> Browser:
    """Chromium."""
    return playwright.chromium.launch(
        executable_path=shutil.which("chromium"), args=["--no-sandbox", "--hide-scrollbars"]
    )
