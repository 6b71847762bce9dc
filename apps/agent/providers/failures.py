"""What went wrong with a provider, as one of the protocol's codes. No text of a provider's is taken over, unless it is asked for."""

from collections.abc import Iterator

from pydantic_ai import exceptions as theirs

from apps.agent.providers.outgoing import Forbidden
from apps.agent.providers.protocol import Failure, FailureCode

DETAIL = 300

# The first class that fits, most special first.
_CODES: tuple[tuple[type[Exception], FailureCode], ...] = (
    (theirs.ModelContextWindowExceededError, "context_overflow"),
    (theirs.ModelAuthenticationError, "provider_unauthorized"),
    (theirs.ModelRateLimitError, "provider_rate_limited"),
    (theirs.ModelUnavailableError, "provider_overloaded"),
    (theirs.ModelServerError, "provider_overloaded"),
    (theirs.ModelTimeoutError, "provider_timeout"),
    (theirs.ModelRequestTimeout, "provider_timeout"),
    (theirs.ModelQuotaExceededError, "provider_refused"),
    (theirs.ModelRequestRejectedError, "provider_refused"),
    (theirs.ContentFilterError, "provider_refused"),
)
# How servers of OpenAI's wire format word it, where they have no code for it.
_OVERFLOWS = (
    "maximum context length",
    "context length exceeded",
    "context window",
    "prompt is too long",
    "too many tokens",
)
_TOO_LARGE = 413


def of(error: Exception, *, has_begun: bool, key: str, explains: bool) -> Failure:
    """The failure of this error. `has_begun`: the provider had sent something of its answer."""
    causes = list(_chain(error))
    if any(isinstance(cause, Forbidden) for cause in causes):
        forbidden = next(cause for cause in causes if isinstance(cause, Forbidden))
        return Failure("endpoint_forbidden", str(forbidden))
    code = _code(error, has_begun=has_begun)
    return Failure(code, _detail(error, key=key, explains=explains), retry_after=getattr(error, "retry_after", None))


def _code(error: Exception, *, has_begun: bool) -> FailureCode:
    if getattr(error, "status_code", None) == _TOO_LARGE or _is_overflow(error):
        return "context_overflow"
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    if isinstance(error, theirs.ModelConnectionError):
        return "provider_cut" if has_begun or error.phase == "read" else "provider_unreachable"
    return "provider_invalid"


def _is_overflow(error: Exception) -> bool:
    if not isinstance(error, theirs.ModelRequestRejectedError):
        return False
    text = str(error).lower()
    return any(words in text for words in _OVERFLOWS)


def _detail(error: Exception, *, key: str, explains: bool) -> str:
    """Kind, status and the provider's own code; its words only on request, and never the key."""
    named = ("status_code", "provider_error_code", "provider_error_type")
    facts = [type(error).__name__, *(str(value) for name in named if (value := getattr(error, name, None)))]
    if explains:
        facts.append(_words(error))
    text = " ".join(facts)
    return (text.replace(key, "…") if key else text)[:DETAIL]


def _words(error: Exception) -> str:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else None
    return message if isinstance(message, str) else str(error)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
