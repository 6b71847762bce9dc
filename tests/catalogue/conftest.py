"""Machines that call the catalogue. The gate's own transactions are real here."""

import pytest

from tests.api import factories
from tests.api.factories import Machine

READ, WRITE = "catalogue:read", "catalogue:write"


@pytest.fixture
def reader(transactional_db: None) -> Machine:
    """A key that may read."""
    return factories.make_machine(scopes=[READ])


@pytest.fixture
def writer(transactional_db: None) -> Machine:
    """A key that may read and write."""
    return factories.make_machine(scopes=[READ, WRITE])


@pytest.fixture
def visitor(transactional_db: None) -> Machine:
    """A caller without a key, where the public audience is on."""
    factories.set_setting("api_public_enabled", True)
    return Machine()
