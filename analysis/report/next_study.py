"""Power of a next study by its number of annotators: with the spread of this study, and the smallest differences that were declared.

A power at this study's own estimates would only repeat their p-values, so no estimate enters. Figure 2 of Ethayarajh and Jurafsky
2022, which has it, stays as printed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.protocols import HeadlineAnswers, headline_name, planned_block
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.cells import contrast_of, is_sequential
from analysis.protocols.blocks.layouts import build_figure, build_table
from analysis.protocols.spa.layouts import PAPER
from analysis.stats.planning.closed_forms import Components, plan_of_components
from analysis.stats.planning.inputs import HEADLINES, MOST_PEOPLE, StudySize, Target
from studies.models import SizePlan

from .planned import components_of_estimate

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

TITLE = "For a next study: power by the number of annotators"
WANTED = 0.8
FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
# Lines of one figure.
MOST_LINES = 12
NOT_DECLARED = "no smallest difference was declared: neither a margin of the comparison nor a plan"
NO_SPREAD = "its answers do not say how much people and prompts vary"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStudy:
    """A next study of one comparison: what it is to find, and the spread of its answers. Only people are added."""

    size: StudySize
    target: Target
    parts: Components

    def power_with(self, people: int) -> float:
        """Return the power with other people, who answer about as many prompts each."""
        prompts = min(self.size.prompts, people * self.size.prompts_each)
        size = replace(self.size, people=people, prompts=prompts, prompts_each=min(self.size.prompts_each, prompts))
        return plan_of_components(self.parts, size, self.target).power

    def people_for(self, power: float) -> int | None:
        """Return the fewest people with this power, or None if no number of people has it."""
        from analysis.stats.power_of_means import least_n

        try:
            return least_n(lambda people: self.power_with(people) >= power, largest=MOST_PEOPLE)
        except ValueError:
            return None


def next_study_of(
    estimate: "Estimate", value: float, *, protocol: str, points: int, population: str, level: float
) -> NextStudy | None:
    """Return the next study that is to find ``value``, or None if the answers behind the estimate do not say how much they vary.

    The variance of a probability depends on its value: it is moved from the estimate to ``value``, as that of single choices is.
    """
    detail, mean = estimate.detail, estimate.estimate
    se = detail.get("se")
    prompts = int(detail.get("n_items") or detail.get("n_prompts") or 0)
    if mean is None or not se or estimate.n < 2:
        return None
    size = StudySize(protocol=protocol, people=estimate.n, prompts=1, prompts_each=1, points=points)
    parts = None if size.kind == "chance" or not prompts else components_of_estimate(estimate, prompts)
    if parts is None:
        # Nobody, or hardly anybody, shares a prompt, so more people bring prompts of their own.
        spread, population = estimate.n * se**2, "people"
        parts = Components(mean=value, people=spread, prompts=0.0, rest=0.0)
        answers = mean * (1 - mean)
    else:
        each = max(1, round((estimate.n_rows or estimate.n) / estimate.n))
        shown = max(1, min(prompts, estimate.n * each))
        size = replace(size, prompts=shown, prompts_each=min(each, shown))
        answers = parts.total
    if size.kind in ("preference", "superiority"):
        factor = (answers + (mean - 0.5) ** 2 - (value - 0.5) ** 2) / answers if answers > 0 else 0.0
        parts = replace(parts, people=factor * parts.people, prompts=factor * parts.prompts, rest=factor * parts.rest)
    if parts.total <= 0:
        return None
    target = Target(significance=level, population=population or "people_and_prompts")
    return NextStudy(size=size, target=target, parts=replace(parts, mean=value))


def next_study_block(
    blocks: Sequence[Block], headlines: Mapping[str, Sequence[HeadlineAnswers]], plan: SizePlan | None
) -> Block | None:
    """Return a row for each planned comparison of systems, and a curve for each with a declared difference. None without a planned one."""
    estimates = {
        (block.name, contrast_of(estimate).get("key")): estimate
        for block in blocks
        if block.mode == "recommended"
        for estimate in block.estimates
    }
    wanted = plan.inputs["target"]["wanted"] if plan else WANTED
    rows, marks = [], []
    for protocol, answers in headlines.items():
        name = headline_name(protocol)
        for one in answers if name else ():
            compared = one.comparison
            estimate = estimates.get((planned_block(name), compared.key))
            if estimate is None or not compared.is_planned or compared.role not in ("primary", "secondary"):
                continue
            if is_sequential(estimate):
                continue
            level = compared.level / max(1, (estimate.test and estimate.test.family_size) or 1)
            difference, source = _declared(compared, plan, name)
            row: dict[str, Any] = {
                "comparison": compared.label,
                "protocol": HEADLINES[name].label,
                "difference": difference,
                "source": source,
                "level": level,
                "n": estimate.n,
                "power": None,
                "needed": None,
                "reason": NOT_DECLARED,
            }
            rows.append(row)
            if difference is None:
                continue
            found = next_study_of(
                estimate,
                HEADLINES[name].null + difference,
                protocol=name,
                points=one.points,
                population=compared.population,
                level=level,
            )
            if found is None:
                row["reason"] = NO_SPREAD
                continue
            needed = found.people_for(wanted)
            why = "" if needed else "more people with the same prompts do not reach it"
            row |= {"power": found.power_with(estimate.n), "needed": needed, "reason": why}
            for people in sorted({max(6, round(estimate.n * factor)) for factor in FACTORS}):
                shown = {"label": compared.label, "series": row["protocol"], "n": people, "unit": "annotator"}
                marks.append(shown | {"estimate": found.power_with(people), "low": None, "high": None})
    if not rows:
        return None
    lines = list(dict.fromkeys((mark["label"], mark["series"]) for mark in marks))[:MOST_LINES]
    shown_marks = [mark for mark in marks if (mark["label"], mark["series"]) in lines]
    return Block(
        "next_study",
        TITLE,
        tables=[_table(rows, wanted)],
        figures=[
            build_figure(
                "next_study",
                TITLE,
                shown_marks,
                description="The dashed line is the wanted power. Nothing here is about what this study found.",
                axis="Power",
                reference=wanted,
                limits=[0, 1],
                kind="curves",
            )
        ]
        if shown_marks
        else [],
    )


def _declared(compared: Any, plan: SizePlan | None, headline: str) -> tuple[float | None, str]:
    """Return the smallest difference that matters as a distance from no difference, and where it was declared."""
    if compared.margin:
        return compared.margin, "margin"
    if plan and plan.inputs["size"]["protocol"] == headline and plan.inputs["target"].get("goal") == "difference":
        return abs(plan.result["plan"]["planned"]["value"] - HEADLINES[headline].null), "plan"
    return None, ""


def _table(rows: Sequence[Mapping[str, Any]], wanted: float) -> Any:
    return build_table(
        "next_study",
        TITLE,
        "comparison|Comparison|text; protocol|Protocol|text; difference|Smallest difference|number; source|Declared as|text; level|Level|p; "
        f"n|n annotators|integer; power|Power with as many|probability; needed|Annotators for power {wanted:g}|integer; "
        "reason|Undefined because|text",
        rows,
        "more",
        "Approximate. The spread is that of this study, and the difference is the smallest one that matters, as it was declared before the "
        "answers. The level is divided by the number of comparisons of the family. Each annotator answers about as many prompts as here. "
        "This study's own estimates do not enter: power at an observed difference only repeats its p-value. Figure 2 of "
        f"{PAPER} does that, and stays as printed.",
    )
