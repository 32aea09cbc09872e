"""Reference numbers, and the estimate from them."""

from analysis.stats import unpaired
from tests.analysis.stats.draws import rng as generator
from tests.analysis.stats.golden import golden

GOLDEN = golden("unpaired")
X, Y = GOLDEN["x"], GOLDEN["y"]


def superior(x=X, y=Y, **more):
    return unpaired.probability_of_superiority(x, y, **{"rng": generator(), "sensitivity_resamples": 499, **more})
