"""Prepare the answers of one section for the statistics: percent as typed, in both orders of naming."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks.comparisons import (
    Comparison,
    comparison_from_contrast,
    read_contrasts,
    unplanned_comparison,
)
from analysis.protocols.blocks.subjects import words_of_section
from studies.protocols import REGISTRY
from studies.protocols.base.contrasts import system_contrasts_for_section

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

ESTIMAND = "preference"


@dataclass(frozen=True, slots=True)
class SectionAnswers:
    """The answers of one section: a row an annotator (at their last batch that counts), a column a comparison; percent as typed, NaN
    missing."""

    section: Any
    comparisons: tuple[Comparison, ...]
    xy: "np.ndarray"
    yx: "np.ndarray"
    people: "DataFrame"

    @property
    def title(self) -> str:
        return words_of_section(self.section).circumstance

    @property
    def names(self) -> list[str]:
        return [comparison.key for comparison in self.comparisons]

    @property
    def kept(self) -> "SectionAnswers":
        """Return the answers of the annotators in the recommended estimates."""
        return self.select_annotators(self.people["is_kept"].to_numpy(bool))

    def select_annotators(self, mask) -> "SectionAnswers":
        return replace(self, xy=self.xy[mask], yx=self.yx[mask], people=self.people[mask])


def planned_then_unplanned_comparisons(section: Any) -> list[Comparison]:
    """Return the comparisons of a section: the planned ones, then the other pairs that its questions name."""
    contrasts = read_contrasts(section)
    directions: dict[tuple[frozenset, str], tuple[str, str]] = {}
    for question in section.questions.select_related("x", "y"):
        if question.x_id:
            directions.setdefault(
                (frozenset((question.x.name, question.y.name)), question.criterion), (question.x.name, question.y.name)
            )
    comparisons: list[Comparison] = []
    seen = set()
    for contrast in system_contrasts_for_section(
        contrasts, section, ESTIMAND, REGISTRY[section.protocol].default_estimand(section)
    ):
        for pair, criterion in directions:
            is_meant = pair == {contrast.x.name, contrast.y.name} and contrast.criterion in ("", criterion)
            if is_meant and (pair, criterion) not in seen:
                seen.add((pair, criterion))
                comparisons.append(comparison_from_contrast(contrast, section, criterion))
    for (pair, criterion), (x, y) in directions.items():
        if (pair, criterion) not in seen:
            comparisons.append(unplanned_comparison(section, x, y, criterion))
    return comparisons


def read_section_answers_by_annotator(frame: "DataFrame", section: Any) -> SectionAnswers:
    """Return the answers of a section as two tables, planned comparisons first, then unplanned pairs."""
    import numpy as np

    rows = frame[(frame["section"] == section.position) & frame["x"].notna() & frame["y"].notna()]
    comparisons = planned_then_unplanned_comparisons(section)
    # Each person is one unit. Use their last batch that counts, because it has the most exposure.
    people = rows.drop_duplicates("assignment").sort_values(["annotator", "is_kept", "ordinal", "assignment"])
    people = people.drop_duplicates("annotator", keep="last").reset_index(drop=True)
    row_numbers = {assignment: row for row, assignment in enumerate(people["assignment"])}
    columns = {
        (comparison.x, comparison.y, comparison.criterion): column for column, comparison in enumerate(comparisons)
    }
    xy = np.full((len(people), len(comparisons)), np.nan)
    yx = np.full_like(xy, np.nan)
    for assignment, x, y, criterion, value in zip(
        *(rows[name] for name in ("assignment", "x", "y", "criterion", "value")), strict=True
    ):
        row = row_numbers.get(assignment)
        if row is None:
            continue
        # Round back to the typed value, so that sums are compared exactly.
        if (x, y, criterion) in columns:
            xy[row, columns[x, y, criterion]] = round(100 * value, 6) if value == value else np.nan
        elif (y, x, criterion) in columns:
            yx[row, columns[y, x, criterion]] = round(100 * value, 6) if value == value else np.nan
    return SectionAnswers(section, tuple(comparisons), xy, yx, people)
