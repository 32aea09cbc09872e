"""Compute the numbers of people and the combined numbers of one question, as a JSON dictionary."""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.data.frames import SECOND_SAMPLE
from analysis.metrics.beside_people import BesidePeople, by_length
from analysis.metrics.calibrated.rows import CalibrationRows, calibration_rows
from analysis.metrics.scoring import scorer_of
from analysis.models import Metric
from analysis.protocols.blocks.populations import (
    group_noun,
    has_groups,
    name_groups_of_plain,
    noun_of_groups,
    population_of,
)
from analysis.stats.judge_assisted import (
    GroupBias,
    JudgePlan,
    PairOfSystems,
    judge_bias_by_group,
    plan_labels_with_judge,
    prediction_powered_differences,
    prediction_powered_mean,
    prediction_powered_preferences,
)
from analysis.stats.prediction_powered import CombinedEstimate
from analysis.stats.results import Estimate
from annotators.counting import is_simulated

from .options import CHOSEN, CalibrationOptions, families_by_name

BOUNDS = (0.0, 1.0)
# The widths of the figure, as shares of the present width.
FIGURE_WIDTHS = (1.4, 1.2, 1.0, 0.85, 0.7, 0.6, 0.5, 0.4)
WANTED_WIDTHS = (1.0, 0.75, 0.5)
WIDTH_WITHOUT_INTERVAL = 0.1
MORE_OUTPUTS = 10
SCALE_OF_ITS_OWN = "it has a scale of its own, so heval cannot say whether its scores are too high"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Sample:
    """The rows of a question with the judges that are used."""

    rows: CalibrationRows
    annotators: Any
    price: float | None
    families: dict[str, str]
    is_pairs: bool
    has_biases: bool

    @property
    def names(self) -> list[str]:
        return [str(metric) for metric in self.rows.judges]

    def of(self, judges: list[int]) -> "_Sample":
        rows = replace(
            self.rows, judges=[self.rows.judges[place] for place in judges], scores=self.rows.scores[:, judges]
        )
        return replace(self, rows=rows)

    def groups(self) -> Iterator[tuple[str, Any]]:
        """Yield each system, or pair of systems, with its items."""
        items = self.rows.items
        keys = items["system"] + " – " + items["other"] if self.is_pairs else items["system"]
        for name in sorted(set(keys)):
            yield name, (keys == name).to_numpy()

    def arguments(self, is_item: Any = None) -> dict[str, Any]:
        """Return the arguments of the statistics, of all items or of some of them."""
        rows = self.rows
        used = np.ones(len(rows.items), dtype=bool) if is_item is None else is_item
        is_row = used[rows.positions]
        return {
            "values": rows.values[is_row],
            "annotators": None if self.annotators is None else self.annotators[is_row],
            "items": (np.cumsum(used) - 1)[rows.positions[is_row]],
            "judges": rows.scores[used],
            "prompts": rows.items[SECOND_SAMPLE].to_numpy()[used],
        }

    def strata(self, is_item: Any = None) -> Any:
        """Return the domain of each item's prompt, or None if all have the same."""
        domains = self.rows.items["domain"].fillna("").astype(str)
        domains = domains if is_item is None else domains[is_item]
        return domains.to_numpy() if domains.nunique() > 1 else None


def calibrated_result(
    beside: BesidePeople, options: CalibrationOptions, price: float | None, say: Say = lambda doing: None
) -> dict[str, Any]:
    """Return the result of a question. ``price``: of one answer to it. ``say`` reports what is being computed.

    Undefined parts have a ``reason``. Values are from 0 to 1; 1 is the best.
    """
    rows = calibration_rows(beside)
    if not len(rows.items) or not has_groups(rows.items):
        return _result(beside, rows, options, price, say)
    counts = {"n_groups": rows.items[SECOND_SAMPLE].nunique(), "n_prompts": rows.items["prompt"].nunique()}
    noun = group_noun(rows.items[SECOND_SAMPLE])
    return counts | noun_of_groups(noun) | name_groups_of_plain(_result(beside, rows, options, price, say), noun)


