"""The effect of the place on the page on a rating."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import label_codes_where, validate_level, vector
from analysis.stats.results import Estimate


def rating_change_per_position(
    ratings: npt.ArrayLike,
    positions: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    systems: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """Change of a rating per place on the page or in the sequence, clustered by annotator and, if given, by prompt (CV3).

    Parameters
    ----------
    ratings : array_like, shape (n_rows,)
        Ratings; NaN is missing.
    positions : array_like, shape (n_rows,)
        Place of each output, a number.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.
    prompts : array_like, shape (n_rows,), optional
        Label of each row's prompt. Without prompts, or with fewer than five, the effect is about exactly these prompts.
    systems : array_like, shape (n_rows,), optional
        Label of each row's system. Each system gets its own constant, so a system that was often shown first does not
        bias the effect.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The slope of the least-squares regression of rating on place, with the interval and the test of
        `clusters.ModelSpread`.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> annotators = np.repeat(np.arange(10), 3)
    >>> noise = np.tile([0.1, -0.1, 0.0, 0.2, -0.2], 6)
    >>> round(rating_change_per_position(3 - np.tile([0, 1, 2], 10) + noise, np.tile([0, 1, 2], 10), annotators).estimate, 1)
    -1.0
    """
    validate_level(level)
    array, places = vector(ratings, "ratings"), vector(positions, "positions")
    if places.shape != array.shape:
        raise ValueError(f"positions: {len(places)} values where ratings has {len(array)}")
    is_complete = ~np.isnan(array) & ~np.isnan(places)
    labels, n_annotators = label_codes_where(annotators, "annotators", is_complete)
    groups, n_groups = label_codes_where(np.zeros(len(array)) if systems is None else systems, "systems", is_complete)
    common: dict[str, Any] = {
        "analysis": "rating.position_effect",
        "estimand": "change of the rating per place",
        "unit": "annotator",
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": int(is_complete.sum()),
        "settings": {"level": level, "within_systems": systems is not None},
    }
    if not is_complete.any():
        return Estimate(status="no_data", reason="no rating to analyse", **common)
    if n_annotators < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", **common)
    design = np.column_stack([np.eye(n_groups)[groups], places[is_complete]])
    if np.linalg.matrix_rank(design) < n_groups + 1:
        reason = "each system was always at the same place, so that the effect of the place is not known"
        return Estimate(status="not_identified", reason=reason, **common)
    information = design.T @ design
    coefficients = np.linalg.solve(information, design.T @ array[is_complete])
    residuals = array[is_complete] - design @ coefficients
    distinct, cells = np.unique(design, axis=0, return_inverse=True)
    rows = clusters.FittedRows(
        information, design * residuals[:, None], cells.reshape(-1), distinct[:, :, None] * distinct[:, None, :]
    )
    second = None if prompts is None else label_codes_where(prompts, "prompts", is_complete)[0]
    spread = clusters.ModelSpread.from_rows(rows, labels, second, unit="annotator")
    slope = np.zeros(n_groups + 1)
    slope[-1] = 1.0
    return spread.estimate(float(coefficients[-1]), slope, level=level, null=0.0, **common)
