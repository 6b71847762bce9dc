"""The admin site and the gate, at the root as it asks for."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls), path("", include("apps.api.urls"))]
