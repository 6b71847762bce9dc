"""The paths of the baseline."""

from django.urls import path

from bench.baseline.views import ChangeView, ProductView, StockView

urlpatterns = [
    path("products/<str:sku>", ProductView.as_view()),
    path("changes", ChangeView.as_view()),
    path("stock", StockView.as_view()),
]
