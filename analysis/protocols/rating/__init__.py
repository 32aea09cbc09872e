"""Analyse ratings of single outputs: the paper's difference of means, and methods with fewer assumptions.

A row is one rating on 0..1. This package converts it back to the question's scale and prints differences in points.

Source: Ethayarajh and Jurafsky 2022, sections 3, 4 and 6.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.frames import rows_where
from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions
from analysis.protocols.blocks.cells import contrast_of
from analysis.protocols.blocks.common_tables import reliability_table
from analysis.protocols.blocks.comparisons import (
    AdjustedByBlock,
    Comparison,
    adjust_pvalues_and_add_verdicts_as_in_paper,
    planted_references_of,
    read_contrasts,
)
from analysis.protocols.blocks.layouts import estimate_row
from analysis.protocols.blocks.populations import table_population
from analysis.protocols.blocks.sentences import is_unpaired
from analysis.protocols.blocks.systems import SystemOrder
from analysis.protocols.kinds.answers import join_columns
from analysis.protocols.kinds.pairs import PairAnalysis
from analysis.protocols.kinds.scores import (
    agreement_alpha,
    change_per_place,
    judged_by_several,
    means_by_system,
    sets_of_ranks,
)
from analysis.protocols.spa_and_rating import build_overview
from studies.design.subjects import in_parentheses, join_words

from .. import register
from ..scores import Scorer
from . import layouts
from .estimates import (
    DIFFERENCE,
    SUPERIORITY,
    QuestionRatings,
    add_planned_points_equivalence_test,
    paper_paired_difference,
    planned_comparisons_of_question,
    read_question_ratings,
    superiority_and_difference,
)
from .utilities import UTILITY_BLOCK, utility_blocks, utility_difference

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate

SUPERIORITY_BLOCK = "rating.superiority"
DIFFERENCE_BLOCK = "rating.difference"


class RatingScorer(Scorer):
    """Ratings: the value of an answer is the score of its output."""

    def shows_one_output(self, settings):
        return settings["shown"] == "one"

    def items_per_prompt(self, settings, n_systems, n_references):
        return n_systems if self.shows_one_output(settings) else 1

    def score_answers(self, section, question, answers, shown):
        rows = answers.assign(other=None, is_first=None)
        if (question.scale or {}).get("is_lower_better"):
            rows = rows.assign(value=1 - rows["value"])
        return rows[rows["value"].notna() & rows["system"].notna()]


@register
class RatingAnalysis(PairAnalysis):
    slug = "rating"
    paper = layouts.PAPER
    scorer = RatingScorer()
    headline_blocks = {"rating": "rating.superiority"}
    build_overview = staticmethod(build_overview)

    # If the study also has stated chances, the sentences are about those.
    superseded_claims = {SUPERIORITY_BLOCK: "spa.pairs"}

    def planned_claims(self, sections: Sequence[Any]) -> dict[str, list[Comparison]]:
        claims: dict[str, list[Comparison]] = {}
        for section in sections:
            has_references = planted_references_of(section.study).is_complete
            contrasts = read_contrasts(section)
            for question in section.questions.exclude(scale__kind="text"):
                planned = planned_comparisons_of_question(section, question, contrasts)
                claims.setdefault(SUPERIORITY_BLOCK, []).extend(planned.superiority)
                claims.setdefault(DIFFERENCE_BLOCK, []).extend(planned.difference)
                if has_references:
                    claims.setdefault(UTILITY_BLOCK, []).extend(planned.utility)
        return claims

    def read(self, context):
        return [ratings for section in context.sections for ratings in read_question_ratings(context.rows, section)]

    def keep(self, answers, ids):
        return replace(answers, rows=answers.rows.assign(is_kept=answers.rows["id"].isin(ids)))

    def compare(self, records, context):
        """Return the comparisons of superiority, of means and of utilities."""
        above: list[tuple[Comparison, Estimate]] = []
        differences: list[tuple[Comparison, Estimate]] = []
        for ratings in records:
            for compared in ratings.comparisons:
                chance, points = superiority_and_difference(ratings, compared, context)
                above.append((compared, compared.tag_estimate(chance, SUPERIORITY)))
                points, compared = add_planned_points_equivalence_test(ratings, compared, points)
                differences.append((compared, compared.tag_estimate(points, DIFFERENCE, scored=ratings.score_unit)))
        utilities = [
            (compared, utility_difference(ratings.utilities, compared, context.level))
            for ratings in records
            for compared in ratings.named
            if ratings.utilities is not None
        ]
        return {SUPERIORITY_BLOCK: above, DIFFERENCE_BLOCK: differences, UTILITY_BLOCK: utilities}

    def blocks(self, records, adjusted, context):
        blocks = _comparison_blocks(records, adjusted, context)
        if utilities := [ratings.utilities for ratings in records if ratings.utilities is not None]:
            blocks += utility_blocks(utilities, adjusted[UTILITY_BLOCK], records[0].references, context)
        return [*blocks, *(block for ratings in records for block in _question_blocks(ratings, context))]

    def pair_scores(self, answers, compared):
        import numpy as np

        pairs = answers.pairs(compared)
        return pairs.assign(score=(np.sign(pairs["x"].to_numpy(float) - pairs["y"].to_numpy(float)) + 1) / 2)

    def points(self, answers):
        scale = answers.scale
        return round(scale.maximum - scale.minimum) + 1 if scale.kind == "likert" else super().points(answers)


def _comparison_blocks(
    question_ratings: Sequence[QuestionRatings],
    adjusted: AdjustedByBlock,
    context: AnalysisContext,
) -> list[Block]:
    difference_keys = {key for ratings in question_ratings for key in ratings.points_comparisons}
    superiority_keys = {key for ratings in question_ratings for key in ratings.superiority_keys}
    above, differences = adjusted[SUPERIORITY_BLOCK], adjusted[DIFFERENCE_BLOCK]
    means = [
        (
            compared,
            compared.tag_estimate(
                paper_paired_difference(ratings, compared, context), DIFFERENCE, scored=ratings.score_unit
            ),
        )
        for ratings in question_ratings
        for compared in ratings.comparisons
    ]
    paper = adjust_pvalues_and_add_verdicts_as_in_paper(means, "rating.paper", context)
    return [
        Block(
            SUPERIORITY_BLOCK,
            "Probability of being rated higher",
            estimates=above,
            conclusions=build_planned_conclusions(
                [estimate for estimate in above if contrast_of(estimate)["key"] in superiority_keys],
                superiority_phrases,
                include_estimand_in_name=False,
                superseded_by=RatingAnalysis.superseded_claims[SUPERIORITY_BLOCK],
            ),
            tables=[layouts.rating_comparisons_table(above, differences, paper)],
            figures=[layouts.superiority_figure(above)],
            note="The chance that an annotator rates x above y for the same prompt. Ties count half, and only the order of points matters. "
            "If no annotator judged both side by side: the chance that a rating of x is above a rating of y.",
        ),
        Block(
            DIFFERENCE_BLOCK,
            "Difference of mean ratings",
            estimates=differences,
            conclusions=build_planned_conclusions(
                [estimate for estimate in differences if contrast_of(estimate)["key"] in difference_keys],
                DIFFERENCE_PHRASES,
            ),
            note="On the scale of the question's scores. Assumes equal distances between points.",
        ),
        Block(
            DIFFERENCE_BLOCK,
            f"Difference of mean ratings, as in {layouts.PAPER}",
            "paper",
            estimates=paper,
            note="One difference per annotator, after all primary rules; paired t test.",
        ),
    ]


SUPERIORITY_PHRASES = ConclusionPhrases(
    above_claim="{x} was rated higher than {y}{about}.",
    below_claim="{x} was rated lower than {y}{about}.",
    same="{x} and {y} are indistinguishable{about}",
    open="It remains open whether {x} or {y} is rated higher{about}.",
    before="The chance that an annotator rates {x} above {y} is",
    after=", ties counting half",
    symbol="PS({x}, {y})",
    kind="percent",
    subject="{x} and {y}{about}",
    expected=("{x} is better.", "{y} is better.", "the two are equivalent."),
)
UNPAIRED_SUPERIORITY_PHRASES = replace(
    SUPERIORITY_PHRASES, before="The chance that a rating of {x} is above a rating of {y} is"
)


def superiority_phrases(estimate: "Estimate") -> ConclusionPhrases:
    phrases = UNPAIRED_SUPERIORITY_PHRASES if is_unpaired(estimate) else SUPERIORITY_PHRASES
    return phrases.about_comparison(estimate)


DIFFERENCE_PHRASES = ConclusionPhrases(
    above_claim="{x} has a higher mean rating than {y}{about}.",
    below_claim="{x} has a lower mean rating than {y}{about}.",
    same="{x} and {y} have equivalent mean ratings{about}",
    open="It remains open whether {x} or {y} has the higher mean rating{about}.",
    before="The mean rating of {x} less that of {y} ({scored}) is",
    symbol="M({x}) − M({y})",
)


def _question_blocks(question_ratings: QuestionRatings, context: AnalysisContext) -> list[Block]:
    """Return the systems' means, agreement on outputs with several ratings, and the effect of the place on the page."""
    from analysis.stats import reliability

    rows = rows_where(question_ratings.kept, question_ratings.kept["rating"].notna())
    level = context.level
    population = table_population((*question_ratings.comparisons, *question_ratings.named), rows)
    means = _system_means(question_ratings, rows, population, level)
    checks = []
    # Everybody recognises planted ends, so they are not used for agreement and have no rank.
    judged_rows = rows_where(rows, ~rows["system"].isin(question_ratings.references.names))
    shared = judged_by_several(
        judged_rows.assign(output=join_columns(judged_rows, "prompt", "system", "sample")), "output"
    )
    random_key = (question_ratings.section.position, question_ratings.question.key)
    if len(shared):
        alpha = agreement_alpha(
            shared["output"],
            shared["rating"],
            level=level,
            rng=context.rng("alpha", *random_key),
            level_of_measurement="ordinal" if question_ratings.scale.kind == "likert" else "interval",
        )
        table = shared.pivot_table(index="annotator", columns="output", values="rating", aggfunc="mean", sort=True)
        halves = reliability.split_half_reliability(
            table.to_numpy(float),
            level=level,
            rng=context.rng("halves", *random_key),
            resamples=min(999, context.resamples),
        )
        checks += [alpha.labelled(unit="output"), halves.labelled(unit="output")]
    if len(rows):
        checks.append(change_per_place(rows, "rating", population, level))
    # Every annotator has the same weight, as in the means.
    weights = 1 / judged_rows.groupby(["system", "annotator"])["rating"].transform("size").to_numpy(float)
    ranked = sets_of_ranks(judged_rows, "rating", weights=weights, population=population, level=level)
    return [
        Block(
            "rating.means",
            f"Mean rating of each system{in_parentheses(question_ratings.title)}",
            estimates=means,
            other_results={"ranks": ranked.as_dict()},
            tables=[layouts.means_table(means, ranked, question_ratings.title)],
            figures=[layouts.means_figure(means, question_ratings.title)],
            note="Every annotator has the same weight. These means are not expected utilities, which need references. All sets of ranks "
            "jointly contain the true ranks at the stated level.",
            systems=SystemOrder(
                measure="mean rating",
                estimates=[one for one in means if one.settings["system"] not in question_ratings.references.names],
                about=question_ratings.title,
                sets=ranked,
            ),
        ),
        Block(
            "rating.checks",
            f"Agreement and place on the page{in_parentheses(question_ratings.title)}",
            estimates=tuple(checks),
            tables=[
                reliability_table(
                    [estimate_row(check, where=join_words("ratings", question_ratings.title)) for check in checks]
                )
            ],
        ),
    ]


def _system_means(
    question_ratings: QuestionRatings, rows: "DataFrame", population: str, level: float
) -> tuple["Estimate", ...]:
    from analysis.stats import ratings

    mean = partial(
        ratings.expected_utility, is_rescaled=False, population=population, bounds=question_ratings.ends, level=level
    )
    settings = {
        "section": question_ratings.section.position,
        "question": question_ratings.label,
        "scored": question_ratings.score_unit,
    }
    means = means_by_system(rows, "rating", mean, **settings)
    # With planted references the report also shows utilities, so no warning is needed.
    has_utilities = question_ratings.utilities is not None
    return tuple(
        replace(
            one.labelled(analysis="rating.mean"),
            warnings=tuple(
                warning for warning in one.warnings if not (has_utilities and warning.code == "no_references")
            ),
        )
        for one in means
    )
