"""x's share of the choices, by the rule that decided about it, and the paper's decision over items."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.data.context import Context
from analysis.protocols.blocks import Block, Wording, concluded
from analysis.protocols.blocks.cells import sides_of
from analysis.protocols.blocks.comparisons import Comparison, judged
from studies.protocols import REGISTRY
from studies.protocols.two_choice import PREFERENCE

from . import layouts
from .compared import Compared, logged

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

# What an anytime-valid verdict is in the words that all comparisons share.
VERDICTS = {
    "a_better": "different",
    "b_better": "different",
    "equivalent": "equivalent",
    "different_but_trivial": "different_but_trivial",
}


def preference_blocks(found: Sequence[Compared], context: Context) -> list[Block]:
    """Both ways of counting, of all sections; families run over all of them."""
    recommended = _judged([(one.comparison, _recommended(one, context)) for one in found], context)
    paper = tuple(one.comparison.named(paper_decision(one), PREFERENCE) for one in found)
    return [
        Block(
            "choice.preference",
            "Share of choices for x",
            "recommended",
            estimates=recommended,
            conclusions=concluded(recommended, _wording, 0.5, is_named_by_estimand=False),
            tables=[layouts.decisions(recommended, paper, [logged(one) for one in found])],
            figures=[layouts.shares(recommended, paper, context.level)],
            note="Annotators weigh the same, whatever the number of their labels. Under a stopping rule the interval and the p-value hold "
            "at whatever moment it stopped; else a test for a number of annotators that was fixed beforehand.",
        ),
        Block(
            "choice.preference",
            "Share of items on which x was chosen, as in the paper",
            "paper",
            estimates=paper,
            note="One answer an item by the labelling strategy, Hoeffding's bound after each. First crossing is what a running study can "
            "use; the crossing that stays to the end is what the paper's tables hold. Neither keeps its error at so many looks.",
        ),
    ]


def _wording(one: "Estimate") -> Wording:
    x, y, about = sides_of(one)
    return Wording(
        more=f"{x} was chosen over {y}{about}.",
        less=f"{y} was chosen over {x}{about}.",
        same=f"{x} and {y} are indistinguishable{about}",
        open=f"It remains open whether {x} or {y} is chosen more often{about}.",
        before=f"Annotators chose {x} over {y} in",
        after=" of their choices on average",
        symbol=f"P({x} chosen over {y})",
        subject=f"{x} and {y}{about}",
        kind="percent",
        interval="confidence sequence" if layouts.is_sequential(one) else "confidence interval",
        ending=_stopping(one),
    )


def _stopping(one: "Estimate") -> str:
    """What the stopping rule did; '' where there was none."""
    if not layouts.is_sequential(one):
        return ""
    detail = one.detail
    if detail.get("stopped_at"):
        overrun = detail.get("labels_overrun") or 0
        after = f" {overrun} label{'s' if overrun != 1 else ''} came after that and change nothing." if overrun else ""
        return f" The stopping rule decided after {detail['stopped_at']} {one.unit}s.{after}"
    if detail.get("outcome") == "budget_exhausted":
        return " The budget was exhausted before the stopping rule decided."
    return " The stopping rule has not decided."


def _recommended(one: Compared, context: Context) -> "Estimate":
    """What the anytime-valid rule says, where the study had one; the fixed-n test beside it, else alone."""
    fixed = _fixed_n(one, context)
    if one.look is None or one.look.rule != "anytime" or one.look.estimate is None:
        return fixed
    look, estimate = one.look, one.look.estimate
    # At an n that the data chose its p-value would claim too much: the estimate and interval stand for comparison.
    beside = replace(fixed, test=None, sensitivity=(), analysis="choice.preference.all_labels")
    outcome = look.verdict if look.verdict != "inconclusive" or not _is_spent(one) else "budget_exhausted"
    return replace(
        estimate,
        analysis="choice.preference.sequential",
        sensitivity=(beside,),
        detail={
            **estimate.detail,
            "outcome": outcome,
            "stopped_at": look.stopped_at,
            "labels_overrun": look.n_overrun,
            "verdict": VERDICTS.get(str(look.verdict), "inconclusive"),
        },
    )


def _is_spent(one: Compared) -> bool:
    """Whether as many have submitted as the target allows, third labels not counted."""
    target = one.section.study.target_n
    return bool(target and one.n_submitted >= target)


def _fixed_n(one: Compared, context: Context) -> "Estimate":
    """x's share at an n fixed beforehand: a tie counts half, "cannot judge" is left out."""
    from analysis.stats import basic, choice, equivalence

    rows = one.shares[one.shares["value"].notna()]
    values, people = rows["value"].to_numpy(float), rows["annotator"].to_numpy(object)
    margin, level = one.comparison.margin, context.level
    n_ties = int((rows["value"] == 0.5).sum())
    means = rows.groupby("annotator", sort=True)["value"].mean().to_numpy(float)
    if n_ties == 0:
        estimate = replace(choice.preference(values, people, level=level), estimand="annotator-weighted share of x")
    else:
        estimate = basic.one_sample(
            means,
            null=0.5,
            level=level,
            bounds=(0.0, 1.0),
            analysis="choice.preference",
            estimand="annotator-weighted share of x, ties half",
        )
        estimate = replace(estimate, n_rows=len(rows))
    if margin and len(means):
        # At the comparison's own level, which need not be the report's.
        tost = equivalence.equivalence(
            means,
            null=0.5,
            margin=margin,
            significance=one.comparison.level,
            bounds=(0.0, 1.0),
            analysis="choice.preference.equivalence",
            estimand=estimate.estimand,
        )
        estimate = replace(estimate, sensitivity=(*estimate.sensitivity, tost))
    skipped = int((one.shares["skip_reason"] != "").sum())
    return replace(estimate, detail={**estimate.detail, "n_ties": n_ties, "n_skipped": skipped})


def _judged(found: Sequence[tuple[Comparison, "Estimate"]], context: Context) -> tuple["Estimate", ...]:
    """Fixed-n estimates with p-values adjusted over each family; sequential ones were tested at a divided level already."""
    others = [(one, estimate) for one, estimate in found if not layouts.is_sequential(estimate)]
    adjusted = iter(judged(others, "choice.preference", context.star_scheme))
    return tuple(
        one.named(estimate if layouts.is_sequential(estimate) else next(adjusted), PREFERENCE)
        for one, estimate in found
    )


def paper_decision(one: Compared) -> "Estimate":
    """The paper's decision at the first crossing, with the crossing that stays beside it."""
    from analysis.stats import sequential
    from analysis.stats.results import Warning

    settings = REGISTRY[one.section.protocol].settings_of(one.section)
    values = one.answers.values
    n_open = int((~one.answers.is_complete).sum())
    warnings: tuple[Warning, ...] = ()
    if n_open and settings["strategy"] == "max_three":
        # Items that still want a third label are those in disagreement: the others alone would look too unanimous.
        values = values[: int(one.answers.is_complete.argmin())]
        warnings = (Warning("open_items", "warn", {"n_open": n_open, "n_used": len(values)}),)
    first, stays = (
        sequential.hoeffding_decision(
            values, delta=settings["delta"], reading=reading, analysis=f"choice.hoeffding.{reading}"
        )
        for reading in sequential.READINGS
    )
    words = "share of items on which x was chosen"
    stays = replace(stays, estimand=words, warnings=(*stays.warnings, *warnings))
    return replace(first, estimand=words, warnings=(*first.warnings, *warnings), sensitivity=(stays,))
