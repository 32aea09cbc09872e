"""The reports of the stored studies say what they said when they were stored."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT

# Those that take a second or more; the others go through most of the code in a few.
LONG = (
    "paper", "every protocol", "human or machine", "utilities", "amended", "amended human or machine", "ratings apart",
    "one output at a time", "given elsewhere", "imported",
)  # fmt: skip
SHORT = (
    "parts of the scale", "one order", "exposures", "criteria", "stops itself", "first crossing", "majority", "max three", "marks apart",
    "nobody", "one person", "two people", "all left out", "collecting", "unblinded", "all alike", "robots",
)  # fmt: skip


def is_same(*titles):
    # A process of its own, which has the stored database; another processor may round the last digits otherwise.
    command = [sys.executable, "-m", "tests.golden_site.hashes", "--tolerance", "1e-9"]
    studies = [word for title in titles for word in ("--study", title)]
    done = subprocess.run([*command, *studies], cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    return done.stdout


def test_reports_that_are_made_quickly():
    assert is_same(*SHORT).count(" blocks ") == len(SHORT) + 1  # that of robots with and without them


@pytest.mark.slow
def test_all_reports():
    assert is_same(*LONG).count(" blocks ") == len(LONG)
