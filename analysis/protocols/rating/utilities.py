"""Utilities between planted references. A maximal and a minimal reference define the scale of each annotator.

Source: Ethayarajh and Jurafsky 2022, section 4, point 2; equation (1) for the expected expected utility (EEU).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions
from analysis.protocols.blocks.comparisons import Comparison, PlantedReferences
from analysis.protocols.blocks.layouts import build_table, estimate_row
from analysis.protocols.blocks.populations import table_population
from analysis.protocols.kinds.answers import column_arrays
from analysis.protocols.kinds.scores import means_by_system, score_difference, wide_scores

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.ratings import RescaledRatings
    from analysis.stats.results import Estimate

UTILITY = "utility"
UTILITY_BLOCK = "rating.utility_difference"
# References closer than this share of the scale (10 points of 0 to 100) cannot serve as ends.
MIN_REFERENCE_SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class Utilities:
    """The ratings of one question on each annotator's own scale: ``rows`` with ``utility``, including the references.

    ``where`` names the question in the JSON, ``title`` for readers.
    """

    where: str
    title: str
    rows: "DataFrame"
    comparisons: Sequence[Comparison]
    rescaled: "RescaledRatings"
    n_annotators: int

    @property
    def left_out(self) -> dict[str, tuple[Any, ...]]:
        return {
            "extremum_violation": self.rescaled.extremum_violation,
            "narrow_references": self.rescaled.narrow_references,
            "references_not_rated": self.rescaled.no_references,
        }


def compute_utilities(
    rows: "DataFrame",
    references: PlantedReferences,
    score_range: tuple[float, float],
    names: tuple[str, str],
    comparisons: Sequence[Comparison],
) -> Utilities | None:
    """Return the utilities of a question's kept ratings, or None if the study does not plant two ends."""
    from analysis.stats import ratings

    rows = rows[rows["rating"].notna()]
    if not references.is_complete or not len(rows):
        return None
    rescaled = ratings.rescale_to_references(
        *column_arrays(rows, "rating", "annotator"),
        is_minimum=rows["system"].isin(references.minimal).to_numpy(bool),
        is_maximum=rows["system"].isin(references.maximal).to_numpy(bool),
        minimum_spread=MIN_REFERENCE_SPREAD * (score_range[1] - score_range[0]),
    )
    return Utilities(*names, rows.assign(utility=rescaled.values), comparisons, rescaled, rows["annotator"].nunique())


def utility_difference(utilities: Utilities, comparison: Comparison, level: float) -> "Estimate":
    """Return EEU of x minus EEU of y over annotators with a scale."""
    estimate = score_difference(
        wide_scores(utilities.rows, "utility"),
        comparison,
        level=level,
        analysis="rating.utility_difference",
        estimand="EEU of x minus EEU of y, in parts of the distance between the references",
        scores_per_row=2,
        # As in the EEU of each system.
        has_equal_weights=True,
    )
    estimate = replace(estimate, warnings=(*estimate.warnings, *_exclusion_warnings(utilities)))
    return comparison.tag_estimate(estimate, UTILITY, null=0.0)


PHRASES = ConclusionPhrases(
    above_claim="{x} has a higher expected utility than {y}{about}.",
    below_claim="{x} has a lower expected utility than {y}{about}.",
    same="{x} and {y} have equivalent expected utilities{about}",
    open="It remains open whether {x} or {y} has the higher expected utility{about}.",
    before="EEU of {x} less that of {y} is",
    symbol="EEU({x}) − EEU({y})",
)


def _exclusion_warnings(utilities: Utilities) -> tuple[Any, ...]:
    from analysis.stats.results import ResultWarning

    return tuple(
        ResultWarning(code, "warn", {"n": len(people), "of": utilities.n_annotators})
        for code, people in utilities.left_out.items()
        if people
    )


def utility_blocks(
    question_utilities: Sequence[Utilities],
    differences: tuple["Estimate", ...],
    references: PlantedReferences,
    context: AnalysisContext,
) -> list[Block]:
    """Return the EEU of each system for each question, the annotators without a scale, and the planned differences, adjusted."""
    estimates, rows, people = [], [], []
    for utilities in question_utilities:
        for estimate in _expected_utilities(utilities, references, context.level):
            estimates.append(estimate)
            rows.append(estimate_row(estimate, "eeu", where=utilities.title))
        left_out = utilities.left_out
        people.append(
            {
                "where": utilities.title,
                "n": utilities.n_annotators,
                "kept": utilities.n_annotators - sum(map(len, left_out.values())),
                **{code: len(names) for code, names in left_out.items()},
                "who": ", ".join(str(name) for names in left_out.values() for name in sorted(names)),
            }
        )
    tables = [
        build_table(
            "utilities",
            "Expected utility of each system",
            "where|Question|text; system|System|text; eeu|EEU|number; interval|95% CI|wide_interval; n|n annotators|integer; "
            "reason|Undefined because|text",
            rows,
            "sure",
            "Each rating as a share of the distance from its annotator's mean rating of the minimal reference (0) to that of the maximal one "
            "(1). Every annotator has the same weight.",
        ),
        build_table(
            "references",
            "Who used the references as ends",
            "where|Question|text; n|Annotators|integer; kept|With a scale of their own|integer; "
            "extremum_violation|Rated the maximal no higher|integer; narrow_references|Kept them too close|integer; "
            "references_not_rated|Did not rate both|integer; who|Left out of utilities|text",
            people,
            "sure",
            "Utilities leave out annotators who do not rate the maximal reference above the minimal one. They also leave out annotators "
            "with less than a tenth of the scale between the two references.",
        ),
    ]
    return [
        Block(
            "rating.utility",
            "Expected utility between the references",
            estimates=tuple(estimates),
            tables=tables,
        ),
        Block(
            UTILITY_BLOCK,
            "Difference of expected utilities",
            estimates=differences,
            conclusions=build_planned_conclusions(differences, PHRASES),
        ),
    ]


def _expected_utilities(utilities: Utilities, references: PlantedReferences, level: float) -> list["Estimate"]:
    from analysis.stats import ratings

    rows = utilities.rows[~utilities.rows["system"].isin(references.names)]
    population = table_population(utilities.comparisons, rows)
    mean = partial(ratings.expected_utility, is_rescaled=True, population=population, level=level)
    warnings = _exclusion_warnings(utilities)
    return [
        replace(one, warnings=(*one.warnings, *warnings))
        for one in means_by_system(rows, "utility", mean, question=utilities.where)
    ]
