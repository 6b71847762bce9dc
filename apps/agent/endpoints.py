"""Which model answers a person (TU-7): the one place that turns the operator's rows into a model of one turn.

`settings.AGENT_MODEL` names the function that is asked, so that a host application may choose by its own rules: it takes `str(pk)` of
the person and returns Chosen, or raises Failure.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from apps.agent.demo.model import DemoModel
from apps.agent.models import ModelEndpoint
from apps.agent.providers.protocol import Chosen, Failure

DEFAULT = "apps.agent.endpoints.configured"


def choose(person_id: str) -> Chosen:
    """The model for one turn of this person, with a client of its own: whoever asks for it closes it. Raises Failure."""
    return _function(getattr(settings, "AGENT_MODEL", DEFAULT))(person_id)


def configured(person_id: str) -> Chosen:
    """The default endpoint of the table. Raises Failure."""
    row = ModelEndpoint.objects.filter(is_default=True, is_enabled=True).first()
    return _without_endpoint() if row is None else of(row)


def of(row: ModelEndpoint) -> Chosen:
    """The model behind this row. Raises Failure."""
    raise Failure("no_model", "no adapter")


def _without_endpoint() -> Chosen:
    """Where nothing is configured the demo model answers (TU-8)."""
    return Chosen(model=DemoModel(), is_demo=True)


@lru_cache(maxsize=4)
def _function(name: str) -> Callable[[str], Chosen]:
    return cast(Callable[[str], Chosen], import_string(name))
