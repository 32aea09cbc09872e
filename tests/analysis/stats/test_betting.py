import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import betting
from tests.analysis.stats.golden import golden

GOLDEN = golden("betting")


def test_wealth_agrees_with_an_independent_implementation():
    assert_allclose(np.exp(betting.log_wealth(GOLDEN["x"], 0.5)), GOLDEN["wealth"], atol=1e-6)


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


def test_it_covers_where_a_t_interval_does_not():
    # Nineteen in twenty answers are 1, the rest 0: the mean is .95 and n = 20.
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(200):
        interval = betting.betting_interval((rng.random(20) < 0.95).astype(float), grid=201)
        covered += interval.low <= 0.95 <= interval.high
    assert covered >= 0.95 * 200
