"""System-level probabilistic assessment: P[x > y] as annotators state it, in one order of naming or in both.

Every annotator answers, for a pair (x, y), "what is the % chance that x is better than y?" (`xy_percent`), the same
with y named first (`yx_percent`), or both. Answers stay on 0..100 until the last step, so that sums are compared
exactly. A row is an annotator, a column a pair; NaN is a question not asked or not answered.

Source: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, sections 5 and 6, appendix B.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from analysis.stats import basic, bootstrap, clusters, equivalence, power
from analysis.stats.arrays import (
    DEGENERATE,
    BoolArray,
    FloatArray,
    IntArray,
    codes,
    matrix,
    refuse_level,
    refuse_outside,
    vector,
)
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, Warning

TAU = 1.1
# A gap between the two orders beyond this many percentage points is counted as one-sided.
GAP_PERCENT = 10
SYMMETRY_MARGIN = 0.05
BOUNDS = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class TauFlags(Record):
    """Whom the tau rule finds.

    `incoherent` (n,): some pair's two answers add up to more than tau. `low_sum` (n,): some pair's add up to less than
    2 - tau; it excludes nobody by default. `above` and `below` (n, P) say for which pair. `is_applicable` (n,): some
    pair was asked in both orders; the rule knows nothing of the others.
    """

    incoherent: BoolArray
    low_sum: BoolArray
    above: BoolArray
    below: BoolArray
    is_applicable: BoolArray
    tau_percent: int


def combined(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike) -> FloatArray:
    """Each annotator's P[x > y] in 0..1: (p_xy + 1 - p_yx) / 2 from both orders, else the one that was answered.

    Both arguments have one shape, (n,) or (n, P). An annotator's liking for whoever is named first cancels out.
    Raises ValueError for answers outside 0..100 or shapes that differ.

    >>> combined([70, 60, None], [30, None, None]).tolist()
    [0.7, 0.6, nan]
    """
    xy, yx = _answers(xy_percent, yx_percent)
    both = xy + 100 - yx
    halves = np.where(np.isnan(both), np.where(np.isnan(xy), 2 * (100 - yx), 2 * xy), both)
    return np.asarray(halves / 200, dtype=np.float64)


def pair_paper(
    percent: npt.ArrayLike,
    *,
    is_after_tau: bool = False,
    level: float = 0.95,
    analysis: str = "spa.pair",
    unit: str = "annotator",
) -> Estimate:
    """The paper's estimate: the mean of P[x > y] asked in one order, with Student's t test against .5.

    `percent` has shape (n,), one answer an annotator on 0..100. The p-value is not the probability that x is worse, and
    1 - p not the probability that it is better. `is_after_tau` says that annotators above tau were left out before: the
    estimate is then biased downwards even where nobody has a preference (warning `tau_one_order_bias`, block).

    Source: section 5.2, steps 2 and 4; Table 1 (with Holm over the pairs, see `multiplicity.adjusted`).

    >>> round(pair_paper([70, 80, 65, 30]).pvalue, 4)
    0.3769
    """
    answers = vector(percent, "percent")
    refuse_outside(answers[~np.isnan(answers)], (0.0, 100.0), "percent")
    result = basic.one_sample(
        answers / 100,
        null=0.5,
        level=level,
        bounds=BOUNDS,
        analysis=analysis,
        estimand="mean over annotators of P[x > y], asked with x named first",
        unit=unit,
        mode="paper",
    )
    if not is_after_tau:
        return result
    biased = Warning("tau_one_order_bias", "block", {"direction": "downwards"})
    return replace(result, warnings=(*result.warnings, biased))


def pair_recommended(
    xy_percent: npt.ArrayLike,
    yx_percent: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    batches: npt.ArrayLike | None = None,
    **options: Any,
) -> Estimate:
    """`pairs_recommended` for one pair; both arguments have shape (n,).

    >>> result = pair_recommended([70, 80, 65, 30], [30, 25, 45, 20], rng=np.random.default_rng(0), resamples=999)
    >>> round(result.estimate, 5), round(result.pvalue, 4)
    (0.65625, 0.0533)
    """
    xy, yx = vector(xy_percent, "xy_percent"), vector(yx_percent, "yx_percent")
    if xy.shape != yx.shape:
        raise ValueError(f"yx_percent: {len(yx)} answers where xy_percent has {len(xy)}")
    found = pairs_recommended(xy[:, None], yx[:, None], names=["pair"], batches=batches, rng=rng, **options)
    return found["pair"]


def pairs_recommended(
    xy_percent: npt.ArrayLike,
    yx_percent: npt.ArrayLike,
    *,
    names: Sequence[str],
    rng: np.random.Generator,
    margin: float | None = None,
    tau: float | None = TAU,
    batches: npt.ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    analysis: str = "spa.pair",
    unit: str = "annotator",
) -> dict[str, Estimate]:
    """The recommended estimate of every pair: the mean of the combined answers of everybody, tested against .5 by t.

    `xy_percent` and `yx_percent` have shape (n_annotators, n_pairs); `names` the pairs' keys. Nobody is left out by
    tau: that rule is a sensitivity. One set of resamples serves all pairs. Give the whole study at once, because an
    annotator above tau in one pair leaves all of them in that sensitivity.

    Each Estimate has the t interval and d_z, and as sensitivities: sign flips, Wilcoxon (a test of symmetry), BCa,
    the Bayesian bootstrap, the sign test; with `tau`, the estimate after the paper's rule and after the symmetric one;
    with `batches` (shape (n_annotators,)) that annotators share, the estimate clustered by batch; with `margin`, TOST
    ("spa.pair.equivalence"; adjust and judge both with `equivalence.judged`). detail: n_xy, n_yx, n_both, n_single,
    shares above, at and below .5 with Wilson intervals, sd, and the difference that this n could detect with power .8.

    Warnings: `single_order` where some annotators answered in one order only, `order_not_identified` where everybody
    was asked in the same one (being named first and being better cannot be told apart), `few_batches`, those of
    `basic.one_sample`, and, on the sensitivities after tau, `tau_asymmetric` (see `tau_asymmetry`) and `all_excluded`.

    >>> answers = {"xy": [[70], [80], [65], [30]], "yx": [[30], [25], [45], [20]]}
    >>> found = pairs_recommended(answers["xy"], answers["yx"], names=["a > b"], rng=np.random.default_rng(0))
    >>> found["a > b"].detail["n_both"], [other.analysis for other in found["a > b"].sensitivity][:2]
    (4, ['spa.pair.sign_flip', 'spa.pair.wilcoxon'])
    """
    refuse_level(level)
    xy, yx = _tables(xy_percent, yx_percent, names)
    values = combined(xy, yx)
    shared = _shared_resamples(values, resamples=resamples, rng=rng)
    flags = None if tau is None else tau_flags(xy, yx, tau=tau)
    labels = None if batches is None else codes(np.asarray(batches), "batches", len(values))[0]
    results = {}
    for column, name in enumerate(names):
        result = basic.one_sample(
            values[:, column],
            null=0.5,
            level=level,
            bounds=BOUNDS,
            analysis=analysis,
            estimand="mean over annotators of P[x > y], both orders combined",
            unit=unit,
        )
        counts = _orders(xy[:, column], yx[:, column])
        detail = {**result.detail, **counts, "shares": _shares(values[:, column])}
        if result.status == "ok":
            detail["detectable_difference"] = power.detectable_effect(
                result.n, sd=float(result.detail["sd"]), significance=1 - level
            )
        sensitivity = [] if result.n < 2 else shared.sensitivity(column, level=level, analysis=analysis, unit=unit)
        warnings = [*result.warnings, *_order_warnings(counts)]
        common: dict[str, Any] = {"level": level, "unit": unit}
        if flags is not None and counts["n_both"]:
            sensitivity += _after_tau(xy, yx, values, flags, column, analysis=analysis, **common)
        if labels is not None:
            by_batch, components, found = _by_batch(values[:, column], labels, analysis=analysis, level=level)
            if by_batch is not None:
                sensitivity.append(by_batch)
                detail["batches"] = components
            warnings += found
        if margin is not None:
            sensitivity.append(
                equivalence.equivalence(
                    values[:, column],
                    null=0.5,
                    margin=margin,
                    significance=1 - level,
                    bounds=BOUNDS,
                    analysis=f"{analysis}.equivalence",
                    estimand=result.estimand,
                    unit=unit,
                )
            )
        settings = {**result.settings, "margin": margin, "tau": tau, "resamples": resamples}
        results[name] = replace(
            result,
            n_rows=counts["n_xy"] + counts["n_yx"],
            sensitivity=tuple(sensitivity),
            warnings=tuple(warnings),
            detail=detail,
            settings=settings,
        )
    return results


def order_symmetry(
    xy_percent: npt.ArrayLike,
    yx_percent: npt.ArrayLike,
    *,
    margin: float = SYMMETRY_MARGIN,
    is_after_tau: bool = False,
    level: float = 0.95,
    analysis: str = "spa.order_symmetry",
    unit: str = "annotator",
) -> Estimate:
    """Whether it matters which system the question names first: the mean gap g = p_xy + p_yx - 1, tested against 0.

    Both arguments have shape (n,); annotators with one order only are left out. g > 0 means that whoever is named first
    gains, g < 0 that both directions together fall short of 1. The convictions p_xy - .5 and .5 - p_yx differ by
    exactly g. No significance is no symmetry: the sensitivity is TOST within `margin`, and detail["verdict"] joins the
    two. detail["shares"] counts gaps beyond 10 points to either side.

    Tau cuts sums, that is g itself, off from above: with `is_after_tau` there is no answer (`not_applicable`, reason
    `circular`), since the filtered data show a negative gap whatever people think.

    Source: section 6.2 and Figure 1, which report it, Figure 5 after the filter.

    >>> result = order_symmetry([70, 80, 65, 30], [30, 25, 45, 20])
    >>> round(result.estimate, 4), result.detail["shares"]["within"]["count"]
    (-0.0875, 3)
    >>> order_symmetry([70, 80], [30, 20], is_after_tau=True).reason
    'circular'
    """
    estimand = "mean over annotators of p_xy + p_yx - 1"
    settings = {"margin": margin, "level": level, "gap_percent": GAP_PERCENT}
    if is_after_tau:
        return Estimate(
            analysis=analysis,
            estimand=estimand,
            unit=unit,
            n=0,
            status="not_applicable",
            reason="circular",
            warnings=(Warning("circular", "block", {"rule": "incoherent"}),),
            settings=settings,
        )
    xy, yx = _answers(vector(xy_percent, "xy_percent"), vector(yx_percent, "yx_percent"))
    gaps = xy + yx - 100
    gaps = gaps[~np.isnan(gaps)]
    common: dict[str, Any] = {"bounds": (-1.0, 1.0), "estimand": estimand, "unit": unit}
    result = basic.one_sample(gaps / 100, null=0.0, level=level, analysis=analysis, **common)
    tost = equivalence.equivalence(
        gaps / 100, null=0.0, margin=margin, significance=1 - level, analysis=f"{analysis}.equivalence", **common
    )
    n = len(gaps)
    shares = {}
    for name, count in (
        ("above", int(np.sum(gaps > GAP_PERCENT))),
        ("within", int(np.sum(np.abs(gaps) <= GAP_PERCENT))),
        ("below", int(np.sum(gaps < -GAP_PERCENT))),
    ):
        shares[name] = _share(count, n, level)
    verdict = equivalence.verdict(result.pvalue, tost.pvalue, significance=1 - level)
    return replace(
        result,
        n_rows=2 * n,
        sensitivity=(tost,),
        detail={**result.detail, "shares": shares, "verdict": verdict},
        settings=settings,
    )


def tau_flags(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike, *, tau: float = TAU) -> TauFlags:
    """Whose two answers to some pair add up to more than tau (strictly), compared as whole percentages.

    Both arguments have shape (n_annotators, n_pairs). One pair above tau finds the annotator for all pairs; a pair
    asked in one order finds nobody. Sums are compared with round(100 tau), so .65 + .45 is exactly 1.1 and passes.
    Raises ValueError unless 0 <= tau <= 2.

    Source: section 5.2, step 3.

    >>> tau_flags([[70], [90], [65]], [[30], [90], [45]]).incoherent.tolist()
    [False, True, False]
    """
    if not 0 <= tau <= 2:
        raise ValueError(f"tau: {tau!r} is not in 0..2")
    xy, yx = _answers(matrix(xy_percent, "xy_percent"), matrix(yx_percent, "yx_percent"))
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


def tau_asymmetry(
    xy_percent: npt.ArrayLike,
    yx_percent: npt.ArrayLike,
    *,
    significance: float = 0.05,
    level: float = 0.95,
    analysis: str = "spa.tau_asymmetry",
    unit: str = "annotator",
) -> Estimate:
    """Whether leaving people out by tau would move the combined estimate: the correlation of gap and combined answer.

    Both arguments have shape (n,), before any filter. Tau selects on the gap g = p_xy + p_yx - 1; if g goes with the
    preference, the selection does too, and the estimate after tau loses its null. Pearson's correlation of the sum and
    the difference of two variables is the Pitman-Morgan test that their variances are equal, so the two reasons for
    asymmetry (unequal noise, acquiescence of one camp) are this one test; Spearman's is in detail for a monotone
    relation. Warning `tau_asymmetric` where either is significant.

    Source: Pitman 1939, Morgan 1939, A test for the significance of the difference between two variances.

    >>> tau_asymmetry([60, 70, 80, 90, 50], [50, 50, 50, 50, 50]).warned("tau_asymmetric")
    True
    """
    xy, yx = _answers(vector(xy_percent, "xy_percent"), vector(yx_percent, "yx_percent"))
    both = ~np.isnan(xy) & ~np.isnan(yx)
    gap, preference = xy[both] + yx[both] - 100, xy[both] - yx[both]
    n = int(both.sum())
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "correlation of the gap with the combined answer",
        "unit": unit,
        "n": n,
        "n_rows": 2 * n,
        "settings": {"significance": significance, "level": level},
    }
    if n == 0:
        return Estimate(status="no_data", reason="nobody answered in both orders", **common)
    if n < 4 or float(np.std(gap)) < DEGENERATE or float(np.std(preference)) < DEGENERATE:
        return Estimate(status="not_identified", reason="too few answers, or no variance, for a correlation", **common)
    pearson, spearman = _correlation(gap, preference), _correlation(stats.rankdata(gap), stats.rankdata(preference))
    statistic, pvalue = _correlation_test(pearson, n)
    _, spearman_pvalue = _correlation_test(spearman, n)
    found: tuple[Warning, ...] = ()
    if min(pvalue, spearman_pvalue) < significance:
        found = (Warning("tau_asymmetric", "warn", {"correlation": pearson, "pvalue": min(pvalue, spearman_pvalue)}),)
    centre, half = math.atanh(max(-1 + 1e-15, min(1 - 1e-15, pearson))), basic.normal_quantile(level) / math.sqrt(n - 3)
    return Estimate(
        estimate=pearson,
        interval=Interval(level, math.tanh(centre - half), math.tanh(centre + half), "fisher_z"),
        test=HypothesisTest(name="pitman_morgan", null=0.0, statistic=statistic, df=n - 2, pvalue=pvalue),
        warnings=found,
        detail={
            "spearman": spearman,
            "spearman_pvalue": spearman_pvalue,
            "variance_xy": float(np.var(xy[both] / 100, ddof=1)),
            "variance_yx": float(np.var(yx[both] / 100, ddof=1)),
        },
        **common,
    )


def before_after(
    values: npt.ArrayLike,
    kept: Mapping[str, npt.ArrayLike],
    *,
    names: Sequence[str],
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    analysis: str = "spa.before_after",
    unit: str = "annotator",
) -> dict[str, dict[str, Estimate]]:
    """What each exclusion rule does to each estimate: mean after - mean before, with a nested bootstrap interval.

    `values` has shape (n_annotators, n_columns), one column a pair (named in `names`), NaN missing; `kept` maps a
    rule's name to a boolean of shape (n_annotators,). In each resample of annotators both means are taken, because the
    kept are a part of all: comparing the two by a t test would treat them as different people. Rules here judge each
    annotator by that annotator's own answers; for the others see `before_after_relative`. Returns {rule: {name:
    Estimate}}; nobody kept is `no_data` with the warning `all_excluded`.

    >>> found = before_after([[0.2], [0.6], [0.7]], {"too_fast": [False, True, True]}, names=["a > b"],
    ...                      rng=np.random.default_rng(0), resamples=999)
    >>> round(found["too_fast"]["a > b"].estimate, 4)
    0.15
    """
    refuse_level(level)
    table = matrix(values, "values")
    n_annotators, n_columns = table.shape
    if len(names) != n_columns:
        raise ValueError(f"names: {len(names)} names where values has {n_columns} columns")
    masks = {}
    for rule, mask in kept.items():
        array = np.asarray(mask)
        if array.shape != (n_annotators,) or array.dtype != np.bool_:
            raise ValueError(f"kept: {rule}: expected {n_annotators} booleans")
        masks[rule] = array
    here = ~np.isnan(table)
    filled, ones = np.where(here, table, 0.0), here.astype(np.float64)
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
                analysis=analysis,
                unit=unit,
                settings={"rule": rule, "level": level, "resamples": resamples},
            )
    return results


def before_after_relative(
    values: npt.ArrayLike,
    rule: Callable[[IntArray], npt.ArrayLike],
    *,
    name: str,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 999,
    analysis: str = "spa.before_after",
    unit: str = "annotator",
) -> Estimate:
    """`before_after` for a rule that judges annotators against one another, run again inside each resample.

    `values` has shape (n_annotators,); `rule` is given the row numbers of the annotators in a sample, of shape (k,) and
    with repetitions, and returns whom of them it keeps, a boolean of shape (k,).

    >>> scores = np.array([0.2, 0.6, 0.7, 0.65])
    >>> result = before_after_relative(scores, lambda rows: scores[rows] > np.median(scores[rows]) - 0.3,
    ...                                name="outlier", rng=np.random.default_rng(0))
    >>> round(result.estimate, 4)
    0.1125
    """
    refuse_level(level)
    array = vector(values, "values")
    n_annotators = len(array)

    def parts(rows: IntArray) -> tuple[FloatArray, FloatArray]:
        mask = np.asarray(rule(rows), dtype=np.bool_)
        if mask.shape != rows.shape:
            raise ValueError(f"rule: {name} returned shape {mask.shape} for {len(rows)} annotators")
        chosen = array[rows]
        here = ~np.isnan(chosen)
        kept = here & mask
        return (
            np.array([chosen[here].sum(), chosen[kept].sum()]),
            np.array([here.sum(), kept.sum()], dtype=np.float64),
        )

    sums, counts = parts(np.arange(n_annotators))
    draws = np.empty(resamples if n_annotators else 0)
    for number in range(len(draws)):
        some_sums, some_counts = parts(rng.integers(0, n_annotators, size=n_annotators))
        with np.errstate(invalid="ignore", divide="ignore"):
            before, after = some_sums / some_counts
        draws[number] = after - before
    settings = {"rule": name, "level": level, "resamples": resamples}
    return _change(sums, counts, draws, analysis=analysis, unit=unit, settings=settings)


def _change(
    sums: FloatArray, counts: FloatArray, draws: FloatArray, *, analysis: str, unit: str, settings: dict[str, Any]
) -> Estimate:
    n_before, n_after = int(counts[0]), int(counts[1])
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": f"mean after - mean before the rule {settings['rule']}",
        "unit": unit,
        "n": n_before,
        "n_rows": n_before,
        "settings": settings,
    }
    detail: dict[str, Any] = {"n_before": n_before, "n_after": n_after}
    if n_before == 0:
        return Estimate(status="no_data", reason="no value to analyse", detail=detail, **common)
    detail["before"] = float(sums[0] / counts[0])
    if n_after == 0:
        excluded = (Warning("all_excluded", "block", {"rule": settings["rule"], "n": n_before}),)
        return Estimate(status="no_data", reason="the rule keeps nobody", detail=detail, warnings=excluded, **common)
    detail["after"] = float(sums[1] / counts[1])
    change = detail["after"] - detail["before"]
    if n_before == n_after:
        reason = "the rule excludes nobody"
        return Estimate(status="not_applicable", reason=reason, estimate=0.0, detail=detail, **common)
    defined = draws[np.isfinite(draws)]
    # A resample in which the rule kept nobody has no mean after it; leaving many out would narrow the interval.
    interval = None
    if len(defined) >= 0.99 * len(draws):
        interval = bootstrap.percentile_interval(defined, float(settings["level"]))
    warnings: tuple[Warning, ...] = ()
    if interval is None:
        warnings = (Warning("undefined_resamples", "warn", {"share": 1 - len(defined) / max(1, len(draws))}),)
    return Estimate(estimate=change, interval=interval, detail=detail, warnings=warnings, **common)


@dataclass(frozen=True, slots=True)
class _Resamples:
    """What resampling says of every pair, from one set of resamples of the annotators."""

    values: FloatArray
    bootstrap: FloatArray
    posterior: FloatArray
    sign_flips: FloatArray
    is_exact: bool
    resamples: int

    def sensitivity(self, column: int, *, level: float, analysis: str, unit: str) -> list[Estimate]:
        kept = self.values[:, column]
        here = ~np.isnan(kept)
        kept = kept[here]
        n, mean = len(kept), float(np.mean(kept))
        varies = float(np.std(kept)) >= DEGENERATE
        common: dict[str, Any] = {"unit": unit, "n": n, "n_rows": n}
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
            found = bootstrap.interval_from_draws(
                mean, self.bootstrap[:, column], kept, ones, method="bca", level=level
            )
            interval = {"interval": found}
        posterior: Estimate
        estimand = "posterior probability that the mean exceeds 0.5"
        named = {"analysis": f"{analysis}.bayesian_bootstrap", "estimand": estimand, **common, "settings": settings}
        if varies:
            rest = {key: value for key, value in named.items() if key != "n"}
            posterior = bootstrap.posterior_estimate(self.posterior[:, column], n=n, null=0.5, level=level, common=rest)
        else:
            posterior = Estimate(**constant, **named)
        return [
            Estimate(
                analysis=f"{analysis}.sign_flip", estimand="mean", estimate=mean, settings=settings, **common, **flip
            ),
            basic.wilcoxon(kept, null=0.5, analysis=f"{analysis}.wilcoxon", unit=unit),
            Estimate(
                analysis=f"{analysis}.bca", estimand="mean", estimate=mean, settings=settings, **common, **interval
            ),
            posterior,
            basic.sign_test(kept, null=0.5, level=level, analysis=f"{analysis}.sign_test", unit=unit),
        ]


def _shared_resamples(values: FloatArray, *, resamples: int, rng: np.random.Generator) -> _Resamples:
    here = ~np.isnan(values)
    filled, ones = np.where(here, values, 0.0), here.astype(np.float64)
    n_annotators, n_pairs = values.shape
    if n_annotators == 0:
        empty = np.empty((0, n_pairs))
        return _Resamples(values, empty, empty, np.ones(n_pairs), False, resamples)
    for_bootstrap, for_posterior, for_flips = rng.spawn(3)
    draws = bootstrap.ratio_draws(filled, ones, bootstrap.multinomial_weights(n_annotators, resamples, for_bootstrap))
    posterior = bootstrap.ratio_draws(filled, ones, bootstrap.dirichlet_weights(n_annotators, resamples, for_posterior))
    pvalues, is_exact = basic.sign_flip_pvalues(values - 0.5, resamples=resamples, rng=for_flips)
    return _Resamples(values, draws, posterior, pvalues, is_exact, resamples)


def _after_tau(
    xy: FloatArray,
    yx: FloatArray,
    values: FloatArray,
    flags: TauFlags,
    column: int,
    *,
    analysis: str,
    level: float,
    unit: str,
) -> list[Estimate]:
    asymmetry = tau_asymmetry(xy[:, column], yx[:, column])
    estimates = []
    for name, excluded in (("tau", flags.incoherent), ("tau_symmetric", flags.incoherent | flags.low_sum)):
        result = basic.one_sample(
            values[~excluded, column],
            null=0.5,
            level=level,
            bounds=BOUNDS,
            analysis=f"{analysis}.{name}",
            estimand="mean over annotators whose answers add up, both orders combined",
            unit=unit,
        )
        attached = list(asymmetry.warnings)
        if result.status == "no_data":
            attached.append(Warning("all_excluded", "block", {"n": int(excluded.sum())}))
        detail = {**result.detail, "n_excluded": int((excluded & ~np.isnan(values[:, column])).sum())}
        settings = {**result.settings, "tau_percent": flags.tau_percent}
        estimates.append(replace(result, warnings=(*result.warnings, *attached), detail=detail, settings=settings))
    return estimates


def _by_batch(
    values: FloatArray, labels: IntArray, *, analysis: str, level: float
) -> tuple[Estimate | None, clusters.Components | None, list[Warning]]:
    here = ~np.isnan(values)
    kept, labels = values[here], labels[here]
    n_batches = len(np.unique(labels))
    if n_batches == len(kept) or n_batches < 2:
        only = n_batches == 1 and len(kept) > 1
        # One batch for everybody: the claim is about these prompts and no other.
        return None, None, [Warning("few_batches", "warn", {"n_batches": 1})] if only else []
    estimate = clusters.clustered_mean(
        kept, labels, null=0.5, level=level, bounds=BOUNDS, analysis=f"{analysis}.by_batch", unit="batch"
    )
    found = []
    warnings = tuple(
        replace(warning, code="few_batches") if warning.code == "few_clusters" else warning
        for warning in estimate.warnings
        if warning.code != "dominant_annotator"
    )
    if any(warning.code == "few_batches" for warning in warnings):
        detail = {"n_batches": n_batches, "effective": estimate.detail["effective_clusters"]}
        found.append(Warning("few_batches", "warn", detail))
    return replace(estimate, warnings=warnings), clusters.between_variance(kept, labels), found


def _orders(xy: FloatArray, yx: FloatArray) -> dict[str, int]:
    has_xy, has_yx = ~np.isnan(xy), ~np.isnan(yx)
    return {
        "n_xy": int(has_xy.sum()),
        "n_yx": int(has_yx.sum()),
        "n_both": int((has_xy & has_yx).sum()),
        "n_single": int((has_xy ^ has_yx).sum()),
    }


def _order_warnings(counts: Mapping[str, int]) -> list[Warning]:
    if counts["n_xy"] + counts["n_yx"] == 0:
        return []
    found = []
    if counts["n_single"]:
        found.append(Warning("single_order", "info", {"n": counts["n_single"]}))
    if counts["n_xy"] == 0 or counts["n_yx"] == 0:
        found.append(Warning("order_not_identified", "warn", {"n_xy": counts["n_xy"], "n_yx": counts["n_yx"]}))
    return found


def _shares(values: FloatArray) -> dict[str, Any]:
    kept = values[~np.isnan(values)]
    n = len(kept)
    above, below = int(np.sum(kept > 0.5)), int(np.sum(kept < 0.5))
    return {name: _share(k, n) for name, k in (("above", above), ("equal", n - above - below), ("below", below))}


def _share(count: int, n: int, level: float = 0.95) -> dict[str, Any]:
    if n == 0:
        return {"count": 0, "n": 0, "share": None, "low": None, "high": None}
    low, high = basic.wilson(count, n, level)
    return {"count": count, "n": n, "share": count / n, "low": low, "high": high}


def _answers(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    xy, yx = np.asarray(xy_percent, dtype=np.float64), np.asarray(yx_percent, dtype=np.float64)
    if xy.shape != yx.shape:
        raise ValueError(f"yx_percent: shape {yx.shape} where xy_percent has {xy.shape}")
    for name, array in (("xy_percent", xy), ("yx_percent", yx)):
        outside = np.argwhere((array < 0) | (array > 100))
        if len(outside):
            where = tuple(outside[0].tolist())
            raise ValueError(f"{name}: row {where[0]} is {array[where]:g}, outside 0..100")
    return xy, yx


def _tables(
    xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike, names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    xy, yx = _answers(matrix(xy_percent, "xy_percent"), matrix(yx_percent, "yx_percent"))
    if len(names) != xy.shape[1]:
        raise ValueError(f"names: {len(names)} names where xy_percent has {xy.shape[1]} pairs")
    if len(set(names)) != len(names):
        raise ValueError("names: a pair stands twice")
    return xy, yx


def _correlation(x: FloatArray, y: FloatArray) -> float:
    a, b = x - np.mean(x), y - np.mean(y)
    return float(np.clip(np.sum(a * b) / math.sqrt(float(np.sum(a * a)) * float(np.sum(b * b))), -1.0, 1.0))


def _correlation_test(correlation: float, n: int) -> tuple[float | None, float]:
    left = 1 - correlation**2
    if left < DEGENERATE:
        return None, 0.0
    statistic = correlation * math.sqrt((n - 2) / left)
    return statistic, min(1.0, 2 * float(special.stdtr(n - 2, -abs(statistic))))
