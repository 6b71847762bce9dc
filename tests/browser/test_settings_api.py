"""Settings → API as operators use it: a change looked at and saved, two of them at once, by keyboard, on a phone, for a person."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from apps.api.models import Setting
from tests.api import factories
from tests.browser.signing_in import PASSWORD, sign_in
from tests.services import Program

pytestmark = pytest.mark.django_db(transaction=True)
SETTINGS = "/admin/api/setting/"
AGENT = "api_session_write_modules"


def stored() -> dict[str, Any]:
    return dict(Setting.objects.values_list("name", "value"))


def module(page: Page, name: str = "Catalogue") -> Locator:
    """The module's boxes."""
    return page.get_by_role("group", name=name)


def row(page: Page, tool: str) -> Locator:
    """The tool's row in the table of what assistants may call."""
    return page.locator("#availability").get_by_role("row").filter(has_text=tool)


def review(page: Page) -> Locator:
    """The lines of what would change."""
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("heading", name="What will change").wait_for()
    return page.locator(".th-diff li")


def save(page: Page) -> str:
    """What the page says after saving."""
    page.get_by_role("button", name="Save these changes").click()
    return page.locator(".messagelist").inner_text()


@pytest.fixture
def second(browser: Browser, program: Program) -> Iterator[Page]:
    """Another operator, in a browser of their own."""
    person = get_user_model()._default_manager.create_superuser("second@example.org", PASSWORD)
    context: BrowserContext = browser.new_context(base_url=program.url)
    page = context.new_page()
    sign_in(page, person)
    yield page
    context.close()


def test_an_operator_lets_the_agent_act_and_sees_table_and_entry(page: Page, said: list[str]) -> None:
    page.goto("/admin/")
    page.locator("#content").get_by_role("link", name="Settings → API", exact=True).click()
    page.get_by_role("heading", name="Settings → API").wait_for()
    expect(row(page, "catalogue.update_prices")).to_contain_text("closed")
    expect(row(page, "catalogue.update_prices")).to_contain_text("tick “Agent may act”")
    expect(row(page, "catalogue.list_products")).to_contain_text("open")

    module(page).get_by_label("Agent may act").check()
    expect(review(page)).to_have_text(["catalogue: Agent may act: off → on"])
    assert stored() == {}
    assert "Saved: catalogue: Agent may act: off → on." in save(page)

    assert stored() == {AGENT: ["catalogue"]}
    expect(module(page).get_by_label("Agent may act")).to_be_checked()
    expect(row(page, "catalogue.update_prices")).to_contain_text("open")
    page.get_by_role("link", name="See the entry").click()
    entry = page.locator("#content").inner_text()
    assert all(part in entry for part in ("api.settings_changed", f'"{AGENT}"', '"old": []', '"new": [\n', "operator@"))
    assert said == []


def test_an_edit_that_a_second_operator_makes_in_between_is_not_lost(page: Page, second: Page) -> None:
    factories.set_setting("api_disabled_tools", ["gone.tool"])
    page.goto(SETTINGS)
    module(page).get_by_label("hidden: catalogue.adjust_stock").check()
    page.fill("input[name=api_key_budget]", "50")
    assert review(page).count() == 2

    second.goto(SETTINGS)
    module(second).get_by_label("hidden: catalogue.get_product").check()
    second.get_by_role("group", name="Tools that are not installed").get_by_label("gone.tool").uncheck()
    assert review(second).count() == 2
    save(second)

    save(page)
    assert stored()["api_disabled_tools"] == ["catalogue.adjust_stock", "catalogue.get_product"]
    assert stored()["api_key_budget"] == 50


def test_a_box_that_a_second_operator_changed_is_shown_and_the_rest_stays_filled_in(page: Page, second: Page) -> None:
    page.goto(SETTINGS)
    page.fill("input[name=api_key_budget]", "50")
    module(page).get_by_label("Agent may act").check()
    review(page)

    second.goto(SETTINGS)
    second.fill("input[name=api_key_budget]", "40")
    review(second)
    save(second)

    assert "Somebody else changed this in the meantime: Budget of a key." in save(page)
    expect(page.locator("input[name=api_key_budget]")).to_have_value("40")
    expect(review(page)).to_have_text(["catalogue: Agent may act: off → on"])
    save(page)
    assert stored() == {"api_key_budget": 40, AGENT: ["catalogue"]}


