"""Every action name of core, once (AC-1). A module's own are `<module key>.<verb_noun>`, accepted by shape."""

import re
from functools import lru_cache
from typing import Final

API_REQUEST: Final = "api.request"
API_KEY_CREATED: Final = "api.key_created"
API_KEY_CHANGED: Final = "api.key_changed"
API_KEY_REVOKED: Final = "api.key_revoked"
API_KEY_ROTATED: Final = "api.key_rotated"
API_KEY_EXPOSED: Final = "api.key_exposed"
API_SETTINGS_CHANGED: Final = "api.settings_changed"
API_IDEMPOTENCY_SETTLED: Final = "api.idempotency_settled"
API_CONFIRMATION_REJECTED: Final = "api.confirmation_rejected"
API_APPROVAL_DECIDED: Final = "api.approval_decided"
API_APPROVAL_CANCELLED: Final = "api.approval_cancelled"
API_APPROVAL_REOPENED: Final = "api.approval_reopened"
API_APPROVAL_EXPIRED: Final = "api.approval_expired"
API_APPROVAL_FAILED: Final = "api.approval_failed"

SESSION_STARTED: Final = "session.started"
SESSION_ENDED: Final = "session.ended"
SESSION_ROLE_CHOSEN: Final = "session.role_chosen"
SESSION_IMPERSONATED: Final = "session.impersonated"
SESSION_PASSWORD_CHANGED: Final = "session.password_changed"  # noqa: S105  # an action's name

ACCOUNT_EMAIL_CONFIRMED: Final = "account.email_confirmed"
ACCOUNT_REFERRAL_GIVEN: Final = "account.referral_given"
ACCOUNT_REFERRAL_CODE_CREATED: Final = "account.referral_code_created"
ACCOUNT_REFERRAL_CODE_CHANGED: Final = "account.referral_code_changed"

AGENT_SETTINGS_CHANGED: Final = "agent.settings_changed"
AGENT_PERSON_CHANGED: Final = "agent.person_changed"
AGENT_ENDPOINT_CREATED: Final = "agent.endpoint_created"
AGENT_ENDPOINT_CHANGED: Final = "agent.endpoint_changed"
AGENT_ENDPOINT_DELETED: Final = "agent.endpoint_deleted"
AGENT_ENDPOINT_TESTED: Final = "agent.endpoint_tested"

CORE: Final = frozenset(
    {
        API_REQUEST,
        API_KEY_CREATED,
        API_KEY_CHANGED,
        API_KEY_REVOKED,
        API_KEY_ROTATED,
        API_KEY_EXPOSED,
        API_SETTINGS_CHANGED,
        API_IDEMPOTENCY_SETTLED,
        API_CONFIRMATION_REJECTED,
        API_APPROVAL_DECIDED,
        API_APPROVAL_CANCELLED,
        API_APPROVAL_REOPENED,
        API_APPROVAL_EXPIRED,
        API_APPROVAL_FAILED,
        SESSION_STARTED,
        SESSION_ENDED,
        SESSION_ROLE_CHOSEN,
        SESSION_IMPERSONATED,
        SESSION_PASSWORD_CHANGED,
        ACCOUNT_EMAIL_CONFIRMED,
        ACCOUNT_REFERRAL_GIVEN,
        ACCOUNT_REFERRAL_CODE_CREATED,
        ACCOUNT_REFERRAL_CODE_CHANGED,
        AGENT_SETTINGS_CHANGED,
        AGENT_PERSON_CHANGED,
        AGENT_ENDPOINT_CREATED,
        AGENT_ENDPOINT_CHANGED,
        AGENT_ENDPOINT_DELETED,
        AGENT_ENDPOINT_TESTED,
    }
)

_PREFIXES = tuple({f"{action.partition('.')[0]}." for action in CORE})
_SHAPE = re.compile(r"[a-z][a-z0-9_]{0,30}\.[a-z][a-z0-9_]{0,62}")


@lru_cache(maxsize=1024)
def is_declared(action: str) -> bool:
    """True for core's actions, and for a well-formed one of a module: a module can't speak for core."""
    if action.startswith(_PREFIXES):
        return action in CORE
    return _SHAPE.fullmatch(action) is not None
