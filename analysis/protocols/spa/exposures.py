"""The same comparison after m = 1, 2, 4 ... exposures: each m, and each step within the annotators."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block

from . import layouts
from .answers import SectionAnswers

if TYPE_CHECKING:
    import numpy as np

    from analysis.stats.results import Estimate


def stated_chance_by_exposure_blocks(answers: Sequence[SectionAnswers], context: AnalysisContext) -> list[Block]:
    """Return the blocks of comparisons that several sections ask about: the chances after each m, and the steps between them."""
    from analysis.stats import multiplicity
    from analysis.stats.exposure import preference_by_n_outputs_seen

    tables: dict[tuple[str, str, str], dict[int, tuple[SectionAnswers, int, bool]]] = {}
    for section_answers in answers:
        kept_answers = section_answers.kept
        for column, compared in enumerate(section_answers.comparisons):
            # An unplanned pair has the direction of its section's first question. Turn it to the direction in the first section.
            is_turned = (compared.y, compared.x, compared.criterion) in tables
            x, y = (compared.y, compared.x) if is_turned else (compared.x, compared.y)
            # If two sections have the same m, use the first.
            tables.setdefault((x, y, compared.criterion), {}).setdefault(
                section_answers.section.m, (kept_answers, column, is_turned)
            )
    levels, trends, steps = [], [], {}
    for (x, y, criterion), by_m in tables.items():
        if len(by_m) < 2:
            continue
        xy, yx = _answers_by_annotator([by_m[m] for m in sorted(by_m)])
        study = preference_by_n_outputs_seen(xy, yx, levels=sorted(by_m), level=context.level)
        labels = {"x": x, "y": y, "criterion": criterion}
        of_criterion = f" on {criterion}" if criterion else ""
        pair = f"{x} > {y}" + (f", {criterion}" if criterion else "")
        levels += [
            _add_settings(_in_words(_suffix_family(estimate, pair)), **labels, m=m)
            for estimate, m in zip(study.by_level, study.levels, strict=True)
        ]
        trends += [
            _add_settings(_in_words(replace(estimate, estimand=f"{pair}: {estimate.estimand}")), **labels)
            for estimate in (study.slope, study.diminishing_returns)
            if estimate.status != "not_applicable"
        ]
        for before, after, step in zip(study.levels, study.levels[1:], study.contrasts, strict=False):
            step = replace(
                step,
                estimand=f"P[{x} > {y}]{of_criterion} {layouts.examples_in_words(after)} less {layouts.examples_in_words(before)}",
            )
            key = f"{pair}, m {before} to {after}"
            steps[key] = _add_settings(step, **labels, m_before=before, m_after=after)
    if not steps:
        return []
    family = multiplicity.Family("spa.exposure_steps", tuple(steps))
    judged = multiplicity.adjust_pvalues_and_intervals_of_family(steps, family, star_scheme=context.star_scheme)
    changes = (*judged.values(), *trends)
    return [
        Block(
            "spa.exposure_levels",
            "The stated chance by what was seen",
            "recommended",
            estimates=tuple(levels),
            tables=[layouts.stated_chance_by_exposure_table(levels)],
            figures=[layouts.stated_chance_by_exposure_figure(levels)],
            note="Conviction (the distance from 50 %) is not tested: noise alone inflates it.",
        ),
        Block(
            "spa.exposures",
            "What more exposure changes",
            "recommended",
            estimates=changes,
            tables=[layouts.estimates_table(changes, "exposures", "What more exposure changes", "sure")],
            note=f"Within the annotator. Below 0 after the first number of examples: the overconfidence of {layouts.PAPER}.",
        ),
    ]


def _in_words(estimate: "Estimate") -> "Estimate":
    """Return the estimate and its companions with estimands that say what m is."""
    estimand = re.sub(r"\bafter m=(\d+)", lambda found: layouts.examples_in_words(int(found[1])), estimate.estimand)
    return replace(
        estimate,
        estimand=re.sub(r"\bof m\b", "of the number of examples", estimand),
        sensitivity=tuple(map(_in_words, estimate.sensitivity)),
    )


def _suffix_family(estimate: "Estimate", pair: str) -> "Estimate":
    """Return the estimate and its companions in a family per comparison, so that each is adjusted over its own m only."""
    test = estimate.test and replace(estimate.test, family=estimate.test.family and f"{estimate.test.family} ({pair})")
    return replace(
        estimate, test=test, sensitivity=tuple(_suffix_family(companion, pair) for companion in estimate.sensitivity)
    )


def _answers_by_annotator(
    columns_by_m: Sequence[tuple[SectionAnswers, int, bool]],
) -> tuple["np.ndarray", "np.ndarray"]:
    """Return one comparison's answers in both orders: one row per annotator, one column per section, NaN if missing."""
    import numpy as np

    people = sorted({person for answers, _, _ in columns_by_m for person in answers.people["annotator"]})
    row_numbers = {person: row for row, person in enumerate(people)}
    answers_by_order = np.full((2, len(people), len(columns_by_m)), np.nan)
    for number, (answers, column, is_turned) in enumerate(columns_by_m):
        rows = [row_numbers[person] for person in answers.people["annotator"]]
        first, second = (answers.yx, answers.xy) if is_turned else (answers.xy, answers.yx)
        answers_by_order[0, rows, number], answers_by_order[1, rows, number] = first[:, column], second[:, column]
    return answers_by_order[0], answers_by_order[1]


def _add_settings(estimate: "Estimate", **settings: Any) -> "Estimate":
    return replace(estimate, settings={**estimate.settings, **settings})
