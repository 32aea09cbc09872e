"""Agreement corrected for chance: Fleiss' kappa and Gwet's AC1."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.agreement._counts import (
    PairableUnits,
    estimate_with_unit_bootstrap,
    pairwise_agreement_and_prevalence,
)
from analysis.stats.arrays import MIN_SPREAD, FloatArray, validate_level
from analysis.stats.results import Estimate


def fleiss_kappa(
    counts: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> Estimate:
    """Fleiss' kappa for any number of raters per item, with a bootstrap interval over items.

    Parameters
    ----------
    counts : array_like, shape (n_items, n_categories)
        Number of ratings in each category for each item (see `category_counts_by_unit`). Items with one rating are
        left out.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    Estimate
        Kappa. `n` counts the items used, `detail["n_unpairable"]` the others. `detail` has the share of agreement
        ("percent_agreement"), the agreement expected by chance, and the prevalences. All ratings in one category:
        `not_identified`.

    Notes
    -----
    With n_ij ratings j among n_i: P_i = (sum_j n_ij^2 - n_i) / (n_i (n_i - 1)), p_j = the mean over items of n_ij /
    n_i, kappa = (mean P_i - sum p_j^2) / (1 - sum p_j^2). With equal n_i this is Fleiss' own formula.

    References
    ----------
    Fleiss 1971, Measuring nominal scale agreement among many raters; used in Thorleiksdottir et al. 2021, section 4,
    with choices coded by place on the screen: see `agreement_by_position_and_by_system`.

    Examples
    --------
    >>> result = fleiss_kappa([[3, 0], [1, 3], [0, 3], [2, 0]], rng=np.random.default_rng(0))
    >>> round(result.estimate, 6), result.detail["percent_agreement"]
    (0.746032, 0.875)
    """
    return _chance_corrected(
        counts, _by_squares, "fleiss_kappa", "Fleiss' kappa", level=level, resamples=resamples, rng=rng
    )


def gwet_ac1(
    counts: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> Estimate:
    """Gwet's AC1: agreement corrected for chance, stable if one category prevails.

    Parameters
    ----------
    counts : array_like, shape (n_items, n_categories)
        As for `fleiss_kappa`, with a column for every category that was offered, chosen or not.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    Estimate
        AC1; 1 if all ratings are the same. Fewer than two categories: `not_identified`.

    Notes
    -----
    With P_i and p_j of `fleiss_kappa` and k categories: P_e = sum p_j (1 - p_j) / (k - 1), AC1 = (mean P_i - P_e) /
    (1 - P_e).

    References
    ----------
    Gwet 2008, Computing inter-rater reliability and its variance in the presence of high agreement.

    Examples
    --------
    >>> prevalent = [[10, 0]] * 9 + [[9, 1]]
    >>> round(gwet_ac1(prevalent, rng=np.random.default_rng(0)).estimate, 2)
    0.98
    >>> round(fleiss_kappa(prevalent, rng=np.random.default_rng(0)).estimate, 2)
    -0.01
    """
    return _chance_corrected(counts, _by_spread, "gwet_ac1", "Gwet's AC1", level=level, resamples=resamples, rng=rng)


def _by_squares(shares: FloatArray) -> FloatArray:
    return np.asarray(np.sum(shares**2, axis=1), dtype=np.float64)


def _by_spread(shares: FloatArray) -> FloatArray:
    return np.asarray(np.sum(shares * (1 - shares), axis=1) / (shares.shape[1] - 1), dtype=np.float64)


def _chance_corrected(
    counts: npt.ArrayLike,
    expected_by_chance: Callable[[FloatArray], FloatArray],
    analysis: str,
    estimand: str,
    *,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> Estimate:
    validate_level(level)
    units = PairableUnits.from_counts(counts)
    patterns, weights = units.patterns, units.weights
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": "item",
        "n": units.n_units,
        "n_rows": int(units.marginals.sum()),
        "settings": {"level": level, "resamples": resamples},
    }
    detail: dict[str, Any] = {"n_unpairable": units.n_unpairable, "n_categories": patterns.shape[1]}
    if len(patterns) == 0:
        return units.undefined_estimate(detail, common)
    agreed, shares = pairwise_agreement_and_prevalence(patterns, weights[None, :].astype(np.float64))
    detail |= {"percent_agreement": float(agreed[0]), "prevalence": shares[0]}
    if patterns.shape[1] < 2:
        return Estimate(status="not_identified", reason="there is one category only", detail=detail, **common)
    chance = float(expected_by_chance(shares)[0])
    raters = patterns.sum(axis=1)
    detail |= {"expected_agreement": chance, "raters_per_item": [int(raters.min()), int(raters.max())]}
    if 1 - chance < MIN_SPREAD:
        return Estimate(status="not_identified", reason="all ratings are in one category", detail=detail, **common)

    def coefficients(drawn: FloatArray) -> FloatArray:
        agreeing, prevalence = pairwise_agreement_and_prevalence(patterns, drawn)
        by_chance = expected_by_chance(prevalence)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(1 - by_chance < MIN_SPREAD, np.nan, (agreeing - by_chance) / (1 - by_chance))

    estimate = (float(agreed[0]) - chance) / (1 - chance)
    return estimate_with_unit_bootstrap(estimate, weights, coefficients, rng=rng, detail=detail, **common)
