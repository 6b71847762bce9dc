"""The OpenAPI document (RE-2): valid, the caller's own, with everything that can come."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from openapi_spec_validator import OpenAPIV31SpecValidator

from apps.api import executor, registry
from apps.api.openapi import document, examples, limits
from apps.api.registry import Registry
from apps.catalogue.tools import module as catalogue
from tests.api import factories, probe, problem
from tests.api.factories import Machine

pytestmark = pytest.mark.sqlite

METHODS = {"get", "post", "delete"}


def fetch(machine: Machine, path: str = "openapi.json") -> Any:
    return machine.client.get(f"{machine.base}/{path}", headers=machine.headers())


def operations(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        operation["operationId"]: operation
        for item in found["paths"].values()
        for method, operation in item.items()
        if method in METHODS
    }


def codes(found: dict[str, Any], operation: dict[str, Any]) -> set[str]:
    responses = [part["$ref"].rpartition("/")[2] for part in operation["responses"].values() if "$ref" in part]
    shown = (found["components"]["responses"][name]["content"] for name in responses)
    return {code for content in shown for code in content["application/problem+json"]["examples"]}


def test_the_document_of_a_key_is_valid_openapi(machine: Machine) -> None:
    answer = fetch(machine)
    assert answer.status_code == 200
    assert list(OpenAPIV31SpecValidator(answer.json()).iter_errors()) == []


def test_the_document_of_visitors_is_valid_openapi(visitor: Machine) -> None:
    found = fetch(visitor).json()
    assert list(OpenAPIV31SpecValidator(found).iter_errors()) == []
    assert found["security"] == [{}]
    assert "/api/v1/public/tools/probe.look" in found["paths"]


def test_each_tool_that_the_key_may_call_has_an_operation_on_its_own_path(machine: Machine) -> None:
    found = fetch(machine).json()
    paths = {path.rpartition("/")[2] for path in found["paths"] if path.startswith("/api/v1/tools/")}
    assert paths == set(machine.tools())


def test_a_key_sees_nothing_of_tools_that_it_may_not_call(transactional_db: None, tools: Registry) -> None:
    text = fetch(factories.make_machine(scopes=[probe.READ])).content.decode()
    assert "probe.echo" in text
    assert "probe.store" not in text


def test_the_schema_is_that_of_the_executor_with_the_readers_bounds(machine: Machine) -> None:
    found = fetch(machine).json()
    for tool in registry.current().of("admin"):
        shown = found["paths"][f"/api/v1/tools/{tool.name}"]["post"]["requestBody"]["content"]["application/json"][
            "schema"
        ]
        assert shown == json.loads(json.dumps(limits.of_input(tool)))
        assert shown["properties"].keys() == executor.input_schema(tool)["properties"].keys()
        assert shown["additionalProperties"] is False


def test_a_write_names_its_answers_by_status_and_its_key(machine: Machine) -> None:
    act = operations(fetch(machine).json())["probe_act"]
    shown = act["responses"]["200"]["content"]["application/json"]["examples"]
    assert set(shown) == {"preview", "confirmation_required", "pending_approval"}
    assert [parameter["name"] for parameter in act["parameters"]] == ["Idempotency-Key"]
    assert "Idempotent-Replayed" in act["responses"]["200"]["headers"]


def test_a_read_promises_nothing_of_writes(machine: Machine) -> None:
    found = fetch(machine).json()
    echo = operations(found)["probe_echo"]
    assert "parameters" not in echo
    assert "Idempotent-Replayed" not in echo["responses"]["200"]["headers"]
    assert not codes(found, echo) & {"idempotency_in_progress", "confirm_token_invalid"}


def test_a_call_names_every_problem_that_it_can_end_in(machine: Machine) -> None:
    found = fetch(machine).json()
    never_here = {"impersonated", "module_write_disabled", "not_acceptable"}
    assert codes(found, operations(found)["probe_store"]) == set(registry.current().kinds) - never_here


def test_every_problem_names_its_headers(machine: Machine) -> None:
    responses = fetch(machine).json()["components"]["responses"]
    for name, response in responses.items():
        assert {"X-Request-ID", "RateLimit", "RateLimit-Policy"} <= response["headers"].keys()
        status = name.split(".")[1]
        wanted = {"401": "WWW-Authenticate", "405": "Allow", "429": "Retry-After", "503": "Retry-After"}
        assert wanted.get(status, "X-Request-ID") in response["headers"]


def test_each_example_of_a_call_is_one_that_the_gate_accepts(db: None) -> None:
    with registry.using(catalogue) as tools:
        shown = {tool.name: (tool, examples.of_input(tool)) for tool in tools.declared()}
    assert [name for name, (_, example) in shown.items() if example is None] == []
    assert all(tool.validator.is_valid(example) for tool, example in shown.values())


def test_the_times_are_those_that_the_operator_has_set(machine: Machine) -> None:
    assert "72 hours" in fetch(machine).json()["info"]["description"]
    factories.set_setting("idempotency_retention", 48)
    assert "48 hours" in fetch(machine).json()["info"]["description"]


def test_the_document_is_the_same_to_the_byte_each_time(machine: Machine) -> None:
    first = fetch(machine).content
    document._answer.cache_clear()
    assert fetch(machine).content == first


def test_the_document_is_built_once_for_callers_who_may_call_the_same(transactional_db: None, tools: Registry) -> None:
    document._answer.cache_clear()
    for _ in range(2):
        fetch(factories.make_machine(scopes=[probe.READ]))
    assert document._answer.cache_info().misses == 1


def test_the_document_costs_one_unit_like_a_listing(machine: Machine) -> None:
    assert fetch(machine)["RateLimit"].startswith('"key";r=599')
    assert fetch(machine, "tools")["RateLimit"].startswith('"key";r=598')


@pytest.mark.parametrize("path", ["openapi.json", "openapi.json/", "docs", "docs/"])
def test_paths_work_with_and_without_the_last_slash(machine: Machine, path: str) -> None:
    assert machine.client.get(f"/api/v1/{path}", headers=machine.headers()).status_code == 200


@pytest.mark.parametrize("path", ["openapi.json", "public/openapi.json", "docs"])
def test_another_method_is_refused_with_those_that_are_there(machine: Machine, path: str) -> None:
    answer = machine.client.post(f"/api/v1/{path}", headers=machine.headers())
    problem.of(answer, 405, "method_not_allowed")
    assert answer["Allow"] == "GET, HEAD"


def test_a_caller_without_a_key_gets_no_document_of_keys(transactional_db: None, tools: Registry) -> None:
    problem.of(Machine().client.get("/api/v1/openapi.json"), 401, "unauthorized")


def test_where_visitors_are_not_let_in_they_get_no_document(transactional_db: None, tools: Registry) -> None:
    problem.of(fetch(Machine()), 403, "api_disabled")


@pytest.mark.parametrize("path", ["openapi.json", "public/openapi.json", "docs"])
def test_a_key_in_the_address_is_refused(machine: Machine, path: str) -> None:
    factories.set_setting("api_public_enabled", True)
    problem.of(machine.client.get(f"/api/v1/{path}?api_key=x", headers=machine.headers()), 400, "credential_in_url")


def test_the_face_of_approvals_is_in_the_document_of_keys_alone(machine: Machine, visitor: Machine) -> None:
    item = fetch(machine).json()["paths"]["/api/v1/approvals/{approval_id}"]
    assert {"get", "delete"} <= item.keys()
    assert not any("approvals" in path for path in fetch(visitor).json()["paths"])


def exported(*options: str) -> dict[str, Any]:
    out = StringIO()
    call_command("export_openapi", *options, stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_the_command_prints_what_a_key_with_every_scope_gets(machine: Machine) -> None:
    assert exported()["paths"] == fetch(machine).json()["paths"]


def test_the_command_prints_what_a_key_with_some_scopes_gets(transactional_db: None, tools: Registry) -> None:
    asked = fetch(factories.make_machine(scopes=[probe.READ])).json()
    assert exported("--key-scopes", probe.READ)["paths"] == asked["paths"]


def test_the_command_prints_the_document_of_visitors(visitor: Machine) -> None:
    assert exported("--public")["paths"] == fetch(visitor).json()["paths"]


@pytest.mark.parametrize("options", [["--key-scopes", "probe:nothing"], ["--public", "--key-scopes", probe.READ]])
def test_the_command_refuses_what_makes_no_sense(transactional_db: None, tools: Registry, options: list[str]) -> None:
    with pytest.raises(CommandError):
        exported(*options)
