import itertools
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import metrics
from tests.analysis.stats.draws import rng


def scored(draw, n_items=60, k=6, noise=0.5, gap=0.15):
    """Human scores of k systems on the items, and a metric that follows them with `noise`."""
    human = draw.normal(0, 0.5, (n_items, 1)) + gap * np.arange(k) + draw.normal(0, 0.5, (n_items, k))
    return human, 3 * human + draw.normal(0, 3 * noise, (n_items, k)) + 7


def likert(draw, n_items=40, k=5):
    """Human scores on five points, so with ties, and a continuous metric."""
    quality = draw.normal(0, 1, (n_items, k)) + 0.4 * np.arange(k)
    return np.clip(np.rint(quality + 2), 0, 4) / 4, quality + draw.normal(0, 0.7, (n_items, k))


def brute_pairs(human, metric):
    """Differences of all pairs of outputs within each item."""
    for ours, theirs in zip(human, metric, strict=True):
        yield [
            (ours[i] - ours[j], theirs[i] - theirs[j])
            for i, j in itertools.combinations(range(len(ours)), 2)
            if not np.isnan([ours[i], ours[j], theirs[i], theirs[j]]).any()
        ]


def accuracy_at(human, metric, threshold):
    shares = []
    for pairs in brute_pairs(human, metric):
        right = [abs(m) <= threshold if h == 0 else abs(m) > threshold and h * m > 0 for h, m in pairs]
        if right:
            shares.append(np.mean(right))
    return float(np.mean(shares))


# --- systems


def test_correlations_of_systems_agree_with_scipy():
    human, metric = scored(rng(1))
    found = metrics.system_level(human, metric, rng=rng(), resamples=99)
    x, y = human.mean(axis=0), metric.mean(axis=0)
    assert_allclose(found["pearson"].estimate, stats.pearsonr(x, y).statistic)
    assert_allclose(found["spearman"].estimate, stats.spearmanr(x, y).statistic)
    assert_allclose(found["kendall"].estimate, stats.kendalltau(x, y).statistic)
    for estimate in found.values():
        assert (estimate.n, estimate.unit, estimate.detail["n_systems"]) == (60, "item", 6)
        assert estimate.interval.low <= estimate.estimate <= estimate.interval.high
    assert_allclose(found["pearson"].detail["human"], x)


def test_correlations_know_ties():
    human = np.tile([[1.0, 2.0, 2.0, 3.0, 5.0]], (4, 1))
    metric = np.tile([[2.0, 1.0, 4.0, 4.0, 4.0]], (4, 1))
    found = metrics.system_level(human, metric, rng=rng(), resamples=9)
    assert_allclose(found["spearman"].estimate, stats.spearmanr(human[0], metric[0]).statistic)
    assert_allclose(found["kendall"].estimate, stats.kendalltau(human[0], metric[0]).statistic)


def test_equal_means_are_ties_whatever_the_order_they_were_added_up_in():
    # The last three systems have the same scores, on other items: their means differ by rounding.
    column = np.round(rng(3).random(9), 2)
    human = np.column_stack([column - 0.1, column + 0.2, column, np.roll(column, 2), column[::-1]])
    metric = np.tile([[0.0, 4.0, 1.0, 2.0, 3.0]], (9, 1))
    exact = [-0.1, 0.2, 0, 0, 0]
    found = metrics.system_level(human, metric, rng=rng(), resamples=9)
    assert_allclose(found["kendall"].estimate, stats.kendalltau(exact, metric[0]).statistic)
    assert_allclose(found["spearman"].estimate, stats.spearmanr(exact, metric[0]).statistic)
    accuracy = metrics.pairwise_accuracy(human, metric, rng=rng(), resamples=9).estimate
    assert_allclose(accuracy, 7 / 10)


def test_the_interval_resamples_items_on_both_sides():
    human, metric = scored(rng(2), n_items=12)
    found = metrics.system_level(human, metric, rng=rng(3), resamples=400)["pearson"]
    draws = [
        stats.pearsonr(human[rows].mean(axis=0), metric[rows].mean(axis=0)).statistic
        for rows in rng(3).integers(0, 12, size=(400, 12))
    ]
    assert_allclose([found.interval.low, found.interval.high], np.quantile(draws, [0.025, 0.975]))