def _result(
    beside: BesidePeople, rows: CalibrationRows, options: CalibrationOptions, price: float | None, say: Say
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "status": "ok",
        "reason": "",
        "kind": beside.kind,
        "n_items": len(rows.items),
        "n_labelled": rows.n_labelled,
        "n_labels": len(rows.values),
        "n_people": len(set(rows.annotators.tolist())) if options.are_people_known else None,
        "is_simulated": is_simulated(beside.study),
        "are_all_labelled": rows.n_labelled == len(rows.items),
        "n_domains": int(rows.items["domain"].fillna("").nunique()),
        "left_out": rows.left_out,
        "unlabelled": rows.unlabelled,
        "price": price,
    }
    used = _chosen(rows.judges, options)
    if not len(rows.values):
        return result | {"status": "no_data", "reason": "People gave no answer that is kept."}
    if not used:
        return result | {"status": "no_data", "reason": "No metric or judge scored all items of this question."}
    systems = sorted(set(rows.items["system"]) | set(rows.items.get("other", ())))
    families = families_by_name({str(metric): metric.family for metric in rows.judges}, systems)
    everyone = _Sample(
        rows,
        rows.annotators if options.are_people_known else None,
        price,
        families,
        beside.kind == "preferences",
        scorer_of(beside.question.section.protocol).gives_scores_of_one_output,
    )
    together = everyone.of(used)
    say("combining people and judges")
    singles = [] if together.is_pairs else _singles(together)
    pairs = _pairs(together)
    is_ruled_out = options.sample == CHOSEN and not result["are_all_labelled"]
    widths, planned = _plan_settings([row["result"] for row in singles or pairs], together, options)
    say("planning labels")
    return result | {
        "used": together.names,
        "families": families,
        "is_ruled_out": is_ruled_out,
        "systems": [_without_combined(row) if is_ruled_out else row for row in singles],
        "pairs": [_without_combined(row) if is_ruled_out else row for row in pairs],
        "judges": _each_judge(everyone, set(used), widths, planned, is_ruled_out=is_ruled_out, say=say),
        "bias_by_system": [] if together.is_pairs else _biases(everyone, "system"),
        "bias_by_domain": [] if together.is_pairs else _biases(everyone, "domain"),
        "bias_by_length": [] if together.is_pairs else _biases(everyone, "length"),
        "plan": _plan(together, widths, planned),
    }


def _chosen(judges: list[Metric], options: CalibrationOptions) -> list[int]:
    if options.metrics:
        return [place for place, metric in enumerate(judges) if metric.pk in options.metrics]
    models = [place for place, metric in enumerate(judges) if metric.kind == Metric.Kind.JUDGE]
    return models or list(range(len(judges)))


def _singles(sample: _Sample) -> list[dict[str, Any]]:
    found = []
    for name, is_item in sample.groups():
        result = prediction_powered_mean(
            **sample.arguments(is_item),
            names=sample.names,
            bounds=BOUNDS,
            price=sample.price,
            strata=sample.strata(is_item),
        )
        found.append({"system": name, "result": _combined(result)})
    return found


def _pairs(sample: _Sample) -> list[dict[str, Any]]:
    items = sample.rows.items
    common: dict[str, Any] = {"names": sample.names, "price": sample.price, "families": sample.families}
    common["strata"] = sample.strata()
    found: tuple[PairOfSystems, ...]
    if sample.is_pairs:
        found = prediction_powered_preferences(
            **sample.arguments(), firsts=items["system"].to_numpy(), seconds=items["other"].to_numpy(), **common
        )
    elif items["system"].nunique() < 2:
        return []
    else:
        found = prediction_powered_differences(
            **sample.arguments(), systems=items["system"].to_numpy(), bounds=BOUNDS, **common
        )
    return [
        {
            "first": pair.first,
            "second": pair.second,
            "result": _combined(pair.result),
            "own_family": [dict(warning.detail) for warning in pair.warnings],
        }
        for pair in found
    ]


def _biases(sample: _Sample, column: str) -> list[dict[str, Any]]:
    """Return the bias of each judge with a scale in each group of outputs, if there are two groups."""
    scaled = [place for place, metric in enumerate(sample.rows.judges) if metric.scale_low is not None]
    items = sample.rows.items
    groups = by_length(items["length"]) if column == "length" else items[column].fillna("").astype(str)
    if not scaled or not sample.has_biases or groups.nunique() < 2:
        return []
    own = sample.of(scaled)
    families = sample.families if column == "system" else {}
    found = judge_bias_by_group(
        **own.arguments(), groups=groups.to_numpy(), names=own.names, bounds=BOUNDS, families=families
    )
    return [_bias(one) for one in found]


def _bias(one: GroupBias) -> dict[str, Any]:
    return {
        "judge": one.judge,
        "group": one.group,
        "n_items": one.n_items,
        "n_labels": one.n_labels,
        "bias": short(one.bias),
        "favour": short(one.favour),
        "is_own_family": bool(one.warnings),
    }


def _each_judge(
    sample: _Sample, used: set[int], widths: list[float], planned: int | None, *, is_ruled_out: bool, say: Say
) -> list[dict[str, Any]]:
    """Return what each judge would give alone."""
    found = []
    for place, metric in enumerate(sample.rows.judges):
        say(f"{metric} alone")
        own = sample.of([place])
        whole = prediction_powered_mean(**own.arguments(), names=own.names, bounds=BOUNDS)
        (judge,) = whole.judges
        has_bias = metric.scale_low is not None and sample.has_biases
        rows = _singles(own) if not own.is_pairs else _pairs(own)
        saved = [row["result"]["labels_saved"] for row in rows if row["result"]["labels_saved"] is not None]
        plan = _plan(own, widths, planned)
        found.append(
            {
                "name": str(metric),
                "kind": metric.kind,
                "family": metric.family,
                "fingerprint": metric.fingerprint,
                "is_used": place in used,
                "correlation": judge.correlation,
                "n_labelled": whole.n_labelled,
                "bias": short(judge.bias) if has_bias else {"status": "not_applicable", "reason": SCALE_OF_ITS_OWN},
                "labels_saved": None if is_ruled_out or not saved else sum(saved),
                "verdicts": plan["verdicts"],
            }
        )
    return found


