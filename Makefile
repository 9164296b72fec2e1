# `make serve` and `make test` need nothing but python3 with venv, and make. `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --keep-going

PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes
PYTEST := $(BIN)/python -m pytest
MO := app/i18n/de/LC_MESSAGES/messages.mo
COMPILE := $(BIN)/uv pip compile pyproject.toml --extra postgres --universal --generate-hashes \
	--no-header --quiet --python-version 3.11

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z.-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

# --- environments ---------------------------------------------------------------------------------
# One environment: `serve` fills it from the run-time lock, `test` adds the rest. Both locks agree on
# every version, so neither undoes the other. A stamp tells which lock was installed.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Try: make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "python3 cannot make an environment. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }

$(VENV)/run.stamp: requirements.lock | $(BIN)/python
	@echo "Installing what the service needs (about half a minute) …"
	@$(PIP_INSTALL) -r requirements.lock
	@touch $@

$(VENV)/dev.stamp: requirements.lock requirements-dev.lock | $(BIN)/python
	@echo "Installing what the tests need (about a minute) …"
	@$(PIP_INSTALL) -r requirements-dev.lock
	@touch $@ $(VENV)/run.stamp

$(MO): app/i18n/de/LC_MESSAGES/messages.po | $(VENV)/run.stamp
	@$(BIN)/python -m app.tools.translations compile

.PHONY: .venv
.venv: $(VENV)/dev.stamp $(MO) ## Make the environment for development

.PHONY: chromium
chromium:
	@if [ ! -x /usr/bin/chromium ] && [ -z "$${SIZING_TEST_CHROMIUM:-}" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing Chromium for the browser tests …"; \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
		else \
			echo "The browser tests need Chromium: sudo apt-get install chromium (or set SIZING_TEST_CHROMIUM to its path)"; exit 1; \
		fi; \
	fi

.PHONY: postgresql
postgresql:
	@if [ -z "$$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] && ! command -v initdb >/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing PostgreSQL for the tests of quotes …"; \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null; \
		else \
			echo "The tests of quotes need PostgreSQL's programs: sudo apt-get install postgresql"; exit 1; \
		fi; \
	fi

# --- run ------------------------------------------------------------------------------------------

.PHONY: serve
serve: $(VENV)/run.stamp $(MO) ## Start the wizard on http://127.0.0.1:8000 (PORT=… for another port)
	@echo "The wizard is at http://$(HOST):$(PORT)/ (stop it with Ctrl+C)"
	@SIZING_BASE_URL="$${SIZING_BASE_URL:-http://$(HOST):$(PORT)}" \
		exec $(BIN)/python -m uvicorn --factory app.main:create_app --host $(HOST) --port $(PORT) --no-access-log

# --- check ----------------------------------------------------------------------------------------
# Every part runs even if an earlier one failed (--keep-going), so that one call shows everything.

.PHONY: lint format-check templates-check dockerfile-check types imports translation-gate
lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check --quiet --output-format concise .
format-check: $(VENV)/dev.stamp
	@$(BIN)/ruff format --check --quiet . || { echo "Not formatted; run: make format"; exit 1; }
templates-check: $(VENV)/dev.stamp
	@$(BIN)/djlint templates --lint --quiet
dockerfile-check: $(VENV)/dev.stamp
	@$(BIN)/hadolint Dockerfile
types: $(VENV)/dev.stamp
	@$(BIN)/mypy
imports: $(VENV)/dev.stamp
	@$(BIN)/lint-imports --no-cache --no-logo
translation-gate: $(VENV)/dev.stamp
	@$(BIN)/python -m app.tools.translations check
STATIC_CHECKS := lint format-check templates-check dockerfile-check types imports translation-gate

.PHONY: quick-tests tests browser-tests
quick-tests: $(VENV)/dev.stamp $(MO)
	@$(PYTEST) -q -m "not browser and not slow and not deep" -n 2
tests: $(VENV)/dev.stamp $(MO) postgresql
	@$(PYTEST) -q -m "not browser and not deep" -n 2
browser-tests: $(VENV)/dev.stamp $(MO) chromium
	@$(PYTEST) -q -m "browser and not deep"

.PHONY: check
check: $(STATIC_CHECKS) quick-tests ## Everything fast: lint, types, import rules, translations, quick tests (< 60 s)

.PHONY: test
test: $(STATIC_CHECKS) tests browser-tests ## Everything a change must pass, browser tests included (< 12 min)

.PHONY: test-deep
test-deep: chromium postgresql $(STATIC_CHECKS) $(MO) ## The long runs: large property counts, mutation tests, coverage
	@HYPOTHESIS_PROFILE=deep $(BIN)/coverage run -m pytest -q -m "not browser"
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage report --fail-under=95
	@$(BIN)/coverage report --include='app/core/*' --fail-under=100
	@$(PYTEST) -q -m "browser"
	@rm -rf mutants # verdicts of an earlier run would count for tests that have changed since
	@$(BIN)/mutmut run | tr '\r' '\n' | tail -n 1
	@$(BIN)/mutmut export-cicd-stats >/dev/null
	@$(BIN)/python -c 'import json; s = json.load(open("mutants/mutmut-cicd-stats.json")); \
		found, total = s["killed"] + s["timeout"], s["total"]; \
		print(f"{found / total:.1%} of {total} mutants found (the others: mutmut results)"); \
		exit(found < 0.95 * total)'

# --- measure --------------------------------------------------------------------------------------

.PHONY: accuracy
accuracy: $(VENV)/run.stamp ## Score the memory model on observed starts; write the table of the Accuracy page
	@$(BIN)/python -m app.tools.accuracy

.PHONY: fit
fit: $(VENV)/run.stamp ## Fit the memory model's coefficients to data/measurements/observed_starts.json
	@$(BIN)/python -m app.tools.fit

# --- look -----------------------------------------------------------------------------------------

.PHONY: bench
bench: $(VENV)/run.stamp $(MO) ## Measure answers per second and latency (BENCH_PATHS="/de/ …")
	@$(BIN)/python -m app.tools.bench $(BENCH_PATHS)

.PHONY: screenshots
screenshots: chromium $(VENV)/dev.stamp $(MO) ## Take pictures of every page into build/screenshots/ (PAGES="/de/ …")
	@$(BIN)/python -m app.tools.screenshots $(PAGES)

# --- change ---------------------------------------------------------------------------------------

.PHONY: format
format: $(VENV)/dev.stamp ## Format Python, sort imports
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

.PHONY: translations
translations: $(VENV)/dev.stamp ## Carry new texts of the templates into messages.po, and compile
	@$(BIN)/python -m app.tools.translations update
	@$(BIN)/python -m app.tools.translations check

.PHONY: readme
readme: $(VENV)/dev.stamp ## Write the settings table of README.md from app/settings.py
	@$(BIN)/python -m app.tools.readme

.PHONY: desk-password
desk-password: $(VENV)/run.stamp ## Ask for a password and print its hash, for SIZING_DESK_PASSWORD_HASH
	@$(BIN)/python -m app.tools.desk_password

.PHONY: lock
lock: $(VENV)/dev.stamp ## Resolve both locks anew (UPGRADE=--upgrade for newer versions)
	@$(COMPILE) $(UPGRADE) -o requirements.lock
	@$(COMPILE) $(UPGRADE) --group dev -c requirements.lock -o requirements-dev.lock

.PHONY: clean
clean: ## Remove the environment and all caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis mutants $(MO)