def test_a_score_of_whole_systems_stays_as_it_is():
    human, metric = scored(rng(4))
    whole = metric.mean(axis=0)
    found = metrics.system_level(human, whole, rng=rng(), resamples=199)["pearson"]
    assert_allclose(found.estimate, stats.pearsonr(human.mean(axis=0), whole).statistic)
    draws = [
        stats.pearsonr(human[rows].mean(axis=0), whole).statistic for rows in rng(5).integers(0, 60, size=(300, 60))
    ]
    assert_allclose(found.interval.low, np.quantile(draws, 0.025), atol=0.02)
    with pytest.raises(ValueError, match="metric: scores of items are needed"):
        metrics.soft_pairwise_accuracy(human, whole, rng=rng())


def test_a_missing_cell_is_left_out_of_both_sides():
    human, metric = scored(rng(6), n_items=20)
    human[3, 1] = np.nan
    metric[7, 4] = np.nan
    human[11] = np.nan
    found = metrics.system_level(human, metric, rng=rng(), resamples=9)["pearson"]
    both = ~np.isnan(human) & ~np.isnan(metric)
    x, y = ([table[both[:, j], j].mean() for j in range(6)] for table in (human, metric))
    assert_allclose(found.estimate, stats.pearsonr(x, y).statistic)
    assert (found.n, found.n_rows) == (19, int(both.sum()))


def test_under_four_systems_there_is_nothing_to_correlate():
    human, metric = scored(rng(7), k=3)
    for found in metrics.system_level(human, metric, rng=rng(), resamples=9).values():
        assert (found.status, found.estimate, found.detail["n_systems"]) == ("not_applicable", None, 3)
    four = metrics.system_level(*scored(rng(7), k=4), rng=rng(), resamples=9)
    assert all(found.status == "ok" for found in four.values())


def test_constant_scores_are_not_identified():
    human, metric = scored(rng(8))
    for pair in ((human, np.full_like(metric, 0.3)), (np.full_like(human, 0.1), metric)):
        for found in metrics.system_level(*pair, rng=rng(), resamples=9).values():
            assert (found.status, found.estimate) == ("not_identified", None)
    assert metrics.system_level(np.empty((0, 5)), np.empty((0, 5)), rng=rng())["pearson"].status == "no_data"


def test_a_metric_may_live_on_any_scale():
    human, metric = scored(rng(8))
    plain, tiny = (metrics.system_level(human, table, rng=rng(), resamples=99) for table in (metric, 1e-15 * metric))
    for name in plain:
        assert_allclose(plain[name].estimate, tiny[name].estimate)
        assert_allclose(plain[name].interval.low, tiny[name].interval.low)


def test_pairwise_accuracy_counts_pairs_of_systems():
    human, metric = scored(rng(9), noise=3.0, gap=0.05)
    found = metrics.pairwise_accuracy(human, metric, rng=rng(), resamples=99)
    x, y = human.mean(axis=0), metric.mean(axis=0)
    agreeing = [np.sign(x[i] - x[j]) == np.sign(y[i] - y[j]) for i, j in itertools.combinations(range(6), 2)]
    assert_allclose(found.estimate, np.mean(agreeing))
    assert found.detail["n_pairs"] == 15 and 0 < np.mean(agreeing) < 1
    # Without ties tau is twice the accuracy less one.
    tau = metrics.system_level(human, metric, rng=rng(), resamples=9)["kendall"].estimate
    assert_allclose(tau, 2 * found.estimate - 1)


def test_pairwise_accuracy_of_clear_pairs():
    human, metric = scored(rng(10), noise=2.0, gap=0.12)
    (clear,) = metrics.pairwise_accuracy(human, metric, rng=rng(), resamples=1999).sensitivity
    pairs = list(itertools.combinations(range(6), 2))
    pvalues = np.array([stats.ttest_rel(human[:, i], human[:, j]).pvalue for i, j in pairs])
    # A sign-flip p and a t test's differ by little, so pairs at the threshold itself may fall either way.
    assert np.sum(pvalues < 0.035) <= clear.detail["n_pairs"] <= np.sum(pvalues < 0.065)
    given = np.ones((6, 6))
    given[0, 5] = given[5, 0] = 0.001
    (chosen,) = metrics.pairwise_accuracy(human, metric, human_pvalues=given, rng=rng(), resamples=9).sensitivity
    assert (chosen.detail["n_pairs"], chosen.estimate) == (1, 1.0)
    (none,) = metrics.pairwise_accuracy(
        human, metric, human_pvalues=np.ones((6, 6)), rng=rng(), resamples=9
    ).sensitivity
    assert (none.status, none.detail["n_pairs"]) == ("not_identified", 0)


