"""Where everything is: the gate's paths from apps.api, the assistant's from apps.agent, sign-in and account pages from apps.accounts."""

from django.contrib import admin
from django.urls import include, path

from config import health, home, metrics

urlpatterns = [
    # First, since they are called most.
    path("", include("apps.api.urls")),
    path("api/agent/", include("apps.agent.rest.urls")),
    path("chat/", include("apps.agent.pages.urls")),
    path("", home.home, name="home"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", include("apps.accounts.urls")),
]
