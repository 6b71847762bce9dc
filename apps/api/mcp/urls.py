"""MCP's paths of both audiences, with and without the last slash, and the ones where clients look for a sign-in that is not here."""

from django.urls import re_path

from apps.api.mcp import views

urlpatterns = [
    re_path(r"^mcp/?\Z", views.endpoint, {"audience": "admin"}, name="mcp"),
    re_path(r"^mcp/public/?\Z", views.endpoint, {"audience": "public"}, name="mcp_public"),
    re_path(r"^\.well-known/(?:oauth-|openid-)[^?]*\Z", views.no_oauth, name="no_oauth"),
]
