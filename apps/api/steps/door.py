"""Steps 1 to 3: the switch, no credential in the URL, who are you (RF-1 to RF-3)."""

import re

from apps.api import (
    addresses,
    credentials,
    switches,
)
from apps.api.call import Actor, Call
from apps.api.problems import Problem
from apps.api.ratelimit import doors
from apps.api.steps import exposure

MAINTENANCE_RETRY_SECONDS = 60

# Servers join a header that came twice with a comma, and no key has one.
_DOUBLED = re.compile(r"^\s*bearer\b.*,|,\s*bearer\b|^[\s,]*,[\s,]*$", re.IGNORECASE | re.DOTALL)


def switch(call: Call) -> None:
    """RF-1. One statement reads the settings and the key's row, so a change of either holds for this very call."""
    call.facts = credentials.read(_bearer(call) if call.audience == "admin" else None)
    call.switches = switches.parse(call.facts.settings)
    enabled = call.switches.api_admin_enabled if call.audience == "admin" else call.switches.api_public_enabled
    if not enabled:
        raise Problem("api_disabled", "This API is switched off.")
    if call.switches.maintenance_mode:
        retry_after = {"Retry-After": str(MAINTENANCE_RETRY_SECONDS)}
        raise Problem(
            "maintenance", "The application is under maintenance. Repeat the call later.", headers=retry_after
        )


def no_credential_in_url(call: Call) -> None:
    """RF-2: by name, and by the shape of a key anywhere in the URL. Refused even when the credential is valid."""
    entrance = call.entrance
    if exposure.in_url(entrance.path, entrance.query_string, request_id=entrance.request_id, ip=entrance.ip):
        raise credential_in_url()


def credential_in_url() -> Problem:
    return Problem("credential_in_url", "A credential does not belong in the URL. Send it as Authorization: Bearer.")


def authenticate(call: Call) -> None:
    """RF-3. Every reason for a refusal reads the same (KY-2)."""
    ip = call.entrance.ip
    if call.audience == "public":
        call.actor = Actor(kind="public", caller=addresses.network(ip), ip=ip)
        return
    assert call.facts is not None and call.switches is not None  # noqa: PT018, S101 - `switch` came first
    text = _bearer(call)
    if _DOUBLED.search(call.entrance.authorization or ""):
        raise Problem("bad_request", "The Authorization header must occur once.")
    key = credentials.verify(text, call.facts, ip=ip, switches=call.switches) if text else None
    if key is None:
        raise _unauthorized(ip)
    credentials.note_use(key.uuid, call.facts)
    call.actor = Actor(kind="key", caller=str(key.family), ip=ip, key=key, scope=key.owner)


def _bearer(call: Call) -> str | None:
    scheme, _, text = (call.entrance.authorization or "").strip().partition(" ")
    return text.strip() if scheme.lower() == "bearer" else None


def _unauthorized(ip: str) -> Problem:
    """401, or 429 for a network that failed too often; a valid key never comes here."""
    wait = doors.failed(group="api_key", network=addresses.network(ip))
    if wait is not None:
        headers = {"Retry-After": str(wait)}
        return Problem("rate_limited", "Too many failed authentications from this network.", headers=headers)
    return Problem(
        "unauthorized",
        "A valid API key is required as Authorization: Bearer.",
        headers={"WWW-Authenticate": 'Bearer realm="api"'},
    )
