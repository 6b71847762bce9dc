"""What a call of a model cost, and its row in the journal, however it ended."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.agent import endpoints, journal, prices
from apps.agent.journal import Asked, Where
from apps.agent.models import ModelCall
from apps.agent.providers.protocol import Ask, Chosen, Said, Usage
from tests.agent.scripted import Script, ScriptedModel
from tests.agent.test_endpoint_keys import make_endpoint
from tests.api import factories

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

ASK = Ask(instructions="i" * 30, history=[Said(text="h" * 60)])


class Named(ScriptedModel):
    """A model of this name, which nobody asks."""

    def __init__(self, model: str, provider: str = "openai") -> None:
        super().__init__(Script([]))
        self.model, self.provider = model, provider


def chosen(model: str = "gpt-5-mini", provider: str = "openai", **row: Any) -> Chosen:
    endpoint = make_endpoint(model=model, provider=provider, **row)
    endpoint.refresh_from_db()
    return Chosen(model=Named(model, provider), endpoint_uuid=endpoint.pk, price=prices.of_row(endpoint))


def note(by: Any, **fields: Any) -> ModelCall:
    given = {"started_at": timezone.now(), **fields}
    return journal.note(given.pop("chosen", None) or chosen(), Where(person_id=str(by.pk), attempt=2, round=3), **given)


def test_the_rows_prices_count_first_and_tokens_of_a_cache_at_their_own() -> None:
    row = {"input_price": "3", "output_price": "15", "cache_read_price": "0.3", "cache_write_price": "3.75"}
    usage = Usage(input_tokens=1_000, output_tokens=100, cache_read_tokens=600, cache_write_tokens=200)
    endpoint = make_endpoint(**row)
    endpoint.refresh_from_db()
    found = prices.cost(Chosen(model=Named("x"), price=prices.of_row(endpoint)), usage)
    # 200 at 3, 600 at 0.3, 200 at 3.75, 100 at 15 a million
    assert found == Decimal("0.003030")


def test_a_cache_without_a_price_costs_what_input_does() -> None:
    endpoint = make_endpoint(input_price="3", output_price="15")
    endpoint.refresh_from_db()
    usage = Usage(input_tokens=1_000, cache_read_tokens=600)
    assert prices.cost(Chosen(model=Named("x"), price=prices.of_row(endpoint)), usage) == Decimal("0.003")


def test_a_free_endpoint_costs_nothing_and_is_not_unpriced() -> None:
    endpoint = make_endpoint(input_price="0", output_price="0")
    endpoint.refresh_from_db()
    assert prices.cost(Chosen(model=Named("x"), price=prices.of_row(endpoint)), Usage(input_tokens=9)) == 0


@pytest.mark.parametrize(
    ("model", "provider", "base_url"),
    [
        ("gpt-5-mini", "openai", ""),
        ("claude-sonnet-4-5", "anthropic", ""),
        ("mistral-large-latest", "openai", "https://api.mistral.ai/v1"),
    ],
)
def test_known_models_have_known_prices(model: str, provider: str, base_url: str) -> None:
    found = prices.cost(chosen(model, provider, base_url=base_url), Usage(input_tokens=1_000_000))
    assert found is not None
    assert found > Decimal("0.01")


def test_a_cost_is_rounded_up() -> None:
    endpoint = make_endpoint(input_price="0.000001", output_price="0")
    endpoint.refresh_from_db()
    assert prices.cost(Chosen(model=Named("x"), price=prices.of_row(endpoint)), Usage(input_tokens=1)) == Decimal(
        "0.000001"
    )


@pytest.mark.parametrize("base_url", ["", "https://models.example.org/v1"])
def test_an_unknown_model_has_no_price_and_not_the_price_zero(base_url: str) -> None:
    assert prices.cost(chosen("nobody-knows-1", base_url=base_url), Usage(input_tokens=9)) is None


def test_nothing_costs_nothing_whoever_was_asked() -> None:
    assert prices.cost(chosen("nobody-knows-1", base_url="https://models.example.org/v1"), Usage()) == 0


def test_the_demo_costs_nothing() -> None:
    assert prices.cost(endpoints.choose("1"), Usage(input_tokens=9)) == 0


def test_a_whole_answer_is_journalled_as_the_provider_counted_it() -> None:
    person = factories.make_owner()
    usage = Usage(input_tokens=100, output_tokens=10, cache_read_tokens=40)
    call = note(person, usage=usage, asked=Asked(ask=ASK, text="much"))
    call.refresh_from_db()
    assert (call.user_id, call.attempt, call.round, call.code, call.is_estimate) == (person.pk, 2, 3, "", False)
    assert (call.input_tokens, call.output_tokens, call.cache_read_tokens) == (100, 10, 40)
    assert call.cost is not None
    assert call.ended_at >= call.started_at


@pytest.mark.parametrize("code", [journal.STOPPED, "provider_cut", "provider_timeout"])
def test_an_answer_that_was_begun_and_not_counted_is_estimated(code: str) -> None:
    call = note(factories.make_owner(), asked=Asked(ask=ASK, text="t" * 31), code=code)
    assert (call.code, call.is_estimate, call.input_tokens, call.output_tokens) == (code, True, 30, 11)
    assert call.cost


def test_a_whole_answer_that_nobody_counted_is_estimated() -> None:
    call = note(factories.make_owner(), usage=Usage(is_counted=False), asked=Asked(ask=ASK, text="t" * 9))
    assert (call.code, call.is_estimate, call.input_tokens, call.output_tokens) == ("", True, 30, 3)


def test_what_the_provider_did_not_begin_to_answer_costs_nothing() -> None:
    call = note(factories.make_owner(), asked=Asked(ask=ASK), code="provider_rate_limited")
    assert (call.is_estimate, call.input_tokens, call.cost) == (False, 0, Decimal(0))


def test_an_answer_that_was_refused_in_its_middle_is_estimated_all_the_same() -> None:
    assert note(factories.make_owner(), asked=Asked(ask=ASK, text="Two"), code="provider_refused").is_estimate


def test_a_count_that_no_column_holds_is_the_most_it_holds() -> None:
    call = note(factories.make_owner(), usage=Usage(input_tokens=10**12), chosen=endpoints.choose("1"))
    assert call.input_tokens == 2_147_483_647


def test_a_persons_spending_is_theirs_since_then_and_in_money_what_is_known() -> None:
    person, other = factories.make_owner(), factories.make_owner()
    priced = chosen(input_price="1", output_price="1")
    unpriced = Chosen(model=Named("nobody-knows-1"), price={"url": "https://models.example.org"})
    usage, now = Usage(input_tokens=1_000, output_tokens=500), timezone.now()
    for who, what, began in (
        (person, priced, now),
        (person, unpriced, now),
        (person, priced, now - timedelta(hours=2)),
        (other, priced, now),
    ):
        note(who, chosen=what, usage=usage, started_at=began)
    found = journal.spent_since(str(person.pk), now - timedelta(hours=1))
    assert (found.tokens, found.cost) == (3_000, Decimal("0.0015"))
    assert journal.spent_since(str(person.pk), now + timedelta(hours=1)).tokens == 0


def test_the_admin_lists_the_calls_and_sums_what_the_filters_leave(client: Client) -> None:
    person = factories.make_owner(email="spender@example.org")
    priced = chosen(input_price="1", output_price="1")
    note(person, chosen=priced, usage=Usage(input_tokens=1_000, output_tokens=500))
    note(person, chosen=priced, asked=Asked(ask=ASK), code=journal.STOPPED)
    note(factories.make_owner(), chosen=priced, usage=Usage(input_tokens=7))
    client.force_login(factories.make_owner(is_staff=True, permissions=["agent.view_modelcall"]))
    address = "/admin/agent/modelcall/"
    everything = client.get(address).context["sums"]
    assert (everything["calls"], everything["failed"], everything["estimated"]) == (3, 1, 1)
    assert (everything["input"], everything["output"], everything["cost"]) == (1_037, 500, Decimal("0.001537"))
    assert client.get(address, {"outcome": "answered"}).context["sums"]["calls"] == 2
    assert client.get(address, {"outcome": "stopped"}).context["sums"]["input"] == 30
    assert client.get(address, {"outcome": "failed"}).context["sums"]["calls"] == 0
    assert client.get(address, {"q": "spender@example.org"}).context["sums"]["calls"] == 2


def test_the_journal_can_be_changed_by_nobody(client: Client) -> None:
    call = note(factories.make_owner(), usage=Usage(input_tokens=7), chosen=endpoints.choose("1"))
    client.force_login(factories.make_owner(superuser=True, is_staff=True))
    page = f"/admin/agent/modelcall/{call.pk}"
    assert client.get(f"{page}/change/").status_code == 200
    assert [client.post(f"{page}/{view}/", {"post": "yes"}).status_code for view in ("change", "delete")] == [403, 403]
    assert client.get("/admin/agent/modelcall/add/").status_code == 403
