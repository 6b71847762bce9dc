"""A module whose tool reports how far it is, and stops at a gate that the test owns."""

from typing import Any

from apps.api import Context, Module, ToolError, preview
from apps.api.models import KeyFamily
from tests.api.once import stand_at
from tests.api.probe import CHANGE, WRITE

# What the tool `slow.import` reports, by name.
REPORTS: dict[str, Any] = {
    "no form": object(),
    "not a number": float("nan"),
    "too large": "x" * (1024 * 1024 + 1),
    "a NUL": {"name": "a\x00b"},
}


def make_slow() -> Module:
    """`slow.import` writes, reports 40 %, stops at the gate, and goes on to the end."""
    module = Module(key="slow", name="Slow", problems={"slow_refused": (409, "Refused")})

    @module.tool("slow.import", scope=WRITE, permission=CHANGE)
    def work(ctx: Context, *, gate: str = "", odd: str = "", many: int = 0, end: str = "") -> dict[str, Any]:
        """Writes a row for each step."""
        KeyFamily.objects.create()
        if odd:
            ctx.progress(REPORTS[odd])
        ctx.progress({"done": 2, "total": 5, "names": ["Aé"]})
        stand_at(gate, "40", "40")
        for number in range(many):
            ctx.progress({"done": number, "total": many})
        ctx.progress({"done": 4, "total": 5, "names": ["Aé", "B"]})
        if end == "refuse":
            raise ToolError("slow_refused", "Refused.")
        if end == "break":
            raise RuntimeError("broken")
        return {"imported": 5}

    @work.preview
    def preview_work(ctx: Context, *, gate: str = "", odd: str = "", many: int = 0, end: str = "") -> Any:
        ctx.progress(0.9)
        return preview("Import."), "always the same"

    return module
