"""Reference numbers and tables of right answers for the tests of attention."""

import numpy as np

from analysis.stats import mixture
from tests.analysis.stats.golden import golden

GOLDEN = golden("mixture")
# Where the published algorithm stops on the pseudo-data; as a cap it makes the fast fit end beside it.
EM_CONCENTRATION = 5000.0
GRID = np.array(GOLDEN["grid"])
FIXED = {name: model for name, model in mixture.MODELS.items() if isinstance(model[1], str)}
# The better component is so narrow about .97 that 300 right of 300 rather belong to the "noisy" one.
NARROW = mixture.BetaMixture((0.3, 0.7), (9.0, 9700.0), (0.5, 300.0))


def table_of(model, questions, **options):
    criterion, prior = mixture.MODELS[model]
    return mixture.flag_boundaries(mixture.PRIORS[prior], questions, criterion=criterion, **options)


def cumulative_flag_probability(at_most, accuracy, *, skip_rate=0.0):
    """The exact probability that an annotator has been flagged after each question, a neutral answer not being counted.

    A forward recursion over (counted, correct): ``at_most`` is the boundary after each number of counted answers.
    """
    wrong, n = max(0.0, 1 - accuracy - skip_rate), len(at_most)
    alive, flagged, total = np.zeros((n + 1, n + 1)), np.zeros(n), 0.0
    alive[0, 0] = 1.0
    stops = np.zeros((n + 1, n + 1), dtype=bool)
    for counted, boundary in enumerate(at_most, start=1):
        if boundary is not None:
            stops[counted, : boundary + 1] = True
    for question in range(n):
        step = skip_rate * alive
        step[1:, :] += wrong * alive[:-1, :]
        step[1:, 1:] += accuracy * alive[:-1, :-1]
        total += float(step[stops].sum())
        step[stops] = 0.0
        alive, flagged[question] = step, total
    return flagged


def by_now(model, positive, negative, asked=20, skip_rate=0.0):
    """The probability that someone was flagged on either type by so many questions of each, looked at after each."""
    at_most = table_of(model, range(1, asked + 1)).at_most
    one, other = (cumulative_flag_probability(at_most, p, skip_rate=skip_rate) for p in (positive, negative))
    return 1 - (1 - one) * (1 - other)
