"""Claims keep their error rate: over a grid of designs, and in whole studies from the file of answers to the sentence."""

import itertools
import math
import statistics
from dataclasses import replace

import pytest

from analysis.stats import cluster_variances, clusters
from tools.proofs.calibration import claims, prompt_groups, studies
from tools.proofs.calibration.claims import METHODS, SETTINGS, USED, cells, limit
from tools.proofs.calibration.studies import (
    StudyOutcome,
    broken_limits,
    margin_of,
    simulate_study,
    summary,
    true_difference,
)
from tools.proofs.calibration.study_cells import CELLS, StudyCell

# Before claims counted prompts as a sample, .47 and .45 of such studies of the first two designs claimed a difference that does not exist.
QUICK = [
    cell
    for cell in CELLS
    if not cell.shift and cell.people == 40 and cell.protocol in ("relative", "ranking", "spa", "marks")
]


def test_the_grid_covers_every_pair_of_settings():
    names = list(SETTINGS)
    for first, second in itertools.combinations(names, 2):
        seen = {(getattr(cell, first), getattr(cell, second)) for cell in cells()}
        assert seen == set(itertools.product(SETTINGS[first], SETTINGS[second])), (first, second)


# Few groups and many, small and large.
QUICK_GROUPS = [
    cell
    for cell in prompt_groups.CELLS
    if (cell.people, cell.groups, cell.group_size) in {(20, 5, 4), (20, 5, 20), (20, 8, 10), (40, 10, 20)}
]


@pytest.mark.parametrize("cell", QUICK_GROUPS, ids=lambda cell: cell.name)
def test_groups_of_prompts_keep_the_rate_and_prompts_as_if_independent_do_not(cell):
    row = prompt_groups.measure(cell, 100)
    assert not prompt_groups.broken_cells([row]), row["false_claims"]
    assert row["false_claims"]["prompts"] / 100 > limit(100)


def test_a_cell_above_the_limit_is_named():
    row = {"name": "a", "studies": 2000, "false_claims": {"groups": 142, "prompts": 900}}
    assert not prompt_groups.broken_cells([row | {"false_claims": {"groups": 141}}])
    assert prompt_groups.broken_cells([row]) == ["a"]
    assert not prompt_groups.broken_cells(prompt_groups.stored_rows())


@pytest.mark.parametrize(("step", "studies"), [("candidates", 200), ("reports", 2000)])
def test_the_stored_rates_are_those_of_the_grid(step, studies):
    rows = claims.stored_record()[step]
    assert [row["name"] for row in rows] == [cell.name for cell in cells()]
    assert {row["simulated"] for row in rows} == {studies}
    # A study with fewer than five prompts claims nothing about prompts like these.
    assert sum(row["studies"] == studies for row in rows) > 130
    assert all(0 <= row["studies"] <= studies or "missed_at_first" in row for row in rows)


def test_the_method_of_the_reports_keeps_its_rate_in_every_cell():
    assert not claims.broken_cells(claims.stored_record()["reports"])


def test_the_grid_would_catch_the_method_that_reports_had_before():
    rows = [row for row in claims.stored_record()["candidates"] if row["studies"]]
    assert sum(row["missed"]["people only"] > limit(row["studies"]) for row in rows) > len(rows) / 4


def test_claims_in_the_wrong_direction_stay_within_the_level():
    for row in claims.stored_record()["candidates"]:
        if row["studies"]:
            assert row["wrong"][USED] <= limit(row["studies"], 0.025), row["name"]


@pytest.mark.slow
@pytest.mark.parametrize("place", [1, 3, 4])
def test_a_cell_is_measured_again(place):
    """The stored rates are of today's code, as far as a few studies of three quick cells can tell."""
    row, stored = claims.compare_candidates(place, 60), claims.stored_record()["candidates"][place]
    for method in METHODS:
        assert abs(row["missed"][method] - stored["missed"][method]) < 0.2, method
    again, kept = claims.measure_reports(place, 100), claims.stored_record()["reports"][place]
    assert abs(again["missed"] / again["studies"] - kept["missed"] / kept["studies"]) < 0.12
    assert abs(again["bets"] / again["studies"] - kept["bets"] / kept["studies"]) < 0.2


