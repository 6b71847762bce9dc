"""The flow of one call, driven over HTTP (RF-1 to RF-13)."""

import pytest

from apps.activity.models import Entry
from apps.api.models import Setting
from tests.api.factories import Machine

pytestmark = pytest.mark.sqlite


def test_a_key_reads_through_the_whole_flow(machine: Machine) -> None:
    answer = machine.call("probe.echo", {"text": "grüß dich"})
    assert answer.status_code == 200
    assert answer.json()["text"] == "grüß dich"
    assert answer.headers["RateLimit"].startswith('"key";r=599')


def test_an_effect_and_its_entry_commit_together(machine: Machine) -> None:
    assert machine.call("probe.store", {"name": "a"}).json() == {"name": "a", "value": 1}
    assert Setting.objects.filter(name="a").exists()
    entry = Entry.objects.get(action="api.request")
    assert entry.metadata["outcome"] == "ok"
    assert Entry.objects.get(action="probe.row_stored").request_id == entry.request_id


def test_a_preview_answers_and_writes_only_its_entry(machine: Machine) -> None:
    answer = machine.call("probe.store", {"name": "a", "dry_run": True})
    assert answer.json()["status"] == "preview"
    assert not Setting.objects.filter(name="a").exists()
    assert Entry.objects.get(action="api.request").metadata["outcome"] == "preview"
