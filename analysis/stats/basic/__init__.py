"""Tests and intervals for one sample, two samples and proportions, and the common rules for edge cases.

The rules for edge cases: an undefined number is not printed. No value: `no_data`. One value: `n_lt_2`, with the
value and no interval. No variance: `zero_variance`, without a p-value, and with a betting interval only if the
values are bounded. Missing values (NaN, None) are left out and counted.
"""

from analysis.stats.basic._intervals import degenerate_estimate, normal_quantile, t_interval, t_test, wald
from analysis.stats.basic._proportions import clopper_pearson, proportion, wilson
from analysis.stats.basic._ranks import sign_flip, sign_flip_pvalues, sign_test, wilcoxon
from analysis.stats.basic._samples import one_sample, paired, welch
from analysis.stats.basic._shape import CEILING_N, CEILING_SHARE, largest_share, skew

__all__ = [
    "CEILING_N",
    "CEILING_SHARE",
    "clopper_pearson",
    "degenerate_estimate",
    "largest_share",
    "normal_quantile",
    "one_sample",
    "paired",
    "proportion",
    "sign_flip",
    "sign_flip_pvalues",
    "sign_test",
    "skew",
    "t_interval",
    "t_test",
    "wald",
    "welch",
    "wilcoxon",
    "wilson",
]
