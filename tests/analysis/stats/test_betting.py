import json
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import betting
from analysis.stats.results import json_safe
from tests.analysis.stats.golden import golden

GOLDEN = golden("betting")


def decimal_bettor(values, null, level):
    """The bettor in sixty digits, one value at a time; also how often the stake was cut."""
    with localcontext() as context:
        context.prec = 60
        m, alpha, half = Decimal(str(null)), 1 - Decimal(str(level)), Decimal("0.5")
        up = down = Decimal(1)
        total, squares, variance, wealth, n_cut = half, half**2, half**2, [], 0
        for t, value in enumerate(values, start=1):
            x = Decimal(str(value))
            stake = (2 * (2 / alpha).ln() / (variance * t * Decimal(t + 1).ln())).sqrt()
            n_cut += stake > half / m
            up *= 1 + min(stake, half / m) * (x - m)
            down *= 1 - min(stake, half / (1 - m)) * (x - m)
            total += x
            squares += (x - total / (t + 1)) ** 2
            variance = squares / (t + 1)
            wealth.append(float((up + down) / 2))
    return wealth, n_cut


def test_wealth_agrees_with_an_independent_implementation():
    assert_allclose(np.exp(betting.log_wealth(GOLDEN["x"], 0.5)), GOLDEN["wealth"], atol=1e-6)


def test_wealth_over_a_long_series_agrees_with_sixty_digits():
    # Once the stake is no longer cut the running variance counts, which ten values never show.
    long, other = GOLDEN["long"], GOLDEN["long_other_null"]
    wealth, n_cut = decimal_bettor(long["x"], long["null"], long["level"])
    assert len(wealth) == 160 and n_cut < 40
    assert_allclose(wealth, long["wealth"], rtol=1e-14)
    assert_allclose(np.exp(betting.log_wealth(long["x"], long["null"], level=long["level"])), wealth, rtol=1e-9)
    other_wealth, _ = decimal_bettor(long["x"], other["null"], other["level"])
    assert_allclose(other_wealth, other["wealth"], rtol=1e-14)
    found = betting.log_wealth(long["x"], other["null"], level=other["level"])
    assert_allclose(np.exp(found), other_wealth, rtol=1e-9)


def test_wealth_of_values_that_all_lie_near_one_half_agrees_with_sixty_digits():
    near = GOLDEN["near"]
    wealth, n_cut = decimal_bettor(near["x"], near["null"], near["level"])
    assert max(abs(x - 0.5) for x in near["x"]) < 0.25 and 0 < n_cut < 300 < len(wealth)
    at = np.array(near["wealth_at"]) - 1
    assert_allclose(np.array(wealth)[at], near["wealth"], rtol=1e-14)
    assert_allclose(np.exp(betting.log_wealth(near["x"], 0.5))[at], near["wealth"], rtol=1e-9)


def test_the_means_kept_agree_with_an_independent_implementation():
    nulls = np.linspace(0, 1, 1001)
    kept = nulls[betting.log_wealth(GOLDEN["x"], nulls).max(axis=1) < np.log(20)]
    assert_allclose([kept[0], kept[-1]], GOLDEN["kept_grid"], atol=1e-12)


def test_wealth_matches_a_bettor_who_plays_value_by_value():
    # Long and near .5, where the stakes are not capped: the recursion written out, one value at a time.
    values = np.clip(np.random.default_rng(3).normal(0.52, 0.15, 150), 0, 1)
    null, level = 0.5, 0.95
    total, squares, up, down, wealth, capped = 0.5, 0.25, 1.0, 1.0, [], 0
    variance = 0.25
    for t, value in enumerate(values, start=1):
        stake = np.sqrt(2 * np.log(2 / (1 - level)) / (variance * t * np.log(t + 1)))
        capped += stake > 0.5 / null
        up *= 1 + min(stake, 0.5 / null) * (value - null)
        down *= 1 - min(stake, 0.5 / (1 - null)) * (value - null)
        total += value
        squares += (value - total / (t + 1)) ** 2
        variance = squares / (t + 1)
        wealth.append((up + down) / 2)
    assert capped < 75
    assert_allclose(np.exp(betting.log_wealth(values, null)), wealth, rtol=1e-10)


def test_before_any_value_the_wealth_is_one_and_nothing_is_known():
    assert betting.log_wealth([], 0.5).shape == (0,)
    assert betting.betting_interval([]) is None
    assert betting.betting_pvalue([], 0.5) == 1


def test_the_interval_does_not_depend_on_who_is_called_what():
    values = np.random.default_rng(0).uniform(0, 1, 40)
    assert betting.betting_interval(values) == betting.betting_interval(values[::-1])


def test_the_interval_moves_with_the_scale():
    values = np.random.default_rng(1).uniform(0, 1, 40)
    unit, percent = betting.betting_interval(values), betting.betting_interval(100 * values, bounds=(0, 100))
    assert_allclose([percent.low, percent.high], [100 * unit.low, 100 * unit.high], rtol=1e-12)


def test_values_outside_their_bounds_are_refused():
    with pytest.raises(ValueError, match="values: row 0 is 1.2"):
        betting.betting_interval([1.2])
    with pytest.raises(ValueError, match="missing"):
        betting.log_wealth([0.5, None], 0.5)


def test_a_null_outside_the_scale_is_refused():
    with pytest.raises(ValueError, match="null: 1.5"):
        betting.log_wealth([0.5], [0.2, 1.5])


