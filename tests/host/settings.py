"""A bare project that uses only the gate and the log, with people of its own whose keys are integers (PS-1)."""

import os
from pathlib import Path

import structlog

ROOT = Path(__file__).resolve().parent.parent.parent

SECRET_KEY = "a-secret-of-the-bare-host-that-opens-nothing-anywhere"
DEBUG = False
ALLOWED_HOSTS = ["testserver", "localhost"]
ROOT_URLCONF = "tests.host.urls"
STATIC_URL = "/static/"
USE_TZ = True

INSTALLED_APPS = [
    "tests.host.members",
    "tests.host.shelf",
    "apps.api",
    "apps.activity",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
]
MIDDLEWARE = [
    "apps.api.rest.edge.ProblemAnswers",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Its own frame around the gate's pages.
        "DIRS": [ROOT / "tests/host/templates", ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

AUTH_USER_MODEL = "members.Member"
# Another one than ours: the gate's tables name their keys themselves.
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("HOST_DATABASE", "host.sqlite3"),
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL;"},
    }
}

# What the two apps ask of a host. No API_PEOPLE: people are whoever AUTH_USER_MODEL says.
API_KEY_PEPPERS = {"test": "a-pepper-of-the-bare-host"}
ACTIVITY_MAC_KEYS = {"test": "a-mac-key-of-the-bare-host"}
# The limiter's store is this process's memory.
EMBEDDED = True
SILENCED_SYSTEM_CHECKS = ["django_ratelimit.E003", "django_ratelimit.W001"]

# Lines through the standard library, as a test of the gate reads them.
structlog.configure(
    processors=[structlog.contextvars.merge_contextvars, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
)
