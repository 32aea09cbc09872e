"""Ratings of millions of votes are those of the slow fit, and hold for all systems at once."""

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

from analysis.stats import davidson, vote_ratings
from tests.analysis.stats.davidson.labels import dense_estimate, dense_spread, estimates
from tests.analysis.stats.draws import rng


def votes(draw, *, k=6, n_people=80, mean_votes=20, is_heavy=False, ties=0.2, style=0.0, taste=0.3):
    """Votes of people who like each system a little differently; a covariate that adds `style` to the log-odds."""
    activity = np.minimum(draw.pareto(1.1, n_people) + 1, 300) if is_heavy else np.ones(n_people)
    n = n_people * mean_votes
    who = draw.choice(n_people, n, p=activity / activity.sum())
    x = draw.integers(0, k, n)
    y = (x + draw.integers(1, k, n)) % k
    length = draw.normal(0, 1, n)
    worth = np.linspace(0.6, -0.6, k) + draw.normal(0, taste, (n_people, k))
    logit = worth[who, x] - worth[who, y] + style * length
    outcomes = (draw.random(n) < 1 / (1 + np.exp(-logit))).astype(float)
    outcomes[draw.random(n) < ties] = 0.5
    return x, y, outcomes, who, length


@pytest.mark.parametrize("is_heavy", [False, True])
@pytest.mark.parametrize("ties", [0.0, 0.2])
def test_they_are_those_of_the_fit_with_a_matrix_for_each_person(is_heavy, ties):
    *rows, _ = votes(rng(1), is_heavy=is_heavy, ties=ties)
    found = vote_ratings.paired_ratings(*rows, n_systems=6, rng=rng())
    slow = davidson.fit_davidson(*rows, n_systems=6)
    assert_allclose([one.estimate for one in found.ratings], [one.estimate for one in slow.strengths], atol=1e-9)
    spread = dense_spread(*rows, estimates(slow), nu=slow.tie.estimate)
    got = [one.detail["se"] for one in found.ratings]
    assert_allclose(got, [dense_estimate(spread, **{f"of_{one}": 1}).detail["se"] for one in range(6)], rtol=0.002)
    pairs = found.covariance
    wanted = dense_estimate(spread, of_0=1, of_3=-1).detail["se"]
    assert_allclose(math.sqrt(pairs[0, 0] + pairs[3, 3] - 2 * pairs[0, 3]), wanted, rtol=0.002)
    if ties:
        assert_allclose(found.tie.estimate, slow.tie.estimate)
        assert_allclose(found.tie.detail["se_log_nu"], dense_estimate(spread, of_last=1).detail["se"], rtol=0.01)
    else:
        assert found.tie is None
    json.dumps({name: getattr(found, name).as_dict() for name in ("ranks",)}, allow_nan=False)


def test_people_with_small_shares_are_left_out_by_a_series_that_is_close():
    # No person has half a percent of the votes, so no equation is solved.
    *rows, _ = votes(rng(10), n_people=500, mean_votes=12)
    found = vote_ratings.paired_ratings(*rows, n_systems=6, rng=rng())
    slow = davidson.fit_davidson(*rows, n_systems=6)
    spread = dense_spread(*rows, estimates(slow), nu=slow.tie.estimate)
    got = [one.detail["se"] for one in found.ratings]
    assert_allclose(got, [dense_estimate(spread, **{f"of_{one}": 1}).detail["se"] for one in range(6)], rtol=1e-4)


