"""How far each metric of a snapshot agrees with people, and whether one agrees more than another."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.metrics.comparison import COMPARED_BY, compare_each_two, number_fields, scored_metric, system_means

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.metrics import MetricTable

AGREEMENTS = ("pearson", "spearman", "kendall", "corrected", "accuracy")
TOO_MANY_PAIRS = {
    **dict.fromkeys(("estimate", "low", "high")),
    **{"status": "not_applicable", "reason": "there are too many pairs of outputs", "n": 0, "is_interval": False},
}


def agreements_with_people(
    found: "MetricTable",
    people: Any,
    tables: Mapping[str, Any],
    seed: str,
    *,
    resamples: int,
    level: float,
    item_groups: list[str] | None = None,
) -> list[dict[str, Any]]:
    """Return each metric's agreement with people: over systems, and about single outputs for one prompt."""
    import numpy as np

    from analysis.stats import metrics
    from analysis.stats.seeds import seeded_generator

    more = {
        "soft_pairwise_accuracy": metrics.soft_pairwise_accuracy,
        "segment_tau": metrics.segment_level_kendall_tau,
        "tie_calibrated_accuracy": metrics.tie_calibrated_accuracy,
    }
    rows = []
    for one in found.agreements:
        scores = tables[one.metric]
        is_scored = ~np.isnan(scores).all(axis=0)
        n_prompts, n_systems = len(scores), int(is_scored.sum())
        row = {"metric": one.metric, **{name: number_fields(getattr(one, name)) for name in AGREEMENTS}}
        for name, measure in more.items():
            if name != "soft_pairwise_accuracy" and n_prompts * n_systems * (n_systems - 1) // 2 > metrics.MAX_PAIRS:
                row[name] = TOO_MANY_PAIRS
                continue
            rng = seeded_generator(seed, one.metric, name)
            options: dict[str, Any] = {"rng": rng, "resamples": resamples, "item_groups": item_groups}
            if name != "soft_pairwise_accuracy":
                options["level"] = level
            own = measure(people[:, is_scored], scores[:, is_scored], **options)
            row[name] = number_fields(own)
        rows.append(row)
    return rows


def beside_people(
    people: "DataFrame",
    tables: Mapping[str, "DataFrame"],
    facts: Sequence[Mapping[str, Any]],
    seed: str,
    resamples: int,
    item_groups: list[str] | None = None,
) -> dict[str, Any]:
    """Return what people and each metric say about the systems on average, and the comparison of each two metrics.

    The means are those of the correlations: over the prompts that both scored. A metric's mean is turned so that higher is better.
    """
    scored = [
        scored_metric(
            {"metric": one["key"]} | {name: one[name] for name in ("name", "version", "kind", "is_lower_better")},
            one["key"],
            people,
            tables[one["key"]],
            item_groups,
        )
        for one in facts
    ]
    return {
        "means": [
            {
                "metric": own["key"],
                "rows": [
                    {
                        "submission": int(row["system"]),
                        "people": row["people"],
                        "metric": own["points"] * row["metric"],
                        "n": row["n"],
                    }
                    for row in system_means(one)
                ],
            }
            for own, one in zip(facts, scored, strict=True)
        ],
        "comparisons": [row for name in COMPARED_BY for row in compare_each_two(people, scored, name, seed, resamples)],
    }
