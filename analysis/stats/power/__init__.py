"""Power, detectable effects and sample sizes, exact for the tests of this library: t, F, binomial, Fisher, TOST.

Observed power, at the effect that was found, depends only on the p-value and adds nothing. Print the smallest
effect that this n can detect instead.
"""

from analysis.stats.power._anova import anova_detectable_effect, anova_power, n_per_group_for_anova
from analysis.stats.power._means import (
    equivalence_power,
    n_for_equivalence,
    n_for_t_test,
    power_from_tails,
    t_test_detectable_difference,
    t_test_power,
)
from analysis.stats.power._paired_shares import (
    n_for_paired_proportions,
    paired_proportions_detectable_difference,
    paired_proportions_power,
)
from analysis.stats.power._shares import (
    n_for_proportion,
    n_for_two_proportions,
    proportion_detectable_increase,
    proportion_power,
    two_proportions_detectable_increase,
    two_proportions_power,
)
from analysis.stats.power._two_samples import (
    n_for_two_sample_t_test,
    two_sample_detectable_difference,
    two_sample_t_test_power,
)

__all__ = [
    "anova_detectable_effect",
    "anova_power",
    "t_test_detectable_difference",
    "equivalence_power",
    "n_per_group_for_anova",
    "n_for_equivalence",
    "n_for_paired_proportions",
    "n_for_t_test",
    "n_for_proportion",
    "n_for_two_proportions",
    "n_for_two_sample_t_test",
    "paired_proportions_detectable_difference",
    "paired_proportions_power",
    "proportion_detectable_increase",
    "proportion_power",
    "power_from_tails",
    "t_test_power",
    "two_proportions_detectable_increase",
    "two_proportions_power",
    "two_sample_detectable_difference",
    "two_sample_t_test_power",
]
