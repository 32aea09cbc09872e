"""Analyse rankings: how often each system is above another, its mean rank and strength, and agreement.

A row is the mid-rank of one output among those of its prompt. A ranking is an annotator's ranks of one item. Pairs
of one ranking are dependent, and so are the rankings of one annotator. The unit is therefore always the annotator.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.frames import cluster_labels
from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions
from analysis.protocols.blocks.cells import comparison_label, comparisons_note
from analysis.protocols.blocks.comparisons import (
    Comparison,
    PlantedReferences,
    each_once,
    other_comparisons,
    pairs_under_evaluation,
    planned_comparisons,
    planned_comparisons_of_questions,
    planted_references_of,
    read_contrasts,
)
from analysis.protocols.blocks.layouts import (
    Figure,
    Table,
    build_figure,
    build_table,
    estimate_row,
    figure_row,
    prefixed_cells,
    rank_cells,
)
from analysis.protocols.blocks.populations import SECOND_SAMPLE, about_groups, second_sample_noun, table_population
from analysis.protocols.blocks.systems import SystemOrder
from analysis.protocols.kinds.answers import column_arrays, join_columns, kept_and_paper_rows, readable_scale
from analysis.protocols.kinds.pairs import PairAnalysis
from analysis.protocols.kinds.scores import (
    agreement_alpha,
    change_per_place,
    judged_by_several,
    means_by_system,
    paired_scores,
    sets_of_ranks,
    wide_scores,
)
from analysis.protocols.kinds.strengths import fit_strengths, named_by_system, without_intervals_if_too_few
from studies.design.subjects import in_parentheses, words_of_section
from studies.protocols.ranking import SHARE

from . import register

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate


def davidson_strengths(
    rankings: "QuestionRankings", population: str, level: float
) -> tuple[tuple["Estimate", ...], dict[str, Any]]:
    """Fit Davidson's model to the pairs of all rankings."""
    import numpy as np

    systems = list(rankings.wide.columns)
    annotators, prompts = (
        cluster_labels(rankings.wide.index.get_level_values(name)) for name in ("annotator", SECOND_SAMPLE)
    )
    table = rankings.wide.to_numpy(float)
    pairs = []
    for x, y in combinations(range(len(systems)), 2):
        is_compared = ~np.isnan(table[:, x] - table[:, y])
        scores = (np.sign(table[is_compared, y] - table[is_compared, x]) + 1) / 2
        pairs.append((x, y, scores, annotators[is_compared], prompts[is_compared]))
    fit = fit_strengths(pairs, population, n_systems=len(systems), level=level, analysis="ranking.davidson")
    if fit is None:
        return (), {"systems": systems, "status": "no_data", "reason": "no two systems were ranked together"}
    strengths = named_by_system(fit.strengths, systems, lambda name: f"log-odds of {name} against the mean of all")
    strengths.append(replace(fit.tie, detail={**fit.tie.detail, "system": ""}))
    if population != "people":
        strengths = without_intervals_if_too_few(strengths, len(set(prompts)), second_sample_noun(rankings.rows))
    return tuple(strengths), {
        "systems": systems,
        "status": fit.status,
        "reason": fit.reason,
        "probabilities": fit.probabilities.tolist(),
        "tie_probabilities": fit.tie_probabilities.tolist(),
    }


# Tables and figures of rankings. This module only arranges values.


def pairs_table(estimates: Sequence["Estimate"]) -> Table:
    """Return the table of all pairs of systems: which was ranked higher, and how often."""
    rows = [
        estimate_row(estimate, "share", **{name: estimate.detail[f"n_{name}"] for name in ("above", "ties", "below")})
        for estimate in estimates
    ]
    return build_table(
        "ranking_pairs",
        "Which was ranked higher",
        "pair|Pair|text; role|Role|text; share|Share above|percent; interval|95% CI|interval; p|adj. p|p; verdict|Verdict|text; "
        "above|Above|integer; ties|Same place|integer; below|Below|integer; n|n annotators|integer; reason|Undefined because|text",
        rows,
        "first",
        "Shares of the rankings that hold both systems; the same place counts half. p tests 50 %. It is adjusted within each "
        "planned family and within all unplanned pairs." + comparisons_note(estimates),
    )


def shares_figure(estimates: Sequence["Estimate"]) -> Figure:
    rows = [figure_row(estimate, comparison_label(estimate), "share of rankings") for estimate in estimates]
    return build_figure(
        "ranking_pairs",
        "Share of rankings with x above y",
        rows,
        description="Above 50 %, the first system of a pair ranks higher; the same place counts half.",
        axis="P(x above y)",
        reference=0.5,
        limits=[0, 1],
    )


