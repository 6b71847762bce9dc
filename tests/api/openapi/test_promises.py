"""What the document shows is true of itself and of the server: examples fit their schemas, answers fit theirs, and each path answers."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from apps.api.registry import Registry
from apps.catalogue.tools import module as catalogue
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.openapi.test_document import METHODS, codes, fetch, operations

pytestmark = pytest.mark.sqlite


def fits(document: dict[str, Any], schema: dict[str, Any], value: Any) -> bool:
    """Whether the value is valid by a schema of this document, its references and formats followed."""
    whole = {"components": document["components"], "allOf": [schema]}
    validator = jsonschema.Draft202012Validator(whole, format_checker=jsonschema.FormatChecker())
    return bool(validator.is_valid(value))


def shown(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Every example of a body, with its schema and where it stands."""
    for name, operation in operations(document).items():
        answers = [part for part in operation["responses"].values() if "content" in part]
        for part in [operation.get("requestBody", {}), *answers]:
            for media in part.get("content", {}).values():
                for label, example in media.get("examples", {}).items():
                    yield f"{name}: {label}", media["schema"], example["value"]
    for name, response in document["components"]["responses"].items():
        for media in response["content"].values():
            for label, example in media["examples"].items():
                yield f"{name}: {label}", media["schema"], example["value"]


def schema_of(operation: dict[str, Any]) -> Any:
    return operation["responses"]["200"]["content"]["application/json"]["schema"]


@pytest.fixture
def asking(transactional_db: None, tools: Registry) -> Machine:
    """A machine whose writes people decide."""
    return factories.make_machine(scopes=[probe.READ, probe.WRITE], requires_approval=True)


def test_each_example_fits_the_schema_that_it_stands_beside(machine: Machine, visitor: Machine) -> None:
    for caller in (machine, visitor):
        document = fetch(caller).json()
        wrong = [place for place, schema, value in shown(document) if not fits(document, schema, value)]
        assert wrong == []


def test_each_answer_that_is_no_modules_has_an_example(machine: Machine) -> None:
    found = operations(fetch(machine).json())
    core = [name for name, operation in found.items() if not operation.get("x-tool", {}).get("scope")]
    assert {"listTools", "getOpenAPI", "getApproval", "cancelApproval", "system_whoami"} <= set(core)
    assert [
        name for name in core if not found[name]["responses"]["200"]["content"]["application/json"]["examples"]
    ] == []


def test_a_write_that_waits_is_answered_followed_and_taken_back_as_the_document_says(asking: Machine) -> None:
    document = fetch(asking).json()
    store, face = operations(document)["probe_store"], "/api/v1/approvals/{approval_id}"
    pending = asking.call("probe.store", {"name": "a"}).json()
    assert pending["status"] == "pending_approval"
    assert fits(document, {"$ref": "#/components/schemas/PendingApproval"}, pending)
    assert {link["operationId"] for link in store["responses"]["200"]["links"].values()} == {
        "getApproval",
        "cancelApproval",
    }
    for method, status in (("get", "pending"), ("delete", "cancelled"), ("get", "cancelled")):
        path = face.format(approval_id=pending["approval_id"])
        answer = getattr(asking.client, method)(path, headers=asking.headers()).json()
        assert answer["status"] == status
        assert fits(document, schema_of(document["paths"][face][method]), answer)


def test_a_repeat_of_what_waits_is_marked_where_the_document_says_so(asking: Machine) -> None:
    store = operations(fetch(asking).json())["probe_store"]
    first, second = (asking.call("probe.store", {"name": "a"}) for _ in range(2))
    assert first.json()["approval_id"] == second.json()["approval_id"]
    assert second["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" in store["responses"]["200"]["headers"]


def test_an_approval_that_is_nobodys_ends_in_a_code_of_the_document(asking: Machine) -> None:
    document = fetch(asking).json()
    faces = document["paths"]["/api/v1/approvals/{approval_id}"]
    answer = asking.client.delete("/api/v1/approvals/6f1c2b1e-0c0a-4d1e-9a55-0f2f3f5d7c11", headers=asking.headers())
    assert (answer.status_code, answer.json()["code"] in codes(document, faces["delete"])) == (404, True)
    assert not {"invalid_json", "body_too_large", "validation_failed"} & codes(document, faces["get"])


@pytest.mark.parametrize("tool", ["whoami", "problems", "list_approvals"])
def test_cores_own_tools_answer_in_their_shape(asking: Machine, tool: str) -> None:
    asking.call("probe.store", {"name": "a"})
    document = fetch(asking).json()
    answer = asking.call(f"system.{tool}")
    assert answer.status_code == 200
    assert fits(document, schema_of(operations(document)[f"system_{tool}"]), answer.json())


@pytest.mark.parametrize(
    ("setting", "closed"),
    [
        ("api_disabled_tools", ["probe.store"]),
        ("api_disabled_modules", ["probe"]),
        ("disabled_modules", ["probe"]),
    ],
)
def test_what_is_closed_is_not_in_the_document(machine: Machine, setting: str, closed: list[str]) -> None:
    assert "probe.store" in fetch(machine).content.decode()
    factories.set_setting(setting, closed)
    document = fetch(machine)
    assert document.status_code == 200
    assert "probe.store" not in document.content.decode()
    assert ("probe.echo" in document.content.decode()) is (setting == "api_disabled_tools")


def test_without_its_tools_the_face_of_approvals_is_gone(machine: Machine) -> None:
    factories.set_setting("api_disabled_tools", ["system.get_approval", "system.cancel_approval"])
    document = fetch(machine).json()
    assert not any("/approvals/" in path for path in document["paths"])
    assert "links" not in operations(document)["probe_store"]["responses"]["200"]


def test_every_path_answers_with_and_without_a_last_slash(machine: Machine, visitor: Machine) -> None:
    for caller in (machine, visitor):
        for path, item in fetch(caller).json()["paths"].items():
            for method in METHODS & item.keys():
                for slash in ("", "/"):
                    address = path.replace("{approval_id}", "6f1c2b1e-0c0a-4d1e-9a55-0f2f3f5d7c11") + slash
                    answer = caller.client.generic(method.upper(), address, headers=caller.headers())
                    assert str(answer.status_code) in item[method]["responses"]
                    assert answer.status_code not in (301, 302, 307, 308, 405)


def test_a_docstring_of_several_paragraphs_is_text_and_no_block_of_code() -> None:
    assert [tool.name for tool in catalogue.tools if "\n    " in tool.description] == []
