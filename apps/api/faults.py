"""What an exception of the database means for the caller: a conflict, a wait that was over, or a database that is not there."""

from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError, connection

from apps.api.problems import Problem

RETRY_AFTER_SECONDS = 2
LOCK_WAIT = "5s"

_SERIALIZATION = {"40001", "40P01"}
_LOCK_WAIT_OVER = {"55P03"}
_GONE_CLASSES = ("08", "53", "57P")
# Busy, locked; an I/O error, a full disk, a file that can't be opened.
_SQLITE_GONE = {5, 6, 10, 13, 14}


def is_serialization(error: BaseException) -> bool:
    """The transaction lost against another one and may be started again from its beginning."""
    return isinstance(error, DatabaseError) and _sqlstate(error) in _SERIALIZATION


def is_gone(error: BaseException) -> bool:
    """The connection or the server went away, or the database stayed busy: nothing is known to be wrong with the call."""
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, OperationalError):
        return False
    cause: Any = error.__cause__
    if hasattr(cause, "sqlite_errorcode"):
        return (cause.sqlite_errorcode & 0xFF) in _SQLITE_GONE
    state = _sqlstate(error)
    return state is None or state.startswith(_GONE_CLASSES)


def problem_of(error: BaseException) -> Problem | None:
    """The refusal for a fault of the database; None when the exception is the code's own fault."""
    if is_serialization(error):
        return conflict("serialization")
    if isinstance(error, DatabaseError) and _sqlstate(error) in _LOCK_WAIT_OVER:
        return conflict("busy")
    if is_gone(error):
        return unavailable()
    return None


def wait_at_most() -> None:
    """In the transaction that is open: a lock that is not there by then is a conflict, and nobody's thread is held for ever."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT}'")


def conflict(reason: str) -> Problem:
    return Problem("conflict", "Another change of the same data was faster. Repeat the call.", reason=reason)


def unavailable() -> Problem:
    return Problem(
        "unavailable",
        "The database can't be reached or is busy. Nothing was changed; repeat the call.",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def maybe_happened(*, gone: bool) -> Problem:
    """A write outside the database that ended in an undeclared way: nothing takes it back, and no repeat of it would be safe."""
    begun = "The call failed on our side after it had begun outside the database: it may have happened."
    return Problem("unavailable" if gone else "internal_error", f"{begun} Look before you call again.", retry="never")


def maybe_committed(*, replayable: bool) -> Problem:
    """The connection broke during COMMIT: only with an idempotency key can the call be repeated safely (ID-3)."""
    lost = "The connection to the database was lost at the end of the write: it may have happened."
    if replayable:
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
        return Problem("unavailable", f"{lost} Repeat the call with the same key.", retry="same_key", headers=headers)
    return Problem("unavailable", f"{lost} Look before you repeat it.", retry="never")


def _sqlstate(error: BaseException) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)
