"""Two studies beside each other: against a hand formula, a brute-force jackknife, and truths that are known."""

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from analysis.stats import clusters
from analysis.stats.between_studies import compare_studies
from tests.analysis.stats.choice.labels import real


class StudyAnswers(NamedTuple):
    values: Any
    annotators: list
    prompts: list
    weights: Any = None


def compared(studies, **options):
    """The studies, stacked."""
    rows = {
        name: np.concatenate([getattr(one, name) for one in studies]) for name in ("values", "annotators", "prompts")
    }
    weights = None if studies[0].weights is None else np.concatenate([one.weights for one in studies])
    numbers = np.repeat(np.arange(len(studies)), [len(one.values) for one in studies])
    return compare_studies(rows["values"], numbers, rows["annotators"], rows["prompts"], weights=weights, **options)


def world(rng, people, prompts, each, shared, *, quality=0.0, n_studies=2, times=1):
    """Studies in which the same is true; they share their prompts, their people or nothing. Later ones have ``times`` as many people."""
    of_people, of_prompts = rng.normal(0, 0.5, people), rng.normal(0, 0.7, prompts)
    found = []
    for study in range(n_studies):
        n = people * (times if study else 1)
        leniences = of_people if shared == "people" else rng.normal(0, 0.5, n)
        qualities = of_prompts if shared == "prompts" else rng.normal(0, 0.7, prompts)
        who = np.repeat(np.arange(n), each)
        what = np.concatenate([rng.permutation(prompts)[:each] for _ in range(n)])
        values = quality + leniences[who] + qualities[what] + rng.normal(size=n * each) > 0
        who, what = who + (shared != "people") * 1000 * study, what + (shared != "prompts") * 1000 * study
        found.append(StudyAnswers(values.astype(float), who.tolist(), what.tolist()))
    return found


def test_studies_that_share_nothing_have_the_sum_of_both_variances():
    first, second = world(np.random.default_rng(1), 12, 9, 4, "nothing", times=3)
    found = compared([first, second], population="people").differences[0]
    own = [clusters.clustered_mean(one.values, one.annotators) for one in (first, second)]
    assert found.estimate == pytest.approx(own[0].estimate - own[1].estimate)
    # CV3 has (G - 1) / G before its sum: G counts the clusters of both studies here, and those of one study there.
    parts = [one.detail["se"] ** 2 * one.n / (one.n - 1) for one in own]
    assert found.detail["se"] ** 2 == pytest.approx(47 / 48 * sum(parts))
    assert found.test.name == "clustered_t" and found.settings["population"] == "people"


def test_the_same_people_are_compared_as_pairs():
    rng = np.random.default_rng(2)
    people, prompts = np.repeat(np.arange(15), 6).tolist(), np.tile(np.arange(6), 15).tolist()
    values = [rng.normal(size=90) + np.repeat(rng.normal(size=15), 6) for _ in range(2)]
    found = compared([StudyAnswers(one, people, prompts) for one in values], population="people").differences[0]
    by_person = [one.reshape(15, 6).mean(axis=1) for one in values]
    paired = stats.ttest_rel(*by_person)
    assert found.test.pvalue == pytest.approx(paired.pvalue) and found.detail["df"] == pytest.approx(14)
    assert (found.interval.low, found.interval.high) == pytest.approx(tuple(paired.confidence_interval(0.95)))
    assert found.detail["n_shared_people"] == 15 and found.detail["n_shared_prompts"] == 6


