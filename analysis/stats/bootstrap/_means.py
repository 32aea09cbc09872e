"""Bootstrap and Bayesian bootstrap of a mean."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, betting
from analysis.stats.arrays import (
    FloatArray,
    group_sizes,
    group_sums,
    label_codes_where,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.bootstrap._draws import RESAMPLES, bootstrap_ratios, ratio_draws, unnormalised_dirichlet_weights
from analysis.stats.bootstrap._intervals import bootstrap_ratio_interval, percentile_interval
from analysis.stats.results import Estimate, ResultWarning


def bootstrap_mean(
    values: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    method: str = "bca",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    bounds: tuple[float, float] | None = None,
    analysis: str = "bootstrap_mean",
    estimand: str = "mean",
    unit: str = "annotator",
    mode_label: str = "recommended",
) -> Estimate:
    """Mean of the values with a bootstrap interval over clusters (annotators).

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values; NaN is missing.
    clusters : array_like, shape (n_rows,), optional
        Label of each row's cluster; each row is a cluster if None.
    method : {"bca", "percentile"}, default 'bca'
        Kind of interval; BCa falls back to percentile if it is undefined.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default RESAMPLES
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.
    bounds : tuple[float, float], optional
        Ends of the scale.
    analysis, unit, mode_label : str, optional
        Labels that are copied to the record.
    estimand : str, default 'mean'
        Description of the estimated number.

    Returns
    -------
    Estimate
        The mean. Clusters are resampled with all their rows, so it is label-weighted. Constant data within `bounds`
        get a betting interval over the clusters. So do data with nine in ten answers equal and fewer than 100
        clusters (warning `ceiling`).

    Examples
    --------
    >>> result = bootstrap_mean([0, 0.25, 0.5, 1, 1, 0.75], rng=np.random.default_rng(0), resamples=999)
    >>> round(result.estimate, 4), result.interval.method
    (0.5833, 'bca')
    """
    validate_level(level)
    array = vector(values, "values")
    labels = np.arange(len(array)) if clusters is None else np.asarray(clusters)
    is_observed = ~np.isnan(array)
    observed = array[is_observed]
    if bounds is not None:
        validate_within_bounds(observed, bounds, "values")
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode_label,
        "n_rows": len(observed),
        "settings": {"method": method, "level": level, "resamples": resamples, "bounds": bounds},
    }
    if len(observed) == 0:
        return Estimate(n=0, status="no_data", reason="no value to analyse", **common)
    positions, n_clusters = label_codes_where(labels, "clusters", is_observed)
    sums = group_sums(positions, observed, n_clusters)
    counts = group_sizes(positions, n_clusters)
    mean = float(np.mean(observed))
    common |= {
        "n": n_clusters,
        "n_clusters": n_clusters,
        "estimate": mean,
        "detail": {"n_missing": int((~is_observed).sum())},
    }
    if n_clusters == 1:
        return Estimate(status="n_lt_2", reason="one cluster has no spread", **common)
    draws = bootstrap_ratios(sums, counts, resamples=resamples, rng=rng)
    interval = bootstrap_ratio_interval(mean, draws, sums, counts, method=method, level=level)
    bet = None if bounds is None else betting.betting_ratio_interval(sums, counts, level=level, bounds=bounds)
    if interval is None:
        return Estimate(status="zero_variance", reason="all resamples have the same mean", interval=bet, **common)
    warnings: tuple[ResultWarning, ...] = ()
    if (
        bet is not None
        and n_clusters < basic.CEILING_N
        and basic.most_frequent_value_share(observed) >= basic.CEILING_SHARE
    ):
        detail = {f"{interval.method}_low": interval.low, f"{interval.method}_high": interval.high}
        warnings = (
            ResultWarning("ceiling", "warn", {"largest_share": basic.most_frequent_value_share(observed), **detail}),
        )
        interval = bet
    return Estimate(interval=interval, warnings=warnings, **common)


def posterior_probability_above(draws: FloatArray, null: float) -> float:
    """Share of Bayesian bootstrap draws above `null`.

    Parameters
    ----------
    draws : ndarray of float, shape (resamples,)
        Draws of the mean.
    null : float
        Value that the mean is compared with.

    Returns
    -------
    float
        The share; a draw equal to `null` counts half.

    Examples
    --------
    >>> posterior_probability_above(np.array([0.4, 0.5, 0.6, 0.7]), 0.5)
    0.625
    """
    return (float(np.mean(draws > null)) + float(np.mean(draws >= null))) / 2


def bayesian_bootstrap_probability_above(
    values: npt.ArrayLike,
    *,
    null: float,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "bayesian_bootstrap",
    unit: str = "annotator",
    mode_label: str = "recommended",
) -> Estimate:
    """Posterior probability that the mean exceeds `null`, by the Bayesian bootstrap.

    Parameters
    ----------
    values : array_like, shape (n,)
        One value per unit; NaN is missing.
    null : float
        Value that the mean is compared with.
    level : float, default 0.95
        Level of the credible interval, between 0 and 1.
    resamples : int, default RESAMPLES
        Number of draws.
    rng : numpy.random.Generator
        Source of the random draws.
    analysis, unit, mode_label : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The probability, which is not 1 - p; there is no test. `detail` has the credible interval of the mean. Weights
        come from a flat Dirichlet distribution; nothing else is assumed.

    Examples
    --------
    >>> result = bayesian_bootstrap_probability_above([0.6, 0.7, 0.5, 0.9], null=0.5, rng=np.random.default_rng(0), resamples=999)
    >>> result.estimate
    1.0
    """
    array = vector(values, "values")
    observed = array[~np.isnan(array)]
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": f"posterior probability that the mean exceeds {null:g}",
        "unit": unit,
        "mode": mode_label,
        "n_rows": len(observed),
        "settings": {"null": null, "level": level, "resamples": resamples},
    }
    edge = basic.degenerate_mean_estimate(observed, **{key: value for key, value in common.items() if key != "n_rows"})
    if edge is not None:
        # The estimate is a probability here, so the mean is removed.
        return Estimate(n=len(observed), status=edge.status, reason=edge.reason, **common)
    draws = ratio_draws(
        observed[:, None], np.ones((len(observed), 1)), unnormalised_dirichlet_weights(len(observed), resamples, rng)
    )[:, 0]
    return posterior_probability_estimate(draws, n=len(observed), null=null, level=level, common=common)


def posterior_probability_estimate(
    draws: FloatArray, *, n: int, null: float, level: float, common: dict[str, Any]
) -> Estimate:
    """Build the estimate of `bayesian_bootstrap_probability_above` from existing draws.

    Parameters
    ----------
    draws : ndarray of float, shape (resamples,)
        Draws of the mean.
    n : int
        Number of units.
    null : float
        Value that the mean is compared with.
    level : float
        Level of the credible interval, between 0 and 1.
    common : dict
        The other fields of the estimate.

    Returns
    -------
    Estimate
        The probability; `detail` has the credible interval of the mean.

    Examples
    --------
    >>> common = {"analysis": "a", "estimand": "b", "unit": "annotator"}
    >>> posterior_probability_estimate(np.array([0.6, 0.7]), n=2, null=0.5, level=0.95, common=common).estimate
    1.0
    """
    credible = percentile_interval(draws, level)
    ends = {} if credible is None else {"level": level, "low": credible.low, "high": credible.high}
    return Estimate(n=n, estimate=posterior_probability_above(draws, null), detail={"mean_credible": ends}, **common)
