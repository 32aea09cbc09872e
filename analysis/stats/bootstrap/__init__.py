"""Bootstrap and Bayesian bootstrap, computed from sums and counts of units instead of rows.

Rows of one annotator are not independent, so annotators are resampled. One draw of weights for all annotators
serves every mean of a report as one matrix product. The cost does not grow with the number of rows.
"""

from analysis.stats.bootstrap._draws import (
    BLOCK,
    RESAMPLES,
    monte_carlo_error,
    multinomial_weights,
    ratio_draws,
    unnormalised_dirichlet_weights,
)
from analysis.stats.bootstrap._intervals import (
    bca_interval,
    bootstrap_ratio_interval,
    estimate_with_percentile_interval,
    leave_one_out_ratios,
    percentile_interval,
)
from analysis.stats.bootstrap._means import (
    posterior_probability_above,
    posterior_probability_estimate,
)

__all__ = [
    "BLOCK",
    "RESAMPLES",
    "bca_interval",
    "unnormalised_dirichlet_weights",
    "bootstrap_ratio_interval",
    "leave_one_out_ratios",
    "monte_carlo_error",
    "multinomial_weights",
    "estimate_with_percentile_interval",
    "percentile_interval",
    "posterior_probability_above",
    "posterior_probability_estimate",
    "ratio_draws",
]
