"""Intraclass correlations agree with the reference and take unequal annotators."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import agreement
from tests.analysis.stats.agreement.references import GOLDEN_ALL
from tests.analysis.stats.draws import rng


@pytest.mark.parametrize("case", GOLDEN_ALL["icc"], ids=["shrout_fleiss", "random"])
def test_intraclass_correlations_agree_with_the_reference(case):
    for one in case["expected"]:
        found = agreement.intraclass_correlation(case["scores"], kind=one["kind"], average=one["average"])
        assert_allclose(
            [found.estimate, found.test.statistic, found.pvalue], [one["estimate"], one["F"], one["p"]], rtol=1e-9
        )
        # The reference prints its intervals to two decimals.
        assert_allclose([found.interval.low, found.interval.high], one["ci95_two_decimals"], atol=0.00501)


def test_an_intraclass_interval_holds_its_estimate_or_is_none():
    # Small tables of points, most of them without any agreement: ends that turn round, and divisions by 0.
    n_intervals = n_none = 0
    for seed in range(250):
        draw = rng(seed)
        scores = draw.integers(1, 6, (int(draw.integers(2, 5)), int(draw.integers(2, 6)))).astype(float)
        for kind, average in itertools.product(agreement.ICC_KINDS, (False, True)):
            found = agreement.intraclass_correlation(scores, kind=kind, average=average, level=0.9)
            if found.interval is None:
                n_none += found.status == "ok"
                continue
            n_intervals += 1
            assert found.interval.low <= found.estimate <= found.interval.high, (seed, kind, average)
    assert n_intervals > 1000 and n_none > 0


def test_one_way_intraclass_correlation_takes_unequal_annotators():
    draw = rng(3)
    scores = draw.normal(0, 1, 30) + draw.normal(0, 1, (5, 30))
    full = agreement.intraclass_correlation(scores, kind="one_way")
    assert full.interval.method == "f" and full.detail["raters_per_item"] == 5
    for item, gone in enumerate(draw.integers(0, 4, 30)):
        scores[draw.permutation(5)[:gone], item] = np.nan
    scores[:, 0], scores[1:, 1] = np.nan, np.nan
    scores[0, 1] = 1.0
    found = agreement.intraclass_correlation(scores, kind="one_way")
    assert (found.n, found.detail["n_incomplete"], found.interval.method) == (28, 1, "f_approximate")
    columns = [column[~np.isnan(column)] for column in scores.T[2:]]
    sizes = np.array([len(column) for column in columns])
    everything = np.concatenate(columns)
    between = sum(len(c) * (c.mean() - everything.mean()) ** 2 for c in columns) / 27
    within = sum(((c - c.mean()) ** 2).sum() for c in columns) / (len(everything) - 28)
    k0 = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / 27
    assert_allclose(found.estimate, (between - within) / (between + (k0 - 1) * within), rtol=1e-9)
    # The two-way kinds keep complete items only.
    whole = scores[:, ~np.isnan(scores).any(axis=0)]
    for kind in ("absolute", "consistency"):
        left = agreement.intraclass_correlation(scores, kind=kind)
        assert_allclose(left.estimate, agreement.intraclass_correlation(whole, kind=kind).estimate, rtol=1e-12)
        assert left.n == whole.shape[1] and left.detail["n_incomplete"] == 29 - whole.shape[1]


def test_a_stricter_annotator_costs_absolute_agreement_and_no_consistency():
    draw = rng(5)
    scores = draw.normal(50, 10, 40) + draw.normal(0, 2, (3, 40))
    strict = scores - np.array([[0], [0], [15]])
    same, lower = (agreement.intraclass_correlation(s, kind="consistency").estimate for s in (scores, strict))
    assert_allclose(same, lower, rtol=1e-9)
    assert agreement.intraclass_correlation(strict).estimate < agreement.intraclass_correlation(scores).estimate - 0.2
    single, mean = (agreement.intraclass_correlation(strict, average=average) for average in (False, True))
    assert_allclose(mean.estimate, 3 * single.estimate / (1 + 2 * single.estimate), rtol=1e-9)
    assert_allclose(mean.interval.low, 3 * single.interval.low / (1 + 2 * single.interval.low), rtol=1e-9)
    for average, kind in itertools.product((False, True), agreement.ICC_KINDS):
        first = agreement.intraclass_correlation(strict, kind=kind, average=average)
        moved = agreement.intraclass_correlation(3 * strict[::-1] + 1000, kind=kind, average=average)
        assert_allclose(
            [first.estimate, first.interval.low, first.pvalue],
            [moved.estimate, moved.interval.low, moved.pvalue],
            rtol=1e-7,
        )


def test_intraclass_edge_cases_are_statuses():
    call = agreement.intraclass_correlation
    assert call(np.empty((0, 0))).status == "no_data"
    assert call([[np.nan, np.nan]]).status == "no_data"
    assert call([[1, 2, 3]]).status == "not_identified"
    assert call([[1], [2]]).status == "not_identified"
    for kind in agreement.ICC_KINDS:
        assert call(np.full((3, 4), 7.0), kind=kind).status == "zero_variance"
        perfect = call([[1, 2, 3], [1, 2, 3]], kind=kind)
        assert (perfect.status, perfect.estimate, perfect.interval) == ("zero_variance", 1.0, None)
    # Annotators who differ by a constant: consistent, not in absolute agreement.
    shifted = [[1, 2, 3, 5], [3, 4, 5, 7]]
    assert call(shifted, kind="consistency").estimate == 1
    assert 0 < call(shifted).estimate < 1 and call(shifted).interval.low < call(shifted).estimate
    with pytest.raises(ValueError, match="kind"):
        call([[1, 2], [2, 1]], kind="two_way")


@pytest.mark.slow
def test_intervals_of_the_intraclass_correlation_cover():
    draw = rng(0)
    for kind in agreement.ICC_KINDS:
        wanted = 1 / 1.75 if kind == "consistency" else 0.5
        covered = 0
        for _ in range(1500):
            scores = draw.normal(0, 1, 25) + draw.normal(0, 0.5, (6, 1)) + draw.normal(0, np.sqrt(0.75), (6, 25))
            if kind == "one_way":
                scores = draw.normal(0, 1, 25) + draw.normal(0, 1, (6, 25))
            found = agreement.intraclass_correlation(scores, kind=kind).interval
            covered += found.low <= wanted <= found.high
        assert 0.93 < covered / 1500 < 0.97, kind
