import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import basic, group_sequential
from analysis.stats.results import json_safe
from tests.analysis.stats.golden import golden

GOLDEN = golden("group_sequential")
LOOKS = [40, 80, 120, 160, 200]


def annotators(seed, n=200, mean=0.5, sd=0.27):
    """Answers of the shape that a probabilistic study gets: a beta distribution with this mean and sd."""
    nu = mean * (1 - mean) / sd**2 - 1
    return np.random.default_rng(seed).beta(mean * nu, (1 - mean) * nu, n)


def acceptance(fractions, z, drift=0.0):
    """The chance of never crossing, as the volume of a box under a multivariate normal distribution."""
    times = np.asarray(fractions)
    correlation = np.sqrt(np.minimum.outer(times, times) / np.maximum.outer(times, times))
    box = stats.multivariate_normal(drift * np.sqrt(times), correlation, maxpts=200_000, abseps=1e-6, seed=1)
    return float(box.cdf(z, lower_limit=-np.asarray(z)))


@pytest.mark.parametrize("looks", [2, 3, 4, 5])
def test_classical_boundaries_are_the_published_ones(looks):
    published = GOLDEN["classical"]
    found = group_sequential.group_sequential_design(looks, kind="classical")
    assert_allclose(found.z, published["obrien_fleming"][str(looks)], atol=5.1e-4)
    level = group_sequential.group_sequential_design(looks, kind="classical", shape="pocock")
    assert_allclose(level.z, published["pocock"][str(looks)], atol=5.1e-4)
    simulated = GOLDEN["simulated"][str(looks)]
    assert_allclose(found.z, simulated["obf_z"], atol=0.02)
    assert_allclose(level.z, simulated["pocock_z"], atol=0.02)


@pytest.mark.parametrize("shape", group_sequential.SHAPES)
def test_spending_boundaries_are_the_published_ones(shape):
    assert_allclose(group_sequential.group_sequential_design(5, shape=shape).z, GOLDEN["spending"][shape], atol=2e-4)


@pytest.mark.parametrize("shape", group_sequential.SHAPES)
@pytest.mark.parametrize("fractions", [[0.5, 1.0], [0.2, 0.7, 1.0], [0.3, 0.35, 0.9, 1.0]])
def test_boundaries_spend_what_they_may_at_any_spacing(shape, fractions):
    found = group_sequential.group_sequential_design(fractions, shape=shape)
    assert_allclose(1 - acceptance(fractions, found.z), 0.05, atol=2e-5)
    half, times = 0.025, np.asarray(fractions)
    allowed = {
        "obrien_fleming": 2 * (2 - 2 * stats.norm.cdf(stats.norm.ppf(1 - half / 2) / np.sqrt(times))),
        "pocock": 2 * half * np.log(1 + (math.e - 1) * times),
    }[shape]
    assert_allclose(found.spent, allowed, atol=1e-8)
    assert_allclose(found.nominal, 2 * stats.norm.sf(found.z))


def test_a_look_so_early_that_nothing_may_be_spent_cannot_reject():
    found = group_sequential.group_sequential_design([0.001, 1.0])
    assert found.z[0] == group_sequential.NEVER
    assert_allclose(found.z[1], stats.norm.ppf(0.975), atol=1e-6)


def test_one_look_is_the_ordinary_test():
    for kind in group_sequential.KINDS:
        assert_allclose(group_sequential.group_sequential_design(1, kind=kind).z, [stats.norm.ppf(0.975)], atol=1e-8)
    values = annotators(1, mean=0.56)
    single, ordinary = group_sequential.group_sequential_test(values, [200]), basic.one_sample_t_test(values, null=0.5)
    assert_allclose(single.estimate.pvalue, ordinary.pvalue, rtol=1e-6)
    assert_allclose(single.estimate.test.statistic, ordinary.test.statistic)
    assert_allclose(
        [single.estimate.interval.low, single.estimate.interval.high],
        [ordinary.interval.low, ordinary.interval.high],
        atol=1e-9,
    )


def test_exit_probabilities_under_a_drift():
    found = group_sequential.group_sequential_design(3, kind="classical")
    exits = group_sequential.first_crossing_probabilities(found.fractions, found.z, drift=3.0)
    assert_allclose(1 - exits.sum(), acceptance(found.fractions, found.z, drift=3.0), atol=2e-5)
    assert_allclose(
        exits[0], stats.norm.sf(found.z[0], math.sqrt(1 / 3) * 3) + stats.norm.cdf(-found.z[0], math.sqrt(3))
    )
    mirrored = group_sequential.first_crossing_probabilities(found.fractions, found.z, drift=-3.0)
    assert_allclose(exits, mirrored)


