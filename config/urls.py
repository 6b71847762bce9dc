"""Where everything is. The gate's paths come from apps.api, sign-in and the account pages from apps.accounts."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from config import health, metrics

urlpatterns = [
    # First, since they are called most.
    path("", include("apps.api.urls")),
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", include("apps.accounts.urls")),
]
