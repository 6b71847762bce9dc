"""The form of an endpoint. Its key is written and never read: the field is empty, and empty leaves the key as it is."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.agent import endpoint_store, sealing
from apps.agent.models import ModelEndpoint
from apps.agent.providers import outgoing
from apps.agent.providers.outgoing import Forbidden

_PRICES = ("input_price", "output_price")
_CACHES = ("cache_read_price", "cache_write_price")


class EndpointForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """Who changes where a key goes has to know it: another provider or address asks for the key again."""

    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=sealing.MOST,
        widget=forms.PasswordInput(
            attrs={"autocomplete": "new-password", "spellcheck": "false", "class": "vTextField"}
        ),
    )
    remove_key = forms.BooleanField(label=_("Take the key away"), required=False)

    class Meta:
        model = ModelEndpoint
        fields = endpoint_store.FIELDS

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.has_key = bool(self.instance.key_encrypted)
        self.before = (self.instance.provider, self.instance.base_url)
        if self.has_key:
            self.fields["key"].help_text = gettext(
                "A key is stored, and shown to nobody. Type another one to replace it."
            )
        else:
            self.fields["key"].help_text = gettext(
                "Stored encrypted, and never shown again. Empty where none is needed."
            )
            del self.fields["remove_key"]

    def clean_base_url(self) -> str:
        url = str(self.cleaned_data["base_url"]).strip().rstrip("/")
        if url:
            try:
                outgoing.check_url(url, settings.MODEL_NETWORKS)
            except Forbidden as forbidden:
                raise forms.ValidationError(_WORDS.get(str(forbidden), str(forbidden))) from None
        return url

    def clean_key(self) -> str:
        key = str(self.cleaned_data["key"]).strip()
        if key and not sealing.is_plain(key):
            raise forms.ValidationError(gettext("A key has only letters, digits and signs, without blanks."))
        return key

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = super().clean() or {}
        self._check_key(found)
        self._check_prices(found)
        return found

    def wanted_key(self) -> str | None:
        """A new key, an empty text that takes the old one away, or None that leaves it."""
        if self.cleaned_data["key"]:
            return str(self.cleaned_data["key"])
        return "" if self.cleaned_data.get("remove_key") else None

    def _get_validation_exclusions(self) -> set[str]:
        """But for the one default: whoever is made it takes it from the other."""
        ours: Any = super()  # the stubs leave this one out
        return {*ours._get_validation_exclusions(), "is_default"}

    def _check_key(self, found: dict[str, Any]) -> None:
        if not self.has_key or found.get("key") or found.get("remove_key") or {"provider", "base_url"} - found.keys():
            return
        if (found["provider"], found["base_url"]) != self.before:
            text = gettext("Type the key again, or take it away: the stored one was given for another address.")
            self.add_error("key", text)

    def _check_prices(self, found: dict[str, Any]) -> None:
        given = [name for name in _PRICES if found.get(name) is not None]
        if len(given) == 1:
            missing = next(name for name in _PRICES if name not in given)
            self.add_error(missing, gettext("Give both prices, or none."))
        if not given and any(found.get(name) is not None for name in _CACHES):
            self.add_error("input_price", gettext("Prices of a cache need those of input and output."))


# The guard's own words, translated where they are shown.
_WORDS = {
    "The address holds a user name or a password.": _("The address holds a user name or a password."),
    "The address ends with its path: no ? and no #.": _("The address ends with its path: no ? and no #."),
    "The address must begin with https://.": _("The address must begin with https://."),
    "The address is not a public one.": _(
        "The address is not a public one. MODEL_NETWORKS names the others that may be called."
    ),
    "The address can't be read.": _("The address can't be read."),
    "The address must begin with https:// and name a host.": _("The address must begin with https:// and name a host."),
}
