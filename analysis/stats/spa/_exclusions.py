"""The effect of an exclusion rule on an estimate."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap
from analysis.stats.arrays import FloatArray, matrix, validate_level
from analysis.stats.results import Estimate, ResultWarning


def exclusion_effects_by_rule(
    values: npt.ArrayLike,
    kept_by_rule: Mapping[str, npt.ArrayLike],
    *,
    names: Sequence[str],
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
) -> dict[str, dict[str, Estimate]]:
    """Estimate the effect of each exclusion rule on each estimate: mean after minus mean before.

    `values`, of shape (n_annotators, n_columns), has one column per pair, NaN if missing, and each mask of
    `kept_by_rule` is True for the annotators who remain; the result is {rule: {name: Estimate}}. The interval is a
    nested bootstrap: both means are computed in each resample of annotators, because those who remain are part of all,
    whereas a t test would treat the two groups as different people. A rule whose limit depends on other annotators
    (`too_fast`) counts as applied: its limit is not found again in each resample. If no annotator remains, the status
    is `no_data` with the warning `all_excluded`.

    >>> result = exclusion_effects_by_rule([[0.2], [0.6], [0.7]], {"too_fast": [False, True, True]}, names=["a > b"],
    ...                      rng=np.random.default_rng(0), resamples=999)
    >>> round(result["too_fast"]["a > b"].estimate, 4)
    0.15
    """
    validate_level(level)
    table = matrix(values, "values")
    n_annotators, n_columns = table.shape
    if len(names) != n_columns:
        raise ValueError(f"names: {len(names)} names where values has {n_columns} columns")
    masks = {}
    for rule, mask in kept_by_rule.items():
        array = np.asarray(mask)
        if array.shape != (n_annotators,) or array.dtype != np.bool_:
            raise ValueError(f"kept: {rule}: expected {n_annotators} booleans")
        masks[rule] = array
    is_observed = ~np.isnan(table)
    filled, ones = np.where(is_observed, table, 0.0), is_observed.astype(np.float64)
    sides = [np.ones(n_annotators, dtype=np.bool_), *masks.values()]
    sums = np.concatenate([filled * side[:, None] for side in sides], axis=1)
    counts = np.concatenate([ones * side[:, None] for side in sides], axis=1)
    draws = np.empty((0, sums.shape[1]))
    if n_annotators:
        weights = bootstrap.multinomial_weights(n_annotators, resamples, rng)
        draws = bootstrap.ratio_draws(sums, counts, weights)
    results: dict[str, dict[str, Estimate]] = {}
    for number, rule in enumerate(masks, start=1):
        results[rule] = {}
        for column, name in enumerate(names):
            later = number * n_columns + column
            results[rule][name] = _change(
                sums[:, [column, later]].sum(axis=0),
                counts[:, [column, later]].sum(axis=0),
                draws[:, later] - draws[:, column],
                settings={"rule": rule, "level": level, "resamples": resamples},
            )
    return results


def _change(sums: FloatArray, counts: FloatArray, draws: FloatArray, *, settings: dict[str, Any]) -> Estimate:
    n_before, n_after = int(counts[0]), int(counts[1])
    common: dict[str, Any] = {
        "analysis": "spa.before_after",
        "estimand": f"mean after - mean before the rule {settings['rule']}",
        "unit": "annotator",
        "n": n_before,
        "n_rows": n_before,
        "settings": settings,
    }
    detail: dict[str, Any] = {"n_before": n_before, "n_after": n_after}
    if n_before == 0:
        return Estimate(status="no_data", reason="no value to analyse", detail=detail, **common)
    detail["before"] = float(sums[0] / counts[0])
    if n_after == 0:
        excluded = (ResultWarning("all_excluded", "block", {"rule": settings["rule"], "n": n_before}),)
        return Estimate(status="no_data", reason="the rule keeps nobody", detail=detail, warnings=excluded, **common)
    detail["after"] = float(sums[1] / counts[1])
    change = detail["after"] - detail["before"]
    if n_before == n_after:
        reason = "the rule excludes nobody"
        return Estimate(status="not_applicable", reason=reason, estimate=0.0, detail=detail, **common)
    defined = draws[np.isfinite(draws)]
    # A resample without kept annotators has no mean after the rule; leaving out many would narrow the interval.
    interval = None
    if len(defined) >= 0.99 * len(draws):
        interval = bootstrap.percentile_interval(defined, float(settings["level"]))
    warnings: tuple[ResultWarning, ...] = ()
    if interval is None:
        warnings = (ResultWarning("undefined_resamples", "warn", {"share": 1 - len(defined) / max(1, len(draws))}),)
    return Estimate(estimate=change, interval=interval, detail=detail, warnings=warnings, **common)
