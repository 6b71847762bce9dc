"""Where the gate's transports and pages are: a host includes this at its root."""

from django.urls import include, path

app_name = "api"

urlpatterns = [path("api/", include("apps.api.rest.urls"))]
