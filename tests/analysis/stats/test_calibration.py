"""What the tests promise, under truths that are known: simulations with fixed seeds.

The quick ones show the bias of the tau rule; the slow ones measure rates of error and coverage.
"""

import math

import numpy as np
import pytest
from scipy import special

from analysis.stats import betting, clusters, spa
from tests.analysis.stats.comparisons import sandwich


def null_study(rng, n, sd_xy=0.1, sd_yx=0.1):
    """Nobody has a preference; each answer has noise of its own."""
    xy = np.clip(np.rint(100 * (0.5 + rng.normal(0, sd_xy, n))), 0, 100)
    yx = np.clip(np.rint(100 * (0.5 + rng.normal(0, sd_yx, n))), 0, 100)
    return xy, yx


def rejections(estimate, runs, n, seed, **noise):
    rng = np.random.default_rng(seed)
    pvalues = [estimate(*null_study(rng, n, **noise)) for _ in range(runs)]
    return float(np.mean([pvalue < 0.05 for pvalue in pvalues]))


def one_order_after_tau(xy, yx):
    kept = ~spa.tau_incoherence_flags(xy[:, None], yx[:, None]).incoherent
    return spa.pair_preference_paper(xy[kept], is_after_tau=True).pvalue


def combined_of_everybody(xy, yx):
    return spa.pair_preference_paper(100 * spa.combine_orders(xy, yx)).pvalue


def combined_after_tau(xy, yx):
    kept = ~spa.tau_incoherence_flags(xy[:, None], yx[:, None]).incoherent
    return spa.pair_preference_paper(100 * spa.combine_orders(xy, yx)[kept]).pvalue


def test_one_order_after_tau_rejects_a_true_null_and_the_combined_estimate_does_not():
    # Noise .10, n = 60: the one-order test after tau rejects in .58 of 6000 simulations, nominal .05.
    biased = rejections(one_order_after_tau, 120, 60, seed=1)
    honest = rejections(combined_of_everybody, 120, 60, seed=1)
    assert biased > 0.45
    assert honest < 0.12


def test_after_tau_the_one_order_mean_lies_below_one_half():
    xy, yx = null_study(np.random.default_rng(2), 20_000)
    kept = ~spa.tau_incoherence_flags(xy[:, None], yx[:, None]).incoherent
    assert abs(kept.mean() - 0.76) < 0.02
    assert abs(xy[kept].mean() / 100 - 0.471) < 0.005
    assert abs(spa.combine_orders(xy, yx)[kept].mean() - 0.5) < 0.003


def test_after_tau_the_combined_mean_moves_where_the_two_orders_differ_in_noise():
    xy, yx = null_study(np.random.default_rng(3), 40_000, sd_xy=0.1, sd_yx=0.15)
    kept = ~spa.tau_incoherence_flags(xy[:, None], yx[:, None]).incoherent
    assert abs(spa.combine_orders(xy, yx).mean() - 0.5) < 0.002
    assert abs(spa.combine_orders(xy, yx)[kept].mean() - 0.514) < 0.004
    assert spa.gap_preference_correlation(xy, yx).has_warning("tau_asymmetric")


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 30, 90])
def test_the_primary_test_keeps_its_level(n):
    # Three Monte-Carlo standard errors of .05 over 2000 runs are .015.
    assert 0.03 <= rejections(combined_of_everybody, 2000, n, seed=n, sd_xy=0.25, sd_yx=0.25) <= 0.07


@pytest.mark.slow
def test_the_bias_of_tau_has_the_size_that_is_documented():
    assert abs(rejections(one_order_after_tau, 2000, 60, seed=4) - 0.58) < 0.05
    assert abs(rejections(combined_after_tau, 2000, 60, seed=5) - 0.05) < 0.02
    uneven = rejections(combined_after_tau, 2000, 60, seed=6, sd_xy=0.1, sd_yx=0.15)
    assert abs(uneven - 0.24) < 0.05


@pytest.mark.slow
def test_the_primary_interval_covers():
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(2000):
        xy = np.clip(np.rint(rng.normal(62, 22, 60)), 0, 100)
        yx = np.clip(np.rint(rng.normal(38, 22, 60)), 0, 100)
        interval = spa.pair_preference_paper(100 * spa.combine_orders(xy, yx)).interval
        # Clipping to 0..100 and rounding move the true mean by less than a hundredth of the interval's width.
        truth = 50 + (_clipped_mean(62, 22) - _clipped_mean(38, 22)) / 2
        covered += interval.low <= truth / 100 <= interval.high
    assert covered / 2000 >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("is_heavy", [False, True])
def test_clustered_intervals_cover_where_cr1_does_not(is_heavy):
    rng = np.random.default_rng(8)
    runs, cv3, cr1 = 1000, 0, 0
    for _ in range(runs):
        sizes = np.ceil(8 * (rng.pareto(1.1, 40) + 1)).astype(int) if is_heavy else np.full(40, 12)
        annotators = np.repeat(np.arange(40), np.minimum(sizes, 600))
        values = rng.normal(0, 0.5, 40)[annotators] + rng.normal(0, 1, len(annotators))
        ours, theirs = clusters.clustered_mean(values, annotators).interval, sandwich(values, annotators).interval(0.95)
        cv3, cr1 = cv3 + (ours.low <= 0 <= ours.high), cr1 + (theirs.low <= 0 <= theirs.high)
    assert cv3 / runs >= 0.93
    if is_heavy:
        assert cr1 / runs < cv3 / runs - 0.02


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_the_betting_interval_covers(share):
    rng = np.random.default_rng(9)
    covered = 0
    for _ in range(500):
        interval = betting.betting_interval((rng.random(50) < share).astype(float), grid=401)
        covered += interval.low <= share <= interval.high
    assert covered / 500 >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 500)


def _clipped_mean(mean, sd):
    low, high = (0 - mean) / sd, (100 - mean) / sd
    inside = special.ndtr(high) - special.ndtr(low)

    def density(z):
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    return mean * inside + sd * (density(low) - density(high)) + 100 * (1 - special.ndtr(high))
