import pytest
from apps.activity.models import Entry
from apps.api.models import Setting, IdempotencyRecord, Confirmation
from tests.api.factories import Machine

pytestmark = pytest.mark.sqlite


def test_replay(machine: Machine) -> None:
    a = machine.call("probe.store", {"name": "a", "idempotency_key": "k1"})
    b = machine.call("probe.store", {"name": "a"}, headers={"Idempotency-Key": '"k1"'})
    assert a.content == b.content and b.headers["Idempotent-Replayed"] == "true", (a.content, b.content)
    assert a.status_code == 200
    c = machine.call("probe.store", {"name": "b", "idempotency_key": "k1"})
    assert c.json()["code"] == "idempotency_key_reused"
    assert Entry.objects.filter(action="api.request").count() == 2
    r = machine.call("probe.store", {"name": "refused", "idempotency_key": "k2"})
    r2 = machine.call("probe.store", {"name": "refused", "idempotency_key": "k2"})
    assert r.status_code == 409 and r.content == r2.content and "Idempotent-Replayed" in r2.headers
    x = machine.call("probe.store", {"name": "broken", "idempotency_key": "k3"})
    assert x.status_code == 500 and not IdempotencyRecord.objects.filter(key="k3").exists()


def test_codes(machine: Machine) -> None:
    a = machine.call("probe.act", {}).json()
    assert a["status"] == "confirmation_required", a
    b = machine.call("probe.act", {"confirm_token": a["confirm_token"]})
    assert b.json() == {"acted": True}, b.content
    c = machine.call("probe.act", {"confirm_token": a["confirm_token"]})
    assert c.json()["reason"] == "used"
    for i in range(10):
        assert machine.call("probe.act", {"confirm_token": "nope"}).json()["reason"] == "invalid"
    assert machine.call("probe.act", {"confirm_token": "nope"}).status_code == 429
    d = machine.call("probe.weigh", {"weight": 11, "idempotency_key": "q"}).json()
    assert IdempotencyRecord.objects.get(key="q").state == "waiting"
    e = machine.call("probe.weigh", {"weight": 11, "idempotency_key": "q", "confirm_token": d["confirm_token"]})
    assert e.json() == {"weight": 11}
    assert IdempotencyRecord.objects.get(key="q").state == "done"
    assert machine.call("probe.weigh", {"weight": 11, "idempotency_key": "q"}).content == e.content
