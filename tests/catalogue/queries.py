"""Which of the statements are the catalogue's own."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.test.utils import CaptureQueriesContext


@contextmanager
def captured() -> Iterator[list[str]]:
    """The statements that name a table of the catalogue, filled at the end."""
    found: list[str] = []
    with CaptureQueriesContext(connection) as context:
        yield found
    found.extend(query["sql"] for query in context.captured_queries if '"catalogue_' in query["sql"])
