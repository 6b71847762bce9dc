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


def result(message: Message, value: Mapping[str, Any], headers: Mapping[str, str], **encoded: bytes) -> HttpResponse:
    """A method's result; `encoded` are members whose bytes are made."""
    modern = {"resultType": "complete", "_meta": {SERVER_KEY: SERVER}} if message.is_modern else {}
    whole = strict_json.dumps({**value, **modern})
    for name, data in encoded.items():
        whole = whole[:-1] + b',"' + name.encode() + b'":' + data + b"}"
    return _sent(message.id, b'"result":' + whole, headers)


def tool_result(message: Message, outcome: Answer | Refusal) -> HttpResponse:
    """The answer to a call of a tool."""
    return _sent(message.id, b'"result":' + of_tool(message, outcome), outcome.headers)


def of_tool(message: Message, outcome: Answer | Refusal) -> bytes:
    """MC-3: the answer as structure and as text, a refusal as text alone."""
    text = json.dumps(outcome.body.decode(), ensure_ascii=False).encode()
    is_error = isinstance(outcome, Refusal)
    structured = b"" if is_error else b'"structuredContent":' + outcome.body + b","
    meta = {**(_REPLAYED if outcome.replayed else {}), **({SERVER_KEY: SERVER} if message.is_modern else {})}
    more = {**({"resultType": "complete"} if message.is_modern else {}), **({"_meta": meta} if meta else {})}
    rest = strict_json.dumps({"isError": is_error, **more})[1:]
    return b'{"content":[{"type":"text","text":' + text + b"}]," + structured + rest


def asking(message: Message, question: Mapping[str, Any], headers: Mapping[str, str]) -> HttpResponse:
    """A question in place of a result; it says its own type."""
    value = {**question, "_meta": {SERVER_KEY: SERVER}}
    return _sent(message.id, b'"result":' + strict_json.dumps(value), headers)


def task(message: Message, created: Mapping[str, Any], outcome: Answer) -> HttpResponse:
    """A handle in place of a result."""
    meta = {**(_REPLAYED if outcome.replayed else {}), SERVER_KEY: SERVER}
    value = {"resultType": "task", **created, "_meta": meta}
    return _sent(message.id, b'"result":' + strict_json.dumps(value), outcome.headers)


def refused(id: Id, refusal: Refusal) -> HttpResponse:
    """A refusal of the gate to any other method than a call."""
    return _sent(id, b'"error":' + error(refusal), refusal.headers)


def error(refusal: Refusal) -> bytes:
    """Its status as a positive code, the problem as data (PR-1)."""
    head = strict_json.dumps({"code": refusal.status, "message": refusal.problem.kind.title})[:-1]
    return head + b',"data":' + refusal.body + b"}"


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
