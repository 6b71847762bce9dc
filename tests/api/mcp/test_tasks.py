"""A write that waits for an approver, as a task of 2026-07-28 (MC-4): made for clients that declare them, ended with the tool's result."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from apps.activity.models import Entry
from apps.api import approvals, deciding, keys, registry, runs, sweeps
from apps.api.deciding import Decision
from apps.api.models import Approval
from tests.api import factories
from tests.api.factories import Machine
from tests.api.mcp.client import ERAS, Client, left
from tests.api.mcp.walking import tools as walking
from tests.api.once import make_once
from tests.api.probe import READ, WRITE
from tests.api.test_approval_races import make_approver

pytestmark = pytest.mark.sqlite

TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
OWN = {
    "taskId",
    "status",
    "statusMessage",
    "createdAt",
    "lastUpdatedAt",
    "ttlMs",
    "pollIntervalMs",
    "resultType",
    "_meta",
}


@pytest.fixture
def asker(transactional_db: None, settings: Any) -> Iterator[Machine]:
    """A key whose writes wait. The test delivers the tasks of the workers itself."""
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    settings.BASE_URL = "https://tollhouse.example.org"
    with registry.using(walking.module):
        yield factories.make_machine(scopes=[READ, WRITE], requires_approval=True)


@pytest.fixture
def client(asker: Machine) -> Client:
    return Client(machine=asker, capabilities=TASKS)


def make_task(client: Client, **given: Any) -> dict[str, Any]:
    found = client.call("walk_go", given)
    assert found["resultType"] == "task", found
    return found


def get(client: Client, id: Any) -> dict[str, Any]:
    """What `tasks/get` answers."""
    return client.result("tasks/get", {"taskId": id}, headers={"Mcp-Name": str(id)})


def send(client: Client, method: str, id: Any, **params: Any) -> Any:
    return client.send(method, {"taskId": id, **params}, headers={"Mcp-Name": str(id)})


def decide(id: str, *, approve: bool = True, note: str = "") -> None:
    version = Approval.objects.get(pk=id).preview_version
    deciding.decide(
        make_approver().ref, UUID(id), Decision(approve=approve, version=version, note=note), impersonated=False
    )


def approve_and_run(id: str) -> Approval:
    decide(id)
    approval = Approval.objects.get(pk=id)
    runs.run(approval.pk)
    return Approval.objects.get(pk=id)


def problem_in(result: dict[str, Any]) -> dict[str, Any]:
    assert result["isError"] is True
    assert "structuredContent" not in result
    found: dict[str, Any] = json.loads(result["content"][0]["text"])
    return found


def fault(answer: Any) -> tuple[int, int, Any]:
    return answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["message"]


def test_a_client_that_declares_tasks_gets_one(client: Client) -> None:
    task = make_task(client)
    approval = Approval.objects.get()
    assert set(task) == OWN
    assert (task["taskId"], task["status"], task["ttlMs"]) == (str(approval.pk), "working", None)
    assert isinstance(task["pollIntervalMs"], int)
    assert (
        datetime.fromisoformat(task["createdAt"])
        == datetime.fromisoformat(task["lastUpdatedAt"])
        == approval.created_at
    )
    assert f"https://tollhouse.example.org/approvals/{approval.pk}/" in task["statusMessage"]
    assert get(client, task["taskId"])["status"] == "working"


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"extensions": {}},
        {"extensions": []},
        {"extensions": {"io.modelcontextprotocol/tasks": None}},
        {"tasks": {}},
        {"elicitation": {}},
    ],
)
def test_a_client_that_declares_none_gets_the_pending_answer(asker: Machine, capabilities: Any) -> None:
    client = Client(machine=asker, capabilities=capabilities)
    found = client.call("walk_go", {})
    pending = found["structuredContent"]
    assert (found["resultType"], pending["status"]) == ("complete", "pending_approval")
    assert pending["url"] == f"https://tollhouse.example.org/approvals/{pending['approval_id']}/"
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        answer = send(client, method, pending["approval_id"], inputResponses={})
        assert fault(answer)[:2] == (400, -32021)
        assert answer.json()["error"]["data"] == {"requiredCapabilities": TASKS}


@pytest.mark.parametrize("version", ERAS[:-1])
def test_earlier_revisions_have_no_tasks(asker: Machine, version: str) -> None:
    client = Client(machine=asker, version=version)
    meta = {"io.modelcontextprotocol/clientCapabilities": TASKS}
    assert (
        client.call("walk_go", {}, _meta=meta, task={"ttl": 60_000})["structuredContent"]["status"]
        == "pending_approval"
    )
    assert fault(client.send("tasks/get", {"taskId": "x"}))[:2] == (200, -32601)
    told = client.result("initialize", {"protocolVersion": version, "capabilities": TASKS})
    assert set(told["capabilities"]) == {"tools"}


def test_the_server_declares_them_to_keys_alone(client: Client) -> None:
    assert client.result("server/discover")["capabilities"]["extensions"] == TASKS["extensions"]
    factories.set_setting("api_public_enabled", True)
    visitor = Client(machine=Machine(), capabilities=TASKS)
    assert "extensions" not in visitor.result("server/discover")["capabilities"]
    assert fault(send(visitor, "tasks/get", str(uuid4())))[:2] == (404, -32601)


def test_methods_that_the_extension_has_not_are_not_found(client: Client) -> None:
    for method in ("tasks/result", "tasks/list"):
        assert fault(client.send(method, {"taskId": "x"}))[:2] == (404, -32601)


def test_a_task_ends_with_what_the_tool_answered(client: Client) -> None:
    task = make_task(client)
    approval = approve_and_run(task["taskId"])
    answer = send(client, "tasks/get", task["taskId"])
    found = answer.json()["result"]
    assert set(found) == {*OWN, "result"}
    assert (found["resultType"], found["status"], found["statusMessage"]) == ("complete", "completed", "Done.")
    assert bytes(approval.body or b"") in answer.content
    assert found["result"]["structuredContent"] == json.loads(found["result"]["content"][0]["text"])
    assert found["result"]["content"][0]["text"].encode() == bytes(approval.body or b"")
    assert (found["result"]["isError"], found["result"]["resultType"]) == (False, "complete")
    assert datetime.fromisoformat(found["lastUpdatedAt"]) == approval.ended_at
    assert found["createdAt"] == task["createdAt"]


def test_it_tells_how_far_it_is(client: Client) -> None:
    task = make_task(client)
    decide(task["taskId"])
    assert get(client, task["taskId"])["statusMessage"].startswith("Approved.")
    started = approvals.start(Approval.objects.get())
    assert started is not None
    found = get(client, task["taskId"])
    assert (found["status"], found["statusMessage"]) == ("working", "Running.")
    assert datetime.fromisoformat(found["lastUpdatedAt"]) == started.started_at
    assert found["pollIntervalMs"] < task["pollIntervalMs"]


@pytest.mark.parametrize(("end", "code"), [("refuse", "walk_refused"), ("break", "internal_error")])
def test_a_run_that_is_refused_ends_with_the_refusal_as_the_tools_result(client: Client, end: str, code: str) -> None:
    task = make_task(client, end=end)
    approval = approve_and_run(task["taskId"])
    found = get(client, task["taskId"])
    assert found["status"] == "completed"
    assert problem_in(found["result"])["code"] == code
    assert found["result"]["content"][0]["text"].encode() == bytes(approval.body or b"")


def test_a_rejected_one_says_why(client: Client) -> None:
    task = make_task(client)
    decide(task["taskId"], approve=False, note="Not on a Friday.")
    found = get(client, task["taskId"])
    assert (found["status"], found["statusMessage"]) == ("completed", "A person rejected it. Not on a Friday.")
    assert problem_in(found["result"])["reason"] == "approval_rejected"


def test_one_that_nobody_decided_expires(client: Client) -> None:
    task = make_task(client)
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    found = get(client, task["taskId"])
    assert (found["status"], found["statusMessage"]) == ("completed", "Nobody decided in time.")
    assert problem_in(found["result"])["reason"] == "approval_expired"
    sweeps.sweep_approvals(is_server=True)
    assert get(client, task["taskId"])["status"] == "completed"


def test_one_that_nobody_started_fails(client: Client) -> None:
    task = make_task(client)
    decide(task["taskId"])
    Approval.objects.update(start_before=timezone.now() - timedelta(seconds=1))
    found = get(client, task["taskId"])
    assert (found["status"], found["error"]["code"], found["error"]["data"]["reason"]) == (
        "failed",
        409,
        "approval_failed",
    )
    assert "Nobody started it in time" in found["statusMessage"]
    assert "result" not in found


def test_an_interrupted_one_fails_once_it_is_given_up(client: Client) -> None:
    """Until then the run might still end well, and a task that ended can't take that back."""
    task = make_task(client)
    Approval.objects.update(state="running", attempt=1)  # nobody gives a sign of life for it
    found = get(client, task["taskId"])
    assert (found["status"], found["statusMessage"]) == ("working", "Running.")
    sweeps.sweep_approvals(is_server=True)
    found = get(client, task["taskId"])
    assert (found["status"], found["error"]["data"]["reason"]) == ("failed", "approval_failed")
    assert "interrupted" in found["statusMessage"]


