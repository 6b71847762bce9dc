"""Entries of the log: their MAC survives every database, they can't be changed, and they commit with the effect."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.activity import actions, log
from apps.activity.models import AppendOnly, Entry

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def make_entry(**changes: Any) -> Entry:
    fields: dict[str, Any] = {
        "action": actions.API_REQUEST,
        "module": "catalogue",
        "mode": log.Mode.AUTO,
        "actor": log.Actor(kind="key", uuid=uuid4().hex, name="reader"),
        "resource_type": "key",
        "resource_uuid": uuid4().hex,
        "target": "catalogue.update_prices",
        "request_id": uuid4().hex,
        "ip": "192.0.2.7",
        "metadata": {"outcome": "ok", "rows": 3},
    }
    return log.write(**{**fields, **changes})


def read(entry: Entry) -> Entry:
    return Entry.objects.get(uuid=entry.uuid)


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"z": 1, "a": [1, 2, {"y": None, "b": True}]},
        {"text": 'Größe 尺寸 🦊 \\u0041 " \\ / é e\u0301'},
        {"numbers": [0, -1, 2**53 + 1, 2**63, 10**40, 1.0, -0.0, 0.1, 1e16, 1e22, 1.5e300, 5e-324, 1e-7]},
        {"big": 1.152921504606847e18, "third": 1 / 3},
        {"price": Decimal("10.50"), "id": uuid4(), "at": datetime(2026, 1, 2, tzinfo=UTC)},
        {1: "number", None: "null", "deep": ({"tuple": (1, 2)},)},
    ],
)
def test_an_entry_verifies_after_a_round_trip_whatever_its_metadata(metadata: dict[Any, Any]) -> None:
    entry = make_entry(metadata=metadata)

    assert log.verify(entry)
    assert log.verify(read(entry))


@pytest.mark.parametrize("ip", [None, "", "192.0.2.7", "2001:DB8::0:1", "::ffff:192.0.2.7", "fe80::1%eth0"])
def test_an_entry_verifies_whatever_the_spelling_of_its_address(ip: str | None) -> None:
    assert log.verify(read(make_entry(ip=ip)))


def test_an_entry_verifies_when_every_text_is_as_long_as_it_may_be() -> None:
    actor = log.Actor(kind="user", uuid="u" * 64, name="ü" * 500)

    assert log.verify(read(make_entry(actor=actor, target="t" * 500, request_id="r" * 64, resource_uuid="x" * 64)))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("action", actions.API_KEY_CREATED),
        ("module", "other"),
        ("mode", "cron"),
        ("actor_kind", "user"),
        ("actor_uuid", "someone else"),
        ("actor_name", "someone else"),
        ("resource_type", "user"),
        ("resource_uuid", "another"),
        ("target", "another"),
        ("request_id", "another"),
        ("ip", "192.0.2.8"),
        ("metadata", '{"outcome": "ok", "rows": 4}'),
        ("created_at", "2026-01-01 00:00:00+00:00"),
        ("mac", "0" * 64),
        ("mac_key_id", "unknown"),
    ],
)
def test_an_entry_that_was_changed_in_the_database_does_not_verify(column: str, value: str) -> None:
    entry = make_entry()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE activity_entry SET {column} = %s", [value])

    assert not log.verify(read(entry))


def test_two_entries_can_not_swap_their_macs() -> None:
    one, other = make_entry(), make_entry()

    one.mac, other.mac = other.mac, one.mac

    assert not log.verify(one)
    assert not log.verify(other)


def test_an_entry_of_an_older_key_verifies_as_long_as_the_key_is_known(settings: Any) -> None:
    entry = make_entry()
    settings.ACTIVITY_MAC_KEYS = {"new": "a-new-secret-of-the-suite", **settings.ACTIVITY_MAC_KEYS}

    assert log.verify(read(entry))
    assert make_entry().mac_key_id == "new"
    settings.ACTIVITY_MAC_KEYS = {"new": "a-new-secret-of-the-suite"}
    assert not log.verify(read(entry))


def test_an_entry_is_one_insert_and_nothing_else() -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        make_entry()

    assert [query["sql"].split()[0] for query in queries] == ["INSERT"]


def test_an_entry_goes_with_the_transaction_of_its_effect() -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        make_entry()
        raise RuntimeError

    assert not Entry.objects.exists()


def test_a_saved_entry_can_not_be_saved_again_or_deleted() -> None:
    entry = make_entry()

    for refused in (entry.save, entry.delete, read(entry).save, read(entry).delete):
        with pytest.raises(AppendOnly):
            refused()
    assert log.verify(read(entry))


def test_an_entry_made_with_the_uuid_of_another_does_not_replace_it() -> None:
    entry = make_entry()
    forged = Entry(uuid=entry.uuid, created_at=entry.created_at, action="x.y", mode="auto", actor_kind="key", mac="0")

    with pytest.raises(IntegrityError), transaction.atomic():
        forged.save()
    assert read(entry).action == actions.API_REQUEST


@pytest.mark.parametrize("method", ["update", "delete", "create", "bulk_create", "bulk_update", "get_or_create"])
def test_a_queryset_only_reads(method: str) -> None:
    make_entry()

    with pytest.raises(AppendOnly):
        getattr(Entry.objects.all(), method)()
    with pytest.raises(AppendOnly):
        getattr(Entry.objects, method)()


def test_a_failed_insert_leaves_the_transaction_unusable_and_nothing_written() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        make_entry(actor=log.Actor(kind="ghost"))

    assert not Entry.objects.exists()


@pytest.mark.parametrize("action", ["", "request", "api.unknown", "session.forged", "Catalogue.x", "a.b.c", "a b.c"])
def test_an_action_that_nobody_declared_is_refused(action: str) -> None:
    with pytest.raises(ValueError, match="no declared action"):
        make_entry(action=action)


def test_a_module_names_actions_of_its_own() -> None:
    assert read(make_entry(action="catalogue.update_prices")).action == "catalogue.update_prices"


def test_metadata_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        make_entry(metadata={"n": float("nan")})
