# Only python3 (3.11 or newer) and make are needed. Every target may be run again; what is there is not made twice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HEVAL := $(BIN)/python -m heval_site.management.cli
# Where `make demo` and `make up` keep database, media and secrets.
export HEVAL_HOME ?= $(CURDIR)/state
# Processes of the test run; 0: in this one.
WORKERS ?= 2
ARGS ?=
# Each process of the test run has one thread: more of them wait for one another, and a matrix of 2 s takes 50.
test test-slow test-postgres test-postgres-more: export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help demo up test coverage test-slow test-rest test-postgres test-postgres-more bench bench-stats lint format locks release clean

help:
	@echo "make demo        a site with a study, its annotator's link, its report and a board, at http://127.0.0.1:8000"
	@echo "make up          the site alone"
	@echo "make test        the tests (ARGS='-k jobs' for some, WORKERS=0 for one process)"
	@echo "make coverage    the tests, and which lines of the product they reach"
	@echo "make test-slow   the tests that take seconds or minutes each, which run every night"
	@echo "make test-rest   20,000 generated requests to REST, and generated clients for Python and TypeScript"
	@echo "make test-postgres  the tests with the marker postgres, on the server of HEVAL_TEST_DATABASE_URL"
	@echo "make test-postgres-more  all tests that touch the database, there"
	@echo "make bench       the annotator's cycle against a bare view, on SQLite and PostgreSQL"
	@echo "make bench-stats the statistics against the usual way to compute the same"
	@echo "make lint        ruff (rules and format), mypy, import contracts, migrations, Dockerfile"
	@echo "make format      let ruff repair and format what lint would refuse"
	@echo "make release     the wheel and its notes in dist/, checked in a new environment (TAG=v0.1.0)"
	@echo "make locks       requirements*.lock from pyproject.toml (needs uv)"

demo: $(VENV)/.installed
	$(HEVAL) demo

up: $(VENV)/.installed
	$(HEVAL) up

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --cov --cov-report=term:skip-covered $(ARGS)

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --slow $(ARGS)

test-rest: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 0 --slow tests/analysis/api/test_generated_requests.py tests/analysis/api/test_generated_clients.py $(ARGS)

test-postgres: $(VENV)/.installed-dev
	HEVAL_TEST_ON=postgres $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "postgres and not browser" $(ARGS)

test-postgres-more: $(VENV)/.installed-dev
	HEVAL_TEST_ON=postgres $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not browser" $(ARGS)

bench: $(VENV)/.installed-dev
	$(BIN)/python -m tools.proofs.bench.annotator_cycle $(ARGS)

bench-stats: $(VENV)/.installed-dev
	$(BIN)/python -m tools.proofs.bench.statistics $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(HEVAL) makemigrations --check --dry-run
	$(BIN)/hadolint Dockerfile

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

release: $(VENV)/.installed-dev
	$(BIN)/python -m tools.release $(if $(TAG),--tag $(TAG))

locks:
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --extra pdf pyproject.toml -o requirements.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --extra dev pyproject.toml -o requirements-dev.lock

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "heval needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

# What runs is exactly what was locked: pip refuses a file whose hash is another.
$(VENV)/.installed: requirements.lock | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@touch $@

# The second lock holds the first and the tools.
$(VENV)/.installed-dev: requirements-dev.lock | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	@touch $@ $(VENV)/.installed
