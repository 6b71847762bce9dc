"""A module whose tools the assistant calls in tests: a read that can wait, fail or find a lot, and a write whose effects can be counted."""

from typing import Any

from django.db import transaction

from apps.api import Context, Module, ToolError, fingerprint, preview, row
from apps.api.models import KeyFamily, Setting
from tests.api.once import stand_at
from tests.api.probe import CHANGE, READ, WRITE

SECRET_RESULT = "canary-of-a-result"
SECRET_ARGUMENT = "canary-of-an-argument"


def make_desk() -> Module:
    """`desk.find` reads, `desk.put` adds one key family and changes a stored value, `desk.mail` reaches outside."""
    module = Module(key="desk", name="Desk", problems={"desk_closed": (409, "Closed")})

    @module.tool("desk.find", scope=READ, permission=CHANGE, annotations={"read_only": True})
    def find(ctx: Context, *, text: str = "", size: int = 0, gate: str = "", fail: str = "") -> dict[str, Any]:
        """Finds things on the desk."""
        stand_at(gate, "find", "find")
        if fail == "refuse":
            raise ToolError("desk_closed", f"Closed: {SECRET_RESULT}.")
        if fail == "break":
            raise RuntimeError(SECRET_RESULT)
        return {"found": [f"{text} {SECRET_RESULT}"] * 2, "more": "x" * size}

    @module.tool("desk.put", scope=WRITE, permission=CHANGE)
    def put(
        ctx: Context, *, name: str, value: int = 1, gate: str = "", hold: str = "", fail: str = ""
    ) -> dict[str, Any]:
        """Puts a thing on the desk."""
        stand_at(gate, "before", hold)
        family = KeyFamily.objects.create()
        Setting.objects.update_or_create(name=name, defaults={"value": value})
        ctx.log("desk.thing_put", "family", family.pk)
        transaction.on_commit(lambda: stand_at(gate, "committed", hold))
        stand_at(gate, "after", hold)
        if fail == "refuse":
            raise ToolError("desk_closed", f"Closed: {SECRET_RESULT}.")
        if fail == "break":
            raise RuntimeError(SECRET_RESULT)
        return {"name": name, "secret": SECRET_RESULT}

    @put.preview
    def preview_put(ctx: Context, *, name: str, value: int = 1, gate: str = "", hold: str = "", fail: str = "") -> Any:
        stand_at(gate, "preview", hold)
        before = dict(Setting.objects.filter(name=name).values_list("name", "value"))
        shown = preview(f"Put {name}.", [row(name, "value", before=before.get(name), after=value)])
        return shown, fingerprint([name], before)

    @module.tool("desk.mail", scope=WRITE, permission=CHANGE, reach="external")
    def send(ctx: Context, *, fail: str = "") -> dict[str, Any]:
        """Sends a mail."""
        if fail == "break":
            raise RuntimeError(SECRET_RESULT)
        return {"sent": True}

    @send.preview
    def preview_send(ctx: Context, *, fail: str = "") -> Any:
        return preview("Send."), "always the same"

    return module


def puts(before: int = 0) -> int:
    """How many effects of `desk.put` there are."""
    return KeyFamily.objects.count() - before
