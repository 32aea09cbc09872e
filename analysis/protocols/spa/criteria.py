"""What the overall answers go with, where a section asks an overall question beside at least two criteria.

Criteria are questions of their own and are never averaged; this describes which of them move with the overall one. It tests nothing.

Source: Ethayarajh and Jurafsky 2022, Limitations, point 3.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import Context
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.cells import ends
from analysis.protocols.blocks.tables import table

from .answers import Answers

if TYPE_CHECKING:
    from analysis.stats.axes import Drivers
    from analysis.stats.results import Estimate

OVERALL = ""
FEWEST = 2
NAME = "spa.drivers"


def drivers_block(answers: Sequence[Answers], context: Context) -> Block | None:
    """One block for all sections with an overall question and criteria; None where there is no such section.

    ``answers``: those who are kept for the recommended estimates.
    """
    found = [(one, _drivers(one, context.level)) for one in answers if _has_both(one)]
    if not found:
        return None
    rows = [row for one, mine in found for row in _rows(one, mine)]
    described = "; ".join(
        f"section {one.section.position}: {mine.r_squared:.0%}" for one, mine in found if mine.r_squared is not None
    )
    laid = table(
        "drivers",
        "What the overall answers go with",
        "where|Section|text; what|Criterion|text; slope|Points overall for one point on it|number; "
        "interval|95% CI|wide_interval; explained|Told by the other criteria|percent; n|n annotators|integer; "
        "n_rows|Rows|integer; reason|Undefined because|text",
        rows,
        "sure",
        "One row of the fit is what one annotator said of one pair. Read: .60 means that answers ten points higher on this "
        "criterion, the others equal, go with six points more overall. The last row is what is left overall where no criterion decides, in "
        "points of 100. Whoever likes a text tends to like everything about it: this describes and explains nothing, so nothing is tested."
        + (f" Share of the overall answers' variance that the criteria describe: {described}." if described else ""),
    )
    return Block(
        NAME,
        "What the overall answers go with",
        "recommended",
        tables=[laid],
        estimates=tuple(estimate for one, mine in found for estimate in _estimates(one, mine)),
        note="Least squares over annotators and pairs, annotators as clusters (CV3); both orders of naming combined. Descriptive.",
    )


def _criteria(one: Answers) -> list[str]:
    return list(dict.fromkeys(compared.criterion for compared in one.comparisons if compared.criterion != OVERALL))


def _has_both(one: Answers) -> bool:
    return len(_criteria(one)) >= FEWEST and any(compared.criterion == OVERALL for compared in one.comparisons)


def _drivers(one: Answers, level: float) -> "Drivers":
    """The fit over (annotator, pair); pairs about which a criterion was not asked drop out with their missing answers."""
    import numpy as np

    from analysis.stats import axes, spa

    values = spa.combined(one.xy, one.yx)
    criteria = _criteria(one)
    said: dict[frozenset[str], dict[str, Any]] = {}
    first: dict[frozenset[str], str] = {}
    for column, compared in enumerate(one.comparisons):
        pair = frozenset((compared.x, compared.y))
        # All questions about a pair in the direction of its first one.
        is_turned = first.setdefault(pair, compared.x) != compared.x
        said.setdefault(pair, {})[compared.criterion] = 1 - values[:, column] if is_turned else values[:, column]
    nothing = np.full(len(one.people), np.nan)
    overall = np.concatenate([mine.get(OVERALL, nothing) for mine in said.values()])
    table = np.concatenate(
        [np.column_stack([mine.get(criterion, nothing) for criterion in criteria]) for mine in said.values()]
    )
    people = np.tile(one.people["annotator"].to_numpy(object), len(said))
    return axes.drivers(overall, table, people, names=criteria, level=level, analysis=NAME)


def _estimates(one: Answers, mine: "Drivers") -> list["Estimate"]:
    named = [*mine.coefficients.items(), (OVERALL, mine.intercept)]
    return [
        replace(each, settings={**each.settings, "section": one.section.position, "criterion": name})
        for name, each in named
    ]


def _rows(one: Answers, mine: "Drivers") -> list[dict[str, Any]]:
    def row(what: str, each: "Estimate", scale: float = 1) -> dict[str, Any]:
        between = ends(each)
        return {
            "where": f"section {one.section.position}",
            "what": what,
            "slope": None if each.estimate is None else scale * each.estimate,
            "interval": between and [scale * end for end in between],
            "explained": (each.detail or {}).get("explained_by_others"),
            "n": each.n,
            "n_rows": each.n_rows,
            "reason": each.reason,
        }

    rows = [row(name, each) for name, each in mine.coefficients.items()]
    return [*rows, row("left where no criterion decides", mine.intercept, 100)]
