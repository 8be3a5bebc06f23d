# One command each; the first one called sets up .venv by itself.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SHOWN  := $(VENV)/.shown
PANDAS := .venv-pandas3
LOWEST := .venv-lowest
NEWEST := .venv-newest
DIST   := .venv-dist
FRAMES := src/orcast/panel tests/panel tests/cli/test_cli_recalibrate.py tests/evidence
# a file of tests stays in one process: what its tests share is made once
CORES  := -n auto --maxprocesses=4 --dist loadfile
# what needs no library that orcast is at home in
CORE   := --doctest-ignore-import-errors --ignore=tests/project --ignore=tests/integrations
# from Python 3.12 on lines are counted at little cost; before that it takes a third more time, and has a target of its own
COUNTER = $(shell $(BIN)/python -c 'import sys; print("sysmon" * hasattr(sys, "monitoring"))')
LINES   = --cov --cov-report=

# bytecode is kept: tests start many processes, each of which would compile the sources again
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-cpus test-pandas3 test-lowest test-newest coverage bench docs licences dist lint types format hooks clean

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
	@$(PANDAS)/bin/python $(INSTALL) -c $(PANDAS)/constraints.txt "pandas>=3" -e ".[cli,demo,test]"
	@touch $@

$(LOWEST)/.ready: pyproject.toml constraints-lowest.txt
	@echo "setting up $(LOWEST) (half a minute, once)"
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python $(INSTALL) -c constraints-lowest.txt -e ".[cli,demo,test]"
	@touch $@

$(NEWEST)/.ready: pyproject.toml
	@echo "setting up $(NEWEST) (a minute, once)"
	@test -x $(NEWEST)/bin/python || $(PYTHON) -m venv $(NEWEST)
	@$(NEWEST)/bin/python $(INSTALL) --upgrade --upgrade-strategy eager -e ".[cli,demo,test]"
	@touch $@

$(DIST)/.ready: constraints.txt
	@test -x $(DIST)/bin/python || $(PYTHON) -m venv $(DIST)
	@$(DIST)/bin/python $(INSTALL) -c constraints.txt build twine
	@touch $@

demo: $(SHOWN)  ## recalibrate a real stream: table and picture
	@$(BIN)/python -m orcast.demo

# types are checked beside: one process, while the tests are being collected
test: lint  ## the gate: lint, types, tests, doc snippets
	@$(BIN)/mypy & types=$$!; \
	COVERAGE_CORE=$(COUNTER) $(BIN)/python -m pytest -q --durations=25 $(CORES) $(if $(COUNTER),$(LINES)); tests=$$?; \
	wait $$types && exit $$tests

coverage: $(READY)  ## the tests alone, with the lines that they reach
	@COVERAGE_CORE=$(COUNTER) $(BIN)/python -m pytest -q $(CORES) --cov --cov-report=term:skip-covered

test-all: lint types  ## the gate and the slow tests, with more random examples
	@$(BIN)/python -m pytest -q -m "" --hypothesis-profile=thorough $(CORES)

# SHORT=1 is the part for the gate: after `make test` it compiles nothing, so one process is the quickest
test-cpus: $(READY)  ## what depends on numbers, with the kernels of other processors
	@$(BIN)/python tests/cpus.py $(if $(SHORT),--short,$(CORES))

test-pandas3: $(PANDAS)/.ready  ## what touches data frames, with pandas 3
	@$(PANDAS)/bin/python -m pytest -q $(CORES) $(FRAMES)

# kernels compiled by another numba have a cache of their own
test-lowest: $(LOWEST)/.ready  ## what needs no other library, with the lowest versions of the dependencies
	@NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/kernels $(LOWEST)/bin/python -m pytest -q $(CORES) $(CORE)

# PYTHON=python3.13 with NEWEST=.venv-3.13 tries another Python beside
test-newest: $(NEWEST)/.ready  ## the same with the newest versions, which a bare pip install takes
	@NUMBA_CACHE_DIR=$(CURDIR)/$(NEWEST)/kernels $(NEWEST)/bin/python -m pytest -q $(CORES) $(CORE)

bench: $(READY)  ## benchmarks: ratios from one run
	@$(BIN)/python -m research bench

# PYODIDE=folder, an unpacked distribution of Pyodide, lets the live page run
docs: $(READY)  ## the documentation site, in site/; open site/index.html
	@PYTHONPATH=docs $(BIN)/zensical build --clean --strict
	@ORCAST_KERNELS=python $(BIN)/python docs/live_assets.py site $(PYODIDE)

licences: $(READY)  ## what the dependencies are licensed under, in docs/licences.md
	@$(BIN)/python docs/licences.py

dist: $(DIST)/.ready  ## sdist and wheel, in dist/; the wheel, alone, runs the README's first example
	@rm -rf dist
	@$(DIST)/bin/python -m build --quiet
	@$(DIST)/bin/twine check --strict dist/*
	@place=$$(mktemp -d) && trap 'rm -rf "$$place"' EXIT && $(PYTHON) -m venv "$$place/venv" \
	&& "$$place/venv/bin/python" $(INSTALL) dist/*.whl \
	&& awk '/^```python/ {code = 1; next} /^```/ && code {exit} code' README.md > "$$place/example.py" \
	&& cd "$$place" && venv/bin/python example.py

lint: $(READY)  ## ruff: rules and formatting
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(READY)  ## mypy on the package
	@$(BIN)/mypy

format: $(READY)  ## rewrite the files in the house style
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

hooks: $(READY)  ## run what pre-commit runs, on all files
	@$(BIN)/pre-commit run --all-files

clean:  ## remove .venv, caches and build products
	rm -rf $(VENV) $(PANDAS) $(LOWEST) $(NEWEST) $(DIST) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache .coverage*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