@pytest.mark.parametrize("shared", ["prompts", "people", "nothing"])
def test_the_variance_is_that_of_leaving_out_each_cluster(shared):
    first, second = world(np.random.default_rng(3), 9, 8, 5, shared, times=1 if shared == "people" else 2)
    weights = [1 / (1 + np.arange(len(one.values)) % 3) for one in (first, second)]
    studies = [
        StudyAnswers(one.values, one.annotators, one.prompts, w)
        for one, w in zip((first, second), weights, strict=True)
    ]
    found = compared(studies).differences[0]

    def left_out(labels_of):
        moves: Counter = Counter()
        for sign, study in zip((1, -1), studies, strict=True):
            labels = np.array(labels_of(study), dtype=object)
            own = sorted(set(labels))
            mean = np.average(study.values, weights=study.weights)
            for label in own:
                kept = labels != label
                without = np.average(study.values[kept], weights=study.weights[kept])
                moves[label] += sign * (mean - without)
        return (len(moves) - 1) / len(moves) * sum(move**2 for move in moves.values())

    def pairs():
        moves: Counter = Counter()
        for sign, study in zip((1, -1), studies, strict=True):
            mean = np.average(study.values, weights=study.weights)
            for who, what, value, weight in zip(
                study.annotators, study.prompts, study.values, study.weights, strict=True
            ):
                moves[who, what] += sign * weight * (value - mean) / study.weights.sum()
        return sum(move**2 for move in moves.values())

    people, prompts = left_out(lambda study: study.annotators), left_out(lambda study: study.prompts)
    assert found.detail["variance_annotators"] == pytest.approx(people)
    assert found.detail["variance_items"] == pytest.approx(prompts)
    assert found.detail["variance_two_way"] == pytest.approx(people + prompts - pairs())


def test_shared_prompts_make_a_difference_more_precise():
    together = world(np.random.default_rng(4), 60, 12, 6, "prompts")
    apart = [
        together[0],
        StudyAnswers(together[1].values, together[1].annotators, [f"other {one}" for one in together[1].prompts]),
    ]
    near, far = (compared(one).differences[0] for one in (together, apart))
    assert near.estimate == far.estimate and near.detail["se"] < 0.8 * far.detail["se"]
    assert (near.detail["n_shared_prompts"], far.detail["n_shared_prompts"]) == (12, 0)


