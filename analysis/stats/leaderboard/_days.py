"""Effects of days on the answers about the same systems."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap
from analysis.stats.arrays import validate_level
from analysis.stats.leaderboard._equating import common_fields, drift_test, shift_estimates
from analysis.stats.leaderboard._linking import linked_rounds
from analysis.stats.results import Estimate


def day_effects(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    days: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
) -> tuple[tuple[Estimate, ...], Estimate]:
    """Estimate how answers differ between days (or weekdays) for the same systems, and test it jointly over annotators.

    Answers are in 0..1; NaN is missing. The table has the shift of each day against the first day, without tests of
    single days; the other estimate is the test that no two days differ, and `resamples` counts the normal draws for its
    quantile of the largest deviation. The shifts are those of `equated_scores` with days as rounds and annotators as
    the only sample, so the table describes these items.

    >>> rng = np.random.default_rng(0)
    >>> days, systems, people = np.repeat([1, 2, 3], 80), np.tile(["x", "y"], 120), np.tile(np.arange(20), 12)
    >>> table, joint = day_effects(rng.choice([0.25, 0.5, 0.75], 240), systems, np.arange(240) % 40, people, days, rng=rng)
    >>> len(table), table[0].status, joint.test.name
    (3, 'not_applicable', 'max_t')
    """
    validate_level(level)
    linked = linked_rounds(values, systems, items, annotators, days, items_sampled=False)
    common = common_fields(linked, level)
    table = tuple(replace(one, test=None, analysis="leaderboard.day_shift") for one in shift_estimates(linked, common))
    joint = drift_test(linked, common, level=level, resamples=resamples, rng=rng)
    return table, replace(joint, analysis="leaderboard.day_differences")
