"""Intervals of people and judges hold the truth for every kind of judge, and are never much wider than those of people alone."""

import json

import pytest

from tools.proofs.calibration import hidden_labels, judges


def rows(module):
    """The stored rows."""
    return json.loads(module.RECORD.read_text())["rows"]


def test_intervals_hold_the_truth_for_every_kind_of_judge():
    found = rows(judges)
    assert [row["name"] for row in found] == [cell.name for cell in judges.cells()]
    for row in found:
        assert row["studies"] == judges.RUNS, row["name"]
        assert row["with_judges"] >= judges.least(row["studies"]) and row["widest"] <= 1.05, row["name"]
    assert sum(row["with_judges"] for row in found) / len(found) >= judges.LEAST


def test_good_judges_save_labels_and_useless_ones_do_not():
    for row in rows(judges):
        if "useless" in row["name"]:
            assert row["se_ratio"] > 0.98, row["name"]
        if "good" in row["name"]:
            assert row["se_ratio"] < 0.96, row["name"]


def test_a_cell_measured_again_is_the_same_as_long_as_it_runs():
    cell = judges.cells()[0]
    found = judges.measured(cell, runs=60)
    assert found["studies"] == 60 and found["with_judges"] > 0.88 and found["widest"] <= 1.05


def test_the_page_says_what_was_measured():
    assert judges.page() == judges.PAGE.read_text(encoding="utf-8")


def test_hidden_labels_are_within_the_intervals():
    found = rows(hidden_labels)
    assert len(found) == 108 and {row["draws"] for row in found} == {500}
    for row in found:
        assert row["with_judges"] >= judges.least(500) and row["widest"] <= 1.05, (row["criterion"], row["judges"])


@pytest.mark.shared
def test_some_hidden_labels_measured_again(shared):
    path = shared / hidden_labels.FILE.name
    found = hidden_labels.measured("coherence", ("beluga_13b_p1", "chatgpt_p1"), draws=40, path=path)
    assert found["with_judges"] > 0.88 and found["widest"] <= 1.05 and found["se_ratio"] < 1