def test_an_interrupted_one_that_acts_outside_may_have_happened(settings: Any, transactional_db: None) -> None:
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    with registry.using(make_once()):
        machine = factories.make_machine(scopes=[WRITE], requires_approval=True)
        client = Client(machine=machine, capabilities=TASKS)
        task = client.call("once_send", {})
        Approval.objects.update(state="running", attempt=1)
        sweeps.sweep_approvals(is_server=True)
        found = get(client, task["taskId"])
    assert (found["status"], found["error"]["data"]["code"]) == ("failed", "idempotency_outcome_unknown")
    assert found["error"]["data"]["retry"] == "never"


def test_cancelling_takes_it_back_with_an_entry(client: Client) -> None:
    task = make_task(client)
    answer = send(client, "tasks/cancel", task["taskId"])
    assert set(answer.json()["result"]) == {"resultType", "_meta"}
    assert answer.json()["result"]["resultType"] == "complete"
    found = get(client, task["taskId"])
    assert (found["status"], found["statusMessage"]) == ("cancelled", "Taken back before it ran.")
    assert "result" not in found
    assert Entry.objects.filter(action="api.approval_cancelled", actor_kind="key").count() == 1


def test_cancelling_what_runs_or_ended_is_heard_and_changes_nothing(client: Client) -> None:
    task = make_task(client)
    decide(task["taskId"])
    started = approvals.start(Approval.objects.get())
    assert started is not None
    assert send(client, "tasks/cancel", task["taskId"]).json()["result"]["resultType"] == "complete"
    assert Approval.objects.get().state == "running"
    approvals.fail(started, "interrupted")
    assert send(client, "tasks/cancel", task["taskId"]).json()["result"]["resultType"] == "complete"
    assert Approval.objects.get().state == "failed"
    assert not Entry.objects.filter(action="api.approval_cancelled").exists()


