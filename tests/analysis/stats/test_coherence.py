from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import coherence
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

TABLE_1 = golden("spa")["table_1"]
TRIANGLE = [(0, 1), (1, 2), (0, 2)]


def by_definition(row, pairs, n_systems):
    """Violated triples, counted one annotator, one triple and one order at a time."""
    p = {}
    for (x, y), value in zip(pairs, row, strict=True):
        p[x, y], p[y, x] = value, 1 - value
    counts = dict.fromkeys(coherence.TRANSITIVITIES, 0)
    n_triples = 0
    for triple in combinations(range(n_systems), 3):
        if not all((a, b) in p and not np.isnan(p[a, b]) for a, b in combinations(triple, 2)):
            continue
        n_triples += 1
        for name, bound in (("weak", lambda a, b: 0.5), ("moderate", min), ("strong", max)):
            counts[name] += any(
                p[a, b] >= 0.5 and p[b, c] >= 0.5 and p[a, c] < bound(p[a, b], p[b, c]) - 1e-9
                for a, b, c in permutations(triple)
            )
    return counts, n_triples


@pytest.mark.parametrize("seed", range(3))
def test_violations_agree_with_the_definition(seed):
    draw = rng(seed)
    pairs = [pair if draw.random() < 0.5 else pair[::-1] for pair in combinations(range(5), 2)]
    values = draw.integers(0, 9, (6, len(pairs))) / 8
    values[draw.random(values.shape) < 0.1] = np.nan
    found = coherence.transitivity_violation_shares(values, pairs, n_systems=5)
    rows = [by_definition(row, pairs, 5) for row in values]
    for estimate, name in zip(found, coherence.TRANSITIVITIES, strict=True):
        shares = [counts[name] / n for counts, n in rows if n]
        assert_allclose(estimate.estimate, np.mean(shares))
        assert estimate.detail["n_violations"] == sum(counts[name] for counts, _ in rows)
        assert estimate.detail["n_triples"] == sum(n for _, n in rows)
        assert estimate.test is None


def test_strength_implies_moderate_implies_weak():
    values = rng(4).integers(0, 101, (200, 10)) / 100
    weak, moderate, strong = coherence.transitivity_violation_shares(
        values, list(combinations(range(5), 2)), n_systems=5
    )
    assert weak.estimate < moderate.estimate < strong.estimate


def test_coherent_annotators_violate_nothing_and_have_an_honest_interval():
    values = np.tile([0.6, 0.7, 0.8], (30, 1))
    weak, moderate, strong = coherence.transitivity_violation_shares(values, TRIANGLE, n_systems=3)
    assert (weak.status, weak.estimate, weak.interval.method) == ("zero_variance", 0.0, "betting")
    assert strong.estimate == 0


def test_without_a_full_triple_there_is_nothing_to_count():
    found = coherence.transitivity_violation_shares([[0.5, 0.6]], [(0, 1), (1, 2)], n_systems=3)
    assert [estimate.status for estimate in found] == ["not_applicable"] * 3


def test_a_clear_cycle_is_found_with_its_probability():
    draw = rng(5)
    values = np.clip([0.7, 0.7, 0.3] + draw.normal(0, 0.1, (40, 3)), 0, 1)
    found = coherence.coherence(values, TRIANGLE, n_systems=3, rng=rng(), resamples=999)
    assert found.cycles == ((0, 1, 2),)
    assert found.cycle.estimate == 1.0 and found.cycle.detail["is_cyclic"]
    ordered = coherence.coherence(values * [1, 1, 0] + [0, 0, 0.8], TRIANGLE, n_systems=3, rng=rng(), resamples=999)
    assert (ordered.cycles, ordered.cycle.estimate) == ((), 0.0)


def test_an_even_match_is_uncertain_about_its_cycle():
    values = np.clip(np.array([0.8, 0.8, 0.5]) + rng(6).normal(0, 0.1, (40, 3)), 0, 1)
    assert 0.02 < coherence.coherence(values, TRIANGLE, n_systems=3, rng=rng(), resamples=999).cycle.estimate < 0.98


def test_two_separate_cycles_are_both_named():
    pairs = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3)]
    found = coherence.coherence([[0.9] * 7], pairs, n_systems=6, rng=rng(), resamples=9)
    assert found.cycles == ((0, 1, 2), (3, 4, 5))


