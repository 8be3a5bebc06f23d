# One command each; the first one called sets up .venv by itself.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SHOWN  := $(VENV)/.shown
SCALE  := $(VENV)/.scale
PANDAS := .venv-pandas3
LOWEST := .venv-lowest
NEWEST := .venv-newest
DIST   := .venv-dist
FRAMES := src/orcast/frame tests/frame tests/cli/test_cli_recalibrate.py tests/evaluate
# a file of tests stays in one process: what its tests share is made once
CORES  := -n auto --maxprocesses=4 --dist loadfile
# what needs no other library: not the integrations, and not the research with its rivals
CORE   := --doctest-ignore-import-errors --ignore=tests/project --ignore=tests/integrations --ignore=research --ignore=tests/research
PLAIN  := ".[cli,demo,test]"
# from Python 3.12 on lines are counted at little cost; before that it takes a third more time, and has a target of its own
COUNTER = $(shell $(BIN)/python -c 'import sys; print("sysmon" * hasattr(sys, "monitoring"))')
LINES   = --cov --cov-report=

# bytecode is kept: tests start many processes, each of which would compile the sources again
unexport PYTHONDONTWRITEBYTECODE
# kernels that cannot be compiled are an error; with ORCAST_BUILD=pure they run as Python
export ORCAST_BUILD ?= compiled
# compiles the kernels that changed; what it makes serves every Python, so that all environments share it
BUILD := setup.py -q build_ext --inplace --build-lib build/inplace --build-temp build/temp

.DEFAULT_GOAL := help
.PHONY: help demo build test test-all test-checked test-pandas3 test-lowest test-newest coverage bench docs licences dist lint types format hooks clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

INSTALL := -m pip install -qq --disable-pip-version-check

# environment, options of pip, what to install; the kernels are compiled by $(BUILD), not by pip
define environment
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@$(1)/bin/python $(INSTALL) $(2) "setuptools>=77.0.1" "Cython>=3.1"
	@ORCAST_BUILD=pure $(1)/bin/python $(INSTALL) $(2) --no-build-isolation $(3)
endef

# the demo needs little; everything else, the libraries that orcast is at home in too
$(SHOWN): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (half a minute, once)"
	$(call environment,$(VENV),-c constraints.txt,-e . pandas)
	@touch $@

$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (two minutes, once)"
	$(call environment,$(VENV),-c constraints.txt,-e ".[dev]")
	@touch $(SHOWN) $@

# Ray and Dask, for their recipes alone
$(SCALE): $(READY)
	@ORCAST_BUILD=pure $(BIN)/python $(INSTALL) -c constraints.txt --no-build-isolation -e ".[scale]"
	@touch $@

# some of those libraries do not take pandas 3 yet; orcast does
$(PANDAS)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(PANDAS) (half a minute, once)"
	@mkdir -p $(PANDAS) && grep -v '^pandas==' constraints.txt > $(PANDAS)/constraints.txt
	$(call environment,$(PANDAS),-c $(PANDAS)/constraints.txt,"pandas>=3" -e $(PLAIN))
	@touch $@

$(LOWEST)/.ready: pyproject.toml constraints-lowest.txt
	@echo "setting up $(LOWEST) (half a minute, once)"
	$(call environment,$(LOWEST),-c constraints-lowest.txt,-e $(PLAIN))
	@touch $@

$(NEWEST)/.ready: pyproject.toml
	@echo "setting up $(NEWEST) (a minute, once)"
	$(call environment,$(NEWEST),--upgrade --upgrade-strategy eager,-e $(PLAIN))
	@touch $@

$(DIST)/.ready: constraints.txt
	@test -x $(DIST)/bin/python || $(PYTHON) -m venv $(DIST)
	@$(DIST)/bin/python $(INSTALL) -c constraints.txt build twine
	@touch $@

demo: $(SHOWN)  ## recalibrate a real series: verdict and report
	@ORCAST_BUILD=$(ORCAST_BUILD:compiled=) $(BIN)/python $(BUILD)
	@$(BIN)/python examples/day_ahead_frame.py

build: $(READY)  ## compile the kernels that changed, in place
	@$(BIN)/python $(BUILD)

# types are checked beside: one process, while the tests are being collected
test: lint build  ## the gate: lint, types, tests, doc snippets
	@$(BIN)/mypy & types=$$!; \
	COVERAGE_CORE=$(COUNTER) $(BIN)/python -m pytest -q --durations=25 $(CORES) $(if $(COUNTER),$(LINES)); tests=$$?; \
	wait $$types && exit $$tests

coverage: build  ## the tests alone, with the lines that they reach
	@COVERAGE_CORE=$(COUNTER) $(BIN)/python -m pytest -q $(CORES) --cov --cov-report=term:skip-covered

test-all: lint types build $(SCALE)  ## the gate and the slow tests, with more random examples
	@$(BIN)/python -m pytest -q -m "" --hypothesis-profile=thorough $(CORES)

test-checked: build  ## the tests of the kernels, compiled with AddressSanitizer and bounds checks
	@$(BIN)/python tests/checked.py

test-pandas3: $(PANDAS)/.ready  ## what touches data frames, with pandas 3
	@$(PANDAS)/bin/python $(BUILD)
	@$(PANDAS)/bin/python -m pytest -q $(CORES) $(FRAMES)

test-lowest: $(LOWEST)/.ready  ## what needs no other library, with the lowest versions of the dependencies
	@$(LOWEST)/bin/python $(BUILD)
	@$(LOWEST)/bin/python -m pytest -q $(CORES) $(CORE)

# PYTHON=python3.13 with NEWEST=.venv-3.13 tries another Python beside
test-newest: $(NEWEST)/.ready  ## the same with the newest versions, which a bare pip install takes
	@$(NEWEST)/bin/python $(BUILD)
	@$(NEWEST)/bin/python -m pytest -q $(CORES) $(CORE)

bench: build  ## benchmarks: ratios from one run
	@$(BIN)/python -m research bench

docs: build  ## the documentation site, in site/; open site/index.html
	@PYTHONPATH=docs $(BIN)/zensical build --clean --strict

licences: $(READY) $(SCALE)  ## what the dependencies are licensed under, in docs/licences.md
	@$(BIN)/python docs/licences.py

dist: $(DIST)/.ready  ## sdist, compiled wheel and wheel for any Python, in dist/; each wheel runs the README's first example
	@rm -rf dist
	@$(DIST)/bin/python -m build --quiet
	@ORCAST_BUILD=pure $(DIST)/bin/python -m build --quiet --wheel
	@$(DIST)/bin/twine check --strict dist/*
	@place=$$(mktemp -d) && trap 'rm -rf "$$place"' EXIT && for wheel in dist/*.whl; do \
	$(PYTHON) -m venv --clear "$$place" && "$$place/bin/python" $(INSTALL) "$$wheel" \
	&& "$$place/bin/python" tests/wheel.py "$$wheel" || exit 1; done

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
	rm -rf $(VENV) $(PANDAS) $(LOWEST) $(NEWEST) $(DIST) site build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .cache .coverage*
	rm -f src/orcast/kernels/*.so src/orcast/kernels/*.pyd
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
