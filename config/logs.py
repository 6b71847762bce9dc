"""Logging: structlog and the standard library write through one handler, and no line leaves it with a secret in it.

JSON lines in production, readable ones in debug. The request id is bound by `config.edge.RequestId`.
"""

import logging
import re
import sys
from collections.abc import Callable
from typing import Any, cast

import structlog

# A key of the API (SPEC KY-1), and what follows an Authorization header however it was printed: as text, repr or JSON.
_KEY = r"th_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}"
_HEADER = r"""((?:authorization|x-api-key)(?:\\*["']\s*[:,=]|[:=])\s*b?\\*["']?)[^"'\\\r\n]+"""
# The tokens in the links of our mails.
_SLASH = "(?:/|%2F)"
_LINK = rf"({_SLASH}password{_SLASH}reset{_SLASH}[^/%\s]+{_SLASH}|{_SLASH}account{_SLASH}e-mail{_SLASH})(?!set-password\b)[\w.:%-]+"
# The keys of the providers of models, by their usual beginning.
_MODEL_KEY = r"\bsk-[\w-]{16,}"
_SECRET = re.compile(f"{_HEADER}|(\\bbearer\\s+)[^\\s\"'\\\\,;)]+|{_KEY}|{_MODEL_KEY}|{_LINK}", re.IGNORECASE)
_SIGNS = (
    "th_live_",
    "th_test_",
    "authorization",
    "x-api-key",
    "bearer",
    "sk-",
    "password/reset/",
    "account/e-mail/",
    "%2freset%2f",
    "e-mail%2f",
)
REDACTED = "[redacted]"

# Loggers of the servers: they set handlers of their own, past the redaction.
_SERVERS = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "_granian", "granian.access")


def redact(line: str) -> str:
    """The line without API keys, Authorization headers and the tokens of links in mails."""
    lowered = line.lower()
    if not any(sign in lowered for sign in _SIGNS):  # the expression alone costs ten times as much, on every request
        return line
    return _SECRET.sub(lambda match: f"{match[1] or match[2] or match[3] or ''}{REDACTED}", line)


class _Redacting(structlog.stdlib.ProcessorFormatter):
    """Redacts the rendered line, so that tracebacks and foreign loggers are covered too."""

    def format(self, record: logging.LogRecord) -> str:
        if not hasattr(record, "_logger"):
            return redact(super().format(record))
        # structlog's own: the base class would copy the record first, which is a third of the price of a line.
        line: Any = dict(cast(dict[str, Any], record.msg))
        for process in self.processors[1:]:  # the first one takes out what that way puts in
            line = process(None, record.levelname.lower(), line)
        return redact(line)


def configure(*, debug: bool) -> None:
    """Set up both libraries; called by the settings, safe to call again."""
    shared: list[Callable[..., Any]] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Redacting(processors=_renderers(debug=debug), foreign_pre_chain=shared))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in _SERVERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # The access line tells of a refused request; these loggers are for those that crashed.
    logging.getLogger("django.request").setLevel(logging.ERROR)
    logging.getLogger("django.security.DisallowedHost").setLevel(logging.CRITICAL)
    # Each request to a model's provider, with its address: the journal tells of them.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    # Who asks for the caller of a log line: nobody. This is a third of the price of one.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # the switch that Python's documentation names


def _renderers(*, debug: bool) -> list[Callable[..., Any]]:
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if debug:
        return [
            remove,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ]
    return [remove, structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
