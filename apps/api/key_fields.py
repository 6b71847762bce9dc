"""What forms about keys share, in the admin site and on a person's own page: networks a line each, and the grace of a rotation."""

from datetime import timedelta
from ipaddress import ip_network
from typing import Any

from django import forms
from django.forms.widgets import Script
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.api.models.key import validate_networks

# In hours. The default is what an operator needs who has to reach whoever runs the machine.
GRACES: dict[int, Promise] = {
    0: _("none: it ends at once"),
    1: _("1 hour"),
    24: _("24 hours"),
    7 * 24: _("7 days"),
}
DEFAULT_GRACE = 24


class GraceForm(forms.Form):
    """For how long the old key works beside its successor."""

    grace = forms.TypedChoiceField(
        label=_("Grace for the old key"),
        choices=list(GRACES.items()),
        coerce=int,
        initial=DEFAULT_GRACE,
        widget=forms.RadioSelect,
    )

    class Media:
        js = (Script("js/send-once.js", type="module"),)

    def chosen(self) -> timedelta:
        return timedelta(hours=self.cleaned_data["grace"])


class NetworksField(forms.CharField):
    """A list of networks in CIDR form, one a line."""

    default_validators = [validate_networks]
    widget = forms.Textarea(attrs={"rows": 3, "cols": 40, "placeholder": "203.0.113.0/24", "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """Each network once, in its usual spelling. What is no network stays as it is, for the validator to name."""
        lines = value if isinstance(value, list) else str(value or "").split()
        return list(dict.fromkeys(_spelled(line) for line in lines))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(data) != (initial or []))


def _spelled(line: str) -> str:
    try:
        return str(ip_network(line.strip()))
    except ValueError:
        return line
