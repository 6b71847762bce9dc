"""Fuzzers, outside the suite: see `python -m tests.fuzz --help`."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("DEBUG", "1")
