"""System-level probabilistic assessment (SPA): P[x > y] as stated by annotators, in one or both orders of naming.

For a pair (x, y), each annotator answers "what is the % chance that x is better than y?" (`xy_percent`), the same
question with y named first (`yx_percent`), or both. Answers stay on 0..100 until the last step, so that sums are
compared exactly. A row is an annotator, a column a pair. NaN is a question that was not asked or not answered.

Reference: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, sections 5 and 6, appendix B.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import basic, bootstrap, cluster_variances, clusters, margins, power_of_means, prompt_samples
from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    IntArray,
    label_codes,
    matrix,
    mid_ranks,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.results import Estimate, HypothesisTest, Record, ResultWarning

# Check and combine answers in both orders of naming.


BOUNDS = (0.0, 1.0)


def combine_orders(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike) -> FloatArray:
    """Combine the answers of each annotator in both orders to one P[x > y] in 0..1.

    Parameters
    ----------
    xy_percent, yx_percent : array_like, shape (n,) or (n, P)
        Answers on 0..100 with x (or y) named first; NaN is missing.

    Returns
    -------
    ndarray of float
        (p_xy + 1 - p_yx) / 2 if both orders were answered, else the value from the one that was.

    Raises
    ------
    ValueError
        If an answer is outside 0..100 or the shapes differ.

    Notes
    -----
    A preference for the system that is named first cancels out.

    Examples
    --------
    >>> combine_orders([70, 60, None], [30, None, None]).tolist()
    [0.7, 0.6, nan]
    """
    xy, yx = checked_orders(xy_percent, yx_percent)
    total = xy + 100 - yx
    halves = np.where(np.isnan(total), np.where(np.isnan(xy), 2 * (100 - yx), 2 * xy), total)
    return np.asarray(halves / 200, dtype=np.float64)


def share_with_wilson_interval(count: int, n: int, level: float = 0.95) -> dict[str, Any]:
    """Return a share of annotators with Wilson's interval, as a dict for the report."""
    if n == 0:
        return {"count": 0, "n": 0, "share": None, "low": None, "high": None}
    low, high = basic.wilson_interval(count, n, level)
    return {"count": count, "n": n, "share": count / n, "low": low, "high": high}


