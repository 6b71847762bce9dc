"""`/problems/<code>`: what the `type` of a problem says, for a person (PR-1)."""

from collections.abc import Mapping

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from apps.api import problems, registry
from apps.api.problems import Retry

MEANINGS: Mapping[str, Promise] = {
    "bad_request": _(
        "The request is not one that this server understands: its address, a header or its length is wrong."
    ),
    "invalid_json": _(
        "The body is not the JSON that is asked for here: strict JSON in UTF-8, an object, no member twice, no number too large. "
        "The answer names the position."
    ),
    "credential_in_url": _(
        "A key stood in the address of the request. Addresses are kept in logs and histories, so the call was refused even though "
        "the key may be good. Send it in the Authorization header, and replace the key."
    ),
    "credential_in_body": _(
        "A key stood in the body of the request. Nothing of the body was kept. Send the key in the Authorization header alone, and "
        "replace it if others could read that body."
    ),
    "unauthorized": _(
        "There is no key, or none that opens anything: it is unknown, mistyped, expired or revoked, its owner may not act, or the call "
        "comes from outside its networks. The answer is the same for all of these."
    ),
    "forbidden": _(
        "The caller is known, but this tool is not theirs to call: the key lacks the scope, or its owner lacks a permission that the "
        "scope needs."
    ),
    "impersonated": _("Somebody is looking at the site as another person. Looking is all that this allows."),
    "api_disabled": _("The operator has switched this side of the API off."),
    "module_write_disabled": _("The operator does not let the assistant change anything in this module."),
    "not_found": _("There is nothing under this name, or nothing that this caller may know of."),
    "module_disabled": _("The tool belongs to a module that the operator has switched off."),
    "method_not_allowed": _("The address is right, but not with this method. The Allow header names those that are."),
    "not_acceptable": _("The Accept header asks for a form in which this answer does not exist."),
    "idempotency_in_progress": _(
        "A call with the same idempotency key is still running. It was not started a second time."
    ),
    "idempotency_outcome_unknown": _(
        "An earlier call with this idempotency key may have had its effect outside this system, or not: nobody knows. It is never "
        "repeated by itself. Look whether it happened; then an operator can settle it, and the same call is answered or runs."
    ),
    "confirm_token_invalid": _(
        "The confirmation code can't be used, and nothing was run. The reason in the answer says why: invalid (unknown, or another "
        "caller's), other_arguments (it belongs to another tool or input), used, rejected or expired. Call again without the code for a "
        "new preview and a new code."
    ),
    "conflict": _(
        "Something else was faster, and nothing was changed. The reason in the answer says what: busy or serialization (other calls "
        "change the same things: repeat it), too_many_waiting (as many calls of this caller wait for a confirmation or an approval as "
        "may: use their codes, take some back or let them expire), stale_preview or not_pending (the approval changed or ended "
        "meanwhile: look at it again), approval_rejected, approval_expired, approval_cancelled or approval_failed (the approval of this "
        "call ended without a result: ask anew with a new idempotency key). A module may have reasons of its own."
    ),
    "body_too_large": _("The body is larger than this server reads."),
    "unsupported_media_type": _("The body must be application/json, uncompressed."),
    "validation_failed": _(
        "The input is not what the tool's schema asks for. The answer lists each fault and where it is."
    ),
    "too_many_items": _(
        "The longest list of the input has more rows than the tool takes in one call. Send it in parts."
    ),
    "idempotency_key_reused": _("This idempotency key was used before, with other input. Nothing was run."),
    "rate_limited": _(
        "The caller has used up the budget of the last minute, and the RateLimit headers say how much there is and when; or it sent more "
        "wrong confirmation codes than anybody does by mistake."
    ),
    "internal_error": _(
        "Something broke here. Nothing is told about it but the request id, by which the operator finds it in the logs."
    ),
    "maintenance": _("The operator has paused the API."),
    "unavailable": _(
        "Something that this call needs is not there at the moment: a database that is busy, or a part that is switched off."
    ),
}

NEXT_STEPS: Mapping[Retry, Promise] = {
    "same_key": _("Send the same call again after a moment, with the same idempotency key if it had one."),
    "later": _("Wait as long as the Retry-After header says, then send the same call again."),
    "new_key": _("Send it as a new call, with a new idempotency key."),
    "never": _(
        "Don't send the same call again as it is: it would be refused again. Mend the cause; the detail of the answer says what is known."
    ),
}


@login_not_required  # for whom a gate is shut as well
@require_safe
def problem(request: HttpRequest, code: str) -> HttpResponse:
    """The page of one code, core's or a module's; 404 for any other."""
    kind = registry.current().kinds.get(code)
    if kind is None:
        raise Http404
    owner = next((module for module in registry.current().modules if code in module.problems), None)
    context = {
        "kind": kind,
        "title": gettext(str(kind.title)),
        "module": None if code in problems.CORE else owner,
        "meaning": MEANINGS.get(code),
        "next_step": NEXT_STEPS[kind.retry],
    }
    return render(request, "api/problem.html", context)
