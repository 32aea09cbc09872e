"""Tables of results for other tools: scores of outputs, preference data, error marks, and the answers behind the headline.

They hold the answers that the report counts: of submitted work that no outcome-blind rule excludes, without people who withdrew.
They need pandas, so jobs and commands write them. Annotators have pseudonyms of their own in each family of files.
"""

from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

from analysis.data.exports import TABLE_FORMATS, TABLES, ExportDigest, Table, compact_json
from analysis.data.flat_rows import Column, Selection, stimulus_text
from analysis.data.frames import with_plain_texts
from analysis.protocols import REGISTRY, ProtocolAnalysis, StartedAnalysis
from analysis.report.archive import file_name, zip_blocks
from analysis.report.build import analysis_contexts, default_origins, validate_parameters
from analysis.report.report_data import ReportData, read_report_data
from annotators.counting import Use, counted_origins, select
from annotators.models import Assignment
from annotators.models.identity import keyed_hash
from studies.models import Exposure, Output, Prompt, Question, Section, Study
from studies.protocols.base.fields import TEXT_KINDS

if TYPE_CHECKING:
    from pandas import DataFrame

OutputKey = tuple[str, str, int]  # system, prompt and sample
OUTPUT = ["system", "prompt", "sample"]


def result_origins(study: Study) -> list[str]:
    """Return whose answers the tables hold: those of the report, or robots' if only robots answered."""
    origins = counted_origins(study)
    return origins if origins == [Assignment.Origin.ROBOT] else default_origins(study)


def pseudonym(family: str, study: Study, annotator: Any) -> str:
    """Return the pseudonym of an annotator in one family of files. It says nothing about the person's other pseudonyms."""
    return keyed_hash(family, str(study.code), str(annotator))[:16]


def _live_sections(study: Study) -> list[tuple[Section, ProtocolAnalysis]]:
    sections = study.sections.filter(purpose=Section.Purpose.LIVE, protocol__in=list(REGISTRY)).order_by("position")
    return [(section, REGISTRY[section.protocol]) for section in sections.prefetch_related("questions")]


def output_texts(study: Study) -> dict[OutputKey, str]:
    rows = Output.objects.filter(system__study=study, media="")
    columns = rows.values_list("system__name", "prompt__key", "sample", "text")
    return {(system, prompt, sample): text for system, prompt, sample, text in columns}


def prompt_texts(study: Study) -> dict[str, str]:
    """Return the text of each prompt. Its source document follows after an empty line."""
    rows = Prompt.objects.filter(study=study).values_list("key", "text", "source")
    return {key: "\n\n".join(filter(None, (text, source))) for key, text, source in rows}


def _people(study: Study) -> dict[int, Any]:
    return dict(Assignment.objects.filter(study=study).values_list("pk", "annotator__code"))


def _counted_answers(data: ReportData) -> "DataFrame":
    rows = data.live_answers()
    return with_plain_texts(rows[rows["is_kept"].astype(bool)])


# Scores of outputs


def score_names(study: Study) -> dict[int, str]:
    """Return the name of the score of each question that can give one: its criterion, or its key."""
    names: dict[int, str] = {}
    for section, analysis in _live_sections(study):
        for question in section.questions.all():
            if (question.scale or {}).get("kind") in TEXT_KINDS or not _gives_scores(analysis, question):
                continue
            name = question.criterion or question.key
            names[question.pk] = f"{name}_{section.position}" if name in names.values() else name
    return names


def _gives_scores(analysis: ProtocolAnalysis, question: Question) -> bool:
    """Return whether answers to a question are about single outputs."""
    if type(analysis).judged_outputs is not ProtocolAnalysis.judged_outputs:
        return True
    scorer = analysis.scorer
    return scorer is not None and scorer.is_about_outputs and scorer.is_scored(question)


