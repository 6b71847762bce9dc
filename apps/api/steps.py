"""The steps of the flow (RF-1 to RF-10), each a function over the state of the call.

A step returns None to go on and nothing else by it, returns an Answer to end well, or raises Problem to refuse. Where a step stands in
the tuples of `gate` is the rule: what is refused before `open_audit` leaves no entry.
"""

from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl, unquote

from pydantic import ValidationError

from apps.api import (
    addresses,
    callers,
    canonical,
    confirmations,
    credentials,
    effect,
    external,
    guard,
    handlers,
    idempotency,
    key_text,
    keys,
    lifesigns,
    pricing,
    ratelimit,
    registry,
    schemas,
    scopes,
    strict_json,
    switches,
)
from apps.api.audit import Audit
from apps.api.call import Actor, Call, Outcome
from apps.api.idempotency import Claim
from apps.api.problems import Problem
from apps.api.ratelimit import Bucket, doors
from apps.api.tool import Tool

MAINTENANCE_RETRY_SECONDS = 60
MOST_MARKED = 5

# Names of a URL's fields that carry a credential elsewhere, in any case (KY-5).
CREDENTIAL_NAMES = frozenset(
    {"api_key", "apikey", "api-key", "key", "token", "access_token", "auth", "authorization", "secret"}
)


# --- Steps 1 to 3: who is at the door -------------------------------------------------------------------------------------------------


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
    shown = _shows_a_key(call, unquote(f"{entrance.path}?{entrance.query_string}"))
    fields = parse_qsl(entrance.query_string, keep_blank_values=True)
    if shown or any(name.lower() in CREDENTIAL_NAMES for name, _ in fields):
        raise Problem("credential_in_url", "A credential does not belong in the URL. Send it as Authorization: Bearer.")


def _shows_a_key(call: Call, text: str) -> bool:
    """Whether the text holds what looks like a key. Real ones are marked as exposed, a few of them: this is before the toll."""
    shown = {match.group() for match in islice(key_text.PATTERN.finditer(text), MOST_MARKED)}
    for key in shown:
        keys.mark_exposed(key, request_id=call.entrance.request_id, ip=call.entrance.ip)
    return bool(shown)


def authenticate(call: Call) -> None:
    """RF-3. Every reason for a refusal reads the same (KY-2)."""
    ip = call.entrance.ip
    if call.audience == "public":
        call.actor = Actor(kind="public", caller=addresses.network(ip), ip=ip)
        return
    assert call.facts is not None and call.switches is not None  # noqa: PT018, S101 - `switch` came first
    text = _bearer(call)
    if "," in (call.entrance.authorization or ""):
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


# --- Before step 4: the body ----------------------------------------------------------------------------------------------------------


def read_input(call: Call) -> None:
    """The body, where the transport brought a function that reads it. A refused body costs a key one unit (RF-14)."""
    try:
        if callable(call.input):
            call.input, call.read_strictly = call.input(), True
        _refuse_key_text(call)
    except Problem as problem:
        _shows_a_key(call, problem.unread)
        _pay_one(call)
        raise


def _refuse_key_text(call: Call) -> None:
    """A key's text anywhere in the input: refused, nothing stored, and a real key is marked as exposed (KY-5)."""
    for part in strict_json.parts(call.input):
        if isinstance(part, str) and _shows_a_key(call, part):
            raise Problem(
                "credential_in_body", "An API key does not belong in the body. Send it as Authorization: Bearer."
            )


# --- Step 4: the tool -----------------------------------------------------------------------------------------------------------------


def look_up(call: Call) -> None:
    """RF-4. A refusal costs a key one unit, so nobody loops over invented names for free."""
    try:
        call.tool = _visible(call)
    except Problem:
        _pay_one(call)
        raise


def _visible(call: Call) -> Tool:
    assert call.switches is not None  # noqa: S101 - `switch` came first
    name = call.resolve_name(call.name) if call.resolve_name else call.name
    tool = registry.current().find(call.audience, name)
    if tool is None or not call.switches.is_open(tool):
        raise Problem("not_found", "There is no such tool.")
    if not call.switches.is_on(tool.module):
        raise Problem("module_disabled", "The module of this tool is switched off.")
    find_scopes(call)
    if tool.scope is not None and tool.scope not in call.scopes:
        raise Problem("forbidden", "The key does not hold the scope of this tool.", scope=tool.scope)
    return tool


