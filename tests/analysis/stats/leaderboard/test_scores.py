"""The score of a system and its interval keep their definitions, laws and coverage."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import board_scores, cluster_variances, clusters
from tests.analysis.stats.draws import rng
from tests.analysis.stats.leaderboard.labels import GOLDEN, answers, two_systems, unilabels


def score_coverage(runs, seed, truth=60.0, **design):
    draw = rng(seed)
    hits = dict.fromkeys(("paper", "recommended"), 0)
    for _ in range(runs):
        data = unilabels(draw, **design)
        for mode in hits:
            interval = board_scores.system_score_in_points(*data, mode=mode, rng=draw, resamples=199).interval
            hits[mode] += interval.low <= truth <= interval.high
    return {mode: n / runs for mode, n in hits.items()}


# --- definitions


def test_the_worst_case_agrees_with_the_paper():
    for case in GOLDEN["bhatia_davis"]:
        assert_allclose(
            board_scores.worst_case_se_in_points(100 * case["mu"], case["n"]), 100 * case["se_max"], rtol=1e-12
        )
    # Section 6: less than 1.77 % with 800, less than 2.89 % with 300 instances.
    assert board_scores.worst_case_se_in_points(50, 800) < 1.77 and board_scores.worst_case_se_in_points(50, 300) < 2.89
    assert board_scores.worst_case_se_in_points(0, 10) == board_scores.worst_case_se_in_points(100, 10) == 0


def test_the_worst_case_bounds_independent_labels_only():
    case = GOLDEN["design_effect"]
    factor = math.sqrt(board_scores.design_effect(case["labels"], case["icc"]))
    assert_allclose(factor, case["se_factor"], rtol=1e-12)
    # Forty annotators with 20 labels each and an ICC of about .3: the spread of the score over studies.
    draw = rng(1)
    scores, iccs = [], []
    for _ in range(400):
        share = draw.beta(0.5 / 0.43, 0.5 / 0.43, 40)
        labels = (draw.random(800) < np.repeat(share, 20)).astype(float)
        scores.append(100 * labels.mean())
        iccs.append(cluster_variances.variance_components(labels, np.repeat(np.arange(40), 20)).icc)
    bound = board_scores.worst_case_se_in_points(50, 800)
    deff = board_scores.design_effect(20, float(np.mean(iccs)))
    assert np.std(scores) > 2 * bound
    assert_allclose(np.std(scores), board_scores.worst_case_se_in_points(50, 800, design_effect=deff), rtol=0.1)


def test_the_papers_interval_is_the_percentile_bootstrap_of_answers():
    values = rng(2).choice([0, 0.25, 0.5, 0.75, 1], 300, p=[0.05, 0.1, 0.15, 0.3, 0.4])
    found = board_scores.system_score_in_points(values, np.arange(300), np.arange(300), mode="paper", rng=rng())
    wanted = stats.bootstrap((100 * values,), np.mean, method="percentile", rng=rng(1)).confidence_interval
    assert_allclose([found.interval.low, found.interval.high], [wanted.low, wanted.high], atol=0.15)
    assert_allclose(found.estimate, 100 * values.mean())
    assert_allclose(found.detail["plus"], found.interval.high - found.estimate)
    assert_allclose(found.detail["minus"], found.estimate - found.interval.low)
    # One answer each: nothing is ignored.
    assert (found.unit, found.n, found.warnings) == ("answer", 300, ())
    shared = board_scores.system_score_in_points(values, np.arange(300), np.arange(300) % 30, mode="paper", rng=rng())
    assert [(warning.code, warning.severity) for warning in shared.warnings] == [("annotators_ignored", "block")]


def test_with_one_label_an_item_the_score_is_the_clustered_mean():
    values, items, who = unilabels(rng(3), n_items=200, is_heavy=False)
    found = board_scores.system_score_in_points(values, items, who, rng=rng(), resamples=199, items_sampled=False)
    wanted = clusters.clustered_mean(100 * values, who, bounds=(0, 100))
    assert_allclose(found.estimate, wanted.estimate)
    assert_allclose([found.detail["se"], found.detail["df"]], [wanted.detail["se"], wanted.detail["df"]])
    assert_allclose([found.interval.low, found.interval.high], [wanted.interval.low, wanted.interval.high])
    assert (found.n, found.n_rows, found.unit) == (40, 200, "annotator")
    # The item term is then the plain variance of a mean, which counts only where annotators do not differ.
    beyond = board_scores.system_score_in_points(values, items, who, rng=rng(), resamples=199)
    assert_allclose(beyond.detail["variance_items"], np.var(100 * values, ddof=1) / 200)
    assert_allclose(beyond.detail["variance_two_way"], beyond.detail["variance_annotators"])


def test_items_weigh_equally_however_many_labels_each_got():
    # The first item got four labels, the second one.
    found = board_scores.system_score_in_points(
        [1, 1, 1, 1, 0], [1, 1, 1, 1, 2], list("abcde"), rng=rng(), resamples=99
    )
    assert (found.estimate, found.n_rows, found.detail["n_items"]) == (50.0, 5, 2)
    paper = board_scores.system_score_in_points(
        [1, 1, 1, 1, 0], [1, 1, 1, 1, 2], list("abcde"), mode="paper", rng=rng()
    )
    assert paper.estimate == 80.0


def test_the_variance_of_a_score_is_that_of_brute_force():
    draw = rng(4)
    items, who = draw.integers(0, 12, 60), draw.integers(0, 8, 60)
    values = answers(draw, draw.random(60))
    weights = np.array([1 / (len(set(items)) * np.sum(items == item)) for item in items])
    mean = weights @ values
    without = [(weights[who != a] @ values[who != a]) / weights[who != a].sum() for a in np.unique(who)]
    by_annotator = 7 / 8 * np.sum((np.array(without) - mean) ** 2)
    without = [(weights[items != i] @ values[items != i]) / weights[items != i].sum() for i in np.unique(items)]
    by_item = (len(without) - 1) / len(without) * np.sum((np.array(without) - mean) ** 2)
    influence = weights * (values - mean)
    pairs = list(zip(who.tolist(), items.tolist(), strict=True))
    sums = [influence[[pair == other for other in pairs]].sum() for pair in sorted(set(pairs))]
    by_cell = len(sums) / (len(sums) - 1) * np.sum(np.square(sums))
    found = board_scores.system_score_in_points(values, items, who, rng=rng(), resamples=99)
    assert_allclose(found.detail["variance_annotators"], 1e4 * by_annotator)
    assert_allclose(found.detail["variance_items"], 1e4 * by_item)
    assert_allclose(found.detail["variance_two_way"], 1e4 * (by_annotator + by_item - by_cell))
    wanted = max(by_annotator + by_item - by_cell, by_annotator, by_item)
    assert_allclose(found.detail["se"], 100 * math.sqrt(wanted))


def test_order_and_names_do_not_matter():
    draw = rng(8)
    values, systems, items, who = two_systems(draw, "heavy")
    named = np.array([f"w{97 * a % 41}" for a in who])
    own = systems == "x"
    first = board_scores.system_score_in_points(values[own], items[own], who[own], rng=rng(), resamples=99)
    again = board_scores.system_score_in_points(
        values[own][::-1], items[own][::-1], named[own][::-1], rng=rng(), resamples=99
    )
    assert_allclose([first.estimate, first.detail["se"]], [again.estimate, again.detail["se"]])


def test_every_answer_twice_leaves_the_clustered_interval_and_narrows_the_papers():
    values, items, who = unilabels(rng(9), n_items=300)
    ours, twice = (
        board_scores.system_score_in_points(
            np.tile(values, n), np.tile(items, n), np.tile(who, n), rng=rng(), resamples=199
        )
        for n in (1, 2)
    )
    assert_allclose([ours.estimate, ours.detail["se"]], [twice.estimate, twice.detail["se"]])
    paper, more = (
        board_scores.system_score_in_points(
            np.tile(values, n), np.tile(items, n), np.tile(who, n), mode="paper", rng=rng()
        )
        for n in (1, 2)
    )
    ratio = (more.interval.high - more.interval.low) / (paper.interval.high - paper.interval.low)
    assert_allclose(ratio, 1 / math.sqrt(2), atol=0.03)


def test_turning_the_scale_round_turns_the_score_round():
    values, items, who = unilabels(rng(10), n_items=200, is_heavy=False)
    up, down = (
        board_scores.system_score_in_points(v, items, who, rng=rng(), resamples=99) for v in (values, 1 - values)
    )
    assert_allclose(up.estimate + down.estimate, 100)
    assert_allclose([up.interval.low, up.interval.high], [100 - down.interval.high, 100 - down.interval.low])


# --- coverage


@pytest.mark.slow
def test_resampling_annotations_does_not_cover_and_clustering_by_annotators_does():
    """The paper's interval ignores who answered: .44 in the documented simulation, less with these workers."""
    found = score_coverage(60, seed=11)
    assert found["paper"] < 0.6
    assert found["recommended"] > 0.86
    alone = score_coverage(30, seed=12, n_annotators=1000, n_items=100, is_heavy=False)
    assert alone["paper"] > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("is_heavy", [False, True])
