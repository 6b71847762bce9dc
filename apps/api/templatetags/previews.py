"""How a preview's values are written for a person (MT-9)."""

import json
from typing import Any

from django import template
from django.utils.translation import gettext

register = template.Library()


@register.filter
def as_text(value: Any) -> str:
    """A text as it is, nothing as a dash, anything else as JSON."""
    if value is None:
        return "–"  # noqa: RUF001 - a dash
    if value == "":
        return gettext("(empty)")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