def test_a_tie_agrees_with_a_tie_only():
    human, metric = np.array([[0.1, 0.1, 0.9]] * 3), np.array([[1.0, 1.0, 1.0]] * 3)
    assert_allclose(metrics.pairwise_accuracy(human, metric, rng=rng(), resamples=9).estimate, 1 / 3)
    assert metrics.pairwise_accuracy(human, human, rng=rng(), resamples=9).estimate == 1


# --- soft pairwise accuracy


def test_soft_pairwise_accuracy_by_enumeration():
    human, metric = scored(rng(11), n_items=8, k=3)
    found = metrics.soft_pairwise_accuracy(human, metric, rng=rng())
    signs = np.array(list(itertools.product([-1, 1], repeat=8)))
    gaps = []
    for i, j in itertools.combinations(range(3), 2):
        upper = []
        for table in (human, metric):
            apart = table[:, i] - table[:, j]
            flipped = signs @ apart
            upper.append(np.mean(flipped > apart.sum() + 1e-9) + np.mean(np.abs(flipped - apart.sum()) <= 1e-9) / 2)
        gaps.append(abs(upper[0] - upper[1]))
    assert_allclose(found.estimate, 1 - np.mean(gaps))
    assert found.detail["n_pairs"] == 3


def test_soft_pairwise_accuracy_uses_one_sided_p_values():
    human, metric = scored(rng(12), n_items=200, k=4, gap=0.03, noise=1.0)
    found = metrics.soft_pairwise_accuracy(human, metric, rng=rng(), resamples=9999)
    for side, table in (("human", human), ("metric", metric)):
        wanted = [
            stats.ttest_rel(table[:, i], table[:, j], alternative="greater").pvalue
            for i, j in itertools.combinations(range(4), 2)
        ]
        assert_allclose(found.detail[side], wanted, atol=0.02)


def test_laws_of_soft_pairwise_accuracy():
    human, metric = scored(rng(13), n_items=50, k=5, noise=1.0)

    def soft(a, b):
        return metrics.soft_pairwise_accuracy(a, b, rng=rng(3), resamples=499).estimate

    assert soft(human, human) == soft(human, 5 * human - 2) == 1
    assert_allclose(soft(human, metric), soft(metric, human))
    assert_allclose(soft(human, metric), soft(human[:, ::-1], metric[:, ::-1]), atol=1e-9)
    # p(x, y) + p(y, x) = 1, so the opposite metric is as sure of the opposite.
    opposite = metrics.soft_pairwise_accuracy(human, -human, rng=rng(3), resamples=499)
    assert_allclose(opposite.detail["human"] + opposite.detail["metric"], 1, atol=0.07)
    # A metric that knows nothing says .5 to what people are sure of.
    sure, constant = np.tile(np.arange(3.0), (40, 1)) + rng(4).normal(0, 0.1, (40, 3)), np.zeros((40, 3))
    assert_allclose(soft(sure, constant), 0.5, atol=0.01)


def test_soft_pairwise_accuracy_edge_cases():
    human, _ = scored(rng(14), k=2)
    assert metrics.soft_pairwise_accuracy(human[:, :1], human[:, :1], rng=rng()).status == "not_applicable"
    assert metrics.soft_pairwise_accuracy(human * np.nan, human, rng=rng()).status == "no_data"
    assert metrics.soft_pairwise_accuracy(human, human, rng=rng(), resamples=99).status == "ok"


# --- single outputs