@pytest.mark.slow
def test_with_covariates_it_is_the_maximum_of_the_likelihood_and_the_jackknife():
    draw = rng(2)
    x, y, outcomes, who, length = votes(draw, n_people=30, style=0.5)
    covariates = np.column_stack([length, draw.normal(0, 1, len(x))])
    weights = draw.uniform(0.5, 2, len(x))

    def loss(parameters, kept):
        b, log_nu, slopes = np.append(parameters[:5], -parameters[:5].sum()), parameters[5], parameters[6:]
        odds = b[x] - b[y] + covariates @ slopes
        total = np.logaddexp(np.logaddexp(odds / 2, -odds / 2), log_nu)
        log = np.where(outcomes == 1, odds / 2, np.where(outcomes == 0, -odds / 2, log_nu)) - total
        return -float(np.sum((weights * log)[kept])) / len(x)

    def fitted(kept, start=None):
        start = np.zeros(8) if start is None else start
        return optimize.minimize(loss, start, args=(kept,), method="BFGS", options={"gtol": 1e-8}).x

    whole = fitted(np.full(len(x), True))
    found = vote_ratings.paired_ratings(
        x, y, outcomes, who, n_systems=6, rng=rng(), covariates=covariates, covariate_names=["length", "other"],
        weights=weights,
    )  # fmt: skip # the call is easier to read so
    got = [one.estimate for one in found.ratings[:5]] + [np.log(found.tie.estimate)]
    assert_allclose([*got, *(one.estimate for one in found.covariates)], whole, atol=1e-4)
    moves = np.array([whole - fitted(who != one, whole) for one in np.unique(who)])
    se = np.sqrt(29 / 30 * np.sum(moves**2, axis=0))
    got = [one.detail["se"] for one in found.ratings[:5]] + [found.tie.detail["se_log_nu"]]
    assert_allclose([*got, *(one.detail["se"] for one in found.covariates)], se, rtol=0.02)
    assert found.covariates[0].pvalue < 0.001 < found.covariates[1].pvalue


def test_a_weight_of_two_is_a_vote_that_counts_twice():
    x, y, outcomes, who, length = votes(rng(3))
    options = {"n_systems": 6, "rng": rng()}
    twice = np.repeat(np.arange(len(x)), 1 + (np.arange(len(x)) % 3 == 0))
    for covariates in (None, length):
        table = None if covariates is None else covariates[:, None]
        weighted = vote_ratings.paired_ratings(
            x, y, outcomes, who, weights=1.0 + (np.arange(len(x)) % 3 == 0), covariates=table, **options
        )
        again = vote_ratings.paired_ratings(
            *(part[twice] for part in (x, y, outcomes, who)),
            covariates=None if table is None else table[twice],
            **options,
        )
        for one, other in zip(weighted.ratings, again.ratings, strict=True):
            assert_allclose([one.estimate, one.detail["se"]], [other.estimate, other.detail["se"]], rtol=1e-6)


def test_half_wins_are_bradley_terry_and_order_does_not_matter():
    *rows, _ = votes(rng(4))
    order = rng(5).permutation(len(rows[0]))
    found = vote_ratings.paired_ratings(*(part[order] for part in rows), n_systems=6, rng=rng(), ties="half")
    slow = davidson.fit_davidson(*rows, n_systems=6, ties="half")
    assert_allclose([one.estimate for one in found.ratings], [one.estimate for one in slow.strengths], atol=1e-12)
    difference = found.covariance
    se = math.sqrt(difference[2, 2] + difference[0, 0] - 2 * difference[0, 2])
    assert_allclose(se, dense_estimate(dense_spread(*rows, estimates(slow)), of_2=1, of_0=-1).detail["se"], rtol=0.002)


def test_categories_are_fitted_by_themselves():
    x, y, outcomes, who, _ = votes(rng(6), taste=0)
    kinds = np.where(np.arange(len(x)) % 2 == 0, "code", "text")
    flipped = np.where(kinds == "text", 1 - outcomes, outcomes)
    found = vote_ratings.paired_ratings_by_category(
        x, y, flipped, who, kinds, n_systems=6, rng=rng(), weights=np.ones(len(x))
    )
    assert list(found) == ["code", "text"]
    assert found["code"].ratings[0].estimate > 0.3 and found["text"].ratings[0].estimate < -0.3
    assert sum(one.n_rows for one in found.values()) == len(x)


