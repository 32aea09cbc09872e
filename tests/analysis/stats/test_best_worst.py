import json
import math
from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize
from scipy.special import expit
from statsmodels.discrete.conditional_models import ConditionalLogit

from analysis.stats import clusters, ranks
from analysis.stats.best_worst import _model, best_worst_logit, maxdiff_counts, maxdiff_rows
from analysis.stats.best_worst._answers import Sets
from analysis.stats.bradley_terry import fractional_bradley_terry
from analysis.stats.multiplicity import holm

STRENGTHS = (0.0, 0.3, 0.6, 0.9, 1.2)


def study(
    seed=0, n_people=24, n_sets=8, strengths=STRENGTHS, lean=0.4, size=4, n_prompts=0, prompt_lean=0.0, sizes=None
):
    """Sets of a study, what was chosen as best and as worst, by whom and for which prompt."""
    draw, k = np.random.default_rng(seed), len(strengths)
    people = np.repeat(np.arange(n_people), n_sets if sizes is None else sizes)
    prompts = draw.integers(0, n_prompts, len(people)) if n_prompts else None
    own = (np.asarray(strengths) + draw.normal(0, lean, (n_people, k)))[people]
    if prompts is not None:
        own = own + draw.normal(0, prompt_lean, (n_prompts, k))[prompts]
    sets = np.argsort(draw.random((len(people), k)), axis=1)[:, :size]
    rows, worths = np.arange(len(people)), np.take_along_axis(own, sets, axis=1)
    # The largest of values with Gumbel noise is chosen as by a logit.
    best = np.argmax(worths + draw.gumbel(size=worths.shape), axis=1)
    lows = draw.gumbel(size=worths.shape) - worths
    lows[rows, best] = -np.inf
    return sets, sets[rows, best], sets[rows, np.argmax(lows, axis=1)], people, prompts


def log_likelihood(strengths, sets, best, worst):
    """One answer after the other, from the probabilities as they are written in the papers."""
    total = 0.0
    for shown, first, last in zip(np.asarray(sets).tolist(), best, worst, strict=True):
        shown = [system for system in shown if system >= 0]
        total += strengths[first] - math.log(sum(math.exp(strengths[one]) for one in shown))
        rest = [one for one in shown if one != first]
        total -= strengths[last] + math.log(sum(math.exp(-strengths[one]) for one in rest))
    return total


def estimates(fit):
    return np.array([strength.estimate for strength in fit.strengths])


# Counts


def test_counts_are_those_by_hand():
    sets = [[0, 1, 2], [1, 2, 3], [3, 0, -1], [0, 1, 3]]
    found = maxdiff_counts(sets, [0, 2, 0, 1], [2, 3, 3, 0], ["a", "a", "b", "b"], n_systems=5)
    assert found.n_shown.tolist() == [3, 3, 2, 3, 0]
    assert found.n_best.tolist() == [2, 1, 1, 0, 0]
    assert found.n_worst.tolist() == [1, 0, 1, 2, 0]
    assert_allclose([one.estimate for one in found.scores[:4]], [1 / 3, 1 / 3, 0, -2 / 3])
    assert {key: found.scores[3].detail[key] for key in ("n_shown", "n_best", "n_worst", "system")} == {
        "n_shown": 3, "n_best": 0, "n_worst": 2, "system": 3,
    }  # fmt: skip
    assert (found.scores[4].status, found.scores[4].estimate) == ("no_data", None)
    assert found.scores[4].reason == "system 4 was never shown"
    assert all(one.mode == "paper" and one.test is None for one in found.scores)
    assert (found.status, found.n_clusters, found.n_rows) == ("ok", 2, 4)
    # System 2 was shown to one person only.
    assert (found.scores[2].status, found.scores[2].interval, found.scores[2].n) == ("n_lt_2", None, 1)


