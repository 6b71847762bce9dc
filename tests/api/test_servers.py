"""The same over real sockets, behind both servers: the embedded one and the one of production."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from apps.activity.models import Entry
from apps.api.models import Setting
from tests.api import factories, hostile, problem
from tests.api.wire import Answer, Wire, chunked, connect, request
from tests.services import Program

pytestmark = pytest.mark.sqlite

LIST = "/api/v1/tools/catalogue.list_products"
STOCK = "/api/v1/tools/catalogue.adjust_stock"
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
TOO_LARGE = b"x" * 3_000_000


class Server:
    """A running server, and the Authorization header of a key that may call the catalogue."""

    def __init__(self, program: Program) -> None:
        machine = factories.make_machine(scopes=["catalogue:read", "catalogue:write"])
        self.name = program.server
        self.port = program.port
        self.program = program
        self.credential = f"Authorization: Bearer {machine.text}"

    def post(self, *headers: str, path: str = LIST, body: bytes | None = b"{}", version: str = "1.1") -> bytes:
        return request("POST", path, self.credential, *headers, body=body, version=version)

    def ask(self, *parts: bytes, method: str = "POST", pause: float = 0) -> Answer:
        """One answer on a connection of its own."""
        with connect(self.port) as one:
            for part in parts:
                one.send(part)
                time.sleep(pause)
            return one.read(method)

    def refuses(self, status: int, *parts: bytes, method: str = "POST") -> dict[str, Any]:
        return refusal(self.ask(*parts, method=method), status)


def refusal(answer: Answer, status: int) -> dict[str, Any]:
    assert answer.status == status, (answer.status, answer.body[:300])
    return problem.checked(answer.body, status=status, headers=answer.headers)


@pytest.fixture(params=["uvicorn", "granian"])
def server(request: pytest.FixtureRequest, start_program: Callable[..., Program]) -> Server:
    if connection.vendor == "sqlite" and request.param == "granian":
        pytest.skip("production has PostgreSQL")
    return Server(start_program(request.param))


def test_every_body_arrives_or_is_refused(server: Server, subtests: pytest.Subtests) -> None:
    head = server.post(JSON, CHUNKED, body=None)
    with subtests.test("chunked"):
        assert server.ask(head, chunked(b'{"lim', b'it":1}')).json()["products"] == []
        assert refusal(server.ask(head, chunked(b'{"nope":1}')), 422)["errors"][0]["pointer"] == "/nope"
    with subtests.test("chunked, byte by byte"):
        slow = [chunked(bytes([byte]), last=b"") for byte in b'{"limit":1}']
        assert server.ask(head, *slow, chunked(), pause=0.01).status == 200
    with subtests.test("an empty chunked body is an empty object"):
        assert server.ask(head, chunked()).status == 200
    with subtests.test("a length, byte by byte"):
        assert server.ask(*[bytes([byte]) for byte in server.post()], pause=0.001).status == 200
    for name, large in {
        "length": [server.post(body=TOO_LARGE)],
        "chunked": [head, chunked(*[TOO_LARGE[:100_000]] * 30)],
        "length alone": [server.post(JSON, "Content-Length: 3000000", body=None)],
    }.items():
        with subtests.test("too large", kind=name):
            assert server.refuses(413, *large)["code"] == "body_too_large"
    for name, body in hostile.UNREADABLE.items():
        with subtests.test("unreadable", name=name):
            assert server.refuses(400, server.post(body=body))["code"] == "invalid_json"
            assert server.refuses(400, head, chunked(body[:5], body[5:]) if len(body) > 5 else chunked(body))


def test_half_a_body_runs_nothing(server: Server) -> None:
    entries = Entry.objects.count()
    half = b'{"changes":[{"sku":"A-1","delta":1}]}'
    with connect(server.port) as one:
        one.send(server.post(JSON, "Content-Length: 1000", path=STOCK, body=None), half)
        one.finish()
        assert one.is_closed() or server.name == "granian"
    with connect(server.port) as one:
        # granian gives the same end to a body that broke off and to one that ended: only text that is no JSON shows it.
        came = half if server.name == "uvicorn" else half[:20]
        one.send(server.post(JSON, CHUNKED, path=STOCK, body=None), chunked(came, last=b""))
    assert server.ask(server.post()).status == 200
    assert Entry.objects.count() == entries


def test_a_connection_serves_on_after_an_answer_and_after_a_refusal(server: Server, subtests: pytest.Subtests) -> None:
    for name, first, status in [
        ("an answer", server.post(), 200),
        ("an unknown tool", server.post(path="/api/v1/tools/nope"), 404),
        ("an unknown path", server.post(path="/api/nope", body=None), 404),
        ("an unreadable body", server.post(body=b"{"), 400),
        ("an invalid body", server.post(body=b'{"nope":1}'), 422),
        ("another media type", server.post("Content-Type: text/plain"), 415),
        ("another method", request("PUT", LIST, server.credential), 405),
        ("no credential", request("POST", LIST), 401),
        ("a chunked body", server.post(JSON, CHUNKED, body=None) + chunked(b'{"limit":1}'), 200),
        ("an unreadable chunked body", server.post(JSON, CHUNKED, body=None) + chunked(b"{"), 400),
    ]:
        with subtests.test(name), connect(server.port) as one:
            one.send(first)
            assert one.read().status == status
            one.send(server.post())
            assert one.read().status == 200
    with subtests.test("pipelined"), connect(server.port) as one:
        one.send(server.post() + server.post(body=b"{") + server.post())
        assert [one.read().status for _ in range(3)] == [200, 400, 200]
    for name, first in {
        "too large": server.post(body=TOO_LARGE),
        "unread": server.post(path="/api/nope", body=TOO_LARGE),
    }.items():
        with subtests.test(name), connect(server.port) as one:
            one.send(first)
            refusal(one.read(), 413 if name == "too large" else 404)
            serves_on_or_closes(one, server)


def serves_on_or_closes(one: Wire, server: Server) -> None:
    """What is left of a body that nobody read is never taken for a request."""
    one.send(server.post())
    try:
        assert one.read().status == 200
    except (ConnectionError, TimeoutError):
        assert one.is_closed()


def test_headers_that_come_twice_or_odd(server: Server, subtests: pytest.Subtests) -> None:
    for second in (server.credential, "Authorization: Bearer x", "authorization: Basic YTpi"):
        with subtests.test("two credentials", second=second[:25]):
            assert server.refuses(400, server.post(second))["code"] == "bad_request"
            assert server.refuses(400, request("POST", LIST, second, server.credential, body=b"{}"))
    with subtests.test("two media types"):
        assert server.refuses(415, server.post("Content-Type: text/plain"))
    for name, parameters in {
        "unknown encoding": "charset*=nope''%41",
        "NUL": "charset*=utf-8''%00",
        "a codec that is none": "charset=hex",
        "a thousand": ";".join(["a=b"] * 1_000),
    }.items():
        with subtests.test("odd media type", name=name):
            assert server.refuses(415, server.post(f"{JSON}; {parameters}", "Content-Length: 2", body=None) + b"{}")
    for host in ("evil.example.org", "localhost:99999999999", "a_b"):
        with subtests.test("another host", host=host):
            other = server.post().replace(b"Host: localhost", f"Host: {host}".encode())
            answer = server.ask(other)
            assert answer.status == (200 if host.startswith("localhost") else 400)
            if answer.status == 400:
                assert refusal(answer, 400)["code"] == "bad_request"
    with subtests.test("Latin-1"):
        assert server.ask(server.post("Accept-Language: \xff", "Cookie: sessionid=\xff", "X-A: \xe9")).status == 200
    with subtests.test("a long header"):
        assert server.ask(server.post("X-A: " + "a" * 30_000)).status == 200


def test_paths_and_methods(server: Server, subtests: pytest.Subtests) -> None:
    for path in (
        "/api/v1/tools/a%00b",
        "/api/v1/tools/%ff%fe",
        "/api/v1/tools/%ed%a0%80",
        "/api/v1/tools/%",
        "/api/v1/tools/%zz",
        "/api/v1/tools/" + "x" * 30_000,
        "/api/v1/tools/..",
        "/api/v1/../v1/tools",
        "/api//v1/tools",
        "/api/v1/tools/nope",
        "/api/",
        "/api",
    ):
        with subtests.test(path=path[:40]):
            assert server.refuses(404, server.post(path=path))["code"] == "not_found"
    for method in ("OPTIONS", "TRACE", "PUT", "PATCH", "DELETE", "PROPFIND"):
        with subtests.test(method=method):
            answer = server.ask(request(method, LIST, server.credential), method=method)
            refusal(answer, 405)
            assert answer.headers["Allow"] == "POST"
    with subtests.test("HEAD"):
        answer = server.ask(request("HEAD", "/api/v1/tools", server.credential), method="HEAD")
        assert (answer.status, answer.body) == (200, b"")
        assert answer.headers["X-Request-ID"]
    with subtests.test("the last slash"):
        assert server.ask(server.post(path=f"{LIST}/")).status == 200
        assert server.ask(request("GET", "/api/v1/tools/", server.credential), method="GET").status == 200


def test_old_and_careful_clients(server: Server, subtests: pytest.Subtests) -> None:
    with subtests.test("HTTP/1.0"):
        assert server.ask(server.post(version="1.0")).json()["products"] == []
    with subtests.test("HTTP/1.0, kept alive"), connect(server.port) as one:
        one.send(server.post("Connection: keep-alive", version="1.0"))
        assert one.read().status == 200
        serves_on_or_closes(one, server)
    careful = server.post(JSON, "Content-Length: 2", "Expect: 100-continue", body=None)
    with subtests.test("Expect: 100-continue"), connect(server.port) as one:
        one.send(careful)
        time.sleep(0.2)
        one.send(b"{}")
        assert one.read().status == 200
    with subtests.test("Expect: 100-continue and a body that nobody would take"):
        large = server.post(JSON, "Content-Length: 3000000", "Expect: 100-continue", body=None)
        assert server.refuses(413, large)["code"] == "body_too_large"


def test_what_is_no_http_is_refused_by_the_server_itself_and_the_next_client_is_served(
    server: Server, subtests: pytest.Subtests
) -> None:
    head = f"POST {LIST} HTTP/1.1\r\nHost: localhost\r\n".encode()
    for broken in (
        b"garbage\r\n\r\n",
        b"GET /api/v1/tools\r\n\r\n",
        b"POST /api/v1/tools/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        head + b"Content-Length: x\r\n\r\n",
        head + b"Content-Length: -1\r\n\r\n",
        head + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}}",
        head + b"Transfer-Encoding: identity\r\n\r\n",
        head + b"X-A: a\0b\r\n\r\n",
        head + b"X A: a\r\n\r\n",
    ):
        with subtests.test(broken=broken[-40:]), connect(server.port) as one:
            one.send(broken)
            assert one.read().status == 400
            assert one.is_closed()
    assert server.ask(server.post()).status == 200


def test_a_switch_holds_for_the_next_call_of_a_running_server(server: Server) -> None:
    assert server.ask(server.post()).status == 200
    Setting.objects.create(name="api_disabled_tools", value=["catalogue.list_products"])
    assert server.refuses(404, server.post())["code"] == "not_found"


def test_a_name_with_an_underscore_is_not_the_header_that_the_proxy_wrote(
    start_program: Callable[..., Program],
) -> None:
    server = Server(start_program("uvicorn", TRUSTED_PROXY_HOPS="1"))
    forged = ("X-Forwarded-For: 203.0.113.1", "X_Forwarded_For: 198.51.100.1")
    server.refuses(422, server.post(*forged, path=STOCK))
    assert Entry.objects.get(action="api.request").ip == "203.0.113.1"
