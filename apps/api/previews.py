"""What a preview shows (MT-9) and what it is compared by: the fixed shape, and the fingerprint of the values a write would touch."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from apps.api import strict_json

MAX_ROWS = 50


def preview(
    summary: str, rows: Iterable[Mapping[str, Any]] = (), *, totals: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """`{"summary", "rows", "more", "totals"}`: the first 50 rows, and how many more there are.

    A row is what `row` makes: label, field, before, after, note.
    """
    listed = list(rows)
    return {
        "summary": summary,
        "rows": listed[:MAX_ROWS],
        "more": max(0, len(listed) - MAX_ROWS),
        "totals": dict(totals or {}),
    }


def row(label: str, field: str, *, before: Any = None, after: Any = None, note: str = "") -> dict[str, Any]:
    """One line of a preview: what `label`'s `field` is now and would become."""
    return {"label": label, "field": field, "before": before, "after": after, "note": note}


def fingerprint(identifiers: Iterable[Any], values: Mapping[Any, Any]) -> str:
    """SHA-256 in hex over each identifier that the input names, in that order, with its current values or an explicit "absent".

    `values` maps an identifier to anything with a JSON form. Taking the identifiers from the input, never from the rows found,
    makes a row that appears or disappears change the fingerprint.
    """
    seen = [[name, {"is": values[name]} if name in values else "absent"] for name in identifiers]
    return hashlib.sha256(strict_json.dumps(seen)).hexdigest()
