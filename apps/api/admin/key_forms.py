"""The forms of an API key: scopes as boxes with the tools behind them."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any
from uuid import UUID

from django import forms
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.api import keys, registry
from apps.api.key_fields import NetworksField
from apps.api.models import ApiKey


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """What a key is given. `seen` is the version of the key that the form was filled with."""

    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("The key can do this as long as its owner may do it too."),
    )
    networks = NetworksField(
        label=_("Allowed networks"),
        required=False,
        help_text=_("One network a line, in CIDR form. Empty: from everywhere."),
    )
    seen = forms.CharField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = ApiKey
        fields = ("name", "scopes", "networks", "requires_approval", "approvers_needed", "budget", "expires_at")
        help_texts = {
            "name": _("What runs with this key, so that somebody else knows it too."),
            "requires_approval": _("Every write of this key waits until other people have approved it."),
            "budget": _("20 or more. Empty: as set for all keys."),
            "expires_at": _("Empty: until it is revoked."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.given = keys.grant_of(self.instance)
        if "scopes" in self.fields:
            boxes: Any = self.fields["scopes"]
            boxes.choices = _scope_choices(self.given.scopes)
        if not self.instance._state.adding:
            self.initial["seen"] = keys.version(self.instance)

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and "expires_at" in self.changed_data and expires_at <= timezone.now():
            raise ValidationError(gettext("That is in the past. To end a key now, revoke it."))
        return expires_at

    def grant(self) -> keys.Grant:
        """The grant as it was, with the fields that the form changed."""
        names = {field.name for field in fields(keys.Grant)} & set(self.changed_data)
        return replace(self.given, **{name: self.cleaned_data[name] for name in names})


class NewKeyForm(KeyForm):
    """The form of a key that is not there yet. `by` is who fills it in; `once` becomes the key's uuid, so that one form makes one key."""

    by: Any = None

    owner = forms.CharField(
        label=_("Owner"),
        help_text=_("The address of the person for whom the key acts. It can never do more than they may."),
        widget=forms.TextInput(attrs={"size": 40, "autocomplete": "off", "spellcheck": "false"}),
    )
    once = forms.UUIDField(widget=forms.HiddenInput)

    def clean_owner(self) -> Any:
        people = get_user_model()._default_manager
        try:
            owner = people.get_by_natural_key(self.cleaned_data["owner"].strip())
        except get_user_model().DoesNotExist:
            raise ValidationError(gettext("There is nobody with this address.")) from None
        try:
            keys.refuse_owner(owner, created_by=self.by)
        except ValidationError as refusal:
            raise ValidationError(refusal.messages) from None
        return owner

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        once: UUID | None = self.cleaned_data.get("once")
        if once is None or ApiKey.objects.filter(pk=once).exists():
            raise ValidationError(
                gettext(
                    "This form was sent before, and made a key whose text can't be shown again. If you did not keep it, "
                    "revoke that key and open a new form."
                )
            )
        return cleaned


def describe(scope: str) -> SafeString:
    """The scope with what its tools do, in words: what it reads, then what it changes."""
    tools = registry.current().by_scope.get(scope, ())
    words = (
        [", ".join(tool.title for tool in tools if not tool.is_write)]
        if tools
        else [gettext("no tool has this scope now")]
    )
    if writes := [tool.title for tool in tools if tool.is_write]:
        words.append(gettext("changes data: %(tools)s") % {"tools": ", ".join(writes)})
    return format_html('{} <span class="th-quiet th-below">{}</span>', scope, "; ".join(filter(None, words)))


def _scope_choices(given: Iterable[str]) -> list[tuple[str, SafeString]]:
    """Every scope that a tool has, and those that the key has all the same."""
    return [(scope, describe(scope)) for scope in sorted({*registry.current().by_scope, *given})]
