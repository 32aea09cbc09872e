"""Analyse best-worst answers: how often each system was the best and the worst, and its strength on one scale.

A row is one choice. The two choices of an annotator about one item form an answer. The planned labels give the
outputs of each item. The unit is always the annotator; prompts are second clusters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks.comparisons import other_comparisons, pairs_under_evaluation
from analysis.protocols.blocks.layouts import by_value, estimate_row, rank_cells
from analysis.protocols.blocks.populations import SECOND_SAMPLE, about_groups, second_sample_noun, table_population
from analysis.protocols.blocks.systems import SystemOrder
from analysis.protocols.kinds.answers import column_arrays
from analysis.protocols.kinds.pairs import PairAnalysis
from analysis.protocols.kinds.strengths import named_by_system, without_intervals_if_too_few
from studies.design.subjects import in_parentheses, words_of_section
from studies.protocols.best_worst import BEST, STRENGTH, WORST

from . import register
from .blocks import Block, ConclusionPhrases, build_planned_conclusions
from .blocks.cells import claims_note, comparison_label, reported_pvalue
from .blocks.comparisons import Comparison, planned_comparisons, read_contrasts
from .blocks.layouts import Figure, Table, build_figure, build_table, figure_row

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from analysis.stats.best_worst import BestWorstLogit, MaxDiffScores
    from analysis.stats.ranks import RankSets
    from analysis.stats.results import Estimate


def pairs_table(estimates: Sequence["Estimate"]) -> Table:
    return build_table(
        "best_worst_pairs",
        "Which was picked as better",
        "pair|Pair|text; role|Role|text; difference|Difference, log-odds|number; interval|95% CI|wide_interval; p|adj. p|p; "
        "verdict|Verdict|text; n|n annotators|integer; answers|Answers|integer; reason|Undefined because|text",
        [estimate_row(estimate, "difference", "answers") for estimate in estimates],
        "first",
        "Above 0, the first system is chosen over the second. p tests 0 with annotators as clusters. It is adjusted within each planned "
        "family and within all unplanned pairs." + claims_note(estimates),
    )


def pairs_figure(estimates: Sequence["Estimate"]) -> Figure:
    rows = [figure_row(estimate, comparison_label(estimate), "log-odds") for estimate in estimates]
    return build_figure(
        "best_worst_pairs",
        "Difference of strengths of x and y",
        rows,
        description="Above 0, the first system of a pair is picked as better.",
        axis="log-odds",
        reference=0.0,
    )


def systems_table(strengths: Sequence["Estimate"], joint_test: "Estimate", rank_sets: "RankSets", title: str) -> Table:
    """Return the table of systems, strongest first, with their sets of ranks."""
    rows, ranks = [], rank_cells(rank_sets)
    for estimate in sorted(strengths, key=by_value):
        reason = "; ".join(filter(None, [estimate.reason, rank_sets.reason]))
        bounds = ranks.get(estimate.settings["system"], {})
        rows.append(estimate_row(estimate, "strength", "answers", **bounds, reason=reason))
    joint = reported_pvalue(joint_test)
    joint_text = (
        f"The joint test that all are equal: p = {joint:.3f}."
        if joint is not None
        else f"No joint test: {joint_test.reason}."
    )
    return build_table(
        "best_worst_systems",
        f"Systems by strength{in_parentheses(title)}",
        "system|System|text; strength|Strength, log-odds|number; interval|95% CI|wide_interval; highest|May be as high as|integer; "
        "lowest|May be as low as|integer; n|n annotators|integer; answers|Answers|integer; reason|Note|text",
        rows,
        "first",
        f"Strengths have the sum 0. The sets of ranks hold jointly at the stated level. {joint_text}",
        rank_sets.warnings,
    )


def systems_figure(strengths: Sequence["Estimate"], title: str) -> Figure:
    return build_figure(
        "best_worst_systems",
        f"Strength of each system{in_parentheses(title)}",
        [figure_row(estimate, estimate.settings["system"], "strength") for estimate in strengths],
        description="Above 0, a system is chosen more often than the mean of all.",
        axis="strength, log-odds",
        reference=0.0,
    )


def counts_table(scores: Sequence["Estimate"], counts: "MaxDiffScores", title: str) -> Table:
    rows = [
        estimate_row(
            estimate,
            "score",
            shown=estimate.detail["n_shown"],
            best=estimate.detail["n_best"],
            worst=estimate.detail["n_worst"],
        )
        for estimate in sorted(scores, key=by_value)
    ]
    return build_table(
        "best_worst_counts",
        f"How often each system was the best and the worst{in_parentheses(title)}",
        "system|System|text; shown|Shown|integer; best|Best|integer; worst|Worst|integer; score|Score|number; interval|95% CI|wide_interval; "
        "n|n annotators|integer; reason|Undefined because|text",
        rows,
        "first",
        f"The score is (best − worst) / shown, from −1 to 1; {counts.n_rows} answers of {counts.n_clusters} annotators.",
    )


def counts_figure(scores: Sequence["Estimate"], title: str) -> Figure:
    return build_figure(
        "best_worst_counts",
        f"MaxDiff score of each system{in_parentheses(title)}",
        [figure_row(estimate, estimate.settings["system"], "score") for estimate in scores],
        description="(Best − worst) / shown.",
        axis="score",
        reference=0.0,
        limits=[-1, 1],
    )


@dataclass(frozen=True, slots=True)
class BestWorstAnswers:
    """The complete answers of one section. ``rows`` has one row per answer; ``sets`` holds the indices of the systems shown."""

    section: Any
    criterion: str
    systems: tuple[str, ...]
    rows: "DataFrame"

    @property
    def title(self) -> str:
        return words_of_section(self.section).subject(self.criterion).note

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The planned comparisons, then all other pairs of systems that were shown."""
        planned = planned_comparisons(read_contrasts(self.section), self.section, self.criterion, "", STRENGTH)
        pairs = pairs_under_evaluation(self.systems)
        return (*planned, *other_comparisons(self.section, planned, pairs, self.criterion))

    def kept(self, column: str) -> "DataFrame":
        return self.rows[self.rows[column].astype(bool)]

    def as_arrays(self, rows: "DataFrame") -> tuple["np.ndarray", ...]:
        """Return sets (padded with -1), best, worst, annotators and prompts as arrays for the statistics."""
        import numpy as np

        width = max((len(systems) for systems in rows["sets"]), default=0)
        sets = np.full((len(rows), width), -1)
        for row_number, systems in enumerate(rows["sets"]):
            sets[row_number, : len(systems)] = systems
        best, worst = (rows[name].to_numpy(int) for name in (BEST, WORST))
        return sets, best, worst, *column_arrays(rows, "annotator", SECOND_SAMPLE)


