"""Analyse error marks: penalty and score of each system, its error categories, and agreement on marks.

The penalty of a judged output is the sum of the weights of its marks. Systems are compared within an annotator and
prompt, so that strict annotators and hard prompts cancel out. Annotators are clusters. Prompts are too, if several
people judged them.

Source: Freitag et al. 2021 (weighted marks); Kocmi et al. 2024 (marks, then a score).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions
from analysis.protocols.blocks.cells import comparison_label, comparisons_note, interval_bounds
from analysis.protocols.blocks.comparisons import (
    Comparison,
    PlantedReferences,
    comparison_from_contrast,
    each_once,
    other_comparisons,
    pairs_under_evaluation,
    planted_references_of,
    read_contrasts,
)
from analysis.protocols.blocks.layouts import (
    Column,
    Figure,
    Table,
    build_figure,
    build_table,
    estimate_row,
    figure_row,
    parse_columns,
    prefixed_cells,
)
from analysis.protocols.blocks.populations import SECOND_SAMPLE, table_population
from analysis.protocols.blocks.systems import SystemOrder
from analysis.protocols.kinds.answers import join_columns, kept_and_paper_rows, readable_scale
from analysis.protocols.kinds.pairs import PairAnalysis
from analysis.protocols.kinds.scores import (
    agreement_alpha,
    means_by_system,
    paired_scores,
    score_difference,
    sets_of_ranks,
    wide_scores,
)
from studies.design.subjects import in_parentheses, words_of_section
from studies.protocols import REGISTRY
from studies.protocols.base.pairs import system_contrasts_for_section
from studies.protocols.marks import ERRORS, PENALTY, SCORE, WHOLE_TEXT, Codebook, split_sentences
from studies.stimuli.texts import word_count

from . import HeadlineAnswers, register
from .scores import Scorer

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate


# With the assignment, because only one of an annotator's batches may be excluded. The annotator comes first, because assignments
# are numbered in the order of arrival.
OUTPUT_KEY = ["annotator", "assignment", "item", "system", "sample"]
KEPT_COLUMNS = ["is_kept", "is_kept_paper"]


@dataclass(frozen=True, slots=True)
class JudgedOutputs:
    """A section's judged outputs. ``outputs``: KEY, prompt, penalty, errors, one column ``is:<category>`` and ``at:<severity>`` each
    with counts, score (NaN where not asked), words. ``parts``: KEY, part, is_marked, worst (weight of the worst mark, 0 without)."""

    section: Any
    codebook: Codebook
    references: PlantedReferences
    outputs: "DataFrame"
    parts: "DataFrame"
    has_score: bool
    score_range: tuple[float, float]

    @property
    def title(self) -> str:
        return words_of_section(self.section).circumstance


def read_judged_outputs(frame: "DataFrame", section: Any) -> JudgedOutputs:
    """Return marks and scores of a section by output. An output is judged if a mark or "no error" was stored for it."""
    import pandas as pd

    codebook = REGISTRY[section.protocol].codebook_of(section)  # type: ignore[attr-defined]  # the protocol of marks
    scales = {question.key: readable_scale(question) for question in section.questions.all()}
    rows = frame[(frame["section"] == section.position) & frame["system"].notna()]
    marks = rows[(rows["question"] == ERRORS) & rows["value"].notna()]
    errors, score = scales.get(ERRORS), scales.get(SCORE)
    low, high = (errors.minimum, errors.maximum) if errors else (0, 1)
    # Weights have at most four decimals. Rounding removes the error from scaling to 0..1 and back.
    marks = marks.assign(weight=(low + marks["value"] * (high - low)).round(4))
    outputs = marks.groupby(OUTPUT_KEY, sort=True, dropna=False).agg(
        id=("id", "first"),
        prompt=("prompt", "first"),
        **{SECOND_SAMPLE: (SECOND_SAMPLE, "first")},
        penalty=("weight", "sum"),
        errors=("choice", lambda choices: int((choices != "").sum())),
        **{name: (name, "first") for name in KEPT_COLUMNS},
    )
    real = marks[marks["choice"] != ""]
    for category in codebook.categories:
        outputs[f"is:{category.key}"] = (
            real[real["choice"] == category.key].groupby(OUTPUT_KEY).size().reindex(outputs.index, fill_value=0)
        )
    for category in codebook.severities:
        own_marks = real[real["weight"] == float(category.weight)]
        outputs[f"at:{category.key}"] = own_marks.groupby(OUTPUT_KEY).size().reindex(outputs.index, fill_value=0)
    ends = (float(score.minimum), float(score.maximum)) if score else (0.0, 100.0)
    scores = rows[(rows["question"] == SCORE)].groupby(OUTPUT_KEY)["value"].first().reindex(outputs.index)
    outputs["score"] = ends[0] + scores.astype(float) * (ends[1] - ends[0])
    outputs = outputs.reset_index()
    texts = _output_texts(section)
    outputs["words"] = [
        word_count(texts.get(key, ""))
        for key in zip(outputs["prompt"], outputs["system"], outputs["sample"], strict=True)
    ]
    return JudgedOutputs(
        section,
        codebook,
        planted_references_of(section.study),
        outputs,
        _sentence_rows(outputs, real, texts, pd),
        score is not None,
        ends,
    )


def wide_outputs(judged_outputs: JudgedOutputs, estimand: str) -> "DataFrame":
    """Return one row per annotator, item and prompt of the annotators that the rules keep, with a column for each system."""
    kept, _ = kept_and_paper_rows(judged_outputs.outputs)
    return wide_scores(kept, estimand, "item")


def _sentence_rows(outputs: "DataFrame", error_rows: "DataFrame", texts: Mapping[tuple, str], pd: Any) -> "DataFrame":
    """Return every sentence of every judged output. Marks outside sentences are left out."""
    worst: dict[tuple, float] = {}
    for *key, part, weight in zip(*(error_rows[name] for name in (*OUTPUT_KEY, "part", "weight")), strict=True):
        number = str(part).partition(":")[0]
        if number.isdecimal() and int(number) != WHOLE_TEXT:
            sentence_key = (*key, int(number))
            worst[sentence_key] = max(worst.get(sentence_key, 0.0), float(weight))
    rows = []
    for prompt, *key in zip(outputs["prompt"], *(outputs[name] for name in OUTPUT_KEY), strict=True):
        for part in split_sentences(texts.get((prompt, *key[-2:]), "")):
            weight = worst.get((*key, part.number), 0.0)
            rows.append((*key, part.number, float(weight > 0), weight))
    return pd.DataFrame(rows, columns=[*OUTPUT_KEY, "part", "is_marked", "worst"])


def _output_texts(section: Any) -> dict[tuple, str]:
    """Return the texts of the section's outputs by prompt, system and sample. The frame does not hold them."""
    from studies.models import Output

    outputs = Output.objects.filter(system__study=section.study_id).values_list(
        "prompt__key", "system__name", "sample", "text"
    )
    return {(prompt, system, sample): text for prompt, system, sample, text in outputs}


