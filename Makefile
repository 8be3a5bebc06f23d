# One command each; the first one called sets up .venv by itself.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
KERNELS := $(VENV)/.kernels

.DEFAULT_GOAL := help
.PHONY: help demo test test-all bench lint types format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (a minute, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

# numba's cache does not see that a kernel in another file has changed
$(KERNELS): $(wildcard src/orcast/*/_*.py) src/orcast/ledger.py src/orcast/spaces/ordered.py | $(READY)
	@find src -name '*.nb[ic]' -delete
	@touch $@

demo: $(READY) $(KERNELS)  ## recalibrate a real stream: table and picture
	@$(BIN)/python -m orcast.demo

test: lint types $(KERNELS)  ## the gate: lint, types, tests, doc snippets
	@$(BIN)/python -m pytest -q

test-all: lint types $(KERNELS)  ## the gate and the slow tests, with more random examples
	@$(BIN)/python -m pytest -q -m "" --hypothesis-profile=thorough

bench: $(READY) $(KERNELS)  ## benchmarks: ratios from one run
	@$(BIN)/python -m benchmarks

lint: $(READY)  ## ruff: rules and formatting
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(READY)  ## mypy on the package
	@$(BIN)/mypy

format: $(READY)  ## rewrite the files in the house style
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

clean:  ## remove .venv, caches and build products
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
