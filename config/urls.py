"""Where everything is. The gate's paths come from apps.api, sign-in and the account pages from apps.accounts."""

from django.contrib import admin
from django.urls import include, path

from config import health, home, metrics

urlpatterns = [
    # First, since they are called most.
    path("", include("apps.api.urls")),
    path("", home.home, name="home"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", include("apps.accounts.urls")),
]