@register
class BestWorstAnalysis(PairAnalysis):
    slug = "best_worst"
    # Plans take best-worst choices for rankings, and estimate no block of theirs.
    headline_blocks = {"ranking": ""}
    needs_planned_labels = True
    # Of the outputs that are neither the best nor the worst, nothing is known.
    has_equal_preferences = False
    pairs_block = "best_worst.strength"

    def planned_comparisons(self, section):
        return planned_comparisons(read_contrasts(section), section, _criterion(section), "", STRENGTH)

    def read(self, context):
        items = () if context.claims is None else context.claims.items
        systems_by_item = {f"s{position}.{number}": names.split("\x1f") for position, number, names in items}
        return [_read_answers(context.rows, section, systems_by_item) for section in context.sections]

    def compare(self, records, context):
        return super().compare([answers for answers in records if len(answers.rows)], context)

    def estimate(self, answers, compared, context):
        """Return the difference of the strengths of x and y."""
        from analysis.stats.results import Estimate

        estimand = f"log-odds that {compared.x} is chosen over {compared.y}"
        if not {compared.x, compared.y} <= set(answers.systems):
            estimate = Estimate(
                analysis="best_worst.strength",
                estimand=estimand,
                unit="annotator",
                n=0,
                status="no_data",
                reason="one of the two was never shown",
            )
        else:
            fit = _fit_logit(answers, compared.population, context.level)
            estimate = fit.difference(answers.systems.index(compared.x), answers.systems.index(compared.y))
            estimate = about_groups(estimate, answers.kept("is_kept"), compared.population)
        named = compared.tag_estimate(replace(estimate, estimand=estimand), STRENGTH, null=0.0)
        return compared.with_equivalence_tests(named, null=0.0)

    def pair_scores(self, answers, compared):
        """Return what each answer says about a pair: 1 for x above y, 0 for y, .5 if neither is the best or the worst.

        Left out, pairs without either would make annotators look surer than they are; simulations in the documentation of plans
        compare both. The headline is a difference of strengths, so it is not the mean of these scores.
        """
        import numpy as np

        rows = answers.kept("is_kept")
        if not {compared.x, compared.y} <= set(answers.systems):
            return rows.iloc[:0].assign(score=0.5)
        x, y = answers.systems.index(compared.x), answers.systems.index(compared.y)
        shown = rows[[{x, y} <= set(systems) for systems in rows["sets"]]]
        is_above = (shown[BEST] == x) | (shown[WORST] == y)
        is_below = (shown[BEST] == y) | (shown[WORST] == x)
        return shown.assign(score=np.select([is_above, is_below], [1.0, 0.0], 0.5))

    def judged_outputs(self, section, question, answers, shown):
        """Return 1 for the best output of an item, 0 for the worst, and a half for each other one."""
        import pandas as pd

        if question.key != BEST:
            return None
        chosen = answers[answers["chosen_system"].notna()]
        ends = {name: chosen[chosen["question"] == name].set_index(["assignment", "item"]) for name in (BEST, WORST)}
        both = ends[BEST].join(ends[WORST]["chosen_system"].rename("worst"), how="inner").reset_index()
        found = [
            (row, *output, 1.0 if output[0] == best else 0.0 if output[0] == worst else 0.5)
            for row, (item, best, worst) in enumerate(
                zip(both["item"], both["chosen_system"], both["worst"], strict=True)
            )
            for output in shown.get(item, ())
        ]
        cells = pd.DataFrame(found, columns=["row", "system", "sample", "value"])
        rows = both.iloc[cells["row"].to_numpy(int)].reset_index(drop=True)
        return rows.assign(**{name: cells[name] for name in ("system", "sample", "value")}, unit=rows["item"])

    def blocks(self, records, adjusted, context):
        estimates = adjusted["best_worst.strength"]
        pairs = Block(
            "best_worst.strength",
            "Difference of strengths",
            estimates=estimates,
            conclusions=build_planned_conclusions(estimates, PHRASES),
            tables=[pairs_table(estimates)],
            figures=[pairs_figure(estimates)],
            note="Log-odds that x is chosen over y: a sequential best-worst logit of all answers. Annotators are clusters and, if there are five or more, prompts.",
        )
        answered = [answers for answers in records if len(answers.rows)]
        return [pairs, *(block for answers in answered for block in _section_blocks(answers, context))]


