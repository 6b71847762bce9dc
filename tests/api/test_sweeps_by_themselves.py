"""Sweeps that nobody asks for: by the one process's timer, and by a real beat with a real worker (AP-5, AP-6)."""

import re
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import connection
from django.utils import timezone

from apps.api import registry
from apps.api.models import Approval, KeyFamily
from apps.catalogue.models import Product
from tests import services
from tests.api import brokers, factories
from tests.api.factories import Machine
from tests.api.held import wait_until
from tests.api.once import Gate
from tests.api.person import make_person
from tests.api.probe import WRITE
from tests.api.slow import make_slow
from tests.api.test_approval_progress import described
from tests.api.test_approval_races import decide, make_approver, silence, state
from tests.catalogue.factories import make_product

pytestmark = pytest.mark.alone

EACH_SECOND = {"API_APPROVALS_SWEEP_SECONDS": "1"}


@pytest.fixture
def machine(transactional_db: None, settings: Any) -> Machine:
    """Its writes are queued, and what this process approves is sent nowhere."""
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    return factories.make_machine(scopes=["catalogue:read", "catalogue:write"], requires_approval=True)


@pytest.fixture
def product(transactional_db: None) -> Product:
    """Ten in stock."""
    return make_product()


def asked(machine: Machine, product: Product, delta: int = 1) -> Approval:
    answer = machine.call("catalogue.adjust_stock", {"changes": [{"sku": product.sku, "delta": delta}]})
    return Approval.objects.get(pk=answer.json()["approval_id"])


def approved(machine: Machine, product: Product, delta: int = 1) -> Approval:
    """Approved, and its task lost."""
    approval = asked(machine, product, delta)
    approver = make_person(permissions=["api.decide_approval", "catalogue.view_product", "catalogue.change_product"])
    assert decide(approver, approval) == "approved"
    lose(approval)
    return approval


def lose(approval: Approval) -> None:
    """As a minute after its task was sent."""
    Approval.objects.filter(pk=approval.pk).update(sent_at=timezone.now() - timedelta(seconds=61))


def late(machine: Machine, product: Product) -> Approval:
    """Pending past its time."""
    approval = asked(machine, product, 100)
    Approval.objects.filter(pk=approval.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    return approval


def stock(product: Product) -> int:
    return Product.objects.get(pk=product.pk).stock


@pytest.mark.sqlite
def test_the_one_process_runs_what_was_never_started_and_ends_what_is_past_its_time_without_a_request(
    machine: Machine, product: Product, start_program: Callable[..., services.Program]
) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the one process has SQLite")
    at_start = approved(machine, product)
    start_program("uvicorn", **EACH_SECOND)
    wait_until(lambda: state(at_start) == ("done", ""))
    lost, pending = approved(machine, product, 2), late(machine, product)
    wait_until(lambda: (state(lost), state(pending)) == (("done", ""), ("expired", "")))
    assert stock(product) == 13


def test_beat_and_a_worker_move_what_is_stuck_and_run_what_is_sent_once(
    machine: Machine,
    product: Product,
    postgres_url: str,
    redis_server: services.Redis,
    start_tasks: Callable[..., services.Tasks],
) -> None:
    environment = {"CELERY_BROKER_URL": redis_server.url, **EACH_SECOND}
    waiting, pending = approved(machine, product), late(machine, product)
    worker = start_tasks("worker", **environment)
    wait_until(lambda: (state(waiting), state(pending)) == (("done", ""), ("expired", "")))  # it sweeps when it starts
    assert stock(product) == 11

    sent = approved(machine, product, 2)
    Approval.objects.filter(pk=sent.pk).update(sent_at=timezone.now())  # the sweeps leave it alone
    with brokers.pointed_at(redis_server.url):
        from config import celery

        for _ in range(3):
            celery.send("run_approval", str(sent.pk))
    wait_until(
        lambda: len(re.findall(r"run_approval\[\S+ succeeded", worker.log())) >= 3 + 1 and state(sent) == ("done", "")
    )
    assert (stock(product), Approval.objects.get(pk=sent.pk).attempt) == (13, 1)

    worker.pause()
    lost, pending = approved(machine, product, 4), late(machine, product)
    with brokers.pointed_at(redis_server.url):
        celery.send("run_approval", str(lost.pk))
    with redis.Redis(port=redis_server.port) as client:
        client.flushdb()
    worker.resume()
    start_tasks("beat", **environment)
    wait_until(lambda: (state(lost), state(pending)) == (("done", ""), ("expired", "")))
    assert stock(product) == 17
    assert "Traceback" not in worker.log()


def test_a_celery_worker_that_is_killed_at_40_percent_leaves_nothing_and_another_runs_on_while_the_broker_restarts(
    postgres_url: str,
    settings: Any,
    tmp_path: Path,
    redis_server: services.Redis,
    start_tasks: Callable[..., services.Tasks],
) -> None:
    settings.API_SEND_TASK = "config.celery.send"
    environment = {"CELERY_BROKER_URL": redis_server.url}
    gate = Gate(tmp_path)
    with registry.using(make_slow()), brokers.pointed_at(redis_server.url):
        machine = factories.make_machine(scopes=[WRITE], requires_approval=True)

        def approved(**body: Any) -> Approval:
            answer = machine.call("slow.import", body)
            approval = Approval.objects.get(pk=answer.json()["approval_id"])
            assert decide(make_approver(), approval) == "approved"
            return approval

        first = start_tasks("worker", application="tests.api.slow_celery", **environment)
        with gate.closed():
            killed = approved(gate=str(gate.path))
            gate.wait_for("40")
            wait_until(lambda: described(killed)["progress"] == 0.4)
            first.kill()
        silence(killed)
        before = KeyFamily.objects.count()
        start_tasks("worker", application="tests.api.slow_celery", **environment)
        wait_until(lambda: state(killed) == ("failed", "interrupted"))
        assert described(killed)["partial"]["done"] == 2

        Path(f"{gate.path}.40").unlink()
        with gate.closed():
            held = approved(gate=str(gate.path), many=1)
            gate.wait_for("40")
            redis_server.kill()
            redis_server.start()
        wait_until(lambda: state(held) == ("done", ""))
        sent = approved(many=2)
        wait_until(lambda: state(sent) == ("done", ""))
    assert KeyFamily.objects.count() == before + 2


def test_a_failing_check_stops_a_worker_and_beat_before_their_first_task(
    process_environment: dict[str, str], redis_server: services.Redis
) -> None:
    environment = {**process_environment, "CELERY_BROKER_URL": redis_server.url, "REDIS_URL": "", "EMBEDDED": "0"}
    for role in ("worker", "beat"):
        command = services.Tasks(role, environment)
        answer = subprocess.run(
            command.command(),
            env=environment,
            cwd=command.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        command.remove()
        assert answer.returncode != 0
        assert "not a shared cache" in answer.stderr
        assert " ready." not in answer.stdout + answer.stderr
