"""Two callers at once: no update is lost, no stock falls below zero, nobody waits in a circle."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client

from apps.catalogue.models import Change, Product
from tests.api.factories import Machine
from tests.catalogue.factories import make_category, make_product

pytestmark = [pytest.mark.alone, pytest.mark.sqlite]

CALLERS = 8


def _race(machine: Machine, work: Callable[[Machine, int], list[str]]) -> Counter[str]:
    """What each of the callers answered, all with one key, each with a client and a connection of its own."""
    barrier = threading.Barrier(CALLERS)

    def caller(number: int) -> list[str]:
        own = Machine(text=machine.text, client=Client(raise_request_exception=False))
        barrier.wait()
        try:
            return work(own, number)
        finally:
            connection.close()

    with ThreadPoolExecutor(CALLERS) as pool:
        return Counter(code for codes in pool.map(caller, range(CALLERS)) for code in codes)


def _take(machine: Machine, skus: list[str], delta: int = -1) -> str:
    changes = [{"sku": sku, "delta": delta} for sku in skus]
    answer = machine.call("catalogue.adjust_stock", {"changes": changes})
    return "ok" if answer.status_code == 200 else str(answer.json()["code"])


def test_the_last_pieces_go_to_as_many_callers_as_there_are_pieces(writer: Machine) -> None:
    make_product(sku="A", stock=30)
    answers = _race(writer, lambda own, _: [_take(own, ["A"]) for _ in range(5)])
    assert answers == {"ok": 30, "stock_below_zero": 10}
    assert Product.objects.get().stock == 0
    assert Change.objects.count() == 30


def test_callers_that_name_products_in_another_order_do_not_block_each_other(writer: Machine) -> None:
    for sku in ("A", "B", "C"):
        make_product(sku=sku, stock=0)
    orders = (["A", "B", "C"], ["C", "B", "A"])
    answers = _race(writer, lambda own, number: [_take(own, orders[number % 2], +1) for _ in range(5)])
    assert answers == {"ok": 5 * CALLERS}
    assert set(Product.objects.values_list("stock", flat=True)) == {5 * CALLERS}


def test_one_caller_creates_a_sku_and_the_others_find_it_taken(writer: Machine) -> None:
    make_category()

    def create(own: Machine, number: int) -> list[str]:
        body = {"sku": "NEW", "name": f"Lamp {number}", "category": "lamps", "price": "1.00"}
        return [str(own.call("catalogue.create_product", body).json().get("code", "ok"))]

    assert _race(writer, create) == {"ok": 1, "sku_taken": CALLERS - 1}
    assert Change.objects.count() == 1
