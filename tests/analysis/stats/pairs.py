"""The recommended estimate of one pair of systems, for tests that need no more."""

import numpy as np

from analysis.stats import spa


def one_pair(xy_percent, yx_percent, *, rng, batches=None, **options):
    """Answers (n,) of annotators on 0..100 with x named first, and with y named first."""
    xy, yx = (np.asarray(answers, dtype=float)[:, None] for answers in (xy_percent, yx_percent))
    return spa.pair_preferences_recommended(xy, yx, pair_names=["pair"], batches=batches, rng=rng, **options)["pair"]