def test_scores_have_the_jackknife_over_people():
    sets, best, worst, people, _ = study(1)
    found = maxdiff_counts(sets, best, worst, people, n_systems=5)

    def score(system, kept):
        shown = (sets[kept] == system).any(axis=1).sum()
        return ((best[kept] == system).sum() - (worst[kept] == system).sum()) / shown

    for system, one in enumerate(found.scores):
        assert_allclose(one.estimate, score(system, people >= 0))
        without = np.array([score(system, people != person) for person in range(24)])
        assert_allclose(one.detail["se"], math.sqrt(23 / 24 * np.sum((without - one.estimate) ** 2)))
        assert -1 <= one.interval.low < one.estimate < one.interval.high <= 1


def test_scores_over_people_and_prompts_stand_beside_where_prompts_were_judged_more_than_once():
    sets, best, worst, people, prompts = study(2, n_prompts=10)
    found = maxdiff_counts(sets, best, worst, people, prompts, n_systems=5).scores[3]
    here = (sets == 3).any(axis=1)
    values = (best[here] == 3).astype(float) - (worst[here] == 3)
    wanted = clusters.two_way_mean(values, people[here], prompts[here], bounds=(-1, 1))
    beside = found.sensitivity[-1]
    assert beside.analysis == "best_worst.counts.two_way"
    assert_allclose(
        [beside.estimate, beside.detail["se"], beside.interval.low],
        [wanted.estimate, wanted.detail["se"], wanted.interval.low],
    )
    for other in (None, np.arange(len(best)), np.zeros(len(best))):
        alone = maxdiff_counts(sets, best, worst, people, other, n_systems=5).scores[3]
        assert [one.analysis for one in alone.sensitivity] == ["best_worst.counts.cluster_means"]
        assert alone.detail["se"] == found.detail["se"]


def test_a_system_that_always_was_the_best_has_an_interval_by_betting():
    found = maxdiff_counts([[0, 1, 2]] * 12, [0] * 12, [1, 2] * 6, np.arange(12), n_systems=3).scores[0]
    assert (found.status, found.estimate, found.interval.method) == ("zero_variance", 1.0, "betting")


def test_rows_give_ranks_and_add_up_to_zero_in_each_answer():
    sets, best, worst, people, _ = study(3, n_people=60)
    answers, systems, values = maxdiff_rows(sets, best, worst, n_systems=5)
    assert_allclose(np.bincount(answers, values), 0)
    found = ranks.rank_sets_of_rows(values, people[answers], systems, rng=np.random.default_rng(0), resamples=499)
    scores = [one.estimate for one in maxdiff_counts(sets, best, worst, people, n_systems=5).scores]
    assert found.systems == tuple(range(5))
    assert_allclose(found.scores, scores)


# Strengths


@pytest.mark.parametrize("size", [3, 4])
def test_strengths_and_likelihood_agree_with_statsmodels(size):
    sets, best, worst, people, _ = study(4, n_people=15, size=size)
    chosen, design, groups = [], [], []
    for row in range(len(best)):
        for stage, sign in enumerate((1, -1)):
            for system in sets[row]:
                if stage and system == best[row]:
                    continue
                chosen.append(int(system == (worst if stage else best)[row]))
                design.append(sign * np.eye(5)[system][1:])
                groups.append(2 * row + stage)
    reference = ConditionalLogit(np.array(chosen), np.array(design), groups=np.array(groups)).fit(
        method="newton", tol=1e-9, disp=False
    )
    fit = best_worst_logit(sets, best, worst, people, n_systems=5)
    found = estimates(fit)
    assert_allclose(found - found[0], np.r_[0, reference.params], atol=1e-5)
    assert_allclose(fit.log_likelihood, reference.llf, rtol=1e-8)
    assert_allclose(found.sum(), 0, atol=1e-12)
    # With every answer a cluster of its own, the sandwich estimates what the information gives.
    single = best_worst_logit(sets, best, worst, np.arange(len(best)), n_systems=5, method="cr1")
    for system in (1, 2, 3, 4):
        assert_allclose(single.difference(system, 0).detail["se"], reference.bse[system - 1], rtol=0.2)


