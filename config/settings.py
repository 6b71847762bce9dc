"""The one settings file, fed by the environment (docs/reference/settings.md). What is missing stops the start."""

from pathlib import Path
from typing import Any

import dj_database_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from config import env, logs

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"

DEBUG = env.flag("DEBUG", default=False)
# One process that serves pages, API and sockets and keeps limits and events in its memory.
EMBEDDED = env.flag("EMBEDDED", default=False)

_DEVELOPMENT_SECRET = "development-only-never-in-production" if DEBUG else None
SECRET_KEY = env.text("SECRET_KEY", _DEVELOPMENT_SECRET)
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]" if DEBUG else None)
BASE_URL = env.url("BASE_URL", "http://127.0.0.1:8000" if DEBUG else None)
TRUSTED_PROXY_HOPS = env.number("TRUSTED_PROXY_HOPS", default=0)
# Who may read /metrics beside this machine.
METRICS_NETWORKS = env.networks("METRICS_NETWORKS")

# Named secrets, the first one current: see env.secrets.
API_KEY_PEPPERS = env.secrets("API_KEY_PEPPERS", f"dev:{_DEVELOPMENT_SECRET}" if DEBUG else None)
ACTIVITY_MAC_KEYS = env.secrets("ACTIVITY_MAC_KEYS", f"dev:{_DEVELOPMENT_SECRET}" if DEBUG else None)
MODEL_KEY_SECRETS = env.secrets("MODEL_KEY_SECRETS", f"dev:{_DEVELOPMENT_SECRET}" if DEBUG else None)

INSTALLED_APPS = [
    "config.apps.ConfigConfig",
    "apps.catalogue",
    "apps.agent",
    "apps.api",
    "apps.accounts",
    "apps.activity",
    "django_ratelimit",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "config.edge.RequestId",
    "apps.api.rest.edge.ProblemAnswers",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.edge.ContentSecurityPolicy",
    "config.edge.BrowserSessions",
    "config.edge.Languages",
    "config.edge.Common",
    "django.middleware.csrf.CsrfViewMiddleware",
    "config.edge.SignedInUsers",
    "config.edge.LivePeople",
    "config.edge.Impersonations",
    "config.edge.Messages",
    "config.edge.Gates",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

# Where nobody comes with a browser: the middleware for people stands aside.
MACHINE_PATHS = ("/api/v1/", "/mcp", "/.well-known/")

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = True

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.accounts.context.account",
                "apps.api.pages.context.approvals",
            ],
        },
    },
]


def _database() -> dict[str, Any]:
    """DATABASE_URL, or a SQLite file in var/. Options that the gate's guarantees stand on are set here."""
    database: dict[str, Any] = dict(
        dj_database_url.parse(env.text("DATABASE_URL", f"sqlite:///{VAR_DIR / 'tollhouse.sqlite3'}"))
    )
    if database["ENGINE"] == "django.db.backends.sqlite3":
        VAR_DIR.mkdir(exist_ok=True)
        # A writer waits 20 s for the other writer; IMMEDIATE so that read-then-write never fails at once.
        database["OPTIONS"] = {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
    elif database["ENGINE"] == "django.db.backends.postgresql":
        database["OPTIONS"] = {**database.get("OPTIONS", {}), "connect_timeout": 5}
    else:
        raise ImproperlyConfigured("DATABASE_URL must be postgresql:// or sqlite://.")
    database["CONN_MAX_AGE"] = 600
    database["ATOMIC_REQUESTS"] = False
    return database


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.text("REDIS_URL", "")
CACHES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "config.cache.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_connect_timeout": 0.05, "socket_timeout": 0.25},
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}
# Django's own Redis cache increments in one step: django-ratelimit only lists an older package.
SILENCED_SYSTEM_CHECKS = ["django_ratelimit.W001"]
if DEBUG or EMBEDDED:
    # One process: its local cache is shared by everything that counts.
    SILENCED_SYSTEM_CHECKS += ["django_ratelimit.E003"]

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
# A link from a mail is good for an hour, and once.
PASSWORD_RESET_TIMEOUT = 60 * 60
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "sign_in"
# django-hijack is not among the apps: its notification has inline script, ours is templates/impersonation_banner.html.
HIJACK_PERMISSION_CHECK = "apps.accounts.impersonation.may_start"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
# One process serves the files where they lie; production collects them once (`manage.py collectstatic`).
WHITENOISE_USE_FINDERS = DEBUG or EMBEDDED
if WHITENOISE_USE_FINDERS:
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)

# The gate (apps/api). API_REQUEST_CONTEXT names a function of the HTTP request that adds to a handler's context.
API_PEOPLE = "apps.accounts.people"
API_CURRENCY = "EUR"
API_REQUEST_CONTEXT = ""
# The assistant (apps/agent): the function that chooses the model of a turn.
AGENT_MODEL = "apps.agent.endpoints.configured"
# What an empty chat proposes to ask.
AGENT_SUGGESTIONS = (
    "Which lamps are out of stock?",
    "Raise the price of LMP-0002 by 5 %",
    "/catalogue.list_products query=lamp",
)
# Where a model may answer beside the public addresses, by http too.
MODEL_NETWORKS = env.networks("MODEL_NETWORKS")
# Who runs what was approved: Celery's workers where there is a broker, else a few threads of the process where it was approved.
CELERY_BROKER_URL = env.text("CELERY_BROKER_URL", "")
API_SEND_TASK = "config.celery.send" if CELERY_BROKER_URL else "apps.api.tasks.in_thread"

# How often the sweeps look after the approvals: what is past its time ends, and what nobody started is sent again.
API_APPROVALS_SWEEP_SECONDS = env.number("API_APPROVALS_SWEEP_SECONDS", default=15, minimum=1)

# Events for the sockets. One process hands them over in memory; several meet in Redis, by publish and subscribe.
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "config.redis_layer.RedisLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_connect_timeout": 0.5}], "prefix": "tollhouse"},
    }
    if REDIS_URL and (CELERY_BROKER_URL or not EMBEDDED)
    else {"BACKEND": "config.layers.OneProcessLayer"}
}

SESSION_COOKIE_AGE = 14 * 24 * 60 * 60
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = False
CSRF_FAILURE_VIEW = "config.edge.csrf_failed"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
if not DEBUG:
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", default=True)
    SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = True
    if TRUSTED_PROXY_HOPS:
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    CSRF_TRUSTED_ORIGINS = [BASE_URL]

_POLICY = {
    "default-src": [NONE],
    "script-src": [SELF],
    "style-src": [SELF],
    "img-src": [SELF],
    "font-src": [SELF],
    "connect-src": [SELF],
    "form-action": [SELF],
    "base-uri": [NONE],
    "frame-ancestors": [NONE],
}
# The one policy is that of static/js/live.js: it takes what a page of our own sent.
_TRUSTED_TYPES = {"require-trusted-types-for": ["'script'"], "trusted-types": ["tollhouse"]}
CONTENT_SECURITY_POLICY = {"DIRECTIVES": {**_POLICY, **_TRUSTED_TYPES}}
# The admin's own scripts set inner HTML, and its style sheets carry pictures.
ADMIN_CONTENT_SECURITY_POLICY = {**_POLICY, "img-src": [SELF, "data:"]}

vars().update(env.mail_server("EMAIL_URL", "console://" if DEBUG else "smtp://localhost:25"))
# A mail server that stays silent must not hold a worker for ever.
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "tollhouse@example.org")

LOGGING_CONFIG = None
logs.configure(debug=DEBUG)
