# Only python3 (3.11 or newer) and make are needed. Every target may be run again; what is there is not made twice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HEVAL := $(BIN)/python -m heval_site.cli
# Where `make demo` and `make up` keep database, media and secrets.
export HEVAL_HOME ?= $(CURDIR)/state
# What asks the database in its own way: places, answers, pay, guards, drawing, jobs, imports, exports, snapshots, the report.
POSTGRES_TESTS := tests/annotators/test_assign.py tests/annotators/test_import_answers.py tests/annotators/test_indexes.py tests/annotators/test_races.py \
	tests/annotators/test_ids_migration.py tests/annotators/test_images.py tests/annotators/test_lost_visits.py \
	tests/annotators/test_places.py \
	tests/annotators/test_prepared.py tests/annotators/test_record.py tests/annotators/test_settle.py tests/annotators/test_tasks.py tests/pay/test_book.py \
	tests/panels/test_orders.py tests/panels/test_reconcile.py tests/panels/test_traces_of_people.py tests/verdicts \
	tests/heval_site --ignore=tests/heval_site/test_rehearsal.py \
	tests/studies/test_bundle.py tests/studies/test_constraints.py tests/studies/test_draw.py tests/studies/test_guards.py \
	tests/studies/test_jobs.py tests/studies/test_lifecycle.py tests/analysis/test_archive.py tests/analysis/test_exclusions.py \
	tests/analysis/test_exports.py tests/analysis/test_frames.py tests/analysis/test_report.py tests/analysis/test_runs.py \
	tests/analysis/test_snapshot.py tests/test_bad_input_annotators.py tests/test_bad_input_answers.py \
	tests/test_bad_input_studies.py::test_every_number_that_people_give_has_a_limit_that_each_database_holds
# What asks it as everything does: for changes of the database's version or driver, and now and then.
POSTGRES_MORE := tests/annotators tests/panels tests/pay tests/verdicts tests/heval_site tests/studies tests/analysis/coding tests/analysis/test_*.py \
	tests/test_bad_input_*.py tests/test_robots*.py
# Processes of the test run; 0: in this one.
WORKERS ?= 2
ARGS ?=

.PHONY: help demo up test test-slow test-postgres test-postgres-more bench bench-stats lint format locks clean

help:
	@echo "make demo        a site with a study, its annotator's link and its report, at http://127.0.0.1:8000"
	@echo "make up          the site alone"
	@echo "make test        the tests (ARGS='-k jobs' for some, WORKERS=0 for one process)"
	@echo "make test-slow   the proofs that take minutes"
	@echo "make test-postgres  the tests that ask the database in its own way, on the server of HEVAL_TEST_DATABASE_URL"
	@echo "make test-postgres-more  all tests that touch the database, there"
	@echo "make bench       the annotator's cycle against a bare view, on SQLite and PostgreSQL"
	@echo "make bench-stats the statistics against the usual way to compute the same"
	@echo "make lint        ruff, mypy, import contracts, migrations, Dockerfile"
	@echo "make locks       requirements*.lock from pyproject.toml (needs uv)"

demo: $(VENV)/.installed
	$(HEVAL) demo

up: $(VENV)/.installed
	$(HEVAL) up

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --slow $(ARGS)

test-postgres: $(VENV)/.installed-dev
	HEVAL_TEST_ON=postgres $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(POSTGRES_TESTS) $(ARGS)

test-postgres-more: $(VENV)/.installed-dev
	HEVAL_TEST_ON=postgres $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not browser" $(POSTGRES_MORE) $(ARGS)

bench: $(VENV)/.installed-dev
	$(BIN)/python -m tests.bench.annotator_cycle $(ARGS)

bench-stats: $(VENV)/.installed-dev
	$(BIN)/python -m tests.bench.statistics $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(HEVAL) makemigrations --check --dry-run
	$(BIN)/hadolint Dockerfile

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

locks:
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header pyproject.toml -o requirements.lock
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