def test_a_cell_above_its_limit_is_named():
    """1,000 studies may miss the truth 75 times: .06 and two standard errors."""
    row = {"name": "a", "studies": 1000, "missed": 75}
    assert not claims.broken_cells([row, row | {"studies": 0, "missed": 0}])
    assert claims.broken_cells([row | {"missed": 76}]) == ["a"]


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("cell", QUICK, ids=lambda cell: cell.protocol)
def test_a_few_whole_studies_claim_no_difference_that_is_none(cell):
    # A study of marks has three times as many rows as the others.
    outcomes = [simulate_study(cell, seed) for seed in range(4 if cell.protocol == "marks" else 6)]
    assert all(outcome.has_test for outcome in outcomes)
    assert all("for prompts like these" in outcome.claim for outcome in outcomes)
    # With a rate of .05, three or more of six have a chance of .002; with the former .45, two or fewer have .44.
    assert sum(outcome.is_false_claim for outcome in outcomes) <= 2
    assert all(outcome.covers != outcome.is_false_claim for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.django_db
def test_a_study_of_each_other_kind_can_be_simulated():
    others = [
        next(cell for cell in CELLS if cell.protocol == "humanlike"),
        next(cell for cell in CELLS if cell.estimand == "penalty"),
        next(cell for cell in CELLS if cell.has_margin and cell.protocol == "two_choice"),
        next(cell for cell in CELLS if cell.is_lower_better),
    ]
    outcomes = [simulate_study(cell, 1) for cell in others]
    assert all(outcome.has_test for outcome in outcomes)
    assert [round(outcome.difference, 2) for outcome in outcomes] == [0, 0, 0.15, 0.09]
    # The two estimands of marks have their own sentences.
    assert "penal" in outcomes[1].claim or "error" in outcomes[1].claim, outcomes[1].claim


def test_the_true_difference_lies_just_beyond_the_margin():
    for cell in CELLS:
        truth, margin = true_difference(cell), margin_of(cell)
        assert bool(truth) == bool(cell.shift)
        if cell.hypothesis == "difference":
            assert margin is None or 0 <= truth - margin < 0.001
        else:
            assert margin == abs(truth) > 0.05
    # Preferences are normal, so the share of choices of x is known.
    cell = StudyCell("two_choice", 20, 40, sd_people=0.6, sd_prompts=0.8, shift=1.0)
    assert true_difference(cell) == pytest.approx(statistics.NormalDist().cdf(1 / math.sqrt(2)) - 0.5, abs=0.002)


def test_what_counts_as_a_failure():
    def outcome(verdict, covers=True, difference=0.0, estimated=0.1, warnings=()):
        return StudyOutcome("", verdict, True, covers, difference, estimated, warnings)

    assert outcome("different", False).is_false_claim and not outcome("different", difference=0.1).is_failure
    assert outcome("different", difference=-0.1).is_wrong_direction and not outcome(None, difference=-0.1).is_failure
    assert (
        outcome("equivalent", difference=0.1).is_failure and outcome("different_but_trivial", difference=0.1).is_failure
    )
    assert outcome(None, covers=False).is_failure and not StudyOutcome("", None, False, None).is_failure
    claims_by_margin = [
        replace(outcome(verdict, difference=0.1), hypothesis=hypothesis).is_failure
        for hypothesis in ("noninferiority", "superiority_by_margin")
        for verdict in ("noninferior", "noninferior_but_worse", "superior_by_margin", "better", "inconclusive")
    ]
    assert claims_by_margin == [True, True, False, True, False, False, False, True, False, False]
    cell = StudyCell("relative", 40, 10, shift=0.1, has_margin=True)
    given = [outcome("equivalent", warnings=("ceiling",)), outcome("different", difference=-0.1), outcome(None)]
    row = summary(cell, [*given, *[outcome(None)] * 97])
    assert (row["studies"], row["false_equivalences"], row["wrong_direction"], row["false_claims"]) == (100, 1, 1, None)
    assert (row["failures"], row["failures_with_warning"], row["with_warning"]) == (2, 1, 1)
    assert not broken_limits(row) and broken_limits(row | {"wrong_direction": 6, "missed": 11}) == [
        "missed",
        "wrong_direction",
    ]


def test_whole_studies_are_measured_and_keep_their_limits():
    rows = studies.stored_rows()
    assert [row["name"] for row in rows] == [cell.name for cell in CELLS]
    assert all(row["tested"] >= 0.98 * row["studies"] and row["studies"] >= 100 for row in rows)
    assert not {row["name"]: broken for row in rows if (broken := broken_limits(row))}


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_whole_studies_keep_their_limits(cell):
    row = summary(cell, [simulate_study(cell, seed) for seed in range(200)])
    assert row["tested"] == row["studies"] and not broken_limits(row)


def test_few_prompts_are_no_sample():
    found = clusters.annotator_prompt_clustered_mean(
        [1, 0, 1, 1] * 8, [n // 4 for n in range(32)], [0, 1, 2, 3] * 8, null=0.5, analysis="a"
    )
    assert found.settings["population"] == cluster_variances.PEOPLE