# Agreement of annotators on error marks and on scores.


# With fewer outputs than this, an annotator's rank correlation is meaningless.
MIN_OUTPUTS = 4


def agreement_checks(
    judged_outputs: JudgedOutputs, rows: "DataFrame", context: AnalysisContext
) -> tuple["Estimate", ...]:
    """Return agreement on erroneous sentences, on severity and on scores, and the correlation of score and penalty."""
    from analysis.stats import basic

    level = context.level
    assignments = set(rows["assignment"])
    parts = judged_outputs.parts[
        judged_outputs.parts["assignment"].isin(assignments)
        & ~judged_outputs.parts["system"].isin(judged_outputs.references.names)
    ]
    parts = parts.assign(sentence=join_columns(parts, "item", "system", "sample", "part"))
    checks = [
        _agreement_alpha(parts["sentence"], parts[column], measurement, "sentence", measured, context, cluster="output")
        for column, measurement, measured in (
            ("is_marked", "nominal", "which sentences hold an error"),
            ("worst", "ordinal", "how grave the worst error of a sentence is"),
        )
    ]
    if judged_outputs.has_score:
        checks.append(
            _agreement_alpha(
                join_columns(rows, "item", "system", "sample"), rows["score"], "interval", "output", "scores", context
            )
        )
        correlations = []
        for _, annotator_rows in rows.groupby("annotator", sort=True):
            if (
                len(annotator_rows) >= MIN_OUTPUTS
                and annotator_rows["score"].nunique() > 1
                and annotator_rows["penalty"].nunique() > 1
            ):
                correlations.append(annotator_rows["score"].corr(-annotator_rows["penalty"], method="spearman"))
        checks.append(
            basic.one_sample_t_test(
                correlations,
                null=0.0,
                level=level,
                bounds=(-1.0, 1.0),
            ).labelled(
                analysis="marks.consistency",
                estimand="rank correlation of score and (less) penalty within an annotator, mean",
            )
        )
    return tuple(checks)


