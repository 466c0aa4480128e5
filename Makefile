# Two commands matter: `make run` and `make test`. Both install what they need into .venv first.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
# The locks name every package, so pip looks for no others: an old pip would take the newest release of `psycopg[pool]`
# beside the locked `psycopg`, and then refuse it.
LOCKED := $(INSTALL) --require-hashes --requirement
# Tests start many programs of ours: without bytecode each would compile every module again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run demo test quick check format docs adapters bench clients mutants screenshots soak attack lock package sbom clean help

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

run: .venv/serving ## the chat app and the gateway at http://127.0.0.1:8333, opened on a sample: no key, no account
	@$(BIN)/everlong serve --sample --browse --no-access-log --store everlong-sample.db

demo: .venv/installed ## the token map of the sample conversation, then the conversation held live in a small window
	@$(BIN)/everlong inspect --sample --budget 16000 --top 3
	@$(BIN)/everlong demo
	@echo
	@$(BIN)/everlong inspect --sample --budget 16000 --html everlong-sample.html

screenshots: .venv/developing ## the pictures of the app in the docs
	@$(BIN)/python scripts/screenshots.py

test: .venv/developing ## install what the tests need and run them all
	@$(BIN)/python -m everlong.web.build
	@$(PYTEST) -n auto

quick: .venv/developing ## the tests without browser, Postgres, local model and kills: a minute or two
	@$(PYTEST) -n auto -m "not heavy"

check: .venv/developing ## format, lint, types, import rules, shape
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(PYTEST) tests/test_shape.py

format: .venv/developing ## put the code in its one form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/developing ## time against peers, each in its own environment
	$(BIN)/everlong lab speed --environments .bench

docs: .venv/developing ## the documentation site, in site/: write the reference, build, check every link
	@$(BIN)/python scripts/reference.py
	@$(BIN)/python scripts/docs_site.py

adapters: .venv/developing ## the adapters inside their frameworks, each in its own environment; writes their tables in docs/adapters
	$(BIN)/everlong lab adapters --environments .bench --write docs/adapters
	@for home in .bench/adapter-*; do \
		$$home/bin/python -m pip install --quiet --disable-pip-version-check pytest pytest-rerunfailures pytest-timeout hypothesis aiohttp stamina || exit 1; \
		PYTHONPATH=src:. $$home/bin/python -m pytest -W default -p no:cacheprovider tests/adapters tests/wire/libraries || exit 1; done

clients: .venv/developing ## real clients through the gateway, each in its own environment; writes their tables in docs/clients
	$(BIN)/everlong lab clients --environments .bench --write docs/clients

mutants: .venv/developing ## change the source a line at a time and see whether the tests notice (20 minutes)
	@$(BIN)/python scripts/mutants.py

soak: .venv/developing ## kills, races and thousands of turns in full, an hour of chaos, then the properties again and again
	@EVERLONG_SOAK=1 $(PYTEST) --timeout 0 tests/chaos
	@EVERLONG_SOAK=1 $(PYTEST) --timeout 0 -n auto tests/agent tests/engine tests/failures tests/gateway tests/llm tests/requirements tests/store
	@for round in 1 2 3 4 5 6 7 8 9 10; do \
		EVERLONG_SOAK=1 $(PYTEST) --timeout 0 -n auto --hypothesis-seed=$$(date +%s)$$round \
			tests/core tests/compress tests/properties tests/relevance tests/wire || exit 1; done

attack: .venv/developing ## our own fuzzers and attacks, ten minutes: formats, gateway, app
	@$(BIN)/python scripts/attack.py

lock: .venv/developing ## lock the newest versions of every package, by version and hash
	@$(BIN)/python scripts/lock.py

package: .venv/developing ## the sdist and the wheel, in dist/
	@$(BIN)/python -m hatchling build

sbom: .venv/developing ## every package that we install with its version and licence; everlong.cdx.json as CycloneDX
	@$(BIN)/python scripts/sbom.py --output everlong.cdx.json

clean: ## remove what these commands made
	rm -rf .venv .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache everlong-sample.html everlong-sample.db* everlong.cdx.json dist site \
		src/everlong/web/built src/everlong/web/page/node_modules

.venv/installed: pyproject.toml requirements/installed.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with its venv module is needed (Debian: apt install python3 python3-venv)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(LOCKED) requirements/installed.txt
	@$(INSTALL) --no-build-isolation --editable .
	@touch $@

.venv/serving: .venv/installed requirements/serving.txt
	@$(LOCKED) requirements/serving.txt
	@$(BIN)/python -m everlong.web.build
	@touch $@

.venv/developing: .venv/installed requirements/developing.txt
	@$(LOCKED) requirements/developing.txt
	@$(BIN)/python -m everlong.web.build
	@touch $@
