# `make serve` talks, `make test` proves; each sets up all it needs in this folder. Only Chromium, for a client in a web page, is the system's.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000

BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
ENGINE_PYTHON ?= python3.11

ENGINE_BIN := .venv-engine/bin
ENGINE_PIP := $(ENGINE_BIN)/python -m pip --quiet --disable-pip-version-check
ENGINE_SUPPORT := tests/engine/support
CLIENTS := $(patsubst tests/clients/%/requirements.txt,%,$(wildcard tests/clients/*/requirements.txt))
CLIENT_ENVIRONMENTS := $(CLIENTS:%=.venv-clients/%/.ready)
NODE_CLIENTS := tests/clients/node
export CHROMIUM ?= /usr/bin/chromium
DISTRIBUTIONS := core hostapp $(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml))
MANIFESTS := pyproject.toml core/pyproject.toml hostapp/pyproject.toml plugins/local/pyproject.toml $(wildcard plugins/local/src/omni_realtime_local/*.txt)

.PHONY: serve test test-fast test-clients test-engine benchmark-truncation lint coverage benchmarks clean

serve: .venv/.serve
	@$(BIN)/omni-realtime serve deployments/local.yaml --host $(HOST) --port $(PORT)

test: .venv/.test lint coverage test-clients test-engine

test-fast: .venv/.test
	$(BIN)/pytest -q -m "not slow"

# The real clients of the API, each in an environment of its own, over real sockets: three minutes to install, once, and six to run.
test-clients: .venv/.test $(CLIENT_ENVIRONMENTS) $(NODE_CLIENTS)/node_modules/.ready
	$(BIN)/pytest -c tests/clients/pytest.toml tests/clients

# The adapters on the real vLLM-Omni engine, with tiny random models on the CPU: about three minutes to install, once, and ten to run.
ENGINE_ENV := OMP_NUM_THREADS=1 HF_HOME=$(CURDIR)/.venv-engine/huggingface HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 \
	VLLM_ENABLE_V1_MULTIPROCESSING=0 \
	PYTHONPATH=$(CURDIR)/$(ENGINE_SUPPORT)/site:$(CURDIR)/$(ENGINE_SUPPORT)/plugin:$(CURDIR)/$(ENGINE_SUPPORT)

test-engine: .venv-engine/.ready
	$(ENGINE_ENV) $(ENGINE_BIN)/python -m pytest tests/engine

benchmark-truncation: .venv-engine/.ready
	$(ENGINE_ENV) VLLM_PLUGINS=none VLLM_LOGGING_LEVEL=ERROR $(ENGINE_BIN)/python benchmarks/truncation.py

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

benchmarks: .venv/.test benchmark-truncation
	for script in $(filter-out benchmarks/truncation.py,$(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

.venv/bin/python:
	@$(PYTHON) -m venv .venv
	@$(PIP) install --upgrade "pip>=25.1"

.venv/.serve: $(MANIFESTS) | .venv/bin/python
	@echo "Setting up .venv: about a minute, once."
	@$(PIP) install -e core -e hostapp -e plugins/local --group examples
	@PIP_QUIET=1 $(BIN)/python -m omni_realtime_local.install
	@touch $@

.venv/.test: .venv/.serve $(addsuffix /pyproject.toml,$(DISTRIBUTIONS))
	@$(PIP) install $(addprefix -e ,$(DISTRIBUTIONS)) --group test
	@touch $@

.venv-clients/%/.ready: tests/clients/%/requirements.txt
	@echo "Setting up the client $*."
	@$(PYTHON) -m venv --clear .venv-clients/$*
	@.venv-clients/$*/bin/python -m pip --quiet --disable-pip-version-check install -r $<
	@touch $@

# The JavaScript clients need Node.js 20 or later and Chromium: half a minute to install, once.
$(NODE_CLIENTS)/node_modules/.ready: $(NODE_CLIENTS)/package-lock.json | $(CHROMIUM)
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' && command -v npm >/dev/null || \
	  { echo "The JavaScript clients need Node.js 20 or later with npm: put node and npm on the PATH." >&2; exit 1; }
	npm ci --prefix $(NODE_CLIENTS) --silent
	@touch $@

$(CHROMIUM):
	@test "$@ $$(id -u)" = "/usr/bin/chromium 0" && command -v apt-get >/dev/null || \
	  { echo "The client in a web page needs Chromium: install it, or name it with CHROMIUM=/path/to/chromium." >&2; exit 1; }
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null

# torchcodec, triton and torchaudio's libraries are CUDA builds; torchaudio's Python part is needed and works without.
.venv-engine/.engine: $(ENGINE_SUPPORT)/requirements.txt $(ENGINE_SUPPORT)/requirements-vocoder.txt
	@test "$$(uname -sm)" = "Linux x86_64" || { echo "make test-engine needs Linux on x86_64: vLLM-Omni's CPU engine is built for it." >&2; exit 1; }
	@$(ENGINE_PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo "make test-engine needs Python 3.11, and $(ENGINE_PYTHON) is not: install it, or name it with ENGINE_PYTHON=/path/to/python3.11." >&2; exit 1; }
	@echo "Setting up .venv-engine: about three minutes and 3.5 GB, once."
	$(ENGINE_PYTHON) -m venv --clear .venv-engine
	$(ENGINE_PIP) install --upgrade "pip>=25.1"
	$(ENGINE_PIP) install -r $(ENGINE_SUPPORT)/requirements.txt
	$(ENGINE_PIP) install --no-deps -r $(ENGINE_SUPPORT)/requirements-vocoder.txt
	$(ENGINE_PIP) uninstall --yes torchcodec triton
	find .venv-engine/lib/python3.11/site-packages/torchaudio -name '*.so' -delete
	@touch $@

.venv-engine/.ready: .venv-engine/.engine $(addsuffix /pyproject.toml,$(DISTRIBUTIONS))
	$(ENGINE_PIP) install $(addprefix -e ,$(DISTRIBUTIONS))
	@touch $@

clean:
	rm -rf .venv .venv-clients .venv-engine $(NODE_CLIENTS)/node_modules .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