def _agreement_alpha(units, values, level_of_measurement, unit, measured_text, context, cluster="") -> "Estimate":
    """Return Krippendorff's alpha. ``cluster``: the prefix of unit names that is resampled."""
    estimate = agreement_alpha(
        units,
        values,
        # The same people read all sentences of an output, and a bad output has several marked sentences.
        cluster_of=(lambda name: name.rpartition("\x1f")[0]) if cluster else None,
        cluster_name=cluster,
        level_of_measurement=level_of_measurement,
        level=context.level,
        rng=context.rng(measured_text),
    )
    estimand = f"Krippendorff's alpha: {measured_text}"
    return estimate.labelled(analysis="marks.agreement", estimand=estimand, unit=unit)


# Tables and figures of error marks. This module only arranges values.


ESTIMAND_LABELS = {SCORE: "score", PENALTY: "penalty"}


def pairs_table(estimates: Sequence["Estimate"], estimand: str) -> Table:
    """Return the table of all pairs of systems on one estimand."""
    difference_text = {SCORE: "score of x minus score of y", PENALTY: "penalty of y minus penalty of x"}[estimand]
    unit = {SCORE: "points", PENALTY: "weight of errors"}[estimand]
    return build_table(
        f"marks_{estimand}_pairs",
        f"Which is better, by {ESTIMAND_LABELS[estimand]}",
        f"pair|Pair|text; role|Role|text; difference|Difference, {unit}|number; interval|95% CI|wide_interval; p|adj. p|p; "
        "verdict|Verdict|text; n|n annotators|integer; n_rows|Pairs of outputs|integer; reason|Undefined because|text",
        [estimate_row(estimate, "difference") for estimate in estimates],
        "first",
        f"Difference: {difference_text}, within an annotator and prompt. Above 0, x is better. p is adjusted within "
        f"each planned family and within all unplanned pairs.{comparisons_note(estimates)}",
    )


def differences_figure(estimates: Sequence["Estimate"], estimand: str) -> Figure:
    rows = [figure_row(estimate, comparison_label(estimate), ESTIMAND_LABELS[estimand]) for estimate in estimates]
    return build_figure(
        f"marks_{estimand}_pairs",
        f"Differences of {ESTIMAND_LABELS[estimand]}",
        rows,
        description="Above 0, the first system of a pair is better.",
        axis=f"difference of {ESTIMAND_LABELS[estimand]}",
        reference=0.0,
    )


def systems_table(estimates: Sequence["Estimate"], judged_outputs: Any) -> Table:
    estimates_by_key = {(estimate.settings["system"], estimate.settings["measure"]): estimate for estimate in estimates}
    rows = []
    for system in dict.fromkeys(system for system, _ in estimates_by_key):
        kind = judged_outputs.references.kind_of(system)
        row = estimate_row(estimates_by_key[system, "penalty"], "penalty", "outputs", reference=kind)
        for measure in ("score", "penalty", "clean"):
            row |= prefixed_cells(measure, estimates_by_key.get((system, measure)))
        rows.append(row)
    rows.sort(key=lambda row: (bool(row["reference"]), row["penalty"] is None, row["penalty"], row["system"]))
    weights = ", ".join(f"{severity.label} {severity.weight:f}" for severity in judged_outputs.codebook.severities)
    return build_table(
        "marks_systems",
        f"Score, penalty and outputs without error, by system{in_parentheses(judged_outputs.title)}",
        f"system|System|text; {_reference_column(rows)}score|Score|number; score_interval|95% CI, score|wide_interval; penalty|Penalty|number; "
        "penalty_interval|95% CI, penalty|wide_interval; clean|Without error|percent; clean_interval|95% CI, without|interval; "
        "n|n annotators|integer; outputs|Outputs judged|integer; reason|Undefined because|text",
        rows,
        "first",
        f"The smallest penalty comes first. The penalty of an output is the sum of the weights of its errors ({weights}). Means over "
        "judged outputs.",
    )


