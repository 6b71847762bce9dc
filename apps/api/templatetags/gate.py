"""What the gate shows on pages of the admin site that are not its own."""

from typing import Any

from django import template

from apps.api.admin import settling

register = template.Library()


@register.inclusion_tag("admin/api/idempotencyrecord/_notice.html", takes_context=True)
def unknown_outcomes(context: dict[str, Any]) -> dict[str, Any]:
    """A notice while outcomes wait for a person's word; nothing otherwise."""
    count = settling.count_unknown(context["request"])
    return {"count": count, "more": count >= settling.COUNTED}
