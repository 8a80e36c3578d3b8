# Every target is one line; the first use makes .venv and installs what the target needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= pykafka-data
ROUNDS ?= 100
# Processes that share the tests: a number, or auto.
WORKERS ?= auto
# The nodes of the clusters that `make interop` and `make conformance` take in the place of one broker: NODES=3.
NODES ?=
# Else every process of theirs compiles tests and broker anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: run test slow check fix bench interop conformance reencode simulate torture fuzz proofs coverage release clean
run: $(VENV)/.run ; $(BIN)/pykafka-broker start --data-dir $(DATA) $(if $(PORT),--listen 127.0.0.1:$(PORT))
test: $(VENV)/.test ; $(BIN)/python -m tests -n $(WORKERS) -m "not slow"
slow: $(VENV)/.test ; $(PYTEST) -m slow --ignore=tests/torture
check: $(VENV)/.test ; $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy && $(BIN)/lint-imports && $(BIN)/python -m interop.pages --check
fix: $(VENV)/.test ; $(BIN)/ruff format . && $(BIN)/ruff check --fix . && $(BIN)/python -m interop.pages
bench: $(VENV)/.bench ; $(BIN)/python -m bench
interop: $(VENV)/.test ; $(BIN)/python -m interop $(if $(NODES),--nodes $(NODES))
conformance: $(VENV)/.test ; $(BIN)/python -m interop.conformance $(if $(NODES),--nodes $(NODES))
reencode: $(VENV)/.test ; $(BIN)/python -m interop.reencode
simulate: $(VENV)/.test ; SEEDS=$(SEEDS) SHELL_SEEDS=$(SHELL_SEEDS) CLUSTER_SEEDS=$(CLUSTER_SEEDS) SECONDS=$(SECONDS) FIRST=$(FIRST) $(BIN)/python -m tests.simulation
torture: $(VENV)/.test ; TORTURE_ROUNDS=$(ROUNDS) $(PYTEST) tests/torture
fuzz: $(VENV)/.test ; FUZZ_CASES=100000 FUZZ_FRAMES=400 $(BIN)/python -m pytest --timeout 0 -k hostile tests/protocol tests/log tests/network
proofs: $(VENV)/.test ; $(BIN)/python -m interop.proofs
coverage: $(VENV)/.coverage ; rm -rf build/coverage && $(BIN)/python -m coverage run -m pytest -n $(WORKERS) --timeout 0 -m "not slow" ; $(BIN)/python -m coverage combine -q && $(BIN)/python -m coverage report
release: $(VENV)/.test ; $(BIN)/python -m interop.release $(if $(DRY_RUN),--dry-run)
clean: ; rm -rf $(VENV) .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist

$(VENV)/.run: pyproject.toml ; $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install -q --disable-pip-version-check -e . && touch $@
$(VENV)/.test: $(VENV)/.run ; $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test,spark]' && touch $@
$(VENV)/.bench: $(VENV)/.test ; $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[bench]' && touch $@
$(VENV)/.coverage: $(VENV)/.test ; $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[coverage]' && touch $@