def test_strengths_of_sets_of_varied_size_agree_with_a_numerical_search():
    sets, best, worst, people, _ = study(5, n_people=30, n_sets=4)
    # Of every third set only the best one and the worst one, and one other, were shown.
    for row in range(0, len(sets), 3):
        others = [one for one in sets[row] if one not in (best[row], worst[row])]
        sets[row] = [best[row], others[0], -1, worst[row]] if row % 2 else [worst[row], -1, -1, best[row]]
    fit = best_worst_logit(sets, best, worst, people, n_systems=5)

    def cost(free):
        return -log_likelihood(np.r_[free, -free.sum()], sets, best, worst)

    reference = optimize.minimize(cost, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    assert_allclose(estimates(fit)[:4], reference.x, atol=1e-5)
    assert_allclose(fit.log_likelihood, -reference.fun, rtol=1e-9)
    assert_allclose(log_likelihood(estimates(fit), sets, best, worst), fit.log_likelihood)
    gradient = optimize.approx_fprime(estimates(fit), lambda all_: log_likelihood(all_, sets, best, worst), 1e-6)
    assert_allclose(gradient, 0, atol=1e-3)


def test_sets_of_two_are_comparisons_of_pairs():
    draw = np.random.default_rng(6)
    people = np.repeat(np.arange(15), 10)
    sets = np.argsort(draw.random((150, 4)), axis=1)[:, :2]
    is_first = draw.random(150) < expit(0.3 * (sets[:, 1] - sets[:, 0]))
    best, worst = np.where(is_first, sets[:, 0], sets[:, 1]), np.where(is_first, sets[:, 1], sets[:, 0])
    fit = best_worst_logit(sets, best, worst, people, n_systems=4, method="cr1")
    other = fractional_bradley_terry(sets[:, 0], sets[:, 1], is_first, people, n_systems=4)
    assert_allclose(fit.probabilities, other.probabilities, atol=1e-8)
    for system in (1, 2, 3):
        one, wanted = fit.difference(system, 0), other.strengths[system]
        assert_allclose(
            [one.estimate, one.detail["se"], one.pvalue],
            [wanted.estimate, wanted.detail["se"], wanted.pvalue],
            rtol=1e-6,
        )
        assert one.interval.method == wanted.interval.method == "cr1_t"


def test_the_order_in_a_set_the_numbers_of_systems_and_the_order_of_rows_do_not_matter():
    sets, best, worst, people, prompts = study(7, n_prompts=9)
    fit = best_worst_logit(sets, best, worst, people, prompts, n_systems=5)
    draw, new = np.random.default_rng(7), np.array([3, 0, 4, 1, 2])
    rows = draw.permutation(len(best))
    mixed = np.apply_along_axis(draw.permutation, 1, new[sets])[rows]
    names = np.array([f"person {one}" for one in people], dtype=object)
    other = best_worst_logit(mixed, new[best][rows], new[worst][rows], names[rows], prompts[rows], n_systems=5)
    assert_allclose(estimates(other)[new], estimates(fit), atol=1e-9)
    assert_allclose(other.covariance[np.ix_(new, new)], fit.covariance, atol=1e-12)
    assert_allclose(other.omnibus.pvalue, fit.omnibus.pvalue, rtol=1e-6)
    assert_allclose(other.omnibus.sensitivity[0].pvalue, fit.omnibus.sensitivity[0].pvalue, rtol=1e-6)


def derivatives(fit, sets, best, worst, labels):
    """The derivatives of each cluster's log-likelihood by the first four strengths, and all second ones; by small steps."""
    free = estimates(fit)[:4]

    def score(rows, at):
        return optimize.approx_fprime(
            at, lambda one: log_likelihood(np.r_[one, -one.sum()], sets[rows], best[rows], worst[rows]), 1e-6
        )

    def second(rows):
        step = 1e-4 * np.eye(4)
        return np.array([(score(rows, free + one) - score(rows, free - one)) / 2e-4 for one in step])

    kept = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return np.array([score(rows, free) for rows in kept]), np.array([-second(rows) for rows in kept])


@pytest.mark.parametrize("method", ["cv3", "cr1"])
def test_covariances_over_people_are_the_jackknife_and_the_sandwich(method):
    sets, best, worst, people, _ = study(8, n_people=9, n_sets=6)
    fit = best_worst_logit(sets, best, worst, people, n_systems=5, method=method)
    scores, seconds = derivatives(fit, sets, best, worst, people)
    whole = seconds.sum(axis=0)
    if method == "cr1":
        bread = np.linalg.inv(whole)
        wanted = 9 / 8 * 53 / 50 * bread @ scores.T @ scores @ bread
    else:
        moves = np.array([np.linalg.solve(whole - own, score) for own, score in zip(seconds, scores, strict=True)])
        wanted = 8 / 9 * moves.T @ moves
    assert_allclose(fit.covariance[:4, :4], wanted, rtol=2e-3, atol=1e-5)
    assert_allclose(fit.covariance.sum(axis=0), 0, atol=1e-12)
    assert fit.df == pytest.approx(8)
    assert fit.strengths[0].detail["se"] == pytest.approx(math.sqrt(fit.covariance[0, 0]))


def test_one_step_is_near_to_the_fit_without_each_person():
    sets, best, worst, people, _ = study(9, n_people=30, n_sets=8)
    fit = best_worst_logit(sets, best, worst, people, n_systems=5)
    without = [
        estimates(best_worst_logit(sets[kept], best[kept], worst[kept], people[kept], n_systems=5))
        for kept in (people != person for person in range(30))
    ]
    moves = np.array(without) - estimates(fit)
    assert_allclose(fit.covariance, 29 / 30 * moves.T @ moves, rtol=0.03, atol=3e-4)


def test_degrees_of_freedom_are_those_of_equally_active_people():
    sizes = np.r_[np.full(10, 4), 40]
    sets, best, worst, people, _ = study(10, n_people=11, sizes=sizes)
    fit = best_worst_logit(sets, best, worst, people, n_systems=5)
    assert fit.df == pytest.approx(clusters.effective_clusters(sizes) - 1) and fit.df < 4
    assert best_worst_logit(sets, best, worst, people, n_systems=5, method="cr1").df == 10
    assert fit.strengths[0].warned("dominant_annotator") and fit.strengths[0].warned("few_clusters")


def test_over_people_and_prompts_the_largest_variance_rules():
    sets, best, worst, people, prompts = study(11, n_prompts=8, prompt_lean=0.8)
    alone = best_worst_logit(sets, best, worst, people, n_systems=5)
    fit = best_worst_logit(sets, best, worst, people, prompts, n_systems=5)
    pairs = np.unique(people * 8 + prompts, return_inverse=True)[1]
    over = [best_worst_logit(sets, best, worst, labels, n_systems=5).covariance for labels in (people, prompts, pairs)]
    contrast = np.array([0, -1, 0, 0, 1.0])
    parts = [contrast @ one @ contrast for one in over]
    wanted = max(parts[0], parts[1], parts[0] + parts[1] - parts[2])
    found = fit.difference(4, 1)
    (both,) = found.sensitivity
    assert (found.estimate, found.interval, found.pvalue) == (
        alone.difference(4, 1).estimate, alone.difference(4, 1).interval, alone.difference(4, 1).pvalue,
    )  # fmt: skip
    assert_allclose(both.detail["se"], math.sqrt(wanted))
    assert both.detail["se"] > found.detail["se"] and both.detail["df"] == 7 and both.n_clusters == 8
    assert (both.analysis, both.interval.method, both.test.name) == (
        "best_worst.logit.difference.two_way", "two_way_t", "two_way_t",
    )  # fmt: skip
    assert fit.omnibus.sensitivity[0].pvalue > fit.omnibus.pvalue == alone.omnibus.pvalue
    for other in (np.arange(len(best)), np.zeros(len(best))):
        assert best_worst_logit(sets, best, worst, people, other, n_systems=5).difference(4, 1).sensitivity == ()


def test_whichever_variance_is_the_largest_rules_a_contrast_and_the_least_f_the_joint_test():
    kinds = set()
    for seed, lean, prompt_lean in ((22, 0.4, 0.0), (23, 0.4, 0.3), (24, 0.4, 0.8), (30, 0.0, 0.0)):
        sets, best, worst, people, prompts = study(seed, n_people=12, lean=lean, n_prompts=12, prompt_lean=prompt_lean)
        fit = best_worst_logit(sets, best, worst, people, prompts, n_systems=5)
        labels = (people, prompts, np.unique(people * 12 + prompts, return_inverse=True)[1])
        over = [best_worst_logit(sets, best, worst, one, n_systems=5).covariance for one in labels]
        ways = [over[0], over[1], over[0] + over[1] - over[2]]
        for one in fit.pairs:
            contrast = np.eye(5)[one.detail["x"]] - np.eye(5)[one.detail["y"]]
            variances = [contrast @ way @ contrast for way in ways]
            kinds.add(int(np.argmax(variances)))
            assert_allclose(one.sensitivity[0].detail["se"], math.sqrt(max(variances)))
        to_first = np.c_[-np.ones(4), np.eye(4)]
        values, spreads = to_first @ estimates(fit), [to_first @ way @ to_first.T for way in ways]
        if np.linalg.eigvalsh(spreads[2])[0] < 0:
            spreads[2] = spreads[0] + spreads[1]
            kinds.add("indefinite")
        wanted = min(values @ np.linalg.solve(spread, values) / 4 for spread in spreads)
        assert fit.omnibus.sensitivity[0].test.statistic == pytest.approx(wanted)
        assert fit.omnibus.sensitivity[0].detail["df_within"] == 11
    assert kinds == {0, 1, 2, "indefinite"}


def test_pairs_are_all_differences_adjusted_by_holm():
    sets, best, worst, people, _ = study(12, n_people=60)
    fit = best_worst_logit(sets, best, worst, people, n_systems=5)
    wanted = [fit.difference(x, y) for x, y in combinations(range(5), 2)]
    assert [(one.detail["x"], one.detail["y"]) for one in fit.pairs] == list(combinations(range(5), 2))
    assert [one.pvalue for one in fit.pairs] == [one.pvalue for one in wanted]
    assert [one.test.pvalue_adjusted for one in fit.pairs] == holm([one.pvalue for one in wanted])
    assert {(one.test.adjust, one.test.family_size) for one in fit.pairs} == {("holm", 10)}
    assert fit.pairs[3].estimate == pytest.approx(fit.strengths[0].estimate - fit.strengths[4].estimate)
    assert all(one.test is None for one in fit.strengths)
    variance = fit.covariance[0, 0] + fit.covariance[4, 4] - 2 * fit.covariance[0, 4]
    assert fit.pairs[3].detail["se"] == pytest.approx(math.sqrt(variance))
    assert fit.pairs[3].estimate == pytest.approx(-fit.difference(4, 0).estimate)
    with pytest.raises(ValueError, match="x: 2 and 2 are not two of 5 systems"):
        fit.difference(2, 2)
    with pytest.raises(ValueError, match="x: 0 and 5 are not two of 5 systems"):
        fit.difference(0, 5)


def test_the_omnibus_test_is_hotellings():
    sets, best, worst, people, _ = study(13, n_people=15, strengths=(0, 0.1, 0.2, 0.3))
    fit = best_worst_logit(sets, best, worst, people, n_systems=4)
    # Any three differences say the same: here each system against the first one.
    contrasts = np.c_[-np.ones(3), np.eye(3)]
    values, spread = contrasts @ estimates(fit), contrasts @ fit.covariance @ contrasts.T
    statistic = float(values @ np.linalg.solve(spread, values)) / 3 * 12 / 14
    assert fit.omnibus.test.statistic == pytest.approx(statistic)
    assert (fit.omnibus.detail["df_between"], fit.omnibus.detail["df_within"]) == (3, pytest.approx(12))
    # Of two systems it is the square of their t.
    pair = study(14, n_people=12, strengths=(0, 0.5), size=2)
    two = best_worst_logit(*pair[:4], n_systems=2)
    assert two.omnibus.test.statistic == pytest.approx(two.pairs[0].test.statistic ** 2)
    assert two.omnibus.pvalue == pytest.approx(two.pairs[0].pvalue)


# Where there is no estimate


def test_the_estimate_exists_where_each_system_was_chosen_over_each_other_by_way_of_others():
    """A few answers about four systems: the status goes by the graph, the check by climbing within a narrow and a wide bound."""
    answers = [((0, 1, 2), first, last) for first, last in permutations(range(3), 2)]
    answers += [((0, 3), 0, 3), ((0, 3), 3, 0), ((1, 2, 3), 2, 1)]
    draw = np.random.default_rng(15)
    chosen = [draw.choice(len(answers), draw.integers(3, 7)) for _ in range(30)]
    n_defined = 0
    for rows in chosen:
        sets = [[*answers[row][0], -1][:3] for row in rows]
        best, worst = [answers[row][1] for row in rows], [answers[row][2] for row in rows]
        present = sorted({one for shown in sets for one in shown if one >= 0})
        fit = best_worst_logit(sets, best, worst, range(len(rows)), n_systems=4)

        def cost(free, sets=sets, best=best, worst=worst, present=present):
            values = np.zeros(4)
            values[present] = free
            return -log_likelihood(values, sets, best, worst)

        tops = [
            optimize.minimize(cost, np.zeros(len(present)), method="L-BFGS-B", bounds=[(-bound, bound)] * len(present),
                              options={"ftol": 1e-12, "gtol": 1e-7}).fun
            for bound in (5, 15)
        ]  # fmt: skip
        # Without a maximum a wider bound gains e^-10 or more; with one it lies within the first bound.
        is_defined = tops[0] - tops[1] < 1e-5
        assert (fit.status == "ok") == is_defined, (sets, best, worst, fit.status, tops)
        n_defined += is_defined
    assert 5 < n_defined < 25


def is_undefined(fit, status):
    assert fit.status == status and fit.reason
    for one in (*fit.strengths, *fit.pairs, fit.omnibus):
        assert (one.status, one.estimate, one.interval, one.test) == (status, None, None, None) and one.reason
    assert fit.log_likelihood is None and np.isnan(fit.covariance).all() and np.isnan(fit.probabilities).all()
    json.dumps(fit.as_dict(), allow_nan=False)
    return True


def test_a_system_that_always_was_the_best_has_no_strength():
    sets, best, worst = [[0, 1, 2]] * 8, [0] * 8, [1, 2] * 4
    fit = best_worst_logit(sets, best, worst, range(8), n_systems=3)
    assert is_undefined(fit, "separation") and "without exception" in fit.reason
    assert is_undefined(best_worst_logit(sets, worst, best, range(8), n_systems=3), "separation")
    assert fit.difference(0, 1).status == "separation"
    # One answer that goes the other way is enough.
    more = best_worst_logit([*sets, [0, 1, 2]], [*best, 1], [*worst, 0], range(9), n_systems=3)
    assert more.status == "ok"


def test_systems_that_no_chain_of_sets_connects_are_not_ranked_together():
    sets = [[0, 1, 2], [0, 1, 2], [0, 1, 2], [3, 4, -1], [3, 4, -1]]
    fit = best_worst_logit(sets, [0, 1, 2, 3, 4], [1, 2, 0, 4, 3], range(5), n_systems=5)
    assert is_undefined(fit, "not_identified") and fit.components == ((0, 1, 2), (3, 4))


def test_without_answers_there_is_nothing():
    fit = best_worst_logit(np.zeros((0, 3), int), [], [], [], n_systems=3)
    assert is_undefined(fit, "no_data") and fit.n_rows == 0
    assert is_undefined(best_worst_logit([], [], [], [], [], n_systems=3), "no_data")
    counts = maxdiff_counts([], [], [], [], n_systems=2)
    assert counts.status == "no_data" and [one.status for one in counts.scores] == ["no_data"] * 2
    json.dumps(counts.as_dict(), allow_nan=False)


def test_a_system_that_was_never_shown_leaves_the_others_as_they_are():
    sets, best, worst, people, _ = study(16)
    fit = best_worst_logit(sets, best, worst, people, n_systems=5)
    new = np.array([0, 1, 3, 4, 5])
    other = best_worst_logit(new[sets], new[best], new[worst], people, n_systems=6)
    assert other.status == "ok" and other.components == ((0, 1, 3, 4, 5),)
    assert_allclose([other.strengths[one].estimate for one in new], estimates(fit), atol=1e-10)
    absent = other.strengths[2]
    assert (absent.status, absent.estimate, absent.reason) == ("no_data", None, "system 2 was never shown")
    assert other.difference(5, 2).status == "no_data" and other.difference(2, 5).reason == absent.reason
    assert len(other.pairs) == 10 and other.omnibus.pvalue == pytest.approx(fit.omnibus.pvalue)
    assert [one.pvalue for one in other.pairs] == pytest.approx([one.pvalue for one in fit.pairs])
    assert np.isnan(other.covariance[2]).all() and np.isfinite(other.covariance[np.ix_(new, new)]).all()
    json.dumps(other.as_dict(), allow_nan=False)


def test_one_person_has_no_spread():
    sets, best, worst, people, prompts = study(17, n_people=1, n_sets=60, n_prompts=5)
    fit = best_worst_logit(sets, best, worst, people, prompts, n_systems=5)
    for one in (*fit.strengths, *fit.pairs, fit.omnibus):
        assert (one.status, one.interval, one.test) == ("n_lt_2", None, None)
    assert fit.status == "ok" and fit.strengths[4].estimate > 0 and fit.df is None


def test_under_six_people_nothing_is_tested():
    sets, best, worst, people, _ = study(18, n_people=5, n_sets=20)
    fit = best_worst_logit(sets, best, worst, people, n_systems=5)
    assert all(one.status == "ok" and one.interval and one.test is None for one in fit.pairs)
    assert (fit.omnibus.status, fit.omnibus.test) == ("not_identified", None)
    assert fit.strengths[0].warned("few_clusters")


def test_what_one_person_alone_connects_has_no_jackknife():
    sets, best, worst, people, prompts = study(19, n_people=8, n_sets=10, n_prompts=6)
    sets = np.r_[sets, [[0, 5, -1, -1]] * 2]
    rows = (np.r_[best, 0, 5], np.r_[worst, 5, 0], np.r_[people, 0, 0], np.r_[prompts, 0, 1])
    fit = best_worst_logit(sets, *rows, n_systems=6)
    assert fit.status == "ok" and fit.df is None
    for one in (*fit.strengths, *fit.pairs):
        assert (one.status, one.interval, one.test) == ("not_identified", None, None) and one.estimate is not None
        assert "alone" in one.reason
    assert fit.omnibus.status == "not_identified"
    sandwich = best_worst_logit(sets, *rows, n_systems=6, method="cr1")
    assert [one.status == "ok" and one.interval is not None for one in sandwich.pairs] == [
        (one.detail["x"], one.detail["y"]) != (0, 5) for one in sandwich.pairs
    ]
    # That person's two answers cancel, which is no certainty.
    assert (sandwich.difference(0, 5).status, sandwich.difference(0, 5).test) == ("zero_variance", None)


def test_a_step_that_is_too_long_is_halved():
    sets, best, worst, people, _ = study(21)
    asked = Sets.of(sets, best, worst, 5)
    top = _model.maximum(asked)
    step = top.strengths * 50
    start = _model.stepped(top, np.zeros(5), asked)
    zero = _model.stepped(start, -top.strengths / 1024, asked)
    reached = _model.stepped(zero, step, asked)
    assert _model._at(zero.strengths + step, asked).log_likelihood < zero.log_likelihood
    assert zero.log_likelihood < reached.log_likelihood <= top.log_likelihood
    assert_allclose(reached.strengths.sum(), 0, atol=1e-12)


def test_a_large_difference_is_found():
    # Of a thousand answers one goes the other way.
    sets, best, worst = [[0, 1, 2]] * 1000, [0] * 999 + [2], [1, 2] * 499 + [1] + [0]
    fit = best_worst_logit(sets, best, worst, np.arange(1000) % 50, n_systems=3)
    assert fit.status == "ok"
    assert fit.log_likelihood == pytest.approx(log_likelihood(estimates(fit), sets, best, worst))
    top = optimize.minimize(lambda free: -log_likelihood(np.r_[free, 0], sets, best, worst), [5, 0], method="Nelder-Mead",
                            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000})  # fmt: skip
    assert_allclose(estimates(fit)[:2] - estimates(fit)[2], top.x, atol=1e-5)


