# One command each; the first one called sets up .venv by itself.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SHOWN  := $(VENV)/.shown
PANDAS := .venv-pandas3
FRAMES := src/orcast/panel $(addprefix tests/test_,$(addsuffix .py,columns panel panel_play panel_state cli_recalibrate evidence))
# a file of tests stays in one process: what its tests share is made once
CORES  := -n auto --maxprocesses=4 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-cpus test-pandas3 mutate bench docs lint types format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

INSTALL := -m pip install -qq --disable-pip-version-check

# the demo needs little; everything else, the libraries that orcast is at home in too
$(SHOWN): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (half a minute, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(INSTALL) -c constraints.txt -e ".[demo]"
	@touch $@

$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (two minutes, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(INSTALL) -c constraints.txt -e ".[dev]"
	@touch $(SHOWN) $@

# some of those libraries do not take pandas 3 yet; orcast does
$(PANDAS)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(PANDAS) (half a minute, once)"
	@test -x $(PANDAS)/bin/python || $(PYTHON) -m venv $(PANDAS)
	@grep -v '^pandas==' constraints.txt > $(PANDAS)/constraints.txt
	@$(PANDAS)/bin/python $(INSTALL) -c $(PANDAS)/constraints.txt "pandas>=3" pytest pytest-xdist hypothesis scoringrules -e ".[cli,demo]"
	@touch $@

demo: $(SHOWN)  ## recalibrate a real stream: table and picture
	@$(BIN)/python -m orcast.demo

test: lint types  ## the gate: lint, types, tests, doc snippets
	@$(BIN)/python -m pytest -q --durations=25 $(CORES)

test-all: lint types  ## the gate and the slow tests, with more random examples
	@$(BIN)/python -m pytest -q -m "" --hypothesis-profile=thorough $(CORES)

# SHORT=1 is the part for the gate: after `make test` it compiles nothing, so one process is the quickest
test-cpus: $(READY)  ## what depends on numbers, with the kernels of other processors
	@$(BIN)/python tests/cpus.py $(if $(SHORT),--short,$(CORES))

test-pandas3: $(PANDAS)/.ready  ## what touches data frames, with pandas 3
	@$(PANDAS)/bin/python -m pytest -q $(CORES) $(FRAMES)

mutate: $(READY)  ## faults put in one at a time: which test catches each
	@$(BIN)/python -m tests.mutate $(FAULTS)

bench: $(READY)  ## benchmarks: ratios from one run
	@$(BIN)/python -m benchmarks

docs: $(READY)  ## the documentation site, in site/; open site/index.html
	@PYTHONPATH=docs $(BIN)/zensical build --clean --strict

lint: $(READY)  ## ruff: rules and formatting
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(READY)  ## mypy on the package
	@$(BIN)/mypy

format: $(READY)  ## rewrite the files in the house style
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

clean:  ## remove .venv, caches and build products
	rm -rf $(VENV) $(PANDAS) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
