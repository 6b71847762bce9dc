"""A write that waits for a person, as a task (MC-4, the extension `io.modelcontextprotocol/tasks` of 2026-07-28).

The task is the approval and its id the approval's. Who may see it, what it costs and what cancelling writes are `system.get_approval`'s
and `system.cancel_approval`'s: here their answers get the form of the extension. Only what a request itself declares counts.
"""

from typing import Any
from uuid import UUID

from django.http import HttpResponse

from apps.api import approval_listing, approvals, executor, idempotency, outcomes, problems, registry
from apps.api.call import Answer, Call, Outcome, Refusal
from apps.api.mcp import replies
from apps.api.mcp.protocol import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY, Message
from apps.api.models import Approval
from apps.api.steps import lookup

State = Approval.State

EXTENSION = "io.modelcontextprotocol/tasks"
_CAPABILITIES: dict[str, Any] = {"extensions": {EXTENSION: {}}}

# How often to look: people take their time, a run does not.
_PENDING_POLL_MS, _POLL_MS = 15_000, 2_000
_GET, _CANCEL = "system.get_approval", "system.cancel_approval"

_ENDED = {
    State.DONE: "Done.",
    State.REJECTED: "A person rejected it.",
    State.EXPIRED: "Nobody decided in time.",
    State.CANCELLED: "Taken back before it ran.",
    State.FAILED: "It failed.",
}


def capabilities(call: Call) -> dict[str, Any]:
    """What this server declares: keys alone have approvals."""
    return _CAPABILITIES if call.audience == "admin" else {}


def is_possible(call: Call, message: Message) -> bool:
    """Whether the client declared tasks for this very request, and could ask what becomes of one."""
    tool = registry.current().find(call.audience, _GET)
    return _is_declared(message) and tool is not None and lookup.may_call(call, tool)


def created(approval: Approval) -> dict[str, Any]:
    """The task that the answer names: new, or one that waits already."""
    return _task(approval, approval_listing.describe(approval))


def get(call: Call, message: Message) -> HttpResponse:
    """`tasks/get`: how far it is, and the tool's result once it ended."""
    outcome = _ask(call, message, _GET)
    approval = None if isinstance(outcome, Refusal) else _row(call, outcome)
    if approval is None:
        return _refused(message, outcome)
    shown = approval_listing.describe(approval)
    task = _task(approval, shown)
    return replies.result(message, task, outcome.headers, **_ending(call, message, approval, task["status"], shown))


def update(call: Call, message: Message) -> HttpResponse:
    """`tasks/update`: no task of this server ever asks its client, so what is answered is answered to nobody."""
    _must_be_declared(call, message)
    if not isinstance(message.params.get("inputResponses"), dict):
        raise message.fault(INVALID_PARAMS, "inputResponses must be an object.")
    outcome = _ask(call, message, _GET)
    return _refused(message, outcome) if isinstance(outcome, Refusal) else _acknowledged(message, outcome)


def cancel(call: Call, message: Message) -> HttpResponse:
    """`tasks/cancel`: taken back if nobody started it. What runs or ended is left as it is, and the wish acknowledged."""
    outcome = _ask(call, message, _CANCEL)
    if isinstance(outcome, Refusal) and outcome.problem.context.get("reason") != "not_pending":
        return _refused(message, outcome)
    return _acknowledged(message, outcome)


def _is_declared(message: Message) -> bool:
    extensions = message.capabilities.get("extensions")
    return isinstance(extensions, dict) and isinstance(extensions.get(EXTENSION), dict)


def _must_be_declared(call: Call, message: Message) -> None:
    if call.audience != "admin":
        raise message.fault(METHOD_NOT_FOUND, "Visitors have no tasks.")
    if not _is_declared(message):
        needed = {"requiredCapabilities": _CAPABILITIES}
        raise message.fault(MISSING_CAPABILITY, "Missing required client capability", needed)