def _read_answers(frame: "DataFrame", section: Any, systems_by_item: Mapping[str, Sequence[str]]) -> BestWorstAnswers:
    """Return the complete answers: two different outputs, both shown in the item."""
    rows = frame[
        (frame["section"] == section.position) & frame["chosen_system"].notna() & frame["question"].isin((BEST, WORST))
    ]
    if rows.empty:
        return BestWorstAnswers(section, _criterion(section), (), rows)
    keys = ["annotator", "assignment", "item", "prompt", SECOND_SAMPLE, "is_kept", "is_kept_paper"]
    wide = rows.pivot_table(index=keys, columns="question", values="chosen_system", aggfunc="first", dropna=True)
    wide = wide.reindex(columns=[BEST, WORST]).dropna().reset_index()
    sets = [sorted(systems_by_item.get(item, ())) for item in wide["item"]]
    choices = zip(wide[BEST], wide[WORST], sets, strict=True)
    is_complete = [best != worst and {best, worst} <= set(names) for best, worst, names in choices]
    wide, sets = wide[is_complete], [names for names, is_valid in zip(sets, is_complete, strict=True) if is_valid]
    systems = tuple(sorted({name for names in sets for name in names}))
    numbers = {name: number for number, name in enumerate(systems)}
    wide = wide.assign(
        sets=[tuple(numbers[name] for name in names) for names in sets],
        **{name: wide[name].map(numbers) for name in (BEST, WORST)},
    )
    return BestWorstAnswers(section, _criterion(section), systems, wide)