def checked_orders(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both orders as arrays of one shape. Raise ValueError with the row for an answer outside 0..100."""
    xy, yx = np.asarray(xy_percent, dtype=np.float64), np.asarray(yx_percent, dtype=np.float64)
    if xy.shape != yx.shape:
        raise ValueError(f"yx_percent: shape {yx.shape} where xy_percent has {xy.shape}")
    for name, array in (("xy_percent", xy), ("yx_percent", yx)):
        outside = np.argwhere((array < 0) | (array > 100))
        if len(outside):
            where = tuple(outside[0].tolist())
            raise ValueError(f"{name}: row {where[0]} is {array[where]:g}, outside 0..100")
    return xy, yx


def checked_order_tables(
    xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike, names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Return both orders as tables (annotators by pairs). Raise ValueError unless there is one name for each pair."""
    xy, yx = checked_orders(matrix(xy_percent, "xy_percent"), matrix(yx_percent, "yx_percent"))
    if len(names) != xy.shape[1]:
        raise ValueError(f"names: {len(names)} names where xy_percent has {xy.shape[1]} pairs")
    if len(set(names)) != len(names):
        raise ValueError("names: a pair occurs twice")
    return xy, yx


# Resampling analyses of all pairs from one set of resamples.


@dataclass(frozen=True, slots=True)
class Resamples:
    """Resampling results of all pairs, from one set of resamples of the annotators."""

    values: FloatArray
    bootstrap: FloatArray
    posterior: FloatArray
    sign_flips: FloatArray
    is_exact: bool
    resamples: int

    def sensitivity_estimates(self, column: int, *, level: float) -> list[Estimate]:
        """Return the sensitivity analyses of one pair."""
        observed = self.values[:, column]
        is_observed = ~np.isnan(observed)
        observed = observed[is_observed]
        n, mean = len(observed), float(np.mean(observed))
        varies = float(np.std(observed)) >= MIN_SPREAD
        common: dict[str, Any] = {"unit": "annotator", "n": n, "n_rows": n}
        settings = {"null": 0.5, "level": level, "resamples": self.resamples}
        constant: dict[str, Any] = {"status": "zero_variance", "reason": "all values are equal"}
        flip: dict[str, Any] = constant
        interval: dict[str, Any] = constant
        if varies:
            test = HypothesisTest(
                name="sign_flip", null=0.5, statistic=mean - 0.5, pvalue=float(self.sign_flips[column])
            )
            flip = {"test": test, "detail": {"is_exact": self.is_exact}}
            ones = np.ones(n)
            bca = bootstrap.bootstrap_ratio_interval(mean, self.bootstrap[:, column], observed, ones, level=level)
            interval = {"interval": bca}
        posterior: Estimate
        estimand = "posterior probability that the mean exceeds 0.5"
        named = {"analysis": "spa.pair.bayesian_bootstrap", "estimand": estimand, **common, "settings": settings}
        if varies:
            rest = {key: value for key, value in named.items() if key != "n"}
            posterior = bootstrap.posterior_probability_estimate(
                self.posterior[:, column], n=n, null=0.5, level=level, common=rest
            )
        else:
            posterior = Estimate(**constant, **named)
        return [
            Estimate(
                analysis="spa.pair.sign_flip", estimand="mean", estimate=mean, settings=settings, **common, **flip
            ),
            basic.wilcoxon(observed, null=0.5).labelled(analysis="spa.pair.wilcoxon", unit="annotator"),
            Estimate(analysis="spa.pair.bca", estimand="mean", estimate=mean, settings=settings, **common, **interval),
            posterior,
            basic.sign_test(observed, null=0.5, level=level).labelled(analysis="spa.pair.sign_test", unit="annotator"),
        ]


def draw_resamples_of_all_pairs(values: FloatArray, *, resamples: int, rng: np.random.Generator) -> Resamples:
    """Draw the bootstrap, the Bayesian bootstrap and the sign flips of all pairs; `values` has shape (n_annotators,
    n_pairs).
    """
    is_observed = ~np.isnan(values)
    filled, ones = np.where(is_observed, values, 0.0), is_observed.astype(np.float64)
    n_annotators, n_pairs = values.shape
    if n_annotators == 0:
        empty = np.empty((0, n_pairs))
        return Resamples(values, empty, empty, np.ones(n_pairs), False, resamples)
    for_bootstrap, for_posterior, for_flips = rng.spawn(3)
    draws = bootstrap.ratio_draws(filled, ones, bootstrap.multinomial_weights(n_annotators, resamples, for_bootstrap))
    posterior = bootstrap.ratio_draws(
        filled, ones, bootstrap.unnormalised_dirichlet_weights(n_annotators, resamples, for_posterior)
    )
    pvalues, is_exact = basic.sign_flip_pvalues(values - 0.5, resamples=resamples, rng=for_flips)
    return Resamples(values, draws, posterior, pvalues, is_exact, resamples)


# The paper's exclusion rule on sums (tau), and whether excluding these annotators changes the estimate.


TAU = 1.1
# For the warning that tau changes the estimate.
SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True)
class TauFlags(Record):
    """The annotators that the tau rule flags.

    `incoherent` (n,): for some pair, both answers add up to more than tau. `low_sum` (n,): for some pair, they add up
    to less than 2 - tau; by default this excludes no annotator. `above` and `below` (n, P) give the pairs.
    `is_applicable` (n,): some pair was asked in both orders; the rule does not apply to the other annotators.
    """

    incoherent: BoolArray
    low_sum: BoolArray
    above: BoolArray
    below: BoolArray
    is_applicable: BoolArray
    tau_percent: int


