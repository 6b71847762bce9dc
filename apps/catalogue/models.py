"""Categories and products, and the history in which every change of a product names the request that made it (MT-8)."""

import unicodedata
import uuid
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Count, Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

SKU_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$"


def folded(text: str) -> str:
    """The text as search compares it: case and composition don't count, in any script."""
    return unicodedata.normalize("NFKC", text).casefold()


class FoldedField(models.TextField):  # type: ignore[type-arg]  # generic in the stubs only
    """The named fields of its row, folded. SQLite ignores case for ASCII alone, so no database is asked to."""

    def __init__(self, *args: Any, of: Sequence[str] = (), **kwargs: Any) -> None:
        self.of = of
        super().__init__(*args, **{**kwargs, "editable": False})

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        return name, path, args, {**kwargs, "of": self.of}

    def pre_save(self, model_instance: models.Model, add: bool) -> str:  # noqa: FBT001 - Django's signature
        value = folded("\n".join(getattr(model_instance, name) for name in self.of))
        setattr(model_instance, self.attname, value)
        return value


class Category(models.Model):
    slug = models.SlugField(_("slug"), unique=True)
    name = models.CharField(_("name"), max_length=100)
    supplier_email = models.EmailField(_("supplier's e-mail"), blank=True)

    class Meta:
        verbose_name = _("category")
        verbose_name_plural = _("categories")
        ordering = ("name", "pk")

    def __str__(self) -> str:
        return self.name


class ProductQuerySet(models.QuerySet["Product"]):
    def matching(self, query: str) -> "ProductQuerySet":
        """Those with every word of the query somewhere in name, SKU or description."""
        found = self
        for word in dict.fromkeys(folded(query).split()):
            found = found.filter(search_text__contains=word)
        return found

    def stocked(self, *, in_stock: bool) -> "ProductQuerySet":
        return self.filter(stock__gt=0) if in_stock else self.filter(stock=0)


class Product(models.Model):
    """A product. Its SKU never changes: pages continue after it, and the history keeps it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    sku = models.CharField(_("SKU"), max_length=40, unique=True, validators=[RegexValidator(SKU_PATTERN)])
    name = models.CharField(_("name"), max_length=200)
    # Without an index of its own: the one over category and SKU serves it.
    category = models.ForeignKey(
        Category, models.PROTECT, related_name="products", db_index=False, verbose_name=_("category")
    )
    price = models.DecimalField(_("price"), max_digits=12, decimal_places=2)
    currency = models.CharField(_("currency"), max_length=3)
    stock = models.BigIntegerField(_("stock"), default=0)
    description = models.TextField(_("description"), blank=True)
    search_text = FoldedField(of=("name", "sku", "description"))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    objects = ProductQuerySet.as_manager()

    class Meta:
        verbose_name = _("product")
        verbose_name_plural = _("products")
        ordering = ("sku",)
        indexes = [
            models.Index(fields=["category", "sku"], name="catalogue_product_in_category"),
            models.Index(fields=["name", "sku"], name="catalogue_product_by_name"),
            models.Index(fields=["price"], name="catalogue_product_by_price"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(stock__gte=0), name="catalogue_stock_not_below_zero"),
            models.CheckConstraint(condition=Q(price__gte=Decimal(0)), name="catalogue_price_not_below_zero"),
        ]

    def __str__(self) -> str:
        return f"{self.sku} {self.name}"


class StockRequestQuerySet(models.QuerySet["StockRequest"]):
    def count_by_product(self, products: Iterable[Product]) -> dict[uuid.UUID, int]:
        """How many wait for each of the products that somebody waits for, from one query."""
        counted = self.filter(product__in=products).values_list("product").annotate(number=Count("pk"))
        return dict(counted.order_by("product"))


class StockRequest(models.Model):
    """Somebody waits for a product: once, however the address was spelled. Goes with its product."""

    # Without an index of its own: the constraint's serves it.
    product = models.ForeignKey(
        Product, models.CASCADE, related_name="requests", db_index=False, verbose_name=_("product")
    )
    email = models.EmailField(_("e-mail"))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    objects = StockRequestQuerySet.as_manager()

    class Meta:
        verbose_name = _("request for stock")
        verbose_name_plural = _("requests for stock")
        ordering = ("-created_at", "-pk")
        indexes = [models.Index(fields=["-created_at", "-id"], name="catalogue_request_newest")]
        constraints = [models.UniqueConstraint("product", Lower("email"), name="catalogue_request_once")]

    def __str__(self) -> str:
        return str(self.product)


class Change(models.Model):
    """One product's one field, changed once. Append-only; it outlives the product."""

    class Field(models.TextChoices):
        PRODUCT = "product", _("product")
        PRICE = "price", _("price")
        STOCK = "stock", _("stock")

    product = models.ForeignKey(Product, models.SET_NULL, null=True, related_name="changes", verbose_name=_("product"))
    sku = models.CharField(_("SKU"), max_length=40)
    field = models.CharField(_("field"), max_length=10, choices=Field)
    before = models.CharField(_("before"), max_length=200, blank=True)
    after = models.CharField(_("after"), max_length=200, blank=True)
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    request_id = models.CharField(_("request id"), max_length=64)
    at = models.DateTimeField(_("at"), default=timezone.now)

    class Meta:
        verbose_name = _("change")
        verbose_name_plural = _("changes")
        ordering = ("-at", "-pk")
        indexes = [
            models.Index(fields=["request_id"], name="catalogue_change_by_request"),
            models.Index(fields=["sku", "-at"], name="catalogue_change_by_sku"),
            models.Index(fields=["-at", "-id"], name="catalogue_change_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.sku} {self.field}: {self.before} → {self.after}"
