import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import basic, permutation
from tests.analysis.stats.golden import golden

GOLDEN = golden("permutation")


def generator(seed=0):
    return np.random.default_rng(seed)


def medians(x, y):
    return np.median(x, axis=-1) - np.median(y, axis=-1)


def nan_medians(x, y):
    return np.nanmedian(x, axis=1) - np.nanmedian(y, axis=1)


@pytest.mark.parametrize("design", ["two_groups", "paired_systems"])
@pytest.mark.parametrize("alternative", permutation.ALTERNATIVES)
def test_small_samples_are_enumerated_and_agree_with_the_references(design, alternative):
    case = GOLDEN[design]
    result = getattr(permutation, design)(case["x"], case["y"], alternative=alternative, rng=generator())
    assert_allclose([result.estimate, result.pvalue], [case["difference"], case[alternative]], atol=1e-12)
    assert result.detail["is_exact"] and result.detail["monte_carlo_error"] == 0
    assert result.test.alternative == alternative


def test_any_statistic_agrees_with_scipy():
    rng = generator(1)
    for _ in range(3):
        x, y = rng.normal(size=6), rng.normal(0.5, 1, 7)
        theirs = stats.permutation_test(
            (x, y),
            lambda a, b, axis: np.median(a, axis=axis) - np.median(b, axis=axis),
            n_resamples=math.inf,
            alternative="greater",
        )
        ours = permutation.two_groups(x, y, statistic=medians, alternative="greater", rng=rng)
        assert_allclose(ours.pvalue, theirs.pvalue, atol=1e-12)


def test_the_null_of_a_statistic_is_where_distance_is_measured_from():
    x, y = [5.0, 4.0, 5.0, 3.0, 4.5], [1.0, 2.0, 3.0, 2.5, 2.0]
    result = permutation.two_groups(x, y, statistic=permutation.superiority_statistic, null=0.5, rng=generator())
    u = stats.mannwhitneyu(x, y)
    assert_allclose(result.estimate, u.statistic / 25)
    # Both tails are alike about .5: the two-sided p is twice the one-sided.
    above = permutation.two_groups(
        x, y, statistic=permutation.superiority_statistic, null=0.5, alternative="greater", rng=generator()
    )
    assert_allclose(result.pvalue, 2 * above.pvalue)
    # Measured from 0 every share of pairs is far off, and none is special.
    assert permutation.two_groups(x, y, statistic=permutation.superiority_statistic, rng=generator()).pvalue < 0.05
    low = permutation.two_groups(y, x, statistic=permutation.superiority_statistic, null=0.5, rng=generator())
    assert_allclose([low.estimate, low.pvalue], [1 - result.estimate, result.pvalue])


@pytest.mark.parametrize("values", [np.arange(1.0, 6.0), np.linspace(0, 1, 400)], ids=["few points", "many"])
def test_random_permutations_give_the_p_of_the_t_test(values):
    rng = generator(2)
    x, y = rng.choice(values, 300), rng.choice(values, 200) + 0.0
    y[:12] = values[0]
    result = permutation.two_groups(x, y, rng=rng)
    assert not result.detail["is_exact"] and result.detail["n_permutations"] == 9999
    assert abs(result.pvalue - stats.ttest_ind(x, y).pvalue) < 5 * result.detail["monte_carlo_error"] + 0.002
    extreme = result.detail["n_extreme"]
    assert result.pvalue == (1 + extreme) / 10_000


def test_a_monte_carlo_p_is_never_zero_and_an_exact_one_has_no_plus_one():
    x, y = np.full(60, 5.0), np.full(60, 1.0)
    x[0], y[0] = 4.0, 2.0
    assert permutation.two_groups(x, y, resamples=99, rng=generator()).pvalue == 0.01
    assert permutation.two_groups([3, 4, 5], [0, 1, 2], rng=generator()).pvalue == 2 / 20


def test_the_generic_path_and_the_quick_one_agree():
    rng = generator(3)
    x, y = rng.integers(1, 6, 40), rng.integers(1, 6, 30)
    quick = permutation.two_groups(x, y, rng=generator(1))
    slow = permutation.two_groups(x, y, statistic=permutation.mean_difference, rng=generator(1))
    assert quick.estimate == slow.estimate
    assert abs(quick.pvalue - slow.pvalue) < 5 * quick.detail["monte_carlo_error"]
    paired = permutation.paired_systems(x[:30], y, rng=generator(1))
    again = permutation.paired_systems(x[:30], y, statistic=permutation.mean_difference, rng=generator(1))
    assert_allclose([paired.estimate, paired.pvalue], [again.estimate, again.pvalue])


