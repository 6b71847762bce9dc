"""The page that shows a new key's text: the answer to the form itself, so that the text is in no redirect, session or message."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise

from apps.api import doorway
from apps.api.models import ApiKey


def page(
    model_admin: "admin.ModelAdmin[Any]",
    request: HttpRequest,
    key: ApiKey,
    text: str,
    *,
    title: str | Promise,
    **more: Any,
) -> HttpResponse:
    """It is not stored by the browser, as no page of the admin site is."""
    context = {
        **model_admin.admin_site.each_context(request),
        "title": title,
        "opts": model_admin.opts,
        "media": model_admin.media,
        "key": key,
        "text": text,
        "tools_url": doorway.base_url(request) + reverse("api:tools"),
        **more,
    }
    return TemplateResponse(request, "admin/api/apikey/created.html", context)
