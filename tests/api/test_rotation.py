"""Rotating a key (KY-4): a successor with the same grant, a grace in which both work, one family."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from apps.activity.models import Entry
from apps.api import keys
from apps.api.models import ApiKey
from apps.api.registry import Registry
from tests.api import factories, probe
from tests.api.factories import SYSTEM, Machine

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]


def rotate(machine: Machine, *, grace: timedelta = timedelta(hours=1)) -> Machine:
    assert machine.key is not None
    key, text = keys.rotate(machine.key, grace=grace, by=None, actor=SYSTEM)
    return Machine(text=text, key=key)


def test_both_keys_work_in_the_grace_and_only_the_successor_after_it(machine: Machine) -> None:
    successor = rotate(machine)
    assert [machine.call("probe.echo").status_code, successor.call("probe.echo").status_code] == [200, 200]
    with time_machine.travel(timezone.now() + timedelta(minutes=61), tick=True):
        assert [machine.call("probe.echo").status_code, successor.call("probe.echo").status_code] == [401, 200]


def test_the_successor_has_the_same_grant_and_family(tools: Registry) -> None:
    expires_at = timezone.now() + timedelta(days=30)
    machine = factories.make_machine(
        scopes=[probe.READ], budget=20, networks=["127.0.0.0/8"], requires_approval=True, expires_at=expires_at
    )
    successor = rotate(machine)
    assert machine.key is not None
    assert successor.key is not None
    assert keys.grant_of(successor.key) == keys.grant_of(machine.key)
    assert successor.key.family_id == machine.key.family_id
    assert Entry.objects.get(action="api.key_rotated").metadata["successor"] == successor.key.public_id


def test_a_key_that_ends_before_its_grace_ends_then(tools: Registry) -> None:
    machine = factories.make_machine(scopes=[probe.READ], expires_at=timezone.now() + timedelta(minutes=1))
    assert machine.key is not None
    rotate(machine)
    assert ApiKey.objects.get(pk=machine.key.pk).expires_at == machine.key.expires_at


def test_revoking_the_old_key_ends_the_grace(machine: Machine) -> None:
    successor = rotate(machine)
    assert machine.key is not None
    assert keys.revoke(machine.key, by=None, actor=SYSTEM)
    assert [machine.call("probe.echo").status_code, successor.call("probe.echo").status_code] == [401, 200]


def test_a_key_is_rotated_once(machine: Machine) -> None:
    rotate(machine)
    with pytest.raises(keys.Stale):
        rotate(machine)


def test_a_revoked_key_is_not_rotated(machine: Machine) -> None:
    assert machine.key is not None
    keys.revoke(machine.key, by=None, actor=SYSTEM)
    with pytest.raises(keys.Stale):
        rotate(machine)


def test_budget_idempotency_and_codes_belong_to_the_family(machine: Machine) -> None:
    first = machine.call("probe.store", {"name": "a", "idempotency_key": "k"})
    prompt = machine.call("probe.act").json()
    successor = rotate(machine)
    again = successor.call("probe.store", {"name": "a", "idempotency_key": "k"})
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    assert successor.call("probe.act", {"confirm_token": prompt["confirm_token"]}).json() == {"acted": True}
    assert successor.call("probe.echo").headers["RateLimit"].startswith('"key";r=595;')


def test_the_entry_of_a_call_names_the_key_that_made_it(machine: Machine) -> None:
    successor = rotate(machine)
    successor.call("probe.store", {"name": "a"})
    assert successor.key is not None
    assert Entry.objects.get(action="api.request").metadata["key"] == successor.key.public_id
