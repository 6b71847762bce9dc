"""How the gate's own answers look: an example of each shape, made up once and the same each time."""

from collections.abc import Mapping
from typing import Any

MOMENT = "2026-01-31T12:00:00+00:00"
UUID_TEXT = "6f1c2b1e-0c0a-4d1e-9a55-0f2f3f5d7c11"
REQUEST_ID = "4f3c2a1b0d9e4f5a8b7c6d5e4f3a2b1c"

_SHOWN = {
    "summary": "Set 1 price.",
    "rows": [
        {"label": "LMP-0029 Alder desk lamp", "field": "price", "before": "100.50", "after": "110.00", "note": "+9.5%"}
    ],
    "more": 0,
    "totals": {"products": 1},
}
OF_SHAPE: Mapping[str, dict[str, Any]] = {
    "Preview": {"status": "preview", "preview": _SHOWN},
    "ConfirmationRequired": {
        "status": "confirmation_required",
        "confirm_token": "tc_shown-once-by-the-answer",
        "confirmation_id": UUID_TEXT,
        "preview": _SHOWN,
        "expires_at": MOMENT,
        "expires_in_seconds": 600,
    },
    "PendingApproval": {
        "status": "pending_approval",
        "approval_id": UUID_TEXT,
        "preview": _SHOWN,
        "expires_at": MOMENT,
        "expires_in_seconds": 259200,
        "url": f"https://example.org/approvals/{UUID_TEXT}/",
        "approvals_needed": 1,
    },
    "Approval": {
        "approval_id": UUID_TEXT,
        "tool": "catalogue.update_prices",
        "status": "pending",
        "code": None,
        "reason": None,
        "preview": _SHOWN,
        "created_at": MOMENT,
        "expires_at": MOMENT,
        "expires_in_seconds": 259200,
        "approvals": 0,
        "approvals_needed": 1,
        "progress": None,
        "partial": None,
        "result": None,
        "ended_at": None,
    },
    "Tools": {
        "tools": [
            {
                "name": "catalogue.get_product",
                "title": "Get a product",
                "description": "One product by its SKU.",
                "scope": "catalogue:read",
                "input_schema": {
                    "type": "object",
                    "properties": {"sku": {"type": "string", "maxLength": 40}},
                    "required": ["sku"],
                    "additionalProperties": False,
                },
                "output_schema": None,
                "annotations": {"read_only": True, "destructive": False, "idempotent": True, "open_world": False},
                "danger": "none",
                "price": {"units": 1, "rows_per_unit": None, "declared": False},
            }
        ]
    },
}

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Tollhouse", "version": "1"},
    "paths": {"/api/v1/tools": {"get": {"operationId": "listTools"}}},
}

# What core's own tools answer.
OF_CORE: Mapping[str, dict[str, Any]] = {
    "system.whoami": {
        "key": {
            "id": "9sHc0pQzL2aB",
            "name": "Price import",
            "family": UUID_TEXT,
            "requires_approval": False,
            "expires_at": None,
        },
        "scopes": ["catalogue:read", "catalogue:write"],
        "limits": [{"policy": "key", "budget": 600, "window_seconds": 60, "remaining": 599}],
    },
    "system.problems": {
        "problems": [
            {
                "code": "rate_limited",
                "status": 429,
                "title": "Rate limited",
                "type": "https://example.org/problems/rate_limited",
                "retry": "later",
            }
        ]
    },
    "system.get_approval": OF_SHAPE["Approval"],
    "system.cancel_approval": {
        **OF_SHAPE["Approval"],
        "status": "cancelled",
        "expires_in_seconds": 0,
        "ended_at": MOMENT,
    },
    "system.list_approvals": {
        "approvals": [{name: part for name, part in OF_SHAPE["Approval"].items() if name != "preview"}],
        "next_cursor": None,
    },
}
