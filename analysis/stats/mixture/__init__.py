"""Who answers test questions so badly that the answers may not count: a mixture-of-betas model of accuracy.

Annotator w answers n_w test questions of one type and X_w of them rightly, X_w ~ Binomial(n_w, P_w), with P_w drawn from
a mixture of beta distributions. An annotator is noisy by the `rate` criterion if P_w lies below a threshold, by the
`class` criterion if w belongs to any component but the one with the highest mean. Positive questions (a true output) and
negative ones (an output of something else) are fitted apart, since a clicker may favour either; noisy on one is noisy.

Source: Genie (Khashabi et al. 2022), section 5 and appendix B.1.
"""

from analysis.stats.mixture._boundaries import FlagBoundaries, flag_boundaries, flag_probability
from analysis.stats.mixture._fit import EM_CONCENTRATION, MixtureFit, fit_beta_mixture
from analysis.stats.mixture._priors import (
    CUTOFF_RULES,
    MODELS,
    PRIORS,
    BetaMixture,
    class_posterior,
    is_noisy,
    noise_posterior,
    rate_posterior,
)
from analysis.stats.mixture._screening import (
    Screening,
    TestAnswerCounts,
    count_test_answers,
    default_model,
    score_answers,
    screen_annotators,
)

__all__ = [
    "BetaMixture",
    "FlagBoundaries",
    "EM_CONCENTRATION",
    "MODELS",
    "MixtureFit",
    "PRIORS",
    "CUTOFF_RULES",
    "Screening",
    "TestAnswerCounts",
    "flag_boundaries",
    "class_posterior",
    "default_model",
    "fit_beta_mixture",
    "flag_probability",
    "is_noisy",
    "noise_posterior",
    "rate_posterior",
    "score_answers",
    "screen_annotators",
    "count_test_answers",
]
