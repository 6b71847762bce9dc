"""The address without a path leads everybody to what they may open."""

from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import redirect


@login_required
def home(request: HttpRequest) -> HttpResponseRedirect:
    """Operators to the admin site, everybody else to their own sessions."""
    return redirect("admin:index" if admin.site.has_permission(request) else "own_sessions")
