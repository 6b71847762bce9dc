"""Which problems an operation can end in, by status, each response a component with its codes and an example of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.api import problems
from apps.api.openapi import headers, samples
from apps.api.pages.problems import MEANINGS
from apps.api.problems import CORE, Kind, Problem
from apps.api.tool import Tool

# Of core's codes: those of a live session alone never come here, and nothing here is negotiated.
_AT_THE_DOOR = (
    "bad_request",
    "credential_in_url",
    "api_disabled",
    "method_not_allowed",
    "rate_limited",
    "internal_error",
)
_AWAY = ("maintenance", "unavailable")
_OF_A_CALL = (
    "invalid_json",
    "credential_in_body",
    "forbidden",
    "not_found",
    "module_disabled",
    "conflict",
    "body_too_large",
    "unsupported_media_type",
    "validation_failed",
    "too_many_items",
)
# The REST face of an approval reads no body: its path is all the input there is, but a key may stand in the header Idempotency-Key.
_OF_A_PATH = ("credential_in_body", "not_found", "conflict")
_OF_A_WRITE = (
    "idempotency_in_progress",
    "idempotency_outcome_unknown",
    "confirm_token_invalid",
    "idempotency_key_reused",
)

_EXAMPLES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "invalid_json": ("The body can't be read: Expecting value at character 8.", {"position": 8}),
    "forbidden": ("The key does not hold the scope of this tool.", {"scope": "catalogue:write"}),
    "confirm_token_invalid": ("This confirmation was used already.", {"reason": "used"}),
    "conflict": ("Another change of the same data was faster. Repeat the call.", {"reason": "busy"}),
    "body_too_large": ("The body may have at most 2000000 bytes.", {"max_bytes": 2_000_000}),
    "validation_failed": (
        "The input does not fit the tool's schema.",
        {"errors": [{"pointer": "/limit", "message": "0 is less than the minimum of 1."}]},
    ),
    "too_many_items": ("At most 500 rows are allowed.", {"max_items": 500}),
    "rate_limited": ("The budget of this minute is spent.", {}),
    "unauthorized": ("A valid API key is required.", {}),
    "idempotency_key_reused": ("This idempotency key was used with other input.", {}),
}


@dataclass(kw_only=True)
class Responses:
    """The response components that one document uses."""

    audience: str
    components: dict[str, Any] = field(default_factory=dict)

    def of_listing(self) -> dict[str, Any]:
        """What a call without a tool can end in."""
        return self._referred(self._door(), suffix="", replayable=False)

    def of_tool(self, tool: Tool) -> dict[str, Any]:
        """What a call of the tool can end in, with the codes that its module declares."""
        is_write = tool.is_write and not tool.is_direct
        kinds = [*self._door(), *(CORE[code] for code in (*_OF_A_CALL, *(_OF_A_WRITE if is_write else ())))]
        found = self._referred(kinds, suffix="write" if is_write else "call", replayable=is_write and tool.replay)
        for status in {kind.status for kind in tool.module.problems.values()}:
            own = [kind for kind in tool.module.problems.values() if kind.status == status]
            both = [*own, *(kind for kind in kinds if kind.status == status)]
            suffix = f"{'write' if is_write else 'call'}.{tool.module.key}"
            found |= self._referred(both, suffix=suffix, replayable=is_write and tool.replay)
        return dict(sorted(found.items()))

    def of_path(self) -> dict[str, Any]:
        """What a call whose only input is its path can end in."""
        return self._referred([*self._door(), *(CORE[code] for code in _OF_A_PATH)], suffix="path", replayable=False)

    def _door(self) -> list[Kind]:
        own = ("unauthorized",) if self.audience == "admin" else ()
        return [CORE[code] for code in (*_AT_THE_DOOR, *own, *_AWAY)]

    def _referred(self, kinds: Iterable[Kind], *, suffix: str, replayable: bool) -> dict[str, Any]:
        by_status: dict[int, list[Kind]] = {}
        for kind in kinds:
            by_status.setdefault(kind.status, []).append(kind)
        return {
            str(status): {"$ref": f"#/components/responses/{self._named(status, found, suffix, replayable=replayable)}"}
            for status, found in sorted(by_status.items())
        }

    def _named(self, status: int, kinds: list[Kind], suffix: str, *, replayable: bool) -> str:
        is_stored = replayable and status < 500 and status not in (401, 405, 413, 415, 429)
        name = ".".join(part for part in ("Problem", str(status), suffix, "once" if is_stored else "") if part)
        if name not in self.components:
            self.components[name] = _response(status, kinds, replayable=is_stored)
        return name


def _response(status: int, kinds: list[Kind], *, replayable: bool) -> dict[str, Any]:
    kinds = sorted(kinds, key=lambda kind: kind.code)
    return {
        "description": "\n".join(f"- `{kind.code}`: {MEANINGS.get(kind.code, f'{kind.title}.')}" for kind in kinds),
        "headers": headers.of(status, replayable=replayable),
        "content": {
            problems.MEDIA_TYPE: {
                "schema": {
                    "allOf": [
                        {"$ref": "#/components/schemas/Problem"},
                        {
                            "type": "object",
                            "properties": {
                                "status": {"const": status},
                                "code": {"enum": [kind.code for kind in kinds]},
                            },
                        },
                    ]
                },
                "examples": {kind.code: {"summary": kind.title, "value": _example(kind)} for kind in kinds},
            }
        },
    }


def _example(kind: Kind) -> dict[str, Any]:
    detail, context = _EXAMPLES.get(kind.code, (f"{kind.title}.", {}))
    return problems.document(Problem(kind.code, detail, kind=kind, **context), samples.REQUEST_ID)
