"""Refusals as RFC 9457 documents, with advice for machines (PR-1 to PR-4)."""

import json
from datetime import date
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from apps.api import problems, strict_json
from apps.api.problems import CORE, Problem
from tests.api import problem
from tests.api.factories import Machine
from tests.api.shop import Shop

CODES = {
    400: ["invalid_json", "credential_in_url", "credential_in_body", "bad_request"],
    401: ["unauthorized"],
    403: ["forbidden", "impersonated", "api_disabled", "module_write_disabled"],
    404: ["not_found", "module_disabled"],
    405: ["method_not_allowed"],
    406: ["not_acceptable"],
    409: ["idempotency_in_progress", "idempotency_outcome_unknown", "confirm_token_invalid", "conflict"],
    413: ["body_too_large"],
    415: ["unsupported_media_type"],
    422: ["validation_failed", "too_many_items", "idempotency_key_reused"],
    429: ["rate_limited"],
    500: ["internal_error"],
    503: ["maintenance", "unavailable"],
}

RETRY = {
    "idempotency_in_progress": "same_key",
    "internal_error": "same_key",
    "unavailable": "same_key",
    "conflict": "same_key",
    "rate_limited": "later",
    "maintenance": "later",
    "idempotency_key_reused": "new_key",
}


def test_core_has_the_codes_of_the_contract_each_with_its_status() -> None:
    assert {code: kind.status for code, kind in CORE.items()} == {
        code: status for status, codes in CODES.items() for code in codes
    }


def test_each_code_says_what_to_do_next() -> None:
    assert {code: kind.retry for code, kind in CORE.items()} == {code: RETRY.get(code, "never") for code in CORE}


@pytest.mark.parametrize("code", CORE)
def test_each_document_is_one_of_rfc_9457(code: str) -> None:
    found = problems.document(Problem(code, "A detail.", field="value"), "request-1")
    status = CORE[code].status
    headers = {"Content-Type": problems.MEDIA_TYPE, "X-Request-ID": "request-1"}
    assert problem.checked(strict_json.dumps(found), status=status, headers=headers) == found
    assert found["type"] == f"http://testserver/problems/{code}"
    assert found["field"] == "value"
    assert set(found) == {*problem.STANDARD, "field"}


def test_a_context_never_replaces_a_standard_member() -> None:
    odd = Problem("conflict", "A detail.")
    odd.context = dict.fromkeys(problem.STANDARD, "other")
    assert problems.document(odd, "request-1") == {
        "type": "http://testserver/problems/conflict",
        "title": CORE["conflict"].title,
        "status": 409,
        "detail": "A detail.",
        "code": "conflict",
        "retry": "same_key",
        "request_id": "request-1",
    }


def test_one_problem_may_advise_otherwise_than_its_kind() -> None:
    assert problems.document(Problem("rate_limited", "Too much.", retry="never"), "")["retry"] == "never"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "bad_request"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not_found"),
        (405, "method_not_allowed"),
        (406, "not_acceptable"),
        (413, "body_too_large"),
        (415, "unsupported_media_type"),
        (429, "rate_limited"),
        (418, "bad_request"),
        (431, "bad_request"),
        (500, "internal_error"),
        (502, "internal_error"),
        (503, "unavailable"),
    ],
)
def test_a_status_that_somebody_else_decided_becomes_a_problem_of_that_status(status: int, code: str) -> None:
    found = problems.document(problems.of_status(status), "request-1")
    assert (found["status"], found["code"]) == (status, code)


def test_a_type_without_a_base_url_is_a_path_of_this_server(settings: Settings) -> None:
    settings.BASE_URL = ""
    assert problems.type_url("conflict") == "/problems/conflict"


@pytest.mark.django_db
@pytest.mark.parametrize("code", CORE)
def test_each_type_is_a_page_that_explains_the_code(code: str) -> None:
    answer = Client().get(problems.type_url(code).removeprefix("http://testserver"), follow=True)
    assert answer.status_code == 200
    assert code in answer.content.decode()


def test_the_list_of_codes_has_core_s_and_the_modules_own(machine: Machine) -> None:
    listed = machine.call("system.problems").json()["problems"]
    assert [kind["code"] for kind in listed] == sorted([*CORE, "probe_refused"])
    assert all(set(kind) == {"code", "status", "title", "type", "retry"} for kind in listed)


# --- Validation errors ----------------------------------------------------------------------------------------------------------------


def by_terms(ctx: Any, *, terms: list[str]) -> Any:
    return {}


def by_days(ctx: Any, *, days: dict[str, date]) -> Any:
    return {}


BIG = "x" * 900_000


@pytest.mark.parametrize(
    "body",
    [
        {"terms": BIG},
        {"terms": [1] * 100_000},
        {"terms": [{BIG: BIG}]},
        {BIG: BIG},
        {f"k{number}": BIG[:1000] for number in range(1_000)},
        {"terms": [], "a/b~c": 1},
    ],
    ids=["text", "numbers", "nested", "name", "names", "escaped"],
)
def test_faults_are_few_and_short_and_echo_nothing_large(shop: Shop, body: dict[str, Any]) -> None:
    answer = shop.read(by_terms, input_schema=None).call("shop.run", body)
    found = problem.of(answer, 422, "validation_failed")
    assert 1 <= len(found["errors"]) <= 20
    assert "x" * 101 not in answer.content.decode()
    assert "a/b~c" not in body or [error["pointer"] for error in found["errors"]] == ["/a~1b~0c"]


def test_faults_of_the_handlers_own_types_are_listed_alike(shop: Shop) -> None:
    body = {"days": {f"{BIG[:500]}{number}": "0000-01-01" for number in range(30)} | {"a/b": "0000-01-01"}}
    answer = shop.read(by_days, input_schema=None).call("shop.run", body)
    found = problem.of(answer, 422, "validation_failed")
    assert len(found["errors"]) == 20
    assert all(error["pointer"].startswith("/days/") for error in found["errors"])
    assert "x" * 101 not in json.dumps(found)
