"""What a call costs (RL-1), in units of the caller's budget."""

import copy
from typing import Any

from apps.api.tool import Tool

ROWS_PER_UNIT = 50
MAX_ROWS = 1_000
MAX_PRICE = 1_000


class PriceError(ValueError):
    """A tool's own `cost` answered something that is no price."""


def cost(tool: Tool | None, value: Any) -> int:
    """Units of one call of the tool with this input. Raises PriceError, or whatever the tool's `cost` raises."""
    if tool is None or not isinstance(value, dict):
        return 1
    if tool.cost is not None:
        return _declared(tool.cost(copy.deepcopy(value)))
    if tool.audience != "admin" or not tool.is_write:
        return 1
    counted = min(rows(value), tool.max_items if tool.max_items is not None else MAX_ROWS)
    return max(1, -(-counted // ROWS_PER_UNIT))


def rows(value: Any) -> int:
    """The length of the longest list at the top level of the input."""
    if not isinstance(value, dict):
        return 0
    return max((len(part) for part in value.values() if isinstance(part, list)), default=0)


def rows_that_fit(tool: Tool, budget: int) -> int | None:
    """How many rows a call may have at most within the budget; None where the price does not go by rows."""
    if tool.cost is not None or tool.audience != "admin" or not tool.is_write:
        return None
    return budget * ROWS_PER_UNIT


def rule(tool: Tool) -> dict[str, Any]:
    """The price as the listing shows it: `{"units", "rows_per_unit", "declared"}`."""
    by_rows = tool.cost is None and tool.audience == "admin" and tool.is_write
    return {"units": 1, "rows_per_unit": ROWS_PER_UNIT if by_rows else None, "declared": tool.cost is not None}


def _declared(price: Any) -> int:
    if isinstance(price, bool) or not isinstance(price, int) or price < 1:
        raise PriceError("cost answers a whole number of 1 or more")
    return min(price, MAX_PRICE)