@pytest.mark.parametrize("function", [maxdiff_counts, best_worst_logit])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sets": [[0, 1, 4]] * 2}, "sets: row 0 shows 4, which is not one of 4 systems"),
        ({"sets": [[0, 1, 2], [0, 1, -2]]}, "sets: row 1 shows -2, which is not one of 4 systems"),
        ({"sets": [[0, 1, 2], [0, -1, -1]]}, "sets: row 1 shows fewer than two systems"),
        ({"sets": [[0, 1, 2], [1, 0, 1]]}, "sets: row 1 shows system 1 twice"),
        ({"sets": [0, 1, 2]}, "sets: expected two dimensions, got 1"),
        ({"sets": [[0.0, 1, 2]] * 2}, "sets: systems are numbered with integers"),
        ({"best": [0, 3]}, "best: row 1 is 3, which its set does not show"),
        ({"sets": [[0, 1, 2], [0, 1, -1]], "best": [0, -1]}, "best: row 1 is -1, which its set does not show"),
        ({"worst": [3, 1]}, "worst: row 0 is 3, which its set does not show"),
        ({"best": [2, 0]}, "worst: row 0 has system 2 as the worst and as the best"),
        ({"best": [0]}, r"best: expected 2 systems, got an array of shape \(1,\)"),
        ({"worst": [2.0, 1.0]}, "worst: systems are numbered with integers"),
        ({"people": ["a"]}, r"people: expected 2 labels, got an array of shape \(1,\)"),
        ({"people": ["a", None]}, "people: row 1 has no label"),
        ({"prompts": [1, 2, 3]}, r"prompts: expected 2 labels, got an array of shape \(3,\)"),
        ({"n_systems": 0}, "n_systems: 0 is not a positive number of systems"),
        ({"level": 95}, "level: 95 is not strictly between 0 and 1"),
    ],
)
def test_what_is_no_answer_is_refused(function, change, words):
    given = {"sets": [[0, 1, 2]] * 2, "best": [0, 0], "worst": [2, 1], "people": ["a", "b"], "n_systems": 4} | change
    with pytest.raises(ValueError, match=f"^{words}$"):
        function(**given)


