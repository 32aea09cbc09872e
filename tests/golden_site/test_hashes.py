"""The reports of the stored studies say what they said when they were stored."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT

from .hashes import stored

# Those that take a second or more; the others go through most of the code in a few.
LONG = frozenset(
    {
        "paper", "every protocol", "human or machine", "utilities", "amended", "amended human or machine", "ratings apart",
        "one output at a time", "given elsewhere", "imported", "replayed",
    }
)  # fmt: skip
TITLES = {name.removesuffix(" (other parameters)") for name in stored()}


# The worker that has upgraded the site: see test_upgrade.
pytestmark = pytest.mark.xdist_group("upgrade")


def is_same(titles, database):
    # A process of its own, which has the stored database. Another processor rounds the last digits otherwise, and what is found by a
    # search or by counting resamples then differs in the third one. On one machine the command compares to the last bit.
    command = [sys.executable, "-m", "tests.golden_site.hashes", str(database), "--tolerance", "1e-9"]
    studies = [word for title in sorted(titles) for word in ("--study", title)]
    done = subprocess.run([*command, *studies], cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    assert all(f"{title} " in done.stdout for title in titles)


def test_reports_that_are_made_quickly(upgraded):
    is_same(TITLES - LONG, upgraded / "heval.sqlite3")


@pytest.mark.slow
def test_the_other_reports(upgraded):
    assert len(LONG & TITLES) == len(LONG)
    is_same(LONG, upgraded / "heval.sqlite3")
