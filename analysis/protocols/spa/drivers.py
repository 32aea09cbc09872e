"""Relate overall answers to the criteria, if a section asks an overall question and at least two criteria.

Criteria are questions of their own and are never averaged; this describes which of them move with the overall one. It tests nothing.

Source: Ethayarajh and Jurafsky 2022, Limitations, point 3.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.cells import interval_bounds
from analysis.protocols.blocks.layouts import build_table
from analysis.protocols.blocks.subjects import join_words

from .answers import SectionAnswers

if TYPE_CHECKING:
    from analysis.stats.criteria import Drivers
    from analysis.stats.results import Estimate

OVERALL_CRITERION = ""
MIN_CRITERIA = 2
BLOCK_NAME = "spa.drivers"


def overall_answer_drivers_block(kept_answers: Sequence[SectionAnswers], context: AnalysisContext) -> Block | None:
    """Return one block for all sections with an overall question and criteria, or None if there is no such section.

    ``kept_answers``: those who are kept for the recommended estimates.
    """
    fits = [
        (answers, _fit_drivers(answers, context.level))
        for answers in kept_answers
        if _has_overall_and_criteria(answers)
    ]
    if not fits:
        return None
    rows = [row for answers, drivers in fits for row in _table_rows(answers, drivers)]
    described = "; ".join(
        join_words(answers.title, f"{100 * drivers.r_squared:.0f} %")
        for answers, drivers in fits
        if drivers.r_squared is not None
    )
    table = build_table(
        "drivers",
        "What the overall answers go with",
        "where|Section|text; what|Criterion|text; slope|Points overall for one point on it|number; "
        "interval|95% CI|wide_interval; explained|Described by the other criteria|percent; n|n annotators|integer; "
        "n_rows|Rows|integer; reason|Undefined because|text",
        rows,
        "sure",
        "One row of the fit is one annotator's answers about one pair. Example: .60 means that answers ten points higher on this "
        "criterion, with the others equal, go with six points more overall. The last row is the overall answer if no criterion decides, "
        "in points of 100. People who like a text tend to like everything about it. The table only describes, so nothing is tested."
        + (f" Share of the overall answers' variance that the criteria describe: {described}." if described else ""),
    )
    return Block(
        BLOCK_NAME,
        "What the overall answers go with",
        "recommended",
        tables=[table],
        estimates=tuple(estimate for answers, drivers in fits for estimate in _tagged_estimates(answers, drivers)),
        note="Least squares over annotators and pairs, annotators as clusters (CV3); both orders of naming combined. Descriptive.",
    )


def _criteria(answers: SectionAnswers) -> list[str]:
    return list(
        dict.fromkeys(compared.criterion for compared in answers.comparisons if compared.criterion != OVERALL_CRITERION)
    )


def _has_overall_and_criteria(answers: SectionAnswers) -> bool:
    return len(_criteria(answers)) >= MIN_CRITERIA and any(
        compared.criterion == OVERALL_CRITERION for compared in answers.comparisons
    )


def _fit_drivers(answers: SectionAnswers, level: float) -> "Drivers":
    """Fit the answers over (annotator, pair). Pairs with a missing answer on a criterion are left out."""
    import numpy as np

    from analysis.stats import criteria as axes
    from analysis.stats import spa

    values = spa.combine_orders(answers.xy, answers.yx)
    criteria = _criteria(answers)
    values_by_pair: dict[frozenset[str], dict[str, Any]] = {}
    first: dict[frozenset[str], str] = {}
    for column, compared in enumerate(answers.comparisons):
        pair = frozenset((compared.x, compared.y))
        # Turn all questions about a pair to the direction of its first question.
        is_turned = first.setdefault(pair, compared.x) != compared.x
        values_by_pair.setdefault(pair, {})[compared.criterion] = (
            1 - values[:, column] if is_turned else values[:, column]
        )
    nothing = np.full(len(answers.people), np.nan)
    overall = np.concatenate([pair_values.get(OVERALL_CRITERION, nothing) for pair_values in values_by_pair.values()])
    table = np.concatenate(
        [
            np.column_stack([pair_values.get(criterion, nothing) for criterion in criteria])
            for pair_values in values_by_pair.values()
        ]
    )
    people = np.tile(answers.people["annotator"].to_numpy(object), len(values_by_pair))
    return axes.regress_overall_on_criteria(overall, table, people, names=criteria, level=level)


def _tagged_estimates(answers: SectionAnswers, drivers: "Drivers") -> list["Estimate"]:
    named_estimates = [*drivers.coefficients.items(), (OVERALL_CRITERION, drivers.intercept)]
    return [
        replace(estimate, settings={**estimate.settings, "section": answers.section.position, "criterion": name})
        for name, estimate in named_estimates
    ]


def _table_rows(answers: SectionAnswers, drivers: "Drivers") -> list[dict[str, Any]]:
    def row(label: str, estimate: "Estimate", scale: float = 1) -> dict[str, Any]:
        between = interval_bounds(estimate)
        return {
            "where": answers.title,
            "what": label,
            "slope": None if estimate.estimate is None else scale * estimate.estimate,
            "interval": between and [scale * end for end in between],
            "explained": (estimate.detail or {}).get("explained_by_others"),
            "n": estimate.n,
            "n_rows": estimate.n_rows,
            "reason": estimate.reason,
        }

    rows = [row(name, estimate) for name, estimate in drivers.coefficients.items()]
    return [*rows, row("remainder if no criterion decides", drivers.intercept, 100)]
