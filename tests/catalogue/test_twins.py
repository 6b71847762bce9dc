"""Callers of several processes with one key, and with one product: the stock moves once, nothing is lost, nobody is misled."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from apps.activity.models import Entry
from apps.catalogue.models import Change, Product, StockRequest
from tests.api import factories
from tests.api.factories import Machine
from tests.api.held import wait_until, waiting_for_a_lock
from tests.api.together import PROCESSES, THREADS, call_together
from tests.catalogue.factories import make_product, make_request
from tests.catalogue.prompts import prompt

pytestmark = pytest.mark.alone


def test_twins_of_four_processes_move_the_stock_once(
    postgres_url: str, writer: Machine, process_environment: dict[str, str], tmp_path: Path
) -> None:
    make_product(sku="A", stock=100)
    body = {"changes": [{"sku": "A", "delta": -1}], "idempotency_key": "order-17"}
    answers = call_together(writer, "catalogue.adjust_stock", body, environment=process_environment, folder=tmp_path)
    (ran,) = [row for row in answers if row["status"] == 200 and not row["replayed"]]
    replays = [row for row in answers if row["replayed"]]
    waits = [row for row in answers if row["status"] == 409]
    assert len(answers) == PROCESSES * THREADS == 1 + len(replays) + len(waits)
    assert {row["body"] for row in replays} <= {ran["body"]}
    assert {json.loads(row["body"])["code"] for row in waits} <= {"idempotency_in_progress"}
    assert all(row["retry_after"] for row in waits)
    assert Product.objects.get().stock == 99
    assert Change.objects.count() == Entry.objects.filter(action="catalogue.stock_adjusted").count() == 1
    assert writer.call("catalogue.adjust_stock", body).content.decode() == ran["body"]


def _behind_a_lock(call: Callable[[], Any], work: Callable[[], object]) -> Any:
    """The answer to a call that came to the product's row while this transaction held it, did its work and committed."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(call())
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    with transaction.atomic():
        Product.objects.select_for_update().get()
        thread.start()
        wait_until(lambda: waiting_for_a_lock() == 1)
        work()
    thread.join(30)
    return answers[0]


def _own(machine: Machine) -> Machine:
    return Machine(text=machine.text, client=Client(raise_request_exception=False))


def test_a_request_that_comes_while_its_product_is_being_deleted_stops_the_deletion(
    postgres_url: str, writer: Machine
) -> None:
    product = make_product(sku="A")
    body: dict[str, Any] = {"skus": ["A"]}
    body["confirm_token"] = prompt(writer, "delete_products", body)["confirm_token"]
    answer = _behind_a_lock(
        lambda: _own(writer).call("catalogue.delete_products", body),
        lambda: make_request(product, email="member@example.org"),
    )
    assert (answer.status_code, answer.json()["reason"]) == (409, "serialization")
    assert (Product.objects.count(), StockRequest.objects.count(), Change.objects.count()) == (1, 1, 0)


def test_stock_that_moves_while_its_product_is_being_deleted_is_asked_about_again(
    postgres_url: str, writer: Machine
) -> None:
    make_product(sku="A", stock=10)
    body: dict[str, Any] = {"skus": ["A"]}
    body["confirm_token"] = prompt(writer, "delete_products", body)["confirm_token"]
    answer = _behind_a_lock(
        lambda: _own(writer).call("catalogue.delete_products", body), lambda: Product.objects.update(stock=4)
    )
    assert answer.json()["reason"] == "changed"
    assert Product.objects.get().stock == 4


def test_a_price_that_another_caller_lowered_meanwhile_makes_the_change_dangerous(
    postgres_url: str, writer: Machine
) -> None:
    make_product(sku="A", price="10.00")
    body = {"changes": [{"sku": "A", "price": "13.00"}]}
    answer = _behind_a_lock(
        lambda: _own(writer).call("catalogue.update_prices", body),
        lambda: Product.objects.update(price="8.00"),
    )
    assert answer.json()["status"] == "confirmation_required"
    assert str(Product.objects.get().price) == "8.00"


def test_who_asks_for_a_product_that_is_being_deleted_hears_that_it_is_unknown(
    postgres_url: str, writer: Machine
) -> None:
    factories.set_setting("api_public_enabled", True)
    make_product(sku="A")
    body = {"sku": "A", "email": "member@example.org", "visitor": "a-visitor-of-16-characters"}
    answer = _behind_a_lock(
        lambda: Machine().call("catalogue.ask_for_stock", body), lambda: Product.objects.all().delete()
    )
    assert answer.json()["code"] == "unknown_sku"
    assert not StockRequest.objects.exists()
