"""`/problems/<code>`: what the `type` of a problem leads to."""

import pytest
from django.test import Client

from apps.api import problems, registry
from apps.api.pages.problems import MEANINGS
from tests.api import probe

pytestmark = pytest.mark.sqlite


def test_every_code_of_core_has_its_sentence() -> None:
    assert set(MEANINGS) == set(problems.CORE)


@pytest.mark.parametrize("code", sorted(problems.CORE))
def test_the_type_of_a_problem_leads_to_its_page(client: Client, code: str) -> None:
    answer = client.get(problems.type_url(code).removeprefix("http://testserver"))
    kind = problems.CORE[code]
    assert answer.status_code == 200
    assert f"<h1>{kind.title}</h1>" in answer.content.decode()
    assert f"HTTP status {kind.status}" in answer.content.decode()


@pytest.mark.parametrize(
    ("code", "reasons"),
    [
        ("confirm_token_invalid", ["invalid", "other_arguments", "used", "rejected", "expired"]),
        ("conflict", ["busy", "serialization", "too_many_waiting"]),
    ],
)
def test_a_code_with_reasons_explains_each(code: str, reasons: list[str]) -> None:
    assert [reason for reason in reasons if reason not in str(MEANINGS[code])] == []


@pytest.mark.parametrize("retry", ["same_key", "later", "new_key", "never"])
def test_the_page_says_what_to_do_next(client: Client, retry: str) -> None:
    code = next(kind.code for kind in problems.CORE.values() if kind.retry == retry)
    text = client.get(f"/problems/{code}/").content.decode()
    assert f'"retry": "{retry}"' in text


def test_a_code_of_a_module_has_a_page_too(client: Client) -> None:
    with registry.using(probe.make_probe()):
        text = client.get("/problems/probe_refused").content.decode()
    assert "<h1>Probe refused</h1>" in text
    assert "The module Probe refused the call." in text


@pytest.mark.parametrize("path", ["/problems/unknown", "/problems/", "/problems/not_found/more", "/problems/%00"])
def test_what_is_no_code_is_not_there(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_the_page_is_for_reading(client: Client) -> None:
    assert client.post("/problems/not_found").status_code == 405


def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing(client: Client) -> None:
    policy = client.get("/problems/not_found")["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