def test_the_design_costs_little_at_the_end():
    # At the drift that gives a fixed study power .8, looking five times costs two points of power.
    drift = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    found = group_sequential.group_sequential_design(5)
    power = group_sequential.first_crossing_probabilities(found.fractions, found.z, drift=drift).sum()
    assert 0.78 < power < 0.8


def test_a_study_stops_at_the_first_look_that_passes():
    values = annotators(2, mean=0.62)
    result = group_sequential.group_sequential_test(values, LOOKS)
    n = result.stopped_at
    assert n in LOOKS[:-1] and result.verdict == "a_better" and result.n_overrun == 200 - n
    assert [look.n for look in result.looks] == LOOKS[: LOOKS.index(n) + 1]
    assert [look.is_crossed for look in result.looks] == [False] * LOOKS.index(n) + [True]
    last = result.looks[-1]
    ordinary = basic.one_sample_t_test(values[:n], null=0.5)
    assert_allclose(last.pvalue, ordinary.pvalue)
    assert last.pvalue <= last.boundary_pvalue
    assert result.estimate.n == n and result.estimate.interval.low > 0.5
    assert result.estimate.has_warning("optional_stopping")
    # No more than the level may be spent by a study that rejects, no less by one that does not.
    assert result.estimate.pvalue <= result.design.spent[len(result.looks) - 1] <= 0.05
    swapped = group_sequential.group_sequential_test(1 - values, LOOKS)
    assert (swapped.verdict, swapped.stopped_at) == ("b_better", n)
    assert_allclose(swapped.estimate.pvalue, result.estimate.pvalue)


def test_the_stagewise_p_adds_up_what_was_spent_before():
    values = annotators(3, mean=0.585)
    result = group_sequential.group_sequential_test(values, LOOKS)
    look = len(result.looks) - 1
    assert look >= 1
    z = np.r_[result.design.z[:look], -stats.norm.ppf(result.looks[look].pvalue / 2)]
    wanted = 1 - acceptance(result.design.fractions[: look + 1], z)
    assert_allclose(result.estimate.pvalue, wanted, atol=5e-5)


def test_repeated_intervals_exclude_the_null_where_the_boundary_is_passed():
    for seed in range(40):
        values = annotators(seed, mean=0.56)
        for look in group_sequential.group_sequential_test(values, LOOKS).looks:
            seen = values[: look.n]
            half = stats.t.isf(look.boundary_pvalue / 2, look.n - 1) * stats.sem(seen)
            assert_allclose([look.interval.low, look.interval.high], np.clip(seen.mean() + [-half, half], 0, 1))
            assert look.is_crossed == (not look.interval.low < 0.5 < look.interval.high)
            assert look.interval.level == 0.95


def test_between_looks_nothing_is_concluded():
    values = annotators(4, n=79)
    early = group_sequential.group_sequential_test(values, LOOKS)
    assert (early.verdict, early.stopped_at, early.n_overrun) == ("inconclusive", None, 0)
    assert early.estimate.n == 40 and early.estimate.test is None and early.estimate.interval is not None
    before = group_sequential.group_sequential_test(values[:10], LOOKS)
    assert (before.estimate.status, before.verdict, before.looks) == ("not_applicable", "inconclusive", ())
    none = group_sequential.group_sequential_test([], LOOKS)
    assert (none.estimate.status, none.verdict) == ("no_data", None)
    over = group_sequential.group_sequential_test(annotators(5, n=230), LOOKS)
    assert (over.verdict, over.n_overrun) == ("budget_exhausted", 30)
    assert over.estimate.pvalue > 0.05 and not over.estimate.has_warning("optional_stopping")


def test_values_that_do_not_vary_cannot_be_tested():
    result = group_sequential.group_sequential_test(np.ones(200), LOOKS)
    assert (result.estimate.status, result.verdict, result.stopped_at) == ("zero_variance", "budget_exhausted", None)
    assert all(look.pvalue is None for look in result.looks)
    # Variance that comes later is tested later.
    later = group_sequential.group_sequential_test(np.r_[np.ones(60), annotators(6, n=140, mean=0.7)], LOOKS)
    assert later.looks[0].statistic is None and later.verdict == "a_better"


