"""The audit of a board of scores."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap, leaderboard, ratings
from analysis.stats.arrays import validate_within_bounds, vector
from analysis.stats.board_audit._probes import ALPHA, Probe, fires_by_test, neutral_share_probe, separation_probe
from analysis.stats.board_audit._voters import heavy_voter_probe


def audit_scores(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    positions: npt.ArrayLike | None = None,
    rounds: npt.ArrayLike | None = None,
    samples: npt.ArrayLike | None = None,
    alpha: float = ALPHA,
    items_sampled: bool = True,
    item_groups: npt.ArrayLike | None = None,
    resamples: int = bootstrap.RESAMPLES,
) -> tuple[Probe, ...]:
    """Compute the probes of a board of scores: place on the page, neutral answers, heavy voters, separation, and drift.

    Each row is an answer in 0..1; NaN is missing and .5 is neutral. Without `positions`, the place of each output on
    the page, there is no probe of the place; without `rounds`, the round or the part of the time of each row, there is
    no probe of drift. Drift needs systems with answers in several rounds (`leaderboard.equated_scores`) and compares
    rounds on one sample of items; `samples` says which one each row counts in (`leaderboard.rows_of_samples`).
    `items_sampled` says whether the claims go beyond the items of the study, and `item_groups` are what is sampled in
    place of items, such as the document of each row's item. `resamples` counts the normal draws for the quantile of the
    largest deviation.

    >>> rng = np.random.default_rng(0)
    >>> people, systems, items = np.tile(np.arange(20), 12), np.repeat(["a", "b"], 120), np.tile(np.arange(60), 4)
    >>> values = rng.choice([0, 0.25, 0.5, 0.75, 1], 240)
    >>> [(probe.name, probe.fires) for probe in audit_scores(values, systems, items, people, rng=rng, resamples=999)]
    [('neutral_share', False), ('heavy_voter', False), ('separation', True)]
    """
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    item_groups = items if item_groups is None else item_groups
    options: dict[str, Any] = {"rng": rng, "items_sampled": items_sampled, "resamples": resamples}
    options["item_groups"] = item_groups
    sampled = item_groups if items_sampled else None
    probes = []
    if positions is not None:
        effect = ratings.rating_change_per_position(
            100 * array,
            positions,
            annotators,
            sampled,
            systems=systems,
        ).labelled(analysis="board_audit.position")
        probes.append(fires_by_test("position", effect, alpha))
    is_neutral = np.where(np.isnan(array), np.nan, array == 0.5)
    probes.append(neutral_share_probe(is_neutral, annotators, sampled, alpha=alpha))
    weights = leaderboard.equal_item_weights(array, systems, items)
    probes.append(heavy_voter_probe(array, systems, annotators, weights=weights))
    board = leaderboard.leaderboard(array, systems, items, annotators, **options)
    probes.append(separation_probe(board.ranks))
    if rounds is not None:
        equated = leaderboard.equated_scores(array, systems, items, annotators, rounds, samples=samples, **options)
        probes.append(fires_by_test("drift", equated.drift, alpha))
    return tuple(probes)
