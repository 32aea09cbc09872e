"""``heval import``: read stimuli and batches into a draft, create a study from a file, or import answers given elsewhere or scores."""

import json
import shlex
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.template.defaultfilters import pluralize

from analysis.metrics.files import ScoresFileSettings, read_scores_file
from analysis.metrics.store import MetricDescription, upload_scores
from analysis.models import Metric
from analysis.report.archive_import import import_archive
from analysis.report.archive_rows import ArchiveRefused, is_archive
from annotators.imports import Options as AnswerOptions
from heval_site.management.exit_codes import WRONG_USE
from heval_site.management.find_study import find_study
from studies.imports.bundle import MAX_BUNDLE_BYTES, BundleRefused
from studies.imports.bundle_files import create_draft_from_bundle
from studies.imports.tables import ImportReport, Options, import_stimuli_file, run
from studies.imports.tables.columns import GROUPS_BY
from studies.imports.tables.mapping import parse_mapping
from studies.models import Study
from studies.services import jobs, lifecycle
from studies.stimuli.rows import is_bundle
from studies.stimuli.texts import SettingsRefused

PEEKED_BYTES = 256 * 1024
PROGRESS_SECONDS = 2


class Command(BaseCommand):
    help = "Import a file: prompts, outputs and batches into a draft, a bundle or an archive as a new study, answers given elsewhere, or scores."

    def add_arguments(self, parser):
        parser.add_argument("study", help="the code of a draft (a unique beginning is enough), its title, or “new”")
        parser.add_argument(
            "file",
            type=Path,
            help="a table (CSV, JSON, a workbook), a log of a tool, or a zip of a table with its images; with “new” also a bundle, or the archive of a closed study",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="dry run: show what would change, without storing anything"
        )
        parser.add_argument("--batches", action="store_true", help="the file contains ready-made batches")
        parser.add_argument("--create-systems", action="store_true", help="create systems that the study does not have")
        parser.add_argument("--allow-empty", action="store_true", help="treat a blank text as an empty output")
        parser.add_argument(
            "--replace-changed", action="store_true", help="replace existing content of the study that differs"
        )
        parser.add_argument(
            "--pairs", action="store_true", help=("the rows are single texts of two systems, to be combined into pairs")
        )
        parser.add_argument("--pairs-by", default="", help="attributes that must be equal within a pair: a,b,c")
        parser.add_argument(
            "--max-length-difference",
            type=int,
            default=1,
            metavar="WORDS",
            help="maximum difference in length within a pair, in words",
        )
        parser.add_argument("--max-pairs", type=int, default=0, metavar="N", help="maximum number of pairs; 0 for all")
        parser.add_argument(
            "--groups-by",
            default="",
            choices=["", *GROUPS_BY],
            metavar="NAME",
            help=f"what names the group of a prompt: {', '.join(GROUPS_BY)}; without it the column group",
        )
        parser.add_argument("--answers", action="store_true", help="the rows are answers that were given elsewhere")
        parser.add_argument(
            "--scores", default="", metavar="VERSION", help="the rows are scores of metrics or judges of this version"
        )
        parser.add_argument("--judge", action="store_true", help="with --scores: a judge gave them, and not a metric")
        parser.add_argument("--question", default="", help="with --scores: the key of the question that all are about")
        parser.add_argument("--partial", action="store_true", help="with --scores: the file leaves out outputs")
        parser.add_argument(
            "--map",
            "--column",
            action="append",
            default=[],
            metavar="ROLE=COLUMN",
            help="what a column is: prompt_text=question, output:gpt=model_a, value:overall=Q1; may be repeated",
        )
        parser.add_argument(
            "--human", action="append", default=[], metavar="SYSTEM", help="a new system whose author is a person"
        )
        parser.add_argument(
            "--sheet", default="", help="the sheet of a workbook, or the split of a dataset, that has several"
        )
        parser.add_argument("--only-prompts", action="store_true", help="the file has prompts only; outputs come later")
        parser.add_argument(
            "--owner", default="", help="the user name of the new study's owner, also recorded in the audit log"
        )
        parser.add_argument(
            "--copy", action="store_true", help="with “new” and an archive: also if this site has the study already"
        )
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, *args, **options):
        path = options["file"]
        if not path.is_file():
            raise CommandError(f"There is no file {path}. Correct the path.", returncode=WRONG_USE)
        self._shown_at = time.monotonic()
        try:
            self._import(path, options)
        except (KeyboardInterrupt, jobs.Cancelled):
            raise CommandError("The import was stopped. The study keeps nothing of the file.", returncode=130) from None
        except jobs.LeaseLost:
            raise CommandError(
                "The import stood still for a minute, so the server took it over. Import the file again."
            ) from None

    def _show_progress(self, done: int, total: int, doing: str = "") -> None:
        if time.monotonic() - self._shown_at >= PROGRESS_SECONDS:
            self._shown_at = time.monotonic()
            self.stderr.write(f"{doing}: {done:,} of {total:,}" if total else doing, style_func=str)

    def _import(self, path: Path, options: dict[str, Any]) -> None:
        by = self._get_user(options["owner"])
        if options["study"] == "new" and by is None and not options["dry_run"]:
            raise CommandError(
                "A new study needs an owner, or only administrators see it. Add --owner NAME.", returncode=WRONG_USE
            )
        if options["study"] == "new" and _is_bundle(path):
            self._import_bundle(path, by, options)
            return
        if options["study"] == "new" and is_archive(path):
            self._import_archive(path, by, options)
            return
        names = tuple(filter(None, (name.strip() for name in options["pairs_by"].split(","))))
        if names and not options["pairs"]:
            raise CommandError("--pairs-by names attributes of pairs. Add --pairs.", returncode=WRONG_USE)
        if options["scores"]:
            self._import_scores(path, by, options)
            return
        if options["answers"]:
            self._import_answers(path, by, options)
            return
        try:
            import_options = Options(
                options["batches"],
                options["create_systems"],
                options["allow_empty"],
                options["replace_changed"],
                options["pairs"],
                names,
                options["max_length_difference"],
                options["max_pairs"],
                options["groups_by"],
                tuple(options["map"]),
                human_systems=tuple(options["human"]),
                sheet=options["sheet"],
            )
            parse_mapping(import_options.columns)
        except SettingsRefused as refused:
            raise CommandError(str(refused), returncode=WRONG_USE) from None
        try:
            check = None if options["only_prompts"] else refuse_prompts_alone
            study, report = self._import_stimuli(
                options["study"], path, import_options, by, is_dry_run=options["dry_run"], check=check
            )
            if report.problems:
                self._refuse_other_names(options["study"], path, import_options, by)
        except PromptsAlone:
            self._refuse_other_names(options["study"], path, import_options, by)
            raise CommandError(
                "The file has prompts and no outputs. Add --only-prompts, or --map output:NAME=COLUMN.",
                returncode=WRONG_USE,
            ) from None
        except lifecycle.ActionRefused as refused:
            raise CommandError(str(refused)) from None
        self._print_and_exit(report, study, options)

    def _print_and_exit(self, report: ImportReport, study: str | None, options) -> None:
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json() | {"study": study}, indent=1, ensure_ascii=False))
        else:
            self._print_report(report, study)
        if not report.is_sound:
            sys.exit(WRONG_USE)

    def _import_stimuli(
        self, study_name: str, path: Path, import_options: Options, by, *, is_dry_run: bool, check=None
    ) -> tuple[str | None, ImportReport]:
        """Return the study's code and the report. A new study is stored only if something is imported."""
        how: dict[str, Any] = {"options": import_options, "by": by, "is_dry_run": is_dry_run, "check": check}
        how["progress"] = self._show_progress
        if study_name != "new":
            study = find_study(study_name)
            return str(study.code), import_stimuli_file(study, path, **how)
        study = Study(title=path.stem[:200])
        report = import_stimuli_file(study, path, **how)
        return (str(study.code) if report.is_written else None), report

    def _refuse_other_names(self, study_name: str, path: Path, import_options: Options, by) -> None:
        """Refuse a file whose columns may have other names than heval's, and print the options that map them."""
        if import_options.columns:
            return
        proposing = replace(import_options, proposes_columns=True)
        _, proposed = self._import_stimuli(study_name, path, proposing, by, is_dry_run=True)
        if proposed.is_mapped:
            self._refuse_with_roles(proposed)

    def _refuse_with_roles(self, proposed: ImportReport) -> None:
        options = " ".join(shlex.join(["--map", role]) for role in proposed.mapping)
        raise CommandError(
            f"The columns have other names than heval's. Check these roles, and add: {options}", returncode=WRONG_USE
        )

    def _import_answers(self, path: Path, by, options) -> None:
        study = find_study(options["study"])
        read = partial(run.get_importer("answers").read, study, path, by=by, progress=self._show_progress)
        try:
            columns = AnswerOptions.from_texts(options["map"], sheet=options["sheet"])
            report = read(options=columns, is_dry_run=options["dry_run"])
            if report.problems:
                proposed = read(options=replace(columns, proposes_columns=True), is_dry_run=True)
                if proposed.is_mapped and proposed.is_sound:
                    self._refuse_with_roles(proposed)
        except lifecycle.ActionRefused as refused:
            raise CommandError(str(refused)) from None
        except SettingsRefused as refused:
            raise CommandError(str(refused), returncode=WRONG_USE) from None
        self._print_and_exit(report, str(study.code), options)

    def _import_scores(self, path: Path, by, options) -> None:
        study = find_study(options["study"])
        kind = Metric.Kind.JUDGE if options["judge"] else Metric.Kind.METRIC
        described = MetricDescription(kind, options["scores"])
        chosen = ScoresFileSettings(
            tuple(options["map"]), options["question"], is_partial=options["partial"], proposes_columns=False
        )
        try:
            if options["dry_run"]:
                read = read_scores_file(study, path.name, path.read_bytes(), chosen)
                found = {scores.column: len(scores) for scores in read.columns}
            else:
                stored = upload_scores(study, by, path.name, path.read_bytes(), chosen, described)
                found = {str(metric): metric.n_scores for metric in stored}
        except lifecycle.FileRefused as refused:
            raise CommandError("\n".join(map(str, refused.problems)), returncode=WRONG_USE) from None
        except ValidationError as refused:
            raise CommandError(" ".join(refused.messages), returncode=WRONG_USE) from None
        if options["json"]:
            self.stdout.write(
                json.dumps({"study": str(study.code), "scores": found, "is_written": not options["dry_run"]})
            )
            return
        for name, n in found.items():
            self.stdout.write(f"{name}: {n:,} scores")
        self.stdout.write("Nothing was stored." if options["dry_run"] else f"Imported into {study.code}.")

    def _import_bundle(self, path: Path, by, options) -> None:
        if path.stat().st_size > MAX_BUNDLE_BYTES:
            raise CommandError(
                f"The file is larger than {MAX_BUNDLE_BYTES:,} bytes. Remove outputs from it, and import them from a table.",
                returncode=WRONG_USE,
            )
        try:
            with transaction.atomic():
                study = create_draft_from_bundle(path.read_bytes(), by)
                if options["dry_run"]:
                    transaction.set_rollback(True)
        except BundleRefused as refused:
            raise CommandError("\n".join(refused.problems), returncode=WRONG_USE) from None
        self._print_study(study, options, "is a valid study", f"is a new draft: {study.code}")

    def _import_archive(self, path: Path, by, options) -> None:
        try:
            study = import_archive(path, by, is_copy=options["copy"], is_dry_run=options["dry_run"])
        except ArchiveRefused as refused:
            raise CommandError(str(refused), returncode=WRONG_USE) from None
        stored = f"is imported, closed as it was: {study.code}. Its analyses are computed again by jobs."
        self._print_study(study, options, "is a whole study", stored)

    def _print_study(self, study: Study, options, valid: str, stored: str) -> None:
        if options["json"]:
            code = None if options["dry_run"] else str(study.code)
            result = {"study": code, "title": study.title, "is_written": not options["dry_run"]}
            self.stdout.write(json.dumps(result, indent=1))
        else:
            said = f"{valid}. Nothing was stored." if options["dry_run"] else stored
            self.stdout.write(f"“{study.title}” {said}")

    def _get_user(self, name: str):
        if not name:
            return None
        model = get_user_model()
        try:
            return model.objects.get_by_natural_key(name)
        except model.DoesNotExist:
            raise CommandError(f"There is no user {name}. Correct --owner.", returncode=WRONG_USE) from None

    def _print_report(self, report: ImportReport, study: str | None) -> None:
        write = self.stdout.write
        write(f"{report.filename}: {report.rows:,} row{pluralize(report.rows)}")
        for kind, count in report.counts.items():
            write(f"  {kind:<10} {count.new:>7,} new {count.same:>7,} the same {count.changed:>7,} changed")
        for finding in report.findings:
            write(f"- {finding.text}" + (f" ({finding.count:,})" if finding.examples else ""))
            for example in finding.examples[:5]:
                write(f"    {example}")
        for change in report.changes[:20]:
            write(f"  changed, row {change.row}: {change.what}")
        if report.missing_count:
            write(f"- {report.missing_count:,} pairs of prompt and system have no output:")
            for prompt, system in report.missing:
                write(f"    {prompt}: {system}")
        if report.problems:
            n = report.problems.count
            write(f"{n:,} problem{pluralize(n)}; nothing was stored:")
            for problem in report.problems:
                write(f"  {problem}")
            if report.more_problems:
                write(f"  and {report.more_problems:,} more")
        elif report.is_written:
            write(f"Imported into {study}.")
        else:
            write(
                "Nothing was stored."
                if report.has_changes
                else "The study already contains everything; nothing was stored."
            )


def _is_bundle(path: Path) -> bool:
    """Return whether the file is a bundle. Other JSON may be of a tool."""
    if path.suffix.lower() != ".json":
        return False
    with path.open("rb") as file:
        return is_bundle(file.read(PEEKED_BYTES).decode("utf-8-sig", "replace"))


class PromptsAlone(Exception):
    """A file without outputs: perhaps its columns of outputs were not recognised."""


def refuse_prompts_alone(report: ImportReport) -> None:
    if report.has_only_prompts:
        raise PromptsAlone