def test_tau_within_items_agrees_with_scipy():
    human, metric = likert(rng(15))
    human[0] = 0.5
    human[1, :4] = np.nan
    metric[2, 3] = np.nan
    found = metrics.segment_tau(human, metric, rng=rng(), resamples=199)
    taus = []
    for ours, theirs in zip(human, metric, strict=True):
        there = ~np.isnan(ours) & ~np.isnan(theirs)
        taus.append(stats.kendalltau(ours[there], theirs[there]).statistic if there.sum() > 1 else np.nan)
    defined = np.isfinite(taus)
    assert_allclose(found.estimate, np.mean(np.array(taus)[defined]))
    assert (found.n, found.detail["n_undefined"]) == (int(defined.sum()), int(np.sum(~defined)))
    assert found.interval.low < found.estimate < found.interval.high


def test_tau_over_all_outputs_agrees_with_scipy():
    human, metric = likert(rng(16))
    human[3, 2] = np.nan
    there = ~np.isnan(human)
    found = metrics.segment_tau(human, metric, grouping="none", rng=rng())
    assert_allclose(found.estimate, stats.kendalltau(human[there], metric[there]).statistic)
    assert found.interval is None and "over all outputs" in found.estimand


def test_tie_calibration_finds_the_best_threshold_of_all():
    for seed in range(6):
        human, metric = likert(rng(20 + seed), n_items=12, k=4)
        found = metrics.tie_calibrated_accuracy(human, metric, rng=rng(), resamples=9)
        distances = sorted({0.0} | {abs(m) for pairs in brute_pairs(human, metric) for _, m in pairs})
        accuracies = [accuracy_at(human, metric, threshold) for threshold in distances]
        assert_allclose(found.estimate, max(accuracies))
        assert_allclose(found.detail["threshold"], distances[int(np.argmax(np.isclose(accuracies, max(accuracies))))])
        assert found.warned("calibrated_on_these_data")


def test_accuracy_at_a_given_threshold():
    human, metric = likert(rng(17))
    human[4, 1] = np.nan
    for threshold in (0.0, 0.3, 2.0):
        found = metrics.tie_calibrated_accuracy(human, metric, threshold=threshold, rng=rng(), resamples=99)
        assert_allclose(found.estimate, accuracy_at(human, metric, threshold))
        parts = found.detail
        assert (
            sum(parts[name] for name in ("concordant", "discordant", "ties_human", "ties_metric", "ties_both"))
            == parts["n_pairs"]
        )
        assert not found.warnings
    everything_tied = metrics.tie_calibrated_accuracy(human, metric, threshold=99, rng=rng(), resamples=9)
    assert (everything_tied.detail["concordant"], everything_tied.detail["ties_human"]) == (0, 0)


def test_accuracy_without_grouping_pairs_all_outputs():
    human, metric = likert(rng(18), n_items=10, k=3)
    found = metrics.tie_calibrated_accuracy(human, metric, grouping="none", threshold=0.2, rng=rng())
    wanted = accuracy_at(human.reshape(1, -1), metric.reshape(1, -1), 0.2)
    assert_allclose(found.estimate, wanted)
    assert found.detail["n_pairs"] == 30 * 29 // 2 and found.interval is None
    parts = found.detail
    assert_allclose(found.estimate, (parts["concordant"] + parts["ties_both"]) / parts["n_pairs"])


def test_a_metric_without_ties_is_not_punished_for_them_once_calibrated():
    human, _ = likert(rng(19), n_items=200)
    # Equal but for rounding noise, which no human scale shows.
    metric = human + rng(5).normal(0, 1e-3, human.shape)
    naive = metrics.tie_calibrated_accuracy(human, metric, threshold=0.0, rng=rng(), resamples=9).estimate
    calibrated = metrics.tie_calibrated_accuracy(human, metric, rng=rng(), resamples=9)
    assert naive < 0.9 and calibrated.estimate == 1.0
    assert 0 < calibrated.detail["threshold"] < 0.01


def test_calibrating_flatters_a_metric_that_knows_nothing():
    human, metric = likert(rng(30))[0], rng(31).normal(0, 1, (40, 5))
    here = metrics.tie_calibrated_accuracy(human, metric, rng=rng(), resamples=9)
    elsewhere = metrics.tie_calibrated_accuracy(human, metric, threshold=0.0, rng=rng(), resamples=9)
    assert here.estimate >= elsewhere.estimate


