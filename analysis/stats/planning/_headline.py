"""The headline of many simulated studies at once, with the numbers of `clusters.annotator_prompt_clustered_mean`."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from analysis.stats import clusters, equivalence, margins, score_curve
from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray, IntArray, label_codes
from analysis.stats.plan_inputs import EQUIVALENCE, StudySize, Target
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True)
class Headlines(Record):
    """What the report of each run says: arrays of shape (runs,).

    `low` and `high` are NaN without an interval. `is_difference`: the report claims a difference, `is_reached`: it claims
    the goal of the plan. `by_bets`: bets replace the t test. `pvalue`: that of the test which decides the goal, 1 without
    a test. `larger`: with a margin of equivalence, the larger of the p-values of difference and of equivalence.
    """

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    is_difference: BoolArray
    is_reached: BoolArray
    by_bets: BoolArray
    pvalue: FloatArray
    larger: FloatArray


def headlines(
    values: FloatArray, people: IntArray, prompts: IntArray | None, size: StudySize, target: Target
) -> Headlines:
    """Analyse many runs as the report analyses one.

    Parameters
    ----------
    values : ndarray of float, shape (runs, n_rows)
        Values, none missing.
    people, prompts : ndarray of int, shape (n_rows,)
        Annotator and prompt of each row, the same in every run. Without prompts, people are the only clusters.
    size, target : StudySize, Target
        The scale of the headline, and the goal of the plan.

    Returns
    -------
    Headlines
        The estimates, intervals and claims.

    Notes
    -----
    The score curve with the jackknife variances of `clusters.two_way_jackknife`, computed for all runs at once. Runs with
    hardly any spread, or with more skewed answers than the ends of the scale explain, are analysed one by one by `clusters.annotator_prompt_clustered_mean`,
    which then bets.

    Examples
    --------
    >>> from analysis.stats.planning import assign_prompts, simulate_answers
    >>> from analysis.stats.plan_inputs import Variation
    >>> size, target, rng = StudySize(protocol="two_choice", people=20, prompts=30, prompts_each=15), Target(), np.random.default_rng(0)
    >>> who, what = assign_prompts(size, rng)
    >>> values = simulate_answers(size, target, Variation(), who, what, runs=50, rng=rng)
    >>> ours = headlines(values, who, what, size, target)
    >>> one = clusters.annotator_prompt_clustered_mean(values[7], who, what, null=0.5, bounds=(0, 1), analysis="demo")
    >>> bool(abs(ours.low[7] - one.interval.low) < 1e-12), bool(ours.is_difference[7]) == (one.pvalue < 0.05)
    (True, True)
    """
    person_codes, n_people = label_codes(people, "people", len(people))
    is_two_way = False
    if prompts is not None:
        prompt_codes, n_prompts = label_codes(prompts, "prompts", len(prompts))
        is_two_way = target.population == "people_and_prompts" and n_prompts >= clusters.TOO_FEW_ITEMS
    mean = values.mean(axis=1)
    if n_people < 2:
        nothing = np.full(len(values), np.nan)
        no = np.zeros(len(values), dtype=np.bool_)
        ones = np.ones(len(values))
        return Headlines(mean, nothing, nothing, no, no, no, ones, ones)
    residuals = values - mean[:, None]
    is_bounded = size.bounds is not None
    variance, df, moments = _jackknife(residuals, person_codes, n_people, is_bounded)
    none = (np.zeros(len(values)), np.zeros(len(values)))
    skewness = clusters.combined_skewness(moments, none, none)
    least = np.zeros(len(values))
    if is_two_way:
        by_prompt, df_prompts, of_prompts = _jackknife(residuals, prompt_codes, n_prompts, is_bounded)
        pairs, n_pairs = label_codes(person_codes * n_prompts + prompt_codes, "pairs", len(people))
        sums = sums_of_groups(residuals, pairs, n_pairs)
        of_pairs = ((sums**2).sum(axis=1), (sums**3).sum(axis=1))
        by_pair = n_pairs / (n_pairs - 1) * of_pairs[0] / values.shape[1] ** 2
        combined, largest = variance + by_prompt - by_pair, np.maximum(variance, by_prompt)
        with np.errstate(invalid="ignore", divide="ignore"):
            satterthwaite = combined**2 / (variance**2 / df + by_prompt**2 / df_prompts)
        is_combined = combined > largest * (1 + 1e-9)
        df = np.where(is_combined, satterthwaite, np.where(variance >= by_prompt, df, df_prompts))
        variance = np.maximum(combined, largest)
        skewness = clusters.combined_skewness(moments, of_prompts, of_pairs)
        least = (residuals**2).sum(axis=1) / values.shape[1] ** 2
    se = np.sqrt(variance)
    is_plain = se >= MIN_SPREAD
    if size.bounds is not None:
        is_plain &= clusters.unexplained_skewness(skewness, se, mean, size.bounds) <= clusters.MAX_SKEWNESS
    has_test = n_people >= clusters.TOO_FEW_CLUSTERS
    if is_two_way and not has_test:
        is_plain[:] = False
    se = np.where(is_plain, se, 1.0)
    # A run that is not plain is replaced below; the middle of the scale keeps its numbers finite.
    centre = mean if size.bounds is None else np.where(is_plain, mean, np.mean(size.bounds))
    found = headlines_by_t(
        centre, se, np.maximum(1.0, np.where(is_plain, df, 1.0)), size, target, np.maximum(se, np.sqrt(least))
    )
    found.estimate[:] = mean
    if not has_test:
        claim_nothing(found)
    for row in np.flatnonzero(~is_plain):
        _put_report_of_one_run(found, int(row), values[row], people, prompts if is_two_way else None, size, target)
    return found


def claim_nothing(found: Headlines, runs: BoolArray | slice = slice(None)) -> None:
    """Let these runs have no test."""
    found.is_difference[runs] = found.is_reached[runs] = False
    found.pvalue[runs] = found.larger[runs] = 1.0


def headlines_by_t(
    mean: FloatArray,
    se: FloatArray,
    df: FloatArray,
    size: StudySize,
    target: Target,
    scaled_se: FloatArray | None = None,
) -> Headlines:
    """Return what `score_curve.ScoreCurve` says in each run, or without `scaled_se` `confidence.TCurve`; only plain runs are of use."""
    bounds = None if scaled_se is None else size.bounds

    def statistic(value: float) -> FloatArray:
        at_value = se if scaled_se is None else score_curve.score_se(value, mean, se, scaled_se, df, bounds)
        return np.asarray((mean - value) / at_value)

    def two_sided(value: float) -> FloatArray:
        return np.asarray(np.minimum(1.0, 2 * special.stdtr(df, -np.abs(statistic(value)))))

    quantile = special.stdtrit(df, 1 - target.level / 2)
    low, high = mean - quantile * se, mean + quantile * se
    if scaled_se is not None and bounds is not None:
        limits = score_curve.score_limits_of_runs(mean, quantile * scaled_se, df, bounds)
        low, high = np.minimum(low, limits[0]), np.maximum(high, limits[1])
    is_difference = (low > size.null) | (high < size.null)
    margin = target.margin or 0.0
    pvalue = larger = two_sided(size.null)
    if target.margin is not None and target.goal in ("difference", EQUIVALENCE):
        ends = (statistic(size.null - margin), -statistic(size.null + margin))
        equivalent = np.maximum(*(special.stdtr(df, -distance) for distance in ends))
        pvalue, larger = (equivalent if target.goal == EQUIVALENCE else pvalue), np.maximum(pvalue, equivalent)
    if target.goal == "difference":
        is_reached = is_difference.copy()
    elif target.goal == EQUIVALENCE:
        is_reached = equivalent < target.level
    else:
        limit = target.limit(size.null)
        is_reached = low > limit
        pvalue = np.where(mean > limit, two_sided(limit), 1.0)
        if size.bounds is not None and not size.bounds[0] < limit < size.bounds[1]:
            is_reached[:] = False
            pvalue[:] = 1.0
        larger = pvalue
    no = np.zeros(len(mean), dtype=np.bool_)
    if size.bounds is not None:
        low, high = np.maximum(low, size.bounds[0]), np.minimum(high, size.bounds[1])
    return Headlines(mean, low, high, is_difference, is_reached, no, pvalue.copy(), larger.copy())


def _put_report_of_one_run(
    found: Headlines,
    row: int,
    values: FloatArray,
    people: IntArray,
    prompts: IntArray | None,
    size: StudySize,
    target: Target,
) -> None:
    """Put what the report says of one run in its place."""
    options: dict[str, Any] = {"null": size.null, "level": 1 - target.level, "bounds": size.bounds, "analysis": "plan"}
    if prompts is None:
        one = clusters.clustered_mean(values, people, **options)
    else:
        one = clusters.annotator_prompt_clustered_mean(values, people, prompts, **options)
    found.by_bets[row] = one.settings.get("method") == "betting"
    ends = (np.nan, np.nan) if one.interval is None else (one.interval.low, one.interval.high)
    found.low[row], found.high[row] = ends
    found.is_difference[row] = one.pvalue is not None and one.pvalue < target.level
    found.is_reached[row] = found.is_difference[row]
    found.pvalue[row] = found.larger[row] = _pvalue(one)
    margin = target.margin or 0.0
    if target.margin is not None and target.goal in ("difference", EQUIVALENCE):
        tost = equivalence.equivalence_test_of_estimate(one, null=size.null, margin=margin, significance=target.level)
        found.larger[row] = max(_pvalue(one), _pvalue(tost))
        if target.goal == EQUIVALENCE:
            found.pvalue[row] = _pvalue(tost)
            found.is_reached[row] = tost is not None and bool(tost.detail.get("is_equivalent"))
    elif target.goal != "difference":
        claim = margins.MarginHypothesis(target.goal, null=size.null, margin=margin)
        tested = margins.margin_test(replace(one, sensitivity=()), claim, significance=target.level)
        found.is_reached[row] = tested.pvalue is not None and tested.pvalue < target.level
        found.pvalue[row] = found.larger[row] = _pvalue(tested)


def _pvalue(estimate: Estimate | None) -> float:
    return 1.0 if estimate is None or estimate.pvalue is None else estimate.pvalue


def sums_of_groups(residuals: FloatArray, codes: IntArray, count: int) -> FloatArray:
    """Return the sum of each group in each run, shape (runs, count)."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(count))
    return np.asarray(np.add.reduceat(residuals[:, order], starts, axis=1))


def _jackknife(
    residuals: FloatArray, codes: IntArray, count: int, is_bounded: bool
) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray]]:
    """Return `clusters.cv3_variance`, its degrees of freedom, and the squares and cubes of the clusters' sums in each run."""
    sums, sizes = sums_of_groups(residuals, codes, count), np.bincount(codes, minlength=count).astype(np.float64)
    variance = (count - 1) / count * ((sums / (residuals.shape[1] - sizes)) ** 2).sum(axis=1)
    # Sums of 0 leave the degrees of freedom of the sizes.
    df = clusters.degrees_of_freedom(sums if is_bounded else 0 * sums, sizes)
    return variance, df, ((sums**2).sum(axis=1), (sums**3).sum(axis=1))