def _reference_column(rows: Sequence[dict[str, Any]]) -> str:
    """Return the column that marks planted references, or '' if there are none."""
    return "reference|Planted as|text; " if any(row["reference"] for row in rows) else ""


def evaluated_systems_penalties_figure(estimates: Sequence["Estimate"], judged_outputs: Any) -> Figure:
    rows = [
        figure_row(estimate, estimate.settings["system"], "penalty")
        for estimate in estimates
        if estimate.settings["measure"] == "penalty"
        and not judged_outputs.references.kind_of(estimate.settings["system"])
    ]
    return build_figure(
        "marks_penalties",
        f"Mean penalty of each system{in_parentheses(judged_outputs.title)}",
        rows,
        description="Lower is better.",
        axis="penalty per output",
    )


def error_rates_by_kind_table(estimates: Sequence["Estimate"], judged_outputs: Any) -> Table:
    """Return a table with one row per error category or severity level, and one column per system, readable also for a long codebook."""
    systems = sorted({estimate.settings["system"] for estimate in estimates})
    estimates_by_kind: dict[tuple[str, str], dict[str, Any]] = {}
    for estimate in estimates:
        estimates_by_kind.setdefault((estimate.settings["sort"], estimate.settings["measure"]), {})[
            estimate.settings["system"]
        ] = estimate
    rows = [
        {
            "sort": sort,
            "what": label,
            "n": _count_range(estimate.n for estimate in kind_estimates.values()),
            "outputs": _count_range(estimate.n_rows for estimate in kind_estimates.values()),
            **{
                key: cell
                for number, system in enumerate(systems)
                if (rate := kind_estimates.get(system)) is not None
                for key, cell in ((f"rate{number}", rate.estimate), (f"interval{number}", interval_bounds(rate)))
            },
            "reason": "; ".join(sorted({estimate.reason for estimate in kind_estimates.values() if estimate.reason})),
        }
        for (sort, label), kind_estimates in estimates_by_kind.items()
    ]
    heads = parse_columns("what|Error|text; sort|Category or severity|text")
    for number, name in enumerate(systems):
        heads.append(Column(key=f"rate{number}", label=name, kind="number"))
        heads.append(Column(key=f"interval{number}", label=f"95% CI, {name}", kind="wide_interval"))
    heads += parse_columns("n|n annotators|text; outputs|Outputs judged of each|text; reason|Undefined because|text")
    return build_table(
        "marks_kinds",
        f"Errors per output, by category and by severity{in_parentheses(judged_outputs.title)}",
        heads,
        rows,
        "sure",
        "The average number of such errors in an output of the system. Each interval is for one rate and is not adjusted for the "
        "number of rates.",
    )


def _count_range(counts: Iterable[int]) -> str:
    """Return one number if all systems have the same, else the smallest and the largest."""
    distinct = sorted(set(counts))
    return f"{distinct[0]}" if len(distinct) == 1 else f"{distinct[0]} to {distinct[-1]}"


def mark_agreement_and_score_checks_table(estimates: Sequence["Estimate"], judged_outputs: Any) -> Table:
    rows = [estimate_row(estimate, agreement=estimate.detail.get("percent_agreement")) for estimate in estimates]
    return build_table(
        "marks_checks",
        f"Do annotators mark the same, and do scores follow marks?{in_parentheses(judged_outputs.title)}",
        "what|What|text; estimate|Estimate|number; interval|95% CI|wide_interval; agreement|Same answer|percent; p|p|p; n|n|integer; "
        "unit|Unit|text; reason|Undefined because|text",
        rows,
        "sure",
        "Alpha is low if errors are rare, even if people usually agree that there is no error: see the share of same answers. "
        "Its interval resamples whole outputs, not people, so it applies only to these annotators.",
    )