def tau_incoherence_flags(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike, *, tau: float = TAU) -> TauFlags:
    """Flag annotators whose two answers to some pair add up to more than tau.

    The answers (n_annotators, n_pairs) are on 0..100 with x (or y) named first, with NaN for missing, and `tau` is in
    0..2. One pair above tau flags the annotator for all pairs, and a pair asked in one order flags no annotator
    (Ethayarajh and Jurafsky 2022, section 5.2, step 3). Sums are compared with round(100 tau), so .65 + .45 is exactly
    1.1 and passes.

    >>> tau_incoherence_flags([[70], [90], [65]], [[30], [90], [45]]).incoherent.tolist()
    [False, True, False]
    """
    if not 0 <= tau <= 2:
        raise ValueError(f"tau: {tau!r} is not in 0..2")
    xy, yx = checked_orders(matrix(xy_percent, "xy_percent"), matrix(yx_percent, "yx_percent"))
    tau_percent = round(100 * tau)
    sums = xy + yx
    above, below = sums > tau_percent, sums < 200 - tau_percent
    return TauFlags(
        incoherent=np.asarray(np.any(above, axis=1), dtype=np.bool_),
        low_sum=np.asarray(np.any(below, axis=1), dtype=np.bool_),
        above=above,
        below=below,
        is_applicable=np.asarray(np.any(~np.isnan(sums), axis=1), dtype=np.bool_),
        tau_percent=tau_percent,
    )


def gap_preference_correlation(
    xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike, *, level: float = 0.95
) -> Estimate:
    """Correlation of the gap and the combined answer: tests whether excluding annotators by tau changes the estimate.

    Parameters
    ----------
    xy_percent, yx_percent : array_like, shape (n,)
        Answers on 0..100 with x (or y) named first, before any filter.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        Pearson's correlation and its test. `detail` has Spearman's correlation. The warning `tau_asymmetric` appears
        if either is significant at .05.

    Raises
    ------
    ValueError
        If an answer is outside 0..100 or the shapes differ.

    Notes
    -----
    Tau selects on the gap g = p_xy + p_yx - 1. If g correlates with the preference, the selection does too, and the
    null hypothesis of the estimate after tau is not .5 any more. Pearson's correlation of a sum and a difference is
    the Pitman-Morgan test of equal variances. So this one test covers both reasons for asymmetry: unequal noise, and
    acquiescence on one side. Spearman's correlation is for a monotone relation.

    References
    ----------
    Pitman 1939, Morgan 1939, A test for the significance of the difference between two variances.

    Examples
    --------
    >>> gap_preference_correlation([60, 70, 80, 90, 50], [50, 50, 50, 50, 50]).has_warning("tau_asymmetric")
    True
    """
    xy, yx = checked_orders(vector(xy_percent, "xy_percent"), vector(yx_percent, "yx_percent"))
    is_complete = ~np.isnan(xy) & ~np.isnan(yx)
    gap, preference = xy[is_complete] + yx[is_complete] - 100, xy[is_complete] - yx[is_complete]
    n = int(is_complete.sum())
    common: dict[str, Any] = {
        "analysis": "spa.tau_asymmetry",
        "estimand": "correlation of the gap with the combined answer",
        "unit": "annotator",
        "n": n,
        "n_rows": 2 * n,
        "settings": {"significance": SIGNIFICANCE, "level": level},
    }
    if n == 0:
        return Estimate(status="no_data", reason="nobody answered in both orders", **common)
    if n < 4 or float(np.std(gap)) < MIN_SPREAD or float(np.std(preference)) < MIN_SPREAD:
        return Estimate(status="not_identified", reason="too few answers, or no variance, for a correlation", **common)
    pearson, spearman = _correlation(gap, preference), _correlation(mid_ranks(gap), mid_ranks(preference))
    statistic, pvalue = _correlation_test(pearson, n)
    _, spearman_pvalue = _correlation_test(spearman, n)
    warnings: tuple[ResultWarning, ...] = ()
    if min(pvalue, spearman_pvalue) < SIGNIFICANCE:
        warnings = (
            ResultWarning("tau_asymmetric", "warn", {"correlation": pearson, "pvalue": min(pvalue, spearman_pvalue)}),
        )
    return Estimate(
        estimate=pearson,
        interval=basic.fisher_z_interval(pearson, n, level),
        test=HypothesisTest(name="pitman_morgan", null=0.0, statistic=statistic, df=n - 2, pvalue=pvalue),
        warnings=warnings,
        detail={
            "spearman": spearman,
            "spearman_pvalue": spearman_pvalue,
            "variance_xy": float(np.var(xy[is_complete] / 100, ddof=1)),
            "variance_yx": float(np.var(yx[is_complete] / 100, ddof=1)),
        },
        **common,
    )