def test_segment_edge_cases_are_statuses():
    human, metric = likert(rng(32))
    for function in (metrics.segment_tau, metrics.tie_calibrated_accuracy):
        assert function(human[:, :1], metric[:, :1], rng=rng()).status == "no_data"
        assert function(np.empty((0, 3)), np.empty((0, 3)), rng=rng()).status == "no_data"
    equal = metrics.segment_tau(np.ones((4, 3)), metric[:4, :3], rng=rng())
    assert (equal.status, equal.estimate) == ("not_identified", None)
    tied = metrics.tie_calibrated_accuracy(np.ones((4, 3)), metric[:4, :3], rng=rng(), resamples=9)
    assert tied.estimate == 1.0
    one = metrics.segment_tau(human[:1], metric[:1], rng=rng())
    assert one.n == 1 and one.interval is None


# --- two metrics


def test_a_better_metric_is_found_better_and_an_equal_one_is_not():
    draw = rng(33)
    human, good = scored(draw, n_items=150, k=8, gap=0.1, noise=0.3)
    poor = draw.normal(0, 1, human.shape)
    for statistic in (*metrics.STATISTICS, "segment_tau"):
        found = metrics.compare_metrics(human, good, poor, statistic=statistic, rng=rng(), resamples=499)
        assert found.estimate > 0 and found.pvalue < 0.05, statistic
        mirrored = metrics.compare_metrics(human, poor, good, statistic=statistic, rng=rng(), resamples=499)
        assert_allclose(mirrored.estimate, -found.estimate)
        assert_allclose(mirrored.pvalue, found.pvalue, atol=0.01)


def test_the_comparison_is_that_of_brute_force():
    draw = rng(34)
    human, first = scored(draw, n_items=15, k=5, noise=0.8)
    second = human + draw.normal(0, 1.5, human.shape)
    found = metrics.compare_metrics(human, first, second, rng=rng(6), resamples=200)
    one, other = (stats.zscore(table, axis=None) for table in (first, second))

    def gap(a, b):
        return np.subtract(*(stats.pearsonr(human.mean(axis=0), table.mean(axis=0)).statistic for table in (a, b)))

    observed, extreme = gap(one, other), 0
    for swaps in rng(6).integers(0, 2, (200, 15), dtype=np.int8).astype(bool):
        exchanged = np.where(swaps[:, None], other, one), np.where(swaps[:, None], one, other)
        extreme += abs(gap(*exchanged)) >= abs(observed) - 1e-9
    assert_allclose(found.estimate, observed)
    assert_allclose(found.pvalue, (1 + extreme) / 201)
    assert found.test.name == "paired_permutation"


def test_the_scales_of_two_metrics_do_not_matter():
    draw = rng(35)
    human, first = scored(draw)
    second = human + draw.normal(0, 0.8, human.shape)
    plain = metrics.compare_metrics(human, first, second, rng=rng(), resamples=299)
    scaled = metrics.compare_metrics(human, 100 * first + 5, second / 50, rng=rng(), resamples=299)
    assert_allclose([plain.estimate, plain.pvalue], [scaled.estimate, scaled.pvalue])


def test_a_metric_does_not_differ_from_itself():
    human, metric = scored(rng(36))
    for statistic in ("pearson", "segment_tau"):
        found = metrics.compare_metrics(human, metric, 2 * metric + 1, statistic=statistic, rng=rng(), resamples=99)
        assert (found.status, found.test) == ("zero_variance", None)
        assert_allclose(found.estimate, 0, atol=1e-12)


def test_comparison_edge_cases_are_statuses():
    human, metric = scored(rng(37))
    other = metric + rng(38).normal(0, 1, metric.shape)

    def status(*tables, **options):
        return metrics.compare_metrics(*tables, rng=rng(), resamples=19, **options).status

    assert status(human[:, :3], metric[:, :3], other[:, :3]) == "not_applicable"
    poor = rng(1).normal(0, 1, (60, 3))
    assert status(human[:, :3], metric[:, :3], poor, statistic="pairwise_accuracy") == "ok"
    assert status(human, np.ones_like(metric), other) == "not_identified"
    assert status(np.ones_like(human), metric, other) == "not_identified"
    assert status(np.ones_like(human), metric, other, statistic="segment_tau") == "not_identified"
    assert status(human * np.nan, metric, other) == "no_data"


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["pearson", "segment_tau"])
def test_two_equally_good_metrics_are_told_apart_as_rarely_as_promised(statistic):
    draw, rejected, runs = rng(39), 0, 600
    for _ in range(runs):
        human = 0.1 * np.arange(6) + draw.normal(0, 0.5, (40, 6))
        one, other = (human + draw.normal(0, 0.6, human.shape) for _ in range(2))
        found = metrics.compare_metrics(human, one, other, statistic=statistic, rng=draw, resamples=199)
        rejected += found.pvalue <= 0.05
    assert rejected / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    assert rejected / runs >= 0.02


