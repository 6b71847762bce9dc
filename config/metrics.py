"""Prometheus' view of the calls, and the page that shows it to those who may see it.

With PROMETHEUS_MULTIPROC_DIR in the environment the library keeps the numbers of all processes in files of that folder, and
any of them answers for all; without it each process answers for itself.
"""

import os
from functools import cache
from ipaddress import ip_address
from typing import Any

import prometheus_client
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from prometheus_client import CollectorRegistry, Counter, Histogram, multiprocess

from apps.api import addresses, observers
from apps.api.call import Answer, Call, Outcome

# A second series for each one, with the time of its birth, helps nobody here.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

# A name that no tool has is the caller's invention and never a label.
CALLS = Counter("tollhouse_calls", "Calls that ended.", ["audience", "tool", "outcome"])
SECONDS = Histogram(
    "tollhouse_call_seconds",
    "Seconds from the door to the answer.",
    ["audience"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


def connect() -> None:
    """Count from now on."""
    observers.call_ended.connect(count, dispatch_uid="config.metrics")


def count(*, call: Call, outcome: Outcome, seconds: float, **_: Any) -> None:
    """One call that ended."""
    _calls(call.audience, call.tool.name if call.tool else "", _word(outcome)).inc()
    _seconds(call.audience).observe(seconds)


# The library's own look-up takes a lock and checks the names: a third of the price. As many entries as series.
_calls = cache(CALLS.labels)
_seconds = cache(SECONDS.labels)


def _word(outcome: Outcome) -> str:
    if outcome.replayed:
        return "replayed"
    return outcome.outcome if isinstance(outcome, Answer) else outcome.problem.code


@csrf_exempt  # or a POST from elsewhere would tell this page from one that isn't there
@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """All series as text; for anybody else there is no such page."""
    if not _may_see(request):
        raise Http404
    return HttpResponse(
        prometheus_client.generate_latest(_registry()), content_type=prometheus_client.CONTENT_TYPE_LATEST
    )


def _registry() -> CollectorRegistry:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return prometheus_client.REGISTRY
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def _may_see(request: HttpRequest) -> bool:
    """The peer and everybody whom proxies name must be inside: an entry that is made up only adds one more to ask for.

    So neither a proxy on this machine nor a wrong TRUSTED_PROXY_HOPS opens the page.
    """
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR")
    chain = [request.META.get("REMOTE_ADDR", ""), *(forwarded.split(",") if forwarded is not None else ())]
    return all(_is_inside(addresses.caller({"REMOTE_ADDR": entry.strip()})) for entry in chain)


def _is_inside(ip: str) -> bool:
    if not ip:
        return False
    address = ip_address(ip)
    return address.is_loopback or any(address in network for network in settings.METRICS_NETWORKS)
