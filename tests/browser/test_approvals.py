"""Approvals as people and a machine use them together: the queue that fills itself, a word by keyboard, a bar that moves, other tabs."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect

from apps.accounts.models import LiveSession
from apps.api import deciding
from apps.api.models import Approval, Lifesign, Vote
from tests.accounts.factories import make_permissions
from tests.api import factories
from tests.browser.signing_in import PASSWORD
from tests.catalogue.factories import make_category, make_product
from tests.services import Program

pytestmark = pytest.mark.django_db(transaction=True)
QUEUE = "/approvals/"
RIGHTS = (deciding.PERMISSION, "catalogue.add_product", "catalogue.change_product")

Open = Callable[..., Page]


class Machine:
    """A script with a key that requires approval, over real HTTP."""

    def __init__(self, program: Program) -> None:
        make_category(slug="lamps")
        self._url = program.url
        _, self._text = factories.make_key(name="Nightly import", scopes=["catalogue:write"], requires_approval=True)

    def call(self, tool: str, body: Any) -> Any:
        request = urllib.request.Request(  # noqa: S310
            f"{self._url}/api/v1/tools/{tool}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self._text}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)

    def ask(self, number: int = 1, *, name: str = "T") -> str:
        """To import so many products; the approval's uuid."""
        rows = [
            {"sku": f"{name}-{index:05}", "name": f"Lamp {index}", "category": "lamps", "price": "9.90", "stock": 1}
            for index in range(number)
        ]
        return str(self.call("catalogue.import_products", {"rows": rows})["approval_id"])

    def read(self, uuid: str) -> Any:
        return self.call("system.get_approval", {"approval_id": uuid})


@pytest.fixture
def machine(program: Program) -> Machine:
    return Machine(program)


@pytest.fixture
def approver(transactional_db: None) -> Any:
    """Who may decide."""
    approver = get_user_model()._default_manager.create_user("approver@example.org", PASSWORD, name="Ada Approver")
    approver.user_permissions.set(make_permissions(RIGHTS))
    return approver


@pytest.fixture
def browse(browser: Browser, program: Program, approver: Any, said: list[str]) -> Iterator[Open]:
    """Opens a page in a browser of its own, signed in as the approver; options of Playwright by keyword."""
    opened: list[BrowserContext] = []

    def start(address: str = QUEUE, **options: Any) -> Page:
        context = browser.new_context(base_url=program.url, **options)
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text) if "Security Policy" in message.text else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(address)
        page.get_by_label("E-mail address").fill(approver.email)
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page.get_by_role("navigation", name="Main")).to_be_visible()
        return page

    yield start
    for context in opened:
        context.close()


def one(uuid: str) -> str:
    return f"{QUEUE}{uuid}/"


def pill(page: Page) -> Any:
    return page.locator("#stands .pill")


def test_a_machine_asks_a_person_looks_and_approves_by_keyboard_and_the_machine_reads_the_result(
    browse: Open, machine: Machine, said: list[str]
) -> None:
    page = browse()
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    uuid = machine.ask(2_000)
    expect(page.get_by_role("link", name="Import products")).to_be_visible()  # nobody loaded the page again
    expect(page.get_by_role("link", name="Approvals 1 waits for you")).to_be_visible()

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{one(uuid)}")
    table = page.get_by_role("region", name="Before and after")
    expect(table.get_by_role("row")).to_have_count(51)
    expect(table.get_by_role("row", name="Lamp 0 price")).to_contain_text("9.90")
    expect(page.get_by_text("more rows, not listed here")).to_be_visible()
    expect(page.get_by_role("region", name="Arguments as JSON")).to_contain_text('"sku": "T-01999"')

    page.keyboard.press("n")
    page.keyboard.type("a fine list")
    expect(page.get_by_label("Note")).to_have_value("a fine list")  # its letters moved nothing
    page.keyboard.press("Tab")
    page.keyboard.press("r")
    expect(page.get_by_role("button", name="Reject")).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_text("You approved it.")).to_be_visible()
    expect(pill(page)).to_have_text("done", timeout=60_000)
    expect(page.get_by_role("progressbar")).to_have_attribute("value", "100")
    expect(page.get_by_role("region", name="Result")).to_contain_text('"imported": 2000')
    found = machine.read(uuid)
    assert (found["status"], found["result"]["imported"]) == ("done", 2_000)
    assert Vote.objects.get().note == "a fine list"
    assert said == []


def test_another_tab_changes_at_once_and_a_note_that_is_being_written_stays(
    browse: Open, machine: Machine, said: list[str]
) -> None:
    uuid = machine.ask()
    first, queue = browse(one(uuid)), browse()
    second = first.context.new_page()
    second.goto(one(uuid))
    second.get_by_label("Note").fill("Half a thou")
    expect(queue.get_by_role("link", name="Import products")).to_be_visible()

    Approval.objects.filter(pk=uuid).update(preview_version=2, reopened=1)
    machine.ask(name="OTHER")  # an event: the page looks
    expect(second.get_by_text("What it would change has changed")).to_be_visible()
    expect(second.get_by_label("Note")).to_have_value("Half a thou")
    expect(second.get_by_label("Note")).to_be_focused()

    expect(first.locator("input[name=preview_version]")).to_have_value("2")
    first.get_by_role("button", name="Reject").click()
    expect(pill(second)).to_have_text("rejected")
    expect(second.get_by_role("button", name="Approve")).to_be_hidden()
    expect(queue.locator(f"#row-{uuid}")).to_have_count(0)
    expect(queue.get_by_role("link", name="Import products")).to_have_count(1)
    assert said == []


