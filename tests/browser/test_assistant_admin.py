"""The assistant's pages in the admin site as operators use them: an endpoint made, tested and mended, a limit set, the sums read."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.agent import options
from apps.agent.models import AgentSetting, ModelCall, ModelEndpoint
from tests.agent.wire import openai
from tests.agent.wire.script import Finish, Refuse, Say
from tests.services import Program

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-browser-canary-0123456789"


@pytest.fixture
def program(operator: Any, start_program: Callable[..., Program]) -> Program:
    """As `make run` has it, where a model answers on this machine."""
    return start_program("uvicorn", DEBUG="1", MODEL_NETWORKS="127.0.0.0/8")


def picture(page: Page, name: str) -> None:
    """Kept where somebody wants to look at the pages."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def test_an_operator_connects_a_model_tests_it_and_mends_it(page: Page, said: list[str]) -> None:
    refusal = Refuse(401, openai.error("Incorrect API key provided.", code="invalid_api_key"))
    with openai.OpenAI([refusal], [Say("Hello!"), Finish()], key=KEY) as wire:
        page.goto("/admin/")
        page.locator("#content").get_by_role("link", name="Model endpoints", exact=True).click()
        picture(page, "endpoints-empty")
        page.get_by_role("link", name="Add model endpoint").click()
        page.locator("#id_name").fill("Local")
        page.locator("#id_provider").select_option("openai")
        page.locator("#id_base_url").fill(wire.url)
        page.locator("#id_model").fill("qwen3")
        page.locator("#id_key").fill(KEY)
        picture(page, "endpoint-add")
        page.get_by_role("button", name="Save and continue editing").click()
        expect(page.get_by_text("A key is stored, and shown to nobody.")).to_be_visible()
        assert KEY not in page.content()

        page.get_by_role("button", name="Test this endpoint").click()
        expect(page.locator(".messagelist .error")).to_contain_text("The provider does not take the key.")
        picture(page, "endpoint-refused")
        page.get_by_role("button", name="Test this endpoint").click()
        expect(page.locator(".messagelist .success")).to_contain_text("It answered “Hello!” in")
        picture(page, "endpoint-answered")

    page.goto("/admin/agent/modelendpoint/")
    picture(page, "endpoints")
    page.goto("/admin/agent/modelcall/")
    expect(page.locator("#sums")).to_contain_text("2 calls (1 without a whole answer)")
    picture(page, "calls")
    assert ModelEndpoint.objects.get().is_default
    assert sorted(ModelCall.objects.values_list("code", flat=True)) == ["", "provider_unauthorized"]
    assert said == []


def test_an_operator_sets_the_assistant_and_one_person(page: Page, said: list[str], operator: Any) -> None:
    page.goto("/admin/")
    page.locator("#content").get_by_role("link", name="Settings → Agent", exact=True).click()
    picture(page, "settings")
    page.get_by_label("Cost of one turn").fill("0.25")
    page.get_by_label("Added to what the model is told").fill("Answer in one sentence.")
    page.get_by_role("button", name="Review changes").click()
    expect(page.locator(".th-diff li")).to_have_count(2)
    picture(page, "settings-review")
    page.get_by_role("button", name="Save these changes").click()
    expect(page.locator(".messagelist")).to_contain_text("Cost of one turn: 0.5 US dollars → 0.25 US dollars")

    page.get_by_role("link", name="Set something for a person").click()
    page.get_by_label("Person").fill("operator@example.org")
    page.get_by_label("may use the assistant").uncheck()
    picture(page, "person")
    page.get_by_role("button", name="Save", exact=True).click()
    picture(page, "people")
    expect(page.locator("#result_list").get_by_role("link", name="operator@example.org")).to_be_visible()
    assert str(options.current().agent_turn_cost) == "0.2500"
    assert not AgentSetting.objects.get(user=operator).is_enabled
    assert said == []


def test_the_settings_fit_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/admin/agent/agentsetting/")
    picture(page, "settings-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
