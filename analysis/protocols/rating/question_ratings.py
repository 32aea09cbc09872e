"""Prepare the ratings of one question for the statistics, on the question's own scale."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks.comparisons import Comparison, comparison_from_contrast
from analysis.protocols.blocks.references import PlantedReferences, planted_references_of
from studies.protocols import REGISTRY
from studies.protocols.base.contrasts import system_contrasts_for_section
from studies.protocols.base.scales import ScaleSpec, parse_scale

from .utilities import UTILITY, Utilities, compute_utilities

if TYPE_CHECKING:
    from pandas import DataFrame

DIFFERENCE, SUPERIORITY = "difference", "superiority"


@dataclass(frozen=True, slots=True)
class QuestionRatings:
    """The ratings of one question: ``kept`` for the recommended estimates; ``wide`` and ``wide_paper`` have a row an annotator
    and prompt, a column a system. ``ends``: what its points are scored between. ``references`` are the study's planted ends,
    ``utilities`` the ratings between them.
    ``add_points_equivalence_test``: by key, the comparisons that name the difference of means, whose margins are in points."""

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

    @property
    def step(self) -> float:
        """The distance between two neighbouring points."""
        return (self.ends[1] - self.ends[0]) / (self.scale.maximum - self.scale.minimum)

    @property
    def words(self) -> str:
        """The question for readers: its key, whether it is the overall question, and how its points are scored."""
        said = ["overall"] * (self.is_overall and self.question.key != "overall")
        said += ["0 to 1"] * (self.ends != (self.scale.minimum, self.scale.maximum))
        return self.question.key + (f" ({', '.join(said)})" if said else "")

    @property
    def score_unit(self) -> str:
        """The unit of means and differences: the ends of the scores."""
        return f"points, {self.ends[0]:g} to {self.ends[1]:g}"

    @property
    def title(self) -> str:
        return f"section {self.section.position}, {self.question.criterion or self.words}"


def read_question_ratings(frame: "DataFrame", section: Any) -> list[QuestionRatings]:
    contrasts = list(section.study.contrasts.select_related("x", "y", "section"))
    rows = frame[(frame["section"] == section.position) & frame["system"].notna()]
    references = planted_references_of(section.study)
    questions = list(section.questions.all())
    is_unit = REGISTRY[section.protocol].cleaned_settings(section)["scores"] == "unit"
    found = []
    for question in questions:
        try:
            scale = parse_scale(question.scale)
        except (ValueError, TypeError, KeyError):
            continue  # the frame reports it as a problem
        mine = rows[rows["question"] == question.key]
        low, high = (0, 1) if is_unit else (scale.minimum, scale.maximum)
        # Round back to the chosen point, so that equal points stay equal.
        mine = mine.assign(rating=(low + mine["value"] * (high - low)).round(6))
        kept, paper = mine[mine["is_kept"].astype(bool)], mine[mine["is_kept_paper"].astype(bool)]
        is_overall = not question.criterion and any(other.criterion for other in questions)
        comparisons, by_points = _comparisons_by_estimand(contrasts, section, question)
        one = QuestionRatings(
            section,
            question,
            scale,
            comparisons,
            kept,
            pivot_ratings(kept),
            pivot_ratings(paper),
            (float(low), float(high)),
            is_overall,
            references,
            None,
            _planned_comparisons(contrasts, section, question, UTILITY),
            by_points,
        )
        where = f"section {section.position}, {one.words}"
        found.append(replace(one, utilities=compute_utilities(kept, references, one.ends, where)))
    return found


def _comparisons_by_estimand(
    contrasts: Sequence[Any], section: Any, question: Any
) -> tuple[tuple[Comparison, ...], dict[str, Comparison]]:
    """Return all comparisons by estimand, and by key those that name the difference of means."""
    points = [contrast for contrast in contrasts if contrast.estimand == DIFFERENCE]
    rest = [contrast for contrast in contrasts if contrast.estimand != DIFFERENCE]
    by_points = {one.key: one for one in _planned_comparisons(points, section, question, DIFFERENCE)}
    others = {one.key: one for one in _planned_comparisons(rest, section, question, DIFFERENCE, SUPERIORITY)}
    found = []
    for one in _planned_comparisons(contrasts, section, question, DIFFERENCE, SUPERIORITY):
        # A margin in points is not a margin of a probability, so the probability has no margin without its own comparison.
        expected = "" if one.expected == "~" else one.expected
        found.append(others.get(one.key) or replace(one, margin=None, expected=expected))
    return tuple(found), by_points


def _planned_comparisons(
    contrasts: Sequence[Any], section: Any, question: Any, *estimands: str
) -> tuple[Comparison, ...]:
    found = [
        comparison_from_contrast(contrast, section, question.criterion, question.key)
        for estimand in estimands
        for contrast in system_contrasts_for_section(contrasts, section, estimand, DIFFERENCE)
        if contrast.criterion in ("", question.criterion)
    ]
    return tuple({one.key: one for one in found}.values())


def pivot_ratings(rows: "DataFrame") -> "DataFrame":
    return rows.pivot_table(index=["annotator", "prompt"], columns="system", values="rating", aggfunc="mean", sort=True)


def paired_ratings(wide: "DataFrame", comparison: Comparison) -> "DataFrame":
    """Return one row per annotator and prompt with ratings of both systems, in columns x and y."""
    table = wide.reindex(columns=[comparison.x, comparison.y]).dropna()
    table.columns = ["x", "y"]
    return table.reset_index()