def test_swapping_two_systems_is_flipping_signs():
    rng = generator(4)
    x, y = rng.integers(1, 6, 11), rng.integers(1, 6, 11)
    ours = permutation.paired_systems(x, y, rng=rng)
    assert_allclose(ours.pvalue, basic.sign_flip(x - y, rng=rng).pvalue, atol=1e-12)
    other = permutation.paired_systems(y, x, rng=rng)
    assert_allclose([other.estimate, other.pvalue], [-ours.estimate, ours.pvalue], atol=1e-12)


def test_rows_of_one_annotator_are_swapped_together():
    rng = generator(5)
    who = np.repeat(np.arange(8), 5)
    lean = rng.normal(0, 1, 8)[who]
    x = 3 + lean + rng.normal(0, 0.1, 40)
    y = np.full(40, 3.0)
    clustered = permutation.paired_systems(x, y, who, rng=generator())
    naive = permutation.paired_systems(x, y, rng=generator())
    assert clustered.n == 8 and clustered.n_rows == 40 and naive.n == 40
    assert clustered.detail["n_permutations"] == 2**8
    # By annotator: the sign flips of the eight sums.
    sums = np.bincount(who, x - y)
    assert_allclose(clustered.pvalue, basic.sign_flip(sums, rng=rng).pvalue, atol=1e-12)
    assert naive.pvalue != clustered.pvalue


def test_conditions_change_with_the_whole_annotator():
    rng = generator(6)
    who = np.repeat(np.arange(9), [1, 2, 3, 4, 5, 1, 2, 3, 4])
    is_x = who < 4
    values = rng.normal(size=len(who)) + rng.normal(size=9)[who]
    ours = permutation.clustered_groups(values, is_x, who, rng=rng)
    everything = []
    for code in range(2**9):
        member = np.array([(code >> k) & 1 for k in range(9)], dtype=bool)
        if member.sum() == 4:
            everything.append(values[member[who]].mean() - values[~member[who]].mean())
    wanted = np.mean(np.abs(everything) >= abs(ours.estimate) - 1e-12)
    assert_allclose(ours.pvalue, wanted, atol=1e-12)
    assert ours.detail["n_permutations"] == math.comb(9, 4)
    generic = permutation.clustered_groups(
        values, is_x, who, statistic=lambda x, y: np.nanmean(x, axis=1) - np.nanmean(y, axis=1), rng=rng
    )
    assert_allclose([generic.estimate, generic.pvalue], [ours.estimate, ours.pvalue], atol=1e-12)
    assert 0 < permutation.clustered_groups(values, is_x, who, statistic=nan_medians, rng=rng).pvalue <= 1


def test_a_missing_answer_drops_its_row_and_not_its_annotator():
    values, is_x, who = [1, None, 0, 1, 0, 0, 0, None], [True] * 4 + [False] * 4, list("aabbccdd")
    found = permutation.clustered_groups(values, is_x, who, rng=generator())
    rest = [0, 2, 3, 4, 5, 6]
    alone = permutation.clustered_groups(
        [values[n] for n in rest], [is_x[n] for n in rest], [who[n] for n in rest], rng=generator()
    )
    assert (found.pvalue, found.estimate, found.n) == (alone.pvalue, alone.estimate, 4)
    assert found.detail["n_missing"] == 2
    # Somebody who answered nothing was in no condition.
    gone = permutation.clustered_groups([*values[:6], None, None], is_x, who, rng=generator())
    assert (gone.status, gone.n) == ("n_lt_2", 3)


