"""A host's provider for the tests: prompts, resources and tools that behave in each way a provider can. `ASKED` is what it was asked."""

import base64
from collections.abc import Callable
from typing import Any

from apps.api.mcp.provider import Question, Reply, Request, Tool, Unknown
from apps.api.models import Setting
from apps.api.problems import Problem
from tests.api import probe

ASKED: list[Request] = []

_NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def form(message: str, **more: Any) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": _NAME, **more}}


class Hosted:
    """On the scope of the probe's reads."""

    scope = probe.READ
    methods = frozenset({"prompts/list", "prompts/get", "resources/read", "completion/complete"})
    tools = tuple(
        Tool(name=name, title=name, description=f"Does {name}.", input_schema=_NAME if name == "greet" else {})
        for name in ("picture", "greet", "talk", "write", "fail", "refuse", "odd", "huge", "probe_echo", "probe.store")
    )

    def answer(self, request: Request) -> Reply:
        ASKED.append(request)
        name = request.params.get("name", "")
        return _TOOLS[name](request) if request.method == "tools/call" else _METHODS[request.method](request)


def _picture(request: Request) -> Reply:
    data = base64.b64encode(b"a picture").decode()
    return {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}


def _greet(request: Request) -> Reply:
    return {"content": [{"type": "text", "text": f"Hello, {request.params['arguments']['name']}!"}]}


def _talk(request: Request) -> Reply:
    """Asks twice, and remembers the first answer."""
    said = request.answers.get("step", {}).get("content", {}).get("name")
    if said is None:
        return Question(requests={"step": form("Who?")}, state=[])
    heard = [*(request.state or []), said]
    if len(heard) < 2:
        return Question(requests={"step": form("And who else?")}, state=heard)
    return {"content": [{"type": "text", "text": " and ".join(heard)}]}


def _write(request: Request) -> Reply:
    Setting.objects.create(name="written", value=1)
    return {"content": []}


def _fail(request: Request) -> Reply:
    raise RuntimeError("a secret detail")


def _refuse(request: Request) -> Reply:
    raise Problem("unauthorized", "a secret detail")


def _odd(request: Request) -> Any:
    return {"no": "content"}


def _huge(request: Request) -> Reply:
    return {"content": [{"type": "text", "text": "x" * 1024 * 1024}]}


def _prompts(request: Request) -> Reply:
    return {"prompts": [{"name": "summary", "description": "Summarises."}]}


def _prompt(request: Request) -> Reply:
    match request.params.get("name"):
        case "summary":
            return {"messages": [{"role": "user", "content": {"type": "text", "text": "Summarise."}}]}
        case "asking":
            return Question(
                requests={"page": form("Look", mode="url"), "roots": {"method": "roots/list", "params": {}}}
            )
        case "fail":
            return _fail(request)
        case _:
            return Unknown(message="Prompt not found", data={"name": request.params.get("name")})


def _resource(request: Request) -> Reply:
    return {"contents": [{"uri": request.params["uri"], "text": "text"}]}


def _completion(request: Request) -> Reply:
    return Question(requests={"who": form("Who?")})


_TOOLS: dict[str, Callable[[Request], Reply]] = {
    "picture": _picture,
    "greet": _greet,
    "talk": _talk,
    "write": _write,
    "fail": _fail,
    "refuse": _refuse,
    "odd": _odd,
    "huge": _huge,
}
_METHODS: dict[str, Callable[[Request], Reply]] = {
    "prompts/list": _prompts,
    "prompts/get": _prompt,
    "resources/read": _resource,
    "completion/complete": _completion,
}


class Grasping(Hosted):
    """Wants a method that is not its to answer."""

    methods = frozenset({"tools/list"})


class Twice(Hosted):
    tools = (Hosted.tools[0], Hosted.tools[0])


class Misspelled(Hosted):
    tools = (Tool(name="bad", title="Bad", description="Bad.", input_schema={"properties": {"a": {"type": "none"}}}),)


class Unreadable(Hosted):
    tools = (Tool(name="two words", title="Two", description="Two."),)


class Homeless(Hosted):
    """On a scope that nobody can hold, without tools."""

    scope = "nobody:read"
    tools = ()


broken = 3