def test_edge_cases_are_statuses_and_bad_arguments_are_named():
    def rated(*rows, n_systems=2, **options):
        return vote_ratings.paired_ratings(*rows, n_systems=n_systems, rng=rng(), **options)

    assert rated([], [], [], []).status == "no_data"
    assert rated([0], [1], [None], ["a"]).status == "no_data"
    assert rated([0, 1], [1, 0], [1, 1], ["a", "b"], n_systems=3).status == "not_identified"
    lost = rated([0, 0], [1, 1], [1, 1], ["a", "b"])
    assert lost.status == "separation" and {one.status for one in lost.ratings} == {"separation"}
    alone = rated([0, 0, 0], [1, 1, 1], [1, 0, 1], ["a"] * 3)
    assert {one.status for one in alone.ratings} == {"n_lt_2"} and alone.ranks.status == "n_lt_2"
    x, y, outcomes, who, length = votes(rng(7))
    same = np.column_stack([length, (x == 0) * 1.0 - (y == 0)])
    assert rated(x, y, outcomes, who, n_systems=6, covariates=same).status == "not_identified"
    for options, name in (
        ({"ties": "drop"}, "ties"),
        ({"covariates": np.ones((3, 1))}, "covariates: 3 rows"),
        ({"covariates": np.full((len(x), 1), np.nan)}, "covariates: row 0 is missing"),
        ({"weights": np.zeros(len(x))}, "weights"),
        ({"covariates": length[:, None], "covariate_names": ["a", "b"]}, "covariate_names: 2 names for 1"),
    ):
        with pytest.raises(ValueError, match=name):
            rated(x, y, outcomes, who, n_systems=6, **options)
    with pytest.raises(ValueError, match="outcomes: row 1 is 0.3"):
        rated([0, 0], [1, 1], [1, 0.3], ["a", "b"])


def coverage(runs, seed, **design):
    """Shares of boards whose intervals, rank sets and slope hold the truth of a very large study."""
    draw, held = rng(seed), np.zeros(3)
    *rows, length = votes(rng(99), **{**design, "n_people": 100_000, "is_heavy": False})
    large = vote_ratings.paired_ratings(*rows, n_systems=6, rng=rng(), covariates=length[:, None])
    truth = np.array([one.estimate for one in large.ratings])
    for _ in range(runs):
        *rows, length = votes(draw, **design)
        found = vote_ratings.paired_ratings(*rows, n_systems=6, rng=draw, covariates=length[:, None], resamples=499)
        held[0] += all(
            one.interval.low <= value <= one.interval.high for one, value in zip(found.ratings, truth, strict=True)
        )
        held[1] += all(
            low <= rank <= high for low, rank, high in zip(found.ranks.low, range(1, 7), found.ranks.high, strict=True)
        )
        slope = found.covariates[0].interval
        held[2] += slope.low <= large.covariates[0].estimate <= slope.high
    return held / runs


@pytest.mark.slow
@pytest.mark.parametrize("design", [{"style": 0.3}, {"is_heavy": True, "style": 0.3}, {"n_people": 25, "taste": 0.6}])
def test_intervals_and_rank_sets_hold_for_all_systems_at_once(design):
    held = coverage(600, 8, **design)
    assert (held >= 0.95 - 2 * 0.009).all(), held


def with_a_perfect_system(draw, *, loses=False, n_people=60):
    """Votes about five ordinary systems, and about a sixth that each person compared with all others, and that always won or lost."""
    *rows, _ = votes(draw, k=5, n_people=n_people, ties=0.0)
    perfect = np.full(5 * n_people, 5), np.tile(np.arange(5), n_people)
    outcomes = np.full(5 * n_people, 0.0 if loses else 1.0)
    added = (*perfect, outcomes, np.repeat(np.arange(n_people), 5))
    return [np.concatenate(pair) for pair in zip(rows, added, strict=True)], rows


