"""Reference numbers and the ratings of a shared task."""

import numpy as np

from analysis.stats import unpaired
from tests.analysis.stats.draws import rng as generator
from tests.analysis.stats.golden import golden

GOLDEN = golden("unpaired")
X, Y = GOLDEN["x"], GOLDEN["y"]


def superior(x=X, y=Y, **more):
    return unpaired.probability_of_superiority(x, y, **{"rng": generator(), "sensitivity_resamples": 499, **more})


def ranked(values, systems, segments, **more):
    return unpaired.significance_clusters(values, systems, segments, **more)


def shared_task(means, n=80, seed=0, sd=1.0):
    rng = generator(seed)
    names = np.array([f"s{number}" for number in range(len(means))])
    values = np.concatenate([rng.normal(mean, sd, n) for mean in means])
    return values, np.repeat(names, n), np.tile(np.arange(n), len(means))
