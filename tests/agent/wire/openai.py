"""OpenAI's chat completions, streamed, as strict as the maker is and a little stricter."""

import json
import re
from typing import Any

from tests.agent.wire.script import Call, Finish, Refuse, Request, Say, Step, Together
from tests.agent.wire.server import Invalid, Wire

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FIELDS = {
    "model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls",
    "max_completion_tokens", "max_tokens", "temperature",
}  # fmt: skip
MESSAGE_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}


class OpenAI(Wire):
    """`POST /v1/chat/completions`."""

    PATH = "/v1/chat/completions"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def check(self, request: Request) -> None:
        if request.headers.get("authorization") != f"Bearer {self.key}":
            raise _invalid("Incorrect API key provided.", status=401, code="invalid_api_key")
        if request.path != self.PATH:
            raise _invalid(f"Invalid URL (POST {request.path})", status=404)
        body = request.body
        if unknown := set(body) - FIELDS:
            raise _invalid(f"Unrecognized request arguments supplied: {sorted(unknown)}")
        if body.get("stream") is not True or body.get("stream_options") != {"include_usage": True}:
            raise _invalid("This server only streams, with usage.")
        for tool in body.get("tools", []):
            _check_tool(tool)
        if "tools" in body and not body["tools"]:
            raise _invalid("[] is too short - 'tools'")
        _check_messages(body.get("messages"))

    def stream(self, step: Step, state: dict[str, Any]) -> bytes:
        match step:
            case Say():
                return _event({"content": step.text})
            case Call():
                return b"".join(_call_events(step, state))
            case Together():
                return _together(step, state)
            case Refuse():
                return _data(step.body)
            case Finish():
                return _end(step, state)
            case _:
                raise TypeError(step)


def _check_tool(tool: Any) -> None:
    function = tool.get("function", {})
    if set(tool) != {"type", "function"} or tool["type"] != "function":
        raise _invalid("Invalid tool.")
    if set(function) - {"name", "description", "parameters", "strict"}:
        raise _invalid("Unknown parameter of a function.")
    _check_name(function.get("name"))
    if function.get("parameters", {}).get("type") != "object":
        raise _invalid("Invalid schema for a function: its type must be object.")


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise _invalid(f"Invalid name {name!r}: string does not match pattern '^[a-zA-Z0-9_-]{{1,64}}$'.")


def _check_messages(messages: Any) -> None:
    if not messages:
        raise _invalid("[] is too short - 'messages'")
    waiting: list[str] = []
    for message in messages:
        role = message.get("role")
        if role not in MESSAGE_FIELDS or set(message) - MESSAGE_FIELDS[role]:
            raise _invalid(f"Invalid message: {sorted(message)} of {role!r}.")
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                raise _invalid("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
            waiting.remove(message["tool_call_id"])
        elif waiting:
            raise _invalid(f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting}")
        if role == "assistant":
            waiting = _calls(message)
        elif not isinstance(message["content"], str):
            raise _invalid(f"Invalid content of {role}.")
    if waiting:
        raise _invalid(f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting}")


def _calls(message: Any) -> list[str]:
    calls = message.get("tool_calls")
    if calls is None:
        if not message.get("content"):
            raise _invalid("Invalid value for 'content': expected a string, got null.")
        return []
    for call in calls:
        if set(call) != {"id", "type", "function"} or set(call["function"]) != {"name", "arguments"}:
            raise _invalid("Invalid tool call.")
        _check_name(call["function"]["name"])
        if not isinstance(json.loads(call["function"]["arguments"]), dict):
            raise _invalid("Arguments must be an object.")
    ids = [call["id"] for call in calls]
    if not ids or len(set(ids)) < len(ids):
        raise _invalid("Tool calls need ids of their own.")
    return ids


def _call_events(call: Call, state: dict[str, Any]) -> list[bytes]:
    index = state["calls"] = state.get("calls", -1) + 1
    head = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
    rest = [{"index": index, "function": {"arguments": fragment}} for fragment in call.fragments]
    return [_event({"tool_calls": [part]}) for part in (head, *rest)]


def _together(step: Together, state: dict[str, Any]) -> bytes:
    """The heads, then fragment by fragment of each in turn."""
    columns = [_call_events(call, state) for call in step.calls]
    longest = max(map(len, columns))
    return b"".join(column[row] for row in range(longest) for column in columns if row < len(column))


def _end(step: Finish, state: dict[str, Any]) -> bytes:
    reason = step.reason or ("tool_calls" if "calls" in state else "stop")
    usage = {
        "prompt_tokens": step.input_tokens,
        "completion_tokens": step.output_tokens,
        "total_tokens": step.input_tokens + step.output_tokens,
        "prompt_tokens_details": {"cached_tokens": step.cache_read},
    }
    last = _data({**_CHUNK, "choices": [], "usage": usage}) if step.has_usage else b""
    return _event({}, reason) + last + b"data: [DONE]\n\n"


_CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "wire-1"}


def _event(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return _data({**_CHUNK, "choices": [choice], "usage": None})


def _data(value: Any) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _invalid(message: str, *, status: int = 400, code: str | None = None) -> Invalid:
    return Invalid(status, error(message, code=code))


def error(message: str, *, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    """An error as the maker words it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
