"""What every test may ask for. A part that the machine lacks is skipped, unless HEVAL_REQUIRE=all: then its lack is an error.

For `live_server` with a browser nothing more is needed: tests.settings lets Django run beside the browser's event loop.
"""

import os
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.db import transaction
from django.test import TransactionTestCase

from studies.language import ENGLISH, in_language
from tests import made_database, thrift
from tests.frozen import forget_frozen_designs

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = "/usr/bin/chromium"
VENDOR = "postgresql" if os.environ.get("HEVAL_TEST_ON") == "postgres" else "sqlite"
IS_ALL_REQUIRED = os.environ.get("HEVAL_REQUIRE") == "all"
# Whoever asks for one of these touches the database.
DATABASE_FIXTURES = {"db", "transactional_db", "live_server", "admin_client", "admin_user", "django_db_reset_sequences"}


# Markers whose tests are run alone. A file with such a test has the marker's name in its text.
NAMED = ("browser", "postgres")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the proofs that take minutes, and nothing else")


def pytest_configure(config):
    thrift.start()


def pytest_collection_finish(session):
    thrift.keep_parts_of_fonts()
    thrift.keep_what_is_imported()


def pytest_ignore_collect(collection_path, config):
    """A run of one marker alone need not import the files that do not name it."""
    wanted = config.option.markexpr.split(" and ")[0]
    if wanted in NAMED and collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return wanted not in collection_path.read_text(encoding="utf-8") or None
    return None


def touches_database(item) -> bool:
    cls = getattr(item, "cls", None)
    return (
        item.get_closest_marker("django_db") is not None
        or bool(DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())))
        or (cls is not None and issubclass(cls, TransactionTestCase))
    )


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    """A file goes to one process, and the files of a group too: what their fixtures make is made once.

    Were each test given out alone, the controller would count all earlier ones after each of them, which costs as much as a hundred tests.
    """
    from xdist.scheduler import LoadGroupScheduling

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return super()._split_scope(nodeid).partition("::")[0]

        def _assign_work_unit(self, node) -> None:
            # Those with few tests first: among them are the slowest, and in the end no process waits long for another.
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

    return ByFile(config, log)


@pytest.hookimpl(tryfirst=True)  # before pytest looks at -m
def pytest_collection_modifyitems(config, items):
    for item in items:
        if (only := item.get_closest_marker("only_on")) is not None and only.args == ("postgresql",):
            item.add_marker(pytest.mark.postgres)

    for item in items:
        for name in NAMED:
            if item.get_closest_marker(name) and name not in item.path.read_text(encoding="utf-8"):
                raise pytest.UsageError(f"{item.nodeid} has the marker {name}, and its file does not name it")

    def is_wanted(item) -> bool:
        if bool(item.get_closest_marker("slow")) != config.getoption("--slow"):
            return False
        if any(
            bool(item.get_closest_marker(name)) != (config.option.markexpr == name) for name in ("r", "libreoffice")
        ):
            return False
        if (only := item.get_closest_marker("only_on")) is not None:
            if only.args not in (("sqlite",), ("postgresql",)):
                raise pytest.UsageError(f"{item.nodeid}: only_on names no database that the tests know")
            if only.args != (VENDOR,):
                return False
        # What asks no database has been seen already.
        return VENDOR == "sqlite" or touches_database(item)

    for item in items:
        if item.get_closest_marker("browser"):
            # Chromium itself dies now and then, once in some thousand tests: such a test is played once more, and counted as rerun.
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun="TargetClosedError"))
    kept = [item for item in items if is_wanted(item)]
    config.hook.pytest_deselected(items=[item for item in items if not is_wanted(item)])
    items[:] = kept


def skip_or_fail(what: str):
    """Skip, or fail where nothing may be left out."""
    if IS_ALL_REQUIRED:
        pytest.fail(f"{what}, and HEVAL_REQUIRE=all leaves nothing out", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """The copy in SQLite is there before Django looks for it. The home of this process is deleted at its end."""
    return VENDOR == "sqlite"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix, django_db_blocker):
    with django_db_blocker.unblock():
        made_database.begin_with_a_copy()


