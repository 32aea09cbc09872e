"""Clear effects are found: coverage of shares near the end of the scale, and power beside the plain t test."""

import pytest

from tools.proofs.calibration import shares
from tools.proofs.calibration.shares import USED, T, stored_rows, uncovered, weak


def test_every_cell_is_stored():
    assert [row["name"] for row in stored_rows()] == [shares.name_of(*one) for one in shares.cells()]
    assert {row["simulated"] for row in stored_rows()} == {2000}


def test_every_share_is_covered():
    assert not [row["name"] for row in stored_rows() if uncovered(row)]
    assert sum(uncovered(row, T) for row in stored_rows()) > 50, "the t test does no better, so nothing is shown"


def test_no_power_is_lost_where_the_t_test_is_valid():
    """The t test has more power only with eight people or fewer, or five prompts: it takes the variance at the estimate for that at .5."""
    rows = dict(zip((row["name"] for row in stored_rows()), shares.cells(), strict=True))
    lost = {row["name"] for row in stored_rows() if weak(row)}
    assert sum(not uncovered(row, T) for row in stored_rows()) > 80 and lost
    assert all(rows[name][0].people <= 8 or rows[name][0].prompts == 5 for name in lost), lost


def test_a_cell_that_loses_power_or_coverage_is_named():
    row = {"simulated": 2000, "missed": {USED: 141, T: 141}, "claims": {USED: 1500, T: 1600}}
    assert not uncovered(row) and not weak(row)
    assert uncovered(row | {"missed": {USED: 142, T: 0}})
    assert weak(row | {"claims": {USED: 1380, T: 1600}})
    # Where the t test misses the truth, its power is no measure.
    assert not weak(row | {"claims": {USED: 1000, T: 1600}, "missed": {USED: 0, T: 142}})


@pytest.mark.parametrize("place", [100, 101])
def test_a_cell_is_measured_again(place):
    row, stored = shares.measure(place, 60), stored_rows()[place]
    for key in ("missed", "claims"):
        for method in (USED, T):
            assert abs(row[key][method] / 60 - stored[key][method] / 2000) < 0.2
