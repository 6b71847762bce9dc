"""The edge: the request's id, the line of each request, and the policy of each page."""

import uuid
from typing import Any

import pytest
import structlog
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.utils import translation
from structlog.testing import capture_logs

from config import edge

pytestmark = pytest.mark.sqlite


@pytest.mark.parametrize("given", ["a", "A-b_c.9", "x" * 64])
def test_a_sane_request_id_is_kept(client: Client, given: str) -> None:
    assert client.get("/healthz", headers={"X-Request-ID": given})["X-Request-ID"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\n", "ä", "a,b", "<script>", "a\x00"])
def test_any_other_request_id_is_replaced(client: Client, given: str) -> None:
    made = client.get("/healthz", headers={"X-Request-ID": given})["X-Request-ID"]

    assert made != given
    assert uuid.UUID(hex=made).version == 4


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/admin/", "/sign-in/", "/api/v1/tools", "/api/nowhere"])
def test_every_answer_carries_the_id(client: Client, path: str) -> None:
    assert client.get(path, headers={"X-Request-ID": "r-1"})["X-Request-ID"] == "r-1"


def test_a_bad_host_gets_its_id_too(client: Client) -> None:
    answer = client.get("/", headers={"host": "evil.example.org", "X-Request-ID": "r-1"})

    assert (answer.status_code, answer["X-Request-ID"]) == (400, "r-1")


def test_a_request_leaves_one_line_without_its_query_string(client: Client) -> None:
    with capture_logs() as said:
        client.get("/healthz?token=secret", headers={"X-Request-ID": "r-1"})

    (line,) = said
    assert (line["method"], line["path"], line["status"]) == ("GET", "/healthz", 200)
    assert line["ms"] >= 0
    assert "secret" not in str(line)


def test_a_path_can_not_write_lines_or_colours_of_its_own(client: Client) -> None:
    with capture_logs() as said:
        client.get("/a%0Ab%1B%5B31m" + "c" * 1000)

    line = next(line for line in said if line["event"] == "request")
    assert line["path"].isprintable()
    assert len(line["path"]) < 400


def test_what_one_request_bound_does_not_reach_the_next() -> None:
    def view(request: HttpRequest) -> HttpResponse:
        seen.append(structlog.contextvars.get_contextvars())
        structlog.contextvars.bind_contextvars(left="behind")
        return HttpResponse()

    seen: list[dict[str, Any]] = []
    middleware = edge.RequestId(view)
    for name in ("r-1", "r-2"):
        middleware(RequestFactory().get("/", headers={"X-Request-ID": name}))

    assert seen == [{"request_id": "r-1"}, {"request_id": "r-2"}]


@pytest.mark.django_db
def test_our_pages_have_the_strict_policy_and_the_admin_a_looser_one(client: Client, admin_user: Any) -> None:
    client.force_login(admin_user)
    ours = client.get("/nowhere")["Content-Security-Policy"]
    theirs = client.get("/admin/")["Content-Security-Policy"]

    assert "default-src 'none'" in ours
    assert "require-trusted-types-for 'script'" in ours
    assert "img-src 'self' data:" in theirs
    assert "trusted-types" not in theirs
    assert "unsafe" not in ours + theirs


def test_an_answer_that_is_no_page_has_no_policy(client: Client) -> None:
    assert "Content-Security-Policy" not in client.get("/healthz")


@pytest.mark.django_db
def test_the_calls_of_machines_pass_by_what_only_people_need(client: Client) -> None:
    asked = client.get("/api/v1/nowhere", headers={"cookie": "sessionid=somebodys"}).wsgi_request

    assert not {"session", "user", "_messages"} & set(vars(asked))


@pytest.mark.django_db
def test_no_language_of_an_earlier_request_reaches_a_machine(client: Client) -> None:
    client.get("/sign-in/", headers={"accept-language": "de"})
    assert translation.get_language() == "de"
    client.get("/api/v1/nowhere", headers={"accept-language": "de"})

    assert translation.get_language() == "en"


@pytest.mark.django_db
def test_a_form_without_its_token_gets_a_page_and_a_call_of_the_assistant_a_problem() -> None:
    client = Client(enforce_csrf_checks=True)

    page, problem = client.post("/sign-in/"), client.post("/api/agent/conversations")

    assert (page.status_code, page["Content-Type"].partition(";")[0]) == (403, "text/html")
    assert (problem.status_code, problem["Content-Type"], problem.json()["reason"]) == (
        403,
        "application/problem+json",
        "csrf",
    )
