"""`tools/call` (MC-3, MC-4): the call through the executor, and the question for the second word where the client can ask its person."""

from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpResponse

from apps.api import executor, registry
from apps.api.call import Answer, Call, Outcome
from apps.api.mcp import elicitation, providing, replies, tasks
from apps.api.mcp.protocol import INVALID_PARAMS, Message


def answer(call: Call, message: Message) -> HttpResponse:
    """The result of the tool, its refusal, or a question. Raises Fault for odd parameters and for a state that is not ours."""
    name, arguments = message.params.get("name"), message.params.get("arguments")
    if not isinstance(name, str):
        raise message.fault(INVALID_PARAMS, "name must be a string.")
    if not isinstance(arguments, dict | None):
        raise message.fault(INVALID_PARAMS, "arguments must be an object.")
    given = arguments or {}
    if tool := providing.find(call, name):
        return providing.call_tool(call, message, tool, given)
    held = elicitation.uuid_of(call, message, name, given) if message.is_modern else None
    if held is None:
        return _sent(call, message, _run(call, name, given))
    if "confirm_token" in given:
        raise message.fault(INVALID_PARAMS, "A call has a requestState or a confirm_token, not both.")
    return _replied(call, message, held, name=name, given=given)


def _replied(call: Call, message: Message, held: UUID, *, name: str, given: dict[str, Any]) -> HttpResponse:
    """The client comes back with what its person said."""
    said = elicitation.reply(message)
    if said == "yes":
        call.asked_uuid, call.elicited = held, True
        return _sent(call, message, _run(call, name, given))
    fresh = _fresh(call)
    outcome = executor.elicited(
        call, call.audience, held, name, given, rejects=said == "no", resolve_name=_resolver(call)
    )
    if said == "again" and isinstance(outcome, Answer):
        return _asked_again(fresh, message, name=name, given=given)
    return replies.tool_result(message, outcome)


def _asked_again(call: Call, message: Message, *, name: str, given: dict[str, Any]) -> HttpResponse:
    """The same question about the same held call. Only a preview is made for it: without a yes nothing may run, dangerous or not."""
    shown = _run(call, name, {**given, "dry_run": True})
    if not isinstance(shown, Answer):
        return replies.tool_result(message, shown)
    question = elicitation.question(
        str(call.found_tool.title), shown.result["preview"], str(message.params["requestState"])
    )
    return replies.asking(message, question, shown.headers)


def _run(call: Call, name: str, given: dict[str, Any]) -> Outcome:
    return executor.execute(call, call.audience, name, given, resolve_name=_resolver(call), idempotency_header=False)


def _sent(call: Call, message: Message, outcome: Outcome) -> HttpResponse:
    if isinstance(outcome, Answer) and call.queued is not None and tasks.is_possible(call, message):
        return replies.task(message, tasks.created(call.queued), outcome)
    is_prompt = isinstance(outcome, Answer) and outcome.outcome == "confirmation_required"
    if not (is_prompt and isinstance(outcome, Answer) and elicitation.is_possible(message)):
        return replies.tool_result(message, outcome)
    # The code of the prompt is told to nobody: the state takes its place.
    state = elicitation.state_of(call, outcome)
    question = elicitation.question(str(call.found_tool.title), outcome.result["preview"], state)
    return replies.asking(message, question, outcome.headers)


def _resolver(call: Call) -> Any:
    return partial(registry.current().canonical, call.audience)


def _fresh(call: Call) -> Call:
    """A second call of the same caller, who has entered already and whose message is read."""
    return Call(
        entrance=call.entrance,
        audience=call.audience,
        facts=call.facts,
        switches=call.switches,
        actor=call.actor,
        read_strictly=True,
    )