def systems_table(means: Sequence[Any], rank_sets: Any, strengths: Sequence[Any], title: str) -> Table:
    """Return the table of systems, best first: mean rank, set of ranks and strength."""
    ranks = rank_cells(rank_sets)
    by_system = {strength.detail.get("system"): strength for strength in strengths}
    rows = []
    for estimate in sorted(
        means, key=lambda estimate: (estimate.estimate is None, estimate.estimate, estimate.settings["system"])
    ):
        system = estimate.settings["system"]
        strength = by_system.get(system)
        reasons = [estimate.reason, rank_sets.reason, strength.reason if strength else ""]
        bounds_and_strength = ranks.get(system, {}) | prefixed_cells("strength", strength)
        reason = "; ".join(filter(None, reasons))
        rows.append(estimate_row(estimate, "mean", "rankings", **bounds_and_strength, reason=reason))
    return build_table(
        "ranking_systems",
        f"Systems by mean rank{in_parentheses(title)}",
        "system|System|text; mean|Mean rank|number; interval|95% CI|wide_interval; highest|May be as high as|integer; "
        "lowest|May be as low as|integer; strength|Strength, log-odds|number; strength_interval|95% CI, strength|wide_interval; "
        "n|n annotators|integer; rankings|Rankings|integer; reason|Note|text",
        rows,
        "first",
        "Rank 1 is the best. The sets of ranks hold jointly at the stated level. Strengths are from Davidson's model and have the sum 0.",
        rank_sets.warnings,
    )


def mean_ranks_figure(estimates: Sequence["Estimate"], title: str) -> Figure:
    rows = [figure_row(estimate, estimate.settings["system"], "mean rank") for estimate in estimates]
    return build_figure(
        "ranking_means",
        f"Mean rank of each system{in_parentheses(title)}",
        rows,
        description="1 is the best rank.",
        axis="mean rank, 1 the best",
    )


def rank_agreement_table(estimates: Sequence["Estimate"], title: str) -> Table:
    return build_table(
        "ranking_checks",
        f"Agreement of the rankings{in_parentheses(title)}",
        "what|What|text; estimate|Estimate|number; interval|95% CI|wide_interval; p|p|p; n|n|integer; unit|Unit|text; "
        "reason|Undefined because|text",
        map(estimate_row, estimates),
        "sure",
        "Kendall's W uses one ranking per annotator; its p is Friedman's. Without any agreement W is 1 / n on average, not 0. "
        "The interval of alpha resamples whole prompts, not people, so it applies only to these annotators.",
    )


def share_below_planted_references_table(estimates: Sequence["Estimate"], title: str) -> Table:
    rows = [estimate_row(one, "share", "rankings", reference=one.settings["reference"]) for one in estimates]
    return build_table(
        "ranking_references",
        f"Ranks of the planted references{in_parentheses(title)}",
        "system|System|text; reference|Planted as|text; share|Share of systems below it|percent; interval|95% CI|interval; "
        "n|n annotators|integer; rankings|Rankings|integer; reason|Undefined because|text",
        rows,
        "sure",
        "Planted references are not systems under evaluation. Ranks, strengths and agreement use only the other systems.",
    )


@dataclass(frozen=True, slots=True)
class QuestionRankings:
    """The rankings of one question.

    ``wide_with_references``, ``wide`` and ``paper_wide`` have one row per annotator and item (with its prompt), and one
    column per system. NaN means that the system was not shown. Only ``wide_with_references`` contains planted references. In the
    other frames the ranks are among the other systems.
    """

    section: Any
    question: Any
    comparisons: tuple[Comparison, ...]
    references: PlantedReferences
    kept: "DataFrame"
    rows: "DataFrame"
    wide_with_references: "DataFrame"
    wide: "DataFrame"
    paper_wide: "DataFrame"

    @property
    def key(self) -> str:
        """The name of the question that seeds its random draws."""
        return f"section {self.section.position}, {self.question.criterion or self.question.key}"

    @property
    def title(self) -> str:
        return words_of_section(self.section).subject(self.question.criterion, self.question.key).note