def estimates_after_tau_exclusion(
    xy: FloatArray,
    yx: FloatArray,
    values: FloatArray,
    flags: TauFlags,
    column: int,
    *,
    level: float,
) -> list[Estimate]:
    """Return the recommended estimate without the annotators flagged by tau, and by its symmetric form."""
    asymmetry = gap_preference_correlation(xy[:, column], yx[:, column])
    estimates = []
    for name, excluded in (("tau", flags.incoherent), ("tau_symmetric", flags.incoherent | flags.low_sum)):
        result = basic.one_sample_t_test(
            values[~excluded, column],
            null=0.5,
            level=level,
            bounds=BOUNDS,
        ).labelled(
            analysis=f"spa.pair.{name}",
            estimand="mean over annotators whose answers add up, both orders combined",
            unit="annotator",
        )
        attached = list(asymmetry.warnings)
        if result.status == "no_data":
            attached.append(ResultWarning("all_excluded", "block", {"n": int(excluded.sum())}))
        detail = {**result.detail, "n_excluded": int((excluded & ~np.isnan(values[:, column])).sum())}
        settings = {**result.settings, "tau_percent": flags.tau_percent}
        estimates.append(replace(result, warnings=(*result.warnings, *attached), detail=detail, settings=settings))
    return estimates


def _correlation(x: FloatArray, y: FloatArray) -> float:
    a, b = x - np.mean(x), y - np.mean(y)
    return float(np.clip(np.sum(a * b) / math.sqrt(float(np.sum(a * a)) * float(np.sum(b * b))), -1.0, 1.0))


def _correlation_test(correlation: float, n: int) -> tuple[float | None, float]:
    unexplained = 1 - correlation**2
    if unexplained < MIN_SPREAD:
        return None, 0.0
    statistic = correlation * math.sqrt((n - 2) / unexplained)
    return statistic, min(1.0, 2 * float(special.stdtr(n - 2, -abs(statistic))))


# The estimate for a pair, in paper mode and in recommended mode.


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
    annotators: npt.ArrayLike | None = None,
    batches: npt.ArrayLike | None = None,
    own_prompts: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
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
    `clusters.annotator_prompt_clustered_mean`, and has no effect without batches. If x and y had prompts of their own, `own_prompts`
    has the labels of both for a pair, in place of `batches` (`prompt_samples.two_prompt_samples_mean`). The sensitivities are sign flips,
    Wilcoxon (a test of symmetry), BCa, the Bayesian bootstrap and the sign test; with `sensitivity_tau`, the threshold
    of the paper's exclusion rule, also the estimate after the paper's rule and after the symmetric rule. All pairs
    share one set of resamples, and an annotator above tau in one pair is excluded from all pairs in that sensitivity,
    so pass the whole study at once. `annotators` are names for `Estimate.answers`. The warnings are `single_order` (some annotators answered in one order only),
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
    people = np.arange(len(values)) if annotators is None else np.asarray(annotators)
    results = {}
    for column, name in enumerate(pair_names):
        population = "" if populations is None else populations.get(name, "")
        own, others = labels, None
        if (both := (own_prompts or {}).get(name)) is not None:
            own, others = (label_codes(np.asarray(sets), "own_prompts", len(values))[0] for sets in both)
        result, batch_warnings = _claim(
            values[:, column], own, people, population=population, level=level, y_batches=others
        )
        counts = _orders(xy[:, column], yx[:, column])
        detail = {**result.detail, **counts, "shares": _shares(values[:, column])}
        if result.status == "ok" and result.settings["method"] != "betting":
            n = max(2, int(result.detail["df"]) + 1)
            detail["detectable_difference"] = power_of_means.t_test_detectable_difference(
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
    values: FloatArray,
    batches: IntArray | None,
    names: npt.NDArray[Any],
    *,
    population: str,
    level: float,
    y_batches: IntArray | None = None,
    null: float = 0.5,
    bounds: tuple[float, float] = BOUNDS,
    analysis: str = "spa.pair",
    estimand: str = "mean over annotators of P[x > y], both orders combined",
) -> tuple[Estimate, list[ResultWarning]]:
    """Return the mean over annotators, with batches as a sample of prompts if there are five or more."""
    is_observed = ~np.isnan(values)
    common: dict[str, Any] = {"null": null, "level": level, "bounds": bounds}
    by_annotator = basic.one_sample_t_test(values, **common)
    by_annotator = by_annotator.labelled(analysis=analysis, estimand=estimand, unit="annotator")
    common |= {"analysis": analysis, "estimand": estimand, "unit": "annotator"}
    people = np.arange(int(is_observed.sum()))
    if batches is None:
        # Sort, so that the order of the annotators has no effect.
        order = np.argsort(values[is_observed], kind="stable")
        result = clusters.clustered_mean(values[is_observed][order], people, **common)
        result = replace(result, _answers=clusters.answers_of_mean(values[is_observed][order], people, None, **common))
        settings = {**result.settings, "population": cluster_variances.PEOPLE}
        result, warnings, components = replace(result, sensitivity=(), settings=settings), [], {}
    else:
        observed, own = values[is_observed], batches[is_observed]
        order = np.lexsort((observed, own))
        n_batches, fewest = len(np.unique(own)), cluster_variances.TOO_FEW_ITEMS
        if y_batches is None:
            result = clusters.annotator_prompt_clustered_mean(
                observed[order], people, own[order], population=population, **common
            )
        else:
            others = y_batches[is_observed]
            n_batches, fewest = min(n_batches, len(np.unique(others))), cluster_variances.TOO_FEW_CLUSTERS
            result = prompt_samples.two_prompt_samples_mean(
                observed[order], own[order], others[order], population=population, **common
            )
        is_shared = y_batches is None and 1 < n_batches < len(observed)
        components = {"batches": cluster_variances.variance_components(observed, own)} if is_shared else {}
        is_few = len(observed) > 1 and n_batches < fewest and population != "people"
        warnings = [ResultWarning("few_batches", "warn", {"n_batches": n_batches})] if is_few else []
        result = replace(
            result, sensitivity=tuple(one for one in result.sensitivity if one.analysis.endswith(".by_annotator"))
        )
    detail = {**by_annotator.detail, **result.detail, **components}
    if batches is not None:
        result = replace(result, warnings=tuple(_about_batches(warning) for warning in result.warnings))
    if "n_prompts" in detail:
        detail["n_batches"] = detail.pop("n_prompts")
    if result.answers is not None:
        result = replace(result, _answers=replace(result.answers, annotators=names[is_observed][order]))
    return replace(result, effect=by_annotator.effect, detail=detail), warnings