def test_back_leads_to_the_form_as_it_was_filled_in(page: Page) -> None:
    page.goto(SETTINGS)
    page.check("input[name=maintenance_mode]")
    module(page).get_by_label("API on").uncheck()
    review(page)
    page.get_by_role("button", name="Back").click()
    expect(page.locator("input[name=maintenance_mode]")).to_be_checked()
    expect(module(page).get_by_label("API on")).not_to_be_checked()
    assert stored() == {}


def test_a_number_out_of_bounds_is_said_beside_its_field(page: Page) -> None:
    page.goto(SETTINGS)
    page.fill("input[name=api_key_budget]", "0")
    page.get_by_role("button", name="Review changes").click()
    assert "Nothing was saved" in page.get_by_role("alert").first.inner_text()
    field = page.locator("input[name=api_key_budget]")
    assert field.get_attribute("aria-invalid") == "true"
    described = [page.locator(f"#{part}") for part in str(field.get_attribute("aria-describedby")).split()]
    assert any("greater than or equal to 1" in part.inner_text() for part in described)


def _tab_to(page: Page, target: Locator) -> None:
    """Tab until the target has the focus, and see that it is in sight."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            box = target.bounding_box()
            assert box is not None
            assert target.evaluate(
                "element => { const box = element.getBoundingClientRect();"
                " return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2) === element; }"
            ), "something stands before it"
            return
    raise AssertionError("the keyboard does not get there")


def test_everything_is_done_by_the_keyboard_alone(page: Page) -> None:
    page.goto(SETTINGS)
    _tab_to(page, module(page).get_by_label("Agent may act"))
    page.keyboard.press("Space")
    _tab_to(page, module(page).get_by_label("hidden: catalogue.update_prices"))
    page.keyboard.press("Space")
    _tab_to(page, page.locator("input[name=api_own_keys]"))
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="What will change").wait_for()
    _tab_to(page, page.get_by_role("button", name="Save these changes"))
    page.keyboard.press("Enter")
    page.get_by_text("See the entry").wait_for()
    assert stored() == {"api_disabled_tools": ["catalogue.update_prices"], AGENT: ["catalogue"]}


def test_an_operator_finds_a_person_by_keyboard_and_sees_what_they_lack(page: Page, operator: Any) -> None:
    reader = factories.make_owner(permissions=["catalogue.view_product"], name="Rita Reader")
    factories.make_owner(name="Ron Reader")
    page.goto(SETTINGS)
    page.get_by_label("Show it for a person").focus()
    page.keyboard.type("reader")
    page.keyboard.press("Enter")
    _tab_to(page, page.get_by_role("link", name=f"Rita Reader ({reader.email})"))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/?person={reader.pk}#availability")
    expect(row(page, "catalogue.list_products")).to_contain_text("open")
    expect(row(page, "catalogue.delete_products")).to_contain_text("permission catalogue.delete_product: add it")

    module(page).get_by_label("hidden: catalogue.list_products").check()
    review(page)
    save(page)
    assert f"?person={reader.pk}" in page.url
    expect(row(page, "catalogue.list_products")).to_contain_text("The tool is hidden")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(page: Page, said: list[str], scheme: Any) -> None:
    factories.set_setting("api_disabled_tools", ["gone.tool." + "long_name_" * 5])
    factories.set_setting("disabled_modules", "x" * 300)
    page.emulate_media(color_scheme=scheme)
    for width in (360, 768, 1024):
        page.set_viewport_size({"width": width, "height": 780})
        page.goto(f"{SETTINGS}?q=example")
        assert not _is_too_wide(page), width
        module(page).get_by_label("Agent may act").check()
        page.get_by_label("Replace it with what is set here (Modules that are off)").check()
        review(page)
        assert not _is_too_wide(page), width
    page.get_by_role("button", name="Back").click()
    assert said == []


def _is_too_wide(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


def test_without_scripts_it_is_the_same_page(browser: Browser, program: Program, operator: Any) -> None:
    context = browser.new_context(base_url=program.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, operator)
    page.goto(SETTINGS)
    page.check("input[name=maintenance_mode]")
    module(page).get_by_label("hidden: catalogue.adjust_stock").check()
    assert review(page).count() == 2
    assert "Maintenance: off → on" in save(page)
    assert "Maintenance is on." in page.locator("#content-main").inner_text()
    assert stored() == {"maintenance_mode": True, "api_disabled_tools": ["catalogue.adjust_stock"]}
    context.close()
