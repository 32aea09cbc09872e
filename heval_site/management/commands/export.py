"""``heval export``: write a study's data to a file, for operators with access to the server's shell."""

import sys
from contextlib import contextmanager
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from analysis.data.blinding import are_outcomes_hidden
from analysis.data.export_codebook import build_export_codebook_markdown
from analysis.data.exports import BLOCK_MAKERS, OUTCOME_TABLES, TABLES, ExportDigest, ParquetNotInstalled, write_parquet
from analysis.data.flat_rows import COUNTED_ORIGINS, Selection, find_damaged_cells
from analysis.data.frames import ORIGINS, validate_origins
from analysis.data.snapshot import database_snapshot
from analysis.report.archive import archive_blocks
from studies.services.study_lookup import find_study

FORMATS = ("csv", "jsonl", "parquet", "archive", "codebook")


class Command(BaseCommand):
    help = "Write a study's answers, assignments, codebook or archive to a file."

    def add_arguments(self, parser):
        parser.add_argument("study", help="The study's code (a unique beginning is enough) or title.")
        parser.add_argument("--format", choices=FORMATS, default="csv")
        parser.add_argument("--table", choices=sorted(TABLES), default="responses")
        parser.add_argument("--output", default="-", help="The output file, or - for standard output (the default).")
        parser.add_argument(
            "--origins",
            metavar="A,B",
            default=",".join(COUNTED_ORIGINS),
            help=f"Answers to export, separated by commas: {', '.join(ORIGINS)}.",
        )
        parser.add_argument("--withdrawn", action="store_true", help="Include the rows of people who withdrew.")
        parser.add_argument("--raw", action="store_true", help="Write CSV without the apostrophe before formulas.")
        parser.add_argument(
            "--include-hidden-outcomes",
            action="store_true",
            help="Export outcomes that are hidden while the study collects. heval does not record this, and the site "
            "still hides them, but the study's tests are then not confirmatory.",
        )

    def handle(self, *, study, format, table, output, origins, withdrawn, raw, include_hidden_outcomes, **options):
        study_row = find_study(study)
        origins = _parse_origins(origins)
        shows_outcomes = format == "archive" or (format != "codebook" and table in OUTCOME_TABLES)
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
        if format == "parquet":
            self._write_parquet(table, selection, output)
            return
        tally = ExportDigest()
        with database_snapshot(), _open_output(output) as file:
            for block in _export_blocks(format, table, selection, raw, tally):
                file.write(block)
            n, _ = find_damaged_cells(selection) if table == "responses" and format in BLOCK_MAKERS else (0, [])
        if n:
            self.stderr.write(f"{n} answers contain a value that is not a number; their cells are empty.")
        if format in BLOCK_MAKERS:
            self.stderr.write(f"{tally.rows} rows, sha256 {tally.sha256}")

    def _write_parquet(self, table, selection, output):
        if output == "-":
            raise CommandError("A Parquet file cannot be printed. Name a file with --output.")
        try:
            with database_snapshot(), _atomic_output(Path(output)) as temporary:
                rows = write_parquet(table, selection, temporary)
        except ParquetNotInstalled as error:
            raise CommandError(str(error)) from None
        self.stderr.write(f"{rows} rows")


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