# How large a preference is, beside its probability.


def preference_size(
    sizes: npt.ArrayLike, batches: npt.ArrayLike | None, *, half_range: float, population: str = "", level: float = 0.95
) -> Estimate:
    """Estimate how much better x is than y: the mean of one size for each annotator, on -half_range to half_range (NaN missing).

    The interval is that of the stated chances: annotators are clusters and, with five `batches` that share no prompt or
    more, batches too. Nothing is tested, because sizes are read beside the test of the chance.

    >>> result = preference_size([1, 2, 0, 3, -1, 1], None, half_range=3)
    >>> result.estimate, result.n, result.test
    (1.0, 6, None)
    """
    validate_level(level)
    values = vector(sizes, "sizes")
    validate_within_bounds(values, (-half_range, half_range), "sizes")
    labels = None if batches is None else label_codes(np.asarray(batches), "batches", len(values))[0]
    estimand = "mean over annotators of how much better x is than y"
    common: dict[str, Any] = {"null": 0.0, "bounds": (-half_range, half_range), "analysis": "spa.size"}
    result, warnings = _claim(
        values, labels, np.arange(len(values)), population=population, level=level, estimand=estimand, **common
    )
    return replace(result, test=None, effect=None, sensitivity=(), warnings=(*result.warnings, *warnings))