@pytest.mark.parametrize("loses", [False, True])
def test_a_system_that_always_won_or_lost_leaves_the_ratings_of_the_others(loses):
    all_votes, others = with_a_perfect_system(rng(11), loses=loses)
    found = vote_ratings.paired_ratings(*all_votes, n_systems=6, rng=rng())
    alone = vote_ratings.paired_ratings(*others, n_systems=5, rng=rng())
    assert (found.status, found.rated) == ("separation", (0, 1, 2, 3, 4))
    assert [one.estimate for one in found.ratings] == [*(one.estimate for one in alone.ratings), None]
    assert [one.interval for one in found.ratings[:5]] == [one.interval for one in alone.ratings]
    assert found.ratings[5].reason.startswith("it lost" if loses else "it won")
    place = 6 if loses else 1
    assert (found.ranks.low[5], found.ranks.high[5]) == (place, place)
    # The sets of the others are those of a stricter level, moved by the place of the sixth.
    stricter = vote_ratings.paired_ratings(*others, n_systems=5, rng=rng(), level=0.975)
    assert found.ranks.low[:5] == tuple(low + (not loses) for low in stricter.ranks.low)
    json.dumps([one.as_dict() for one in (*found.ratings, found.ranks)], allow_nan=False)


def test_votes_of_nothing_but_ties_have_no_maximum():
    found = vote_ratings.paired_ratings([0, 1] * 8, [1, 0] * 8, [0.5] * 16, np.arange(16), n_systems=2, rng=rng())
    assert (found.status, found.ranks.status, found.rated) == ("separation", "separation", ())
    assert all((one.status, one.estimate) == ("separation", None) and one.reason for one in found.ratings)


def test_few_people_who_agree_do_not_make_a_rank_certain():
    all_votes, _ = with_a_perfect_system(rng(12), n_people=9)
    found = vote_ratings.paired_ratings(*all_votes, n_systems=6, rng=rng())
    # Of 15 pairs in two directions at .025, nine people are too few: 2 ** -9 > .025 / 30.
    assert (found.ranks.low[5], found.ranks.high[5]) == (1, 6)


def test_who_beats_a_system_also_beats_those_that_it_beats():
    # Nobody compared the first with the third.
    people = np.tile(np.arange(30), 2)
    first, second = np.repeat([0, 1], 30), np.repeat([1, 2], 30)
    found = vote_ratings.paired_ratings(first, second, np.ones(60), people, n_systems=3, rng=rng())
    assert (found.ranks.low, found.ranks.high, found.rated) == ((1, 2, 3), (1, 2, 3), ())


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_what_an_active_person_alone_connects_is_found_beside_their_many_other_votes(share):
    *rows, _ = votes(rng(1), k=29, n_people=400, mean_votes=50)
    people = np.where(rng(2).random(len(rows[0])) < share, 0, rows[3])
    added = [29, 29], [0, 1], [1, 0], [0, 0]
    all_votes = [np.concatenate(pair) for pair in zip((*rows[:3], people), added, strict=True)]
    found = davidson.fit_davidson(*all_votes, n_systems=30)
    assert found.difference(0, 1).status == "ok"
    assert found.difference(0, 29).status == "not_identified"


def with_one_persons_system(*, people):
    """Votes of 80 people about five ordinary systems, and six votes about a sixth: it won four of them."""
    *rows, _ = votes(rng(13), k=5)
    added = [5] * 6, [0, 1, 2, 3, 0, 1], [1, 0, 1, 1, 1, 0], people
    return [np.concatenate(pair) for pair in zip(rows, added, strict=True)], rows


