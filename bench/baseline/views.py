"""The bare views: one indexed query with the JSON that `catalogue.get_product` answers, and two writes."""

from typing import Any

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.catalogue import history, shapes
from apps.catalogue.models import Change, Product


class ProductView(APIView):
    """`GET /products/<sku>`."""

    def get(self, request: Request, sku: str) -> Response:
        """One product."""
        product = Product.objects.select_related("category").get(sku=sku)
        return Response(shapes.product(product))


class ChangeView(APIView):
    """`POST /changes`: the body of `catalogue.adjust_stock`, noted and not done."""

    def post(self, request: Request) -> Response:
        """One INSERT in a transaction."""
        (change,) = _changes(request)
        with transaction.atomic():
            Change.objects.create(
                sku=change["sku"], field=Change.Field.STOCK, after=str(change["delta"]), request_id="bench"
            )
        return Response({"adjusted": 1})


class StockView(APIView):
    """`POST /stock`: the body of `catalogue.adjust_stock`, and what its handler does."""

    def post(self, request: Request) -> Response:
        """One SELECT with a lock, one UPDATE and one INSERT in a transaction."""
        changes = [shapes.StockChange.model_validate(change) for change in _changes(request)]
        with transaction.atomic():
            steps = history.plan_stock(changes, lock=True)
            history.apply(steps, field=Change.Field.STOCK, request_id="bench")
        return Response({"adjusted": len(steps)})


def _changes(request: Request) -> list[dict[str, Any]]:
    body: Any = request.data
    changes: list[dict[str, Any]] = body["changes"]
    return changes
