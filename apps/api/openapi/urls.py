"""The paths of the document and of its page, with and without the last slash."""

from django.urls import re_path

from apps.api.openapi.views import DocsView, DocumentView

urlpatterns = [
    re_path(r"^v1/openapi\.json/?\Z", DocumentView.as_view(), name="openapi"),
    re_path(r"^v1/public/openapi\.json/?\Z", DocumentView.as_view(audience="public"), name="public_openapi"),
    re_path(r"^v1/docs/?\Z", DocsView.as_view(), name="docs"),
]
