"""Where the gate's transports and pages are: a host includes this at its root."""

from django.urls import include, path, re_path

from apps.api.pages import problems

app_name = "api"

urlpatterns = [
    path("api/", include("apps.api.rest.urls")),
    re_path(r"^problems/(?P<code>[-a-zA-Z0-9_]+)/?$", problems.problem, name="problem"),
]