def find_scopes(call: Call) -> None:
    """KY-3: the key's scopes that its owner holds right now, computed once a request and trusted afterwards."""
    if call.actor is not None and call.actor.key is not None and call.switches is not None:
        call.scopes = scopes.held(call.actor.key.owner, call.actor.key.scopes, call.switches)


# --- Step 5: the toll -----------------------------------------------------------------------------------------------------------------


def charge_entry(call: Call) -> None:
    """A public call pays one unit of its network before anything is read or looked up (RL-3)."""
    _charge(call, [(_network_bucket(call), 1)])


def charge(call: Call) -> None:
    """The price of the call, from the key family's budget; a public call's from its token's and the rest from its network's."""
    tool = _tool(call)
    price = pricing.cost(tool, call.input)
    if call.audience == "admin":
        _charge(call, [(_key_bucket(call), price)])
        return
    token = callers.of(call)
    wanted = [(_token_bucket(call, token), price)] if token else []
    _charge(call, [*wanted, (_network_bucket(call), price - 1)] if price > 1 else wanted)


def charge_listing(call: Call) -> None:
    """A listing costs one unit (RL-1)."""
    _charge(call, [(_key_bucket(call), 1)] if call.audience == "admin" else [(_network_bucket(call), 1)])


def _pay_one(call: Call) -> None:
    """The unit of a call that is refused before its price is known; a public call has paid it at the entry."""
    if call.audience == "admin":
        _charge(call, [(_key_bucket(call), 1)])


def _charge(call: Call, wanted: list[tuple[Bucket, int]]) -> None:
    if not wanted:
        return
    verdict = ratelimit.charge(wanted)
    call.levels.update({level.bucket.policy: level for level in verdict.levels})
    if verdict.admitted:
        return
    if verdict.retry_after is not None:
        headers = {"Retry-After": str(verdict.retry_after)}
        raise Problem("rate_limited", "The budget of this minute is spent.", headers=headers)
    budget = min(bucket.budget for bucket, units in wanted if units > bucket.budget)
    fit = pricing.rows_that_fit(call.tool, budget) if call.tool else None
    context: dict[str, Any] = {} if fit is None else {"rows_that_fit": fit}
    raise Problem("rate_limited", "The call costs more than the whole budget of a minute.", retry="never", **context)


def _key_bucket(call: Call) -> Bucket:
    assert call.actor is not None and call.actor.key is not None and call.switches is not None  # noqa: PT018, S101
    budget = call.actor.key.budget or call.switches.api_key_budget
    return Bucket(policy="key", name=f"key:{call.actor.caller}", budget=budget)


def _network_bucket(call: Call) -> Bucket:
    assert call.actor is not None and call.switches is not None  # noqa: PT018, S101
    return Bucket(policy="network", name=f"network:{call.actor.caller}", budget=call.switches.api_network_budget)


def _token_bucket(call: Call, token: str) -> Bucket:
    assert call.switches is not None  # noqa: S101
    return Bucket(policy="token", name=token, budget=call.switches.api_token_budget)


# --- Step 6: the input ----------------------------------------------------------------------------------------------------------------


def open_audit(call: Call) -> None:
    """From here on a key's write leaves an entry, however it ends (RF-10)."""
    tool = _tool(call)
    if call.actor is None or call.actor.key is None or not tool.is_write:
        return
    call.audit = Audit(call=call, tool=tool, key=call.actor.key)
    call.before_commit.append(call.audit.with_effect)
    call.afterwards.append(call.audit.without_effect)


def validate(call: Call) -> None:
    """RF-6: the rows first, then the closed schema, then the handler's own types and the root's defaults."""
    tool = _tool(call)
    if not isinstance(call.input, dict):
        raise _invalid([schemas.fault("", "The input must be an object.")])
    if not call.read_strictly and (reason := strict_json.check_value(call.input)) is not None:
        raise _invalid([schemas.fault("", f"The input holds {reason}.")])
    if tool.max_items is not None and pricing.rows(call.input) > tool.max_items:
        raise Problem("too_many_items", f"At most {tool.max_items} rows are allowed.", max_items=tool.max_items)
    given = _with_header(call, tool)
    if found := schemas.faults(tool.validator, given):
        raise _invalid(found)
    call.control = {name: given[name] for name in schemas.CONTROL_FIELDS if name in given} if tool.is_write else {}
    own = {name: part for name, part in given.items() if name not in call.control}
    try:
        call.typed = tool.form.typed({**tool.defaults, **own})
    except ValidationError as error:
        raise _invalid([schemas.fault(schemas.pointer(row["loc"]), row["msg"]) for row in error.errors()]) from None
    if tool.is_write:
        call.input_hash = canonical.digest(tool.name, own)


