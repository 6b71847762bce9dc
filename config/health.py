"""Health of one process: /healthz says that it answers, /readyz that it can work."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import structlog
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from apps.api import sweeps

log = structlog.get_logger(__name__)

SWEPT_WITHIN = timedelta(minutes=5)


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """Touches nothing: a process that answers this need not be restarted."""
    return HttpResponse("ok", content_type="text/plain")


@login_not_required
def readyz(request: HttpRequest) -> HttpResponse:
    """503 with the reasons when this process should get no traffic. The detail goes to the log: errors name hosts."""
    reasons = [reason for check in (_database, _cache, _broker, _sweeps) if (reason := _said(check))]
    found = {"ready": not reasons, "reasons": reasons, "last_sweep_seconds": _last_sweep_seconds()}
    return JsonResponse(found, status=503 if reasons else 200)


def _last_sweep_seconds() -> int | None:
    """How old the last sweep is; None when there was none, or nobody can tell: then a reason says so."""
    with suppress(Error):
        age = sweeps.last()
        return None if age is None else int(age.total_seconds())
    return None


def _said(check: Callable[[], str | None]) -> str | None:
    try:
        return check()
    except Exception:  # whatever a driver raises means "not ready"
        log.exception("not ready", check=check.__name__.strip("_"))
        return f"The {check.__name__.strip('_')} can't be reached."


def _database() -> str | None:
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return "Migrations are not applied."
    return None


def _cache() -> None:
    cache.get("readyz")


def _broker() -> None:
    """Where one is configured."""
    if settings.CELERY_BROKER_URL:
        from config.celery import app  # only an installation with a broker needs it

        with app.connection_for_write(connect_timeout=1) as connection:
            connection.ensure_connection(max_retries=0, timeout=1)


def _sweeps() -> str | None:
    """Approvals end and are started by the sweeps: beat's, the one process's, or the command's."""
    age = sweeps.last()
    if age is None:
        return "The sweeps have not run yet."
    limit = max(SWEPT_WITHIN, 4 * sweeps.approvals_every())
    return f"The last sweep was {int(age.total_seconds())} seconds ago." if age > limit else None
