"""Logs: one line for each thing said, with the request's id and without a secret."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from config import logs

pytestmark = pytest.mark.sqlite

KEY = f"th_live_{'A1b2C3d4E5f6'}_{'x' * 32}123456"


@pytest.fixture
def lines(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What the log's own handler writes; DEBUG as the parameter says."""
    root = logging.getLogger()
    before = root.handlers[:]
    logs.configure(debug=getattr(request, "param", False))
    written = io.StringIO()
    root.handlers[0].setStream(written)  # type: ignore[attr-defined]  # the handler that configure made
    yield written
    root.handlers[:] = before


def fail_with(secret: str) -> None:
    raise RuntimeError(secret)


@pytest.mark.parametrize("lines", [True, False], indirect=True)
@pytest.mark.parametrize(
    "text",
    [
        KEY,
        f"a key {KEY}, then",
        f"path=/api/?key={KEY}",
        "Authorization: Basic c2VjcmV0LXRleHQ=",
        "authorization=c2VjcmV0LXRleHQ=",
        repr({"HTTP_AUTHORIZATION": "Token c2VjcmV0LXRleHQ="}),
        repr((b"authorization", b"Digest c2VjcmV0LXRleHQ=")),
        json.dumps({"Authorization": "c2VjcmV0LXRleHQ="}),
        json.dumps(json.dumps({"Authorization": "c2VjcmV0LXRleHQ="})),
        "sent Bearer c2VjcmV0LXRleHQ= to it",
    ],
)
def test_no_line_holds_a_secret_however_it_came_there(lines: io.StringIO, text: str) -> None:
    structlog.get_logger("ours").info("said", text=text, nested={"list": [text]})
    structlog.get_logger("ours").info(text)
    logging.getLogger("theirs").warning("said %s", text)
    logging.getLogger("uvicorn.access").info('%s - "%s %s"', "127.0.0.1", "GET", text)
    logging.getLogger("granian.access").info(text)
    try:
        fail_with(text)
    except RuntimeError:
        logging.getLogger("theirs").exception("failed")
        structlog.get_logger("ours").exception("failed")

    written = lines.getvalue()
    assert written.count(logs.REDACTED) >= 8
    assert KEY not in written
    assert "c2VjcmV0LXRleHQ" not in written


def test_a_line_is_one_json_object_with_the_requests_id_also_from_foreign_loggers(lines: io.StringIO) -> None:
    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        structlog.get_logger("ours").info("said\nin two lines", count=1)
        logging.getLogger("theirs").warning("said %s", "Größe")

    ours, theirs = (json.loads(line) for line in lines.getvalue().splitlines())
    assert {**ours, "timestamp": ""} == {
        "event": "said\nin two lines", "count": 1, "request_id": "r-1", "level": "info", "logger": "ours", "timestamp": "",
    }  # fmt: skip
    assert (theirs["event"], theirs["request_id"]) == ("said Größe", "r-1")


def test_ordinary_text_is_left_alone() -> None:
    assert (
        logs.redact("th_live_ is the prefix; the bearer of this")
        == "th_live_ is the prefix; the bearer [redacted] this"
    )
    assert logs.redact("th_live_tooshort authorizations 3") == "th_live_tooshort authorizations 3"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("/password/reset/NDI/d0a1b2-c3d4e5f6/", "/password/reset/NDI/[redacted]/"),
        ("/account/e-mail/5f1b:1tY3Q0:Xa-_9/", "/account/e-mail/[redacted]/"),
        ("/password/reset/NDI/set-password/ /password/reset/done/ /account/e-mail/", None),
    ],
)
def test_the_links_of_mails_lose_their_tokens(said: str, kept: str | None) -> None:
    assert logs.redact(f'"path": "{said}"') == f'"path": "{kept or said}"'
