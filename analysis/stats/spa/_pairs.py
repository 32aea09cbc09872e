"""The estimate for a pair, in paper mode and in recommended mode."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, bootstrap, clusters, power
from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    label_codes,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.results import Estimate, ResultWarning
from analysis.stats.spa._answers import BOUNDS, checked_order_tables, combine_orders, share_with_wilson_interval
from analysis.stats.spa._resamples import draw_resamples_of_all_pairs
from analysis.stats.spa._tau import TAU, estimates_after_tau_exclusion, tau_incoherence_flags


def pair_preference_paper(percent: npt.ArrayLike, *, is_after_tau: bool = False, level: float = 0.95) -> Estimate:
    """The paper's estimate for a pair: the mean of P[x > y] asked in one order, and Student's t test against .5.

    Parameters
    ----------
    percent : array_like, shape (n,)
        One answer per annotator on 0..100; NaN is missing.
    is_after_tau : bool, default False
        Whether annotators above tau were excluded before. The estimate is then biased downwards even without a
        preference (warning `tau_one_order_bias`, severity block).
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The mean and the test, in mode "paper".

    Notes
    -----
    The p-value is not the probability that x is worse, and 1 - p is not the probability that x is better.

    References
    ----------
    Section 5.2, steps 2 and 4; Table 1 (with Holm over the pairs, see `multiplicity.adjust_pvalues_and_intervals_of_family`).

    Examples
    --------
    >>> round(pair_preference_paper([70, 80, 65, 30]).pvalue, 4)
    0.3769
    """
    answers = vector(percent, "percent")
    validate_within_bounds(answers[~np.isnan(answers)], (0.0, 100.0), "percent")
    result = basic.one_sample_t_test(
        answers / 100,
        null=0.5,
        level=level,
        bounds=BOUNDS,
        mode="paper",
    ).labelled(
        analysis="spa.pair", estimand="mean over annotators of P[x > y], asked with x named first", unit="annotator"
    )
    if not is_after_tau:
        return result
    biased = ResultWarning("tau_one_order_bias", "block", {"direction": "downwards"})
    return replace(result, warnings=(*result.warnings, biased))


def pair_preferences_recommended(
    xy_percent: npt.ArrayLike,
    yx_percent: npt.ArrayLike,
    *,
    pair_names: Sequence[str],
    rng: np.random.Generator,
    sensitivity_tau: float | None = TAU,
    batches: npt.ArrayLike | None = None,
    populations: Mapping[str, str] | None = None,
    level: float = 0.95,
    sensitivity_resamples: int = bootstrap.RESAMPLES,
) -> dict[str, Estimate]:
    """Estimate the mean of the combined answers of every pair in the recommended way, and test it against .5 by t.

    All annotators count. Answers, of shape (n_annotators, n_pairs), are on 0..100 with x (or y) named first, NaN if
    missing; the result is {name: Estimate} with d_z, and without a test if there are fewer than six annotators.
    `detail` has n_xy, n_yx, n_both, n_single, sd, the shares above, at and below .5 with Wilson intervals, and the
    difference detectable with power .8. Batches with different labels (or groups of batches) must not share a prompt:
    with five labels or more the claim is about prompts like these, too, otherwise about exactly these prompts;
    `populations`, {name: "people_and_prompts" or "people"}, says what the claim of a pair is about, see
    `clusters.annotator_prompt_clustered_mean`, and has no effect without batches. The sensitivities are sign flips,
    Wilcoxon (a test of symmetry), BCa, the Bayesian bootstrap and the sign test; with `sensitivity_tau`, the threshold
    of the paper's exclusion rule, also the estimate after the paper's rule and after the symmetric rule. All pairs
    share one set of resamples, and an annotator above tau in one pair is excluded from all pairs in that sensitivity,
    so pass the whole study at once. The warnings are `single_order` (some annotators answered in one order only),
    `order_not_identified` (all were asked in the same order, so being named first and being better cannot be
    separated), `few_batches`, and those of `clusters.annotator_prompt_clustered_mean`; on the sensitivities after tau
    they are `tau_asymmetric` (see `gap_preference_correlation`) and `all_excluded`.

    >>> answers = {"xy": [[70], [80], [65], [30]], "yx": [[30], [25], [45], [20]]}
    >>> result = pair_preferences_recommended(answers["xy"], answers["yx"], pair_names=["a > b"], rng=np.random.default_rng(0))
    >>> result["a > b"].detail["n_both"], [other.analysis for other in result["a > b"].sensitivity][:2]
    (4, ['spa.pair.sign_flip', 'spa.pair.wilcoxon'])
    """
    validate_level(level)
    xy, yx = checked_order_tables(xy_percent, yx_percent, pair_names)
    values = combine_orders(xy, yx)
    shared = draw_resamples_of_all_pairs(values, resamples=sensitivity_resamples, rng=rng)
    flags = None if sensitivity_tau is None else tau_incoherence_flags(xy, yx, tau=sensitivity_tau)
    labels = None if batches is None else label_codes(np.asarray(batches), "batches", len(values))[0]
    results = {}
    for column, name in enumerate(pair_names):
        population = "" if populations is None else populations.get(name, "")
        result, batch_warnings = _claim(values[:, column], labels, population=population, level=level)
        counts = _orders(xy[:, column], yx[:, column])
        detail = {**result.detail, **counts, "shares": _shares(values[:, column])}
        if result.status == "ok" and result.settings["method"] != "betting":
            n = max(2, int(result.detail["df"]) + 1)
            detail["detectable_difference"] = power.t_test_detectable_difference(
                n, sd=float(result.detail["se"]) * math.sqrt(n), significance=1 - level
            )
        sensitivity = list(result.sensitivity)
        if result.n >= 2:
            sensitivity += shared.sensitivity_estimates(column, level=level)
        warnings = [*result.warnings, *_order_warnings(counts), *batch_warnings]
        if flags is not None and counts["n_both"]:
            sensitivity += estimates_after_tau_exclusion(xy, yx, values, flags, column, level=level)
        settings = {**result.settings, "margin": None, "tau": sensitivity_tau, "resamples": sensitivity_resamples}
        results[name] = replace(
            result,
            n_rows=counts["n_xy"] + counts["n_yx"],
            sensitivity=tuple(sensitivity),
            warnings=tuple(warnings),
            detail=detail,
            settings=settings,
        )
    return results


def _claim(
    values: FloatArray, batches: IntArray | None, *, population: str, level: float
) -> tuple[Estimate, list[ResultWarning]]:
    """Return the mean over annotators, with batches as a sample of prompts if there are five or more."""
    is_observed = ~np.isnan(values)
    estimand = "mean over annotators of P[x > y], both orders combined"
    common: dict[str, Any] = {"null": 0.5, "level": level, "bounds": BOUNDS}
    by_annotator = basic.one_sample_t_test(values, **common)
    by_annotator = by_annotator.labelled(analysis="spa.pair", estimand=estimand, unit="annotator")
    common |= {"analysis": "spa.pair", "estimand": estimand, "unit": "annotator"}
    people = np.arange(int(is_observed.sum()))
    if batches is None:
        # Sort, so that the order of the annotators has no effect.
        result = clusters.clustered_mean(np.sort(values[is_observed]), people, **common)
        settings = {**result.settings, "population": clusters.PEOPLE}
        result, warnings, components = replace(result, sensitivity=(), settings=settings), [], {}
    else:
        observed, own = values[is_observed], batches[is_observed]
        order = np.lexsort((observed, own))
        result = clusters.annotator_prompt_clustered_mean(
            observed[order], people, own[order], population=population, **common
        )
        n_batches = len(np.unique(own))
        is_shared = 1 < n_batches < len(observed)
        components = {"batches": clusters.variance_components(observed, own)} if is_shared else {}
        is_few = len(observed) > 1 and n_batches < clusters.TOO_FEW_ITEMS and population != "people"
        warnings = [ResultWarning("few_batches", "warn", {"n_batches": n_batches})] if is_few else []
        result = replace(
            result, sensitivity=tuple(one for one in result.sensitivity if one.analysis.endswith(".by_annotator"))
        )
    detail = {**by_annotator.detail, **result.detail, **components}
    if batches is not None:
        result = replace(result, warnings=tuple(_about_batches(warning) for warning in result.warnings))
    if "n_prompts" in detail:
        detail["n_batches"] = detail.pop("n_prompts")
    return replace(result, effect=by_annotator.effect, detail=detail), warnings


def _about_batches(warning: ResultWarning) -> ResultWarning:
    """Return the warning with batches as the clusters that are called items."""
    is_about_items = warning.detail.get("cluster") == "item"
    return replace(warning, detail={**warning.detail, "cluster": "batch"}) if is_about_items else warning


def _orders(xy: FloatArray, yx: FloatArray) -> dict[str, int]:
    has_xy, has_yx = ~np.isnan(xy), ~np.isnan(yx)
    return {
        "n_xy": int(has_xy.sum()),
        "n_yx": int(has_yx.sum()),
        "n_both": int((has_xy & has_yx).sum()),
        "n_single": int((has_xy ^ has_yx).sum()),
    }


def _order_warnings(counts: Mapping[str, int]) -> list[ResultWarning]:
    if counts["n_xy"] + counts["n_yx"] == 0:
        return []
    warnings = []
    if counts["n_single"]:
        warnings.append(ResultWarning("single_order", "info", {"n": counts["n_single"]}))
    if counts["n_xy"] == 0 or counts["n_yx"] == 0:
        warnings.append(ResultWarning("order_not_identified", "warn", {"n_xy": counts["n_xy"], "n_yx": counts["n_yx"]}))
    return warnings


def _shares(values: FloatArray) -> dict[str, Any]:
    observed = values[~np.isnan(values)]
    n = len(observed)
    above, below = int(np.sum(observed > 0.5)), int(np.sum(observed < 0.5))
    return {
        name: share_with_wilson_interval(k, n)
        for name, k in (("above", above), ("equal", n - above - below), ("below", below))
    }