@pytest.fixture(scope="session")
def migrated_sqlite(django_db_setup) -> Path:
    """A new site's database, as ``heval prepare`` makes it. Copy it; PostgreSQL needs no file."""
    assert VENDOR == "sqlite"
    return made_database.COPY


@pytest.fixture(scope="module")
def module_transaction(django_db_setup, django_db_blocker):
    """Rows that a module's fixtures write are there for each of its tests, and are rolled back after the last.

    Each test runs in a savepoint of its own, so that it must read such rows anew. A test with ``transactional_db`` cannot be in that module.
    """
    with django_db_blocker.unblock():
        forget_frozen_designs()
        with transaction.atomic():
            yield
            transaction.set_rollback(True)


@pytest.fixture
def same_orders(monkeypatch):
    """Assignments with the same seeds in every run: the orders drawn from them decide which answer gets which noise.

    Without it one run in twenty finds a difference that is not there: a test at level .05 is meant to.
    """
    from annotators.models import Assignment

    seeds = count(1000)
    monkeypatch.setattr(Assignment._meta.get_field("seed"), "_get_default", lambda: next(seeds))


@pytest.fixture
def world(db) -> dict:
    """A site with a row of everything that has an address."""
    from tests.addresses import everything

    return everything()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the real stimuli and answers, beside the project."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        skip_or_fail("the real stimuli do not lie beside the project")
    return path


@pytest.fixture(autouse=True)
def _shared_is_there(request):
    if request.node.get_closest_marker("shared"):
        request.getfixturevalue("shared")


@pytest.fixture(autouse=True)
def _nothing_frozen_is_left(request):
    """A test that is rolled back gives its ids to the next one."""
    if touches_database(request.node):
        forget_frozen_designs()


@pytest.fixture(autouse=True)
def _words_are_english():
    """A test that makes parts of a page itself, without the wrapper of the views, activates its study's language for all that follow."""
    with in_language(ENGLISH):
        yield


@pytest.fixture
def in_one_minute(monkeypatch):
    """Count requests as if they came in one minute. A slow test would otherwise begin the next one, with new counts."""
    now = time.time()
    monkeypatch.setattr("studies.services.rate_limits.time", SimpleNamespace(time=lambda: now))


@pytest.fixture
def postgres_url() -> str:
    """A PostgreSQL server for tests that start processes of their own."""
    return os.environ.get("HEVAL_TEST_DATABASE_URL") or skip_or_fail(
        "HEVAL_TEST_DATABASE_URL names no PostgreSQL server"
    )


@pytest.fixture
def redis_url(worker_id) -> str:
    """A database of a Redis server that the tests may empty. Each process of a test run has its own, or one would take the other's messages."""
    url = os.environ.get("HEVAL_TEST_REDIS_URL") or skip_or_fail("HEVAL_TEST_REDIS_URL names no Redis server")
    server, _, number = url.rpartition("/")
    return f"{server}/{int(number) + int(worker_id.removeprefix('gw').replace('master', '0'))}"


@pytest.fixture(scope="session")
def chromium():
    """Gives the headless Chromium of this process, driven by Playwright's synchronous interface; a new one where it has died."""
    if not Path(CHROMIUM).exists():
        skip_or_fail(f"{CHROMIUM} is not installed")
    from playwright.sync_api import sync_playwright

    started = []

    def alive():
        if not started or not started[-1].is_connected():
            started.append(
                playwright.chromium.launch(
                    executable_path=CHROMIUM,
                    args=[
                        "--no-sandbox",
                        "--disable-gpu",
                        "--disable-quic",
                        "--no-first-run",
                        "--disable-background-networking",
                        "--disable-component-update",
                        "--disable-sync",
                    ],
                )
            )
        return started[-1]

    with sync_playwright() as playwright:
        yield alive
        for one in started:
            one.close()


@pytest.fixture
def browser(chromium):
    return chromium()


@pytest.fixture
def chromium_page(browser):
    """A fresh page without cookies, in a context of its own."""
    context = browser.new_context()
    yield context.new_page()
    context.close()
