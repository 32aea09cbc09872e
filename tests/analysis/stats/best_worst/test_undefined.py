"""Where the best-worst logit has no estimate, and what it refuses."""

import json
from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

from analysis.stats import best_worst
from analysis.stats.best_worst import BestWorstAnswers, best_worst_logit, maxdiff_scores
from tests.analysis.stats.best_worst.studies import estimates, log_likelihood, study


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
            optimize.minimize(
                cost,
                np.zeros(len(present)),
                method="L-BFGS-B",
                bounds=[(-bound, bound)] * len(present),
                options={"ftol": 1e-12, "gtol": 1e-7},
            ).fun
            for bound in (5, 15)
        ]
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
    counts = maxdiff_scores([], [], [], [], n_systems=2)
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
    assert fit.strengths[0].has_warning("few_clusters")


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


def test_a_step_that_is_too_long_is_halved():
    sets, best, worst, people, _ = study(21)
    asked = BestWorstAnswers.from_arrays(sets, best, worst, 5)
    top = best_worst.fit_logit(asked)
    step = top.strengths * 50
    start = best_worst.fit_after_damped_step(top, np.zeros(5), asked)
    zero = best_worst.fit_after_damped_step(start, -top.strengths / 1024, asked)
    reached = best_worst.fit_after_damped_step(zero, step, asked)
    assert best_worst._at(zero.strengths + step, asked).log_likelihood < zero.log_likelihood
    assert zero.log_likelihood < reached.log_likelihood <= top.log_likelihood
    assert_allclose(reached.strengths.sum(), 0, atol=1e-12)


def test_a_large_difference_is_found():
    # Of a thousand answers one goes the other way.
    sets, best, worst = [[0, 1, 2]] * 1000, [0] * 999 + [2], [1, 2] * 499 + [1] + [0]
    fit = best_worst_logit(sets, best, worst, np.arange(1000) % 50, n_systems=3)
    assert fit.status == "ok"
    assert fit.log_likelihood == pytest.approx(log_likelihood(estimates(fit), sets, best, worst))
    top = optimize.minimize(
        lambda free: -log_likelihood(np.r_[free, 0], sets, best, worst),
        [5, 0],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000},
    )
    assert_allclose(estimates(fit)[:2] - estimates(fit)[2], top.x, atol=1e-5)


@pytest.mark.parametrize("function", [maxdiff_scores, best_worst_logit])
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
