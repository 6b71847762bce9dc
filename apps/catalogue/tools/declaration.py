"""The module that the tools belong to: its key, its scopes and the codes that they refuse with."""

from apps.api import Module

READ, WRITE = "catalogue:read", "catalogue:write"

module = Module(
    key="catalogue",
    name="Catalogue",
    problems={
        "unknown_sku": (404, "Unknown SKU"),
        "unknown_category": (404, "Unknown category"),
        "sku_taken": (409, "SKU taken"),
        "stock_below_zero": (409, "Stock would fall below zero"),
        "no_supplier": (409, "No supplier's address"),
        "several_suppliers": (422, "Products of several suppliers"),
        "duplicate_sku": (422, "SKU named twice"),
    },
)
