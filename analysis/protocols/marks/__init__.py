"""Analyse error marks: penalty and score of each system, its error categories, and agreement on marks.

The penalty of a judged output is the sum of the weights of its marks. Systems are compared within an annotator and prompt, so
that strict annotators and hard prompts cancel out. Annotators are clusters. Prompts are too, if several people judged them.

Source: Freitag et al. 2021 (weighted marks); Kocmi et al. 2024 (marks, then a score).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions
from analysis.protocols.blocks.cells import comparison_x_y_and_criterion_phrase
from analysis.protocols.blocks.comparisons import (
    Comparison,
    comparison_from_contrast,
    read_contrasts,
    samples_if_unpaired,
    unplanned_comparison,
)
from analysis.protocols.blocks.populations import SECOND_SAMPLE, about_groups, table_population
from analysis.protocols.blocks.references import unplanned_pairs
from analysis.protocols.blocks.subjects import in_parentheses
from studies.protocols.base.contrasts import system_contrasts_for_section
from studies.protocols.marks import PENALTY, SCORE

from .. import ComparingAnalysis, HeadlineAnswers, ProtocolAnalysis, register
from . import layouts
from .agreement import agreement_checks
from .judged_outputs import JudgedOutputs, paired_differences, pivot_outputs, read_judged_outputs

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate

ESTIMAND_TEXTS = {SCORE: "mean difference of scores x - y", PENALTY: "mean difference of penalties y - x"}


@register
class MarksAnalysis(ProtocolAnalysis):
    slug = "marks"
    headline_block = "marks.score"

    def planned_claims(self, sections: Sequence[Any]) -> dict[str, list[Comparison]]:
        claims: dict[str, list[Comparison]] = {}
        for section in sections:
            has_score = section.questions.filter(key=SCORE).exists()
            for estimand in (SCORE, PENALTY) if has_score else (PENALTY,):
                claims.setdefault(f"marks.{estimand}", []).extend(_planned_comparisons(section, estimand, has_score))
        return claims

    def analyse(self, context: AnalysisContext) -> ComparingAnalysis:
        """Return blocks for all sections of error marks. Families span all sections."""
        sections_outputs = [read_judged_outputs(context.rows, section) for section in context.sections]
        blocks = []
        adjusted = yield {
            f"marks.{estimand}": [
                (compared, _difference_estimate(judged_outputs, estimand, compared, context.level))
                for judged_outputs in sections_outputs
                if estimand == PENALTY or judged_outputs.has_score
                for compared in _comparisons(judged_outputs, estimand)
            ]
            for estimand in (SCORE, PENALTY)
        }
        for estimand in (SCORE, PENALTY):
            estimates = adjusted[f"marks.{estimand}"]
            blocks.append(
                Block(
                    f"marks.{estimand}",
                    f"Compared by {layouts.ESTIMAND_LABELS[estimand]}",
                    "recommended",
                    estimates=estimates,
                    conclusions=build_planned_conclusions(estimates, _phrases),
                    tables=[layouts.pairs_table(estimates, estimand)],
                    figures=[layouts.differences_figure(estimates, estimand)],
                    note="Within each annotator and prompt, if annotators judged both side by side. Above 0, x is better.",
                )
            )
        for judged_outputs in sections_outputs:
            blocks += _section_blocks(judged_outputs, context)
        return [block for block in blocks if block.estimates]

    def headline_answers(self, context: AnalysisContext) -> list[HeadlineAnswers]:
        """Plans know scores from 0 to 100. A section without a score has no such headline."""
        found = []
        for section in context.sections:
            judged_outputs = read_judged_outputs(context.rows, section)
            low, high = judged_outputs.score_range
            if judged_outputs.has_score and high > low:
                wide = pivot_outputs(judged_outputs, SCORE)
                for compared in _comparisons(judged_outputs, SCORE):
                    differences, annotators, prompts = paired_differences(wide, SCORE, compared)
                    found.append(HeadlineAnswers(compared, differences * 100 / (high - low), annotators, prompts))
        return found


def _planned_comparisons(section: Any, estimand: str, has_score: bool) -> list[Comparison]:
    contrasts = read_contrasts(section)
    comparisons = [
        comparison_from_contrast(contrast, section, contrast.criterion)
        for contrast in system_contrasts_for_section(contrasts, section, estimand, SCORE if has_score else PENALTY)
    ]
    return list({comparison.key: comparison for comparison in comparisons}.values())


def _comparisons(judged_outputs: JudgedOutputs, estimand: str) -> list[Comparison]:
    """Return the planned comparisons on this estimand, then all other pairs of systems under evaluation."""
    planned = _planned_comparisons(judged_outputs.section, estimand, judged_outputs.has_score)
    others = [
        unplanned_comparison(judged_outputs.section, x, y)
        for x, y in unplanned_pairs(judged_outputs.outputs["system"], planned, judged_outputs.references)
    ]
    return list({comparison.key: comparison for comparison in [*planned, *others]}.values())


def _difference_estimate(
    judged_outputs: JudgedOutputs, estimand: str, comparison: Comparison, level: float
) -> "Estimate":
    from analysis.stats import clusters, unpaired

    wide = pivot_outputs(judged_outputs, estimand)
    if (samples := samples_if_unpaired(wide, comparison)) is not None:
        if estimand == PENALTY:
            # Fewer errors are better: above 0, x is better.
            samples |= {"x": -samples["x"], "y": -samples["y"]}
        estimate = unpaired.mean_difference(**samples, level=level).labelled(
            analysis=f"marks.{estimand}_unpaired", estimand=f"{ESTIMAND_TEXTS[estimand]} (not side by side)"
        )
        judged = wide.reindex(columns=[comparison.x, comparison.y]).dropna(how="all")
        estimate = about_groups(estimate, judged, comparison.population)
        return _tag_with_equivalence(estimate, estimand, comparison)
    differences, annotators, prompts = paired_differences(wide, estimand, comparison)
    common: dict[str, Any] = {"null": 0.0, "level": level, "estimand": ESTIMAND_TEXTS[estimand]}
    estimate = clusters.annotator_prompt_clustered_mean(
        differences, annotators, prompts, population=comparison.population, analysis=f"marks.{estimand}", **common
    )
    pairs = wide.reindex(columns=[comparison.x, comparison.y]).dropna()
    estimate = about_groups(estimate, pairs, comparison.population)
    return _tag_with_equivalence(estimate, estimand, comparison)


def _tag_with_equivalence(estimate: "Estimate", estimand: str, comparison: Comparison) -> "Estimate":
    """Return the estimate with its comparison, and with a TOST if there is a margin."""
    sensitivity = (*estimate.sensitivity, *comparison.equivalence_tests(estimate, null=0.0))
    return comparison.tag_estimate(replace(estimate, sensitivity=sensitivity), estimand, null=0.0)


def _phrases(estimate: "Estimate") -> ConclusionPhrases:
    x, y, about = comparison_x_y_and_criterion_phrase(estimate)
    if estimate.settings["key"] == SCORE:
        return ConclusionPhrases(
            above_claim=f"{x} was scored higher than {y}{about}.",
            below_claim=f"{x} was scored lower than {y}{about}.",
            same=f"{x} and {y} were scored alike{about}",
            open=f"It remains open whether {x} or {y} is scored higher{about}.",
            before=f"The mean score of {x} less that of {y} is",
            symbol=f"score({x}) − score({y})",
        )
    return ConclusionPhrases(
        above_claim=f"{x} has fewer or milder errors than {y}{about}.",
        below_claim=f"{x} has more or graver errors than {y}{about}.",
        same=f"{x} and {y} have equally many and grave errors{about}",
        open=f"It remains open whether {x} or {y} has fewer or milder errors{about}.",
        before=f"The mean advantage of {x} over {y} in penalties is",
        symbol=f"penalty({y}) − penalty({x})",
    )


def _section_blocks(judged_outputs: JudgedOutputs, context: AnalysisContext) -> list[Block]:
    rows = judged_outputs.outputs[judged_outputs.outputs["is_kept"].astype(bool)]
    if not len(rows):
        return []
    compared = [*_comparisons(judged_outputs, SCORE), *_comparisons(judged_outputs, PENALTY)]
    options: dict[str, Any] = {"population": table_population(compared, rows), "level": context.level}
    systems = _system_means(judged_outputs, rows, options)
    # Planted references appear only in the table of systems, which shows whether people find the planted errors.
    evaluated = rows[~rows["system"].isin(judged_outputs.references.names)]
    kinds = _error_rates(judged_outputs, evaluated, options)
    checks = agreement_checks(judged_outputs, evaluated, context)
    paper = _campaign_estimates(judged_outputs)
    return [
        Block(
            "marks.systems",
            f"Each system by itself{in_parentheses(judged_outputs.title)}",
            "recommended",
            estimates=systems,
            tables=[layouts.systems_table(systems, judged_outputs)],
            figures=[layouts.evaluated_systems_penalties_figure(systems, judged_outputs)],
            note="Means over judged outputs. The penalty sums the weights of the marks.",
        ),
        Block(
            "marks.kinds",
            f"Errors by category and severity{in_parentheses(judged_outputs.title)}",
            "recommended",
            estimates=kinds,
            tables=[layouts.error_rates_by_kind_table(kinds, judged_outputs)],
            note="Errors per judged output.",
        ),
        Block(
            "marks.checks",
            f"Do annotators mark the same?{in_parentheses(judged_outputs.title)}",
            "recommended",
            estimates=checks,
            tables=[layouts.mark_agreement_and_score_checks_table(checks, judged_outputs)],
            note="Sentences of outputs that several annotators read; marks of no sentence are left out.",
        ),
        Block(
            "marks.standard",
            f"As campaigns print it{in_parentheses(judged_outputs.title)}",
            "paper",
            estimates=paper,
            tables=[layouts.campaign_style_table(paper, judged_outputs)],
            note="Outputs taken as independent, after all primary rules; no interval is given, because outputs of one annotator are not.",
        ),
    ]


def _system_means(judged_outputs: JudgedOutputs, rows: "DataFrame", options: dict[str, Any]) -> tuple["Estimate", ...]:
    """Return score, penalty and the share of outputs without an error, for each system."""
    measures = [
        ("score", "mean score", judged_outputs.score_range),
        ("penalty", "mean penalty of an output", None),
        ("clean", "share of outputs without an error", (0.0, 1.0)),
    ]
    return tuple(
        _mean(
            system_rows[measure],
            system_rows,
            options,
            f"marks.system.{measure}",
            estimand,
            bounds,
            system=system,
            measure=measure,
        )
        for system, system_rows in rows.assign(clean=(rows["errors"] == 0).astype(float)).groupby("system", sort=True)
        for measure, estimand, bounds in (measures if judged_outputs.has_score else measures[1:])
    )


def _error_rates(judged_outputs: JudgedOutputs, rows: "DataFrame", options: dict[str, Any]) -> tuple["Estimate", ...]:
    measures = [(f"is:{category.key}", category.label, "category") for category in judged_outputs.codebook.categories]
    measures += [(f"at:{severity.key}", severity.label, "severity") for severity in judged_outputs.codebook.severities]
    return tuple(
        _mean(
            system_rows[column],
            system_rows,
            options,
            f"marks.{sort}",
            f"errors per output: {label}",
            None,
            system=system,
            measure=label,
            sort=sort,
        )
        for column, label, sort in measures
        for system, system_rows in rows.groupby("system", sort=True)
    )


def _mean(values, rows, options, analysis, estimand, bounds, **settings) -> "Estimate":
    from analysis.stats import clusters

    estimate = clusters.mean_of_population(
        values.to_numpy(float),
        rows["annotator"].to_numpy(object),
        rows[SECOND_SAMPLE].to_numpy(object),
        **options,
        bounds=bounds,
        analysis=analysis,
        estimand=estimand,
    )
    return replace(estimate, settings={**estimate.settings, **settings})


def _campaign_estimates(judged_outputs: JudgedOutputs) -> tuple["Estimate", ...]:
    """Return penalty per output and per 100 words, and the mean score, as in published tables."""
    from analysis.stats.results import Estimate

    rows = judged_outputs.outputs[judged_outputs.outputs["is_kept_paper"].astype(bool)]
    estimates = []
    for system, system_rows in rows.groupby("system", sort=True):
        n_words = float(system_rows["words"].sum())
        measures = {
            "penalty": ("weighted penalty per output", float(system_rows["penalty"].mean())),
            "per_100_words": (
                "weighted penalty per 100 words",
                100 * float(system_rows["penalty"].sum()) / n_words if n_words else None,
            ),
            "score": (
                "mean score",
                float(system_rows["score"].mean())
                if judged_outputs.has_score and system_rows["score"].notna().any()
                else None,
            ),
        }
        for measure, (estimand, value) in measures.items():
            estimates.append(
                Estimate(
                    analysis=f"marks.standard.{measure}",
                    estimand=estimand,
                    unit="judged output",
                    n=len(system_rows),
                    mode="paper",
                    status="ok" if value is not None else "not_applicable",
                    estimate=value,
                    reason="" if value is not None else "not asked, or no words",
                    settings={"system": system, "measure": measure},
                    detail={
                        "words": int(n_words),
                        "errors": int(system_rows["errors"].sum()),
                        "annotators": int(system_rows["annotator"].nunique()),
                    },
                )
            )
    return tuple(estimates)