def size_and_chance_agreement(sizes: npt.ArrayLike, chances: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """Estimate the share of annotators whose size (0 is no difference) and chance (.5) lie on the same side, with Wilson's interval.

    Annotators without one of the answers are left out. `detail` counts those with the `same` side, the `opposite` one and
    only one answer in the middle (`one_neutral`), and has Spearman's `correlation`, None without a spread.

    >>> result = size_and_chance_agreement([2, 1, 0, -1], [0.9, 0.6, 0.5, 0.7])
    >>> result.estimate, result.detail["opposite"], round(result.detail["correlation"], 2)
    (0.75, 1, 0.4)
    """
    first, second = vector(sizes, "sizes"), vector(chances, "chances") - 0.5
    is_both = ~np.isnan(first) & ~np.isnan(second)
    first, second = first[is_both], second[is_both]
    sides = np.sign(first) * np.sign(second)
    same = int(np.sum(np.sign(first) == np.sign(second)))
    opposite = int(np.sum(sides < 0))
    result = basic.proportion(same, len(first), level=level)
    is_spread = len(first) > 2 and min(float(np.std(first)), float(np.std(second))) >= MIN_SPREAD
    correlation = _correlation(mid_ranks(first), mid_ranks(second)) if is_spread else None
    counts = {"same": same, "opposite": opposite, "one_neutral": len(first) - same - opposite}
    return replace(
        result,
        analysis="spa.size.agreement",
        estimand="share of annotators whose size and chance are on the same side",
        detail={**result.detail, **counts, "correlation": correlation},
    )


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


# The effect of an exclusion rule on an estimate.


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


# The effect of the order in which the question names the systems.


# A gap between the two orders beyond this many percentage points is counted as one-sided.
GAP_PERCENT = 10
SYMMETRY_MARGIN = 0.05


def naming_order_effect(
    xy_percent: npt.ArrayLike,
    yx_percent: npt.ArrayLike,
    *,
    is_after_tau: bool = False,
    level: float = 0.95,
) -> Estimate:
    """Estimate the effect of the order of naming, the mean gap g = p_xy + p_yx - 1, and test whether it is 0 (t test).

    The answers are on 0..100 with x (or y) named first, and annotators with one order only are left out. If g > 0, the
    system that is named first gains; if g < 0, both answers together are below 1. The convictions p_xy - .5 and .5 -
    p_yx differ by exactly g. A result that is not significant does not show symmetry; the sensitivity is TOST within
    .05, on the scale 0..1, and `detail["verdict"]` joins both tests. `detail["shares"]` counts gaps beyond 10 points to
    either side. Tau excludes large sums, that is large g, so after this filter the data show a negative gap whatever
    the annotators think. With `is_after_tau` there is no answer: the status is `not_applicable`, with the reason
    `circular`. The source is Ethayarajh and Jurafsky 2022, section 6.2 and Figure 1, which report the gap, and Figure 5
    after the filter.

    >>> result = naming_order_effect([70, 80, 65, 30], [30, 25, 45, 20])
    >>> round(result.estimate, 4), result.detail["shares"]["within"]["count"]
    (-0.0875, 3)
    >>> naming_order_effect([70, 80], [30, 20], is_after_tau=True).reason
    'circular'
    """
    labels: dict[str, Any] = {"estimand": "mean over annotators of p_xy + p_yx - 1", "unit": "annotator"}
    settings = {"margin": SYMMETRY_MARGIN, "level": level, "gap_percent": GAP_PERCENT}
    if is_after_tau:
        return Estimate(
            analysis="spa.order_symmetry",
            n=0,
            status="not_applicable",
            reason="circular",
            warnings=(ResultWarning("circular", "block", {"rule": "incoherent"}),),
            settings=settings,
            **labels,
        )
    xy, yx = checked_orders(vector(xy_percent, "xy_percent"), vector(yx_percent, "yx_percent"))
    gaps = xy + yx - 100
    gaps = gaps[~np.isnan(gaps)]
    result = basic.one_sample_t_test(gaps / 100, null=0.0, level=level, bounds=(-1.0, 1.0))
    result = result.labelled(analysis="spa.order_symmetry", **labels)
    tost = margins.equivalence_test(
        gaps / 100, null=0.0, margin=SYMMETRY_MARGIN, significance=1 - level, bounds=(-1.0, 1.0)
    ).labelled(analysis="spa.order_symmetry.equivalence", **labels)
    n = len(gaps)
    shares = {}
    for name, count in (
        ("above", int(np.sum(gaps > GAP_PERCENT))),
        ("within", int(np.sum(np.abs(gaps) <= GAP_PERCENT))),
        ("below", int(np.sum(gaps < -GAP_PERCENT))),
    ):
        shares[name] = share_with_wilson_interval(count, n, level)
    verdict = margins.difference_and_equivalence_verdict(result.pvalue, tost.pvalue, significance=1 - level)
    return replace(
        result,
        n_rows=2 * n,
        sensitivity=(tost,),
        detail={**result.detail, "shares": shares, "verdict": verdict},
        settings=settings,
    )
