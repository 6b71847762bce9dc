"""What a write costs the database (SP-1): queries besides the handler's own, and commits."""

from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.factories import Machine
from tests.api.shop import Shop

# Not counted by SP-1.
FREE = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK", "SET")


class Price:
    """The queries and the commits of what runs inside."""

    def __init__(self, postgres_url: str) -> None:
        self._captured = CaptureQueriesContext(connection)

    def of(self, machine: Machine, body: dict[str, Any], tool: str = "shop.run") -> tuple[int, int, Any]:
        with self._captured as captured:
            answer = machine.call(tool, body)
        words = Counter(query["sql"].split()[0].rstrip(";").upper() for query in captured.captured_queries)
        counted = sum(count for word, count in words.items() if word not in FREE)
        return counted, words["COMMIT"], answer


@pytest.fixture
def price(postgres_url: str) -> Price:
    return Price(postgres_url)


def warm(machine: Machine) -> None:
    """A key's use is noted once a minute: not in what is counted."""
    machine.call("shop.run", {"dry_run": True})


def test_a_write_without_a_key(shop: Shop, price: Price) -> None:
    machine = shop.write(lambda given, ctx: {})
    warm(machine)
    queries, commits, answer = price.of(machine, {})
    assert answer.status_code == 200
    assert queries <= 5
    assert commits == 1


def test_a_write_with_a_key(shop: Shop, price: Price) -> None:
    machine = shop.write(lambda given, ctx: {})
    warm(machine)
    queries, commits, _ = price.of(machine, {"idempotency_key": "k"})
    assert queries <= 8
    assert commits == 2


def test_a_replay_claims_nothing_and_writes_no_entry(shop: Shop, price: Price) -> None:
    machine = shop.write(lambda given, ctx: {})
    machine.call("shop.run", {"idempotency_key": "k"})
    queries, commits, answer = price.of(machine, {"idempotency_key": "k"})
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert queries <= 3
    assert commits == 1


def test_a_prompt_and_its_redeeming(shop: Shop, price: Price) -> None:
    machine = shop.write(lambda given, ctx: {}, danger="always")
    warm(machine)
    queries, commits, answer = price.of(machine, {})
    assert queries <= 5
    assert commits == 1
    queries, commits, answer = price.of(machine, {"confirm_token": answer.json()["confirm_token"]})
    assert answer.status_code == 200
    assert queries <= 5
    assert commits == 1
