import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from analysis.stats import clusters
from analysis.stats.prediction_powered import clustered_prediction_powered_mean, prediction_powered_mean
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("prediction_powered")
Z = float(special.ndtri(0.975))


def correlated(draw, n, big, correlation):
    """Human scores and a metric, normal with mean 0, of n judged and `big` further outputs."""
    human = draw.normal(0, 1, n + big)
    metric = correlation * human + math.sqrt(1 - correlation**2) * draw.normal(0, 1, n + big)
    return human[:n], metric[:n], metric[n:]


def judgements(draw, n_annotators=20, each=8, big=1000, is_heavy=False):
    who = np.repeat(np.arange(n_annotators), each)
    if is_heavy:
        activity = np.minimum(draw.pareto(1.1, n_annotators) + 1, 100)
        who = draw.choice(n_annotators, len(who), p=activity / activity.sum())
    quality = draw.normal(0, 0.3, len(who) + big)
    metric = quality + draw.normal(0, 0.2, len(quality))
    human = quality[: len(who)] + draw.normal(0, 0.2, n_annotators)[who] + draw.normal(0, 0.2, len(who))
    return human, metric[: len(who)], who, metric[len(who) :]


def coverage(runs, seed, n, correlation, big=1000):
    draw, by_t, by_z, ratios = rng(seed), 0, 0, []
    for _ in range(runs):
        found = prediction_powered_mean(*correlated(draw, n, big, correlation))
        by_t += found.interval.low <= 0 <= found.interval.high
        by_z += abs(found.estimate) <= Z * found.detail["se"]
        ratios.append(found.detail["se_ratio"])
    return by_t / runs, by_z / runs, float(np.mean(ratios))


def clustered_coverage(runs, seed, **design):
    draw, ours, naive = rng(seed), 0, 0
    for _ in range(runs):
        human, metric, who, rest = judgements(draw, **design)
        found = clustered_prediction_powered_mean(human, metric, who, rest, rng=draw, resamples=199)
        ours += found.interval.low <= 0 <= found.interval.high
        interval = prediction_powered_mean(human, metric, rest).interval
        naive += interval.low <= 0 <= interval.high
    return ours / runs, naive / runs


def test_the_estimate_agrees_with_the_reference():
    case = GOLDEN["ppi"]
    found = prediction_powered_mean(case["y"], case["f_labelled"], case["f_unlabelled"], null=0.5)
    assert_allclose(
        [found.detail["weight"], found.estimate, found.detail["se"]],
        [case["lam"], case["theta"], case["se"]],
        atol=1e-9,
    )
    t = (case["theta"] - 0.5) / case["se"]
    assert_allclose([found.test.statistic, found.pvalue], [t, 2 * stats.t.sf(abs(t), 5)])
    half = stats.t.isf(0.025, 5) * case["se"]
    assert_allclose([found.interval.low, found.interval.high], [case["theta"] - half, case["theta"] + half])
    assert (found.n, found.n_rows, found.unit, found.test.df) == (6, 16, "output", 5)


def test_every_variance_divides_by_n_minus_1():
    draw = rng(1)
    y, f, rest = correlated(draw, 7, 12, 0.7)
    found = prediction_powered_mean(y, f, rest)
    pooled = np.r_[f, rest]
    weight = (np.sum((y - y.mean()) * (f - f.mean())) / 6) / (np.sum((pooled - pooled.mean()) ** 2) / 18 * (1 + 7 / 12))
    error = y - weight * f
    variance = np.sum((error - error.mean()) ** 2) / 6 / 7 + weight**2 * np.sum((rest - rest.mean()) ** 2) / 11 / 12
    assert_allclose([found.detail["weight"], found.detail["se"]], [weight, math.sqrt(variance)])


def test_the_human_only_mean_stands_beside_it():
    y, f, rest = correlated(rng(2), 40, 400, 0.8)
    found = prediction_powered_mean(y, f, rest, null=0.0)
    (alone,) = found.sensitivity
    assert_allclose([alone.estimate, alone.pvalue], [y.mean(), stats.ttest_1samp(y, 0).pvalue])
    assert_allclose(found.detail["se_ratio"], found.detail["se"] / (y.std(ddof=1) / math.sqrt(40)))
    assert found.detail["se_ratio"] < 1
    assert prediction_powered_mean(y, f, rest).sensitivity[0].test is None


