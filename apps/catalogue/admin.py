"""Products and categories in the admin site; what a person changes there goes through the history too."""

from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import Count, Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from apps.catalogue import history
from apps.catalogue.models import Category, Change, Product, StockRequest


@admin.register(Category)
class CategoryAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    list_display = ("name", "slug", "supplier_email", "product_count")
    search_fields = ("name", "slug", "supplier_email")
    ordering = ("name", "pk")
    prepopulated_fields = {"slug": ("name",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Category]:
        found: QuerySet[Category] = super().get_queryset(request)
        return found.annotate(product_count=Count("products"))

    @admin.display(description=_("products"), ordering="product_count")
    def product_count(self, category: Any) -> int:
        return int(category.product_count)


class StockFilter(admin.SimpleListFilter):
    title = _("stock")
    parameter_name = "in_stock"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("1", _("in stock")), ("0", _("out of stock"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "1":
                return queryset.filter(stock__gt=0)
            case "0":
                return queryset.filter(stock=0)
            case _:
                return queryset


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    list_display = ("sku", "name", "category", "price", "currency", "stock", "updated_at")
    list_filter = ("category", StockFilter, "currency")
    list_select_related = ("category",)
    search_fields = ("sku", "name", "description")
    ordering = ("sku",)
    fields = (
        "sku",
        "name",
        "category",
        "price",
        "currency",
        "stock",
        "description",
        "created_at",
        "updated_at",
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Product | None = None) -> tuple[str, ...]:
        return ("created_at", "updated_at") if obj is None else ("sku", "created_at", "updated_at")

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        # The page brings along what it showed, so that only what the person changed on it counts as changed.
        hidden = {"show_hidden_initial": True} if db_field.name in ("price", "stock") else {}
        return super().formfield_for_dbfield(db_field, request, **kwargs, **hidden)

    @transaction.atomic
    def save_model(self, request: HttpRequest, obj: Product, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's
        request_id = getattr(request, "request_id", "")
        if not change:
            super().save_model(request, obj, form, change)
            created = history.Step(product=obj, before=None, after=obj.name)
            history.record([created], field=Change.Field.PRODUCT, request_id=request_id)
            return
        before = Product.objects.select_for_update().get(pk=obj.pk)
        # Only these: a page that was open for a while must not write an old stock back.
        obj.save(update_fields={*form.changed_data, "search_text", "updated_at"})
        for field in (Change.Field.PRICE, Change.Field.STOCK):
            if field in form.changed_data:
                step = history.Step(product=obj, before=getattr(before, field), after=getattr(obj, field))
                history.record([step], field=field, request_id=request_id)

    def delete_model(self, request: HttpRequest, obj: Product) -> None:
        self.delete_queryset(request, Product.objects.filter(pk=obj.pk))

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Product]) -> None:
        gone = [history.Step(product=product, before=product.name, after="") for product in queryset]
        history.record(gone, field=Change.Field.PRODUCT, request_id=getattr(request, "request_id", ""))
        super().delete_queryset(request, queryset)


@admin.register(StockRequest)
class StockRequestAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Visitors ask; a person reads, and deletes what is settled."""

    list_display = ("created_at", "product", "email", "in_stock")
    list_filter = ("product__category", "created_at")
    list_select_related = ("product",)
    search_fields = ("product__sku", "product__name", "email")
    ordering = ("-created_at", "-pk")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    @admin.display(description=_("in stock"), ordering="product__stock")
    def in_stock(self, asked: StockRequest) -> int:
        return asked.product.stock


@admin.register(Change)
class ChangeAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """History: nothing is added, changed or deleted by hand."""

    list_display = ("at", "sku", "field", "before", "after", "reason", "request_id")
    list_filter = ("field", "at")
    search_fields = ("sku", "request_id")
    ordering = ("-at", "-pk")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