def _judged_outputs(
    study: Study, answers: "DataFrame"
) -> "Iterator[tuple[Section, ProtocolAnalysis, Question, DataFrame]]":
    """Yield the judged outputs of each question, as ``ProtocolAnalysis.judged_outputs`` returns them."""
    for section, analysis in _live_sections(study):
        shown: dict[str, list[tuple[str, int]]] = {}
        items = Exposure.objects.filter(item__section=section.reuses_id or section.pk).order_by("item", "number")
        for position, number, system, sample in items.values_list(
            "item__section__position", "item__number", "output__system__name", "output__sample"
        ):
            shown.setdefault(f"s{position}.{number}", []).append((system, sample))
        own = answers[answers["section"] == section.position]
        if own.empty:
            continue
        outputs = {item: tuple(found) for item, found in shown.items()}
        for question in section.questions.all():
            judged = analysis.judged_outputs(section, question, own, outputs)
            if judged is not None and len(judged):
                yield section, analysis, question, judged.assign(sample=judged["sample"].astype(int))


def score_columns(study: Study) -> tuple[Column, ...]:
    columns = [
        Column("prompt", "text", "The key of the prompt."),
        Column("system", "text", "The system whose output was judged."),
        Column("sample", "integer", "Number of the output among the system's outputs for the prompt, from 0."),
    ]
    for name in score_names(study).values():
        meaning = f"Mean score on {name}, from 0 to 1, higher is better. Of a choice between two outputs: the share of wins, ties half."
        columns += [
            Column(f"{name}_mean", "number", meaning),
            Column(f"{name}_n", "integer", f"Number of answers about {name}. 0 if there is none."),
        ]
    return tuple(columns)


def judged_by_score(selection: Selection) -> "Iterator[tuple[str, DataFrame]]":
    """Yield the name of each score with its judged outputs."""
    names = score_names(selection.study)
    answers = _counted_answers(read_report_data(selection.study, list(selection.origins)))
    for _, _, question, judged in _judged_outputs(selection.study, answers):
        if question.pk in names:
            yield names[question.pk], judged[judged["value"].notna()]


