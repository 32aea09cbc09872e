"""Strengths of the best-worst logit, against other programs and numerical searches."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize
from scipy.special import expit
from statsmodels.discrete.conditional_models import ConditionalLogit

from analysis.stats import cluster_variances
from analysis.stats.best_worst import best_worst_logit
from analysis.stats.davidson import fit_davidson
from analysis.stats.multiplicity import holm
from tests.analysis.stats.best_worst.studies import estimates, log_likelihood, study


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
    # With every answer a cluster of its own, the jackknife estimates what the information gives.
    single = best_worst_logit(sets, best, worst, np.arange(len(best)), n_systems=5)
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
    fit = best_worst_logit(sets, best, worst, people, n_systems=4)
    other = fit_davidson(sets[:, 0], sets[:, 1], is_first, people, n_systems=4)
    is_pair = ~np.eye(4, dtype=bool)
    assert_allclose(fit.probabilities[is_pair], other.probabilities[is_pair], atol=1e-8)
    for system in (1, 2, 3):
        one, wanted = fit.difference(system, 0), other.difference(system, 0)
        assert_allclose(
            [one.estimate, one.detail["se"]],
            [wanted.estimate, wanted.detail["se"]],
            rtol=1e-6,
        )
        assert one.interval.method == wanted.interval.method == "cv3_t"


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


def test_covariances_over_people_are_the_jackknife():
    sets, best, worst, people, _ = study(8, n_people=9, n_sets=6)
    fit = best_worst_logit(sets, best, worst, people, n_systems=5)
    scores, seconds = derivatives(fit, sets, best, worst, people)
    whole = seconds.sum(axis=0)
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
    assert fit.df == pytest.approx(cluster_variances.effective_n_clusters(sizes) - 1) and fit.df < 4
    assert fit.strengths[0].has_warning("dominant_annotator") and fit.strengths[0].has_warning("few_clusters")


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
    both, (found,) = found, found.sensitivity
    assert both.settings["population"] == "people and prompts" and both.detail["n_prompts"] == 8
    assert found.analysis == "best_worst.strength.difference.by_annotator"
    assert (found.estimate, found.interval, found.pvalue) == (
        alone.difference(4, 1).estimate,
        alone.difference(4, 1).interval,
        alone.difference(4, 1).pvalue,
    )
    assert_allclose(both.detail["se"], math.sqrt(wanted))
    assert both.detail["se"] > found.detail["se"] and both.n_clusters == 8
    # The prompts have the larger variance; people and prompts together have Satterthwaite's degrees of freedom.
    own = [cluster_variances.effective_n_clusters(np.bincount(labels)) - 1 for labels in (people, prompts)]
    assert both.detail["df"] == pytest.approx(
        wanted**2 / sum(part**2 / df for part, df in zip(parts, own, strict=False))
    )
    assert (both.analysis, both.interval.method, both.test.name) == (
        "best_worst.strength.difference",
        "two_way_t",
        "two_way_t",
    )
    assert fit.omnibus.pvalue > fit.omnibus.sensitivity[0].pvalue == alone.omnibus.pvalue
    one_prompt = best_worst_logit(sets, best, worst, people, np.zeros(len(best)), n_systems=5).difference(4, 1)
    assert one_prompt.sensitivity == () and one_prompt.settings["population"] == "people"
    # If nobody shares a prompt, leaving out a person leaves out their prompts too.
    own_prompts = best_worst_logit(sets, best, worst, people, np.arange(len(best)), n_systems=5).difference(4, 1)
    assert own_prompts.settings["population"] == "people and prompts"
    assert own_prompts.detail["se"] == pytest.approx(alone.difference(4, 1).detail["se"])


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
            assert_allclose(one.detail["se"], math.sqrt(max(variances)))
        to_first = np.c_[-np.ones(4), np.eye(4)]
        values, spreads = to_first @ estimates(fit), [to_first @ way @ to_first.T for way in ways]
        if np.linalg.eigvalsh(spreads[2])[0] < 0:
            spreads[2] = spreads[0] + spreads[1]
            kinds.add("indefinite")
        wanted = min(values @ np.linalg.solve(spread, values) / 4 for spread in spreads)
        assert fit.omnibus.test.statistic == pytest.approx(wanted)
        smaller = min(cluster_variances.effective_n_clusters(np.bincount(one)) - 1 for one in (people, prompts))
        assert fit.omnibus.detail["df_within"] == pytest.approx(smaller)
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