def test_the_interval_of_a_score_covers(is_heavy):
    found = score_coverage(1000, seed=13, is_heavy=is_heavy)
    assert found["recommended"] >= 0.93
    assert found["paper"] < (0.6 if is_heavy else 0.75)


# --- edge cases of scores


def test_score_edge_cases_are_statuses():
    def score(*data, mode="recommended"):
        return board_scores.system_score_in_points(*data, rng=rng(), resamples=99, mode=mode)

    for mode in ("recommended", "paper"):
        assert score([], [], [], mode=mode).status == "no_data"
        assert score([None], [1], ["a"], mode=mode).status == "no_data"
        one = score([0.75], [1], ["a"], mode=mode)
        assert (one.status, one.estimate, one.interval) == ("n_lt_2", 75.0, None)
        constant = score([1.0] * 8, range(8), range(8), mode=mode)
        # Bounded answers still have an honest interval, but not in the paper's mode.
        wanted = "zero_variance" if mode == "paper" else "ok"
        assert (constant.status, constant.estimate, constant.test) == (wanted, 100.0, None)
    honest = score([1.0] * 8, range(8), range(8)).interval
    assert honest.method == "betting" and honest.low < 90 and honest.high == 100
    alone = score([1, 0, 1], [1, 2, 3], ["a"] * 3)
    assert (alone.status, alone.n, round(alone.estimate, 1)) == ("n_lt_2", 1, 66.7)


