import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import effects


@pytest.mark.parametrize("statistic,df", [(3.3, 9), (-0.3, 3), (0.0, 20), (25.0, 89), (-12.0, 499)])
def test_the_ends_put_the_observed_t_at_the_tails(statistic, df):
    low, high = effects.noncentrality_interval(statistic, df)
    assert_allclose(stats.nct.cdf(statistic, df, low), 0.975, atol=1e-9)
    assert_allclose(stats.nct.cdf(statistic, df, high), 0.025, atol=1e-9)


def test_a_nan_of_the_library_in_the_far_tail_is_no_end_of_the_interval(monkeypatch):
    honest, whole = effects.noncentrality_interval(1.5, 2000), effects.special.nctdtr

    def holed(df, noncentrality, statistic):
        far = abs(noncentrality - statistic) > 3.2
        return math.nan if far else whole(df, noncentrality, statistic)

    monkeypatch.setattr(effects.special, "nctdtr", holed)
    assert_allclose(effects.noncentrality_interval(1.5, 2000), honest, atol=1e-9)
    monkeypatch.setattr(effects.special, "nctdtr", lambda *_: math.nan)
    assert effects.noncentrality_interval(1.5, 2000) is None


def test_many_units_and_any_statistic_have_an_interval():
    rng = np.random.default_rng(4)
    for df, statistic in zip(rng.integers(500, 6000, 300), rng.normal(0, 4, 300), strict=True):
        low, high = effects.noncentrality_interval(float(statistic), float(df))
        assert low < statistic < high


def test_swapping_the_direction_swaps_the_interval():
    values = np.random.default_rng(0).normal(0.3, 1, 20)
    up, down = effects.cohen_dz(values, null=0), effects.cohen_dz(-values, null=0)
    assert_allclose([up.value, up.low, up.high], [-down.value, -down.high, -down.low], atol=1e-9)


def test_no_variance_has_no_effect_size():
    assert effects.cohen_dz([1, 1, 1], null=0) is None
    assert effects.cohen_dz([1], null=0) is None
    assert effects.cohen_d([1, 1], [1, 1]) is None


def test_two_groups_agree_with_the_pooled_t():
    x, y = np.random.default_rng(1).normal(0, 1, 12), np.random.default_rng(2).normal(0.5, 2, 9)
    effect = effects.cohen_d(x, y)
    assert_allclose(effect.value, stats.ttest_ind(x, y).statistic * math.sqrt(1 / 12 + 1 / 9))
    assert effect.low < effect.value < effect.high
    assert abs(effect.hedges_g) < abs(effect.value)
