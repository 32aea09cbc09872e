"""One file with the labels of all closed rounds of a board, for people who develop metrics."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db.models import Max
from django.urls import reverse

from analysis.data.exports import (
    NOT_INSTALLED,
    export_file_path,
    is_pyarrow_installed,
    new_export_file,
    write_rows,
)
from analysis.data.flat_rows import Column, Selection, stimulus_text
from analysis.data.snapshot import database_snapshot
from analysis.metrics.result_tables import judged_by_score, output_texts, prompt_texts, pseudonym, result_origins
from analysis.metrics.scoring import board_kind, is_about_outputs
from annotators.counting import Use, is_simulated, select
from annotators.models import Assignment
from annotators.models.identity import keyed_hash
from boards.access import BoardAction, check_permission_or_404
from boards.models import Board, BoardRound, RoundEntry
from studies.design.wording import wording_of
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from .snapshots import closed_rounds, public_facts

KIND = "board_labels"
FORMATS = ("csv", "jsonl", "parquet")
COLUMNS = (
    Column("round", "integer", "The number of the round."),
    Column("closed", "text", "The day on which the round was closed, in UTC."),
    Column("is_simulated", "boolean", "Robots gave the answers of the round."),
    Column("submission", "integer", "The number of the submission on the board."),
    Column("system", "text", "The name that everybody may see. An anonymous submission has its number instead."),
    Column("is_human", "boolean", "The outputs were written by people."),
    Column("prompt", "text", "The key of the prompt."),
    Column("prompt_text", "text", "The prompt, and after an empty line its source document, if it has one."),
    Column("output", "text", "The judged text. Empty for images, and for anonymous submissions."),
    Column("criterion", "text", "The criterion of the question, or the question's key."),
    Column(
        "is_expert", "boolean", "The annotator came by a link for experts. Scores of the board leave these labels out."
    ),
    Column("annotator", "text", "Pseudonym of the annotator in files of labels: of all rounds, or of one round."),
    Column(
        "unit",
        "text",
        "What a person saw together: rows of one annotator, round and unit compare outputs with each other. Of single outputs: the prompt.",
    ),
    Column("value", "number", "The label, from 0 to 1, higher is better. Of a choice between two outputs: 1, .5 or 0."),
)


def request_labels(board: Board, by, file_format: str, request_token: str | None = None) -> Job:
    """Submit the job that writes the file. Raise ActionRefused if there is no such file."""
    check_permission_or_404(by, BoardAction.RUN, board)
    if file_format not in FORMATS:
        raise ActionRefused(f"{file_format[:20]!r} is not a format of labels. Use {', '.join(FORMATS)}.")
    if file_format == "parquet" and not is_pyarrow_installed():
        raise ActionRefused(NOT_INSTALLED)
    if not is_about_outputs(board.template):
        raise ActionRefused(
            "Annotators state chances about whole systems, so there is no label of an output. Export the answers of each round's study."
        )
    if not closed_rounds(board).exists():
        raise ActionRefused("No round is closed yet. Wait until the first round has closed.")
    return jobs.submit(KIND, by=by, request_token=request_token, board=board.pk, format=file_format)


def write_labels_file(job: Job) -> dict[str, Any]:
    board = Board.objects.select_related("template").get(pk=job.arguments["board"])
    check_permission_or_404(job.by, BoardAction.RUN, board)
    file_format = job.arguments["format"]
    with new_export_file(job, file_format) as temporary, database_snapshot():
        rows = write_rows(file_format, COLUMNS, label_rows(board), temporary)
    url = reverse("api-board-labels-file", args=[board.slug, job.code])
    return {"rows": rows, "format": file_format, "url": url}


def label_rows(board: Board) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of each label in the order of ``COLUMNS``, sorted by round, submission, prompt, criterion and pseudonym.

    The labels are those of the exports of results: about live items, of submitted work that no outcome-blind rule leaves out, without
    people who withdrew. Submissions that their teams withdrew are left out.
    """
    facts = public_facts(board)
    for one in closed_rounds(board):
        yield from _rows_of_round(board, one, facts)


def _rows_of_round(board: Board, one: BoardRound, facts: dict[int, dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    study = one.study
    entries = RoundEntry.objects.filter(round=one, submission__withdrawn_at=None)
    numbers = dict(entries.values_list("system__name", "submission__number"))
    names, prompts, outputs = _pseudonyms(board, study), prompt_texts(study), output_texts(study)
    links = Assignment.objects.filter(study=study, recruitment__is_for_experts=True)
    experts = set(links.values_list("pk", flat=True))
    closed, robots = study.closed_at and study.closed_at.date().isoformat(), is_simulated(study)
    rows = []
    for criterion, judged in judged_by_score(Selection(study, tuple(result_origins(study)))):
        judged = judged.assign(number=judged["system"].map(numbers))
        is_shown = judged["number"].notna()
        if board_kind(board.template) == "preferences":
            # A pair with a withdrawn system says nothing about the other one.
            is_shown = is_shown.groupby([judged["assignment"], judged["unit"]]).transform("all")
        columns = ("number", "system", "prompt", "sample", "assignment", "unit", "value")
        for number, system, prompt, sample, assignment, unit, value in zip(
            *(judged.loc[is_shown, column].tolist() for column in columns), strict=True
        ):
            rows.append(
                (int(number), prompt, criterion, assignment in experts, names[assignment], unit, value, system, sample)
            )
    for number, prompt, criterion, is_expert, name, unit, value, system, sample in sorted(rows):
        shown = facts[number]
        text = outputs.get((system, prompt, sample), "") if shown["is_named"] else ""
        yield (
            one.number,
            closed,
            robots,
            number,
            shown["name"],
            shown["is_human"],
            prompt,
            stimulus_text(study, prompts[prompt]),
            stimulus_text(study, text),
            criterion,
            is_expert,
            name,
            str(unit),
            round(value, 12),
        )


def _pseudonyms(board: Board, study: Study) -> dict[int, str]:
    """Return a pseudonym for each assignment: the board's if all consents of the person in this round say so, or one of the round."""
    work = select(Use.RESULTS, Assignment.objects.filter(study=study), result_origins(study))
    rows = list(work.values_list("pk", "annotator__code", "design", "consented_at"))
    joins = {design: design and wording_of(study, design).study["joins_rounds"] for _, _, design, _ in rows}
    apart = {code for _, code, design, consented_at in rows if not (joins[design] and consented_at)}
    return {
        pk: pseudonym("labels", study, code)
        if code in apart
        else keyed_hash("labels of board", board.slug, str(code))[:16]
        for pk, code, _, _ in rows
    }


def find_labels_file(board: Board, code: UUID | None = None) -> tuple[Job, Path] | None:
    """Return the job of this code, or the newest, with its file, if it may still be given out.

    A file that has labels of somebody who withdrew since, or the name of a submission that was withdrawn, is given to nobody.
    """
    found = Job.objects.filter(kind=KIND, arguments__board=board.pk, state=Job.State.DONE)
    job = (found.filter(code=code) if code else found).order_by("-pk").first()
    path = export_file_path(job) if job else None
    if job is None or path is None:
        return None
    people = select(Use.WITHDRAWN, Assignment.objects.filter(study__board_round__board=board))
    for withdrawn in (people, board.submissions):
        at = withdrawn.aggregate(at=Max("withdrawn_at"))["at"]
        if at is not None and at >= job.created_at:
            return None
    return job, path


def file_name(board: Board, job: Job) -> str:
    return f"{board.slug}-labels.{job.arguments['format']}"
