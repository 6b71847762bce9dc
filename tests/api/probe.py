"""A module for the tests of the gate: one tool for each way a handler can behave. `make_probe()` gives a fresh one."""

from typing import Any

from django.db import connection, transaction

from apps.api import Context, Module, ToolError, fingerprint, preview, row
from apps.api.models import Setting

READ, WRITE = "probe:read", "probe:write"
VIEW, CHANGE = "api.view_setting", "api.change_setting"
READS: Any = {"read_only": True}


def make_probe(key: str = "probe") -> Module:
    """Tools `<key>.…`: reads on probe:read (api.view_setting), writes on probe:write (api.change_setting)."""
    module = Module(key=key, name="Probe", problems={"probe_refused": (409, "Probe refused")})

    @module.tool(f"{key}.echo", scope=READ, permission=VIEW, annotations=READS)
    def echo(ctx: Context, *, text: str = "", number: int | None = None) -> dict[str, Any]:
        """Answers what it got."""
        return {"text": text, "number": number, "request_id": ctx.request_id, "language": ctx.language}

    @module.tool(
        f"{key}.search", scope=READ, permission=VIEW, annotations=READS, cost=lambda given: len(given["terms"])
    )
    def search(ctx: Context, *, terms: list[str]) -> dict[str, Any]:
        """A read with a price of its own: one unit a term."""
        return {"found": len(terms)}

    @module.tool(f"{key}.store", scope=WRITE, permission=CHANGE, max_items=500)
    def store(ctx: Context, *, name: str, value: int = 1, rows: list[int] | None = None) -> dict[str, Any]:
        """Writes one row; refuses the name "refused" after writing, raises for "broken"."""
        Setting.objects.create(name=name, value=value)
        ctx.log(f"{key}.row_stored", "setting", name, {"value": value})
        if name == "refused":
            raise ToolError("probe_refused", "That name is refused.", name=name)
        if name == "broken":
            raise RuntimeError("a secret detail")
        return {"name": name, "value": value}

    @store.preview
    def preview_store(ctx: Context, *, name: str, value: int = 1, rows: list[int] | None = None) -> Any:
        if name == "refused":
            raise ToolError("probe_refused", "That name is refused.", name=name)
        values = dict(Setting.objects.filter(name=name).values_list("name", "value"))
        shown = preview(f"Store {name}.", [row(name, "value", before=values.get(name), after=value)])
        return shown, fingerprint([name], values)

    @module.tool(f"{key}.act", scope=WRITE, permission=CHANGE, danger="always")
    def act(ctx: Context) -> dict[str, Any]:
        """Always dangerous."""
        return {"acted": True}

    @act.preview
    def preview_act(ctx: Context) -> Any:
        return preview("Act."), "fixed"

    @module.tool(f"{key}.weigh", scope=WRITE, permission=CHANGE, danger=lambda ctx, *, weight: weight > 10)
    def weigh(ctx: Context, *, weight: int) -> dict[str, Any]:
        """Dangerous above 10."""
        return {"weight": weight}

    @weigh.preview
    def preview_weigh(ctx: Context, *, weight: int) -> Any:
        return preview("Weigh."), "fixed"

    @module.tool(f"{key}.look", audience="public", annotations=READS, client_token="visitor")
    def look(ctx: Context, *, text: str = "", visitor: str | None = None) -> dict[str, Any]:
        """A public read."""
        return {"text": text, "scope": ctx.scope}

    return module


def write_in(kind: str) -> None:
    """Try to write in one of the ways that a careless handler might: orm, bulk, raw or hook."""
    match kind:
        case "orm":
            Setting.objects.create(name="smuggled", value=1)
        case "bulk":
            Setting.objects.bulk_create([Setting(name="smuggled", value=1)])
        case "raw":
            with connection.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO api_setting (name, value, updated_at) VALUES ('smuggled', '1', '2026-01-01')"
                )
        case "hook":
            transaction.on_commit(lambda: Setting.objects.create(name="smuggled", value=1))
