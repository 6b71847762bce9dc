"""The bytes of JSON-RPC's answers. What the gate encoded once is put in as it is."""

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse

from apps.api import strict_json
from apps.api.call import Answer, Refusal
from apps.api.mcp.protocol import SERVER_KEY, Fault, Id, Message

SERVER = {"name": "tollhouse", "title": "Tollhouse", "version": "0.1.0"}

# The word that REST has as a header (ID-2).
_REPLAYED = {"Idempotent-Replayed": True}


def result(message: Message, value: Mapping[str, Any], headers: Mapping[str, str]) -> HttpResponse:
    """A method's result."""
    modern = {"resultType": "complete", "_meta": {SERVER_KEY: SERVER}} if message.is_modern else {}
    return _sent(message.id, b'"result":' + strict_json.dumps({**value, **modern}), headers)


def tool_result(message: Message, outcome: Answer | Refusal) -> HttpResponse:
    """MC-3: the answer as structure and as text, a refusal as text alone."""
    text = json.dumps(outcome.body.decode(), ensure_ascii=False).encode()
    is_error = isinstance(outcome, Refusal)
    structured = b"" if is_error else b'"structuredContent":' + outcome.body + b","
    meta = {**(_REPLAYED if outcome.replayed else {}), **({SERVER_KEY: SERVER} if message.is_modern else {})}
    more = {**({"resultType": "complete"} if message.is_modern else {}), **({"_meta": meta} if meta else {})}
    rest = strict_json.dumps({"isError": is_error, **more})[1:]
    body = b'"result":{"content":[{"type":"text","text":' + text + b"}]," + structured + rest
    return _sent(message.id, body, outcome.headers)


def asking(message: Message, question: Mapping[str, Any], headers: Mapping[str, str]) -> HttpResponse:
    """A question in place of a result; it says its own type."""
    value = {**question, "_meta": {SERVER_KEY: SERVER}}
    return _sent(message.id, b'"result":' + strict_json.dumps(value), headers)


def refused(id: Id, refusal: Refusal) -> HttpResponse:
    """A refusal of the gate to any other method: its status as a positive code, the problem as data (PR-1)."""
    head = strict_json.dumps({"code": refusal.status, "message": refusal.problem.kind.title})[:-1]
    return _sent(id, b'"error":' + head + b',"data":' + refusal.body + b"}", refusal.headers)


def fault(found: Fault, headers: Mapping[str, str]) -> HttpResponse:
    """A fault of the protocol."""
    data = {} if found.data is None else {"data": found.data}
    error = strict_json.dumps({"code": found.code, "message": found.message, **data})
    return _sent(found.id, b'"error":' + error, headers, status=found.status)


def accepted() -> HttpResponse:
    """A notification was heard."""
    answer = HttpResponse(status=202)
    del answer["Content-Type"]
    return answer


def _sent(id: Id, member: bytes, headers: Mapping[str, str], *, status: int = 200) -> HttpResponse:
    body = b'{"jsonrpc":"2.0","id":' + strict_json.dumps(id) + b"," + member + b"}"
    answer = HttpResponse(body, status=status, content_type="application/json", headers=dict(headers))
    answer["Cache-Control"] = "no-store"
    answer.is_protocol_fault = status >= 400  # type: ignore[attr-defined]  # the edge makes problems of all others
    return answer