def test_the_sequence_keeps_what_nobody_has_got_rich_against():
    values = np.random.default_rng(4).beta(2, 3, 120)
    sequence = betting.betting_confidence_sequence(values, level=0.9)
    nulls = np.linspace(0, 1, betting.GRID)
    wealth = betting.log_wealth(values, nulls, level=0.9)
    for n in (1, 7, 40, 120):
        kept = nulls[wealth[:, :n].max(axis=1) < math.log(10)]
        interval = sequence.interval_after(n)
        assert_allclose([interval.low, interval.high], [max(0, kept[0] - 0.001), min(1, kept[-1] + 0.001)], atol=1e-12)
    assert np.all(np.diff(sequence.low) >= 0) and np.all(np.diff(sequence.high) <= 0)
    assert sequence.drift_at is None


def test_the_sequence_mirrors_its_values():
    values = np.random.default_rng(5).beta(2, 3, 60)
    straight, mirrored = betting.betting_confidence_sequence(values), betting.betting_confidence_sequence(1 - values)
    assert_allclose(mirrored.low, 1 - straight.high, atol=1e-9)


def test_a_sequence_narrower_than_the_grid_is_not_taken_for_drift():
    sequence = betting.betting_confidence_sequence(np.full(3000, 0.1234567), grid=101)
    assert sequence.drift_at is None
    last = sequence.interval_after(3000)
    assert last.low < 0.1234567 < last.high and last.high - last.low < 0.005


def test_a_mean_that_moves_is_drift():
    sequence = betting.betting_confidence_sequence(np.repeat([0.0, 1.0], 200))
    assert 200 < sequence.drift_at < 400
    assert sequence.interval_after(400) == sequence.interval_after(sequence.drift_at)
    assert np.all(sequence.low <= sequence.high)


def test_a_sequence_of_nothing_has_no_interval():
    sequence = betting.betting_confidence_sequence([])
    assert len(sequence.low) == 0 and sequence.drift_at is None
    with pytest.raises(ValueError, match="n: 1"):
        sequence.interval_after(1)
    with pytest.raises(ValueError, match="grid"):
        betting.betting_confidence_sequence([0.5], grid=2)
    json.dumps(json_safe(betting.betting_confidence_sequence([0.2, 0.3]).as_dict()), allow_nan=False)


def test_the_sequence_covers_at_every_look():
    rng, missed = np.random.default_rng(6), 0
    for _ in range(100):
        sequence = betting.betting_confidence_sequence(rng.beta(1.5, 1, 80), level=0.8, grid=201)
        missed += bool(np.any((sequence.low > 0.6) | (sequence.high < 0.6)))
    # Nominal .2; three standard errors more are .32.
    assert missed <= 32


def test_the_pvalue_and_the_interval_agree():
    draw, n_rejected = np.random.default_rng(8), 0
    for _ in range(60):
        values = (draw.random(int(draw.integers(6, 40))) < 0.9).astype(float)
        null = float(draw.choice([0.6, 0.7, 0.8]))
        interval = betting.betting_interval(values)
        is_rejected = betting.betting_pvalue(values, null) < 0.05
        n_rejected += is_rejected
        # The interval is one step of .001 wider than the means that are not refuted.
        assert is_rejected or interval.low <= null <= interval.high
        assert not is_rejected or not interval.low + 0.002 < null < interval.high - 0.002
    assert 10 < n_rejected < 50


def test_it_covers_where_a_t_interval_does_not():
    # Nineteen in twenty answers are 1, the rest 0: the mean is .95 and n = 20.
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(200):
        interval = betting.betting_interval((rng.random(20) < 0.95).astype(float), grid=201)
        covered += interval.low <= 0.95 <= interval.high
    assert covered >= 0.95 * 200


def test_units_of_one_weight_are_bet_on_as_their_means():
    sums = np.array([3.0, 1.0, 4.0, 2.0, 4.0, 4.0])
    even = betting.betting_ratio_interval(sums, np.full(6, 4.0))
    assert even == betting.betting_interval(sums / 4)
    # In points, and with a unit of no weight, it is the same interval.
    points = betting.betting_ratio_interval([0.0, *(100 * sums)], [0.0, *np.full(6, 4.0)], bounds=(0, 100))
    assert_allclose([points.low, points.high], [100 * even.low, 100 * even.high])
    assert betting.betting_ratio_interval([], []) is None and betting.betting_ratio_interval([0], [0]) is None


def test_a_ratio_is_bet_on_where_those_who_answer_much_answer_otherwise():
    # Who gives more than ten answers is right in .99, who gives fewer in .85: the mean of the means is another number.
    draw = np.random.default_rng(5)

    def answers(n_annotators):
        counts = np.minimum(np.ceil(2 * (draw.pareto(1.2, n_annotators) + 1)), 60).astype(int)
        return draw.binomial(counts, np.where(counts > 10, 0.99, 0.85)), counts

    sums, counts = answers(1_000_000)
    truth, runs, ours, of_means = sums.sum() / counts.sum(), 200, 0, 0
    for _ in range(runs):
        sums, counts = answers(40)
        interval, other = (
            betting.betting_ratio_interval(sums, counts, grid=201),
            betting.betting_interval(sums / counts, grid=201),
        )
        assert interval.low <= sums.sum() / counts.sum() <= interval.high
        ours += interval.low <= truth <= interval.high
        of_means += other.low <= truth <= other.high
    assert ours / runs >= 0.95 and of_means / runs < 0.9


def test_a_ratio_says_what_is_wrong_with_its_units():
    for sums, counts, word in (
        ([1, 2], [1], "counts"),
        ([1.0, math.nan], [1, 1], "counts"),
        ([1, 1], [1, -1], "counts"),
    ):
        with pytest.raises(ValueError, match=word):
            betting.betting_ratio_interval(sums, counts)
    with pytest.raises(ValueError, match="sums: row 1 is 1.5"):
        betting.betting_ratio_interval([1, 3], [1, 2])
