"""The HTTP around MCP (MC-1, PR-1): what is answered by a problem, what by JSON-RPC, what by the result of a tool."""

from functools import partial
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from apps.api import doorway, executor, outcomes, strict_json
from apps.api.call import Audience, Call, Refusal
from apps.api.mcp import methods, protocol, replies
from apps.api.mcp.protocol import PARSE_ERROR, Fault
from apps.api.problems import Problem, of_status

log = structlog.get_logger(__name__)

# Answered by HTTP itself, whatever was asked: who calls, and what is no message that could be answered.
_AT_THE_DOOR = ("unauthorized", "rate_limited", "bad_request", "credential_in_url")
_OF_THE_BODY = ("credential_in_body", "body_too_large", "unsupported_media_type")
_UNREADABLE = ("invalid_json", "bad_request")


@csrf_exempt
@login_not_required
def endpoint(request: HttpRequest, audience: Audience) -> HttpResponseBase:
    """One message in, one answer out; nothing is kept for the next one."""
    if request.method != "POST":
        return _problem(request, Problem("method_not_allowed", "Messages are sent by POST.", headers={"Allow": "POST"}))
    if _is_foreign(request):
        return _problem(request, Problem("forbidden", "Pages of other sites do not call this server."))
    call = doorway.call_of(request, audience)
    refusal = executor.enter(call)
    if refusal is None:
        read, is_large = partial(doorway.read_message, request), doorway.is_large(request)
        refusal = executor.receive(call, audience, read, is_large=is_large)
        return _answer(request, call) if refusal is None else _unread(refusal)
    return doorway.response(refusal) if refusal.problem.code in _AT_THE_DOOR else _shut(request, audience, refusal)


@csrf_exempt
@login_not_required
def no_oauth(request: HttpRequest) -> HttpResponse:
    """Keys are made by people, not negotiated: a client that looks for an authorization server is told so in JSON (MC-3)."""
    return _problem(
        request, of_status(404, "There is no authorization server: send an API key as Authorization: Bearer.")
    )


def _answer(request: HttpRequest, call: Call) -> HttpResponseBase:
    value = call.input
    try:
        message = protocol.read(value, request.META)
        return replies.accepted() if message.is_notification else methods.answer(call, message)
    except Fault as fault:
        refusal = executor.pay(call, call.audience)
        return _refused(request, value, refusal) if refusal else replies.fault(fault, outcomes.charged(call))
    except Exception as error:
        # Outside the gate, so perhaps after a committed write.
        log.error("message_failed", tool=call.name, exc_info=error)
        return _refused(request, value, outcomes.refusal(call, of_status(500, outcomes.FAILED)))


def _unread(refusal: Refusal) -> HttpResponse:
    """A body that is no message: nobody knows which request to answer."""
    problem = refusal.problem
    if problem.code in _OF_THE_BODY:
        return doorway.response(refusal)
    if problem.code in _UNREADABLE:
        fault = Fault(PARSE_ERROR, problem.detail, data=_document(refusal))
        return replies.fault(fault, refusal.headers)
    return replies.refused(None, refusal)


def _shut(request: HttpRequest, audience: Audience, refusal: Refusal) -> HttpResponse:
    """Refused before the body's turn came: it is read all the same, for the answer must have the form that its method has.

    But a stranger's large one is not: nobody paid for that.
    """
    if audience == "public" and doorway.is_large(request):
        return replies.refused(None, refusal)
    try:
        value = doorway.read_message(request)
    except Problem:
        value = None
    return _refused(request, value, refusal)


def _refused(request: HttpRequest, value: Any, refusal: Refusal) -> HttpResponse:
    try:
        message = protocol.of_its_era(value, request.META)
    except Fault as fault:
        return replies.refused(fault.id, refusal)
    if message.is_notification:
        return replies.accepted()
    return (
        replies.tool_result(message, refusal)
        if message.method == "tools/call"
        else replies.refused(message.id, refusal)
    )


def _problem(request: HttpRequest, problem: Problem) -> HttpResponse:
    return doorway.problem_response(problem, request)


def _document(refusal: Refusal) -> Any:
    return strict_json.loads(refusal.body)


def _is_foreign(request: HttpRequest) -> bool:
    """Whether a browser sends this for a page of another site. Programs send no Origin."""
    origin = request.META.get("HTTP_ORIGIN")
    if origin is None:
        return False
    try:
        parts = urlsplit(origin)
    except ValueError:
        return True
    own = origin == doorway.base_url(request) or parts.netloc == request.get_host()
    return parts.scheme not in ("http", "https") or not own
