"""Prepare the ratings of one question for the statistics, on the question's own scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks.comparisons import (
    DIFFERENCE_HYPOTHESIS,
    Comparison,
    PlantedReferences,
    planned_comparisons,
    planted_references_of,
    read_contrasts,
)
from analysis.protocols.blocks.populations import SECOND_SAMPLE
from analysis.protocols.blocks.subjects import words_of_section
from studies.protocols import REGISTRY
from studies.protocols.base.scales import ScaleSpec, parse_scale

from .utilities import UTILITY, Utilities, compute_utilities

if TYPE_CHECKING:
    from pandas import DataFrame

DIFFERENCE, SUPERIORITY = "difference", "superiority"


@dataclass(frozen=True, slots=True)
class QuestionRatings:
    """The ratings of one question. ``kept``: the ratings for the recommended estimates.

    ``wide`` and ``paper_wide`` have one row per annotator and prompt, and one column per system. ``ends``: the scores
    of the lowest and the highest point. ``references``: the study's planted references. ``utilities``: the ratings
    between them. ``points_comparisons``: the comparisons of means by key. Their margins are in points. ``superiority_keys``:
    the keys of the planned comparisons whose claim is about the probability of superiority.
    """

    section: Any
    question: Any
    scale: ScaleSpec
    comparisons: tuple[Comparison, ...]
    kept: "DataFrame"
    wide: "DataFrame"
    paper_wide: "DataFrame"
    ends: tuple[float, float]
    is_overall: bool
    references: PlantedReferences
    utilities: Utilities | None
    named: tuple[Comparison, ...]
    points_comparisons: Mapping[str, Comparison]
    superiority_keys: frozenset[str]

    @property
    def point_distance(self) -> float:
        """The distance between two neighbouring points."""
        return (self.ends[1] - self.ends[0]) / (self.scale.maximum - self.scale.minimum)

    @property
    def label(self) -> str:
        """The name of the question in the JSON: its key, whether it is the overall question, and how its points are scored."""
        notes = ["overall"] * (self.is_overall and self.question.key != "overall")
        notes += ["0 to 1"] * (self.ends != (self.scale.minimum, self.scale.maximum))
        return self.question.key + (f" ({', '.join(notes)})" if notes else "")

    @property
    def score_unit(self) -> str:
        """The unit of means and differences: the ends of the scores."""
        return f"points, {self.ends[0]:g} to {self.ends[1]:g}"

    @property
    def title(self) -> str:
        return words_of_section(self.section).subject(self.question.criterion, self.question.key).note


def read_question_ratings(frame: "DataFrame", section: Any) -> list[QuestionRatings]:
    rows = frame[(frame["section"] == section.position) & frame["system"].notna()]
    references = planted_references_of(section.study)
    questions, contrasts = list(section.questions.all()), read_contrasts(section)
    is_unit = REGISTRY[section.protocol].cleaned_settings(section)["scores"] == "unit"
    ratings = []
    for question in questions:
        try:
            scale = parse_scale(question.scale)
        except (ValueError, TypeError, KeyError):
            continue  # the frame reports it as a problem
        if scale.kind == "text":
            continue
        question_rows = rows[rows["question"] == question.key]
        low, high = (0, 1) if is_unit else (scale.minimum, scale.maximum)
        # Round back to the chosen point, so that equal points stay equal.
        question_rows = question_rows.assign(rating=(low + question_rows["value"] * (high - low)).round(6))
        kept_rows, paper_rows = (
            question_rows[question_rows["is_kept"].astype(bool)],
            question_rows[question_rows["is_kept_paper"].astype(bool)],
        )
        is_overall = not question.criterion and any(other.criterion for other in questions)
        planned = planned_comparisons_of_question(section, question, contrasts)
        question_ratings = QuestionRatings(
            section,
            question,
            scale,
            _all_comparisons(planned),
            kept_rows,
            pivot_ratings(kept_rows),
            pivot_ratings(paper_rows),
            (float(low), float(high)),
            is_overall,
            references,
            None,
            planned.utility,
            {comparison.key: comparison for comparison in planned.difference},
            frozenset(comparison.key for comparison in planned.superiority),
        )
        where = f"section {section.position}, {question_ratings.label}"
        ratings.append(
            replace(
                question_ratings,
                utilities=compute_utilities(
                    kept_rows,
                    references,
                    question_ratings.ends,
                    (where, question_ratings.title),
                    planned.utility,
                ),
            )
        )
    return ratings


@dataclass(frozen=True, slots=True)
class PlannedComparisons:
    """The planned comparisons of one question, by estimand. One without an estimand is about the protocol's default."""

    superiority: tuple[Comparison, ...]
    difference: tuple[Comparison, ...]
    utility: tuple[Comparison, ...]


def planned_comparisons_of_question(section: Any, question: Any, contrasts: Sequence[Any]) -> PlannedComparisons:
    def unique_comparisons(estimand: str) -> tuple[Comparison, ...]:
        comparisons = planned_comparisons(contrasts, section, question.criterion, question.key, estimand)
        direction = REGISTRY[section.protocol].direction(estimand, [question])
        is_lower_better = direction is not None and direction.is_lower_better
        return tuple(
            {
                comparison.key: replace(comparison, is_lower_better=is_lower_better) for comparison in comparisons
            }.values()
        )

    return PlannedComparisons(*map(unique_comparisons, (SUPERIORITY, DIFFERENCE, UTILITY)))


def _all_comparisons(planned: PlannedComparisons) -> tuple[Comparison, ...]:
    """Return the comparisons of superiority, then those of means, as comparisons of superiority without a margin."""
    comparisons = {comparison.key: comparison for comparison in planned.superiority}
    for comparison in planned.difference:
        # A margin in points is not a margin of a probability, so the probability has no margin without its own comparison.
        expected = "" if comparison.expected == "~" else comparison.expected
        as_chance = replace(comparison, margin=None, hypothesis=DIFFERENCE_HYPOTHESIS, expected=expected)
        comparisons.setdefault(comparison.key, as_chance)
    return tuple(comparisons.values())


def pivot_ratings(rows: "DataFrame") -> "DataFrame":
    return rows.pivot_table(
        index=["annotator", "prompt", SECOND_SAMPLE], columns="system", values="rating", aggfunc="mean", sort=True
    )


def paired_ratings(wide: "DataFrame", comparison: Comparison) -> "DataFrame":
    """Return one row per annotator and prompt with ratings of both systems, in columns x and y."""
    table = wide.reindex(columns=[comparison.x, comparison.y]).dropna()
    table.columns = ["x", "y"]
    return table.reset_index()
