"""What goes into the catalogue's tools and what comes out: types of the input, a product as JSON, schemas of the answers."""

from decimal import Decimal
from typing import Annotated, Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

from apps.catalogue.models import SKU_PATTERN, Product

MAX_CHANGES = 500
MAX_DELETED = 100
MAX_IMPORTED = 2_000
MAX_IN_A_MAIL = 50
MAX_AMOUNT = 1_000_000_000

_MONEY = r"^[0-9]{1,10}(\.[0-9]{1,2})?$"

Money = Annotated[
    Decimal,
    Field(ge=0, max_digits=12, decimal_places=2),
    AfterValidator(lambda amount: amount.quantize(Decimal("0.01"))),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": _MONEY,
            "description": "An amount as a decimal string, for example 19.90.",
            "examples": ["19.90"],
        }
    ),
]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$", description="ISO 4217, for example EUR.", examples=["EUR"])]
Sku = Annotated[
    str,
    Field(pattern=SKU_PATTERN, description="The product's SKU, exactly as it is spelled.", examples=["LMP-0002"]),
]
CategorySlug = Annotated[
    str, Field(max_length=50, description="The slug of a category, for example lamps.", examples=["lamps"])
]
Query = Annotated[
    str,
    Field(max_length=200, description="Words that must all occur in name, SKU or description; case does not count."),
]
Limit = Annotated[int, Field(ge=1, le=100, description="How many products at most.")]


def _valid_address(text: str) -> str:
    try:
        validate_email(text)
    except ValidationError:
        raise ValueError("This is no e-mail address.") from None
    return text


Address = Annotated[
    str,
    Field(max_length=254, description="An e-mail address.", json_schema_extra={"format": "email"}),
    AfterValidator(_valid_address),
]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NewProduct(_Row):
    sku: Sku
    name: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
        Field(description="What customers call it.", examples=["Alder desk lamp"]),
    ]
    category: CategorySlug
    price: Money
    currency: Annotated[Currency, Field(description="ISO 4217; the shop's own when left out.")] | None = None
    stock: Annotated[int, Field(ge=0, le=MAX_AMOUNT, description="How many pieces there are.")] = 0
    description: Annotated[str, Field(max_length=5_000, description="A few sentences for customers.")] = ""


class PriceChange(_Row):
    sku: Sku
    price: Annotated[Money, Field(description="The new price in the product's own currency, for example 19.90.")]


class StockChange(_Row):
    sku: Sku
    delta: Annotated[int, Field(ge=-MAX_AMOUNT, le=MAX_AMOUNT, description="Added to the stock; negative takes away.")]


_CHANGES = Field(min_length=1, max_length=MAX_CHANGES, description="Each product at most once.")
PriceChanges = Annotated[list[PriceChange], _CHANGES]
StockChanges = Annotated[list[StockChange], _CHANGES]

ImportedProducts = Annotated[
    list[NewProduct], Field(min_length=1, max_length=MAX_IMPORTED, description="Each SKU once.")
]
DeletedSkus = Annotated[list[Sku], Field(min_length=1, max_length=MAX_DELETED, description="Each product once.")]
MailedSkus = Annotated[list[Sku], Field(min_length=1, max_length=MAX_IN_A_MAIL, description="Each product once.")]


def money(amount: Decimal) -> str:
    """Two places, always."""
    return f"{amount:.2f}"


def product(row: Product) -> dict[str, Any]:
    """Everything that a key may read of a product. Its category must be loaded."""
    return {
        **given(row),
        "created_at": row.created_at.isoformat(),
        "updated_at": row.updated_at.isoformat(),
    }


def public_product(row: Product) -> dict[str, Any]:
    """What a visitor sees: whether there is stock, never how much."""
    return {**_shown(row), "in_stock": row.stock > 0}


def given(row: Product) -> dict[str, Any]:
    """What is known of a product before it is saved."""
    return {**_shown(row), "stock": row.stock}


def _shown(row: Product) -> dict[str, Any]:
    return {
        "sku": row.sku,
        "name": row.name,
        "category": row.category.slug,
        "price": money(row.price),
        "currency": row.currency,
        "description": row.description,
    }


def _exactly(properties: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_MOMENT = {"type": "string", "format": "date-time"}
_SHOWN = {
    "sku": _TEXT,
    "name": _TEXT,
    "category": {**_TEXT, "description": "The category's slug."},
    "price": {**_TEXT, "pattern": r"^[0-9]+\.[0-9]{2}$"},
    "currency": {**_TEXT, "pattern": r"^[A-Z]{3}$"},
    "description": _TEXT,
}

PRODUCT = _exactly({**_SHOWN, "stock": _COUNT, "created_at": _MOMENT, "updated_at": _MOMENT})
PUBLIC_PRODUCT = _exactly({**_SHOWN, "in_stock": {"type": "boolean"}})

PRODUCT_PAGE = _exactly(
    {
        "products": {"type": "array", "items": PRODUCT},
        "count": {**_COUNT, "description": "How many products match, on all pages together."},
        "next_cursor": {
            "type": ["string", "null"],
            "description": "The cursor of the next page; null on the last one.",
        },
    }
)
PUBLIC_PRODUCTS = _exactly(
    {
        "products": {"type": "array", "items": PUBLIC_PRODUCT},
        "count": {**_COUNT, "description": "How many products match; the answer holds the first of them."},
    }
)
STOCK_REQUEST = _exactly({"sku": _TEXT, "noted": {"const": True}})
