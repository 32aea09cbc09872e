"""Compare two systems by their ratings: the paper's difference of means, and methods with fewer assumptions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.frames import rows_where
from analysis.protocols.blocks.comparisons import (
    DIFFERENCE_HYPOTHESIS,
    Comparison,
    PlantedReferences,
    each_once,
    planned_comparisons,
    planted_references_of,
    read_contrasts,
    samples_if_unpaired,
)
from analysis.protocols.blocks.populations import SECOND_SAMPLE, about_groups
from analysis.protocols.kinds.answers import column_arrays, readable_scale, settings_of
from analysis.protocols.kinds.scores import judged_scores, paired_scores, wide_scores
from studies.design.subjects import words_of_section
from studies.protocols import REGISTRY
from studies.protocols.base.fields import ScaleSpec

from .utilities import UTILITY, Utilities, compute_utilities

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate


# Prepare the ratings of one question for the statistics, on the question's own scale.


DIFFERENCE, SUPERIORITY = "difference", "superiority"


@dataclass(frozen=True)
class QuestionRatings:
    """The ratings of one question. ``rows``: all of them, with their ``rating``.

    ``ends``: the scores of the lowest and the highest point. ``references``: the study's planted references. ``named``:
    the planned comparisons of utilities. ``points_comparisons``: the comparisons of means by key. Their margins are in points. ``superiority_keys``:
    the keys of the planned comparisons whose claim is about the probability of superiority.
    """

    section: Any
    question: Any
    scale: ScaleSpec
    comparisons: tuple[Comparison, ...]
    rows: "DataFrame"
    ends: tuple[float, float]
    is_overall: bool
    references: PlantedReferences
    named: tuple[Comparison, ...]
    points_comparisons: Mapping[str, Comparison]
    superiority_keys: frozenset[str]

    @cached_property
    def kept(self) -> "DataFrame":
        """The ratings for the recommended estimates."""
        return self.rows[self.rows["is_kept"].astype(bool)]

    @cached_property
    def rated(self) -> "DataFrame":
        """The columns of ``kept`` that models of all ratings read, without missing ratings."""
        return self.kept.loc[self.kept["rating"].notna(), ["rating", "system", "annotator", SECOND_SAMPLE]]

    @cached_property
    def wide(self) -> "DataFrame":
        """``kept`` with one row per annotator and prompt, and one column per system."""
        return wide_scores(self.kept, "rating")

    @cached_property
    def paper_wide(self) -> "DataFrame":
        """The ratings for the paper's estimates, in the same form: the same table where the rules keep the same ratings."""
        if (self.rows["is_kept"] == self.rows["is_kept_paper"]).all():
            return self.wide
        return wide_scores(self.rows[self.rows["is_kept_paper"].astype(bool)], "rating")

    @cached_property
    def _pairs(self) -> "dict[tuple[int, str, str], DataFrame]":
        return {}

    def pairs(self, comparison: Comparison, *, is_paper: bool = False) -> "DataFrame":
        """Return ``paired_scores`` of the comparison, computed once."""
        wide = self.paper_wide if is_paper else self.wide
        key = (id(wide), comparison.x, comparison.y)
        if key not in self._pairs:
            self._pairs[key] = paired_scores(wide, comparison)
        return self._pairs[key]

    @cached_property
    def utilities(self) -> Utilities | None:
        """The kept ratings between the planted references."""
        where = f"section {self.section.position}, {self.label}"
        return compute_utilities(self.kept, self.references, self.ends, (where, self.title), self.named)

    @cached_property
    def standardised_wide(self) -> "DataFrame":
        """``wide`` of ratings in standard deviations of each annotator's own ratings, for annotators with enough ratings."""
        from analysis.stats import ratings

        rows = rows_where(self.kept, self.kept["rating"].notna())
        scores = ratings.z_scores_by_annotator(*column_arrays(rows, "rating", "annotator")).scores
        return wide_scores(rows.assign(rating=scores), "rating")

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
    rows = rows_where(frame, (frame["section"] == section.position) & frame["system"].notna())
    references = planted_references_of(section.study)
    questions, contrasts = list(section.questions.all()), read_contrasts(section)
    is_unit = settings_of(section)["scores"] == "unit"
    ratings = []
    for question in questions:
        scale = readable_scale(question)
        if scale is None or scale.kind == "text":
            continue
        question_rows = rows_where(rows, rows["question"] == question.key)
        low, high = (0, 1) if is_unit else (scale.minimum, scale.maximum)
        # Round back to the chosen point, so that equal points stay equal.
        question_rows = question_rows.assign(rating=(low + question_rows["value"] * (high - low)).round(6))
        is_overall = not question.criterion and any(other.criterion for other in questions)
        planned = planned_comparisons_of_question(section, question, contrasts)
        ratings.append(
            QuestionRatings(
                section,
                question,
                scale,
                _all_comparisons(planned),
                question_rows,
                (float(low), float(high)),
                is_overall,
                references,
                planned.utility,
                {comparison.key: comparison for comparison in planned.difference},
                frozenset(comparison.key for comparison in planned.superiority),
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
        return each_once(replace(comparison, is_lower_better=is_lower_better) for comparison in comparisons)

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


def paper_paired_difference(
    question_ratings: QuestionRatings, comparison: Comparison, context: AnalysisContext
) -> "Estimate":
    from analysis.stats import ratings
    from analysis.stats.arrays import group_sizes, group_sums, label_codes

    pairs = question_ratings.pairs(comparison, is_paper=True)
    if not len(pairs) and samples_if_unpaired(question_ratings.paper_wide, comparison) is not None:
        undefined = ratings.paired_difference_paper([], [], level=context.level)
        return replace(
            undefined,
            status="not_applicable",
            reason="the published test is paired, and nobody judged both side by side",
        )
    x, y, people = column_arrays(pairs, "x", "y", "annotator")
    codes, n = label_codes(people, "annotators", len(pairs))
    means = (group_sums(codes, scores, n) / group_sizes(codes, n) for scores in (x, y))
    return ratings.paired_difference_paper(*means, level=context.level)


def superiority_and_difference(
    question_ratings: QuestionRatings, comparison: Comparison, context: AnalysisContext
) -> tuple["Estimate", "Estimate"]:
    """Return the probability of superiority and the difference of means, each with its companion methods."""
    from analysis.stats import ratings

    samples = samples_if_unpaired(question_ratings.wide, comparison)
    if samples is not None:
        return _unpaired_estimates(question_ratings, comparison, context, samples)
    pairs = question_ratings.pairs(comparison)
    level = context.level
    x, y, people, prompts = column_arrays(pairs, "x", "y", "annotator", SECOND_SAMPLE)
    claim: dict[str, Any] = {"prompts": prompts, "population": comparison.population}
    difference = ratings.paired_mean_difference(x, y, people, **claim, scale=question_ratings.ends, level=level)
    above = ratings.probability_of_superiority(x, y, people, **claim, level=level)
    if context.is_only_planned:
        above = comparison.with_equivalence_tests(above, null=0.5)
        return about_groups(above, pairs, comparison.population), about_groups(difference, pairs, comparison.population)
    standardised = _standardised_difference(question_ratings, comparison, level)
    if standardised.estimate is not None:
        difference = replace(difference, sensitivity=(*difference.sensitivity, standardised))
    others = [*ratings.sign_and_wilcoxon_tests(x, y, people), *_model_estimates(question_ratings, comparison, level)]
    above = replace(above, sensitivity=(*above.sensitivity, *others))
    above = comparison.with_equivalence_tests(above, null=0.5)
    above, difference = (about_groups(one, pairs, comparison.population) for one in (above, difference))
    return above, _add_reversal_guard(question_ratings, difference)


def _unpaired_estimates(
    question_ratings: QuestionRatings, comparison: Comparison, context: AnalysisContext, samples: Mapping[str, Any]
) -> tuple["Estimate", "Estimate"]:
    """Return both estimates for unpaired systems, with annotators and prompts as two independent samples."""
    from analysis.stats import unpaired

    level = context.level
    difference = unpaired.mean_difference(**samples, scale=question_ratings.ends, level=level)
    above = unpaired.probability_of_superiority(**samples, level=level)
    others = [
        *([] if context.is_only_planned else _model_estimates(question_ratings, comparison, level)),
        *comparison.equivalence_tests(above, null=0.5),
    ]
    judged = judged_scores(question_ratings.wide, comparison)
    above, difference = (about_groups(one, judged, comparison.population) for one in (above, difference))
    return replace(above, sensitivity=(*above.sensitivity, *others)), _add_reversal_guard(question_ratings, difference)


def _add_reversal_guard(question_ratings: QuestionRatings, difference: "Estimate") -> "Estimate":
    """Return a difference of means with a warning of how much rounding to points may have changed it."""
    from analysis.stats import ratings

    if difference.estimate is None:
        return difference
    guard = ratings.rounding_reversal_guard(difference.estimate, step=question_ratings.point_distance)
    return replace(difference, detail={**difference.detail, "reversal_guard": guard.as_dict()})


def _model_estimates(question_ratings: QuestionRatings, comparison: Comparison, level: float) -> list["Estimate"]:
    """Return estimates from models of all ratings of the two systems, paired or not."""
    from analysis.stats import ratings

    if question_ratings.scale.kind != "likert":
        return []
    rated = question_ratings.rated
    rows = rated[rated["system"].isin([comparison.x, comparison.y])]
    columns = column_arrays(rows, *rated.columns)
    return [ratings.cumulative_logit(*columns, level=level, system=comparison.x, reference=comparison.y)]


def add_planned_points_equivalence_test(
    question_ratings: QuestionRatings, comparison: Comparison, difference: "Estimate"
) -> tuple["Estimate", Comparison]:
    """Return the difference of means with a TOST in points, if a comparison names this estimand."""
    if comparison.key not in question_ratings.points_comparisons:
        return difference, comparison
    comparison = question_ratings.points_comparisons[comparison.key]
    difference = comparison.with_equivalence_tests(difference, null=0.0)
    return replace(difference, settings={**difference.settings, "null": 0.0}), comparison


def _standardised_difference(question_ratings: QuestionRatings, comparison: Comparison, level: float) -> "Estimate":
    """Return the difference in standard deviations of each annotator's own ratings, for annotators with enough ratings."""
    from analysis.stats import clusters

    pairs = paired_scores(question_ratings.standardised_wide, comparison)
    x, y, people = column_arrays(pairs, "x", "y", "annotator")
    return clusters.clustered_mean(
        x - y,
        people,
        null=0.0,
        level=level,
        analysis="rating.mean_difference.z",
        estimand="mean difference of ratings x - y, each in standard deviations of its annotator's own ratings",
    )
