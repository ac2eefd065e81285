# `make serve` talks, `make test` proves; each sets up all it needs in .venv, and nothing outside this folder.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000

BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
MANIFESTS := pyproject.toml core/pyproject.toml hostapp/pyproject.toml plugins/local/pyproject.toml $(wildcard plugins/local/src/omni_realtime_local/*.txt)

.PHONY: serve test test-fast lint coverage benchmarks clean

serve: .venv/.serve
	$(BIN)/omni-realtime serve deployments/local.yaml --host $(HOST) --port $(PORT)

test: .venv/.test lint coverage

test-fast: .venv/.test
	$(BIN)/pytest -q -m "not slow"

lint: .venv/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# The parts that decide what goes over the wire are covered branch by branch.
coverage: .venv/.test
	$(BIN)/pytest --cov --cov-report=
	for part in protocol session audio; do \
	  $(BIN)/coverage report --skip-covered --include="*/omni_realtime/$$part/*" --fail-under=95 || exit 1; \
	done

benchmarks: .venv/.test
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(PIP) install --upgrade "pip>=25.1"

.venv/.serve: $(MANIFESTS) | .venv/bin/python
	@echo "Setting up .venv: about a minute, once."
	$(PIP) install -e core -e hostapp -e plugins/local --group examples
	PIP_QUIET=1 $(BIN)/python -m omni_realtime_local.install
	touch $@

.venv/.test: .venv/.serve
	$(PIP) install --group test
	touch $@

clean:
	rm -rf .venv .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
