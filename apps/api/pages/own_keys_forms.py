"""The form of a key that a person makes for themselves."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.forms.widgets import Script
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.api import keys
from apps.api.key_fields import NetworksField
from apps.api.models.key import MIN_BUDGET
from apps.api.own_keys import Standing
from apps.api.pages import own_keys_rows

# In days; the last one is `own_keys.LONGEST`.
LIFETIMES: dict[int, Promise] = {
    7: _("a week"),
    30: _("30 days"),
    90: _("90 days"),
    180: _("180 days"),
    365: _("a year"),
}
DEFAULT_LIFETIME = 90


class NewOwnKeyForm(forms.Form):
    """Scopes are those that the person holds now. `once` names the form, so that one form makes one key."""

    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        help_text=_("What runs with this key, so that you know it later."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("What the key can do, as long as you may do it too. Give it no more than it needs."),
        error_messages={"required": _("Choose at least one.")},
    )
    requires_approval = forms.BooleanField(
        label=_("Requires approval"),
        required=False,
        help_text=_("Every write of this key waits until somebody else has approved it."),
    )
    lifetime = forms.TypedChoiceField(
        label=_("Ends after"), choices=list(LIFETIMES.items()), coerce=int, initial=DEFAULT_LIFETIME
    )
    networks = NetworksField(
        label=_("Allowed networks"),
        required=False,
        help_text=_("One network a line, in CIDR form. Empty: from everywhere."),
    )
    budget = forms.IntegerField(label=_("Units a minute"), required=False, min_value=MIN_BUDGET)
    once = forms.UUIDField(widget=forms.HiddenInput)

    class Media:
        js = (Script("js/send-once.js", type="module"),)

    def __init__(self, data: Any, *, standing: Standing) -> None:
        super().__init__(data, initial={"once": uuid4()})
        boxes: Any = self.fields["scopes"]
        boxes.choices = [(name, _described(name, standing)) for name in sorted(standing.held)]
        self._bound_budget(standing.switches.api_key_budget)

    def _bound_budget(self, most: int) -> None:
        if most < MIN_BUDGET:
            del self.fields["budget"]
            return
        budget: Any = self.fields["budget"]
        budget.max_value = most
        budget.validators.append(MaxValueValidator(most))
        budget.widget.attrs["max"] = most
        budget.help_text = gettext("%(least)d to %(most)d. Empty: %(most)d, as set for all keys.") % {
            "least": MIN_BUDGET,
            "most": most,
        }

    def clean(self) -> dict[str, Any] | None:
        """Nothing that the form does not ask for, as an owner: whoever sends it wants something that can't be had here."""
        if not set(self.data) <= {*self.fields, "csrfmiddlewaretoken"}:
            raise ValidationError(gettext("The form was sent with fields that it does not have. Send it as it is."))
        return super().clean()

    def grant(self) -> keys.Grant:
        given = self.cleaned_data
        return keys.Grant(
            name=given["name"],
            scopes=given["scopes"],
            requires_approval=given["requires_approval"],
            networks=given["networks"],
            budget=given.get("budget"),
            expires_at=timezone.now() + timedelta(days=given["lifetime"]),
        )


def _described(name: str, standing: Standing) -> SafeString:
    line = own_keys_rows.scope_line(name, standing)
    return format_html('<code>{}</code> <span class="does">{}</span>', name, line.does)