def _plan_settings(
    results: list[dict[str, Any]], sample: _Sample, options: CalibrationOptions
) -> tuple[list[float], int | None]:
    """Return the wanted widths from 0 to 1, and the outputs of each system in the plan (None: those of the study)."""
    spans = [row["human"]["interval"] for row in results if row["human"].get("interval")]
    present = statistics.median(span["high"] - span["low"] for span in spans) if spans else WIDTH_WITHOUT_INTERVAL
    widths = [width / 100 for width in options.widths] or [
        round(present * share, 4) for share in WANTED_WIDTHS if round(present * share, 4) > 0
    ]
    if options.n_outputs is not None:
        return widths, options.n_outputs
    most = max(int(is_item.sum()) for _, is_item in sample.groups())
    is_mostly_labelled = 2 * sample.rows.n_labelled > len(sample.rows.items)
    return widths, MORE_OUTPUTS * most if is_mostly_labelled else None


def _plan(sample: _Sample, widths: list[float], planned: int | None) -> dict[str, Any]:
    """Return the plan of each system, or pair, and the curve of the system in the middle."""
    plans: list[tuple[str, JudgePlan, Any]] = []
    for name, is_item in sample.groups():
        plan = plan_labels_with_judge(**sample.arguments(is_item), widths=widths, n_items=planned, price=sample.price)
        plans.append((name, plan, is_item))
    verdicts: dict[str, int] = {}
    for _, plan, _ in plans:
        verdicts[plan.verdict or "none"] = verdicts.get(plan.verdict or "none", 0) + 1
    able = sorted((plan.needs[0].people_alone, name, is_item) for name, plan, is_item in plans if plan.needs)
    curve = {}
    if able:
        _, name, is_item = able[(len(able) - 1) // 2]
        shares = [round(max(widths) * share, 6) for share in FIGURE_WIDTHS]
        drawn = plan_labels_with_judge(**sample.arguments(is_item), widths=shares, n_items=planned)
        curve = {
            "group": name,
            "points": [[need.width, need.people_alone, need.with_judge] for need in drawn.needs],
        }
    return {
        "widths": widths,
        "n_items": plans[0][1].n_items if plans else None,
        "useful_share": plans[0][1].useful_share if plans else None,
        "verdicts": verdicts,
        "groups": [{"group": name, **plan.as_dict()} for name, plan, _ in plans],
        "curve": curve,
    }


def _combined(result: CombinedEstimate) -> dict[str, Any]:
    human, combined = short(result.human), short(result.combined)
    ratio = None
    if human["interval"] and combined["interval"] and human["interval"]["high"] > human["interval"]["low"]:
        ratio = (combined["interval"]["high"] - combined["interval"]["low"]) / (
            human["interval"]["high"] - human["interval"]["low"]
        )
    return {
        "human": human,
        "combined": combined,
        "width_ratio": ratio,
        "labels_saved": result.saved.labels_saved,
        "share_saved": result.saved.share_saved,
        "money_saved": result.saved.money_saved,
        "saved_reason": result.saved.reason,
        "fallback": result.fallback,
        "samples": result.samples,
        "n_items": result.n_items,
        "n_labelled": result.n_labelled,
        "n_labels": result.saved.n_labels,
        "weights": result.weights,
    }


def _without_combined(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with the number of people only."""
    nothing = dict.fromkeys(("combined", "width_ratio", "labels_saved", "share_saved", "money_saved"))
    reason = "The labelled outputs are no random part of all, so judges cannot correct their numbers."
    return row | {"result": row["result"] | nothing | {"fallback": reason}}


def short(estimate: Estimate) -> dict[str, Any]:
    """Return what pages and REST show of an estimate."""
    full = estimate.as_dict()
    interval, adjusted = full["interval"], full["interval_adjusted"]
    test = full["test"]
    return {
        **{name: full[name] for name in ("status", "reason", "unit", "n", "n_rows", "estimate")},
        "interval": interval and {name: interval[name] for name in ("level", "low", "high", "method")},
        "interval_adjusted": adjusted and {name: adjusted[name] for name in ("level", "low", "high", "method")},
        "population": population_of(estimate),
        "pvalue": test and test["pvalue"],
        "pvalue_adjusted": test and test["pvalue_adjusted"],
        "warnings": [warning["code"] for warning in full["warnings"]],
    }