def campaign_style_table(estimates: Sequence["Estimate"], judged_outputs: Any) -> Table:
    rows_by_system: dict[str, dict[str, Any]] = {}
    for estimate in estimates:
        system = estimate.settings["system"]
        labels = {
            "system": system,
            "reference": judged_outputs.references.kind_of(system),
            "n": estimate.n,
            **estimate.detail,
        }
        row = rows_by_system.setdefault(system, labels)
        row[estimate.settings["measure"]] = estimate.estimate
    rows = sorted(rows_by_system.values(), key=lambda row: (bool(row["reference"]), row["penalty"], row["system"]))
    return build_table(
        "marks_standard",
        f"As campaigns print it{in_parentheses(judged_outputs.title)}",
        f"system|System|text; {_reference_column(rows)}penalty|Penalty per output|number; per_100_words|Penalty per 100 words|number; score|Mean score|number; "
        "errors|Errors|integer; words|Words|integer; n|Outputs judged|integer; annotators|Annotators|integer",
        rows,
        "sure",
        "After all primary rules. Words count once for each judgement of their output.",
    )


ESTIMAND_TEXTS = {SCORE: "mean difference of scores x - y", PENALTY: "mean difference of penalties y - x"}


class MarksScorer(Scorer):
    """Error marks: an output without an error scores 1, and one with the highest possible penalty 0. Its score from 0 to 100 counts as given."""

    def is_scored(self, question):
        return question.key in (ERRORS, SCORE)

    def describe_scores(self, section, question):
        if question.key != ERRORS:
            return ""
        most = highest_penalty(section)
        return f"An output without an error gets the highest score, and one with the penalty {most:g} the lowest: the most errors that annotators can mark, all of the heaviest level."

    def items_per_prompt(self, settings, n_systems, n_references):
        return 1

    def score_answers(self, section, question, answers, shown):
        answers = answers[answers["system"].notna() & answers["value"].notna()]
        if question.key == ERRORS and len(answers):
            penalties = read_judged_outputs(answers, section).outputs[[*OUTPUT_KEY, "penalty"]]
            # The weights of an output's marks make one penalty, so one row of its answers is left.
            answers = answers.drop_duplicates(OUTPUT_KEY).merge(penalties, on=OUTPUT_KEY)
            answers = answers.assign(value=(1 - answers["penalty"] / highest_penalty(section)).clip(lower=0))
        return answers.assign(other=None, is_first=None)


def highest_penalty(section) -> float:
    """Return the penalty of an output with the most marks that a page takes, each of the heaviest level."""
    protocol = REGISTRY[section.protocol]
    codebook = protocol.codebook_of(section)  # type: ignore[attr-defined]  # the protocol of marks
    heaviest = max(level.weight for level in codebook.severities)
    return float(heaviest) * protocol.cleaned_settings(section)["max_marks"]


