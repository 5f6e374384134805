# Every target works in a fresh clone: what is missing is installed below .venv and ~/.cache/lakehouse.

PYTHON ?= $(shell for p in python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null \
	&& { echo $$p; break; }; done)
BIN := .venv/bin
READY := .venv/.ready
ON_ANY_S3 := $(addprefix tests/service/test_,objects_s3.py commit_servers.py main_job.py upkeep_on_servers.py)

.PHONY: setup install demo ui test test-seaweedfs check bench up down status help
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile

setup: $(READY) ## make .venv from the pinned, hashed requirements

$(READY): requirements/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "make setup needs Python 3.11 or 3.12; install it or set PYTHON=/path/to/python3"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv \
		|| { rm -rf .venv; echo "$(PYTHON) could not make a virtual environment; on Debian install python3-venv"; exit 1; }
	@# uv is quick; where it can't reach the index that pip is set up for, pip installs the same pinned set.
	@sed -n '/^uv==/,/[^\\]$$/p' requirements/dev.txt > .venv/uv.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r .venv/uv.txt
	$(BIN)/uv pip install -q -p $(BIN)/python --require-hashes -r requirements/dev.txt \
		|| $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps --no-index -e .
	@touch $@

install: $(READY) ## install the servers, Chromium and fonts that tests and benchmarks use
	$(BIN)/python -m infra install

demo: $(READY) ## run the main job on the demo site, without any server
	$(BIN)/lakehouse demo

ui: $(READY) ## open the Dagster UI
	$(BIN)/lakehouse serve

test: install ## run all tests, two files at a time; each process starts and stops its own servers
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

test-seaweedfs: install ## run the tests that store and read on a second S3 server, SeaweedFS instead of MinIO
	LAKEHOUSE_TEST_S3=seaweedfs $(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS) $(ON_ANY_S3)

check: $(READY) ## lint, format, types, import layers and the catalog
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/lakehouse check

bench: install ## run every benchmark in its quick form; one JSON object a line
	@for file in $$(grep -l '^if __name__ == .__main__.' benchmarks/*.py); do \
		$(BIN)/python -m benchmarks.$$(basename $$file .py) --json --quick || exit 1; done

up: $(READY) ## start PostgreSQL, MinIO and Trino (a second time does nothing)
	$(BIN)/python -m infra up

down: $(READY) ## stop what `make up` started
	$(BIN)/python -m infra down

status: $(READY) ## say which server runs where
	$(BIN)/python -m infra status