def test_a_metric_that_copies_people_gives_the_mean_of_everything():
    draw = rng(3)
    everything = draw.normal(0.5, 0.2, 1200)
    found = prediction_powered_mean(everything[:200], everything[:200], everything[200:])
    assert_allclose(found.estimate, everything.mean(), atol=0.002)


def test_a_useless_metric_does_no_harm():
    y, f, rest = correlated(rng(4), 200, 2000, 0.0)
    found = prediction_powered_mean(y, f, rest)
    assert abs(found.detail["weight"]) < 0.15 and 0.98 < found.detail["se_ratio"] < 1.02


def test_the_metrics_own_scale_and_sign_do_not_matter():
    y, f, rest = correlated(rng(5), 30, 300, 0.6)
    plain, scaled = prediction_powered_mean(y, f, rest), prediction_powered_mean(y, 40 - 7 * f, 40 - 7 * rest)
    assert_allclose([plain.estimate, plain.detail["se"]], [scaled.estimate, scaled.detail["se"]])
    shifted = prediction_powered_mean(2 * y + 3, f, rest)
    assert_allclose([shifted.estimate, shifted.detail["se"]], [2 * plain.estimate + 3, 2 * plain.detail["se"]])


def test_a_biased_metric_is_corrected():
    draw = rng(6)
    y, f, rest = correlated(draw, 100, 5000, 0.9)
    # The metric overrates what nobody judged and everything else alike: by far more than the interval is wide.
    found = prediction_powered_mean(y, f + 10, rest + 10)
    assert found.interval.low < 0 < found.interval.high


def test_the_t_interval_covers_with_few_judgements():
    by_t, by_z, _ = coverage(400, 7, 20, 0.6)
    assert by_t > 0.915 and by_t > by_z


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 50, 100])
@pytest.mark.parametrize("correlation", [0.3, 0.6, 0.8])
def test_the_t_interval_covers_and_the_normal_one_does_not(n, correlation):
    # Three Monte-Carlo standard errors of .95 over 4,000 runs are .010.
    by_t, by_z, ratio = coverage(4000, n, n, correlation)
    assert abs(by_t - 0.95) < 0.0155
    assert by_z < by_t
    if n == 20:
        assert abs(by_z - 0.926) < 0.0155
    if n == 100:
        wanted = GOLDEN["coverage"][f"rho={correlation}"]
        assert_allclose(ratio, wanted["se_ratio_vs_classic"], atol=0.01)
        assert abs(by_z - wanted["coverage"]) < 0.015


def test_annotators_are_clusters():
    ours, naive = clustered_coverage(60, 8)
    assert ours > 0.85 > naive


@pytest.mark.slow
@pytest.mark.parametrize(
    "design", [{}, {"n_annotators": 40, "each": 5}, {"n_annotators": 40, "each": 5, "is_heavy": True}]
)
def test_the_clustered_interval_covers(design):
    ours, naive = clustered_coverage(1000, 9, **design)
    assert ours >= 0.925
    assert naive < 0.82


def test_the_clustered_standard_error_without_clusters_is_the_plain_one():
    y, f, rest = correlated(rng(10), 150, 1500, 0.7)
    plain = prediction_powered_mean(y, f, rest)
    found = clustered_prediction_powered_mean(y, f, np.arange(150), rest, rng=rng(), resamples=4999)
    assert_allclose(found.estimate, plain.estimate)
    assert_allclose(found.detail["se"], plain.detail["se"], rtol=0.04)
    assert (found.n, found.unit, found.detail["df"]) == (150, "annotator", 149)


def test_the_clustered_resamples_are_those_of_brute_force():
    human, metric, who, rest = judgements(rng(11), n_annotators=6, each=4, big=50)
    found = clustered_prediction_powered_mean(human, metric, who, rest, rng=rng(12), resamples=300)
    draw, brute = rng(12), []
    for row in draw.integers(0, 6, size=(300, 6)):
        rows = np.concatenate([np.flatnonzero(who == a) for a in row])
        brute.append(prediction_powered_mean(human[rows], metric[rows], rest).estimate)
    weight = found.detail["weight"]
    variance = np.var(brute, ddof=1) * 6 / 5 + weight**2 * np.var(rest, ddof=1) / 50
    assert_allclose(found.detail["se"], math.sqrt(variance), rtol=1e-9)


