"""Krippendorff's alpha agrees with its definition at every level of measurement."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import agreement
from tests.analysis.stats.agreement.references import GOLDEN, GOLDEN_ALL
from tests.analysis.stats.draws import rng


def four_coders():
    table = np.array(GOLDEN["matrix"], float)
    return agreement.value_counts_by_unit(np.tile(np.arange(table.shape[1]), len(table)), table.ravel())


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
    patterns, weights = agreement.distinct_rows_and_counts(usable)
    drawn = np.array([[sum(np.array_equal(usable[c], p) for c in chosen) for p in patterns]], float)
    assert weights.sum() == len(usable)
    direct = agreement.krippendorff_alpha(usable[chosen], values, level_of_measurement=level, rng=rng(), resamples=9)
    distances, _ = agreement._disagreement(values, len(values), level, None)
    assert_allclose(agreement._alphas(patterns, drawn, distances)[0], direct.estimate, atol=1e-10)


def test_units_that_do_not_vary_by_themselves_are_resampled_together():
    """Every unit twice says no more than once: an interval over all of them would be 1 / sqrt(2) as wide."""
    counts = rng(3).multinomial(3, [0.3, 0.3, 0.4], size=60)
    common = {"level_of_measurement": "ordinal", "resamples": 9999, "rng": rng(4)}
    once, twice = (
        agreement.krippendorff_alpha(table, [1, 2, 3], **common) for table in (counts, np.repeat(counts, 2, 0))
    )
    together = agreement.krippendorff_alpha(
        np.repeat(counts, 2, 0), [1, 2, 3], clusters=np.repeat(np.arange(60), 2), cluster_name="pair", **common
    )
    assert together.estimate == twice.estimate and (together.n, together.n_clusters) == (120, 60)
    assert together.settings["resampled"] == "pair" and "resampled" not in once.settings
    width, narrow, held = (found.interval.high - found.interval.low for found in (once, twice, together))
    assert_allclose([narrow / width, held / width], [0.5**0.5, 1], rtol=0.05)
    alone = agreement.krippendorff_alpha(
        [[2, 1], [1, 2]], [1, 2], level_of_measurement="nominal", clusters=["p", "p"], cluster_name="pair", rng=rng()
    )
    assert (alone.status, alone.reason, alone.n) == ("n_lt_2", "one pair has no spread", 2)


def test_clusters_of_units_with_one_rating_are_none():
    counts = np.array([[2, 0], [1, 1], [1, 0], [0, 1]])
    found = agreement.krippendorff_alpha(
        counts, [1, 2], level_of_measurement="nominal", clusters=["q", "p", "r", "p"], resamples=99, rng=rng()
    )
    assert (found.n, found.n_clusters, found.detail["n_unpairable"]) == (2, 2, 2)


def test_two_values_have_one_alpha_at_every_level():
    counts = rng(1).multinomial(5, [0.4, 0.6], size=20)
    found = {
        round(agreement.krippendorff_alpha(counts, [1, 2], level_of_measurement=level, rng=rng()).estimate, 9)
        for level in ("nominal", "ordinal", "interval")
    }
    assert len(found) == 1


def test_a_scale_of_a_hundred_and_one_points_is_no_trouble():
    units, values = np.repeat(np.arange(300), 3), rng(2).integers(0, 101, 900)
    counts, points = agreement.value_counts_by_unit(units, values)
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


@pytest.mark.parametrize("level", ["nominal", "interval", "ratio"])
def test_a_distance_of_ones_own_may_be_the_one_of_a_level(level):
    counts, values = four_coders()
    own = {
        "nominal": lambda a, b: float(a != b),
        "interval": lambda a, b: 0.01 * (a - b) ** 2,
        "ratio": lambda a, b: ((a - b) / (a + b)) ** 2,
    }[level]
    built_in = agreement.krippendorff_alpha(counts, values, level_of_measurement=level, rng=rng())
    for distance in (own, [[own(a, b) for b in values] for a in values]):
        found = agreement.krippendorff_alpha(counts, values, distance=distance, rng=rng())
        assert_allclose(found.estimate, built_in.estimate, atol=1e-12)
        assert_allclose(found.interval.low, built_in.interval.low, atol=1e-12)


def test_alpha_with_any_distance_agrees_with_the_reference_and_the_definition():
    case = GOLDEN_ALL["any_distance"]
    counts, distance = np.array(case["counts"]), np.array(case["distance"])
    found = agreement.krippendorff_alpha(counts, list("abcd"), distance=distance, rng=rng())
    assert_allclose(found.estimate, case["alpha"], atol=1e-9)
    assert_allclose(found.estimate, by_pairs(counts, np.arange(4), lambda a, b: distance[a, b]), atol=1e-10)
    # The unit of the distance says nothing, however small.
    tiny = agreement.krippendorff_alpha(counts, list("abcd"), distance=distance * 1e-15, rng=rng())
    assert_allclose(tiny.estimate, found.estimate, atol=1e-12)
    assert tiny.interval == found.interval


def test_bad_distances_are_named():
    counts = [[1, 1], [2, 0]]
    for given, word in (
        ({}, "exactly one"),
        ({"level_of_measurement": "nominal", "distance": np.eye(2)}, "exactly one"),
        ({"distance": 1 - np.eye(3)}, "distance: shape"),
        ({"distance": [[0, 1], [2, 0]]}, "not symmetric"),
        ({"distance": [[1, 1], [1, 0]]}, "at distance 0 from itself"),
        ({"distance": [[0, -1], [-1, 0]]}, "non-negative"),
        ({"distance": lambda a, b: np.nan}, "finite"),
    ):
        with pytest.raises(ValueError, match=word):
            agreement.krippendorff_alpha(counts, ["a", "b"], rng=rng(), **given)
    with pytest.raises(ValueError, match="values: 1 values"):
        agreement.krippendorff_alpha(counts, ["a"], distance=lambda a, b: 0.0, rng=rng())


def test_values_at_no_distance_are_not_identified():
    found = agreement.krippendorff_alpha([[1, 1], [0, 2]], ["a", "b"], distance=lambda a, b: 0.0, rng=rng())
    assert (found.status, found.reason) == ("not_identified", "no two ratings differ")


def test_equal_units_have_no_interval_of_no_width():
    one = agreement.krippendorff_alpha([[2, 1]], [1, 2], level_of_measurement="nominal", rng=rng())
    assert (one.status, one.interval) == ("n_lt_2", None)
    equal = agreement.krippendorff_alpha([[2, 1]] * 9, [1, 2], level_of_measurement="nominal", rng=rng())
    assert (equal.status, equal.interval) == ("zero_variance", None)
    perfect = agreement.fleiss_kappa([[3, 0], [0, 3]] * 9, rng=rng())
    assert (perfect.status, perfect.estimate, perfect.interval) == ("zero_variance", 1.0, None)


@pytest.mark.parametrize(
    ("n_units", "n_values", "most"), [(2000, 3, 4), (30, 6, 9), (30, 30, 9)], ids=["counted", "sorted", "rows"]
)
def test_patterns_are_the_distinct_rows_whichever_way_they_are_found(n_units, n_values, most):
    table = np.random.default_rng(4).integers(0, most + 1, (n_units, n_values)).astype(float)
    table[1] = table[0]
    patterns, weights = agreement.distinct_rows_and_counts(table)
    rows, times = np.unique(table, axis=0, return_counts=True)
    order = np.lexsort(patterns.T[::-1])
    assert np.array_equal(patterns[order], rows) and np.array_equal(weights[order], times)
