"""What is not yours and what is not there are one answer: another's code, idempotency key and held call (ID-4, DG-3, LS-3)."""

from typing import Any
from uuid import uuid4

import pytest

from apps.api.call import Refusal
from tests.api import factories
from tests.api.factories import Machine
from tests.api.person import make_person
from tests.api.shop import PERMISSION, SCOPE, Shop

pytestmark = pytest.mark.sqlite

SAME = {"X-Request-ID": "same"}


def told(answer: Any) -> tuple[int, bytes, dict[str, str]]:
    return answer.status_code, answer.content, dict(answer.headers)


def make_shop(shop: Shop) -> tuple[Machine, Machine]:
    """Two callers of one dangerous write."""
    first = shop.write(lambda given, ctx: {"done": True}, danger="always", cost=lambda given: 1)
    return first, factories.make_machine(scopes=[SCOPE])


def test_anothers_code_and_no_code_at_all_are_one_answer(shop: Shop) -> None:
    first, second = make_shop(shop)
    code = first.call("shop.run", {}).json()["confirm_token"]
    third = factories.make_machine(scopes=[SCOPE])
    theirs = told(second.call("shop.run", {"confirm_token": code}, headers=SAME))
    none = told(third.call("shop.run", {"confirm_token": "tc_" + "0" * 32}, headers=SAME))
    assert theirs == none


def test_anothers_idempotency_key_is_as_new_as_one_that_nobody_used(shop: Shop) -> None:
    first, second = make_shop(shop)
    first.call("shop.put", {"name": "first", "idempotency_key": "theirs"})
    theirs = told(second.call("shop.put", {"name": "one", "idempotency_key": "theirs"}, headers=SAME))
    third = factories.make_machine(scopes=[SCOPE])
    fresh = told(third.call("shop.put", {"name": "one", "idempotency_key": "fresh"}, headers=SAME))
    assert theirs == fresh


def test_a_persons_held_call_is_nobody_elses(shop: Shop) -> None:
    make_shop(shop)
    factories.set_setting("api_session_write_modules", ["shop"])
    one, other = make_person(permissions=[PERMISSION]), make_person(permissions=[PERMISSION])
    uuid = one.held("shop.put", {"name": "thing"})
    for ask in (lambda it: other.redeem(it, "shop.put", {"name": "thing"}), other.reject):
        theirs, none = ask(uuid), ask(uuid4())
        assert isinstance(theirs, Refusal)
        assert isinstance(none, Refusal)
        assert (theirs.status, theirs.body) == (none.status, none.body)