@register
class MarksAnalysis(PairAnalysis):
    slug = "marks"
    scorer = MarksScorer()
    headline_blocks = {"marks": "marks.score"}

    def planned_claims(self, sections: Sequence[Any]) -> dict[str, list[Comparison]]:
        claims: dict[str, list[Comparison]] = {}
        for section in sections:
            has_score = section.questions.filter(key=SCORE).exists()
            for estimand in (SCORE, PENALTY) if has_score else (PENALTY,):
                claims.setdefault(f"marks.{estimand}", []).extend(_planned_comparisons(section, estimand, has_score))
        return claims

    def read(self, context):
        return [read_judged_outputs(context.rows, section) for section in context.sections]

    def compare(self, records, context):
        return {
            f"marks.{estimand}": [
                (compared, _difference_estimate(judged_outputs, estimand, compared, context.level))
                for judged_outputs in records
                if estimand == PENALTY or judged_outputs.has_score
                for compared in _comparisons(judged_outputs, estimand)
                if compared.is_planned or not context.is_only_planned
            ]
            for estimand in (SCORE, PENALTY)
        }

    def keep(self, answers, ids):
        return replace(answers, outputs=answers.outputs.assign(is_kept=answers.outputs["id"].isin(ids)))

    def blocks(self, records, adjusted, context):
        blocks = [
            Block(
                f"marks.{estimand}",
                f"Compared by {ESTIMAND_LABELS[estimand]}",
                estimates=adjusted[f"marks.{estimand}"],
                conclusions=build_planned_conclusions(adjusted[f"marks.{estimand}"], PHRASES[estimand]),
                tables=[pairs_table(adjusted[f"marks.{estimand}"], estimand)],
                figures=[differences_figure(adjusted[f"marks.{estimand}"], estimand)],
                note="Within each annotator and prompt, if annotators judged both side by side. Above 0, x is better.",
            )
            for estimand in (SCORE, PENALTY)
        ]
        return [*blocks, *(block for judged_outputs in records for block in _section_blocks(judged_outputs, context))]

    def error_marks(self, section, answers, texts):
        scale = next((readable_scale(question) for question in section.questions.all() if question.key == ERRORS), None)
        rows = answers[(answers["question"] == ERRORS) & answers["value"].notna() & answers["system"].notna()]
        if scale is None:
            return rows.iloc[:0]
        codebook = REGISTRY[section.protocol].codebook_of(section)  # type: ignore[attr-defined]  # the protocol of marks
        labels = {one.key: one.label for one in codebook.categories}
        levels = {round(float(level.weight), 4): level.label for level in codebook.severities}
        low, high = float(scale.minimum), float(scale.maximum)
        weights = (low + rows["value"] * (high - low)).round(4)
        is_error = rows["choice"] != ""
        outputs = zip(rows["system"], rows["prompt"], rows["sample"], rows["part"], strict=True)
        spans = [_span(texts.get((system, prompt, int(sample)), ""), part) for system, prompt, sample, part in outputs]
        return rows.assign(
            category=rows["choice"].map(lambda key: labels.get(key, key)),
            severity=weights.map(levels).where(is_error, "").fillna(""),
            start=[span and span[0] for span in spans],
            end=[span and span[1] for span in spans],
        )

    def headline_answers(self, context: AnalysisContext) -> list[HeadlineAnswers]:
        """Plans know scores from 0 to 100. A section without a score has no such headline."""
        found = []
        for judged_outputs in self.records(context):
            low, high = judged_outputs.score_range
            if judged_outputs.has_score and high > low:
                wide = wide_outputs(judged_outputs, SCORE)
                for compared in _comparisons(judged_outputs, SCORE):
                    pairs = paired_scores(wide, compared)
                    pairs = pairs.assign(score=(pairs["x"] - pairs["y"]) * 100 / (high - low))
                    found.append(HeadlineAnswers.from_rows(compared, pairs, "score"))
        return found


def _span(text: str, part: str) -> tuple[int, int] | None:
    """Return where a marked part begins and ends in a text, or None if it is no place in the text."""
    number, _, characters = (part or "").partition(":")
    place = 0
    for sentence in split_sentences(text):
        place += len(sentence.gap)
        if str(sentence.number) == number:
            first, _, last = (characters or f"0-{len(sentence.text)}").partition("-")
            return place + int(first), place + int(last)
        place += len(sentence.text)
    return None


def _planned_comparisons(section: Any, estimand: str, has_score: bool) -> list[Comparison]:
    contrasts = read_contrasts(section)
    comparisons = [
        comparison_from_contrast(contrast, section, contrast.criterion)
        for contrast in system_contrasts_for_section(contrasts, section, estimand, SCORE if has_score else PENALTY)
    ]
    return list(each_once(comparisons))


def _comparisons(judged_outputs: JudgedOutputs, estimand: str) -> tuple[Comparison, ...]:
    """Return the planned comparisons on this estimand, then all other pairs of systems under evaluation."""
    planned = _planned_comparisons(judged_outputs.section, estimand, judged_outputs.has_score)
    pairs = pairs_under_evaluation(judged_outputs.outputs["system"], judged_outputs.references)
    return each_once([*planned, *other_comparisons(judged_outputs.section, planned, pairs)])


def _difference_estimate(
    judged_outputs: JudgedOutputs, estimand: str, comparison: Comparison, level: float
) -> "Estimate":
    estimate = score_difference(
        wide_outputs(judged_outputs, estimand),
        comparison,
        level=level,
        analysis=f"marks.{estimand}",
        estimand=ESTIMAND_TEXTS[estimand],
        # Fewer errors are better: above 0, x is better.
        sign=-1.0 if estimand == PENALTY else 1.0,
    )
    return comparison.tag_estimate(estimate, estimand, null=0.0)


