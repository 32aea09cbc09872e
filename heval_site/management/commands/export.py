"""heval export: the data of a study as a file, for those who stand at the server's shell."""

import sys
from contextlib import contextmanager
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from analysis.data.blinding import hides
from analysis.data.data_dictionary import codebook_markdown
from analysis.data.exports import BLOCKS, OUTCOMES, TABLES, Tally
from analysis.data.flat.answers import problems_in
from analysis.data.flat.selection import COUNTED, Selection
from analysis.data.parquet import NotInstalled, write_parquet
from analysis.data.snapshot import snapshot
from analysis.report.archive import archive_blocks
from annotators.models import Assignment
from studies.services.named import study_named

FORMATS = ("csv", "jsonl", "parquet", "archive", "codebook")


class Command(BaseCommand):
    help = "Writes a study's answers, assignments, codebook or archive into a file."

    def add_arguments(self, parser):
        parser.add_argument("study", help="The study's code (the beginning is enough where it is unique) or title.")
        parser.add_argument("--format", choices=FORMATS, default="csv")
        parser.add_argument("--table", choices=sorted(TABLES), default="responses")
        parser.add_argument("--output", default="-", help="A file, or - for standard output (the default).")
        parser.add_argument("--origin", default=",".join(COUNTED), help="Origins by commas.")
        parser.add_argument("--withdrawn", action="store_true", help="With the rows of people who withdrew.")
        parser.add_argument("--raw", action="store_true", help="CSV without the apostrophe before formulas.")
        parser.add_argument(
            "--unblind", action="store_true", help="Also while the study collects. Its tests are not confirmatory then."
        )

    def handle(self, *, study, format, table, output, origin, withdrawn, raw, unblind, **options):
        found = study_named(study)
        origins = _origins(origin)
        shows_outcomes = format == "archive" or (format != "codebook" and table in OUTCOMES)
        if shows_outcomes and not unblind and hides(found, COUNTED if format == "archive" else origins):
            raise CommandError(
                "The study still collects: answers by system are hidden. --unblind shows them all the same."
            )
        selection = Selection(found, origins, withdrawn)
        if format == "parquet":
            self._parquet(table, selection, output)
            return
        tally = Tally()
        with snapshot(), _opened(output) as file:
            for block in _blocks(format, table, selection, raw, tally):
                file.write(block)
            n, _ = problems_in(selection) if table == "responses" and format in BLOCKS else (0, [])
        if n:
            self.stderr.write(f"{n} answers hold a value that is no number; their cells are empty.")
        if format in BLOCKS:
            self.stderr.write(f"{tally.rows} rows, sha256 {tally.sha256}")

    def _parquet(self, table, selection, output):
        if output == "-":
            raise CommandError("A Parquet file needs --output.")
        try:
            with snapshot(), _put_in_place(Path(output)) as temporary:
                rows = write_parquet(table, selection, temporary)
        except NotInstalled as error:
            raise CommandError(str(error)) from None
        self.stderr.write(f"{rows} rows")


def _origins(text: str) -> tuple[str, ...]:
    given = set(text.split(","))
    if unknown := sorted(given - set(Assignment.Origin.values)):
        raise CommandError(f"--origin: {unknown[0]!r} is none of {', '.join(Assignment.Origin.values)}.")
    return tuple(origin for origin in Assignment.Origin.values if origin in given)


def _blocks(format, table, selection, raw, tally):
    if format == "archive":
        return archive_blocks(selection.study)
    if format == "codebook":
        return [codebook_markdown(selection.study).encode()]
    options = {"raw": raw} if format == "csv" else {}
    return BLOCKS[format](table, selection, tally=tally, **options)


@contextmanager
def _opened(output: str):
    if output == "-":
        yield sys.stdout.buffer
        return
    with _put_in_place(Path(output)) as temporary, temporary.open("wb") as file:
        yield file


@contextmanager
def _put_in_place(path: Path):
    """A file beside the one wanted, which takes its name only when it is whole."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written ({error.strerror}).") from error
    finally:
        temporary.unlink(missing_ok=True)