def test_updates_are_heard_and_change_nothing(client: Client) -> None:
    task = make_task(client)
    answer = send(client, "tasks/update", task["taskId"], inputResponses={"approve": {"action": "accept"}})
    assert set(answer.json()["result"]) == {"resultType", "_meta"}
    assert Approval.objects.get().state == "pending"
    assert fault(send(client, "tasks/update", task["taskId"]))[:2] == (400, -32602)


def test_a_strangers_an_unknown_and_a_malformed_task_are_one_answer(client: Client) -> None:
    task = make_task(client)
    stranger = Client(machine=factories.make_machine(scopes=[READ, WRITE], requires_approval=True), capabilities=TASKS)
    own = task["taskId"]
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        ids = (
            own,
            str(uuid4()),
            "nonsense",
            own.upper(),
            own.replace("-", ""),
            f"urn:uuid:{own}",
            "",
            str(uuid4()) * 99,
        )
        answers = [send(stranger, method, asked, inputResponses={}) for asked in ids]
        answers.append(stranger.send(method, {"inputResponses": {}}))
        assert {fault(answer) for answer in answers} == {(400, -32602, "There is no such task.")}
    assert Approval.objects.get().state == "pending"
    assert get(client, own)["status"] == "working"


def test_the_whole_family_sees_it(client: Client, asker: Machine) -> None:
    task = make_task(client)
    assert asker.key is not None
    with transaction.atomic():
        _, text = keys.rotate(asker.key, grace=timedelta(hours=1), by=asker.key.owner, actor=factories.SYSTEM)
    successor = Client(machine=Machine(text=text), capabilities=TASKS)
    assert get(successor, task["taskId"])["status"] == "working"


def test_each_request_costs_one_unit(client: Client) -> None:
    task = make_task(client)
    before = left(client.send("tools/list"))
    spent = [
        send(client, "tasks/get", task["taskId"]),
        send(client, "tasks/get", str(uuid4())),
        send(client, "tasks/get", "nonsense"),
        send(client, "tasks/update", task["taskId"], inputResponses={}),
        send(client, "tasks/update", task["taskId"]),
        send(client, "tasks/cancel", task["taskId"]),
        send(client, "tasks/cancel", task["taskId"]),
    ]
    assert [before - left(answer) for answer in spent] == [1, 2, 3, 4, 5, 6, 7]


