"""Reference numbers and simulated answers for the tests of human likeness."""

import numpy as np

from analysis.stats import signal_detection
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("detection")


def study(seed=0, n_annotators=80, per=6, n_items=40, d_prime=0.8, criterion=0.3, sd=0.5, sd_items=0.2):
    """Ratings 1..4 by annotators with criteria of their own, of texts half of which are a machine's."""
    draw = rng(seed)
    who = np.repeat(np.arange(n_annotators), per)
    items = draw.integers(0, n_items, len(who))
    truth = items % 2
    strength = (truth - 0.5) * d_prime + draw.normal(0, sd_items, n_items)[items] - criterion
    strength += draw.normal(0, 1, len(who)) - draw.normal(0, sd, n_annotators)[who]
    return np.digitize(strength, [-0.9, 0.0, 0.9]) + 1.0, truth, who, items


def says_of(ratings):
    return signal_detection.ratings_to_machine_answers(ratings)
