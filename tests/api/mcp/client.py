"""A client that sends MCP's messages as they are, in either era, through Django's test client."""

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

from tests.api.factories import Machine

MODERN = "2026-07-28"
ERAS = ("2025-03-26", "2025-06-18", "2025-11-25", MODERN)

_ids = itertools.count(1)


@dataclass(kw_only=True)
class Client:
    """Speaks one revision for a machine. `capabilities` are what it declares in 2026-07-28."""

    machine: Machine
    version: str = MODERN
    capabilities: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return "/mcp" if self.machine.text else "/mcp/public"

    def post(self, body: Any, *, path: str = "", headers: dict[str, str] | None = None, **extra: Any) -> Any:
        """Any body: a `str` or `bytes` is sent as it is."""
        data = body if isinstance(body, str | bytes) else json.dumps(body)
        return self.machine.client.post(
            path or self.path,
            data,
            **{"content_type": "application/json", "headers": self.machine.headers(headers), **extra},
        )

    def send(self, method: str, params: dict[str, Any] | None = None, *, id: Any = None, **more: Any) -> Any:
        """A request as the revision has it; the HTTP answer."""
        body, headers = self.message(method, params, id=id)
        return self.post(body, **{**more, "headers": {**headers, **more.get("headers", {})}})

    def message(self, method: str, params: dict[str, Any] | None = None, *, id: Any = None) -> tuple[Any, Any]:
        """The body and the headers of a request."""
        params = dict(params or {})
        headers = {"MCP-Protocol-Version": self.version}
        if self.version == MODERN:
            own = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            }
            params["_meta"] = {**own, **params.get("_meta", {})}
            headers["Mcp-Method"] = method
            member = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(method)
            if member in params:
                headers["Mcp-Name"] = str(params[member])
        return {
            "jsonrpc": "2.0",
            "id": id if id is not None else next(_ids),
            "method": method,
            "params": params,
        }, headers

    def result(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """The result of a request that is answered well."""
        answer = self.send(method, params, **more)
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()["result"]
        return found

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        """The result of `tools/call`."""
        given = {} if arguments is None else {"arguments": arguments}
        return self.result("tools/call", {"name": tool, **given, **params})

    def refusal(self, tool: str, arguments: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
        """The problem that a call was refused with."""
        result = self.call(tool, arguments, **params)
        assert result["isError"] is True, result
        assert "structuredContent" not in result
        found: dict[str, Any] = json.loads(result["content"][0]["text"])
        return found


def left(answer: Any) -> int:
    """What the headers say is left of the budget."""
    return int(answer.headers["RateLimit"].partition(";r=")[2].partition(";")[0])
