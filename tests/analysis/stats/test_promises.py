"""The page "What you may rely on": every promise is measured, kept, and printed as it was measured."""

import json

import pytest

from tools.proofs.calibration import page
from tools.proofs.calibration.__main__ import outcomes
from tools.proofs.calibration.cells import cells

CELLS = {cell.name: cell for cell in cells()}


def test_every_promise_is_measured_and_kept():
    rows = {row["name"]: row for row in page.rows()}
    assert list(rows) == list(CELLS)
    for name, row in rows.items():
        assert row["runs"] == CELLS[name].runs and row["answered"] >= 0.9 * row["runs"], name
        if row["is_ours"] and not row["warned"]:
            assert page.holds(row), name


def test_what_the_papers_do_is_shown_to_miss_its_promise():
    for row in page.rows():
        if not row["is_ours"]:
            assert not page.holds(row), row["name"]


def test_the_page_says_what_was_measured():
    assert page.text() == page.PAGE.read_text(encoding="utf-8")
    assert page.FIGURE.read_text(encoding="utf-8").count("<path") > len(page.rows())


def test_a_broken_promise_is_noticed():
    row = json.loads(page.RECORD.read_text())["rows"][0]
    assert page.holds(row)
    assert not page.holds(row | {"rate": 0.2})
    assert not page.holds(row | {"promise": "covers", "nominal": 0.95, "rate": 0.8})


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_measured_again_it_is_the_same(name):
    cell = CELLS[name]
    kept = outcomes(cell, cell.runs)
    (row,) = (row for row in page.rows() if row["name"] == name)
    assert abs(sum(kept) / len(kept) - row["rate"]) < 0.005
