"""The choice between the combined estimate and that of people alone, and what the judges save."""

import math
from dataclasses import replace
from typing import Any

from analysis.stats import clusters
from analysis.stats.arrays import MIN_SPREAD, validate_non_negative
from analysis.stats.clusters import MAX_SKEWNESS, TOO_FEW_CLUSTERS, TOO_FEW_ITEMS, two_way_warnings
from analysis.stats.confidence import TCurve
from analysis.stats.prediction_powered._combine import NO_WEIGHTS, Combination
from analysis.stats.prediction_powered._records import ITEMS, CombinedEstimate, JudgeUse, LabelsSaved
from analysis.stats.prediction_powered._sample import LabelledSample
from analysis.stats.results import Estimate, ResultWarning

# A combined interval that is wider than that of people alone by more is not used. A limit of 1 would choose the smaller of two
# uncertain standard errors too often: with eight people, .94 of the intervals would hold the truth instead of .95.
WIDEST = 1.05
# A few huge scores, as of perplexity, move the judges' mean and are seldom among the labelled ones. Above this skewness of a labelled mean of
# scores, combined intervals would hold the truth too seldom.
MOST_SCORE_SKEWNESS = 0.35
# Beside an interval by betting, which is wider, a t interval looks like the work of the judges even if they add noise.
NO_T_INTERVAL = "people alone have no t interval, so the widths cannot be compared"
FEW_PROMPTS = "people labelled fewer than five prompts"


def build_record(
    sample: LabelledSample,
    human: Estimate,
    found: Combination | None,
    *,
    judges: tuple[JudgeUse, ...],
    price: float | None,
    level: float,
    bounds: tuple[float, float] | None,
    **labels: Any,
) -> CombinedEstimate:
    """Return the record with the combined estimate, or with that of people alone if the judges cannot help."""
    if price is not None:
        validate_non_negative(price=price)
    analysis = labels["analysis"]
    combined, fallback = None, "" if human.interval else human.reason or "people alone give no interval"
    if not fallback:
        fallback = _why_not(sample, found, bounds)
    is_skewed = human.detail.get("skewness", 0.0) > MAX_SKEWNESS
    if not fallback and (is_skewed or not isinstance(human.curve, TCurve)):
        fallback = NO_T_INTERVAL
    if not fallback and found is not None:
        combined = contrast_estimate(sample, found, level=level, bounds=bounds, **labels)
        if not found.weights.any() or _is_wider(combined, human):
            combined, fallback = (
                None,
                "the judges make the interval wider" if found.weights.any() else "the judges have no weight",
            )
    is_used = combined is not None and found is not None
    if combined is None:
        combined = replace(human, analysis=analysis)
    if is_used and found is not None:
        judges = tuple(
            replace(judge, weight=float(weight)) for judge, weight in zip(judges, found.weights, strict=True)
        )
    labelled = set(sample.items.tolist())
    return CombinedEstimate(
        human=human,
        combined=combined,
        saved=_saved(sample, human, combined if is_used else None, price),
        judges=judges,
        samples=sample.samples,
        n_items=sample.n_items,
        n_labelled=len(labelled),
        weights=found.method if is_used and found is not None else NO_WEIGHTS,
        fallback=fallback,
        warnings=_warnings(sample),
    )


def _why_not(sample: LabelledSample, found: Combination | None, bounds: tuple[float, float] | None) -> str:
    """Return why no t interval of the combined estimate is valid, or nothing."""
    if found is None:
        return "one annotator or one prompt has all labels"
    if found.n_prompts < TOO_FEW_ITEMS:
        return FEW_PROMPTS if sample.samples != ITEMS else "people labelled fewer than five items"
    if found.n_annotators is not None and found.n_annotators < TOO_FEW_CLUSTERS:
        return "fewer than six people gave labels"
    if math.sqrt(found.variance) < MIN_SPREAD:
        return "the corrected labels do not vary"
    if bounds is not None and found.skewness > MAX_SKEWNESS:
        return "the corrected labels are too skewed for a t interval"
    if found.score_skewness > MOST_SCORE_SKEWNESS:
        return "the judges' scores of all outputs are too skewed for so few labelled ones"
    return ""


