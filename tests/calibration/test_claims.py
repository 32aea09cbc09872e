"""Claims keep their error rate: over a grid of designs, and in whole studies from the file of answers to the sentence."""

import itertools
import json

import pytest

from analysis.stats import clusters
from tests.calibration import claims
from tests.calibration.claims import METHODS, SETTINGS, USED, cells, limit
from tests.calibration.studies import StudyCell, simulate_study

# Before claims counted prompts as a sample, .47 and .45 of such studies claimed a difference that does not exist.
QUICK = [StudyCell("relative", 40, 10), StudyCell("ranking", 40, 10)]
SLOW = [
    StudyCell("rating", 20, 30),
    StudyCell("rating", 40, 10),
    StudyCell("two_choice", 20, 60, sd_prompts=1.2),
    StudyCell("two_choice", 20, 60, sd_people=0.0, sd_prompts=1.2),
    StudyCell("ranking", 20, 25),
    StudyCell("ranking", 40, 10),
    StudyCell("relative", 20, 25),
    StudyCell("relative", 40, 10),
]


def stored_rows():
    return json.loads(claims.RECORD.read_text(encoding="utf-8"))["rows"]


def test_the_grid_covers_every_pair_of_settings():
    names = list(SETTINGS)
    for first, second in itertools.combinations(names, 2):
        seen = {(getattr(cell, first), getattr(cell, second)) for cell in cells()}
        assert seen == set(itertools.product(SETTINGS[first], SETTINGS[second])), (first, second)


def test_the_stored_rates_are_those_of_the_grid():
    assert [row["name"] for row in stored_rows()] == [cell.name for cell in cells()]


def test_the_method_of_the_reports_keeps_its_rate_in_every_cell():
    rows = [row for row in stored_rows() if row["studies"]]
    beyond = {row["name"]: row["missed"][USED] for row in rows if row["missed"][USED] > limit(row["studies"])}
    assert not beyond
    # The grid would catch the method that reports had before.
    assert sum(row["missed"]["people only"] > limit(row["studies"]) for row in rows) > len(rows) / 4


def test_claims_in_the_wrong_direction_stay_within_the_level():
    for row in stored_rows():
        if row["studies"]:
            assert row["wrong"][USED] <= limit(row["studies"], 0.025), row["name"]


def test_a_cell_is_measured_again(monkeypatch):
    """The stored rates are of today's code, as far as a few studies of three quick cells can tell."""
    for place in (1, 3, 4):
        row, stored = claims.measured((place, 60)), stored_rows()[place]
        for method in METHODS:
            assert abs(row["missed"][method] - stored["missed"][method]) < 0.2, (row["name"], method)


@pytest.mark.django_db
@pytest.mark.parametrize("cell", QUICK, ids=lambda cell: cell.protocol)
def test_a_few_whole_studies_claim_no_difference_that_is_none(cell):
    outcomes = [simulate_study(cell, seed) for seed in range(10)]
    assert all(outcome.has_test for outcome in outcomes)
    assert all("for prompts like these" in outcome.claim for outcome in outcomes)
    # With a rate of .05, three or more of ten have a chance of .012; with the former .45, two or fewer have .10.
    assert sum(outcome.is_false_claim for outcome in outcomes) <= 2
    assert all(outcome.covers != outcome.is_false_claim for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("cell", SLOW, ids=lambda cell: f"{cell.protocol} {cell.people}x{cell.prompts}")
def test_whole_studies_keep_the_rate_of_false_claims(cell):
    outcomes = [simulate_study(cell, seed) for seed in range(200)]
    tested = [outcome for outcome in outcomes if outcome.has_test]
    assert len(tested) == len(outcomes)
    assert sum(outcome.is_false_claim for outcome in tested) / len(tested) <= limit(len(tested))
    assert sum(bool(outcome.covers) for outcome in tested) / len(tested) >= 1 - limit(len(tested))


def test_few_prompts_are_no_sample():
    found = clusters.annotator_prompt_clustered_mean(
        [1, 0, 1, 1] * 8, [n // 4 for n in range(32)], [0, 1, 2, 3] * 8, null=0.5, analysis="a"
    )
    assert found.settings["population"] == clusters.PEOPLE
