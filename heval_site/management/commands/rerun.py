"""``heval rerun``: recompute every number of a study's archive, and say which differ."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from heval_site.backup import CODE
from heval_site.management.exit_codes import EXIT_CODES, NO, WRONG_USE

# What the process gets of this one's environment. All else, such as the database, would be that of a site.
KEPT = ("PATH", "LANG", "TMPDIR", "PYTHONPATH", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
LATER = {
    "submissions": "{n} submitted assignments are later.",
    "exclusions": "{n} decisions to exclude somebody, or to take that back, are later.",
    "codings": "{n} codings are later.",
    "metrics": "{n} metrics were stored or discarded later.",
    "amendments": "{n} amendments of the design are later.",
}


class Command(BaseCommand):
    help = (
        "Recompute every analysis of a study's archive from the archive alone, in a temporary site that is deleted, and say which numbers differ. "
        f"{EXIT_CODES}"
    )

    def add_arguments(self, parser):
        parser.add_argument("archive", type=Path, help="the zip that “Download the archive” or heval study export gave")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *, archive, **options):
        if not archive.is_file():
            raise CommandError(f"There is no file {archive}. Correct the path.", returncode=WRONG_USE)
        result = self._rerun(archive, options["verbosity"])
        if "refused" in result:
            raise CommandError(result["refused"], returncode=WRONG_USE)
        lines = [json.dumps(result, indent=1, ensure_ascii=False)] if options["json"] else result_lines(result)
        self.stdout.write("\n".join(lines))
        if not result["is_equal"]:
            sys.exit(NO)

    def _rerun(self, archive: Path, verbosity: int) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as home:
            environment = {name: os.environ[name] for name in KEPT if name in os.environ} | {"HEVAL_HOME": home}
            done = subprocess.run(  # noqa: S603 - this interpreter, our own module, and a file that was named to us
                [sys.executable, "-m", "heval_site.rerun", str(archive.resolve())],
                env=environment,
                cwd=CODE,
                stdout=subprocess.PIPE,
                stderr=None if verbosity > 1 else subprocess.PIPE,
                text=True,
            )
        if done.returncode:
            reason = (done.stderr or "").strip().rpartition("\n")[2]
            raise CommandError(
                f"The analyses could not be recomputed ({reason}). Run the command again with --verbosity 2 to see all that was printed."
            )
        return json.loads(done.stdout)


def result_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a person reads: versions first, then each analysis with its differences."""
    runs = result["analyses"]
    if others := sorted({run["code_version"] for run in runs if not run["is_same_version"]}):
        yield (
            f"This is heval {result['heval']}, and the archive has analyses of {', '.join(others)}. Another version may compute other numbers."
        )
    yield f"{result['study']['title']} ({result['study']['code']})"
    if result["metrics"]["reason"]:
        yield result["metrics"]["reason"]
    if not runs:
        yield "The archive has no analysis, so there is nothing to compare."
    for run in runs:
        yield from _run_lines(run)


def _run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    start = f"Analysis {run['number']} of {run['at'][:10]}:"
    if "error" in run:
        yield f"{start} it could not be computed. {run['error']}"
        return
    if run["is_equal"]:
        yield f"{start} all {run['n_values']:,} values are equal."
    else:
        yield f"{start} {run['n_differences']:,} of {run['n_values']:,} values differ."
    if run["n_rounded"]:
        yield f"  {run['n_rounded']:,} numbers differ by less than a billionth of their size, as between processors."
    if n := run["missing_people"]:
        yield f"  {n} {'person is' if n == 1 else 'people are'} missing: withdrawn since this analysis."
    yield from (f"  {text.format(n=run['later'][name])}" for name, text in LATER.items() if run["later"][name])
    for one in run["differences"]:
        yield f"  {one['place']}: {_cell(one['stored'])} → {_cell(one['computed'])}"
    if more := run["n_differences"] - len(run["differences"]):
        yield f"  and {more:,} more"


def _cell(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"