def test_agreement_is_the_correlation_of_the_means_of_shared_prompts():
    studies = world(np.random.default_rng(5), 40, 20, 10, "prompts")
    means = [
        [
            np.mean([value for value, what in zip(one.values, one.prompts, strict=True) if what == prompt])
            for prompt in range(20)
        ]
        for one in studies
    ]
    expected = stats.pearsonr(*means)
    found = compared(studies).agreements[0]
    assert found.estimate == pytest.approx(expected.statistic) and found.n == 20
    assert (found.interval.low, found.interval.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    none = compared(world(np.random.default_rng(5), 12, 8, 4, "people")).agreements[0]
    assert none.estimate is None and none.reason == "no shared prompts; a correlation needs 4"


def test_three_studies_are_tested_jointly():
    rng = np.random.default_rng(6)
    same = compared(world(rng, 30, 10, 6, "prompts", n_studies=3))
    assert len(same.means) == len(same.differences) == len(same.agreements) == 3
    assert same.equality.test.name == "clustered_f" and same.equality.detail["df_between"] == 2
    assert same.equality.test.pvalue > 0.05
    two = world(rng, 30, 10, 6, "prompts")
    other = StudyAnswers(1 - (1 - two[0].values) * (rng.random(180) < 0.3), two[0].annotators, two[0].prompts)
    assert compared([*two, other]).equality.test.pvalue < 0.01


def test_the_joint_test_of_people_only_is_the_analysis_of_variance():
    # One answer each and groups of one size: F of the one-way analysis of variance but for unequal variances and Hotelling's correction.
    rng = np.random.default_rng(7)
    values = [rng.normal(0.2 * study, 1, 400) for study in range(3)]
    studies = [StudyAnswers(one, [1000 * study + n for n in range(400)], [0] * 400) for study, one in enumerate(values)]
    found = compared(studies, population="people").equality.test
    assert found.statistic == pytest.approx(stats.f_oneway(*values).statistic, rel=0.03)


def test_what_cannot_be_tested_says_why():
    first, second = world(np.random.default_rng(8), 5, 8, 6, "prompts")
    few = compared([first, second], bounds=(0, 1))
    assert (
        few.equality.test is None and few.differences[0].has_warning("few_clusters") and few.differences[0].is_blocked
    )
    assert few.differences[0].estimate is not None and few.differences[0].interval is not None
    rng = np.random.default_rng(8)
    joint = compared([*world(rng, 5, 8, 6, "prompts"), *world(rng, 9, 8, 6, "people")]).equality
    assert joint.test is None and joint.reason == "a study has fewer than six people"
    alone = StudyAnswers([1.0, 0.0], [99, 99], [0, 1])
    assert "alone gave the answers" in compared([alone, first]).differences[0].reason
    with pytest.raises(ValueError, match="at least two with answers"):
        compared([first])


@pytest.mark.shared
def test_real_labels_of_two_rounds_against_a_bootstrap_of_people_and_pairs(shared):
    batches = [real(shared, name) for name in ("v1_vs_cga", "v2_vs_cga_r1")]
    numbers = np.repeat([0, 1], [len(batch[0]) for batch in batches])
    choices, pairs, workers = (np.concatenate([batch[column] for batch in batches]) for column in (0, 2, 3))
    found = compare_studies(1 - choices, numbers, workers, pairs, bounds=(0, 1)).differences[0]
    assert found.detail["n_shared_people"] == 19 and found.detail["n_shared_prompts"] == 0
    assert (found.interval.low, found.interval.high) == pytest.approx((-0.326, -0.230), abs=0.001)
    rng, codes = np.random.default_rng(1), [np.unique(labels, return_inverse=True)[1] for labels in (workers, pairs)]
    drawn = []
    for _ in range(500):
        times = [np.bincount(rng.integers(0, n, n), minlength=n)[own] for own in codes for n in [own.max() + 1]]
        weights = times[0] * times[1]
        means = [np.average(1 - choices[numbers == study], weights=weights[numbers == study]) for study in (0, 1)]
        drawn.append(means[0] - means[1])
    # Drawing both ways again counts the noise of single labels more than once, so it is somewhat wider.
    assert found.estimate == pytest.approx(np.mean(drawn), abs=0.005)
    assert 1 <= np.std(drawn) / found.detail["se"] <= 1.15


# People, prompts, prompts of each person, quality, and how many times as many people the second study has.
SIZES = {
    "small": (8, 6, 6, 0.0, 1),
    "usual": (20, 20, 8, 0.0, 1),
    "large": (60, 40, 10, 0.5, 1),
    "unequal": (10, 12, 6, 0.0, 6),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "shared"),
    [
        (size, shared)
        for size in SIZES
        for shared in ("prompts", "people", "nothing")
        if (size, shared) != ("unequal", "people")
    ],
)
def test_equal_studies_differ_in_one_of_twenty(size, shared):
    people, prompts, each, quality, times = SIZES[size]
    rng, runs = np.random.default_rng(9), 2000
    found = [
        compared(world(rng, people, prompts, each, shared, quality=quality, times=times), bounds=(0, 1)).differences[0]
        for _ in range(runs)
    ]
    margin = 2 * math.sqrt(0.06 * 0.94 / runs)
    assert np.mean([one.test is not None and one.test.pvalue < 0.05 for one in found]) <= 0.06 + margin
    intervals = [one.interval for one in found if one.interval]
    assert np.mean([one.low <= 0 <= one.high for one in intervals]) >= 0.94 - margin


def test_the_size_of_a_difference_is_that_of_clark_et_al():
    """Section 2.4: accuracy about stories .62 and .48, d = .57, with 130 people of five texts each. Their scores are ours."""

    def scores(counts):
        right = np.repeat(np.arange(6), counts)
        people = np.repeat(np.arange(len(right)), 5) + 1000 * counts[0]
        return StudyAnswers((np.tile(np.arange(5), len(right)) < np.repeat(right, 5)).astype(float), people, people * 0)

    first, second = scores([3, 11, 26, 38, 35, 17]), scores([8, 25, 37, 35, 19, 6])
    found = compared([first, second], population="people")
    assert [round(mean.estimate, 2) for mean in found.means] == [0.62, 0.48] and found.differences[0].n == 260
    assert found.differences[0].effect.value == pytest.approx(0.57, abs=0.01)
    shared = second._replace(annotators=first.annotators)
    assert compared([first, shared], population="people").differences[0].effect is None
