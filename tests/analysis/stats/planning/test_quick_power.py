"""The closed formulas agree with scipy."""

import pytest
from scipy import stats

from analysis.stats.scalar_forms import t_quantile


@pytest.mark.parametrize("df", [3, 4, 7, 30, 400])
def test_the_quantile_without_scipy_is_that_of_scipy(df):
    assert t_quantile(0.975, df) == pytest.approx(stats.t.ppf(0.975, df), rel=0.002)
