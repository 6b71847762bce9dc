"""About 500 believable products in 12 categories, the same ones each time: for a first look, for tests and for benchmarks."""

import random
import uuid
from collections.abc import Iterator, Mapping
from decimal import Decimal

from django.db import transaction

from apps.catalogue.assortment import LINES, RANGES, Range, Thing
from apps.catalogue.models import Category, Product

SEED = 2026
PER_CATEGORY = 42
CURRENCY = "EUR"
OUT_OF_STOCK = 0.08
OFF_THE_EURO = (Decimal("0.05"), Decimal("0.10"), Decimal("0.50"))


@transaction.atomic
def fill() -> int:
    """Write the products into an empty catalogue; how many were written. One that holds a product is left alone."""
    if Product.objects.exists():
        return 0
    return len(Product.objects.bulk_create(generate(_categories())))


def generate(categories: Mapping[str, Category]) -> Iterator[Product]:
    """The products, not saved yet, of categories by slug."""
    chance = random.Random(SEED)  # noqa: S311 - the same products each time is what is wanted
    for kind in RANGES:
        offered = [(line, thing) for line in LINES for thing in kind.things]
        for number, (line, thing) in enumerate(chance.sample(offered, PER_CATEGORY), start=1):
            yield _product(chance, kind, thing, line=line, number=number, category=categories[kind.slug])


def _categories() -> dict[str, Category]:
    for kind in RANGES:
        Category.objects.get_or_create(slug=kind.slug, defaults={"name": kind.name, "supplier_email": kind.supplier})
    return {category.slug: category for category in Category.objects.all()}


def _product(
    chance: random.Random, kind: Range, thing: Thing, *, line: str, number: int, category: Category
) -> Product:
    material = chance.choice(thing.materials)
    article = "An" if thing.name[0] in "aeiou" else "A"
    return Product(
        id=uuid.UUID(int=chance.getrandbits(128), version=4),
        sku=f"{kind.prefix}-{number:04}",
        name=f"{line} {thing.name}, {material}",
        category=category,
        price=Decimal(chance.randint(thing.lowest, thing.highest)) - chance.choice(OFF_THE_EURO),
        currency=CURRENCY,
        stock=0 if chance.random() < OUT_OF_STOCK else int(chance.triangular(1, 240, 20)),
        description=f"{article} {thing.name} of {material} from the {line} range, for {chance.choice(thing.uses)}.",
    )
