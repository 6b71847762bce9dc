"""Every reason that a turn ends with, every limit it met and every word on a card, as a person reads it in the chat (TU-4, TU-5).

The stored text is English; `shown` gives it in the language of who reads it.
"""

import re
from collections.abc import Mapping

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

# By code. A `{limit}` is filled in when it is stored.
TEXTS: dict[str, str] = {
    "stopped": _("Stopped."),
    "interrupted": _("The answer was interrupted: the server that worked on it went away."),
    "chat_deleted": _("Ended: the chat was deleted."),
    "no_worker": _("No worker was free to answer. Try again later."),
    "limit_rounds": _("Ended: the limit of {limit} rounds in one turn is reached."),
    "limit_calls": _("Ended: the limit of {limit} tool calls in one turn is reached."),
    "limit_repeats": _("Ended: the assistant wanted to make the very same call more than {limit} times."),
    "limit_time": _("Ended: the limit of {limit} seconds for one turn is reached."),
    "limit_history": _("Ended: what must be sent to the model is longer than its limit of {limit} characters."),
    "limit_turn_tokens": _("Ended: the limit of {limit} tokens in one turn is reached."),
    "limit_turn_cost": _("Ended: the limit of {limit} US dollars for one turn is reached."),
    "limit_daily_tokens": _("Ended: your limit of {limit} tokens a day is reached."),
    "limit_daily_cost": _("Ended: your limit of {limit} US dollars a day is reached."),
    "limit_turns_at_once": _(
        "Not begun: {limit} of your chats may be answered at the same time. Try again when one is done."
    ),
    "limit_answer": _("Ended: the answer is longer than the limit of {limit} characters."),
    "history_cut": _("The chat is longer than the model is sent: from here on its oldest messages are left out."),
    "result_truncated": _("A result was longer than {limit} characters: the model got its beginning."),
    "answer_cut": _("The model ended in mid-answer: it reached its own limit of tokens."),
    "answer_empty": _("The model answered nothing."),
    "provider_unauthorized": _("The model's provider does not accept the configured key. Tell your operator."),
    "provider_rate_limited": _("The model's provider has too many requests at the moment. Try again later."),
    "provider_overloaded": _("The model's provider is overloaded at the moment. Try again later."),
    "provider_refused": _("The model's provider refused the request."),
    "provider_unreachable": _("The model's provider can't be reached. Try again later."),
    "provider_timeout": _("The model's provider took too long. Try again later."),
    "provider_cut": _("The connection to the model's provider broke in mid-answer."),
    "provider_invalid": _("The model's provider sent something that is no answer."),
    "context_overflow": _("The chat is longer than the model can take."),
    "endpoint_forbidden": _("The model's address is not allowed. Tell your operator."),
    "key_unreadable": _("The key of the model's provider can't be read. Tell your operator."),
    "no_model": _("No model is configured. Tell your operator."),
    "session_gone": _("Ended: the session that asked is over."),
    "mismatch": _("Ended: the session that asked is not yours."),
    "inactive": _("Ended: the account is blocked."),
    "unconfirmed": _("Ended: the e-mail address of the account is not confirmed."),
    "referral_required": _("Ended: the account needs a referral code."),
    "unauthorized": _("Ended: the session that asked may not act."),
    "forbidden": _("Ended: you may not use the assistant now."),
    "impersonated": _("Ended: somebody looks at the site in your name."),
    "rate_limited": _("Ended: your limit of calls a minute is reached."),
    "unavailable": _("Ended: the database was not available."),
    "internal_error": _("Ended: something failed on our side."),
    "confirmed": _("Confirmed: {tool}."),
    "confirmed_failed": _("Confirmed, but it was refused: {tool}."),
    "confirmed_unknown": _("Confirmed: {tool}. What came of it is not known; look before you repeat it."),
    "rejected": _("Rejected: {tool}."),
    "expired": _("Not confirmed in time: {tool}."),
}

# The texts with something to fill in; the longest first, as one may begin with another.
_FILLED = [
    (re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(text)), re.DOTALL), text)
    for text in sorted(TEXTS.values(), key=len, reverse=True)
    if "{" in text
]

# The model learns why its last answer ended.
_ENDS = frozenset(TEXTS) - {
    "history_cut",
    "result_truncated",
    "confirmed",
    "confirmed_failed",
    "confirmed_unknown",
    "rejected",
    "expired",
}


def text(code: str, **values: object) -> str:
    """What is stored in the chat. An unknown code is our own fault, and says so."""
    return _filled(TEXTS.get(code) or TEXTS["internal_error"], values)


def shown(stored: str) -> str:
    """A stored text in the language of who reads it, with what was filled in as it stands."""
    for pattern, text in _FILLED:
        if found := pattern.fullmatch(stored):
            return _filled(gettext(text), found.groupdict())
    return gettext(stored) if stored else ""


def told(code: str) -> str | None:
    """What the model is told of a notice of this code, as the server's word; None: nothing."""
    if code not in _ENDS:
        return None
    return f"(Server: your answer ended here, code {code}.)"


def _filled(text: str, values: Mapping[str, object]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text
