"""Between HTTP and the gate: a request's facts, its body read strictly, and an outcome's bytes sent (IN-1, RF-11)."""

import re
from collections.abc import Callable
from typing import Any, assert_never
from uuid import uuid4

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from apps.api import addresses, key_text, problems, strict_json
from apps.api.call import Answer, Audience, Call, Entrance, Outcome, Refusal
from apps.api.problems import Problem

MAX_BODY = 2_000_000
# Less than this is read in a few milliseconds.
LARGE_BODY = 256 * 1024
_PIECE = 64 * 1024
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def call_of(request: HttpRequest, audience: Audience) -> Call:
    """A call at the door: nothing of the request is decided yet."""
    meta = request.META
    return Call(
        audience=audience,
        entrance=Entrance(
            request_id=request_id(request),
            ip=addresses.caller(meta),
            path=request.path,
            query_string=meta.get("QUERY_STRING", ""),
            authorization=meta.get("HTTP_AUTHORIZATION"),
            idempotency_key=meta.get("HTTP_IDEMPOTENCY_KEY"),
            accept_language=meta.get("HTTP_ACCEPT_LANGUAGE", ""),
            base_url=base_url(request),
            hosts=_hosts(request),
            http=request,
        ),
    )


def request_id(request: HttpRequest) -> str:
    """The id of the request, the same each time: a sane X-Request-ID, or made here."""
    found = getattr(request, "request_id", None)
    if found is None:
        sent = request.META.get("HTTP_X_REQUEST_ID", "")
        is_sane = _SANE_ID.fullmatch(sent) and not key_text.PATTERN.search(sent)
        found = sent if is_sane else uuid4().hex
        request.request_id = found  # type: ignore[attr-defined]  # Django's requests are open
    return str(found)


def read_json(request: HttpRequest) -> dict[str, Any]:
    """The body as a JSON object; an empty body is `{}`. Raises Problem: 400, 413 or 415."""
    found: dict[str, Any] = _read(request, _object)
    return found


def read_message(request: HttpRequest) -> Any:
    """The body as whatever JSON value it is, for a protocol that says itself what a message is. Raises what `read_json` raises."""
    return _read(request, _value)


def is_large(request: HttpRequest) -> bool:
    """Whether reading the body is work, as far as the headers tell."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    is_chunked = "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower()
    return is_chunked or len(length) > len(str(MAX_BODY)) or not length.isdecimal() or int(length) > LARGE_BODY


def _read(request: HttpRequest, parse: Callable[[HttpRequest, bytes], Any]) -> Any:
    data = _body(request)
    if not data:
        return {}
    try:
        return parse(request, data)
    except Problem as problem:
        problem.unread = data.decode("latin-1")
        raise


def _value(request: HttpRequest, data: bytes) -> Any:
    _refuse_other_media(request)
    try:
        return strict_json.loads(data)
    except strict_json.InvalidJSON as error:
        raise _invalid(error.reason, error.position) from None


def _object(request: HttpRequest, data: bytes) -> dict[str, Any]:
    value = _value(request, data)
    if not isinstance(value, dict):
        raise _invalid("the body must be an object", 0)
    return value


def response(outcome: Outcome) -> HttpResponse:
    """The outcome's bytes as they are, with its headers."""
    match outcome:
        case Answer():
            answer = HttpResponse(outcome.body, content_type="application/json")
        case Refusal():
            answer = HttpResponse(outcome.body, status=outcome.status, content_type=problems.MEDIA_TYPE)
        case _:
            assert_never(outcome)
    for name, value in outcome.headers.items():
        answer[name] = value
    answer["Cache-Control"] = "no-store"
    return answer


def problem_response(problem: Problem, request: HttpRequest) -> HttpResponse:
    """A problem of the transport itself: no call came into being."""
    body = strict_json.dumps(problems.document(problem, request_id(request)))
    return response(Refusal(problem=problem, body=body, headers=problem.headers))


def _body(request: HttpRequest) -> bytes:
    """The raw body. A chunked one has no length and stands in `wsgi.input` alone: Django and DRF would see it as empty."""
    meta = request.META
    if "chunked" in meta.get("HTTP_TRANSFER_ENCODING", "").lower():
        return _counted(meta["wsgi.input"])
    length = (meta.get("CONTENT_LENGTH") or "0").lstrip("0") or "0"
    if not length.isascii() or not length.isdigit():
        raise Problem("bad_request", "The Content-Length is not a number.")
    # By its digits first: Python refuses to read thousands of them.
    if len(length) > len(str(MAX_BODY)) or int(length) > MAX_BODY:
        raise _too_large()
    data = _counted(request)
    if len(data) < int(length):
        raise Problem("bad_request", "The body is shorter than its Content-Length.")
    return data


def _counted(stream: Any) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        while piece := stream.read(_PIECE):
            size += len(piece)
            if size > MAX_BODY:
                raise _too_large()
            pieces.append(piece)
    except OSError:
        raise Problem("bad_request", "The connection ended before the body did.") from None
    return b"".join(pieces)


def _refuse_other_media(request: HttpRequest) -> None:
    media_type, _, parameters = request.META.get("CONTENT_TYPE", "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if media_type.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise Problem("unsupported_media_type", "The body must be application/json in UTF-8.")
    if request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() != "identity":
        raise Problem("unsupported_media_type", "The body must not be compressed.")


def _too_large() -> Problem:
    return Problem("body_too_large", f"The body may have at most {MAX_BODY} bytes.", max_bytes=MAX_BODY)


def _invalid(reason: str, position: int | None) -> Problem:
    where = "" if position is None else f" at character {position}"
    return Problem("invalid_json", f"The body can't be read: {reason}{where}.", position=position)


def base_url(request: HttpRequest) -> str:
    """Where the project is, without the last slash: as it is configured, or as the request came."""
    return getattr(settings, "BASE_URL", "") or f"{request.scheme}://{request.get_host()}"


def _hosts(request: HttpRequest) -> tuple[str, ...]:
    """The canonical host first, then the others that the project answers for."""
    canonical = base_url(request).partition("://")[2]
    others = (
        host for host in settings.ALLOWED_HOSTS if "*" not in host and not host.startswith(".") and host != canonical
    )
    return (canonical, *others)