def test_every_judgement_twice_within_an_annotator_hardly_changes_the_standard_error():
    human, metric, who, rest = judgements(rng(13))
    one = clustered_prediction_powered_mean(human, metric, who, rest, rng=rng(), resamples=1999)
    two = clustered_prediction_powered_mean(
        np.tile(human, 2), np.tile(metric, 2), np.tile(who, 2), rest, rng=rng(), resamples=1999
    )
    # The weight knows n, so it moves a little; the clusters do not.
    assert_allclose(one.detail["se"], two.detail["se"], rtol=0.05)
    assert one.detail["df"] == two.detail["df"]


def test_the_clustered_human_only_mean_is_the_clustered_mean():
    human, metric, who, rest = judgements(rng(14))
    found = clustered_prediction_powered_mean(human, metric, who, rest, null=0.1, rng=rng(), resamples=199)
    wanted = clusters.clustered_mean(human, who, null=0.1)
    assert_allclose([found.sensitivity[0].estimate, found.sensitivity[0].pvalue], [wanted.estimate, wanted.pvalue])
    assert found.test.name == "prediction_powered_t"


def test_edge_cases_are_statuses():
    def status(y, f, rest):
        plain = prediction_powered_mean(y, f, rest, bounds=(0, 1))
        by_cluster = clustered_prediction_powered_mean(y, f, range(len(y)), rest, rng=rng(), resamples=99)
        assert plain.status == by_cluster.status
        for found in (plain, by_cluster):
            json.dumps(found.as_dict(), allow_nan=False)
            assert found.test is None
        return plain

    assert status([], [], [0.1, 0.2]).status == "no_data"
    assert status([0.5], [0.4], [0.1, 0.2]).status == "n_lt_2"
    assert status([0.5, 0.6], [0.4, 0.3], [0.1]).status == "not_applicable"
    constant = status([0.5, 0.6, 0.9], [0.4] * 3, [0.4] * 5)
    assert (constant.status, constant.estimate) == ("not_identified", None)
    assert_allclose(constant.sensitivity[0].estimate, 2 / 3)
    same = status([0.5] * 4, [0.1, 0.2, 0.3, 0.4], [0.2, 0.3])
    assert (same.status, same.estimate, same.interval) == ("zero_variance", 0.5, None)
    assert same.detail["correlation"] is None


def test_under_six_annotators_there_is_no_test():
    human, metric, who, rest = judgements(rng(15), n_annotators=5)
    found = clustered_prediction_powered_mean(human, metric, who, rest, null=0.0, rng=rng(), resamples=199)
    assert found.test is None and found.interval is not None
    assert [(w.code, w.severity) for w in found.warnings] == [("few_clusters", "block")]


def test_outputs_without_a_human_score_are_left_out_and_without_a_metric_refused():
    found = prediction_powered_mean([0.1, None, 0.4, 0.8], [0.2, None, 0.3, 0.9], [0.1, 0.5, 0.6])
    assert (found.n, found.detail["n_missing"]) == (3, 1)
    with pytest.raises(ValueError, match="metric: row 1 has no score"):
        prediction_powered_mean([0.1, 0.2], [0.1, None], [0.1, 0.2])
    with pytest.raises(ValueError, match="metric_unjudged: row 0 has no score"):
        prediction_powered_mean([0.1, 0.2], [0.1, 0.3], [None, 0.2])
    with pytest.raises(ValueError, match="metric: 1 values where human has 2"):
        prediction_powered_mean([0.1, 0.2], [0.1], [0.1, 0.2])
    with pytest.raises(ValueError, match="annotators: expected 2 labels"):
        clustered_prediction_powered_mean([0.1, 0.2], [0.1, 0.3], ["a"], [0.1, 0.2], rng=rng())
    with pytest.raises(ValueError, match="level"):
        prediction_powered_mean([0.1, 0.2], [0.1, 0.3], [0.1, 0.2], level=95)


def test_an_annotator_whose_judgements_are_all_missing_is_no_cluster():
    human, metric, who, rest = judgements(rng(16), n_annotators=10, each=4)
    human[who == 3] = np.nan
    found = clustered_prediction_powered_mean(human, metric, who, rest, rng=rng(), resamples=199)
    assert (found.n, found.detail["n_missing"], found.detail["n_judged"]) == (9, 4, 36)


def test_the_same_seed_gives_the_same_interval():
    data = judgements(rng(17))
    first, second = (clustered_prediction_powered_mean(*data, rng=rng(3), resamples=299) for _ in range(2))
    assert first.as_dict() == second.as_dict()
