"""What comes before the first request, in every process: Django is set up and the system checks pass, or nothing starts."""

import gc
import os
from functools import cache

import django
from django.core.management.base import BaseCommand
from django.db import connections


@cache
def prepare() -> None:
    """Set Django up and run the system checks, once; SystemCheckError with their text when there is an error.

    Warnings are printed. A tool that is declared unsafely, a missing secret and the like stop the process here (MT-5).
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    BaseCommand().check(databases=list(connections))


def settle() -> None:
    """For a process that holds many sockets: what is loaded by now stays, and the collector looks through the rest less often.

    Each pause of the collector is one of every socket. How much this gains is not measured by itself (docs/benchmarks.md).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 5, 50)
