"""The probe module and machines that call it."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from apps.api import registry
from apps.api.registry import Registry
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.shop import Shop


@pytest.fixture
def tools() -> Iterator[Registry]:
    """Only core's module and the probe."""
    with registry.using(probe.make_probe()) as found:
        yield found


@pytest.fixture
def machine(transactional_db: None, tools: Registry) -> Machine:
    """A superuser's key with both scopes of the probe. The gate's own transactions are real here."""
    return factories.make_machine(scopes=[probe.READ, probe.WRITE])


@pytest.fixture
def visitor(transactional_db: None, tools: Registry) -> Machine:
    """A caller without a key, where the public audience is on."""
    factories.set_setting("api_public_enabled", True)
    return Machine()


@pytest.fixture
def shop(transactional_db: None) -> Iterator[Shop]:
    """Tools that the test writes itself."""
    with ExitStack() as stack:
        yield Shop(stack)