def test_annotators_whose_means_coincide_have_no_clustered_variance():
    # Zero is the standard error here, not the spread of the answers.
    found = board_scores.system_score_in_points(
        [0, 1] * 8, range(16), np.repeat(np.arange(8), 2), rng=rng(), resamples=99, items_sampled=False
    )
    assert (found.status, found.estimate) == ("ok", 50.0)
    assert found.interval.method == "betting" and found.detail["se"] < 1e-9


def test_scores_at_the_ceiling_vary_more_under_lower_means():
    values = np.r_[np.ones(46), 0.5, 0.75, 0.75, 0.75]
    found = board_scores.system_score_in_points(values, np.arange(50), np.arange(50), rng=rng(), resamples=199)
    assert found.interval.method == "two_way_cv3_score" and not found.has_warning("betting_instead_of_t")
    assert found.interval.low < found.estimate - 2 * found.detail["se"]
    assert found.interval.high - found.estimate < found.estimate - found.interval.low
    always = board_scores.system_score_in_points(np.ones(50), np.arange(50), np.arange(50), rng=rng(), resamples=199)
    assert always.interval.method == "betting" and always.has_warning("betting_instead_of_t")


def test_at_the_ceiling_the_interval_is_of_the_score_that_is_printed():
    # One annotator labelled three hundred items, fifteen labelled one, and these failed.
    values, who = np.r_[np.ones(300), np.zeros(15)], np.r_[np.zeros(300), np.arange(1, 16)]
    found = board_scores.system_score_in_points(values, np.arange(315), who, rng=rng(), resamples=99)
    assert found.has_warning("betting_instead_of_t") and found.interval.method == "betting"
    assert found.interval.low <= found.estimate <= found.interval.high
    assert found.detail["plus"] >= 0 <= found.detail["minus"]


def test_few_and_dominant_annotators_are_warned_of():
    draw = rng(26)
    values, items = answers(draw, np.full(60, 0.6)), np.arange(60)
    few = board_scores.system_score_in_points(values, items, items % 5, rng=rng(), resamples=99)
    assert [(w.code, w.severity) for w in few.warnings] == [
        ("few_clusters", "block"),
        ("betting_instead_of_t", "warn"),
    ]
    dominant = board_scores.system_score_in_points(values, items, np.minimum(items, 30), rng=rng(), resamples=99)
    assert dominant.has_warning("dominant_annotator") and dominant.has_warning("few_clusters")


def test_a_design_effect_is_shown_with_the_worst_case():
    values, items, who = unilabels(rng(27), n_items=400)
    detail = board_scores.system_score_in_points(values, items, who, rng=rng(), resamples=99).detail
    parts = cluster_variances.variance_components(values, who)
    assert_allclose(detail["annotator_icc"], parts.icc)
    assert_allclose(
        detail["worst_case_se_clustered"], detail["worst_case_se"] * math.sqrt(parts.design_effect), rtol=1e-12
    )
