.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format docs bench zoo clean distclean

PYTHON ?= python3
BIN := .venv/bin
DEMO_ARGS ?= --out demo-out
BENCH_ARGS ?=
TEST_ARGS ?=
WORKERS ?= 2

# Two set-ups at once would disturb each other: the second waits where flock exists.
LOCK := $(shell command -v flock >/dev/null 2>&1 && echo flock pyproject.toml)
# Each test worker has one thread, so that workers do not compete for cores. The demo too: on a busy
# machine several threads wait for each other, and take several times as long as one.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup:  ## create .venv with the pinned dependencies (cheap to repeat)
	@$(LOCK) $(MAKE) --no-print-directory --silent .venv/.stamp

# .unfinished marks a set-up that began and did not end: pip may have left half a package, so start
# afresh. It becomes the stamp at the end and keeps its time of the beginning: what was edited
# meanwhile is newer.
.venv/.stamp: pyproject.toml constraints.txt
	echo "Setting up .venv, which takes a few minutes the first time"
	if [ -e .venv/.unfinished ]; then rm -rf .venv; fi
	mkdir -p .venv
	touch .venv/.unfinished
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt hatchling editables
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation \
		-e '.[dev,plot,sklearn,peers,docs]'
	mv .venv/.unfinished $@

demo: setup  ## solve the demonstration problems and write a report (DEMO_ARGS)
	$(ONE_THREAD) $(BIN)/python -m proxlearn demo $(DEMO_ARGS)

test: lint  ## lint, then tests and doctests (TEST_ARGS, WORKERS)
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) $(TEST_ARGS)

lint: setup  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## let ruff fix and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup  ## build the documentation into docs/_build/html; warnings are errors
	@rm -rf docs/api  # generated: pages of what is gone would be warnings
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "wrote docs/_build/html/index.html (open it in a browser)"

bench: setup  ## what a gradient costs, and other solvers on the same problems (BENCH_ARGS)
	$(BIN)/python benchmarks/gradient.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/peers.py --markdown docs/benchmarks-table.md $(BENCH_ARGS)

zoo: setup  ## train and measure all shipped models again, into zoo/ (hours; resumes)
	$(BIN)/python -m proxlearn.zoo --out zoo

clean:  ## remove outputs and caches
	rm -rf build dist demo-out docs/_build docs/gallery docs/api .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -path ./.git -prune -o -type d -name __pycache__ -exec rm -rf {} +

distclean: clean  ## remove .venv as well
	rm -rf .venv
