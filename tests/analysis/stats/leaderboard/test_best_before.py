"""At most one board in twenty ever says "better than the best before" of a system that is not."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import board_scores, leaderboard, ranks
from tests.analysis.stats.draws import rng


def submissions(draw, truth, *, n_items=40, n_people=30, item=0.15, taste=0.08, knack=0.1):
    """One answer for each item and system, by people who each saw several systems."""
    k = len(truth)
    systems, items = np.repeat(np.arange(k), n_items), np.tile(np.arange(n_items), k)
    people = draw.integers(0, n_people, k * n_items)
    mean = np.asarray(truth)[systems] + draw.normal(0, item, n_items)[items] + draw.normal(0, taste, n_people)[people]
    mean = mean + draw.normal(0, knack, k * n_items) + draw.normal(0, 0.15, k * n_items)
    return np.clip(mean, 0, 1), systems, items, people


def compared(*data, new, earlier, alpha=0.05, **options):
    """One submission alone at the level ``alpha``: the first of a board gets 6 / pi^2 of what the board has."""
    (found,) = leaderboard.compare_each_with_best_before(
        *data, new=[new], earlier=earlier, alpha=alpha * math.pi**2 / 6, **options
    )
    return found


def claims(data, n_systems, *, alpha=0.05):
    """Whether each submission was declared better, in turn."""
    was_better: list[bool] = []
    for new in range(1, n_systems):
        seen = data[1] <= new
        level = leaderboard.alphas_of_submissions(was_better, alpha=alpha)[-1]
        found = compared(*(part[seen] for part in data), new=new, earlier=list(range(new)), alpha=level)
        was_better.append(found.detail["is_better"])
    return was_better


def test_the_levels_sum_to_alpha_and_a_claim_passes_its_level_on():
    assert_allclose(leaderboard.alphas_of_submissions([False] * 100_000).sum(), 0.05, rtol=1e-4)
    plain, passed = (leaderboard.alphas_of_submissions([False, was, False]) for was in (False, True))
    assert_allclose(passed - plain, [0, 0, plain[1], 0])
    assert_allclose(plain, [0.05 * 6 / (math.pi * k) ** 2 for k in (1, 2, 3, 4)])
    for alpha in (0, 1):
        with pytest.raises(ValueError, match="alpha"):
            leaderboard.alphas_of_submissions([], alpha=alpha)


def difference(data, x, y):
    """Points of x minus those of y, and the one-sided p of a t test of this pair alone."""
    values, systems, items, people = data
    kept = (systems == x) | (systems == y)
    weights = board_scores.equal_item_weights(values[kept], systems[kept], items[kept])
    spread = ranks.score_spread(100 * values[kept], people[kept], systems[kept], items[kept], weights=weights)
    (se, df), at = spread.of_pairs(), int(x > y)
    points = spread.scores[at] - spread.scores[1 - at]
    return points, stats.t.sf(points / se[0, 1], df[0, 1])


def test_the_p_value_is_the_largest_of_the_one_sided_ones_and_agrees_with_the_interval():
    data = submissions(rng(1), [0.3, 0.5, 0.55, 0.62])
    found = compared(*data, new=3, earlier=[0, 1, 2], alpha=0.02)
    singles = [difference(data, 3, one) for one in (0, 1, 2)]
    assert_allclose(found.estimate, min(points for points, _ in singles), atol=1e-9)
    # People who judged neither system of a pair are no cluster of it alone.
    assert_allclose(found.pvalue, max(pvalue for _, pvalue in singles), rtol=0.02)
    again = compared(*data, new=3, earlier=[0, 1, 2], alpha=found.pvalue)
    assert_allclose(again.interval.low, 0, atol=1e-9)
    assert found.detail["best"] == 2 and found.interval.level == 0.96
    assert found.test.alternative == "greater" and found.interval.low < found.estimate < found.interval.high


def test_a_real_improvement_is_found_and_a_repeated_system_is_not():
    data = submissions(rng(2), [0.4, 0.4, 0.7, 0.7])
    assert claims(data, 4) == [False, True, False]


def test_edge_cases_are_statuses():
    data = submissions(rng(3), [0.4, 0.5], n_items=10)

    def compared_with(*rows, earlier=(0,), **options):
        return compared(*rows, new=1, earlier=list(earlier), **options)

    assert compared_with(*data, earlier=()).status == "not_applicable"
    assert compared_with(*data, earlier=(7,)).status == "no_data"
    lonely = np.where(data[1] == 1, 3, data[3])
    assert compared_with(data[0], data[1], data[2], lonely).status == "not_identified"
    assert compared_with(np.where(data[1] == 1, 1.0, 0.5), *data[1:]).status == "zero_variance"
    apart = submissions(rng(3), [0.2, 0.8])
    few = compared_with(*apart[:3], apart[3] % 4)
    assert few.interval.low > 0 and few.test is None and few.detail["is_better"] is False
    with pytest.raises(ValueError, match="earlier: 1 is the new system"):
        compared_with(*data, earlier=(1,))
    with pytest.raises(ValueError, match="alpha"):
        compared_with(*data, alpha=0.6)


def false_claims(runs, seed, truth, *, claim=claims, **design):
    draw = rng(seed)
    wrong = 0
    for _ in range(runs):
        found = claim(submissions(draw, truth, **design), len(truth))
        wrong += any(found)
    return wrong / runs


def naive_claims(data, n_systems):
    """A test at .05 against the first system, which leads until another is declared better."""
    found, leader = [], 0
    for new in range(1, n_systems):
        found.append(difference(data, new, leader)[1] < 0.05)
        leader = new if found[-1] else leader
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "design"),
    [
        ([0.5] * 51, {}),
        ([0.5, *[0.2] * 49, 0.5], {}),
        ([0.6, *np.linspace(0.3, 0.6, 50)], {"n_people": 12}),
        ([0.3, 0.5, 0.5, *[0.4] * 48], {"n_items": 15}),
    ],
)
def test_fifty_submissions_without_an_improvement_keep_the_level(truth, design):
    runs = 400
    allowed = 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)
    if truth[1] > truth[0]:
        # The second submission is better indeed, so only the claims after it are false.
        draw, wrong = rng(4), 0
        for _ in range(runs):
            wrong += any(claims(submissions(draw, truth, **design), len(truth))[1:])
        assert wrong / runs <= allowed
    else:
        assert false_claims(runs, 4, truth, **design) <= allowed


@pytest.mark.slow
def test_a_test_at_every_submission_does_not_keep_it():
    assert false_claims(200, 5, [0.5] * 11, claim=naive_claims) > 0.15


def test_a_lenient_round_makes_nobody_better_than_the_best_before():
    claims = {"raw": 0, "equated": 0, "truly better": 0}
    for seed in range(60):
        draw = np.random.default_rng([5, seed])
        # Round 1: anchor and old; round 2: the anchor again and a new system, judged by people who are 10 points milder.
        rounds = np.repeat([1, 1, 2, 2], 120)
        systems = np.repeat(["anchor", "old", "anchor", "new"], 120)
        items, people = np.tile(np.arange(40), 12), np.arange(480) // 8
        base = np.repeat([0.5, 0.6, 0.6, 0.7], 120) + draw.normal(0, 0.08, 40)[items] + draw.normal(0, 0.05, 60)[people]
        values = np.clip(base + draw.normal(0, 0.1, 480), 0, 1)
        options = {"new": "new", "earlier": ["old", "anchor"]}
        claims["raw"] += compared(values, systems, items, people, **options).detail["is_better"]
        found = compared(values, systems, items, people, rounds=rounds, **options)
        claims["equated"] += found.detail["is_better"]
        better = np.clip(values + 0.15 * (systems == "new"), 0, 1)
        found = compared(better, systems, items, people, rounds=rounds, **options)
        claims["truly better"] += found.detail["is_better"]
    # 60 boards without an improvement: at most .05 and two standard errors may claim one.
    assert claims["raw"] > 30
    assert claims["equated"] <= 6
    assert claims["truly better"] > 45


def test_rounds_without_an_anchor_are_not_compared():
    draw = np.random.default_rng(3)
    systems, rounds = np.repeat(["old", "new"], 60), np.repeat([1, 2], 60)
    values, items, people = draw.uniform(0, 1, 120), np.tile(np.arange(30), 4), np.arange(120) // 6
    found = compared(values, systems, items, people, new="new", earlier=["old"], rounds=rounds)
    assert (found.status, found.reason) == ("not_identified", "no anchor links the rounds of new and old")


def test_differences_from_one_system_have_the_spread_of_their_contrasts_and_rounding_is_no_variance():
    values, systems, items, people = submissions(rng(6), [0.4, 0.5, 0.6])
    again = systems == 2  # the fourth system repeats every answer of the third
    columns = [np.r_[part, part[again]] for part in (values, people, np.where(again, 2, systems), items)]
    columns[2][len(values) :] = 3
    spread = ranks.score_spread(*columns)
    found = spread.minus_each(3, [0, 1, 2])
    contrasts = [[-1, 0, 0, 1], [0, -1, 0, 1], [0, 0, -1, 1]]
    expected = spread.combined(contrasts, [0, 1, 2])
    for mine, other in zip((found.scores, *found.of_scores()), (expected.scores, *expected.of_scores()), strict=True):
        assert_allclose(mine, other, rtol=1e-9, atol=1e-12)
    assert_allclose(found.skewness()[:2], expected.skewness()[:2], rtol=1e-9)
    assert_allclose(found.of_scores()[0][:2], spread.of_pairs()[0][3, :2], rtol=1e-9)
    assert found.of_scores()[0][2] == 0