@register
class RankingAnalysis(PairAnalysis):
    slug = "ranking"
    headline_blocks = {"ranking": "ranking.share"}
    pairs_block = "ranking.share"

    def planned_comparisons(self, section):
        return planned_comparisons_of_questions(section, section.questions.all(), SHARE)

    def read(self, context):
        return [rankings for section in context.sections for rankings in _read_rankings(context.rows, section)]

    def estimate(self, answers, compared, context):
        from analysis.stats import clusters

        pairs = self.pair_scores(answers, compared)
        estimate = clusters.annotator_prompt_clustered_mean(
            *column_arrays(pairs, "score", "annotator", SECOND_SAMPLE),
            population=compared.population,
            null=0.5,
            level=context.level,
            bounds=(0.0, 1.0),
            estimand="share of rankings with x above y, ties half",
            analysis="ranking.share",
        )
        estimate = about_groups(estimate, pairs, compared.population)
        estimate = compared.with_equivalence_tests(estimate, null=0.5)
        places = {"n_above": 1, "n_ties": 0.5, "n_below": 0}
        counts = {name: int((pairs["score"] == place).sum()) for name, place in places.items()}
        return compared.tag_estimate(replace(estimate, detail={**estimate.detail, **counts}), SHARE, null=0.5)

    def keep(self, answers, ids):
        return replace(answers, **_tables_of(answers.kept[answers.kept["id"].isin(ids)], answers.references))

    def pair_scores(self, answers, compared):
        """Return a row for each ranking that holds both systems: 1, 1/2 or 0 for x above y."""
        import numpy as np

        pairs = paired_scores(answers.wide_with_references, compared)
        return pairs.assign(score=(np.sign(pairs["y"] - pairs["x"]) + 1) / 2)

    def judged_outputs(self, section, question, answers, shown):
        """Return places as scores: 1 for the first place of an item, 0 for the last."""
        scale = readable_scale(question)
        rows = answers[(answers["question"] == question.key) & answers["value"].notna() & answers["system"].notna()]
        if scale is None:
            return rows.iloc[:0].assign(unit="")
        places = float(scale.minimum) + rows["value"] * float(scale.maximum - scale.minimum)
        last = rows["item"].map(lambda item: len(shown.get(item, ()))).astype(float)
        return rows.assign(value=(last - places) / (last - 1).clip(lower=1), unit=rows["item"])

    def blocks(self, records, adjusted, context):
        estimates = adjusted["ranking.share"]
        pairs = Block(
            "ranking.share",
            "Share of rankings with x above y",
            estimates=estimates,
            conclusions=build_planned_conclusions(estimates, PHRASES),
            tables=[pairs_table(estimates)],
            figures=[shares_figure(estimates)],
            note="In each annotator's ranking of a prompt, x is above y, below y, or in the same place, which counts half. "
            "Annotators and prompts are clusters.",
        )
        return [pairs, *(block for rankings in records for block in _question_blocks(rankings, context))]


def _read_rankings(frame: "DataFrame", section: Any) -> list[QuestionRankings]:
    rows = frame[(frame["section"] == section.position) & frame["system"].notna() & frame["value"].notna()]
    references = planted_references_of(section.study)
    all_rankings = []
    contrasts = read_contrasts(section)
    for question in section.questions.all():
        if (scale := readable_scale(question)) is None:
            continue
        question_rows = rows[rows["question"] == question.key]
        # Convert from 0..1 back to the stored ranks, which are whole or half numbers.
        ranks = (scale.minimum + question_rows["value"] * (scale.maximum - scale.minimum)) * 2
        question_rows = question_rows.assign(rank=ranks.round() / 2)
        kept_rows, paper_rows = kept_and_paper_rows(question_rows)
        planned = planned_comparisons(contrasts, section, question.criterion, question.key, SHARE)
        pairs = pairs_under_evaluation(question_rows["system"], references)
        others = other_comparisons(section, planned, pairs, question.criterion, question.key)
        all_rankings.append(
            QuestionRankings(
                section,
                question,
                each_once([*planned, *others]),
                references,
                paper_wide=wide_scores(_rank_without_references(paper_rows, references), "rank", "item"),
                **_tables_of(kept_rows, references),
            )
        )
    return all_rankings


def _tables_of(kept: "DataFrame", references: PlantedReferences) -> "dict[str, DataFrame]":
    """Return what a record of rankings has of the kept answers."""
    evaluated = _rank_without_references(kept, references)
    wide = {
        name: wide_scores(rows, "rank", "item") for name, rows in (("wide_with_references", kept), ("wide", evaluated))
    }
    return {"kept": kept, "rows": evaluated, **wide}


def _rank_without_references(rows: "DataFrame", references: PlantedReferences) -> "DataFrame":
    """Return the systems under evaluation with ranks among themselves, so that planted ends do not change their ranks."""
    if not references.names:
        return rows
    evaluated = rows[~rows["system"].isin(references.names)]
    return evaluated.assign(rank=evaluated.groupby(["assignment", "item"])["rank"].rank())


PHRASES = ConclusionPhrases(
    above_claim="{x} was ranked above {y}{about}.",
    below_claim="{x} was ranked below {y}{about}.",
    same="{x} and {y} were ranked alike{about}",
    open="It remains open whether {x} or {y} is ranked higher{about}.",
    before="The share of rankings with {x} above {y}, ties counting half, is",
    symbol="P({x} above {y})",
    kind="percent",
)


