"""The stated chance that x is better than y: both orders of naming combined, and one order as in the paper."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.data.context import Context
from analysis.protocols.blocks import Block, Wording, concluded
from analysis.protocols.blocks.cells import are_of_several_sections, sides_of
from analysis.protocols.blocks.comparisons import judged

from . import layouts
from .answers import ESTIMAND, Answers

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


def pair_blocks(answers: Sequence[Answers], context: Context) -> list[Block]:
    """Both ways of counting, of all sections; families run over all of them."""
    found = [_pairs(one, context) for one in answers]
    compared = [one for section in answers for one in section.comparisons]
    recommended, paper = (
        judged(list(zip(compared, estimates, strict=True)), f"spa.{mode}", context.star_scheme)
        for mode, estimates in (
            ("recommended", [one for pairs, _ in found for one in pairs]),
            ("paper", [one for _, pairs in found for one in pairs]),
        )
    )
    several = are_of_several_sections(recommended)
    return [
        Block(
            "spa.pairs",
            "Stated chance that x is better than y",
            "recommended",
            estimates=recommended,
            conclusions=concluded(recommended, _wording, 0.5, is_named_by_estimand=False),
            figures=[layouts.forest(recommended, paper, several, context.level)],
            note="Both orders of naming combined, everybody whom the rules kept that look at no outcome; t test against 50 %.",
        ),
        Block(
            "spa.pairs",
            "Stated chance that x is better than y, as in the paper",
            "paper",
            estimates=paper,
            note="The order named in the comparison alone, after all primary rules; t test against 50 %.",
        ),
    ]


def _wording(one: "Estimate") -> Wording:
    x, y, about = sides_of(one)
    return Wording(
        more=f"{x} was preferred to {y}{about}.",
        less=f"{y} was preferred to {x}{about}.",
        same=f"{x} and {y} are indistinguishable{about}",
        open=f"It remains open whether {x} or {y} is preferred{about}.",
        before=f"On average annotators put the chance that {x} is better than {y} at",
        symbol=f"P[{x} > {y}]",
        kind="percent",
        subject=f"{x} and {y}{about}",
        expected=(f"{x} is better.", f"{y} is better.", "the two are equivalent."),
    )


def _pairs(one: Answers, context: Context) -> tuple[list["Estimate"], list["Estimate"]]:
    """The recommended and the paper's estimate of each comparison, not yet adjusted."""
    import numpy as np

    from analysis.stats import equivalence, spa

    kept = one.kept
    level = context.level
    shared = spa.pairs_recommended(
        kept.xy,
        kept.yx,
        names=kept.names,
        batches=kept.people["batch"].to_numpy(),
        tau=context.tau,
        level=level,
        resamples=context.resamples,
        rng=context.rng("pairs", one.section.position),
    )
    values = spa.combined(kept.xy, kept.yx)
    recommended = []
    for column, compared in enumerate(one.comparisons):
        estimate = shared[compared.key]
        if compared.margin:
            # Each comparison has a margin of its own, and a level.
            tost = equivalence.equivalence(
                values[:, column],
                null=0.5,
                margin=compared.margin,
                significance=compared.level,
                bounds=spa.BOUNDS,
                analysis="spa.pair.equivalence",
                estimand=estimate.estimand,
            )
            estimate = replace(estimate, sensitivity=(*estimate.sensitivity, tost))
        recommended.append(compared.named(estimate, ESTIMAND))
    kept = one.chosen(one.people["is_kept_paper"].to_numpy(bool))
    paper = []
    for column, compared in enumerate(one.comparisons):
        asked, estimand = kept.xy[:, column], None
        if np.isnan(one.xy[:, column]).all() and not np.isnan(one.yx[:, column]).all():
            asked, estimand = 100 - kept.yx[:, column], "1 - mean over annotators of P[y > x], asked with y named first"
        estimate = spa.pair_paper(asked, is_after_tau=context.is_after_tau, level=level)
        paper.append(compared.named(replace(estimate, estimand=estimand) if estimand else estimate, ESTIMAND))
    return recommended, paper
