"""The table of systems with their score by people and by each metric, as in the Genie paper's Table 3."""

from typing import TYPE_CHECKING, Any

from analysis.data.frames import SECOND_SAMPLE
from analysis.models import Metric
from analysis.protocols.blocks.populations import population_of

from .beside_people import BesidePeople

if TYPE_CHECKING:
    from pandas import DataFrame


def system_table(found: BesidePeople, people: "DataFrame", scores: dict[int, "DataFrame"]) -> list[dict[str, Any]]:
    """Return a row for each system that people judged, from the best to the worst: its score by people and by each metric.

    ``people``: their means, of prompts by systems. ``scores``: the scores of each metric by its id. A score by people is from 0 to 1, with an
    interval over people and prompts for ratings. A metric's score is the mean of all outputs that it scored, on its own scale.
    """
    by_metric = {
        metric.pk: _means_on_own_scale(metric, scores[metric.pk]) for metric in found.metrics if len(scores[metric.pk])
    }
    rows: list[dict[str, Any]] = [
        {
            "system": system,
            "people": _of_people(found, system, float(people[system].mean())),
            "metrics": [{"metric": pk, "mean": means[system]} for pk, means in by_metric.items() if system in means],
        }
        for system in people.columns
    ]
    return sorted(rows, key=lambda row: (-row["people"]["estimate"], row["system"]))


def _of_people(found: BesidePeople, system: str, mean: float) -> dict[str, Any]:
    if found.kind == "preferences":
        # The share of comparisons that the system won depends on its opponents, so it has no interval.
        return {"estimate": mean, "low": None, "high": None}
    from analysis.stats import clusters

    own = found.people[found.people["system"] == system]
    estimate = clusters.mean_of_population(
        own["value"],
        own["annotator"],
        own[SECOND_SAMPLE],
        population="people_and_prompts",
        bounds=(0, 1),
        analysis="metrics.people",
        estimand="mean answer",
    )
    interval = estimate.interval
    return {
        "estimate": mean if estimate.estimate is None else estimate.estimate,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "population": population_of(estimate),
    }


def _means_on_own_scale(metric: Metric, scores: "DataFrame") -> dict[str, float]:
    means = scores.groupby("system")["value"].mean()
    if metric.is_lower_better:
        means = 1 - means if metric.scale_low is not None else -means
    if metric.scale_low is not None and metric.scale_high is not None:
        means = metric.scale_low + means * (metric.scale_high - metric.scale_low)
    return {str(system): float(mean) for system, mean in means.items()}
