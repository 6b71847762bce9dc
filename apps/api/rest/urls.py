"""The REST paths of both audiences, with and without the last slash, without a redirect (RE-1)."""

from django.urls import re_path

from apps.api.rest.views import ApprovalView, ToolsView, ToolView

urlpatterns = [
    re_path(r"^v1/tools/?\Z", ToolsView.as_view(), name="tools"),
    re_path(r"^v1/tools/(?P<name>[^/]+)/?\Z", ToolView.as_view(), name="tool"),
    re_path(r"^v1/approvals/(?P<uuid>[^/]+)/?\Z", ApprovalView.as_view(), name="approval"),
    re_path(r"^v1/public/tools/?\Z", ToolsView.as_view(audience="public"), name="public_tools"),
    re_path(r"^v1/public/tools/(?P<name>[^/]+)/?\Z", ToolView.as_view(audience="public"), name="public_tool"),
]
