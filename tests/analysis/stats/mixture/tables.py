"""Reference numbers and tables of right answers for the tests of attention."""

import numpy as np

from analysis.stats import mixture
from tests.analysis.stats.golden import golden

GOLDEN = golden("mixture")
GRID = np.array(GOLDEN["grid"])
FIXED = {name: model for name, model in mixture.MODELS.items() if isinstance(model[1], str)}
# The better component is so narrow about .97 that 300 right of 300 rather belong to the "noisy" one.
NARROW = mixture.BetaMixture((0.3, 0.7), (9.0, 9700.0), (0.5, 300.0))


def table_of(model, questions, **options):
    criterion, prior = mixture.MODELS[model]
    return mixture.flag_boundaries(mixture.PRIORS[prior], questions, criterion=criterion, **options)


def by_now(model, positive, negative, asked=20, skip_rate=0.0):
    """The probability that someone was flagged on either type by so many questions of each, looked at after each."""
    at_most = table_of(model, range(1, asked + 1)).at_most
    one, other = (mixture.cumulative_flag_probability(at_most, p, skip_rate=skip_rate) for p in (positive, negative))
    return 1 - (1 - one) * (1 - other)