def test_a_running_one_shows_how_far_it_is_and_the_end_without_a_reload(
    browse: Open, machine: Machine, said: list[str]
) -> None:
    uuid = machine.ask()
    now = timezone.now()
    Approval.objects.filter(pk=uuid).update(state="running", attempt=1, started_at=now, approvals=1)
    sign = Lifesign.objects.create(
        kind="approval", uuid=uuid, attempt=1, seen_at=now, progress_at=now, partial={"done": 40, "total": 100}
    )
    page, queue = browse(one(uuid)), browse(f"{QUEUE}?view=running")
    bar = page.get_by_role("progressbar")
    expect(bar).to_have_attribute("value", "40")
    expect(queue.get_by_role("progressbar")).to_have_attribute("value", "40")
    expect(page.get_by_role("region", name="So far")).to_contain_text('"done": 40')
    Lifesign.objects.filter(pk=sign.pk).update(partial={"done": 70, "total": 100})
    expect(bar).to_have_attribute("value", "70")
    expect(queue.get_by_role("progressbar")).to_have_attribute("value", "70")
    Lifesign.objects.filter(pk=sign.pk).delete()
    expect(pill(page)).to_have_text("failed")
    expect(page.get_by_text("interrupted before it ended")).to_be_visible()
    assert said == []


def test_the_time_runs_out_before_ones_eyes(browse: Open, machine: Machine, said: list[str]) -> None:
    uuid = machine.ask()
    Approval.objects.filter(pk=uuid).update(expires_at=timezone.now() + timedelta(seconds=4))
    page = browse(one(uuid))
    expect(pill(page)).to_have_text("expired", timeout=15_000)
    expect(page.get_by_role("button", name="Approve")).to_be_hidden()
    expect(page.get_by_text("Nobody decided it in time")).to_be_visible()
    assert said == []


def test_a_page_that_was_left_and_a_page_without_a_socket_catch_up(
    browse: Open, machine: Machine, said: list[str]
) -> None:
    page = browse()
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    page.goto("/account/keys/")
    uuid = machine.ask()
    page.go_back()
    expect(page.locator(f"#row-{uuid}")).to_be_visible()

    deaf = page.context.new_page()
    deaf.route_web_socket("**/ws/approvals/", lambda socket: socket.close(code=1011))
    deaf.goto(QUEUE)
    other = machine.ask(name="OTHER")
    expect(deaf.locator(f"#row-{other}")).to_be_visible(timeout=15_000)
    expect(deaf.get_by_text("Live updates are off")).to_be_visible(timeout=15_000)


def test_whoever_is_signed_out_elsewhere_is_told(browse: Open, machine: Machine, said: list[str]) -> None:
    page = browse()
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    LiveSession.objects.update(ended_at=timezone.now(), end_reason=LiveSession.EndReason.REVOKED)
    machine.ask()
    expect(page.get_by_text("You are signed out")).to_be_visible()
    assert said == []


def test_a_double_click_is_one_vote(browse: Open, machine: Machine) -> None:
    uuid = machine.ask()
    page = browse(one(uuid))
    page.get_by_role("button", name="Reject").dblclick()
    expect(page.get_by_text("You rejected it.")).to_be_visible()
    assert Vote.objects.count() == 1


def test_it_is_decided_without_scripts(browse: Open, machine: Machine) -> None:
    uuid = machine.ask()
    page = browse(one(uuid), java_script_enabled=False)
    page.get_by_label("Note").fill("Read without scripts.")
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("You rejected it.")).to_be_visible()
    assert Vote.objects.get().note == "Read without scripts."


def test_every_control_is_reached_by_tab(browse: Open, machine: Machine) -> None:
    page = browse(one(machine.ask()))
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.getAttribute('aria-label')"))
    for control in ("note", "approve", "reject", "Before and after", "Arguments as JSON"):
        assert control in reached


@pytest.mark.parametrize(
    "options",
    [
        {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
        {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
        {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    ],
    ids=["phone", "dark phone", "dark"],
)
def test_no_page_is_wider_than_the_window(
    browse: Open, machine: Machine, said: list[str], options: dict[str, Any]
) -> None:
    uuid = machine.ask(60, name="A-RATHER-LONG-NAME")
    make_product(sku="T-1", name="x" * 120)
    machine.call("catalogue.update_prices", {"changes": [{"sku": "T-1", "price": "21.00"}]})
    page = browse(**options)
    wide = []
    for address in (QUEUE, one(uuid), f"{QUEUE}?view=decided&key=nothing"):
        page.goto(address)
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wide.append(address)
    assert (wide, said) == ([], [])