def read_scores(selection: Selection) -> "DataFrame":
    """Return a row for each judged output and question: the name of the score, its mean, standard deviation and n."""
    import pandas as pd

    parts = [
        rows.groupby([*OUTPUT, "protocol"])["value"].agg(["mean", "std", "size"]).reset_index().assign(name=name)
        for name, rows in judged_by_score(selection)
    ]
    columns = [*OUTPUT, "mean", "std", "size", "name", "protocol"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def score_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    names = list(score_names(selection.study).values())
    found: dict[tuple[str, str, int], dict[str, tuple[float, int]]] = {}
    scores = read_scores(selection)
    for prompt, system, sample, name, mean, n in zip(
        *(scores[column].tolist() for column in ("prompt", "system", "sample", "name", "mean", "size")), strict=True
    ):
        found.setdefault((prompt, system, sample), {})[name] = (round(mean, 12), n)
    for key in sorted(found):
        yield (*key, *(cell for name in names for cell in found[key].get(name, (None, 0))))


def table_json_blocks(table: str, selection: Selection, *, tally: ExportDigest) -> Iterator[bytes]:
    """Yield a table as one JSON object with ``columns`` and ``data``, as W&B and MLflow keep tables."""
    names = [column.name for column in TABLES[table].columns_of(selection.study)]
    data = [list(row) for row in TABLES[table].rows(selection)]
    tally.rows += len(data)
    yield tally.count_and_hash(compact_json({"columns": names, "data": data}).encode())


def inspect_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    scores = read_scores(selection)
    several = set(scores.loc[scores["sample"] > 0, "system"])
    for key, own in scores.groupby(OUTPUT, sort=True):
        system, prompt, sample = cast("OutputKey", key)
        values = {name: round(mean, 12) for name, mean in zip(own["name"], own["mean"].tolist(), strict=True)}
        counts = dict(zip(own["name"], own["size"].tolist(), strict=True))
        value = next(iter(values.values())) if len(scores["name"].unique()) == 1 else values
        epoch = sample + 1 if system in several else None
        yield (
            system,
            prompt,
            epoch,
            value,
            "Mean of the answers of people, from 0 to 1.",
            {"n": counts, "rater": "human"},
        )


INSPECT_COLUMNS = (
    Column("system", "text", "The system. The zip has a file for each system, because a log is about one model."),
    Column("id", "text", "The id of the sample: the key of the prompt."),
    Column(
        "epoch",
        "integer",
        "The epoch: the number of the output, from 1. Empty if the system has one output for each prompt.",
    ),
    Column("value", "object", "The mean score, from 0 to 1. With several criteria: an object with the mean on each."),
    Column("explanation", "text", "What the value is."),
    Column("metadata", "object", "The number of answers for each criterion."),
)


def inspect_blocks(table: str, selection: Selection, *, tally: ExportDigest) -> Iterator[bytes]:
    """Yield a zip with a file for each system, which Inspect's scorer ``precomputed_scores`` reads."""
    names = [column.name for column in INSPECT_COLUMNS]
    files: dict[str, list[bytes]] = {}
    for row in inspect_rows(selection):
        record = {name: cell for name, cell in zip(names, row, strict=True) if cell is not None}
        files.setdefault(row[0], []).append((compact_json(record) + "\n").encode())
        tally.rows += 1
    yield from zip_blocks(
        (f"{number:02}-{file_name(system)}.jsonl", iter(lines))
        for number, (system, lines) in enumerate(files.items(), 1)
    )


# Records of every-eval-ever, at the level of instances


EVERY_EVAL_EVER = "0.3.0"
EVERY_EVAL_EVER_COLUMNS = (
    Column("schema_version", "text", "The version of the schema of every-eval-ever."),
    Column("evaluation_id", "text", "The study and the system."),
    Column("model_id", "text", "The system."),
    Column("evaluation_name", "text", "The title of the study for annotators, and the criterion."),
    Column("sample_id", "text", "The key of the prompt, and the number of the output if the system has several."),
    Column("sample_hash", "text", "SHA-256 of the prompt."),
    Column("interaction_type", "text", "Always single_turn."),
    Column("input", "object", "The prompt. There are no reference answers."),
    Column("output", "object", "The output."),
    Column("answer_attribution", "object", "Says that people judged the whole output."),
    Column("evaluation", "object", "The mean score, from 0 to 1. is_correct: whether it is above 0.5, because the schema requires it."),
    Column("metadata", "object", "The proposed extension for human raters: number of answers, spread, criterion and protocol."),
)  # fmt: skip


def every_eval_ever_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    study = selection.study
    prompts, texts = prompt_texts(study), output_texts(study)
    scores = read_scores(selection).sort_values([*OUTPUT, "name"])
    columns = ("system", "prompt", "sample", "name", "protocol", "mean", "std", "size")
    for system, prompt, sample, name, protocol, mean, spread, n in zip(
        *(scores[column].tolist() for column in columns), strict=True
    ):
        extension = {
            "human_raters.n": str(n),
            "human_raters.sd": "" if spread != spread else f"{spread:.6g}",
            "human_raters.criterion": name,
            "human_raters.protocol": protocol,
            "human_raters.scale": "0 to 1, higher is better",
            "human_raters.is_correct": "score above 0.5; people were asked for no right answer",
        }
        asked = prompts[prompt]
        yield (
            EVERY_EVAL_EVER,
            f"heval/{study.code}/{system}",
            system,
            f"{study.public_title or study.title}: {name}",
            f"{prompt}-{sample}" if sample else prompt,
            sha256(asked.encode()).hexdigest(),
            "single_turn",
            {"raw": stimulus_text(study, asked), "reference": []},
            {"raw": [stimulus_text(study, texts.get((system, prompt, sample), ""))]},
            [{"turn_idx": 0, "source": "output.raw", "extracted_value": "", "extraction_method": "human_raters", "is_terminal": True}],
            {"score": round(mean, 12), "is_correct": mean > 0.5},
            extension,
        )  # fmt: skip


# Preference data: only of people who agreed to it


def _preference_columns(first: str, second: str, *own: Column) -> tuple[Column, ...]:
    return (
        Column("prompt", "text", "The prompt, and after an empty line its source document, if it has one."),
        Column(first, "text", f"The {first} output."),
        Column(second, "text", f"The {second} output."),
        Column("criterion", "text", "The criterion of the question, or the question's key."),
        Column("protocol", "text", "The protocol of the section. Ratings and rankings: two scores of one person for outputs of one prompt."),
        *own,
        Column("prompt_key", "text", "The key of the prompt."),
        Column(f"{first}_system", "text", f"The system of the {first} output."),
        Column(f"{second}_system", "text", f"The system of the {second} output."),
        Column("n", "integer", "Number of people who judged these two outputs on this criterion and agreed to share it."),
        Column("ties", "integer", "How many of them preferred neither."),
        Column("annotator", "text", "Pseudonym of the annotator, in preference data only."),
    )  # fmt: skip


PREFERENCE_COLUMNS = _preference_columns(
    "chosen",
    "rejected",
    Column(
        "strength", "number", "Difference of the two scores, from 0 to 1. Always 1 for a choice between two outputs."
    ),
    Column("agreement", "number", "Share of these people who chose the same, ties half. From 0 to 1."),
)
TIE_COLUMNS = _preference_columns("first", "second")


def find_preference_problem(study: Study) -> str:
    if not study.asks_to_share_preferences:
        return "Annotators were not asked whether their preferences may be given away. Ask them in your next study: it is a setting beside the consent."
    for section, analysis in _live_sections(study):
        if analysis.gives_preferences and any(_gives_scores(analysis, one) for one in section.questions.all()):
            return ""
    return "No section says which of two outputs a person prefers. Use a study with choices, ratings, rankings, relative points or error marks."


def _read_preferences(selection: Selection, *, are_ties: bool) -> Iterator[tuple[Any, ...]]:
    """Yield the preferences, or the ties, in an order that says nothing about who came first."""
    study = selection.study
    answers = _counted_answers(read_report_data(study, list(selection.origins)))
    people, texts, prompts = _people(study), output_texts(study), prompt_texts(study)
    sharing = select(Use.RESULTS, Assignment.objects.filter(study=study, shares_preferences=True))
    shared = answers[answers["assignment"].isin(list(sharing.values_list("pk", flat=True)))]
    found: dict[tuple, list[tuple[str, float]]] = {}
    for section, analysis, question, judged in _judged_outputs(study, shared):
        if not analysis.gives_preferences:
            continue
        about = (question.criterion or question.key, section.protocol, section.position)
        columns = ("assignment", "unit", "prompt", "system", "sample", "value")
        units: dict[tuple, dict[tuple[str, int], float]] = {}
        for assignment, unit, prompt, system, sample, value in zip(
            *(judged[column].tolist() for column in columns), strict=True
        ):
            units.setdefault((assignment, unit, prompt), {})[system, sample] = value
        for (assignment, _, prompt), values in units.items():
            for first, second in combinations(sorted(values), 2):
                difference = values[first] - values[second]
                is_known = (first[0], prompt, first[1]) in texts and (second[0], prompt, second[1]) in texts
                if is_known and (difference or analysis.has_equal_preferences):
                    name = pseudonym("preferences", study, people[assignment])
                    found.setdefault((prompt, *about, first, second), []).append((name, round(difference, 12)))
    for (prompt, criterion, protocol, _, first, second), votes in sorted(found.items()):
        ties = sum(not difference for _, difference in votes)
        for name, difference in sorted(votes):
            if bool(difference) is are_ties:
                continue
            pair = (second, first) if difference < 0 else (first, second)
            same = sum(vote * difference > 0 for _, vote in votes)
            own = () if are_ties else (abs(difference), (same + ties / 2) / len(votes))
            yield (
                stimulus_text(study, prompts[prompt]),
                *(stimulus_text(study, texts[system, prompt, sample]) for system, sample in pair),
                criterion,
                protocol,
                *own,
                prompt,
                *(system for system, _ in pair),
                len(votes),
                ties,
                name,
            )


# Error marks, in the columns of WMT's MQM tables


MQM_COLUMNS = (
    Column("system", "text", "The system."),
    Column("doc", "text", "The group of the prompt, or its key if it is alone."),
    Column("doc_id", "text", "The number of the output among the system's outputs for the prompt, from 1."),
    Column("seg_id", "text", "The key of the prompt."),
    Column("rater", "text", "Pseudonym of the annotator, in tables of marks only."),
    Column("source", "text", "The source document of the prompt, or its text. Line breaks and tabs are blanks."),
    Column("target", "text", "The output, with <v> and </v> around the marked words."),
    Column("category", "text", "The category of the error, or No-error."),
    Column("severity", "text", "The severity of the error, or No-error."),
    Column("comment", "text", "The place in the output, as characters from 0, if there is one."),
)


def find_mark_problem(study: Study) -> str:
    marks = [one for _, one in _live_sections(study) if type(one).error_marks is not ProtocolAnalysis.error_marks]
    return "" if marks else "No live section asks for error marks. Choose another table."


def mqm_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    study = selection.study
    answers = _counted_answers(read_report_data(study, list(selection.origins)))
    people, texts = _people(study), output_texts(study)
    prompts = {one.key: one for one in Prompt.objects.filter(study=study)}
    for section, analysis in _live_sections(study):
        marks = analysis.error_marks(section, answers[answers["section"] == section.position], texts)
        if marks is None:
            continue
        columns = ("system", "prompt", "sample", "assignment", "category", "severity", "start", "end")
        for system, prompt, sample, assignment, category, severity, start, end in sorted(
            zip(*(marks[column].tolist() for column in columns), strict=True), key=lambda row: list(map(str, row))
        ):
            text = texts.get((system, prompt, int(sample)), "")
            has_place = bool(severity) and start is not None and start == start
            target = stimulus_text(study, text)
            if has_place and not study.stimuli_source:
                first, last = int(start), int(end)
                target = f"{text[:first]}<v>{text[first:last]}</v>{text[last:]}"
            asked = prompts[prompt]
            yield (
                system,
                asked.group or prompt,
                str(int(sample) + 1),
                prompt,
                pseudonym("mqm", study, people[assignment]),
                stimulus_text(study, asked.source or asked.text),
                target,
                category or "No-error",
                severity or "No-error",
                f"{int(start)}-{int(end)}" if has_place else "",
            )


def tsv_blocks(table: str, selection: Selection, *, tally: ExportDigest) -> Iterator[bytes]:
    """Yield a table as TSV without quotes, as WMT's tables are. Line breaks and tabs in texts are blanks."""

    def line(cells: Any) -> bytes:
        return ("\t".join(" ".join(str(cell).split()) if cell else "" for cell in cells) + "\n").encode()

    yield tally.count_and_hash(line(column.name for column in TABLES[table].columns_of(selection.study)))
    yield from tally.digest_lines(map(line, TABLES[table].rows(selection)))


# The answers behind the headline


HEADLINE_COLUMNS = (
    Column("comparison", "text", "The comparison, as the report names it."),
    Column("estimate", "text", "Which estimate of the report is the mean of the values, weighted by weight."),
    Column("x", "text", "The first system of the comparison."),
    Column("y", "text", "The second system, or what the first one is compared with."),
    Column("is_planned", "boolean", "The design declares the comparison."),
    Column("annotator", "text", "Pseudonym of the annotator, in this table only."),
    Column("value", "number", "The answer on the scale of the estimate. Above the middle: x is better."),
    Column("weight", "number", "The weight of the value."),
)


def headline_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    """Yield the answers behind the estimates that are means of answers. Other estimates, such as those of models, have no rows."""
    import numpy as np

    study = selection.study
    parameters = validate_parameters({"origins": list(selection.origins), "resamples": 99}, study)
    data = read_report_data(study, parameters["origins"])
    for context in analysis_contexts(data, parameters, "0", []):
        analysis = REGISTRY[context.protocol]
        block = next(iter(analysis.headline_blocks.values()), "")
        compared = StartedAnalysis(analysis, context).compared.get(block, []) if block else []
        estimates = {comparison.key: estimate for comparison, estimate in compared}
        for answers in analysis.headline_answers(context):
            estimate = estimates.get(answers.comparison.key)
            if estimate is None or estimate.estimate is None or not len(answers.values):
                continue
            _, numbers, sizes = np.unique(answers.annotators.codes, return_inverse=True, return_counts=True)
            weights = 1 / sizes[numbers] if analysis.weighs_people_equally else np.ones(len(numbers))
            if not np.isclose(np.average(answers.values, weights=weights), estimate.estimate, rtol=0, atol=1e-9):
                continue
            rows = zip(answers.annotators.tolist(), answers.values.tolist(), weights.tolist(), strict=True)
            own = (answers.comparison.key, estimate.estimand, answers.comparison.x, answers.comparison.y)
            yield from sorted(
                (*own, answers.comparison.is_planned, pseudonym("headline", study, annotator), value, weight)
                for annotator, value, weight in rows
            )


def find_headline_problem(study: Study) -> str:
    blocks = [block for _, analysis in _live_sections(study) for block in analysis.headline_blocks.values()]
    return "" if any(blocks) else "No live section has a headline that is a mean of answers. Choose another table."


def find_score_problem(study: Study) -> str:
    return (
        ""
        if score_names(study)
        else "No live section asks about single outputs or pairs of them. Choose another table."
    )


def register_result_tables() -> None:
    """Add these tables to the exports."""
    scored: dict[str, Any] = {"has_outcomes": True, "origins": result_origins, "find_problem": find_score_problem}
    shared = scored | {"find_problem": find_preference_problem}
    marked = scored | {"find_problem": find_mark_problem}
    headline = scored | {"find_problem": find_headline_problem}
    TABLES.update(
        {
            "headline": Table(
                HEADLINE_COLUMNS,
                headline_rows,
                "One row per answer behind the headline of a comparison. Sorted by comparison and annotator.",
                **headline,
            ),
            "scores": Table(
                score_columns,
                score_rows,
                "One row per judged output. Sorted by prompt, system and sample.",
                formats=(*TABLE_FORMATS, "table.json"),
                makers={"table.json": table_json_blocks},
                **scored,
            ),
            "inspect": Table(
                INSPECT_COLUMNS,
                inspect_rows,
                "One record per judged output, for Inspect's scorer precomputed_scores. Sorted by system, prompt and sample.",
                formats=("zip",),
                makers={"zip": inspect_blocks},
                **scored,
            ),
            "every_eval_ever": Table(
                EVERY_EVAL_EVER_COLUMNS,
                every_eval_ever_rows,
                "One record per judged output and criterion. Sorted by system, prompt and sample.",
                formats=("jsonl",),
                **scored,
            ),
            "preferences": Table(
                PREFERENCE_COLUMNS,
                partial(_read_preferences, are_ties=False),
                "One row per preference of a person who agreed to share it. Sorted by prompt and criterion.",
                **shared,
            ),
            "preference_ties": Table(
                TIE_COLUMNS,
                partial(_read_preferences, are_ties=True),
                "One row per judgement that prefers neither output, of a person who agreed to share it. Sorted like preferences.",
                **shared,
            ),
            "mqm": Table(
                MQM_COLUMNS,
                mqm_rows,
                "One row per marked error, and per output without one. Sorted by section and system.",
                formats=("tsv",),
                makers={"tsv": tsv_blocks},
                **marked,
            ),
        }
    )
