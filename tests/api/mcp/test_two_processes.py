"""Two server processes behind a balancer that chooses at random for each request: no client notices (M3)."""

import os
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from apps.catalogue.models import Product
from tests.api import factories
from tests.api.held import wait_until
from tests.api.mcp import tour
from tests.api.mcp.balancer import Balancer
from tests.api.mcp.live import ASKING, WAYS, Session
from tests.catalogue.factories import make_product
from tests.services import Missing, Program

SCOPES = ["catalogue:read", "catalogue:write"]

# So often that one of the two would have to be chosen that many times in a row.
TRIES = 40


@pytest.fixture
def balancer(postgres_url: str, redis_url: str, start_program: Callable[..., Program]) -> Iterator[Balancer]:
    """One PostgreSQL and one Redis, two processes as production has them."""
    started = Balancer([start_program("granian"), start_program("granian")])
    try:
        started.start()
        yield started
    except Missing as reason:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(reason))
    finally:
        started.remove()


def connect(balancer: Balancer, how: str) -> Session:
    machine = factories.make_machine(scopes=SCOPES, budget=10_000)
    return Session(f"{balancer.url}/mcp", machine.text, how)


def given_to(balancer: Balancer, act: Callable[[], object], *, calls: int) -> list[str]:
    """Which process had each call of the act. The log has them a moment after their answers."""
    before = len(balancer.chosen())
    act()
    wait_until(lambda: len(balancer.chosen()) >= before + calls)
    found = balancer.chosen()[before:]
    assert len(found) == calls
    return found


def until_apart(attempt: Callable[[], list[str]]) -> None:
    """Repeat it until two processes had a part in it; it must go well each time."""
    assert any(len(set(attempt())) == 2 for _ in range(TRIES)), "one process had it every time"


def test_no_client_notices_that_two_processes_answer(balancer: Balancer, subtests: pytest.Subtests) -> None:
    for how in WAYS:
        with subtests.test(how), connect(balancer, how) as session:
            tour.take(session)
    assert len(set(balancer.chosen())) == 2


def test_what_one_process_began_the_other_one_ends(balancer: Balancer, subtests: pytest.Subtests) -> None:
    """A code, a signed state, and what a call with an idempotency key answered: each is good at the process that did not give it."""
    for how in ("handshake", "auto", "ts-handshake", "ts-auto", *ASKING):
        with connect(balancer, how) as session:
            with subtests.test(how, what="a state" if how in ASKING else "a code"):
                until_apart(partial(state_crosses if how in ASKING else code_crosses, balancer, session))
            with subtests.test(how, what="a replay"):
                until_apart(lambda: given_to(balancer, lambda: tour.write_twice(session), calls=2))


def code_crosses(balancer: Balancer, session: Session) -> list[str]:
    product = make_product()
    codes: list[str] = []
    first = given_to(balancer, lambda: codes.append(held(session, product)), calls=1)
    second = given_to(balancer, lambda: redeem(session, product, codes[0]), calls=1)
    assert not Product.objects.filter(pk=product.pk).exists()
    return first + second


def state_crosses(balancer: Balancer, session: Session) -> list[str]:
    """The client answers the question by itself: two requests, two choices."""
    return given_to(balancer, lambda: tour.delete(session), calls=2)


def held(session: Session, product: Product) -> str:
    return str(session.content("catalogue_delete_products", skus=[product.sku])["confirm_token"])


def redeem(session: Session, product: Product, code: str) -> None:
    done = session.content("catalogue_delete_products", skus=[product.sku], confirm_token=code)
    assert done["deleted"] == 1