PHRASES = {
    SCORE: ConclusionPhrases(
        above_claim="{x} was scored higher than {y}{about}.",
        below_claim="{x} was scored lower than {y}{about}.",
        same="{x} and {y} were scored alike{about}",
        open="It remains open whether {x} or {y} is scored higher{about}.",
        before="The mean score of {x} less that of {y} is",
        symbol="score({x}) − score({y})",
    ),
    PENALTY: ConclusionPhrases(
        above_claim="{x} has fewer or milder errors than {y}{about}.",
        below_claim="{x} has more or graver errors than {y}{about}.",
        same="{x} and {y} have equally many and grave errors{about}",
        open="It remains open whether {x} or {y} has fewer or milder errors{about}.",
        before="The mean advantage of {x} over {y} in penalties is",
        symbol="penalty({y}) − penalty({x})",
    ),
}


def _section_blocks(judged_outputs: JudgedOutputs, context: AnalysisContext) -> list[Block]:
    rows, _ = kept_and_paper_rows(judged_outputs.outputs)
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
            estimates=tuple(systems),
            tables=[systems_table(systems, judged_outputs)],
            figures=[evaluated_systems_penalties_figure(systems, judged_outputs)],
            note="Means over judged outputs. The penalty sums the weights of the marks.",
            systems=SystemOrder(
                measure="mean penalty",
                estimates=[
                    one
                    for one in systems
                    if one.settings["measure"] == "penalty"
                    and one.settings["system"] not in judged_outputs.references.names
                ],
                about=judged_outputs.title,
                sets=sets_of_ranks(evaluated.assign(advantage=-evaluated["penalty"]), "advantage", **options),
                is_lower_better=True,
            ),
        ),
        Block(
            "marks.kinds",
            f"Errors by category and severity{in_parentheses(judged_outputs.title)}",
            estimates=tuple(kinds),
            tables=[error_rates_by_kind_table(kinds, judged_outputs)],
            note="Errors per judged output.",
        ),
        Block(
            "marks.checks",
            f"Do annotators mark the same?{in_parentheses(judged_outputs.title)}",
            estimates=checks,
            tables=[mark_agreement_and_score_checks_table(checks, judged_outputs)],
            note="Sentences of outputs that several annotators read; marks of no sentence are left out.",
        ),
        Block(
            "marks.standard",
            f"As campaigns print it{in_parentheses(judged_outputs.title)}",
            "paper",
            estimates=paper,
            tables=[campaign_style_table(paper, judged_outputs)],
            note="Outputs taken as independent, after all primary rules; no interval is given, because outputs of one annotator are not.",
        ),
    ]


def _system_means(judged_outputs: JudgedOutputs, rows: "DataFrame", options: dict[str, Any]) -> list["Estimate"]:
    """Return score, penalty and the share of outputs without an error, of each system."""
    rows = rows.assign(clean=(rows["errors"] == 0).astype(float))
    measures = [
        ("score", "mean score", judged_outputs.score_range),
        ("penalty", "mean penalty of an output", None),
        ("clean", "share of outputs without an error", (0.0, 1.0)),
    ]
    means = [
        _means(rows, measure, options, f"marks.system.{measure}", estimand, bounds, measure=measure)
        for measure, estimand, bounds in (measures if judged_outputs.has_score else measures[1:])
    ]
    return [estimate for of_system in zip(*means, strict=True) for estimate in of_system]


def _error_rates(judged_outputs: JudgedOutputs, rows: "DataFrame", options: dict[str, Any]) -> list["Estimate"]:
    measures = [(f"is:{category.key}", category.label, "category") for category in judged_outputs.codebook.categories]
    measures += [(f"at:{severity.key}", severity.label, "severity") for severity in judged_outputs.codebook.severities]
    return [
        estimate
        for column, label, sort in measures
        for estimate in _means(
            rows, column, options, f"marks.{sort}", f"errors per output: {label}", None, measure=label, sort=sort
        )
    ]


def _means(rows, column, options, analysis, estimand, bounds, **settings) -> list["Estimate"]:
    from analysis.stats import clusters

    mean = partial(clusters.mean_of_population, **options, bounds=bounds, analysis=analysis, estimand=estimand)
    return means_by_system(rows, column, mean, **settings)


def _campaign_estimates(judged_outputs: JudgedOutputs) -> tuple["Estimate", ...]:
    """Return penalty per output and per 100 words, and the mean score, as in published tables."""
    from analysis.stats.results import Estimate

    _, rows = kept_and_paper_rows(judged_outputs.outputs)
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
