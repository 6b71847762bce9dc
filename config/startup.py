"""What comes before the first request, in every process: Django is set up and the system checks pass, or nothing starts."""

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
