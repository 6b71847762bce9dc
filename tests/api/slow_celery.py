"""`celery -A tests.api.slow_celery worker`: the program's workers with the module `slow` of `test_approval_progress`."""

from apps.api import registry
from config.celery import app
from tests.api.slow import make_slow

__all__ = ["app"]

# Kept, or its end would come at once.
_opened = registry.using(make_slow())
_opened.__enter__()
