"""Tests and intervals for one sample, two samples and proportions, and the common rules for edge cases.

The rules for edge cases: an undefined number is not printed. No value: `no_data`. One value: `n_lt_2`, with the
value and no interval. No variance: `zero_variance`, without a p-value, and with a betting interval only if the
values are bounded. Missing values (NaN, None) are left out and counted.
"""

from analysis.stats.basic._intervals import (
    degenerate_mean_estimate,
    t_interval,
    t_test,
    two_sided_normal_quantile,
    wald_estimate,
)
from analysis.stats.basic._proportions import clopper_pearson_interval, proportion, wilson_interval
from analysis.stats.basic._ranks import sign_flip_pvalues, sign_test, wilcoxon
from analysis.stats.basic._samples import one_sample_t_test, paired_t_test, welch_t_test
from analysis.stats.basic._shape import CEILING_N, CEILING_SHARE, most_frequent_value_share, skew

__all__ = [
    "CEILING_N",
    "CEILING_SHARE",
    "clopper_pearson_interval",
    "degenerate_mean_estimate",
    "most_frequent_value_share",
    "two_sided_normal_quantile",
    "one_sample_t_test",
    "paired_t_test",
    "proportion",
    "sign_flip_pvalues",
    "sign_test",
    "skew",
    "t_interval",
    "t_test",
    "wald_estimate",
    "welch_t_test",
    "wilcoxon",
    "wilson_interval",
]
