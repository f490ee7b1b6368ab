.DEFAULT_GOAL := help
.PHONY: help setup demo-setup fresh-start build wheel sanitize demo test quick test-pythons dropin fuzz counts lint format docs bench zoo clean distclean

PYTHON ?= python3
BIN := .venv/bin
DEMO_ARGS ?= --out demo-out
BENCH_ARGS ?=
TEST_ARGS ?=
FUZZ_ARGS ?=
COUNTS_ARGS ?=
PYTHONS ?=
PIP_ARGS ?=
WORKERS ?= 2
SANITIZE_TESTS ?= tests/core
# Which instruction sets "make build" builds the compiled core for: all, native, base, v2, v3 or v4.
# Without it: those of the last time, at first native.
ISA ?=

# Two set-ups at once would disturb each other: the second waits where flock exists.
LOCK := $(shell command -v flock >/dev/null 2>&1 && echo flock pyproject.toml)
# Each test worker has one thread, so that workers do not compete for cores. The demo too: on a busy
# machine several threads wait for each other, and take several times as long as one.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
# Many containers forbid Python to keep byte code. The set-up installs none, so that each process would
# compile all it imports again: 14 s of processor time to collect the tests, 6 s with byte code.
unexport PYTHONDONTWRITEBYTECODE

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 21

setup:  ## create .venv with all pinned dependencies, and build (cheap to repeat)
	@$(LOCK) $(MAKE) --no-print-directory --silent fresh-start .venv/.stamp

# What the demo and a build need, without the tools for tests and documentation.
demo-setup:
	@$(LOCK) $(MAKE) --no-print-directory --silent fresh-start .venv/.demo-stamp

# Only wheels are installed: pip stops with an error at a package that has none, instead of building it.
# Without --no-compile pip would spend half of its time on byte code of modules that are never imported.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile -c constraints.txt --only-binary :all: \
	$(PIP_ARGS)
NOT_INSTALLED := { echo "pip could not install what it names above; only packages with a wheel for \
this Python and machine are accepted"; exit 1; }
WITH_TOOLS := PATH="$(CURDIR)/$(BIN):$$PATH"

# .unfinished marks a set-up that began and did not end: pip may have left half a package, so start
# afresh. It becomes the stamp at the end and keeps its time of the beginning: what was edited
# meanwhile is newer.
fresh-start:
	if [ -e .venv/.unfinished ]; then rm -rf .venv; fi

.venv/.demo-stamp: pyproject.toml constraints.txt
	echo "Setting up .venv for the demo, which takes about a minute the first time"
	mkdir -p .venv
	touch .venv/.unfinished
	$(PYTHON) -m venv .venv
	$(BIN)/python tools/build_backend.py --requirements > .venv/requirements.txt
	$(INSTALL) -r .venv/requirements.txt || $(NOT_INSTALLED)
	$(BIN)/python tools/build_backend.py
	$(WITH_TOOLS) $(INSTALL) --no-build-isolation -e '.[learn,plot,sklearn]' || $(NOT_INSTALLED)
	mv .venv/.unfinished $@

# celer without its dependencies: they download data sets and draw, nothing that it imports here needs
# them, and one of them has no wheel.
.venv/.stamp: .venv/.demo-stamp
	echo "Adding what tests, benchmarks and documentation need, which takes a few minutes the first time"
	touch .venv/.unfinished
	$(WITH_TOOLS) $(INSTALL) --no-build-isolation -e '.[dev,peers,docs]' || $(NOT_INSTALLED)
	$(INSTALL) --no-deps celer || $(NOT_INSTALLED)
	mv .venv/.unfinished $@

build: demo-setup  ## bring the compiled core up to date with its sources (ISA)
	@$(LOCK) $(BIN)/python tools/build_backend.py $(ISA)

wheel: demo-setup  ## build what users install, for all instruction sets, into dist/
	@rm -rf dist
	$(WITH_TOOLS) $(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps \
		--wheel-dir dist .
	@ls dist/*.whl

# The package with its core under the address and undefined-behaviour sanitizers is installed below
# build/sanitize and found before the one in src. Python itself frees not everything at its exit, so
# leaks are not looked for. libstdc++ comes first for the exceptions of other libraries.
SANITIZED := $(CURDIR)/build/sanitize
SANITIZERS = $(foreach name,libasan.so libubsan.so libstdc++.so,$(shell $${CC:-cc} -print-file-name=$(name)))
sanitize: setup  ## run tests of the compiled core under the sanitizers (SANITIZE_TESTS)
	rm -rf $(SANITIZED)
	$(WITH_TOOLS) meson setup $(SANITIZED) . -Dsanitize=true -Disa=native \
		--prefix=$(SANITIZED)/prefix -Dpython.purelibdir=package -Dpython.platlibdir=package >/dev/null
	$(WITH_TOOLS) meson install --quiet -C $(SANITIZED)
	$(ONE_THREAD) PYTHONPATH=$(SANITIZED)/prefix/package PYTHONMALLOC=malloc \
		LD_PRELOAD="$(SANITIZERS)" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		$(BIN)/python -m pytest $(SANITIZE_TESTS)

demo: build  ## train a rule, solve fresh problems, write a page: about a minute (DEMO_ARGS)
	$(ONE_THREAD) $(BIN)/python -m proxlearn demo $(DEMO_ARGS)

test: lint  ## lint, then tests and doctests (TEST_ARGS, WORKERS)
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) $(TEST_ARGS)

quick: setup build  ## tests without the slow ones (TEST_ARGS, WORKERS)
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) -m "not slow" $(TEST_ARGS)

test-pythons:  ## what needs no PyTorch, on every Python 3.10 to 3.13 that is installed (PYTHONS)
	$(ONE_THREAD) $(PYTHON) tools/test_pythons.py $(PYTHONS)

dropin: setup build  ## scikit-learn's own tests with proxlearn's classes in place of its own
	$(ONE_THREAD) $(BIN)/python tests/dropin/count.py

fuzz: setup build  ## random problems, every SOLVED checked in extended precision (FUZZ_ARGS)
	cd tests && $(ONE_THREAD) ../$(BIN)/python -m fuzz $(FUZZ_ARGS)

counts: setup build  ## iterations and gradients on fixed problems against the last release (COUNTS_ARGS)
	$(ONE_THREAD) $(BIN)/python benchmarks/counts.py $(COUNTS_ARGS)

lint: setup build  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## let ruff fix and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup build  ## build the documentation into docs/_build/html; warnings are errors
	@rm -rf docs/api  # generated: pages of what is gone would be warnings
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "wrote docs/_build/html/index.html (open it in a browser)"

bench: setup build  ## what a gradient costs, and other solvers on the same problems (BENCH_ARGS)
	$(BIN)/python benchmarks/gradient.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/peers.py --markdown docs/benchmarks-table.md $(BENCH_ARGS)

zoo: setup build  ## train and measure all shipped models again, into zoo/ (hours; resumes)
	$(BIN)/python -m proxlearn.zoo --out zoo

clean:  ## remove outputs and caches
	rm -rf build dist demo-out docs/_build docs/gallery docs/api .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -path ./.git -prune -o -type d -name __pycache__ -exec rm -rf {} +

distclean: clean  ## remove .venv as well
	rm -rf .venv
