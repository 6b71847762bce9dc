"""Which model answers a person (TU-7): the one place that turns the operator's rows into a model of one turn.

`settings.AGENT_MODEL` names the function that is asked, so that a host application may choose by its own rules: it takes `str(pk)` of
the person and returns Chosen, or raises Failure.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from apps.agent import endpoint_keys, prices
from apps.agent.demo.model import DemoModel
from apps.agent.models import ModelEndpoint
from apps.agent.providers import outgoing
from apps.agent.providers.connection import Connection
from apps.agent.providers.outgoing import Forbidden
from apps.agent.providers.protocol import Chosen, Failure

DEFAULT = "apps.agent.endpoints.configured"


def choose(person_id: str) -> Chosen:
    """The model for one turn of this person, with a client of its own: whoever asks for it closes it. Raises Failure."""
    return _function(getattr(settings, "AGENT_MODEL", DEFAULT))(person_id)


def configured(person_id: str) -> Chosen:
    """The default endpoint of the table. Raises Failure."""
    row = ModelEndpoint.objects.filter(is_default=True, is_enabled=True).first()
    return _without_endpoint() if row is None else of(row)


def is_demo() -> bool:
    """Whether the demo model answers, which the chat's page says."""
    by_default = getattr(settings, "AGENT_MODEL", DEFAULT) == DEFAULT
    return by_default and not ModelEndpoint.objects.filter(is_default=True, is_enabled=True).exists()


def of(row: ModelEndpoint) -> Chosen:
    """The model behind this row. Raises Failure."""
    # The makers' libraries take seconds and a hundred megabytes: in a worker, at its first turn, and nowhere else (SP-5).
    from apps.agent.providers.adapter import DirectModel

    return Chosen(
        model=DirectModel(connection(row)),
        endpoint_uuid=row.pk,
        context_chars=row.context_chars,
        max_output_tokens=row.max_output_tokens,
        price=prices.of_row(row),
    )


def connection(row: ModelEndpoint) -> Connection:
    """How the row's provider is reached, its key included. Raises Failure."""
    networks = tuple(settings.MODEL_NETWORKS)
    found = Connection(
        provider=row.provider, model=row.model, base_url=row.base_url, key=endpoint_keys.take(row), networks=networks
    )
    try:
        outgoing.check_url(found.url, networks)
    except Forbidden as forbidden:
        raise Failure("endpoint_forbidden", str(forbidden)) from None
    return found


def _without_endpoint() -> Chosen:
    """Where nothing is configured the demo model answers (TU-8)."""
    return Chosen(model=DemoModel(), is_demo=True)


@lru_cache(maxsize=4)
def _function(name: str) -> Callable[[str], Chosen]:
    return cast(Callable[[str], Chosen], import_string(name))
