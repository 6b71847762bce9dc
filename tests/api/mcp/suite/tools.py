"""The suite's names: three writes, each of which waits for an approver, and one read that answers at once."""

from typing import Any

from apps.api import Context, Module, ToolError, fingerprint, preview
from apps.api.mcp.provider import Reply, Request, Tool

PERMISSION = "api.change_setting"
_GIVEN: dict[str, Any] = {"type": "object", "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}}}

slow = Module(key="slow", name="Slow")
failing = Module(key="failing", name="Failing", problems={"job_failed": (409, "The job failed")})
protocol = Module(key="protocol", name="Protocol")

MODULES = (slow, failing, protocol)
SCOPES = [f"{module.key}:run" for module in MODULES]


@slow.tool("slow.compute", scope="slow:run", permission=PERMISSION, input_schema=_GIVEN)
def compute(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Computes. How long it takes is the approver's."""
    return {"computed": given.get("label", "")}


@failing.tool("failing.job", scope="failing:run", permission=PERMISSION, input_schema=_GIVEN)
def fail(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Is refused when it runs."""
    raise ToolError("job_failed", "The job failed.")


@protocol.tool("protocol.error_job", scope="protocol:run", permission=PERMISSION, input_schema=_GIVEN)
def lose(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Never comes to an end: the test loses its worker."""
    raise AssertionError("it was to be lost")


@compute.preview
@fail.preview
@lose.preview
def shown(given: dict[str, Any], ctx: Context) -> Any:
    """Nothing would change."""
    return preview("Run the job."), fingerprint(["nothing"], {})


class Greeter:
    """`greet`: no module could declare a name without a dot."""

    scope = "slow:run"
    methods = frozenset[str]()
    tools = (
        Tool(
            name="greet",
            title="Greet",
            description="Greets.",
            input_schema={"type": "object", "properties": {"name": {"type": "string"}}},
        ),
    )

    def answer(self, request: Request) -> Reply:
        return {"content": [{"type": "text", "text": f"Hello, {request.params['arguments']['name']}!"}]}
