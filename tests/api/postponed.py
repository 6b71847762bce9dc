"""Handlers of a module whose annotations are texts, as many authors write them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from apps.api import Context


class Line(BaseModel):
    sku: str
    price: Decimal


class Order(BaseModel):
    lines: list[Line]


@dataclass
class Search:
    query: str
    limit: int = 20


def by_model(input: Order, ctx: Any) -> dict[str, Any]:
    return {"lines": len(input.lines)}


def by_dataclass(input: Search, ctx: Any) -> dict[str, Any]:
    return {"query": input.query, "limit": input.limit}


async def by_keywords(ctx: Any, *, query: str = "", line: Line | None = None) -> dict[str, Any]:
    return {"query": query, "line": line}


def late_context(ctx: Context, *, query: str) -> dict[str, Any]:
    return {"query": query}


def unknown_type(ctx: Context, *, query: Context) -> dict[str, Any]:
    return {"query": query}
