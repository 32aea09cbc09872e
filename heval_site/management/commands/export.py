"""``heval export``: write a study's data to a file, for operators with access to the server's shell."""

import sys
from contextlib import contextmanager
from pathlib import Path

from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError

from analysis.data.blinding import are_outcomes_hidden
from analysis.data.export_codebook import build_export_codebook_markdown
from analysis.data.exports import (
    BLOCK_MAKERS,
    TABLES,
    ExportDigest,
    refuse_impossible_export,
    write_export_file,
)
from analysis.data.flat_rows import COUNTED_ORIGINS, Selection, find_damaged_cells
from analysis.data.frames import ORIGINS, validate_origins
from analysis.data.snapshot import database_snapshot
from analysis.metrics.dataset import SCRIPTS, script
from analysis.report.archive import archive_blocks
from analysis.report.pdf import check_report_visible, render_pdf
from heval_site.management.find_study import find_study
from studies.services.lifecycle import ActionRefused, FieldsRefused

WITHOUT_TABLE = ("archive", "codebook", "pdf", *SCRIPTS)


class Command(BaseCommand):
    help = "Write a study's answers, assignments, codebook, archive or report to a file."

    def add_arguments(self, parser):
        parser.add_argument("study", help="The study's code (a unique beginning is enough) or title.")
        formats = dict.fromkeys(form for table in TABLES.values() for form in table.formats)
        parser.add_argument("--format", choices=(*formats, *WITHOUT_TABLE), help="By default the first of the table.")
        parser.add_argument("--table", choices=sorted(TABLES), default="responses")
        parser.add_argument(
            "--analysis", type=int, help="With --format pdf: the number of the report (default: newest)."
        )
        parser.add_argument("--output", default="-", help="The output file, or - for standard output (the default).")
        parser.add_argument(
            "--origins",
            metavar="A,B",
            help=f"Answers to export, separated by commas: {', '.join(ORIGINS)}. By default those of people.",
        )
        parser.add_argument("--withdrawn", action="store_true", help="Include the rows of people who withdrew.")
        parser.add_argument("--raw", action="store_true", help="Write CSV without the apostrophe before formulas.")
        parser.add_argument(
            "--include-hidden-outcomes",
            action="store_true",
            help="Export outcomes that are hidden while the study collects. heval does not record this, and the site "
            "still hides them, but the study's tests are then not confirmatory.",
        )

    def handle(
        self, *, study, format, table, output, analysis, origins, withdrawn, raw, include_hidden_outcomes, **options
    ):
        study_row = find_study(study)
        declared = TABLES[table]
        format = format or declared.formats[0]
        if format == "pdf":
            _write_pdf(study_row, analysis, output, include_hidden_outcomes)
            return
        origins = _parse_origins(origins) if origins else tuple(declared.origins(study_row))
        shows_outcomes = format == "archive" or (format not in WITHOUT_TABLE and declared.has_outcomes)
        if (
            shows_outcomes
            and not include_hidden_outcomes
            and are_outcomes_hidden(study_row, COUNTED_ORIGINS if format == "archive" else origins)
        ):
            raise CommandError(
                "The study is still collecting, so answers by system are hidden. "
                "Use --include-hidden-outcomes to export them anyway."
            )
        selection = Selection(study_row, origins, withdrawn)
        if format not in WITHOUT_TABLE and (format == "parquet" or not declared.is_streamed):
            self._write_file(table, format, selection, output)
            return
        if format in TABLES[table].formats:
            _refuse_impossible(table, format, selection)
        tally = ExportDigest()
        with database_snapshot(), _open_output(output) as file:
            for block in _export_blocks(format, table, selection, raw, tally):
                file.write(block)
            n, _ = find_damaged_cells(selection) if table == "responses" and format not in WITHOUT_TABLE else (0, [])
        if n:
            self.stderr.write(f"{n} answers contain a value that is not a number; their cells are empty.")
        if format not in WITHOUT_TABLE:
            self.stderr.write(f"{tally.rows} rows, sha256 {tally.sha256}")

    def _write_file(self, table, format, selection, output):
        _refuse_impossible(table, format, selection)
        if output == "-":
            raise CommandError("This file cannot be printed. Name a file with --output.")
        with _atomic_output(Path(output)) as temporary:
            rows = write_export_file(table, format, selection, temporary)
        self.stderr.write(f"{rows} rows")


def _write_pdf(study, number, output, include_hidden_outcomes):
    runs = study.analyses.select_related("study", "by").order_by("-number")
    run = runs.filter(**{"number": number} if number is not None else {}).first()
    if run is None:
        raise CommandError("The study has no such analysis. Make one first: heval analyse STUDY")
    try:
        if not include_hidden_outcomes:
            check_report_visible(run)
        content = render_pdf(run)
    except (ActionRefused, PermissionDenied) as refused:
        raise CommandError(str(refused)) from None
    with _open_output(output) as file:
        file.write(content)


def _refuse_impossible(table, format, selection):
    try:
        refuse_impossible_export(selection.study, table, format, selection.withdrawn)
    except FieldsRefused as refused:
        raise CommandError(" ".join(refused.errors.values())) from None
    except ActionRefused as refused:
        raise CommandError(str(refused)) from None


def _parse_origins(text: str) -> tuple[str, ...]:
    try:
        return tuple(validate_origins(name.strip() for name in text.split(",")))
    except ValueError as error:
        raise CommandError(f"--{error}") from None


def _export_blocks(format, table, selection, raw, tally):
    if format == "archive":
        return archive_blocks(selection.study)
    if format == "codebook":
        return [build_export_codebook_markdown(selection.study).encode()]
    if format in SCRIPTS:
        return [script(format)]
    options = {"raw": raw} if format == "csv" else {}
    return BLOCK_MAKERS[format](table, selection, tally=tally, **options)


@contextmanager
def _open_output(output: str):
    if output == "-":
        yield sys.stdout.buffer
        return
    with _atomic_output(Path(output)) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def _atomic_output(path: Path):
    """Write to a temporary file, which gets the final name only when it is complete."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written ({error.strerror}). Name another file with --output.") from error
    finally:
        temporary.unlink(missing_ok=True)