def contrast_estimate(
    sample: LabelledSample,
    found: Combination,
    *,
    null: float | None,
    level: float,
    bounds: tuple[float, float] | None,
    **labels: Any,
) -> Estimate:
    """Return the t interval and the t test of a combination."""
    se = math.sqrt(found.variance)
    has_enough = found.n_prompts >= TOO_FEW_ITEMS and (
        found.n_annotators is None or found.n_annotators >= TOO_FEW_CLUSTERS
    )
    warnings: tuple[ResultWarning, ...] = ()
    if sample.annotators is not None:
        warnings = two_way_warnings(sample.annotators, sample.row_prompts)
    if found.skewness > MAX_SKEWNESS:
        warnings = (*warnings, ResultWarning("small_n_skew", "warn", {"skewness": found.skewness}))
    detail = {
        **({} if found.spread is None else found.spread.detail()),
        "n_annotators": found.n_annotators,
        "n_prompts": found.n_prompts,
        "n_missing": sample.n_missing,
        "skewness": found.skewness,
        "se": se,
        "df": found.df,
    }
    common: dict[str, Any] = {
        **labels,
        "unit": "annotator" if found.n_annotators is not None else sample.samples.removesuffix("s"),
        "n": found.n_prompts if found.n_annotators is None else found.n_annotators,
        "n_clusters": min(found.n_prompts, found.n_annotators or found.n_prompts),
        "n_rows": len(sample.values),
        "estimate": found.estimate,
        "warnings": warnings,
        "detail": detail,
        "settings": {"null": null, "level": level, "bounds": bounds, "method": "cv3", "population": sample.samples},
    }
    if se < MIN_SPREAD:
        return Estimate(status="zero_variance", reason="the standard error is 0", **common)
    curve = TCurve(found.estimate, se, found.df, bounds, test_name="prediction_powered_t", method="cv3_t")
    return Estimate(
        interval=curve.interval(level),
        test=clusters.confidence_curve_test(curve, null) if null is not None and has_enough else None,
        _curve=curve,
        **common,
    )


def _is_wider(combined: Estimate, human: Estimate) -> bool:
    """Return whether the combined interval is too wide, before or after both are cut at the ends of the scale."""
    return any(_width(combined, is_cut) > WIDEST * _width(human, is_cut) for is_cut in (False, True))


def _width(estimate: Estimate, is_cut: bool) -> float:
    interval = estimate.interval
    if interval is None:
        return math.inf
    if not is_cut and isinstance(estimate.curve, TCurve):
        interval = replace(estimate.curve, bounds=None).interval(interval.level)
    return interval.high - interval.low


def _saved(sample: LabelledSample, human: Estimate, combined: Estimate | None, price: float | None) -> LabelsSaved:
    n_labels = len(sample.values)
    own = human.detail.get("se")
    if own is None or own < MIN_SPREAD:
        return LabelsSaved(n_labels=n_labels, price=price, reason="people alone have no standard error")
    ratio = 1.0 if combined is None else float(combined.detail["se"]) / own
    labels = n_labels * (1 / ratio**2 - 1)
    return LabelsSaved(
        n_labels=n_labels,
        se_ratio=ratio,
        labels_saved=labels,
        share_saved=1 - ratio**2,
        price=price,
        money_saved=None if price is None else labels * price,
        reason="" if price is not None else "no price of a label is given",
    )


def _warnings(sample: LabelledSample) -> tuple[ResultWarning, ...]:
    if sample.annotators is None:
        return (ResultWarning("people_unknown", "warn", {"samples": sample.samples}),)
    return ()
