import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import agreement
from tests.analysis.stats.golden import golden

GOLDEN = golden("agreement")["four_coders"]


def rng(seed=0):
    return np.random.default_rng(seed)


def four_coders():
    table = np.array(GOLDEN["matrix"], float)
    return agreement.count_table(np.tile(np.arange(table.shape[1]), len(table)), table.ravel())


def by_pairs(counts, values, distance):
    """Alpha as the definition has it: every ordered pair of ratings, one at a time."""
    ratings = [np.repeat(values, row.astype(int)) for row in counts if row.sum() > 1]
    everything = np.concatenate(ratings)
    n = len(everything)
    observed = sum(
        distance(a, b) / (len(unit) - 1)
        for unit in ratings
        for i, a in enumerate(unit)
        for j, b in enumerate(unit)
        if i != j
    )
    expected = sum(distance(a, b) for i, a in enumerate(everything) for j, b in enumerate(everything) if i != j)
    return 1 - (observed / n) / (expected / (n * (n - 1)))


@pytest.mark.parametrize("level", agreement.LEVELS)
def test_alpha_agrees_with_the_reference(level):
    counts, values = four_coders()
    result = agreement.krippendorff_alpha(counts, values, level_of_measurement=level, rng=rng())
    assert_allclose(result.estimate, GOLDEN[level], atol=1e-9)
    assert (result.n, result.n_rows, result.detail["n_unpairable"]) == (11, 40, 1)
    assert result.interval.low < result.estimate < result.interval.high <= 1


@pytest.mark.parametrize("seed", range(3))
def test_alpha_agrees_with_the_definition(seed):
    draw = rng(seed)
    counts = draw.multinomial(4, [0.3, 0.3, 0.2, 0.2], size=12).astype(float)
    counts[0] = [1, 0, 0, 0]
    values = np.array([0.0, 1.0, 2.5, 7.0])
    marginal = counts[counts.sum(axis=1) > 1].sum(axis=0)
    ranks = dict(zip(values, np.cumsum(marginal) - marginal / 2, strict=True))
    distances = {
        "nominal": lambda a, b: float(a != b),
        "interval": lambda a, b: (a - b) ** 2,
        "ratio": lambda a, b: ((a - b) / (a + b)) ** 2 if a + b else 0.0,
        "ordinal": lambda a, b: (ranks[a] - ranks[b]) ** 2,
    }
    for level, distance in distances.items():
        found = agreement.krippendorff_alpha(counts, values, level_of_measurement=level, rng=rng(), resamples=9)
        assert_allclose(found.estimate, by_pairs(counts, values, distance), atol=1e-10)


@pytest.mark.parametrize("level", agreement.LEVELS)
def test_resampling_counts_is_resampling_units(level):
    counts, values = four_coders()
    usable = counts[counts.sum(axis=1) > 1]
    chosen = rng(5).integers(0, len(usable), len(usable))
    patterns, weights = agreement._patterns(usable)
    drawn = np.array([[sum(np.array_equal(usable[c], p) for c in chosen) for p in patterns]], float)
    assert weights.sum() == len(usable)
    direct = agreement.krippendorff_alpha(usable[chosen], values, level_of_measurement=level, rng=rng(), resamples=9)
    assert_allclose(agreement._alphas(patterns, values, drawn, level)[0], direct.estimate, atol=1e-10)


def test_two_values_have_one_alpha_at_every_level():
    counts = rng(1).multinomial(5, [0.4, 0.6], size=20)
    found = {
        round(agreement.krippendorff_alpha(counts, [1, 2], level_of_measurement=level, rng=rng()).estimate, 9)
        for level in ("nominal", "ordinal", "interval")
    }
    assert len(found) == 1


def test_a_scale_of_a_hundred_and_one_points_is_no_trouble():
    units, values = np.repeat(np.arange(300), 3), rng(2).integers(0, 101, 900)
    counts, points = agreement.count_table(units, values)
    for level in agreement.LEVELS:
        result = agreement.krippendorff_alpha(counts, points, level_of_measurement=level, rng=rng(), resamples=199)
        assert abs(result.estimate) < 0.1


def test_one_value_or_nothing_pairable_is_not_identified():
    same = agreement.krippendorff_alpha([[3, 0], [2, 0]], [1, 2], level_of_measurement="nominal", rng=rng())
    assert (same.status, same.estimate, same.detail["percent_agreement"]) == ("not_identified", None, 1.0)
    single = agreement.krippendorff_alpha([[1, 0], [0, 1]], [1, 2], level_of_measurement="nominal", rng=rng())
    assert (single.status, single.n) == ("not_identified", 0)
    empty = agreement.krippendorff_alpha(np.empty((0, 2)), [1, 2], level_of_measurement="nominal", rng=rng())
    assert empty.status == "no_data"


def test_agreement_and_alpha_differ_under_prevalence():
    counts = np.array([[10, 0]] * 9 + [[9, 1]])
    result = agreement.krippendorff_alpha(counts, [0, 1], level_of_measurement="nominal", rng=rng())
    assert_allclose(result.detail["percent_agreement"], 0.98)
    assert result.estimate < 0.01


def test_bad_tables_are_named():
    for counts, values, level, word in (
        ([[1, 2]], [1, 2], "metric", "level_of_measurement"),
        ([[1, 2]], [1], "nominal", "values"),
        ([[1, -2]], [1, 2], "nominal", "counts"),
        ([[1, 2]], [2, 1], "nominal", "ascend"),
        ([[1, 2]], [-1, 1], "ratio", "negative"),
    ):
        with pytest.raises(ValueError, match=word):
            agreement.krippendorff_alpha(counts, values, level_of_measurement=level, rng=rng())


def test_row_order_of_units_changes_nothing():
    counts, values = four_coders()
    first, second = (
        agreement.krippendorff_alpha(table, values, level_of_measurement="ordinal", rng=rng())
        for table in (counts, counts[::-1])
    )
    assert first.interval == second.interval


def test_split_half_finds_the_reliability_that_was_put_in():
    draw = rng(3)
    truth, n_annotators = draw.normal(0, 1, 400), 10
    scores = truth + draw.normal(0, 2, (n_annotators, 400))
    wanted = 1 / (1 + 4 / n_annotators)
    result = agreement.split_half_reliability(scores, rng=rng())
    assert abs(result.estimate - wanted) < 0.06
    assert result.interval.low < wanted < result.interval.high
    assert (result.n, result.detail["n_annotators"]) == (400, 10)


def test_split_half_tolerates_missing_scores_and_an_odd_annotator():
    draw = rng(4)
    scores = draw.normal(0, 1, 60) + draw.normal(0, 0.5, (9, 60))
    scores[draw.random((9, 60)) < 0.4] = np.nan
    result = agreement.split_half_reliability(scores, rng=rng(), resamples=199)
    assert result.status == "ok" and 0.5 < result.estimate < 1


def test_split_half_of_noise_is_near_zero_and_needs_three_items():
    noise = rng(5).normal(0, 1, (20, 200))
    assert abs(agreement.split_half_reliability(noise, rng=rng(), resamples=99).estimate) < 0.3
    for scores, status in ((np.ones((4, 2)), "not_identified"), (np.ones((4, 9)), "not_identified")):
        assert agreement.split_half_reliability(scores, rng=rng()).status == status
    assert agreement.split_half_reliability(np.full((3, 3), np.nan), rng=rng()).status == "no_data"