def test_a_spent_budget_is_an_error_that_says_when_to_come_again(asker: Machine) -> None:
    machine = factories.make_machine(scopes=[WRITE], requires_approval=True, budget=20)
    client = Client(machine=machine, capabilities=TASKS)
    task = make_task(client)
    answers = [send(client, "tasks/get", task["taskId"]) for _ in range(20)]
    error = answers[-1].json()["error"]
    assert (answers[-1].status_code, error["code"], error["data"]["code"]) == (200, 429, "rate_limited")
    assert int(answers[-1].headers["Retry-After"]) > 0


def test_the_header_must_name_the_task(client: Client) -> None:
    task = make_task(client)
    for headers in ({}, {"Mcp-Name": str(uuid4())}):
        answer = client.send("tasks/get", {"taskId": task["taskId"]}, headers=headers)
        assert fault(answer)[:2] == (400, -32020)


def test_a_repeat_finds_the_same_task_and_says_so(client: Client) -> None:
    first, second = make_task(client), make_task(client)
    assert second["taskId"] == first["taskId"]
    assert second["createdAt"] == first["createdAt"]
    assert second["_meta"]["Idempotent-Replayed"] is True
    assert "Idempotent-Replayed" not in first["_meta"]
    assert Approval.objects.count() == 1


def test_a_repeat_after_the_end_is_answered_like_the_task(client: Client) -> None:
    task = make_task(client, idempotency_key="mine")
    assert make_task(client, idempotency_key="mine")["taskId"] == task["taskId"]
    approve_and_run(task["taskId"])
    again = client.call("walk_go", {"idempotency_key": "mine"})
    assert again["content"] == get(client, task["taskId"])["result"]["content"]


@pytest.mark.parametrize("tool", ["system.get_approval", "system.*"])
def test_where_nobody_may_look_there_is_no_task(asker: Machine, tool: str) -> None:
    if tool == "system.*":
        factories.set_setting("api_disabled_modules", ["system"])
    else:
        factories.set_setting("api_disabled_tools", [tool])
    client = Client(machine=asker, capabilities=TASKS)
    found = client.call("walk_go", {})
    assert found["structuredContent"]["status"] == "pending_approval"
    assert fault(send(client, "tasks/get", found["structuredContent"]["approval_id"]))[:2] == (400, -32602)


def test_previews_reads_and_refusals_are_no_tasks(client: Client) -> None:
    assert client.call("walk_go", {"dry_run": True})["structuredContent"]["status"] == "preview"
    assert client.call("walk_look", {})["structuredContent"] == {"seen": True}
    assert client.refusal("walk_go", {"confirm_token": "x"})["code"] == "confirm_token_invalid"
    assert client.refusal("walk_go", {"nope": 1})["code"] == "validation_failed"


def test_a_key_without_the_requirement_runs_at_once(asker: Machine) -> None:
    client = Client(machine=factories.make_machine(scopes=[WRITE]), capabilities={**TASKS, "elicitation": {}})
    assert client.call("walk_go", {})["resultType"] == "complete"


def test_no_task_lets_its_client_decide(client: Client) -> None:
    """AP-3: only a person, on the page, in a session of their own."""
    task = make_task(client)
    for name in ("approve", "confirm", "vote", task["taskId"]):
        send(
            client, "tasks/update", task["taskId"], inputResponses={name: {"action": "accept", "content": {"ok": True}}}
        )
    runs.run(Approval.objects.get().pk)
    assert get(client, task["taskId"])["status"] == "working"
    assert Approval.objects.get().approvals == 0


def test_a_right_that_is_gone_is_the_end_of_the_task(client: Client, asker: Machine) -> None:
    task = make_task(client)
    decide(task["taskId"])
    assert asker.key is not None
    asker.key.scopes = [READ]
    asker.key.save(update_fields=["scopes"])
    runs.run(Approval.objects.get().pk)
    found = get(client, task["taskId"])
    assert problem_in(found["result"])["code"] == "forbidden"


def test_a_revoked_key_has_no_tasks(client: Client, asker: Machine) -> None:
    task = make_task(client)
    assert asker.key is not None
    asker.key.revoked_at = timezone.now()
    asker.key.save(update_fields=["revoked_at"])
    assert send(client, "tasks/get", task["taskId"]).status_code == 401
