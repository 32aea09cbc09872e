"""One and two samples, proportions and the tests that need no model; and, once for all, the law of edge cases.

The law: a number that is not defined is not printed. No value: `no_data`. One value: `n_lt_2`, the value itself, no
interval. No variance: `zero_variance`, no p-value (a library would return 0), and an interval only where the values
are bounded, by betting. Missing values (NaN, None) are left out and counted, never read as 0.
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
