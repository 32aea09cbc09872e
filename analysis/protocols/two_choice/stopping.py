"""Stopping rules: an anytime-valid rule over annotators, or the paper's bound over items.

The anytime-valid rule takes annotators in the order of their claims, each with the mean of their planned labels. Third labels
count only for the final answers, because only items in disagreement get one. Each comparison is tested at its level divided by
the number of claims in its declared family, or without one by the number of the section's primary comparisons.

Source: Thorleiksdóttir et al. 2022, section 3.2, for the paper's bound; ``analysis.stats.sequential`` for the other.
"""

from typing import Any

from analysis.protocols.blocks.comparisons import Comparison
from studies.protocols import REGISTRY

from .. import StoppingStatus
from ..families import declared_family_sizes
from .labels import (
    comparison_pair_key,
    comparison_rows_with_values,
    final_item_answers,
    planned_comparisons_then_other_pairs,
)

N_SIMULATIONS = 200


def primary_comparison_stopping_statuses(planned_labels: Any, section: Any, seed: str = "") -> list[StoppingStatus]:
    """Return the status of the section's rule for each primary comparison, from ``analysis.data.planned_labels``."""
    settings = REGISTRY[section.protocol].cleaned_settings(section)
    primary = [
        comparison for comparison in planned_comparisons_then_other_pairs(section) if comparison.role == "primary"
    ]
    if settings["stopping"] == "first":
        return [paper_stopping_status(planned_labels, section, comparison) for comparison in primary]
    if settings["stopping"] == "anytime":
        sizes = declared_family_sizes(section.study)
        return [
            anytime_stopping_status(
                planned_labels,
                section,
                comparison,
                level=1 - comparison.level / sizes.get(comparison.family, len(primary)),
                seed=seed,
            )
            for comparison in primary
        ]
    return []


def anytime_stopping_status(
    planned_labels: Any, section: Any, comparison: Comparison, *, level: float, seed: str = ""
) -> StoppingStatus:
    """Return the e-process of a comparison and its status. ``level`` is the confidence for all checks together."""
    import math

    import numpy as np

    from analysis.stats import sequential
    from analysis.stats.seeds import seeded_generator

    planned = planned_labels.rows[
        (planned_labels.rows["section"] == section.position) & ~planned_labels.rows["is_top_up"]
    ]
    rows = comparison_rows_with_values(planned, comparison)
    first_open = rows.loc[~rows["is_settled"], "claim"].min()
    passed = rows.loc[rows["is_settled"] & ~(rows["claim"] >= first_open), "assignment"]
    # An open claim holds the queue. Whether it counts is decided when it is settled.
    rows = rows[rows["is_counted"] | ~rows["is_settled"]]
    units = sequential.annotator_means_in_claim_order(
        rows["value"].where(rows["is_known"]).to_numpy(float),
        rows["annotator"].to_numpy(object),
        rows["claim"].to_numpy(np.int64),
        is_settled=rows["is_settled"].to_numpy(bool),
    )
    test = sequential.sequential_test(
        units.values,
        level=level,
        margin=comparison.margin,
        annotators=units.annotators,  # type: ignore[arg-type]  # NumPy takes a tuple of any objects
    )
    is_decided = test.stopped_at is not None
    labels_per_annotator = float(np.mean(units.n_labels)) if len(units.n_labels) else float(section.m)
    # If batches hold only some of the pairs, assume that the same share of future annotators will see this pair.
    share_with_pair = rows["annotator"].nunique() / max(1, planned["annotator"].nunique())
    target = round((section.study.target_n or 0) * share_with_pair)
    remaining: dict[str, Any] | None = None
    if not is_decided and len(units.values) > 1 and target > len(units.values):
        forecast = sequential.predict_remaining_units(
            units.values,
            level=level,
            margin=comparison.margin,
            budget=target,
            runs=N_SIMULATIONS,
            rng=seeded_generator(seed or "0", "remaining", comparison.key, len(units.values)),
        )
        remaining = {
            "median": None if forecast.median is None else round(forecast.median * labels_per_annotator),
            "high": None if forecast.high is None else round(forecast.high * labels_per_annotator),
            "share_stopping": forecast.share_stopping,
            "labels_left": round(forecast.horizon * labels_per_annotator),
        }
    return StoppingStatus(
        name=comparison.key,
        label=comparison.label,
        rule="anytime",
        unit="annotator",
        evidence=tuple((np.maximum.accumulate(test.log_e) / math.log(10)).tolist()) if len(test.log_e) else (),
        threshold=math.log10(1 / (1 - level)),
        is_decided=is_decided,
        verdict=test.verdict,
        stopped_at=test.stopped_at,
        n_overrun=int(np.sum(units.n_labels[test.stopped_at :])) if is_decided else 0,
        remaining=remaining,
        estimate=test.estimate,
        passed=frozenset(passed.tolist()),
    )


def paper_stopping_status(planned_labels: Any, section: Any, comparison: Comparison) -> StoppingStatus:
    """Return the paper's bound at its first crossing, over the longest run of complete items, in item order."""
    import numpy as np

    from analysis.stats import sequential, stopping_boundaries

    delta = REGISTRY[section.protocol].cleaned_settings(section)["delta"]
    rows = planned_labels.rows
    settled = comparison_rows_with_values(rows[rows["is_given"] & rows["is_settled"] & rows["is_known"]], comparison)
    rows = settled[settled["is_counted"]]
    answers = final_item_answers(rows, section)
    pair = comparison_pair_key(comparison)
    planned = [
        number for position, number, names in planned_labels.items if (position, names) == (section.position, pair)
    ]
    complete = dict(zip(answers.items, answers.is_complete, strict=True))
    n = next((n for n, item in enumerate(planned) if not complete.get(item, False)), len(planned))
    item_values = dict(zip(answers.items, answers.values, strict=True))
    item_labels = dict(zip(answers.items, answers.n_labels, strict=True))
    run = [item for item in planned[:n] if item_values[item] == item_values[item]]
    values = np.asarray([item_values[item] for item in run], dtype=float)
    estimate = sequential.hoeffding_decision(values, delta=delta, reading="first")
    decided = estimate.detail.get("n_decision")
    counts = np.arange(1, len(values) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = np.abs(np.cumsum(values) / counts - 0.5) / stopping_boundaries.hoeffding_radius(counts, delta)
    verdict = {"a": "a_better", "b": "b_better"}.get(str(estimate.detail.get("winner")), "inconclusive")
    return StoppingStatus(
        name=comparison.key,
        label=comparison.label,
        rule="first",
        unit="item",
        evidence=tuple(evidence.tolist()),
        threshold=1.0,
        is_decided=decided is not None,
        verdict=verdict if len(values) else None,
        stopped_at=decided,
        n_overrun=int(sum(item_labels[item] for item in run[decided:])) if decided else 0,
        passed=frozenset(settled.loc[settled["item_number"].isin(planned[:n]), "assignment"].tolist()),
        estimate=estimate,
    )