def test_values_that_hardly_vary_or_are_skewed_forbid_a_claim():
    values = np.r_[np.full(39, 5 / 9), 0.55]
    result = group_sequential.group_sequential_test(values, [20, 40])
    assert result.looks[-1].pvalue < 1e-20
    (warning,) = [one for one in result.estimate.warnings if one.code == "small_n_skew"]
    assert warning.severity == "block" and warning.detail["skewness"] > 0.9
    ceiling = np.r_[np.ones(37), 0.2, 0.1, 0.0]
    assert group_sequential.group_sequential_test(ceiling, [20, 40]).estimate.has_warning("small_n_skew")
    usual = group_sequential.group_sequential_test(annotators(3), LOOKS)
    assert not usual.estimate.has_warning("small_n_skew") and not usual.estimate.has_warning("few_clusters")


def test_under_six_units_nothing_is_tested():
    few = group_sequential.group_sequential_test([0.6, 0.7, 0.65, 0.8, 0.75], [5]).estimate
    assert few.test is None and few.interval is not None
    assert [(one.code, one.severity) for one in few.warnings] == [("few_clusters", "block")]
    assert group_sequential.group_sequential_test([0.6, 0.7, 0.65, 0.8, 0.75, 0.7], [6]).estimate.test is not None


def test_results_are_json():
    for values in ([], annotators(7, n=50), np.ones(200), annotators(2, mean=0.62)):
        result = group_sequential.group_sequential_test(values, LOOKS)
        json.dumps(json_safe(result.as_dict()), allow_nan=False)


def test_bad_arguments_are_named():
    run = group_sequential.group_sequential_test
    for call, word in (
        (lambda: group_sequential.group_sequential_design(6), "fractions: 6 looks"),
        (lambda: group_sequential.group_sequential_design([0.1, 0.2, 0.3, 0.4, 0.5, 1]), "fractions: 6 looks"),
        (lambda: group_sequential.group_sequential_design([0.5, 0.4, 1]), "fractions: must ascend"),
        (lambda: group_sequential.group_sequential_design([0.5, 0.9]), "fractions: must ascend"),
        (lambda: group_sequential.group_sequential_design([0.4, 1.0], kind="classical"), "equally spaced"),
        (lambda: group_sequential.group_sequential_design(2, shape="flat"), "shape"),
        (lambda: group_sequential.group_sequential_design(2, kind="exact"), "kind"),
        (lambda: group_sequential.group_sequential_design(2, significance=0.7), "significance"),
        (lambda: group_sequential.first_crossing_probabilities([0.5, 1], [2.0]), "z: 1 boundaries"),
        (lambda: run([0.5, 1.5], [2]), "values: row 1 is 1.5"),
        (lambda: run([0.5, np.nan], [2]), "values: row 1 is missing"),
        (lambda: run([0.5], [1, 2]), "looks"),
        (lambda: run([0.5], [20, 10]), "looks"),
        (lambda: run([0.5], []), "looks"),
        (lambda: run([0.5], [2, 3, 4, 5, 6, 7]), "fractions: 6 looks"),
    ):
        with pytest.raises(ValueError, match=word):
            call()


def rejected(shape, mean, runs, seed):
    found = [
        group_sequential.group_sequential_test(annotators(seed + run, mean=mean), LOOKS, shape=shape)
        for run in range(runs)
    ]
    stopped = [result.stopped_at or 200 for result in found]
    return np.mean([result.stopped_at is not None for result in found]), np.mean(stopped)


def test_five_planned_looks_keep_the_level_that_peeking_breaks():
    runs = 400
    share, _ = rejected("obrien_fleming", 0.5, runs, seed=1000)
    error = 3 * math.sqrt(0.05 * 0.95 / runs)
    assert share <= 0.05 + error
    studies = np.array([annotators(1000 + run) for run in range(150)])
    looks = np.array([stats.ttest_1samp(studies[:, :n], 0.5, axis=1).pvalue for n in range(20, 201, 10)])
    peeking = np.mean((looks < 0.05).any(axis=0))
    assert peeking > 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "power", "mean_n"), [("obrien_fleming", 0.98, 129), ("pocock", 0.946, 103)])
def test_level_and_power_are_those_of_the_reference_simulation(shape, power, mean_n):
    share, _ = rejected(shape, 0.5, 4000, seed=20_000)
    assert 0.04 <= share <= 0.06
    found, n = rejected(shape, 0.575, 1000, seed=40_000)
    assert abs(found - power) < 0.02
    assert abs(n - mean_n) < 8
