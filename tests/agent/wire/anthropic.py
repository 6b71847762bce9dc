"""Anthropic's messages, streamed, as strict as the maker is and a little stricter."""

import json
import re
from typing import Any

from tests.agent.wire.script import Call, Finish, Refuse, Request, Say, Step, Together
from tests.agent.wire.server import Invalid, Wire

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
VERSION = re.compile(r"20\d\d-\d\d-\d\d")
FIELDS = {"model", "messages", "system", "max_tokens", "stream", "tools", "tool_choice", "temperature", "cache_control"}


class Anthropic(Wire):
    """`POST /v1/messages`."""

    PATH = "/v1/messages"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def check(self, request: Request) -> None:
        if request.headers.get("x-api-key") != self.key:
            raise _invalid("invalid x-api-key", status=401, kind="authentication_error")
        if not VERSION.fullmatch(request.headers.get("anthropic-version", "")):
            raise _invalid("anthropic-version: header is required")
        if request.path.partition("?")[0] != self.PATH:
            raise _invalid("Not found", status=404, kind="not_found_error")
        body = request.body
        if unknown := set(body) - FIELDS:
            raise _invalid(f"{sorted(unknown)[0]}: Extra inputs are not permitted")
        if body.get("stream") is not True or not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
            raise _invalid("max_tokens: Field required")
        for tool in body.get("tools", []):
            _check_tool(tool)
        _check_messages(body.get("messages"))

    def stream(self, step: Step, state: dict[str, Any]) -> bytes:
        head = b"" if "open" in state else _start(state)
        match step:
            case Say():
                return head + _text(step, state)
            case Call():
                return head + _call(step, state)
            case Together():
                return head + b"".join(_call(call, state) for call in step.calls)
            case Refuse():
                return head + _event("error", step.body)
            case Finish():
                return _end(step, state, head)
            case _:
                raise TypeError(step)


def _check_tool(tool: Any) -> None:
    if set(tool) - {"name", "description", "input_schema", "cache_control", "strict"}:
        raise _invalid("tools.0: Extra inputs are not permitted")
    if not NAME.fullmatch(tool["name"]):
        raise _invalid("tools.0.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'")
    if tool["input_schema"].get("type") != "object":
        raise _invalid("tools.0.input_schema.type: Field required")


def _check_messages(messages: list[Any]) -> None:
    if not messages:
        raise _invalid("messages: at least one message is required")
    wanted = "user"
    waiting: list[str] = []
    for message in messages:
        if set(message) != {"role", "content"} or message["role"] != wanted:
            raise _invalid(f"messages: roles must alternate between user and assistant; wanted {wanted}")
        blocks = _blocks(message["content"])
        if wanted == "user":
            _check_results(blocks, waiting)
            waiting = []
        else:
            waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
            if any(not isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use"):
                raise _invalid("messages: tool_use.input: Input should be a valid dictionary")
        wanted = "assistant" if wanted == "user" else "user"
    if wanted == "user":
        raise _invalid("messages: the last message must be the user's")


def _blocks(content: Any) -> list[Any]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not blocks:
        raise _invalid("messages: content must not be empty")
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            raise _invalid("messages: text content blocks must contain non-whitespace text")
        if block["type"] == "tool_use" and not NAME.fullmatch(block["name"]):
            raise _invalid("messages: tool_use.name: String should match pattern")
    return list(blocks)


def _check_results(blocks: list[Any], waiting: list[str]) -> None:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if sorted(results) != sorted(waiting):
        raise _invalid(f"messages: `tool_use` ids {waiting} and `tool_result` blocks {results} must match")
    if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
        raise _invalid("messages: `tool_result` blocks must come first")


def _start(state: dict[str, Any]) -> bytes:
    """The usage of the input comes with the first event; a script's last step says how much it was, so it is sent again at the end."""
    state["open"] = True
    state["index"] = -1
    usage = {"input_tokens": 1, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "wire-1",
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    return _event("message_start", {"type": "message_start", "message": message}) + _event("ping", {"type": "ping"})


def _text(step: Say, state: dict[str, Any]) -> bytes:
    head = b""
    if state.get("block") != "text":
        head = _stop(state) + _block(state, "text", {"type": "text", "text": ""})
    delta = {"type": "text_delta", "text": step.text}
    return head + _event(
        "content_block_delta", {"type": "content_block_delta", "index": state["index"], "delta": delta}
    )


def _call(step: Call, state: dict[str, Any]) -> bytes:
    state["called"] = True
    head = _stop(state) + _block(state, "tool", {"type": "tool_use", "id": step.id, "name": step.name, "input": {}})
    parts = [
        {
            "type": "content_block_delta",
            "index": state["index"],
            "delta": {"type": "input_json_delta", "partial_json": part},
        }
        for part in step.fragments
    ]
    return head + b"".join(_event("content_block_delta", part) for part in parts)


def _block(state: dict[str, Any], kind: str, block: dict[str, Any]) -> bytes:
    state["block"] = kind
    state["index"] += 1
    return _event(
        "content_block_start", {"type": "content_block_start", "index": state["index"], "content_block": block}
    )


def _stop(state: dict[str, Any]) -> bytes:
    if state.pop("block", None) is None:
        return b""
    return _event("content_block_stop", {"type": "content_block_stop", "index": state["index"]})


def _end(step: Finish, state: dict[str, Any], head: bytes) -> bytes:
    reason = step.reason or ("tool_use" if state.get("called") else "end_turn")
    usage = {
        "input_tokens": step.input_tokens,
        "output_tokens": step.output_tokens,
        "cache_read_input_tokens": step.cache_read,
        "cache_creation_input_tokens": step.cache_write,
    }
    delta = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    return head + _stop(state) + _event("message_delta", delta) + _event("message_stop", {"type": "message_stop"})


def _event(name: str, value: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()


def _invalid(message: str, *, status: int = 400, kind: str = "invalid_request_error") -> Invalid:
    return Invalid(status, error(message, kind=kind))


def error(message: str, *, kind: str = "invalid_request_error") -> dict[str, Any]:
    """An error as the maker words it."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
