"""The chat in Chromium: from the frame on the socket to the fragment on the page, what an update of a growing answer costs,
and long tasks.

The program runs as `make run` starts it (one process, SQLite); the answers come from a provider of our own, a word at a time.
"""

import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, expect, sync_playwright

from bench.figures import Figure
from tests.agent.wire.script import Finish, Gate, Say, Step
from tests.browser import shop

FEW, MANY = 10, 2_000
IDLE_SECONDS = 30
# The first answer of a process loads the provider's library.
FIRST_SECONDS = 4
WORDS, EVERY = 800, 0.09
# What a browser calls a long task: the page does not answer for so long.
LONG_TASK_MS = 50

# Notes when the socket said something, and when the page shows it.
WATCH = """
window.found = {heard: new Map(), taken: [], long: []};
const Plain = window.WebSocket;
window.WebSocket = class extends Plain {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", (message) => {
      const frame = JSON.parse(message.data);
      if (frame.type === "agent_message_updated") {
        const shown = document.getElementById(`m-${frame.message}`);
        if (shown && Number(shown.dataset.version) < frame.version) {
          window.found.heard.set(`m-${frame.message}/${frame.version}`, performance.now());
        }
      }
    });
  }
};
new PerformanceObserver((list) => window.found.long.push(...list.getEntries().map((one) => one.duration))).observe({type: "longtask"});
new MutationObserver((changes) => {
  for (const {target} of changes) {
    const version = Number(target.dataset.version);
    for (const [key, at] of window.found.heard) {
      const [id, wanted] = key.split("/");
      if (id === target.id && Number(wanted) <= version) {
        window.found.taken.push(performance.now() - at);
        window.found.heard.delete(key);
      }
    }
  }
}).observe(document, {subtree: true, attributes: true, attributeFilter: ["data-version"]});
"""
FETCH = """async ([address, count]) => {
  const found = [];
  for (let number = 0; number < count; number += 1) {
    const began = performance.now();
    await (await fetch(address)).text();
    found.push(performance.now() - began);
  }
  return found;
}"""


def measure() -> list[Figure]:
    """A short chat and a long one, the same answer in both."""
    with (
        tempfile.TemporaryDirectory() as folder,
        shop.running(Path(folder)) as running,
        sync_playwright() as playwright,
    ):
        browser = shop.launch(playwright)
        page = shop.signed_in(browser.new_context(base_url=running.url), running, "member")
        page.add_init_script(WATCH)
        few, many = (_watched(page, count) for count in (FEW, MANY))
        browser.close()
    return [*_latencies(few, many), *_work(few, many), *_long_tasks(few, many)]


def _watched(page: Page, count: int) -> dict[str, Any]:
    """One streamed answer in a chat of so many messages, all of them on the page."""
    chat = _make_chat(count)
    page.goto(f"/chat/{chat}/")
    earlier = page.locator("[data-earlier]")
    while page.locator("[data-message]").count() < count:
        earlier.click()
        expect(earlier).to_be_enabled()
    page.wait_for_timeout(2_000)
    page.evaluate("window.found.long.length = 0")
    page.wait_for_timeout(IDLE_SECONDS * 1_000)
    idle = page.evaluate("window.found.long.splice(0).length")
    with _answer():
        # No locator from here on: what looks for elements in a page of thousands is work of its own.
        page.evaluate("document.querySelector('.composer textarea').focus()")
        page.keyboard.insert_text("Tell me")
        page.keyboard.press("Enter")
        page.wait_for_timeout(FIRST_SECONDS * 1_000)
        cdp = page.context.new_cdp_session(page)
        cdp.send("Performance.enable")
        page.evaluate("window.found.taken.length = 0")
        before = _metrics(cdp)
        page.wait_for_timeout(WORDS * EVERY * 1_000)
        after = _metrics(cdp)
        found = page.evaluate("({taken: window.found.taken, long: window.found.long})")
    expect(page.locator("[data-live]")).to_have_count(0, timeout=60_000)
    last = page.locator("[data-message]").last.get_attribute("data-message")
    fetched = page.evaluate(FETCH, [f"/chat/{chat}/thread/?also={last}", 100])
    spent = {name: (after[name] - before[name]) * 1_000 for name in before}
    return {**found, "idle": idle, "fetched": fetched[10:], "spent": spent, "updates": len(found["taken"])}


def _make_chat(count: int) -> str:
    from django.utils import timezone

    from apps.accounts.models import User
    from apps.agent.models import Conversation, Message

    now, person = timezone.now(), User.objects.get(email="member@example.org")
    chat = Conversation.objects.create(
        user=person, title="A long chat", created_at=now, last_message_at=now, message_count=count
    )
    texts = (
        "A question of the person, of ordinary length.",
        "An **answer** with a list:\n\n- one\n- two\n\n| a |\n|---|\n| 1 |",
    )
    Message.objects.bulk_create(
        Message(
            conversation=chat,
            number=number + 1,
            role=("user", "assistant")[number % 2],
            content=texts[number % 2],
            created_at=now,
        )
        for number in range(count)
    )
    return str(chat.pk)


@contextmanager
def _answer() -> Iterator[None]:
    """A model that says a word every so often."""
    from apps.agent.models import ModelEndpoint

    gates = [Gate() for _ in range(WORDS)]
    steps: list[Step] = []
    for number, gate in enumerate(gates):
        steps += [Say(f"word{number} of an answer{', ' if number % 12 else '.' + chr(10) * 2}"), gate]
    stopped = threading.Event()

    def speak() -> None:
        for gate in gates:
            stopped.wait(EVERY)
            gate.opened.set()

    with shop.endpoint([*steps, Finish()]):
        speaker = threading.Thread(target=speak)
        speaker.start()
        try:
            yield
        finally:
            stopped.set()
            speaker.join()
            ModelEndpoint.objects.all().delete()


def _metrics(cdp: CDPSession) -> dict[str, float]:
    found = {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}
    return {name: found[name] for name in ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration", "TaskDuration")}


def _latencies(few: dict[str, Any], many: dict[str, Any]) -> list[Figure]:
    return [
        Figure(
            requirement="UI-1",
            name=f"from the frame to the fragment on the page, {size:,} messages, {name} of {len(found['taken'])}",
            value=of(found["taken"]),
            unit="ms",
            baseline=of(found["fetched"]),
            ratio=of(found["taken"]) / of(found["fetched"]),
        )
        for size, found in ((FEW, few), (MANY, many))
        for name, of in (("median", statistics.median), ("p95", _p95))
    ]


def _work(few: dict[str, Any], many: dict[str, Any]) -> list[Figure]:
    """Of the page's thread, for each update; a chat of few messages is the baseline."""
    return [
        Figure(
            requirement="UI-3",
            name=f"{name[:-8]} of the page for each update, {MANY:,} messages beside {FEW}",
            value=many["spent"][name] / many["updates"],
            unit="ms",
            baseline=few["spent"][name] / few["updates"],
            ratio=(many["spent"][name] / many["updates"]) / (few["spent"][name] / few["updates"]),
        )
        for name in few["spent"]
    ]


def _long_tasks(few: dict[str, Any], many: dict[str, Any]) -> list[Figure]:
    return [
        Figure(
            requirement="UI-3",
            name=f"tasks above {LONG_TASK_MS} ms in {found['updates']} updates, {size:,} messages; beside {IDLE_SECONDS} idle seconds",
            value=len(found["long"]),
            unit="",
            baseline=found["idle"],
            wanted="0",
            met=not found["long"],
        )
        for size, found in ((FEW, few), (MANY, many))
    ]


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