def _with_header(call: Call, tool: Tool) -> dict[str, Any]:
    """A write's Idempotency-Key header is merged before validation, so it is held to the same rules as the field (RF-13)."""
    given: dict[str, Any] = call.input
    header = call.entrance.idempotency_key if call.idempotency_header and tool.is_write else None
    if header is None:
        return given
    if "idempotency_key" in given and _same_key(given["idempotency_key"]) != _same_key(header):
        raise _invalid([schemas.fault("/idempotency_key", "The header and the field differ.")])
    return {**given, "idempotency_key": header}


def _same_key(text: object) -> object:
    """The quoted and the bare form are one key; what is malformed is compared as it is."""
    return (idempotency.parse_key(text) if isinstance(text, str) else None) or text


def _invalid(errors: list[dict[str, str]]) -> Problem:
    return Problem(
        "validation_failed", "The input does not fit the tool's schema.", errors=errors[: schemas.MAX_FAULTS]
    )


# --- Step 7: asked before -------------------------------------------------------------------------------------------------------------


def asked_before(call: Call) -> Outcome | None:
    """RF-7: claim the record of this call's key, or answer what its finished twin answered. A preview asks nothing."""
    tool = _tool(call)
    key = _idempotency_key(call)
    if not tool.is_write or call.dry_run or (key is None and not tool.is_external):
        return None
    found = idempotency.claim(call, tool, key)
    if not isinstance(found, Claim):
        return found
    call.claim = found
    lifesigns.keep(found.work)
    call.before_commit.insert(0, partial(idempotency.finish, found))
    call.afterwards.insert(0, partial(_release, call, found))
    return None


def _idempotency_key(call: Call) -> str | None:
    text = call.control.get("idempotency_key")
    if text is None:
        return None
    key = idempotency.parse_key(text)
    if key is None:
        message = "The key must be 1 to 255 printable ASCII characters, bare or as a quoted string."
        raise _invalid([schemas.fault("/idempotency_key", message)])
    if callers.of(call) is None:
        raise _invalid([schemas.fault("/idempotency_key", "Without a client token nobody can tell whose key this is.")])
    return key


def _release(call: Call, claim: Claim, outcome: Outcome) -> None:
    try:
        if not call.settled and not call.unknown:
            idempotency.release(claim, outcome, ran=call.ran_outside)
    finally:
        lifesigns.let_go(claim.work)


# --- Steps 8 and 9: preview, danger, run ----------------------------------------------------------------------------------------------


def danger(call: Call) -> Outcome | None:
    """RF-8, what can be told before the effect's transaction: a preview is answered, and a key that must ask a person is refused.

    Redeeming a code and deciding danger belong to the state that the effect sees: `effect.admit` does both.
    """
    tool = _tool(call)
    if not tool.is_write:
        return None
    if call.dry_run:
        return _dry_run(call, tool)
    if call.actor is not None and call.actor.key is not None and call.actor.key.requires_approval:
        if "confirm_token" in call.control:
            raise confirmations.refused("invalid", "A key that requires approval has no codes.")
        raise Problem(
            "unavailable", "This key's writes need an approval, and this server can't take one yet.", retry="never"
        )
    return None


def _dry_run(call: Call, tool: Tool) -> Outcome:
    if "confirm_token" in call.control:
        raise _invalid([schemas.fault("/confirm_token", "A preview takes no code.")])
    with guard.read_only():
        shown, _ = handlers.preview(call, tool, handlers.context(call, dry_run=True))
    return handlers.answer({"status": "preview", "preview": shown}, outcome="preview")


def run(call: Call) -> Outcome:
    """RF-9: a read where nothing can be written, a write in its transaction."""
    tool = _tool(call)
    if tool.is_write:
        return _run_write(call, tool)
    with guard.read_only():
        return handlers.run(call, tool, handlers.context(call))


def _run_write(call: Call, tool: Tool) -> Outcome:
    try:
        return external.run(call, tool) if tool.is_external else effect.run(call, tool)
    except confirmations.WrongCode:
        confirmations.count_wrong(call, tool)
        raise


def _tool(call: Call) -> Tool:
    assert call.tool is not None  # noqa: S101 - `look_up` came first
    return call.tool
