"""Calling what a module declared, and holding its answers to MT-3: anything odd is logged and becomes `500 internal_error`."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import structlog
from django.conf import settings
from django.utils.module_loading import import_string

from apps.api import approval_state, lifesigns, problems, signature, strict_json
from apps.api.call import Actor, Answer, Call
from apps.api.lifesigns import Work
from apps.api.problems import Problem
from apps.api.tool import Context, Tool, ToolError

log = structlog.get_logger(__name__)

MAX_RESULT = 1024 * 1024
MAX_PREVIEW = 256 * 1024
MAX_FINGERPRINT = 64


class Odd(Exception):
    """A handler's answer that MT-3 does not allow."""


class Declared(Problem):
    """A refusal that the handler itself raised, with a code that it may use: the caller's answer, not a fault."""


def context(call: Call, *, dry_run: bool = False) -> Context:
    """The context of one run (MT-4)."""
    actor: Actor = call.actor  # type: ignore[assignment]  # every chain authenticates before it runs
    return Context(
        actor=actor,
        scopes=call.scopes,
        scope=actor.scope,
        audience=call.audience,
        entrance=call.entrance,
        currency=call.entrance.currency if call.on_behalf else getattr(settings, "API_CURRENCY", "EUR"),
        dry_run=dry_run,
        via=call.on_behalf.via if call.on_behalf else None,
        approved_by_uuid=call.approvers[-1] if call.approvers else None,
        progress=_unheard if dry_run else _progress(call),
        confirmation_uuid=str(call.confirmation_uuid) if call.confirmation_uuid else None,
        extra=_of_the_host(call),
        levels=tuple(call.levels.values()),
    )


def _progress(call: Call) -> Callable[[Any], None]:
    """Shown while an approved operation runs; an ordinary call's is told to its own client, where the transport listens."""
    if call.approval is not None:
        return partial(_report, approval_state.work_of(call.approval))
    return call.listener or _unheard


def _unheard(reported: Any) -> None:
    return None


def _report(work: Work, reported: Any) -> None:
    """A partial result that has no JSON form, or more bytes than a result may have, raises in the handler that gave it."""
    body = strict_json.dumps(reported)
    if len(body) > MAX_RESULT:
        raise ValueError("a partial result of more than 1 MiB")
    partial_result = json.loads(body)
    if any(isinstance(part, str) and "\x00" in part for part in strict_json.parts(partial_result)):
        raise ValueError("a partial result with a NUL character, which PostgreSQL stores in no JSON")
    lifesigns.report(work, partial_result)


def run(call: Call, tool: Tool, ctx: Context) -> Answer:
    """The handler's answer, encoded. Raises Declared, Odd, or whatever the handler raised."""
    result = _called(tool, tool.handler, call.typed, ctx)
    return answer(_object(result))


def preview(call: Call, tool: Tool, ctx: Context) -> tuple[dict[str, Any], str]:
    """The preview and the fingerprint of the values that it shows."""
    if tool.preview_handler is None:
        raise Odd("a write without a preview")
    found = _called(tool, tool.preview_handler, call.typed, ctx)
    if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[0], dict):
        raise Odd("a preview answers (object, fingerprint)")
    shown, mark = found
    if not isinstance(mark, str) or not 1 <= len(mark.encode()) <= MAX_FINGERPRINT:
        raise Odd("a fingerprint is a text of 1 to 64 bytes")
    if len(strict_json.dumps(shown)) > MAX_PREVIEW:
        raise Odd("a preview of more than 256 KiB")
    return shown, mark


def is_dangerous(call: Call, tool: Tool, ctx: Context) -> bool:
    """What the tool's danger rule says of this call. One that answers neither yes nor no raises Odd: nothing runs."""
    found = _called(tool, tool.danger, call.typed, ctx)
    if not isinstance(found, bool):
        raise Odd("danger answers True or False")
    return found


def answer(result: dict[str, Any], *, outcome: str = "ok", limit: int | None = MAX_RESULT) -> Answer:
    """The result with its bytes, encoded once. Raises Odd when it has no JSON form or more bytes than the limit."""
    try:
        body = strict_json.dumps(result)
    except (TypeError, ValueError, RecursionError) as error:
        raise Odd(f"an answer that can't be encoded: {error}") from error
    if limit is not None and len(body) > limit:
        raise Odd("a result of more than 1 MiB")
    return Answer(result=result, body=body, outcome=outcome)


def _called(tool: Tool, function: Any, typed: Any, ctx: Context) -> Any:
    try:
        return signature.invoke(function, typed, ctx)
    except ToolError as error:
        raise _declared(tool, error) from error


def _declared(tool: Tool, error: ToolError) -> Declared:
    kind = tool.module.problems.get(error.code) or problems.CORE.get(error.code)
    if kind is None or not isinstance(error.message, str):
        raise Odd(f"the code {error.code!r} is declared nowhere, or its message is no text") from error
    declared = Declared(kind.code, error.message, kind=kind)
    # Not as arguments: a context may have members named like them.
    declared.context = error.context
    try:
        strict_json.dumps(declared.context | {"detail": declared.detail})
    except (TypeError, ValueError, RecursionError) as fault:
        raise Odd(f"a refusal that can't be encoded: {fault}") from fault
    return declared


def _object(result: Any) -> dict[str, Any]:
    """The answer: a dict, or `(dict, effects)` with the list put under "effects"."""
    if isinstance(result, dict):
        return result
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], dict) and isinstance(result[1], list):
        return {**result[0], "effects": result[1]}
    raise Odd(f"a handler answers a dict, not {type(result).__name__}")


def _of_the_host(call: Call) -> Mapping[str, Any]:
    if call.extra is None:
        call.extra = _asked(call)
    return call.extra


def _asked(call: Call) -> Mapping[str, Any]:
    name = getattr(settings, "API_REQUEST_CONTEXT", "")
    if not name or call.entrance.http is None:
        return {}
    found: Mapping[str, Any] = _imported(name)(call.entrance.http)
    return found


@lru_cache(maxsize=4)
def _imported(name: str) -> Any:
    return import_string(name)