def test_a_method_that_is_none_is_refused():
    with pytest.raises(ValueError, match="method: 'cr2' is neither cv3 nor cr1"):
        best_worst_logit([[0, 1]], [0], [1], ["a"], n_systems=2, method="cr2")


# What the intervals and tests promise


def test_equal_systems_are_seldom_told_apart_and_intervals_cover():
    """Twenty people of unequal activity; 400 studies each, so that three standard errors are .033."""
    sizes = np.array([2, 3, 4, 5, 6, 7, 8, 9, 10, 26] * 2)
    same, covers, scores = [], [], []
    for seed in range(400):
        sets, best, worst, people, _ = study(1000 + seed, n_people=20, strengths=(0, 0, 0, 0), size=3, sizes=sizes)
        fit = best_worst_logit(sets, best, worst, people, n_systems=4)
        same.append(fit.omnibus.pvalue < 0.05)
        found = fit.difference(0, 3).interval
        covers.append(found.low <= 0 <= found.high)
        score = maxdiff_counts(sets, best, worst, people, n_systems=4).scores[0].interval
        scores.append(score.low <= 0 <= score.high)
    assert np.mean(same) < 0.083
    assert np.mean(covers) > 0.917 and np.mean(scores) > 0.917


def test_strengths_are_found_again_in_a_large_study():
    fit = best_worst_logit(*study(20, n_people=3000, lean=0.0)[:4], n_systems=5)
    truth = np.array(STRENGTHS) - np.mean(STRENGTHS)
    assert_allclose(estimates(fit), truth, atol=0.04)
    assert_allclose(fit.probabilities[4, 0], expit(1.2), atol=0.02)
