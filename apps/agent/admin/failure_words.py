"""What went wrong with a provider, in an operator's words, and what to do about it."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.agent.providers.protocol import Failure, FailureCode

TEXTS: Mapping[FailureCode, Promise] = {
    "provider_unauthorized": _(
        "The provider does not take the key. Type it again, and see that it may use this model."
    ),
    "provider_rate_limited": _("The provider's rate limit is reached. Try again later."),
    "provider_overloaded": _("The provider is overloaded or broken. Try again later."),
    "provider_refused": _("The provider refuses the request. Look at the model's name, the address, and the account."),
    "provider_unreachable": _("Nobody answers at this address. Look at the base URL."),
    "provider_timeout": _("The provider did not answer in time."),
    "provider_cut": _("The connection broke off before the answer was whole."),
    "provider_invalid": _(
        "What came back is no answer of this kind of provider. Look at the provider and the base URL."
    ),
    "context_overflow": _("The request is too long for this model."),
    "endpoint_forbidden": _("This address may not be called from here."),
    "key_unreadable": _("The stored key can't be opened any more: its secret is gone. Type the key again."),
    "no_model": _("No endpoint is the default."),
}


def told(failure: Failure) -> str:
    """With what the provider said, for who may change the endpoint."""
    text = str(TEXTS[failure.code])
    if failure.retry_after:
        text += " " + gettext("It asks to wait %(seconds)d seconds.") % {"seconds": failure.retry_after}
    return f"{text} ({failure.code}: {failure.detail})" if failure.detail else f"{text} ({failure.code})"
