"""What a request to a model costs, in US dollars (TU-7): by the endpoint's own prices, else by those that genai-prices knows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from apps.agent.models import ModelEndpoint
from apps.agent.providers.connection import DEFAULT_URLS
from apps.agent.providers.protocol import Chosen, Usage

MILLION = Decimal(1_000_000)
_PLACES = Decimal("0.000001")


@dataclass(frozen=True, kw_only=True)
class Price:
    """Of an endpoint: US dollars a million tokens where the operator gave them, and the address that a list of prices knows it by."""

    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    url: str = ""


def of_row(row: ModelEndpoint) -> Mapping[str, Any]:
    """`Chosen.price` of the row."""
    price = Price(
        input=row.input_price,
        output=row.output_price,
        cache_read=row.cache_read_price,
        cache_write=row.cache_write_price,
        url=row.base_url or DEFAULT_URLS.get(row.provider, ""),
    )
    return asdict(price)


def cost(chosen: Chosen, usage: Usage) -> Decimal | None:
    """Rounded up to a millionth of a dollar. None: nobody knows a price."""
    if chosen.is_demo or not (usage.input_tokens or usage.output_tokens):
        return Decimal(0)
    price = Price(**chosen.price)
    found = (
        _own(price, usage) if price.input is not None and price.output is not None else _listed(price, chosen, usage)
    )
    return None if found is None else found.quantize(_PLACES, rounding=ROUND_UP)


def _own(price: Price, usage: Usage) -> Decimal:
    """Tokens of a cache without a price of their own cost what input does: `usage.input_tokens` has them counted in."""
    dear = price.input or Decimal(0)
    read = dear if price.cache_read is None else price.cache_read
    write = dear if price.cache_write is None else price.cache_write
    fresh = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
    sums = (
        fresh * dear
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
        + usage.output_tokens * (price.output or Decimal(0))
    )
    return sums / MILLION


def _listed(price: Price, chosen: Chosen, usage: Usage) -> Decimal | None:
    # Its table of models takes a second to import; only who ran a model needs it.
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        return genai_prices.calc_price(counted, chosen.model.model, provider_api_url=price.url or None).total_price
    except (LookupError, ValueError):
        return None
