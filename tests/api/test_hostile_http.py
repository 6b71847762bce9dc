"""Whatever arrives over HTTP is answered with the right status and a problem, and changes nothing (IN-1, PR-1, G15 to G18, G27, G28)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from pytest_django import Settings

from apps.activity.models import Entry
from apps.api.doorway import MAX_BODY
from apps.api.models import ApiKey, Setting
from tests.api import hostile, problem
from tests.api.factories import Machine

pytestmark = pytest.mark.sqlite

TOOLS = "/api/v1/tools"
ECHO = f"{TOOLS}/probe.echo"


@pytest.fixture(autouse=True, params=[False, True], ids=["production", "debug"])
def _debug(request: pytest.FixtureRequest, settings: Settings) -> None:
    settings.DEBUG = request.param


def send(machine: Machine, method: str = "POST", path: str = ECHO, body: bytes = b"{}", **meta: Any) -> Any:
    """A request made of raw parts: `path` is what the server unquoted, `meta` are names of WSGI."""
    headers = {} if "HTTP_AUTHORIZATION" in meta else machine.headers()
    sent = {"content_type": "application/json", **meta}
    return machine.client.generic(method, "/", body, headers=headers, PATH_INFO=path, **sent)


# --- Bodies ---------------------------------------------------------------------------------------------------------------------------


def test_a_body_that_two_readers_would_read_differently_is_invalid_json(
    machine: Machine, subtests: pytest.Subtests
) -> None:
    for label, body in hostile.UNREADABLE.items():
        for tool in ["probe.echo", "probe.store"]:
            with subtests.test(label=label, tool=tool):
                found = problem.of(machine.call(tool, body), 400, "invalid_json")
                assert found["position"] is not None
                assert f"at character {found['position']}" in found["detail"]


def test_a_body_that_the_schema_refuses_lists_its_faults(machine: Machine, subtests: pytest.Subtests) -> None:
    for label, body in hostile.INVALID.items():
        with subtests.test(label=label):
            answer = machine.call("probe.echo", body)
            found = problem.of(answer, 422, "validation_failed")
            assert 1 <= len(found["errors"]) <= 20
            assert all(set(error) == {"pointer", "message"} for error in found["errors"])
            assert len(answer.content) < 5_000


def test_nothing_changes_however_a_write_is_misspelled(machine: Machine) -> None:
    settings_before = Setting.objects.count()
    for body in [
        *hostile.UNREADABLE.values(),
        b'{"name":"a","dry_run":1}',
        b'{"name":"a","dry_run":true,"dry_run":false}',
    ]:
        assert machine.call("probe.store", body).status_code in (400, 422)
    assert Setting.objects.count() == settings_before
    # A body that could not be read is refused before the entries begin; one that the schema refused has its entry (RF-14).
    assert [entry.metadata["outcome"] for entry in Entry.objects.filter(action="api.request")] == ["error"]


def test_a_body_has_at_most_two_megabytes(machine: Machine) -> None:
    fits = b'{"text":"' + b"x" * (MAX_BODY - 11) + b'"}'
    assert len(fits) == MAX_BODY
    assert machine.call("probe.echo", fits).status_code == 500  # the echo of it is beyond the limit of a result
    found = problem.of(machine.call("probe.echo", fits + b" "), 413, "body_too_large")
    assert found["max_bytes"] == MAX_BODY
    problem.of(machine.call("probe.echo", b'{"text":"' + b"x" * 3_000_000), 413, "body_too_large")


def test_an_empty_body_is_an_empty_object(machine: Machine) -> None:
    assert machine.call("probe.echo", b"").json()["text"] == ""
    assert send(machine, body=b"", content_type="text/plain").json()["text"] == ""


def test_another_media_type_or_charset_is_unsupported(machine: Machine, subtests: pytest.Subtests) -> None:
    for media_type in [
        "",
        "text/plain",
        "text/json",
        "*/*",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/vnd.api+json",
        "application/json; charset=latin-1",
        "application/json; charset=utf-16",
        "application/json; charset=",
        "application/json, text/plain",
        "application/json" + "x" * 10_000,
    ]:
        with subtests.test(media_type=media_type):
            problem.of(send(machine, content_type=media_type), 415, "unsupported_media_type")


def test_json_in_utf_8_is_taken_however_it_is_spelled(machine: Machine, subtests: pytest.Subtests) -> None:
    for media_type in [
        "application/json",
        "APPLICATION/JSON",
        "application/json;charset=UTF-8",
        'application/json; charset="utf-8"',
    ]:
        with subtests.test(media_type=media_type):
            assert send(machine, content_type=media_type).status_code == 200


def test_a_compressed_body_is_unsupported(machine: Machine, subtests: pytest.Subtests) -> None:
    for coding in ["gzip", "deflate", "br", "gzip, identity", "x"]:
        with subtests.test(coding=coding):
            problem.of(send(machine, HTTP_CONTENT_ENCODING=coding), 415, "unsupported_media_type")


def test_a_length_that_is_none_or_too_long_is_refused_before_the_body_is_read(
    machine: Machine, subtests: pytest.Subtests
) -> None:
    odd = dict.fromkeys(["nope", "-1", "+2", "2, 2", "1e1", "٢", "2.0", " "], 400)
    long = dict.fromkeys(["3000000", "9" * 30, "9" * 5_000], 413)
    for length, status in {**odd, **long}.items():
        with subtests.test(length=length, status=status):
            problem.of(send(machine, CONTENT_LENGTH=length), status)


# --- Paths and methods ----------------------------------------------------------------------------------------------------------------


def test_a_path_that_does_not_exist_is_a_problem(machine: Machine, subtests: pytest.Subtests) -> None:
    for method in ["GET", "POST", "PUT"]:
        for path in [
            "/api",
            "/api/",
            "/api/v1",
            "/api/v1/",
            "/api/v2/tools",
            "/api/v1/tool",
            "/api//v1/tools",
            "/api/v1//tools",
            "/api/v1/tools//",
            "/api/v1/tools//probe.echo",
            "/api/v1/tools/probe.echo//",
            "/api/v1/tools/probe.echo/x",
            "/api/v1/tools/../tools",
            "/api/v1/tools/../../admin/",
            "/api/v1/tools/probe.echo/..",
            "/api/v1/tools\n",
            "/api/v1/tools/probe.echo/\n",
            "/api/v1/\x00",
            "/api/v1/\xff\xfe",
            "/api/v1/%",
            "/api/v1/" + "x" * 100_000,
            "/api/" + "/" * 10_000,
        ]:
            with subtests.test(method=method, path=path):
                answer = send(machine, method, path)
                problem.of(answer, 404, "not_found")
                assert "Location" not in answer.headers


@pytest.mark.parametrize("slash", ["", "/"])
def test_both_paths_work_with_and_without_the_last_slash(machine: Machine, visitor: Machine, slash: str) -> None:
    assert send(machine, "GET", TOOLS + slash).status_code == 200
    assert send(machine, "POST", ECHO + slash).status_code == 200
    assert send(visitor, "GET", f"/api/v1/public/tools{slash}").status_code == 200
    assert send(visitor, "POST", f"/api/v1/public/tools/probe.look{slash}").status_code == 200


METHODS = [
    "HEAD",
    "OPTIONS",
    "TRACE",
    "PUT",
    "PATCH",
    "DELETE",
    "CONNECT",
    "PROPFIND",
    "PO ST",
    "\x00",
    "X" * 1_000,
]


def test_a_tool_takes_post_alone(machine: Machine, subtests: pytest.Subtests) -> None:
    for method in ["GET", *METHODS]:
        for name in ["probe.echo", "probe.store", "nope"]:
            with subtests.test(method=method, name=name):
                answer = send(machine, method, f"{TOOLS}/{name}")
                assert answer.status_code == 405
                assert answer.headers["Allow"] == "POST"
                if method != "HEAD":
                    problem.of(answer, 405, "method_not_allowed")


def test_the_list_takes_get_and_head_alone(machine: Machine, subtests: pytest.Subtests) -> None:
    for method in ["POST", *METHODS[1:]]:
        for path in [TOOLS, "/api/v1/public/tools"]:
            with subtests.test(method=method, path=path):
                answer = send(machine, method, path)
                problem.of(answer, 405, "method_not_allowed")
                assert answer.headers["Allow"] == "GET, HEAD"


def test_an_overridden_method_is_not_looked_at(machine: Machine) -> None:
    assert send(machine, "POST", ECHO, HTTP_X_HTTP_METHOD_OVERRIDE="DELETE").status_code == 200
    answer = send(machine, "GET", ECHO, HTTP_X_HTTP_METHOD_OVERRIDE="POST", QUERY_STRING="_method=POST&format=api")
    problem.of(answer, 405, "method_not_allowed")


# --- Names of tools -------------------------------------------------------------------------------------------------------------------


def test_a_name_that_is_no_tool_does_not_exist_however_it_is_spelled(
    machine: Machine, subtests: pytest.Subtests
) -> None:
    for name in [
        "nope",
        "probe.nope",
        "PROBE.ECHO",
        "probe_echo",
        "probe.echo.",
        ".probe.echo",
        "probe..echo",
        " probe.echo",
        "probe.echo ",
        "probe.echo\n",
        "probe.echo\x00",
        "probe.echo;x=1",
        "probe.ech\xc3\xb6",
        "\uff50robe.echo".encode().decode("latin-1"),
        "probe\u200b.echo".encode().decode("latin-1"),
        "\x00",
        "\xff\xfe",
        "\xed\xa0\x80",
        "%00",
        "%ff",
        "%",
        "%2e%2e%2f",
        ".",
        "..",
        "*",
        "probe.*",
        "__class__",
        "x" * 100_000,
    ]:
        with subtests.test(name=name):
            found = problem.of(send(machine, path=f"{TOOLS}/{name}"), 404, "not_found")
            assert found["detail"] == "There is no such tool."


def test_a_switched_off_tool_stays_off_in_every_spelling(machine: Machine) -> None:
    Setting.objects.create(name="api_disabled_tools", value=["probe.echo"])
    for path in (ECHO, f"{ECHO}/", f"{TOOLS}/probe_echo", f"{TOOLS}/PROBE.ECHO", "/api/v1/public/tools/probe.echo"):
        assert send(machine, path=path).status_code in (403, 404)


# --- Headers --------------------------------------------------------------------------------------------------------------------------


def test_another_host_is_a_bad_request(machine: Machine, subtests: pytest.Subtests) -> None:
    for host in ["evil.example.org", "testserver@evil.example.org", "a b", "\x00", "test\xe4server", "testserver:x"]:
        with subtests.test(host=host):
            problem.of(send(machine, HTTP_HOST=host), 400, "bad_request")
            problem.of(send(machine, path="/api/v1/nope", HTTP_HOST=host), 400, "bad_request")


def test_odd_headers_do_not_disturb_a_read(machine: Machine, subtests: pytest.Subtests) -> None:
    for name, value in [
        ("HTTP_ACCEPT", "text/html"),
        ("HTTP_ACCEPT", "\x00"),
        ("HTTP_ACCEPT_LANGUAGE", "x" * 10_000),
        ("HTTP_ACCEPT_LANGUAGE", "a-" * 300),
        ("HTTP_ACCEPT_LANGUAGE", "\x00;q=\xff"),
        ("HTTP_COOKIE", 'sessionid="\\000a"; csrftoken=\xff'),
        ("HTTP_X_REQUEST_ID", "\x00"),
        ("HTTP_X_REQUEST_ID", "a" * 65),
        ("HTTP_X_REQUEST_ID", "a\r\nSet-Cookie: b=c"),
        ("HTTP_X_FORWARDED_FOR", "\x00, 1.2.3.4.5"),
        ("HTTP_IDEMPOTENCY_KEY", "\x00\xff"),
        ("HTTP_REFERER", "\x00"),
        ("HTTP_ORIGIN", "null"),
        ("REMOTE_ADDR", ""),
        ("REMOTE_ADDR", "nope"),
        ("QUERY_STRING", "%ff=%00&&&=&a"),
        ("QUERY_STRING", "&" * 10_000),
        ("wsgi.url_scheme", "\x00"),
    ]:
        with subtests.test(name=name, value=value):
            meta: dict[str, Any] = {name: value}
            answer = send(machine, **meta)
            assert answer.status_code == 200
            assert "Set-Cookie" not in answer.headers
            assert answer.headers["X-Request-ID"].isalnum()


def test_a_credential_that_is_none_is_unauthorized(machine: Machine, subtests: pytest.Subtests) -> None:
    for authorization in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer \x00",
        "Bearer \xff",
        "Basic YTpi",
        "Bearer th_test_",
        "Bearer a b",
        "Bearer " + "x" * 100_000,
        "bearer th_test_000000000000_" + "0" * 38,
        "Token x",
        "\x00",
    ]:
        with subtests.test(authorization=authorization):
            answer = send(machine, HTTP_AUTHORIZATION=authorization)
            problem.of(answer, 401, "unauthorized")
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_two_credentials_are_a_bad_request(machine: Machine) -> None:
    both = f"Bearer {machine.text},Bearer {machine.text}"
    problem.of(send(machine, HTTP_AUTHORIZATION=both), 400, "bad_request")


# --- Faults of our own ----------------------------------------------------------------------------------------------------------------


def crash(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """A middleware that fails before the view, after it, or never."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.headers.get("X-Crash") == "before":
            raise RuntimeError("a secret detail")
        answer = get_response(request)
        if request.headers.get("X-Crash") == "after":
            raise RuntimeError("a secret detail")
        return answer

    return middleware


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("place", [2, None], ids=["outside", "inside"])
def test_a_crash_is_a_problem_without_its_detail(
    machine: Machine, settings: Settings, when: str, place: int | None
) -> None:
    crashing = list(settings.MIDDLEWARE)
    crashing.insert(len(crashing) if place is None else place, f"{__name__}.crash")
    settings.MIDDLEWARE = crashing
    answer = send(machine, HTTP_X_CRASH=when)
    problem.of(answer, 500, "internal_error")
    assert b"secret" not in answer.content
    assert send(machine).status_code == 200


def test_pages_outside_the_api_keep_their_own_answers(machine: Machine) -> None:
    answer = machine.client.get("/apiary")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("value", ["true", '{"a"', [1]], ids=repr)
def test_a_switch_that_can_not_be_read_closes(machine: Machine, value: Any) -> None:
    Setting.objects.update_or_create(name="api_admin_enabled", defaults={"value": value})
    problem.of(send(machine), 403, "api_disabled")
    Setting.objects.filter(name="api_admin_enabled").update(value=True)
    Setting.objects.update_or_create(name="api_disabled_tools", defaults={"value": value if value != [1] else [1]})
    problem.of(send(machine), 404, "not_found")


def test_a_key_row_that_can_not_be_read_opens_nothing(machine: Machine) -> None:
    for field in ("scopes", "networks"):
        ApiKey.objects.update(scopes=["probe:read"], networks=[])
        ApiKey.objects.update(**{field: "everything"})
        answer = send(machine)
        assert answer.status_code in (401, 403, 500)
        problem.of(answer, answer.status_code)