def _question_blocks(rankings: QuestionRankings, context: AnalysisContext) -> list[Block]:
    """Return the blocks about single systems, agreement and Friedman's test."""
    from analysis.stats import clusters, reliability

    rows, level = rankings.rows, context.level
    population = table_population(rankings.comparisons, rows)
    planted = _reference_estimates(rankings, population, level)
    if not len(rows):
        return []
    where = {"section": rankings.section.position, "question": rankings.question.key}
    most = max(2.0, float(rankings.wide.shape[1]))
    mean = partial(
        clusters.mean_of_population,
        population=population,
        level=level,
        bounds=(1.0, most),
        analysis="ranking.mean",
        estimand="mean rank, 1 the best",
    )
    means = means_by_system(rows, "rank", mean, **where)
    sets = sets_of_ranks(rows.assign(rank=-rows["rank"]), "rank", population=population, level=level)
    strengths, fit = davidson_strengths(rankings, population, level)
    checks = []
    shared = judged_by_several(rows, "item")
    if len(shared):
        # The ranks of a prompt have a fixed sum, so outputs of a prompt are dependent. Therefore prompts are resampled.
        alpha = agreement_alpha(
            join_columns(shared, "item", "system"),
            shared["rank"],
            cluster_of=lambda output: output.partition("\x1f")[0],
            cluster_name="prompt",
            level_of_measurement="interval",
            level=level,
            rng=context.rng("alpha", rankings.key),
        )
        checks.append(alpha.labelled(unit="output"))
    checks.append(
        change_per_place(rows, "rank", population, level).labelled(
            analysis="ranking.position_effect", estimand="change of the rank per place on the page"
        )
    )
    textbook = reliability.kendall_w(rankings.paper_wide.groupby("annotator").mean().to_numpy(float))
    textbook = textbook.labelled(analysis="ranking.friedman", mode="paper")
    return [
        Block(
            "ranking.means",
            f"Mean rank of each system{in_parentheses(rankings.title)}",
            estimates=tuple(means),
            other_results={"ranks": sets.as_dict()},
            tables=[systems_table(means, sets, strengths, rankings.title)],
            figures=[mean_ranks_figure(means, rankings.title)],
            note="1 is the best. Systems that share a place get the mean of the places that they take.",
            systems=SystemOrder(
                measure="mean rank", estimates=means, about=rankings.title, sets=sets, is_lower_better=True
            ),
        ),
        Block(
            "ranking.strengths",
            f"Strengths{in_parentheses(rankings.title)}",
            estimates=strengths,
            other_results=fit,
            note="Log-odds with sum 0 from all pairs of all rankings, ties part of the model (Davidson's). "
            "Clusters are the annotators and, if there are five or more, the prompts.",
        ),
        Block(
            "ranking.checks",
            f"Agreement and place on the page{in_parentheses(rankings.title)}",
            estimates=tuple(checks),
            tables=[rank_agreement_table([*checks, textbook], rankings.title)],
            note="Agreement uses outputs that several annotators ranked among the same other outputs.",
        ),
        Block(
            "ranking.friedman",
            f"Friedman's test and Kendall's W{in_parentheses(rankings.title)}",
            "paper",
            estimates=(textbook,),
            note="One ranking per annotator, from their mean ranks, after all primary rules.",
        ),
        Block(
            "ranking.references",
            f"Ranks of the planted references{in_parentheses(rankings.title)}",
            estimates=planted,
            tables=[share_below_planted_references_table(planted, rankings.title)],
        ),
    ]


def _reference_estimates(rankings: QuestionRankings, population: str, level: float) -> tuple["Estimate", ...]:
    """Return the share of systems below each planted end: nearly all for a maximal one, nearly none for a minimal one."""
    import numpy as np

    from analysis.stats import clusters

    systems = [name for name in rankings.wide_with_references.columns if name not in rankings.references.names]
    estimates = []
    for name in [name for name in rankings.wide_with_references.columns if name in rankings.references.names]:
        table = rankings.wide_with_references[rankings.wide_with_references[name].notna()]
        above = (np.sign(table[systems].sub(table[name], axis=0)) + 1) / 2
        shares = above.mean(axis=1).dropna()
        mean = clusters.mean_of_population(
            shares.to_numpy(float),
            *(cluster_labels(shares.index.get_level_values(name)) for name in ("annotator", SECOND_SAMPLE)),
            population=population,
            level=level,
            bounds=(0.0, 1.0),
            analysis="ranking.reference",
            estimand="share of the other systems in its ranking that it is ranked above, ties half",
        )
        estimates.append(
            replace(mean, settings={**mean.settings, "system": name, "reference": rankings.references.kind_of(name)})
        )
    return tuple(estimates)
