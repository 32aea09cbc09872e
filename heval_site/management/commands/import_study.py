"""`heval import`: stimuli and ready-made batches from a file into a draft, a new study from a file, answers given elsewhere."""

import json
import sys
from pathlib import Path

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.template.defaultfilters import pluralize

from studies.imports.bundle import MAX_BUNDLE_BYTES, BundleRefused, read_bundle
from studies.imports.tables import ImportReport, Options, import_file, import_job
from studies.models import Study
from studies.services import drafts, lifecycle
from studies.services.study_lookup import find_study
from studies.stimuli.rows import is_bundle
from studies.stimuli.settings_records import SettingsRefused

PEEKED_BYTES = 256 * 1024


class Command(BaseCommand):
    help = "Read prompts, outputs and ready-made batches from a file into a draft, a whole study (a bundle) into a new one, or answers that were given elsewhere."

    def add_arguments(self, parser):
        parser.add_argument(
            "study", help="the code of a draft (the beginning is enough where it is unique), its title, or “new”"
        )
        parser.add_argument(
            "file", type=Path, help="CSV, JSON lines, a zip of one with its images; with “new” also a bundle"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would happen, and write nothing")
        parser.add_argument("--batches", action="store_true", help="the file holds ready-made batches")
        parser.add_argument("--creates-systems", action="store_true", help="make systems that the study does not have")
        parser.add_argument("--allows-empty", action="store_true", help="a blank text is an empty output")
        parser.add_argument(
            "--replaces-changed", action="store_true", help="replace what the study holds with other content"
        )
        parser.add_argument(
            "--pairs", action="store_true", help="the rows are single texts of two systems, to be made into pairs"
        )
        parser.add_argument("--pairs-by", default="", help="attributes in which the texts of a pair are equal: a,b,c")
        parser.add_argument("--pairs-within", type=int, default=1, help="words by which their lengths may differ")
        parser.add_argument("--pairs-most", type=int, default=0, help="pairs at most; 0 for all")
        parser.add_argument("--answers", action="store_true", help="the rows are answers that were given elsewhere")
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="OURS=THEIRS",
            help="with --answers: what a column is called in the file; may be repeated",
        )
        parser.add_argument(
            "--owner", default="", help="the user name of who owns a new study, and stands in the audit log"
        )
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, *args, **options):
        path = options["file"]
        if not path.is_file():
            raise CommandError(f"There is no file {path}.")
        by = self._get_user(options["owner"])
        if options["study"] == "new" and _is_bundle(path):
            self._import_bundle(path, by, options)
            return
        names = tuple(filter(None, (name.strip() for name in options["pairs_by"].split(","))))
        if options["column"] and not options["answers"]:
            raise CommandError("--column names a column of answers; say --answers too.")
        if names and not options["pairs"]:
            raise CommandError("--pairs-by names attributes; say --pairs too.")
        if options["answers"]:
            self._import_answers(path, by, options)
            return
        try:
            how = Options(
                options["batches"],
                options["creates_systems"],
                options["allows_empty"],
                options["replaces_changed"],
                options["pairs"],
                names,
                options["pairs_within"],
                options["pairs_most"],
            )
        except SettingsRefused as refused:
            raise CommandError(str(refused)) from None
        try:
            study, report = self._import_stimuli(options["study"], path, how, by, options["dry_run"])
        except lifecycle.ActionRefused as refused:
            raise CommandError(str(refused)) from None
        self._print_and_exit(report, study, options)

    def _print_and_exit(self, report: ImportReport, study: str | None, options) -> None:
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json() | {"study": study}, indent=1, ensure_ascii=False))
        else:
            self._print_report(report, study)
        if not report.is_sound:
            sys.exit(1)

    def _import_stimuli(
        self, named: str, path: Path, how: Options, by, is_dry_run: bool
    ) -> tuple[str | None, ImportReport]:
        """The code of the study and the report; a new study stays only if something was written into it."""
        if named != "new":
            study = find_study(named)
            return str(study.code), import_file(study, path, options=how, by=by, is_dry_run=is_dry_run)
        with transaction.atomic():
            study = drafts.create(Study(title=path.stem[:200]), by)
            report = import_file(study, path, options=how, by=by, is_dry_run=is_dry_run)
            if not report.is_written:
                transaction.set_rollback(True)
        return (str(study.code) if report.is_written else None), report

    def _import_answers(self, path: Path, by, options) -> None:
        study = find_study(options["study"])
        columns: dict[str, str] = {}
        for pair in options["column"]:
            ours, equals, theirs = pair.partition("=")
            if not equals or ours in columns:
                raise CommandError(f"--column {pair}: write OURS=THEIRS, each name of ours once.")
            columns[ours] = theirs
        try:
            report = import_job.importer("answers").read(
                study, path, options={"columns": columns}, by=by, is_dry_run=options["dry_run"]
            )
        except (lifecycle.ActionRefused, SettingsRefused) as refused:
            raise CommandError(str(refused)) from None
        self._print_and_exit(report, str(study.code), options)

    def _import_bundle(self, path: Path, by, options) -> None:
        if path.stat().st_size > MAX_BUNDLE_BYTES:
            raise CommandError(f"The file has more than {MAX_BUNDLE_BYTES:,} bytes.")
        try:
            with transaction.atomic():
                study = read_bundle(path.read_bytes(), by)
                if options["dry_run"]:
                    transaction.set_rollback(True)
        except BundleRefused as refused:
            raise CommandError("\n".join(refused.problems)) from None
        if options["json"]:
            code = None if options["dry_run"] else str(study.code)
            self.stdout.write(
                json.dumps({"study": code, "title": study.title, "is_written": not options["dry_run"]}, indent=1)
            )
        elif options["dry_run"]:
            self.stdout.write(f"“{study.title}” can be read. Nothing was written.")
        else:
            self.stdout.write(f"“{study.title}” is a new draft: {study.code}")

    def _get_user(self, name: str):
        if not name:
            return None
        model = get_user_model()
        try:
            return model.objects.get_by_natural_key(name)
        except model.DoesNotExist:
            raise CommandError(f"There is no user {name}.") from None

    def _print_report(self, report: ImportReport, study: str | None) -> None:
        out = self.stdout.write
        out(f"{report.filename}: {report.rows:,} row{pluralize(report.rows)}")
        for kind, count in report.counts.items():
            out(f"  {kind:<10} {count.new:>7,} new {count.same:>7,} the same {count.changed:>7,} changed")
        for finding in report.findings:
            out(f"- {finding.text}" + (f" ({finding.count:,})" if finding.examples else ""))
            for example in finding.examples[:5]:
                out(f"    {example}")
        for change in report.changes[:20]:
            out(f"  changed, row {change.row}: {change.what}")
        if report.missing_count:
            out(f"- {report.missing_count:,} pairs of prompt and system have no output:")
            for prompt, system in report.missing:
                out(f"    {prompt}: {system}")
        if report.problems:
            count = report.problems.count
            out(f"{count:,} problem{pluralize(count)}; nothing was written:")
            for problem in report.problems:
                out(f"  {problem}")
            if report.more_problems:
                out(f"  and {report.more_problems:,} more")
        elif report.is_written:
            out(f"Written into {study}.")
        else:
            out(
                "Nothing was written."
                if report.has_changes
                else "Everything is in the study already; nothing was written."
            )


def _is_bundle(path: Path) -> bool:
    """Whether the file is a bundle, or an object on several lines, which can be nothing else: a line of JSON lines holds a whole one."""
    if path.suffix.lower() != ".json":
        return False
    with path.open("rb") as file:
        start = file.read(PEEKED_BYTES).decode("utf-8-sig", "replace").lstrip()
    return start[:1] == "{" and (start[1:].lstrip(" \t\r")[:1] == "\n" or is_bundle(start))
