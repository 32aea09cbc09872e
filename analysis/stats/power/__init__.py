"""Power, detectable effects and sample sizes, exact for the tests of this library: t, F, binomial, Fisher, TOST.

Observed power, at the effect that was found, depends only on the p-value and adds nothing. Print the smallest
effect that this n can detect instead.
"""

from analysis.stats.power._anova import anova_detectable, anova_power, cohen_f, n_for_anova
from analysis.stats.power._means import (
    detectable_effect,
    equivalence_power,
    n_for_equivalence,
    n_for_power,
    n_for_two_samples,
    safe_power,
    t_power,
    two_sample_detectable,
    two_sample_power,
)
from analysis.stats.power._shares import (
    n_for_paired_proportions,
    n_for_proportion,
    n_for_two_proportions,
    paired_proportions_detectable,
    paired_proportions_power,
    proportion_detectable,
    proportion_power,
    two_proportions_detectable,
    two_proportions_power,
)

__all__ = [
    "anova_detectable",
    "anova_power",
    "cohen_f",
    "detectable_effect",
    "equivalence_power",
    "n_for_anova",
    "n_for_equivalence",
    "n_for_paired_proportions",
    "n_for_power",
    "n_for_proportion",
    "n_for_two_proportions",
    "n_for_two_samples",
    "paired_proportions_detectable",
    "paired_proportions_power",
    "proportion_detectable",
    "proportion_power",
    "safe_power",
    "t_power",
    "two_proportions_detectable",
    "two_proportions_power",
    "two_sample_detectable",
    "two_sample_power",
]
