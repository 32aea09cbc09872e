"""Metrics of the outputs beside the choices of people, as the accuracy of attributes in the paper's Table 5."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.data.context import AnalysisContext
from analysis.data.frames import SECOND_SAMPLE
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.populations import about_groups, second_sample_noun
from studies.protocols.two_choice import PREFERENCE

from . import layouts
from .labels import ComparisonLabels

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate


def metric_blocks(
    comparisons: Sequence[ComparisonLabels], recommended: Sequence["Estimate"], context: AnalysisContext
) -> list[Block]:
    """Return the scores of both systems by each metric of the study. ``recommended``: people's share of each comparison."""
    pairs = [
        (difference, people)
        for labels, people in zip(comparisons, recommended, strict=True)
        for difference in _differences(labels, context)
    ]
    if not pairs:
        return []
    return [
        Block(
            "choice.metrics",
            "Metrics beside the choices of people",
            estimates=tuple(difference for difference, _ in pairs),
            tables=[layouts.metrics_table(pairs)],
            note="Scores of outputs, whether people judged them or not. No person is behind a score, so intervals are over prompts alone.",
        )
    ]


def _differences(labels: ComparisonLabels, context: AnalysisContext) -> Iterator["Estimate"]:
    """Give for each metric the difference of its scores of x and y over the prompts for which it has both."""
    compared, scores = labels.comparison, context.metric_scores
    if scores is None:
        return
    is_about_it = (scores["section"] == compared.section) & (scores["question"] == compared.question)
    scores = scores[scores["system"].isin([compared.x, compared.y]) & (is_about_it | scores["question"].isna())]
    for (metric, version, fingerprint), own in scores.groupby(["metric", "version", "fingerprint"], sort=False):
        found = _difference(own, compared.x, compared.y, context.level)
        systems = {
            side: {"mean": float(values.mean()) if len(values) else None, "n": len(values)}
            for side, name in (("x", compared.x), ("y", compared.y))
            for values in [own.loc[own["system"] == name, "value"]]
        }
        detail = {
            "metric": metric,
            "version": version,
            "fingerprint": fingerprint,
            "is_lower_better": bool(own["is_lower_better"].iloc[0]),
            "systems": systems,
        }
        yield compared.tag_estimate(replace(found, detail={**found.detail, **detail}), PREFERENCE)


def _difference(scores: "DataFrame", x: str, y: str, level: float) -> "Estimate":
    from analysis.stats.clusters import clustered_mean, without_interval_if_too_few

    by_prompt = scores.groupby(["prompt", SECOND_SAMPLE, "system"], sort=True)["value"].mean().unstack("system")
    by_prompt = by_prompt.reindex(columns=[x, y]).dropna().reset_index()
    found = clustered_mean(
        (by_prompt[x] - by_prompt[y]).to_numpy(float),
        by_prompt[SECOND_SAMPLE],
        level=level,
        analysis="choice.metrics.difference",
        estimand="difference of the metric's means, x minus y",
        unit="prompt",
    )
    if found.status == "no_data":
        return replace(found, reason="the metric has scores of both systems for no prompt")
    # Another weight of groups of prompts says nothing about a metric.
    found = replace(
        found, sensitivity=(), settings={**found.settings, "population": "prompts, for exactly this metric"}
    )
    found = without_interval_if_too_few(found, by_prompt[SECOND_SAMPLE].nunique(), second_sample_noun(by_prompt))
    return about_groups(found, by_prompt, "people")
