"""Metrics: every call that ended is counted once under labels that nobody can multiply, and the page is for the few."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from prometheus_client import REGISTRY

from apps.api import observers, registry
from tests.api import factories, probe
from tests.api.factories import Machine

pytestmark = pytest.mark.sqlite

OUTSIDE = "203.0.113.7"


@pytest.fixture
def machine(transactional_db: None) -> Iterator[Machine]:
    """A superuser's key with both scopes of the probe, whose tools are all there are."""
    with registry.using(probe.make_probe()):
        yield factories.make_machine(scopes=[probe.READ, probe.WRITE])


@pytest.fixture
def counted() -> Callable[[], dict[tuple[str, str, str], int]]:
    """The calls that were counted since the test began, by audience, tool and outcome."""
    before = _counts()
    return lambda: {key: count - before.get(key, 0) for key, count in _counts().items() if count != before.get(key, 0)}


def _counts() -> dict[tuple[str, str, str], int]:
    return {
        (sample.labels["audience"], sample.labels["tool"], sample.labels["outcome"]): int(sample.value)
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == "tollhouse_calls_total"
    }


def _timed() -> float:
    return REGISTRY.get_sample_value("tollhouse_call_seconds_count", {"audience": "admin"}) or 0


def test_each_call_counts_once_by_its_outcome(machine: Machine, counted: Any) -> None:
    timed = _timed()
    once = {"Idempotency-Key": "k" * 16}

    machine.call("probe.echo", {"text": "a"})
    machine.call("probe.echo", {"number": "x"})
    machine.call("probe.store", {"name": "a", "value": 2, "dry_run": True})
    machine.call("probe.act", {})
    for _ in range(3):
        machine.call("probe.store", {"name": "b"}, headers=once)
    machine.call("probe.store", {"name": "refused"})

    assert counted() == {
        ("admin", "probe.echo", "ok"): 1,
        ("admin", "probe.echo", "validation_failed"): 1,
        ("admin", "probe.store", "preview"): 1,
        ("admin", "probe.act", "confirmation_required"): 1,
        ("admin", "probe.store", "ok"): 1,
        ("admin", "probe.store", "replayed"): 2,
        ("admin", "probe.store", "probe_refused"): 1,
    }
    assert _timed() - timed == 8


def test_a_stranger_and_a_visitor_count_and_an_invented_name_is_no_label(machine: Machine, counted: Any) -> None:
    factories.set_setting("api_public_enabled", True)

    Machine(text="not-a-key").call("probe.echo")
    machine.call("made.up")
    machine.call("made.up_too")
    Machine().call("probe.look")
    Machine().call("probe.echo")

    assert counted() == {
        ("admin", "", "unauthorized"): 1,
        ("admin", "", "not_found"): 2,
        ("public", "probe.look", "ok"): 1,
        ("public", "", "not_found"): 1,
    }


def test_a_listing_is_no_call(machine: Machine, counted: Any) -> None:
    machine.tools()

    assert counted() == {}


def test_a_receiver_that_fails_is_logged_and_changes_no_answer(
    machine: Machine, counted: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("a broken receiver")

    observers.call_ended.connect(fail)
    try:
        answer = machine.call("probe.echo", {"text": "a"})
    finally:
        observers.call_ended.disconnect(fail)

    assert (answer.status_code, answer.json()["text"]) == (200, "a")
    assert "a broken receiver" in caplog.text
    assert counted() == {("admin", "probe.echo", "ok"): 1}


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_this_machine_sees_all_series_and_those_of_the_process(client: Client, address: str) -> None:
    answer = client.get("/metrics", REMOTE_ADDR=address)

    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    assert b"# TYPE tollhouse_calls_total counter" in answer.content
    assert b"# TYPE tollhouse_call_seconds histogram" in answer.content
    assert b"process_resident_memory_bytes " in answer.content
    assert b"_created" not in answer.content


@pytest.mark.parametrize(
    ("address", "status"), [("10.1.2.3", 200), ("fd00::7", 200), ("11.0.0.1", 404), ("fe80::7", 404), ("", 404)]
)
def test_the_named_networks_see_it(client: Client, settings: Any, address: str, status: int) -> None:
    settings.METRICS_NETWORKS = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]

    assert client.get("/metrics", REMOTE_ADDR=address).status_code == status


@pytest.mark.parametrize("method", ["get", "head", "post", "put", "options"])
def test_for_others_it_is_a_page_that_is_not_there(settings: Any, method: str) -> None:
    client = Client(enforce_csrf_checks=True)
    answers = [getattr(client, method)(path, REMOTE_ADDR=OUTSIDE) for path in ("/metrics", "/nowhere")]

    here, nowhere = ((answer.status_code, answer.content, sorted(answer.headers)) for answer in answers)
    assert here == nowhere
    assert here[0] == 404


@pytest.mark.parametrize("hops", [0, 1, 2])
@pytest.mark.parametrize("remote", ["127.0.0.1", OUTSIDE])
@pytest.mark.parametrize(
    "forwarded",
    [OUTSIDE, f"127.0.0.1, {OUTSIDE}", f"{OUTSIDE}, 127.0.0.1", f"::1, {OUTSIDE}, ::1", "", "unknown", "127.0.0.1,"],
)
def test_no_forged_header_and_no_proxy_on_this_machine_opens_it(
    client: Client, settings: Any, hops: int, remote: str, forwarded: str
) -> None:
    settings.TRUSTED_PROXY_HOPS = hops

    assert client.get("/metrics", REMOTE_ADDR=remote, headers={"X-Forwarded-For": forwarded}).status_code == 404


def test_a_peer_outside_that_names_this_machine_stays_outside(client: Client, settings: Any) -> None:
    settings.TRUSTED_PROXY_HOPS = 1

    answer = client.get("/metrics", REMOTE_ADDR=OUTSIDE, headers={"X-Forwarded-For": "127.0.0.1"})

    assert answer.status_code == 404


def test_one_process_answers_for_all_where_they_share_a_folder(tmp_path: Path) -> None:
    def run(code: str) -> str:
        setup = "import django; django.setup(); from config import metrics; from django.test import Client\n"
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "PROMETHEUS_MULTIPROC_DIR": str(tmp_path),
        }
        done = subprocess.run(
            [sys.executable, "-c", setup + code], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    for _ in range(2):
        run("metrics.CALLS.labels('admin', 'a.tool', 'ok').inc()")

    assert 'tollhouse_calls_total{audience="admin",outcome="ok",tool="a.tool"} 2.0' in run(
        "print(Client().get('/metrics').content.decode())"
    )
