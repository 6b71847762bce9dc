"""A message of MCP, whichever revision it speaks (MC-1), and the faults that JSON-RPC answers itself.

The handshake revisions say their version in `initialize` and a header. From 2026-07-28 on each request says it in its own `_meta`, and
headers repeat what intermediaries route by: body and headers must say the same. Nothing of a client is kept between requests.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
MODERN = ("2026-07-28",)
SUPPORTED = (*reversed(MODERN), *reversed(HANDSHAKE))

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

# Of the revisions from 2026-07-28 on. Before, an answer to a well-formed request is HTTP 200: 404 would mean a lost session.
_STATUS = {METHOD_NOT_FOUND: 404, INVALID_PARAMS: 400, MISSING_CAPABILITY: 400}
_ALWAYS_400 = (PARSE_ERROR, INVALID_REQUEST, HEADER_MISMATCH, UNSUPPORTED_VERSION)

_VERSION_HEADER = "HTTP_MCP_PROTOCOL_VERSION"
# Which member of the parameters the header Mcp-Name repeats.
_NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
_ENCODED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)

Id = str | int | None


class Fault(Exception):
    """A message that the protocol itself refuses. `status` is HTTP's; the id is the message's, where it has one."""

    def __init__(self, code: int, message: str, *, id: Id = None, data: Any = None, modern: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.id, self.data = code, message, id, data
        self.status = 400 if code in _ALWAYS_400 else _STATUS.get(code, 200) if modern else 200


@dataclass(frozen=True, kw_only=True)
class Message:
    """A request or, without an id, a notification. `capabilities` are the client's; the handshake eras don't repeat them."""

    id: Id
    method: str
    params: Mapping[str, Any]
    meta: Mapping[str, Any] = field(default_factory=dict)
    is_notification: bool = False
    is_modern: bool = False

    @property
    def capabilities(self) -> Mapping[str, Any]:
        found = self.meta.get(CAPABILITIES_KEY) if self.is_modern else None
        return found if isinstance(found, Mapping) else {}

    def fault(self, code: int, message: str, data: Any = None) -> Fault:
        """A fault of this message, in its era's form."""
        return Fault(code, message, id=self.id, data=data, modern=self.is_modern)


def read(value: Any, headers: Mapping[str, str]) -> Message:
    """The message that the JSON value is. `headers` are named as WSGI has them. Raises Fault."""
    message = of_its_era(value, headers)
    if not message.is_modern:
        sent = headers.get(_VERSION_HEADER)
        if sent is not None and sent not in SUPPORTED:
            raise message.fault(UNSUPPORTED_VERSION, "Unsupported protocol version", unsupported(sent))
        return message
    _must_be_whole(message)
    _must_match(message, headers)
    if (says := message.meta[VERSION_KEY]) not in MODERN:
        raise message.fault(UNSUPPORTED_VERSION, "Unsupported protocol version", unsupported(says))
    return message


def of_its_era(value: Any, headers: Mapping[str, str]) -> Message:
    """The message, its headers not yet held against it: enough to refuse it in the form that it understands. Raises Fault."""
    message = envelope(value)
    is_modern = not message.is_notification and _is_modern(message, headers.get(_VERSION_HEADER))
    return replace(message, is_modern=is_modern)


def unsupported(requested: object) -> dict[str, Any]:
    """What the error says, so that the client can choose another one."""
    return {"supported": list(SUPPORTED), "requested": requested}


def envelope(value: Any) -> Message:
    """The JSON-RPC message, not yet of an era. Raises Fault for a batch and for what is none."""
    if isinstance(value, list):
        raise Fault(INVALID_REQUEST, "A batch is not supported: send one message for each request.")
    if not isinstance(value, dict):
        raise Fault(INVALID_REQUEST, "A message must be an object.")
    own = value.get("id")
    if "id" in value and not _is_id(own):
        raise Fault(INVALID_REQUEST, "The id must be a string or an integer.")
    if value.get("jsonrpc") != "2.0":
        raise Fault(INVALID_REQUEST, 'The member jsonrpc must be "2.0".', id=own)
    method = value.get("method")
    if not isinstance(method, str):
        raise Fault(
            INVALID_REQUEST, "A message names its method: this server asks nothing that could be answered.", id=own
        )
    params = {} if value.get("params") is None else value["params"]
    if not isinstance(params, dict):
        raise Fault(INVALID_REQUEST, "The parameters must be an object.", id=own)
    meta = params.get("_meta")
    return Message(
        id=own,
        method=method,
        params=params,
        meta=meta if isinstance(meta, dict) else {},
        is_notification="id" not in value,
    )


def _is_id(id: object) -> bool:
    return isinstance(id, str | int) and not isinstance(id, bool)


def _is_modern(message: Message, sent: str | None) -> bool:
    """By the header, or by a `_meta` that says its version; a handshake is what it says it is."""
    if sent in MODERN:
        return True
    says = message.meta.get(VERSION_KEY)
    is_said = VERSION_KEY in message.meta and (sent not in HANDSHAKE or says in MODERN)
    return is_said and message.method != "initialize"


def _must_be_whole(message: Message) -> None:
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in message.meta]
    if missing:
        raise message.fault(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.")
    if not isinstance(message.meta[VERSION_KEY], str) or not isinstance(message.meta[CAPABILITIES_KEY], dict):
        raise message.fault(INVALID_PARAMS, "The version in params._meta must be a string, the capabilities an object.")


def _must_match(message: Message, headers: Mapping[str, str]) -> None:
    if headers.get(_VERSION_HEADER) != message.meta[VERSION_KEY]:
        raise message.fault(HEADER_MISMATCH, "The header MCP-Protocol-Version and params._meta differ.")
    if headers.get("HTTP_MCP_METHOD") != message.method:
        raise message.fault(HEADER_MISMATCH, "The header Mcp-Method and the body's method differ.")
    member = _NAMED_BY.get(message.method)
    name = message.params.get(member) if member else None
    if name is not None and _decoded(headers.get("HTTP_MCP_NAME")) != name:
        raise message.fault(HEADER_MISMATCH, f"The header Mcp-Name and the body's {member} differ.")


def _decoded(sent: str | None) -> str | None:
    """A header's value: plain, or in Base64 where HTTP could not carry it. None: malformed, so equal to nothing."""
    found = _ENCODED.fullmatch(sent) if sent is not None else None
    if found is None:
        return sent
    try:
        data = base64.b64decode(found.group(1), validate=True)
        return data.decode() if base64.b64encode(data).decode() == found.group(1) else None
    except (binascii.Error, UnicodeError):
        return None
