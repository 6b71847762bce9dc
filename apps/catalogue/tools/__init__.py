"""The catalogue's tools: what a key may read and change, whom it may write to, and what a visitor may see and ask."""

from apps.catalogue.tools.declaration import module
from apps.catalogue.tools.imports import import_products
from apps.catalogue.tools.public import ask_for_stock, search_products, show_product
from apps.catalogue.tools.reads import get_product, list_products
from apps.catalogue.tools.suppliers import notify_supplier
from apps.catalogue.tools.writes import adjust_stock, create_product, delete_products, update_prices

__all__ = [
    "adjust_stock",
    "ask_for_stock",
    "create_product",
    "delete_products",
    "get_product",
    "import_products",
    "list_products",
    "module",
    "notify_supplier",
    "search_products",
    "show_product",
    "update_prices",
]
