"""Where the gate's transports and pages are: a host includes this at its root."""

from django.urls import include, path, re_path

from apps.api.pages import approvals, own_keys, problems

app_name = "api"

urlpatterns = [
    path("api/", include("apps.api.rest.urls")),
    path("", include("apps.api.mcp.urls")),
    path("api/", include("apps.api.openapi.urls")),
    path("account/keys/", own_keys.listed, name="own_keys"),
    path("account/keys/new/", own_keys.new, name="own_keys_new"),
    path("account/keys/<str:uuid>/rotate/", own_keys.rotate, name="own_keys_rotate"),
    path("account/keys/<str:uuid>/revoke/", own_keys.revoke, name="own_keys_revoke"),
    path("approvals/", approvals.listed, name="approvals"),
    path("approvals/<str:uuid>/", approvals.one, name="approval"),
    path("approvals/<str:uuid>/decide", approvals.decide, name="approval_decide"),
    re_path(r"^problems/(?P<code>[-a-zA-Z0-9_]+)/?$", problems.problem, name="problem"),
]
