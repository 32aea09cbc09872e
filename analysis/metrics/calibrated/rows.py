"""From answers and scores to the arrays of combined estimates: an item is an output, or a pair of outputs for one prompt."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analysis.metrics.beside_people import BesidePeople, all_outputs, score_table
from analysis.models import Metric

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class CalibrationRows:
    """Labels of people (rows) about some of the items, and the scores of all items by judges.

    ``items``: the table of all items: ``system``, ``prompt``, ``domain``, ``second_sample`` (the group of the prompt, or the prompt), and ``other`` for pairs. ``judges``: the metrics that scored all items, in the order of the columns of
    ``scores``. ``left_out``: the others, each with the reason. ``unlabelled``: systems that people did not judge.
    """

    values: "NDArray[Any]"
    annotators: "NDArray[Any]"
    positions: "NDArray[Any]"
    items: "DataFrame"
    scores: "NDArray[Any]"
    judges: list[Metric]
    left_out: list[dict[str, str]] = field(default_factory=list)
    unlabelled: list[str] = field(default_factory=list)

    @property
    def n_labelled(self) -> int:
        """Return the number of items that people labelled."""
        return len(set(self.positions.tolist()))


def calibration_rows(beside: BesidePeople) -> CalibrationRows:
    """Return the arrays of a question. Scores of several runs, or of both orders of a pair, are averaged."""
    outputs = all_outputs(beside.study).drop_duplicates(["system", "prompt"])
    known = sorted(set(outputs["system"]))
    if beside.kind == "preferences":
        items, columns = _pairs(beside, outputs)
    else:
        items, columns = _outputs(beside, outputs)
    labelled = set(items["system"]) | set(items.get("other", ()))
    judges, kept, left_out = [], [], []
    for metric in beside.metrics:
        column = columns[metric.pk]
        n_missing = int(column.isna().sum())
        if n_missing:
            reason = f"It has no score for {n_missing:,} of {len(column):,} items."
            left_out.append({"name": str(metric), "reason": reason})
        elif column.nunique() < 2:
            left_out.append({"name": str(metric), "reason": "Its scores of these items are all the same."})
        else:
            judges.append(metric)
            kept.append(column.to_numpy(float))
    return _rows(beside, items, judges, kept, left_out, [name for name in known if name not in labelled])


def _rows(beside: BesidePeople, items: "DataFrame", judges, kept, left_out, unlabelled) -> CalibrationRows:
    import numpy as np

    keys = ["system", "other", "prompt"] if "other" in items else ["system", "prompt"]
    position = {key: place for place, key in enumerate(items[keys].itertuples(index=False, name=None))}
    people = beside.people
    is_turned = [False] * len(people)
    if "other" in items:
        is_turned = (people["system"] > people["other"]).tolist()
        low = people["system"].where(people["system"] <= people["other"], people["other"])
        high = people["other"].where(people["system"] <= people["other"], people["system"])
        people = people.assign(system=low, other=high)
    places = [position.get(key) for key in people[keys].itertuples(index=False, name=None)]
    is_known = [place is not None for place in places]
    people = people[is_known]
    values = people["value"].to_numpy(float)
    turned = np.asarray(is_turned, dtype=bool)[is_known]
    return CalibrationRows(
        values=np.where(turned, 1 - values, values),
        annotators=people["annotator"].to_numpy(),
        positions=np.array([place for place in places if place is not None], dtype=np.int64),
        items=items,
        scores=np.stack(kept, axis=1) if kept else np.zeros((len(items), 0)),
        judges=judges,
        left_out=left_out,
        unlabelled=unlabelled,
    )


def _outputs(beside: BesidePeople, outputs: "DataFrame") -> tuple["DataFrame", dict[int, Any]]:
    items = outputs[outputs["system"].isin(set(beside.people["system"]))].reset_index(drop=True)
    return items, {metric.pk: _looked_up(beside, metric, items["system"], items["prompt"]) for metric in beside.metrics}


def _pairs(beside: BesidePeople, outputs: "DataFrame") -> tuple["DataFrame", dict[int, Any]]:
    """Return all pairs of the compared systems. A judge without verdicts about pairs prefers the output with the higher score."""
    import pandas as pd

    compared = {tuple(sorted(pair)) for pair in beside.people[["system", "other"]].itertuples(index=False, name=None)}
    merged = outputs.merge(outputs.assign(other=outputs["system"])[["other", "prompt"]], on="prompt")
    is_compared = [pair in compared for pair in merged[["system", "other"]].itertuples(index=False, name=None)]
    items = merged[is_compared].sort_values(["system", "other", "prompt"]).reset_index(drop=True)
    keys = pd.MultiIndex.from_frame(items[["system", "other", "prompt"]])
    columns = {}
    for metric in beside.metrics:
        own = beside.pair_scores[beside.pair_scores["metric"] == metric.pk]
        if len(own):
            is_turned = own["first"] > own["second"]
            low = own["first"].where(~is_turned, own["second"])
            high = own["second"].where(~is_turned, own["first"])
            value = own["value"].where(~is_turned, 1 - own["value"])
            means = value.groupby([low.rename("system"), high.rename("other"), own["prompt"]]).mean()
            columns[metric.pk] = means.reindex(keys).reset_index(drop=True)
            continue
        first = _looked_up(beside, metric, items["system"], items["prompt"])
        second = _looked_up(beside, metric, items["other"], items["prompt"])
        gap = first - second
        columns[metric.pk] = ((gap > 0) + 0.5 * (gap == 0)).astype(float).where(gap.notna())
    return items, columns


def _looked_up(beside: BesidePeople, metric: Metric, systems: Any, prompts: Any) -> Any:
    """Return a metric's mean score of each output; NaN where there is none."""
    import pandas as pd

    own = beside.scores[beside.scores["metric"] == metric.pk]
    if own.empty:
        return pd.Series(float("nan"), index=range(len(systems)))
    table = score_table(own, sorted(set(own["system"])), sorted(set(own["prompt"]))).stack()
    keys = pd.MultiIndex.from_arrays([prompts, systems])
    return table.reindex(keys).reset_index(drop=True)
