"""A mixture-of-betas model of accuracy on test questions, to flag noisy annotators.

Annotator w answers n_w test questions of one type, X_w of them correctly: X_w ~ Binomial(n_w, P_w), with P_w from
a mixture of beta distributions. By the `rate` criterion an annotator is noisy if P_w is below a threshold. By the
`class` criterion, if w belongs to any component except the one with the highest mean. Positive questions (a true
output) and negative ones (an output of something else) have separate fits. Noisy on one type is noisy.

Reference: Genie (Khashabi et al. 2022), section 5 and appendix B.1.
"""

from analysis.stats.mixture._boundaries import FlagBoundaries, flag_boundaries
from analysis.stats.mixture._fit import MixtureFit, fit_beta_mixture
from analysis.stats.mixture._priors import (
    CUTOFF_RULES,
    MODELS,
    PRIORS,
    BetaMixture,
    is_noisy,
    low_accuracy_posterior,
    noisy_annotator_posterior,
    not_best_class_posterior,
)
from analysis.stats.mixture._screening import (
    Screening,
    default_screening_model,
    screen_annotators_by_question_type,
)

__all__ = [
    "BetaMixture",
    "FlagBoundaries",
    "MODELS",
    "MixtureFit",
    "PRIORS",
    "CUTOFF_RULES",
    "Screening",
    "flag_boundaries",
    "not_best_class_posterior",
    "default_screening_model",
    "fit_beta_mixture",
    "is_noisy",
    "noisy_annotator_posterior",
    "low_accuracy_posterior",
    "screen_annotators_by_question_type",
]
