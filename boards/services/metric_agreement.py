"""How far each metric of a snapshot agrees with people: over systems, and about single outputs for one prompt."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from analysis.metrics.comparison import number_fields

if TYPE_CHECKING:
    from analysis.stats.metrics import MetricTable

AGREEMENTS = ("pearson", "spearman", "kendall", "corrected", "accuracy")
TOO_MANY_PAIRS = {
    **dict.fromkeys(("estimate", "low", "high")),
    **{"status": "not_applicable", "reason": "there are too many pairs of outputs", "n": 0, "is_interval": False},
}


def agreements_with_people(
    found: "MetricTable", people: Any, tables: Mapping[str, Any], seed: str, *, resamples: int, level: float
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
            options: dict[str, Any] = {"rng": rng, "resamples": resamples, "unit": "prompt"}
            if name != "soft_pairwise_accuracy":
                options["level"] = level
            own = measure(people[:, is_scored], scores[:, is_scored], **options)
            row[name] = number_fields(own)
        rows.append(row)
    return rows
