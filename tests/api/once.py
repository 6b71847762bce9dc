"""A module whose handlers stop at a gate that the test owns, for races and kills. `once_process` calls it."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core import mail
from django.db import transaction

from apps.api import Context, Module, ToolError, fingerprint, preview, row
from apps.api.models import KeyFamily, Setting
from tests.api.probe import CHANGE, WRITE


class Gate:
    """A file lock that the test holds. A process that comes to a closed gate leaves a mark and waits."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "gate"
        self.path.touch()

    @contextmanager
    def closed(self) -> Iterator[None]:
        with self.path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def wait_for(self, point: str, *, seconds: float = 30) -> None:
        """Until somebody stands at the gate."""
        deadline = time.monotonic() + seconds
        while not Path(f"{self.path}.{point}").exists():
            if time.monotonic() > deadline:
                raise AssertionError(f"nobody came to {point}")
            time.sleep(0.01)


def stand_at(gate: str, point: str, wanted: str) -> None:
    """Wait while the gate is closed, if this is the point where the call is to be held."""
    if not gate or point != wanted:
        return
    Path(f"{gate}.{point}").touch()
    with Path(gate).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)


def make_once() -> Module:
    """`once.count` adds one row that no other one stands in the way of; `once.set` changes a value; `once.send` sends a mail."""
    module = Module(key="once", name="Once", problems={"once_refused": (409, "Refused")})

    @module.tool("once.count", scope=WRITE, permission=CHANGE)
    def count(ctx: Context, *, gate: str = "", hold: str = "", fail: str = "") -> dict[str, Any]:
        """Adds one key family: how often the effect happened can be counted."""
        stand_at(gate, "before", hold)
        family = KeyFamily.objects.create()
        ctx.log("once.counted", "family", family.pk)
        transaction.on_commit(lambda: stand_at(gate, "committed", hold))
        stand_at(gate, "after", hold)
        if fail == "refuse":
            raise ToolError("once_refused", "Refused.")
        if fail == "break":
            raise RuntimeError("broken")
        return {"family": family.pk}

    @count.preview
    def preview_count(ctx: Context, *, gate: str = "", hold: str = "", fail: str = "") -> Any:
        stand_at(gate, "preview", hold)
        return preview("Count."), "always the same"

    @module.tool("once.set", scope=WRITE, permission=CHANGE, danger=_is_large)
    def set_value(ctx: Context, *, name: str, value: int, gate: str = "", hold: str = "") -> dict[str, Any]:
        """Changes a stored number; dangerous when it moves by more than 30."""
        stand_at(gate, "before", hold)
        Setting.objects.filter(name=name).update(value=value)
        stand_at(gate, "after", hold)
        return {"value": value}

    @set_value.preview
    def preview_set(ctx: Context, *, name: str, value: int, gate: str = "", hold: str = "") -> Any:
        before = dict(Setting.objects.filter(name=name).values_list("name", "value"))
        stand_at(gate, "preview", hold)
        shown = preview(f"Set {name}.", [row(name, "value", before=before.get(name), after=value)])
        return shown, fingerprint([name], before)

    @module.tool("once.send", scope=WRITE, permission=CHANGE, reach="external", danger="always")
    def send(ctx: Context, *, gate: str = "", hold: str = "", fail: str = "") -> dict[str, Any]:
        """Sends a mail."""
        stand_at(gate, "before", hold)
        mail.send_mail("Subject", "Text", None, ["supplier@example.org"])
        stand_at(gate, "after", hold)
        if fail == "refuse":
            raise ToolError("once_refused", "Refused.")
        if fail == "break":
            raise RuntimeError("broken")
        return {"sent": True}

    @send.preview
    def preview_send(ctx: Context, *, gate: str = "", hold: str = "", fail: str = "") -> Any:
        return preview("Send."), "always the same"

    return module


def _is_large(ctx: Context, *, name: str, value: int, gate: str = "", hold: str = "") -> bool:
    before = Setting.objects.get(name=name).value
    stand_at(gate, "danger", hold)
    return bool(abs(value - before) > 30)