@pytest.mark.parametrize("person", [0, 80])
def test_a_system_that_one_person_alone_compared_leaves_the_ratings_of_the_others(person):
    all_votes, others = with_one_persons_system(people=[person] * 6)
    found = vote_ratings.paired_ratings(*all_votes, n_systems=6, rng=rng())
    alone = vote_ratings.paired_ratings(*others, n_systems=5, rng=rng())
    assert (found.status, found.rated) == ("not_identified", (0, 1, 2, 3, 4))
    assert [one.estimate for one in found.ratings] == [*(one.estimate for one in alone.ratings), None]
    assert [one.interval for one in found.ratings[:5]] == [one.interval for one in alone.ratings]
    assert found.ratings[5].status == "not_identified" and "one annotator alone" in found.ratings[5].reason
    assert (found.ranks.low[5], found.ranks.high[5]) == (1, 6)
    json.dumps([one.as_dict() for one in (*found.ratings, found.ranks)], allow_nan=False)


def test_a_second_person_gives_a_system_a_rating_whose_error_is_large():
    all_votes, _ = with_one_persons_system(people=[0, 0, 0, 0, 1, 1])
    found = vote_ratings.paired_ratings(*all_votes, n_systems=6, rng=rng())
    assert (found.status, found.rated) == ("ok", tuple(range(6)))
    assert found.ratings[5].detail["se"] > 0.5 and found.ranks.low[5] == 1


def test_the_larger_of_two_groups_that_one_person_connects_has_ratings():
    *rows, _ = votes(rng(14), k=4)
    other = votes(rng(15), k=3)
    joined = [np.r_[rows[0], other[0] + 4], np.r_[rows[1], other[1] + 4], np.r_[rows[2], other[2]]]
    bridge = [0, 1, 2, 3], [4, 5, 6, 4], [1, 0, 1, 0], [200] * 4
    people = np.r_[rows[3], other[3] + 100]
    all_votes = [np.concatenate(pair) for pair in zip((*joined, people), bridge, strict=True)]
    found = vote_ratings.paired_ratings(*all_votes, n_systems=7, rng=rng())
    alone = vote_ratings.paired_ratings(*rows, n_systems=4, rng=rng())
    assert (found.rated, found.ranks.low[4:], found.ranks.high[4:]) == ((0, 1, 2, 3), (1, 2, 3), (5, 6, 7))
    assert [one.interval for one in found.ratings[:4]] == [one.interval for one in alone.ratings]


def test_a_perfect_system_keeps_its_place_beside_one_that_one_person_compared():
    all_votes, others = with_a_perfect_system(rng(11))
    added = [6] * 6, [0, 1, 2, 3, 0, 1], [1, 0, 1, 1, 1, 0], [0] * 6
    rows = [np.concatenate(pair) for pair in zip(all_votes, added, strict=True)]
    found = vote_ratings.paired_ratings(*rows, n_systems=7, rng=rng())
    alone = vote_ratings.paired_ratings(*others, n_systems=5, rng=rng())
    assert (found.status, found.rated) == ("separation", (0, 1, 2, 3, 4))
    assert [one.estimate for one in found.ratings[:5]] == [one.estimate for one in alone.ratings]
    assert found.ratings[5].reason == vote_ratings.ALWAYS_WON and "one annotator" in found.ratings[6].reason
    # The seventh may be better than the sixth.
    assert (found.ranks.low[5], found.ranks.high[5], found.ranks.low[6], found.ranks.high[6]) == (1, 2, 1, 7)


def test_a_covariate_in_which_one_persons_outputs_alone_differ_has_no_estimate():
    *rows, length = votes(rng(16))
    marks = np.where(rows[3] == 0, length, 0.0)
    table = np.column_stack([length, marks])
    found = vote_ratings.paired_ratings(*rows, n_systems=6, rng=rng(), covariates=table)
    assert found.covariates[0].interval is not None and found.ranks.status == "ok"
    assert (found.covariates[1].status, found.covariates[1].estimate) == ("not_identified", None)
    assert "one annotator alone" in found.covariates[1].reason