def test_the_published_cycle_sum():
    number = {name: position for position, name in enumerate("ABCDE")}
    pairs = [(number[pair[0]], number[pair[2]]) for pair in TABLE_1["p"]]
    (found,) = coherence.fundamental_cycle_log_odds_sums(
        [list(TABLE_1["p"].values())], pairs, np.empty((0, 5)), n_systems=5
    )
    assert_allclose(found.estimate, TABLE_1["cycle_logit_sum"], atol=1e-9)
    assert_allclose(found.detail["implied_framing"], TABLE_1["implied_framing_intercept"], atol=1e-9)
    assert sorted(found.detail["cycle"]) == [0, 1, 2, 3, 4]
    assert found.has_warning("not_one_scale")


def test_one_bradley_terry_scale_sums_to_zero_around_every_cycle():
    strengths = np.array([0.9, 0.2, -0.1, -0.8, 0.4])
    pairs = list(combinations(range(5), 2))
    values = 1 / (1 + np.exp(-np.array([[strengths[x] - strengths[y] for x, y in pairs]])))
    found = coherence.fundamental_cycle_log_odds_sums(values, pairs, np.empty((0, 10)), n_systems=5)
    assert len(found) == 10 - 5 + 1
    assert_allclose([estimate.estimate for estimate in found], 0, atol=1e-12)


def test_a_mixture_of_coherent_annotators_does_not_sum_to_zero():
    scales = np.array([[3.0, 0.0, -1.0], [-1.0, 2.0, 0.0]])[np.arange(60) % 2]
    values = 1 / (1 + np.exp(-np.column_stack([scales[:, x] - scales[:, y] for x, y in TRIANGLE])))
    found = coherence.coherence(values, TRIANGLE, n_systems=3, rng=rng(), resamples=999)
    assert all(estimate.estimate == 0 for estimate in found.transitivity[:1])
    (total,) = found.cycle_sums
    assert not total.interval.low <= 0 <= total.interval.high


def test_resamples_without_a_sum_are_counted_and_left_out():
    pairs = [(0, 1), (1, 2), (2, 0)]
    one_answered = np.array([[0.9, 0.9, 0.2], [0.8, 0.8, 0.3], *[[np.nan, 0.7, 0.4], [np.nan, 0.6, 0.5]] * 2])
    draws = coherence.bootstrap_pair_means(one_answered, resamples=999, rng=np.random.default_rng(0))
    missing = np.isnan(draws[:, 0])
    (found,) = coherence.fundamental_cycle_log_odds_sums(one_answered, pairs, draws, n_systems=3)
    defined = np.log(draws[~missing] / (1 - draws[~missing])).sum(axis=1)
    assert found.interval.low == pytest.approx(np.quantile(defined, 0.025)) and 0 < missing.mean() < 0.5
    (warning,) = [one for one in found.warnings if one.code == "undefined_resamples"]
    assert warning.detail["share"] == pytest.approx(missing.mean())
    # Where a resample's mean is 1 its sum is infinite: an interval without it would be too narrow.
    extreme = np.array([[1.0, 0.9, 0.2], [1.0, 0.8, 0.3], [0.2, 0.7, 0.4]])
    draws = coherence.bootstrap_pair_means(extreme, resamples=999, rng=np.random.default_rng(0))
    (found,) = coherence.fundamental_cycle_log_odds_sums(extreme, pairs, draws, n_systems=3)
    assert found.estimate is not None and found.interval is None and found.has_warning("undefined_resamples")


def test_a_mean_of_one_has_no_log_odds():
    (found,) = coherence.fundamental_cycle_log_odds_sums([[1.0, 0.5, 0.5]], TRIANGLE, np.empty((0, 3)), n_systems=3)
    assert (found.status, found.estimate) == ("not_identified", None)


def test_edge_cases_are_statuses():
    empty = coherence.coherence(np.empty((0, 3)), TRIANGLE, n_systems=3, rng=rng())
    assert empty.cycle.status == "no_data" and empty.cycle_sums == ()
    one = coherence.coherence([[0.6]], [(0, 1)], n_systems=2, rng=rng(), resamples=9)
    assert one.cycle.status == "not_applicable" and one.cycle_sums == ()
    # A sum without a spread has no interval, and says why.
    for answers, status in (([[0.6, 0.7, 0.4]], "n_lt_2"), ([[0.6, 0.7, 0.4]] * 5, "zero_variance")):
        (found,) = coherence.coherence(answers, TRIANGLE, n_systems=3, rng=rng(), resamples=99).cycle_sums
        assert (found.status, found.interval, bool(found.reason)) == (status, None, True) and found.estimate is not None
    for pairs, word in (([(0, 1), (1, 0)], "occurs twice"), ([(0, 0), (0, 1)], "row 0"), ([(0, 1), (1, 7)], "row 1")):
        with pytest.raises(ValueError, match=word):
            coherence.coherence([[0.5, 0.5]], pairs, n_systems=3, rng=rng())