@pytest.mark.slow
def test_the_interval_of_a_system_level_correlation_moves_with_the_items():
    """Over studies with the same systems and other items, the correlation falls within the interval's length."""
    draw = rng(40)
    estimates, widths = [], []
    for _ in range(200):
        human, metric = scored(draw, n_items=80, k=8, gap=0.1, noise=0.8)
        found = metrics.system_level(human, metric, rng=draw, resamples=199)["pearson"]
        estimates.append(found.estimate)
        widths.append(found.interval.high - found.interval.low)
    assert 0.5 < np.std(estimates) * 3.92 / np.mean(widths) < 1.2


# --- manners


def test_results_are_plain_json_and_repeatable():
    human, metric = likert(rng(41))
    human[2, 2] = np.nan

    def everything():
        yield from metrics.system_level(human, metric, rng=rng(7), resamples=49).values()
        yield metrics.pairwise_accuracy(human, metric, rng=rng(7), resamples=49)
        yield metrics.soft_pairwise_accuracy(human, metric, rng=rng(7), resamples=49)
        yield metrics.segment_tau(human, metric, rng=rng(7), resamples=49)
        yield metrics.tie_calibrated_accuracy(human, metric, rng=rng(7), resamples=49)
        yield metrics.compare_metrics(human, metric, -metric, rng=rng(7), resamples=49)

    first, second = ([json.dumps(one.as_dict(), allow_nan=False) for one in everything()] for _ in range(2))
    assert first == second


def test_the_order_of_items_does_not_matter():
    human, metric = likert(rng(42))
    order = rng(43).permutation(40)
    for function in (metrics.segment_tau, metrics.tie_calibrated_accuracy, metrics.pairwise_accuracy):
        one, other = (
            function(a, b, rng=rng(), resamples=19) for a, b in ((human, metric), (human[order], metric[order]))
        )
        assert_allclose(one.estimate, other.estimate)


def test_bad_arguments_are_named():
    human, metric = likert(rng(44))
    with pytest.raises(ValueError, match="metric: shape"):
        metrics.segment_tau(human, metric[:, 1:], rng=rng())
    with pytest.raises(ValueError, match="metric: 3 scores for 5 systems"):
        metrics.system_level(human, [1, 2, 3], rng=rng())
    with pytest.raises(ValueError, match="human: expected two dimensions"):
        metrics.system_level([1, 2], [1, 2], rng=rng())
    with pytest.raises(ValueError, match="grouping"):
        metrics.segment_tau(human, metric, grouping="system", rng=rng())
    with pytest.raises(ValueError, match="threshold"):
        metrics.tie_calibrated_accuracy(human, metric, threshold=-1, rng=rng())
    with pytest.raises(ValueError, match="statistic"):
        metrics.compare_metrics(human, metric, metric, statistic="r", rng=rng())
    with pytest.raises(ValueError, match="second: shape"):
        metrics.compare_metrics(human, metric, metric[1:], rng=rng())
    with pytest.raises(ValueError, match="significance"):
        metrics.pairwise_accuracy(human, metric, significance=5, rng=rng())
    with pytest.raises(ValueError, match="human_pvalues: shape"):
        metrics.pairwise_accuracy(human, metric, human_pvalues=[[1]], rng=rng())
    with pytest.raises(ValueError, match="grouping: .* pairs are more than"):
        metrics.segment_tau(np.zeros((400, 10)), np.zeros((400, 10)), grouping="none", rng=rng())
    with pytest.raises(ValueError, match="level"):
        metrics.segment_tau(human, metric, level=95, rng=rng())
