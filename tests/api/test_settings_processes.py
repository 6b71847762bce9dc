"""What one process saves on Settings → API counts for the next call in another one (ST-2)."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.api import factories
from tests.api.settings_page import open_sheet, sign_in
from tests.services import Program

pytestmark = [pytest.mark.sqlite, pytest.mark.alone, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def operator(client: Client) -> Client:
    return sign_in(client)


@pytest.fixture
def call(start_program: Callable[..., Program]) -> Callable[[], tuple[int, str | None]]:
    """Calls a tool of the catalogue in a process of the program that runs all the time; status and problem code."""
    program, text = start_program("uvicorn", DEBUG="1"), factories.make_key(scopes=["catalogue:read"])[1]

    def send() -> tuple[int, str | None]:
        address = f"{program.url}/api/v1/tools/catalogue.list_products"
        headers = {"Authorization": f"Bearer {text}", "Content-Type": "application/json"}
        request = urllib.request.Request(address, b"{}", headers)  # noqa: S310 - our own program
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
                return answer.status, None
        except urllib.error.HTTPError as refusal:
            body: Any = json.loads(refusal.read())
            return refusal.code, body["code"]

    return send


def test_each_change_counts_for_the_next_call_in_another_process(
    operator: Client, call: Callable[[], tuple[int, str | None]]
) -> None:
    assert call() == (200, None)
    open_sheet(operator).tick("hidden", "catalogue.list_products").save()
    assert call() == (404, "not_found")
    open_sheet(operator).untick("hidden", "catalogue.list_products").untick("module_on", "catalogue").save()
    assert call() == (404, "module_disabled")
    open_sheet(operator).tick("module_on", "catalogue").untick("api_on", "catalogue").save()
    assert call() == (404, "not_found")
    open_sheet(operator).tick("api_on", "catalogue").tick("maintenance_mode").save()
    assert call() == (503, "maintenance")
    open_sheet(operator).untick("maintenance_mode").untick("api_admin_enabled").save()
    assert call() == (403, "api_disabled")
    open_sheet(operator).tick("api_admin_enabled").save()
    assert call() == (200, None)
