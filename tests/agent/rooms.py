"""A module for meeting rooms, which nothing of the program was written for; its bookings live in a list that tests count."""

from typing import Annotated, Any, Literal

from django.db import transaction
from pydantic import BaseModel, Field

from apps.api import Context, Module, ToolError, fingerprint, preview, row
from tests.api.probe import CHANGE, VIEW

READ, WRITE = "rooms:read", "rooms:write"

ROOMS: dict[str, dict[str, Any]] = {
    "R101": {"room": "R101", "floor": "ground", "seats": 4, "has_screen": True, "rate": 20},
    "R102": {"room": "R102", "floor": "ground", "seats": 12, "has_screen": False, "rate": 35},
    "R201": {"room": "R201", "floor": "first", "seats": 8, "has_screen": True, "rate": 30},
}
# The changes of rates that were made, one by one.
made: list[tuple[str, float]] = []

Room = Annotated[str, Field(pattern=r"^R[0-9]{3}$", description="The room's number.", examples=["R101"])]


class Rate(BaseModel):
    room: Room
    rate: Annotated[float, Field(ge=0, description="What an hour costs.")]


def make_rooms() -> Module:
    """`rooms.list_rooms` and `rooms.get_room` read, `rooms.set_rates` writes."""
    module = Module(key="rooms", name="Meeting rooms", problems={"no_such_room": (404, "No such room")})

    @module.tool("rooms.list_rooms", scope=READ, permission=VIEW, annotations={"read_only": True})
    def list_rooms(
        ctx: Context,
        *,
        floor: Literal["ground", "first"] | None = None,
        has_screen: bool | None = None,
        min_seats: Annotated[int, Field(ge=0)] = 0,
    ) -> dict[str, Any]:
        """Meeting rooms by their floor, their screen and their seats."""
        found = [
            one
            for one in ROOMS.values()
            if floor in (None, one["floor"]) and has_screen in (None, one["has_screen"]) and one["seats"] >= min_seats
        ]
        return {"rooms": found}

    @module.tool("rooms.get_room", scope=READ, permission=VIEW, annotations={"read_only": True})
    def get_room(ctx: Context, *, room: Room) -> dict[str, Any]:
        """One meeting room with its rate."""
        return _known(room)

    @module.tool("rooms.set_rates", scope=WRITE, permission=CHANGE, danger="always")
    def set_rates(ctx: Context, *, rates: Annotated[list[Rate], Field(min_length=1, max_length=50)]) -> dict[str, Any]:
        """Set the rates of meeting rooms."""
        wanted = [(one.room, one.rate) for one in rates]
        transaction.on_commit(lambda: made.extend(wanted))
        return {"changed": len(wanted)}

    @set_rates.preview
    def preview_rates(ctx: Context, *, rates: list[Rate]) -> Any:
        lines = [row(one.room, "rate", before=_known(one.room)["rate"], after=one.rate) for one in rates]
        return preview("Set the rates.", lines), fingerprint([one.room for one in rates], ROOMS)

    return module


def _known(room: str) -> dict[str, Any]:
    if room not in ROOMS:
        raise ToolError("no_such_room", "There is no such room.")
    return ROOMS[room]