def _criterion(section: Any) -> str:
    return "".join(question.criterion for question in section.questions.all() if question.key == BEST)


def _fit_logit(answers: BestWorstAnswers, population: str, level: float) -> "BestWorstLogit":
    """Return the fit for a declared population: prompts are clusters, unless it is people for exactly these prompts."""
    from analysis.stats.best_worst import best_worst_logit

    sets, best, worst, people, prompts = answers.as_arrays(answers.kept("is_kept"))
    return best_worst_logit(
        sets,
        best,
        worst,
        people,
        None if population == "people" else prompts,
        n_systems=len(answers.systems),
        level=level,
    )


PHRASES = ConclusionPhrases(
    above_claim="{x} was picked as better than {y}{about}.",
    below_claim="{x} was picked as worse than {y}{about}.",
    same="{x} and {y} were picked alike{about}",
    open="It remains open whether {x} or {y} was picked as better{about}.",
    before="The strength of {x} minus that of {y}, in log-odds, is",
    symbol="b({x}) − b({y})",
)


def _section_blocks(answers: BestWorstAnswers, context: AnalysisContext) -> list[Block]:
    """Return the blocks about single systems: strengths with sets of ranks, the papers' counts, and the first letter."""
    from analysis.stats.best_worst import maxdiff_score_rows, maxdiff_scores
    from analysis.stats.ranks import rank_confidence_sets_from_rows

    kept = answers.kept("is_kept")
    population = table_population(answers.comparisons, kept)
    fit = _fit_logit(answers, population, context.level)
    level, where = context.level, {"section": answers.section.position, "criterion": answers.criterion}
    strengths = named_by_system(
        fit.strengths, answers.systems, lambda name: f"log-odds of {name} against the mean of all", where
    )
    together = replace(
        fit.omnibus, estimand="whether the strengths differ at all", settings={**fit.omnibus.settings, **where}
    )
    if population != "people":
        *strengths, together = without_intervals_if_too_few(
            [*strengths, together], kept[SECOND_SAMPLE].nunique(), second_sample_noun(kept)
        )
    arrays = answers.as_arrays(kept)
    answer_indices, systems, values = maxdiff_score_rows(*arrays[:3], n_systems=len(answers.systems))
    names = [answers.systems[number] for number in systems]
    ranks = rank_confidence_sets_from_rows(
        values,
        arrays[3][answer_indices],
        names,
        arrays[4][answer_indices],
        population=population,
        level=level,
    )
    arrays = answers.as_arrays(answers.kept("is_kept_paper"))
    counts = maxdiff_scores(*arrays, n_systems=len(answers.systems), level=level)
    scores = named_by_system(counts.scores, answers.systems, lambda name: f"(best − worst) / shown of {name}", where)
    return [
        Block(
            "best_worst.strengths",
            f"Strength of each system{in_parentheses(answers.title)}",
            estimates=(*strengths, together),
            tables=[systems_table(strengths, together, ranks, answers.title)],
            figures=[systems_figure(strengths, answers.title)],
            other_results={
                "systems": list(answers.systems),
                "status": fit.status,
                "reason": fit.reason,
                "ranks": ranks.as_dict(),
                "probabilities": fit.probabilities.tolist(),
            },
            note="Log-odds with sum 0. The strength of a system does not depend on the systems shown with it.",
            systems=SystemOrder(measure="strength in log-odds", estimates=strengths, about=answers.title, sets=ranks),
        ),
        Block(
            "best_worst.counts",
            f"How often each system was the best and the worst{in_parentheses(answers.title)}",
            "paper",
            estimates=tuple(scores),
            tables=[counts_table(scores, counts, answers.title)],
            figures=[counts_figure(scores, answers.title)],
            note="MaxDiff counts: (best − worst) / shown, after all primary rules. They depend on which other systems were shown.",
        ),
    ]