def _ask(call: Call, message: Message, tool: str) -> Outcome:
    """The tool about the approval that the request names. Raises Fault where there are no tasks at all."""
    _must_be_declared(call, message)
    given = {"approval_id": _uuid(message.params.get("taskId"))}
    return executor.execute(call, call.audience, tool, given, idempotency_header=False)


def _uuid(id: object) -> str:
    """What is no id of a task is nobody's approval."""
    try:
        found = str(UUID(id)) if isinstance(id, str) else ""
    except ValueError:
        found = ""
    return found if found and found == id else str(UUID(int=0))


def _row(call: Call, outcome: Answer) -> Approval | None:
    assert call.actor is not None and call.actor.key is not None  # noqa: PT018, S101 - the tool answered its key
    return approvals.of_family(call.actor.key.family, UUID(str(outcome.result["approval_id"])))


def _refused(message: Message, outcome: Outcome) -> HttpResponse:
    """Somebody else's task, nobody's and what is none are one answer. It is paid."""
    if isinstance(outcome, Refusal) and outcome.problem.code != "not_found":
        return replies.refused(message.id, outcome)
    return replies.fault(message.fault(INVALID_PARAMS, "There is no such task."), outcome.headers)


def _acknowledged(message: Message, outcome: Outcome) -> HttpResponse:
    return replies.result(message, {}, outcome.headers)


def _task(approval: Approval, shown: dict[str, Any]) -> dict[str, Any]:
    """`shown` is what `system.get_approval` answers, with the true state of the moment."""
    times = (approval.created_at, approval.approved_at, approval.started_at, approval.ended_at)
    status = _status(approval, State(shown["status"]))
    return {
        "taskId": str(approval.pk),
        "status": status,
        "statusMessage": _words(approval, shown, is_over=status != "working"),
        "createdAt": approval.created_at,
        "lastUpdatedAt": max(time for time in times if time is not None),
        "ttlMs": None,  # what became of it is kept
        "pollIntervalMs": _PENDING_POLL_MS if shown["status"] == State.PENDING else _POLL_MS,
    }


def _status(approval: Approval, state: Approval.State) -> str:
    """A refusal is a result of the tool as well. `failed` is a run that left none, `cancelled` what the client itself took back.

    A run without a sign of life may still end well until a sweep gave it up, and a task that ended could not take that back.
    """
    if state in Approval.LIVE or approval.state == State.RUNNING:
        return "working"
    if state == State.CANCELLED:
        return "cancelled"
    return "failed" if state == State.FAILED and approval.body is None else "completed"


def _words(approval: Approval, shown: dict[str, Any], *, is_over: bool) -> str:
    """For whoever watches, a person or a model."""
    state = State(shown["status"])
    if is_over:
        return " ".join(filter(None, (_ENDED[state], shown["reason"])))
    if state == State.PENDING:
        votes = f"{approval.approvals} of {approval.approvals_needed}"
        return f"A person has to approve it ({votes}): {problems.page_url(f'/approvals/{approval.pk}/')}"
    if state == State.APPROVED:
        return "Approved. A worker starts it."
    share = shown["progress"]
    return "Running." if share is None else f"Running, {share:.0%} done."


def _ending(call: Call, message: Message, approval: Approval, status: str, shown: dict[str, Any]) -> dict[str, bytes]:
    """The member that holds how the task ended: what the call would have been answered, byte for byte."""
    if status not in ("completed", "failed"):
        return {}
    if approval.body is not None:
        return {"result": replies.of_tool(message, idempotency.stored(approval.status, approval.body))}
    tool = registry.current().find(call.audience, approval.tool)
    external = tool is not None and tool.is_external
    problem = idempotency.of_ended(State(shown["status"]), shown["code"] or "", external=external)
    refusal = outcomes.refusal(call, problem)
    return {"error": replies.error(refusal)} if status == "failed" else {"result": replies.of_tool(message, refusal)}
