"""Compare two systems by their ratings: the paper's difference of means, and methods with fewer assumptions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks.comparisons import Comparison, samples_if_unpaired
from analysis.protocols.blocks.populations import SECOND_SAMPLE, about_groups

from .question_ratings import QuestionRatings, paired_ratings, pivot_ratings

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


def paper_paired_difference(
    question_ratings: QuestionRatings, comparison: Comparison, context: AnalysisContext
) -> "Estimate":
    from analysis.stats import ratings

    pairs = paired_ratings(question_ratings.paper_wide, comparison)
    if not len(pairs) and samples_if_unpaired(question_ratings.paper_wide, comparison) is not None:
        undefined = ratings.paired_difference_paper([], [], level=context.level)
        return replace(
            undefined,
            status="not_applicable",
            reason="the published test is paired, and nobody judged both side by side",
        )
    means = pairs.groupby("annotator")[["x", "y"]].mean()
    return ratings.paired_difference_paper(means["x"].to_numpy(), means["y"].to_numpy(), level=context.level)


def superiority_and_difference(
    question_ratings: QuestionRatings, comparison: Comparison, context: AnalysisContext
) -> tuple["Estimate", "Estimate"]:
    """Return the probability of superiority and the difference of means, each with its companion methods."""
    from analysis.stats import ratings

    samples = samples_if_unpaired(question_ratings.wide, comparison)
    if samples is not None:
        return _unpaired_estimates(question_ratings, comparison, context, samples)
    pairs = paired_ratings(question_ratings.wide, comparison)
    level = context.level
    x, y, people = pairs["x"].to_numpy(float), pairs["y"].to_numpy(float), pairs["annotator"].to_numpy(object)
    claim: dict[str, Any] = {"prompts": pairs[SECOND_SAMPLE].to_numpy(object), "population": comparison.population}
    difference = ratings.paired_mean_difference(x, y, people, **claim, scale=question_ratings.ends, level=level)
    standardised = _standardised_difference(question_ratings, comparison, level)
    if standardised.estimate is not None:
        difference = replace(difference, sensitivity=(*difference.sensitivity, standardised))
    above = ratings.probability_of_superiority(x, y, people, **claim, level=level)
    others = [*ratings.sign_and_wilcoxon_tests(x, y, people), *_model_estimates(question_ratings, comparison, level)]
    others += comparison.equivalence_tests(above, null=0.5)
    above = replace(above, sensitivity=(*above.sensitivity, *others))
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
        *_model_estimates(question_ratings, comparison, level),
        *comparison.equivalence_tests(above, null=0.5),
    ]
    judged = question_ratings.wide.reindex(columns=[comparison.x, comparison.y]).dropna(how="all")
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
    rows = question_ratings.kept[
        question_ratings.kept["system"].isin([comparison.x, comparison.y]) & question_ratings.kept["rating"].notna()
    ]
    scores, systems = rows["rating"].to_numpy(float), rows["system"].to_numpy(object)
    people, prompts = rows["annotator"].to_numpy(object), rows[SECOND_SAMPLE].to_numpy(object)
    pair = {"system": comparison.x, "reference": comparison.y}
    return [ratings.cumulative_logit(scores, systems, people, prompts, level=level, **pair)]


def add_planned_points_equivalence_test(
    question_ratings: QuestionRatings, comparison: Comparison, difference: "Estimate"
) -> tuple["Estimate", Comparison]:
    """Return the difference of means with a TOST in points, if a comparison names this estimand."""
    if comparison.key not in question_ratings.points_comparisons:
        return difference, comparison
    comparison = question_ratings.points_comparisons[comparison.key]
    sensitivity = (*difference.sensitivity, *comparison.equivalence_tests(difference, null=0.0))
    return replace(difference, sensitivity=sensitivity, settings={**difference.settings, "null": 0.0}), comparison


def _standardised_difference(question_ratings: QuestionRatings, comparison: Comparison, level: float) -> "Estimate":
    """Return the difference in standard deviations of each annotator's own ratings, for annotators with enough ratings."""
    from analysis.stats import clusters, ratings

    rows = question_ratings.kept[question_ratings.kept["rating"].notna()]
    scores = ratings.z_scores_by_annotator(rows["rating"].to_numpy(float), rows["annotator"].to_numpy(object)).scores
    pairs = paired_ratings(pivot_ratings(rows.assign(rating=scores)), comparison)
    return clusters.clustered_mean(
        pairs["x"].to_numpy(float) - pairs["y"].to_numpy(float),
        pairs["annotator"].to_numpy(object),
        null=0.0,
        level=level,
        analysis="rating.mean_difference.z",
        estimand="mean difference of ratings x - y, each in standard deviations of its annotator's own ratings",
    )