def test_one_answer_each_makes_clusters_of_independent_groups():
    x, y = [3.0, 5, 4, 5, 2], [2.0, 4, 1, 3, 3, 2]
    clustered = permutation.clustered_groups(x + y, np.arange(11) < 5, np.arange(11), rng=generator())
    assert_allclose(clustered.pvalue, GOLDEN["two_groups"]["two-sided"], atol=1e-12)
    # More annotators than can be enumerated: the shares of arms stay.
    many = permutation.clustered_groups(
        generator().normal(size=90),
        np.repeat([True, False], 45),
        np.repeat(np.arange(30), 3),
        resamples=499,
        rng=generator(1),
    )
    assert not many.detail["is_exact"] and many.detail["n_x"] == 15


@pytest.mark.parametrize(
    "call,status",
    [
        (lambda rng: permutation.two_groups([], [1, 2], rng=rng), "no_data"),
        (lambda rng: permutation.two_groups([None], [1, 2], rng=rng), "no_data"),
        (lambda rng: permutation.two_groups([1], [1, 2, 3], rng=rng), "n_lt_2"),
        (lambda rng: permutation.two_groups([2, 2], [2, 2, 2], rng=rng), "zero_variance"),
        (lambda rng: permutation.paired_systems([1, None], [None, 2], rng=rng), "no_data"),
        (lambda rng: permutation.paired_systems([1, 4], [2, 5], ["a", "a"], rng=rng), "n_lt_2"),
        (lambda rng: permutation.paired_systems([1, 4], [1, 4], rng=rng), "zero_variance"),
        (lambda rng: permutation.clustered_groups([1, 2], [True, True], [1, 2], rng=rng), "no_data"),
        (lambda rng: permutation.clustered_groups([1, 2, 3], [True, False, False], [1, 2, 3], rng=rng), "n_lt_2"),
        (
            lambda rng: permutation.clustered_groups([1] * 4, [True, True, False, False], [1, 2, 3, 4], rng=rng),
            "zero_variance",
        ),
        (
            lambda rng: permutation.two_groups(
                [1, 2, 3], [4, 5, 6], statistic=lambda x, y: np.where(x[:, 0] == 1, 1.0, np.nan), rng=rng
            ),
            "failed",
        ),
    ],
)
def test_what_cannot_be_tested_says_so(call, status):
    result = call(generator())
    assert result.status == status and result.test is None and result.reason
    json.dumps(result.as_dict(), allow_nan=False)


@pytest.mark.parametrize(
    "call,named",
    [
        (lambda rng: permutation.two_groups([1, 2], [1, 2], alternative="more", rng=rng), "alternative: 'more'"),
        (lambda rng: permutation.two_groups([1, 2], [1, 2], resamples=0, rng=rng), "resamples: 0"),
        (
            lambda rng: permutation.two_groups([1, 2], [3, 2], statistic=lambda x, y: 1.0, rng=rng),
            "statistic: returned",
        ),
        (
            lambda rng: permutation.two_groups([1, 2], [3, 2], statistic=lambda x, y: x[:, 0] * np.nan, rng=rng),
            "undefined",
        ),
        (lambda rng: permutation.paired_systems([1, 2], [1], rng=rng), "y: 1 values"),
        (lambda rng: permutation.clustered_groups([1, 2], [True, False], ["a", "a"], rng=rng), "'a' is in both"),
        (lambda rng: permutation.clustered_groups([1, 2], [1, 0], ["a", "b"], rng=rng), "is_x: expected 2 booleans"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call(generator())


def test_the_same_seed_gives_the_same_p():
    x, y = generator(7).normal(size=40), generator(8).normal(size=40)
    first, second = (permutation.two_groups(x, y, rng=generator(9)) for _ in range(2))
    assert first == second


@pytest.mark.slow
def test_the_level_is_kept_although_annotators_differ():
    """Under a null with annotators of their own lean, by annotator .05 of tests reject, row by row far more."""
    rng, runs = generator(10), 2000
    who = np.repeat(np.arange(16), 6)
    by_annotator, by_row = [], []
    for _ in range(runs):
        values = rng.normal(0, 1, 16)[who] + rng.normal(0, 1, len(who))
        settings = {"resamples": 199, "rng": rng}
        by_annotator.append(permutation.clustered_groups(values, who < 8, who, **settings).pvalue)
        by_row.append(permutation.two_groups(values[who < 8], values[who >= 8], **settings).pvalue)
    assert 0.03 <= np.mean(np.array(by_annotator) <= 0.05) <= 0.07
    assert np.mean(np.array(by_row) <= 0.05) > 0.15
