"""API views of assignments, answers, codings, exclusions and imports."""

from typing import Any

from django.db.models import Q
from django.http import Http404, QueryDict
from rest_framework import serializers
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.response import Response

from analysis.data import exports
from analysis.data.codings import CODING_COLUMNS, codings_of, keyed_coding_rows
from analysis.data.exports import build_permitted_selection
from analysis.data.flat_rows import Selection, assignment_pseudonym, find_damaged_cells
from annotators import models as answers
from annotators.counting import Use, select
from annotators.imports import Options as AnswerOptions
from annotators.places.exclusions import create_exclusion_reversal, exclude_assignments
from studies.access import Action
from studies.imports.tables import run
from studies.imports.tables.columns import GROUPS_BY
from studies.imports.tables.mapping import parse_mapping
from studies.imports.tables.result import ImportReport
from studies.imports.tables.run import Upload
from studies.models import Job, Study
from studies.services.lifecycle import ActionRefused
from studies.stimuli.texts import SettingsRefused

from . import serializers as shapes
from .base import CreatedOrUnchangedMixin, PostMixin, StudyView
from .query import ORIGINS, WITHDRAWN, PairPagination, Parameter, integer_filter, rows_of, text_filter
from .renderers import FieldError, RowErrors, StrictJSONParser, row_error, row_errors
from .serializers import (
    CleanTextField,
    ListedField,
    ListField,
    RowErrorSerializer,
    StrictBooleanField,
    StrictIntegerField,
    StrictMixin,
)
from .uploads import StrictMultiPartParser, read_settings


class AssignmentsView(StudyView, ListAPIView):
    """The assignments, with their state and times. Names are pseudonyms within this study."""

    tag = "answers"
    summaries = {"GET": "Assignments"}
    parameters = (
        Parameter(
            "origins",
            ORIGINS.read,
            "Origins, separated by commas. Default: all.",
            tuple(answers.Assignment.Origin.values),
        ),
        text_filter("arm", "batch__arm__name", "Only assignments in this arm.", named=rows_of("arms", "name")),
        integer_filter(
            "batch",
            "batch__number",
            "Only assignments with the batch with this number.",
            named=rows_of("batches", "number"),
        ),
    )
    queryset = answers.Assignment.objects.all()
    serializer_class = shapes.AssignmentSerializer

    def list(self, request, code):
        rows = select(Use.RECORD, self.filter_queryset(self.get_queryset()), self.values["origins"])
        return self.page_of(exports.page_of_assignments(rows, self.study, self.values["cursor"][0], self.rows_needed))


class AnswerRowsView(StudyView, ListAPIView):
    """Flat rows of an export, of answers with the chosen origins."""

    tag = "answers"
    read_action = Action.EXPORT
    table: str

    def get_selection(self) -> Selection:
        chosen = self.values["origins"], self.values["withdrawn"]
        return build_permitted_selection(self.table, self.study, *chosen, by=self.request.user)


class ResponsesView(AnswerRowsView):
    """The flat rows of the exports, in pages. Use an export to get all answers from one snapshot."""

    summaries = {"GET": "Answers, one flat row per judgement"}
    pagination_class = PairPagination
    parameters = (
        ORIGINS,
        WITHDRAWN,
        integer_filter(
            "section",
            "question__section__position",
            "Only answers in the section at this position.",
            maximum=32767,
            named=rows_of("sections", "position"),
        ),
        text_filter(
            "question",
            "question__key",
            "Only answers to the question with this key.",
            named=rows_of("sections", "questions__key"),
        ),
        text_filter(
            "system",
            "exposure__output__system__name",
            "Only answers about an output of this system.",
            named=rows_of("systems", "name"),
        ),
        text_filter(
            "prompt", "item__prompt__key", "Only answers about items with this prompt.", named=rows_of("prompts", "key")
        ),
        text_filter("arm", "assignment__batch__arm__name", "Only answers in this arm.", named=rows_of("arms", "name")),
        integer_filter(
            "batch",
            "assignment__batch__number",
            "Only answers in the batch with this number.",
            named=rows_of("batches", "number"),
        ),
    )
    serializer_class = shapes.ResponseSerializer
    page_fields = {"n_problems": serializers.IntegerField(), "problems": serializers.JSONField()}
    table = "responses"

    def list(self, request, code):
        cursor, selection = self.values["cursor"], self.get_selection()
        rows = self.filter_queryset(selection.responses)
        response = self.page_of(exports.page_of_responses(rows, self.study, cursor, self.rows_needed))
        n, problems = find_damaged_cells(selection) if cursor == (0, 0) else (0, [])
        response.data |= {"n_problems": n, "problems": problems}
        return response


class CodingsView(AnswerRowsView):
    """Codings of explanations and of work, in pages, in stored order. Coders are identified by seat, not by name."""

    summaries = {"GET": "Codings, one flat row each"}
    parameters = (
        ORIGINS,
        WITHDRAWN,
        integer_filter(
            "sample",
            "item__sample__number",
            "Only codings of the sample with this number.",
            minimum=1,
            named=rows_of("coding_samples", "number"),
        ),
    )
    serializer_class = shapes.CodingSerializer
    table = "codings"

    def list(self, request, code):
        codings = self.filter_queryset(codings_of(self.get_selection()))
        rows = codings.filter(pk__gt=self.values["cursor"][0]).order_by("pk")[: self.rows_needed]
        names = [column.name for column in CODING_COLUMNS]
        return self.page_of(
            (key, dict(zip(names, cells, strict=True))) for key, cells in keyed_coding_rows(self.study, rows)
        )


class ExclusionView(StudyView):
    tag = "answers"
    write_action = Action.MANAGE_ASSIGNMENTS
    queryset = answers.Exclusion.objects.select_related("assignment", "by").annotate(
        is_active=Q(reverses=None, reversed_by=None)
    )
    lookup_url_kwarg = "number"
    serializer_class = shapes.ExclusionSerializer
    result_serializer_class = shapes.ExclusionsCreatedSerializer
    success_status = 201


class ExclusionsView(CreatedOrUnchangedMixin, ExclusionView, ListAPIView):
    """Exclusions that researchers decided. Exclusion rules are part of the design; their results are in the analyses."""

    summaries = {"GET": "Exclusions", "POST": "Exclude assignments, all or none"}
    body_serializer_class = shapes.ExclusionRequestSerializer

    def perform(self, assignments: list[str], reason: str, note: str, reopen: bool) -> tuple[Any, bool]:
        chosen = list(assignments_by_name(self.study, assignments).values())
        created = exclude_assignments(chosen, reason, self.request.user, note, reopen)
        rows = self.get_queryset().filter(pk__in=[exclusion.pk for exclusion in created]).order_by("pk")
        return {"created": rows}, bool(created)


class ReverseExclusionView(PostMixin, ExclusionView):
    """Reverse an exclusion by adding another row. Both rows stay on record."""

    summaries = {"POST": "Reverse an exclusion"}
    queryset = ExclusionView.queryset.select_related("assignment__study")
    body_serializer_class = shapes.ReverseExclusionSerializer

    def perform(self, note: str) -> dict[str, Any]:
        reversal = create_exclusion_reversal(self.get_object(), self.request.user, note)
        return {"created": self.get_queryset().filter(pk=reversal.pk)}


def assignments_by_name(study: Study, names: list[str]) -> dict[str, answers.Assignment]:
    """Return the assignments with these names, by name. A name is a hash of the code, so all codes of the study are hashed to find it."""
    codes = answers.Assignment.objects.filter(study=study).values_list("code", flat=True)
    by_name = {assignment_pseudonym(code): code for code in codes}
    errors = [
        row_error(
            row, "assignments", f"The study has no assignment “{name}”. Copy the name from the list of assignments."
        )
        for row, name in enumerate(names, 1)
        if name not in by_name
    ]
    if errors:
        raise RowErrors(errors)
    found = answers.Assignment.objects.filter(code__in={by_name[name] for name in names}).order_by("pk")
    return {assignment_pseudonym(assignment.code): assignment for assignment in found}


# API views of imports: a file of systems, prompts and outputs, with images in a zip, as the admin's import page reads
# it.


LARGEST = 1_000_000


class FileSettingsSerializer(StrictMixin, serializers.Serializer):
    # What the settings of all files have.
    is_dry_run = StrictBooleanField(default=False, help_text="true: only report what would change.")
    columns = ListField(
        child=CleanTextField(),
        required=False,
        default=list,
        help_text="What each column is, such as “prompt_text=question” or “value:overall=Q1”, if it has another name than heval's.",
    )
    proposes_columns = StrictBooleanField(
        default=False,
        help_text="true: read columns with other names as heval proposes. Look at them with is_dry_run first.",
    )
    sheet = CleanTextField(default="", help_text="The sheet of a workbook that has several.")


class AnswerSettingsSerializer(FileSettingsSerializer):
    """How a file of answers is read. Roles of columns: [import of answers](../how-to/import-answers.md)."""

    def validate_columns(self, columns):
        try:
            return AnswerOptions.from_texts(columns).columns
        except SettingsRefused as refused:
            raise serializers.ValidationError(str(refused)) from None


class ImportSettingsSerializer(FileSettingsSerializer):
    """How the file is read. Each switch allows something that is refused without it."""

    creates_systems = StrictBooleanField(default=False, help_text="true: add systems that the study does not have.")
    allows_empty = StrictBooleanField(default=False, help_text="true: a blank text is an empty output.")
    replaces_changed = StrictBooleanField(
        default=False, help_text="true: replace content of the study that differs from the file."
    )
    makes_batches = StrictBooleanField(default=False, help_text="true: rows name ready-made batches.")
    makes_pairs = StrictBooleanField(default=False, help_text="true: rows are single texts of two systems.")
    pairs_by = ListField(child=CleanTextField(), required=False, default=list, help_text="Columns equal in a pair.")
    max_length_difference = StrictIntegerField(
        default=0, min_value=0, max_value=10_000, help_text="Of a pair, in words."
    )
    max_pairs = StrictIntegerField(default=0, min_value=0, max_value=LARGEST, help_text="0: all possible pairs.")

    groups_by = ListedField(
        choices=["", *GROUPS_BY],
        default="",
        help_text="What names the group of a prompt; empty: the column group, if the file has it.",
    )
    human_systems = ListField(
        child=CleanTextField(), required=False, default=list, help_text="New systems whose author is a person."
    )
    left_out_systems = ListField(
        child=CleanTextField(), required=False, default=list, help_text="Systems whose outputs are not imported."
    )

    def validate_columns(self, columns):
        try:
            parse_mapping(columns)
        except SettingsRefused as refused:
            raise serializers.ValidationError(str(refused)) from None
        return columns

    def validate(self, attrs):
        if attrs["makes_pairs"] and attrs["makes_batches"]:
            raise serializers.ValidationError(
                {"makes_pairs": "A file of single texts cannot contain ready-made batches. Send one of the two."}
            )
        return attrs


class ImportFormSerializer(serializers.Serializer):
    """A form with a file."""

    file = serializers.FileField(
        help_text="A table (CSV, JSON or a workbook) or a file of a tool; for stimuli also a zip of a table with its images."
    )
    settings = serializers.CharField(
        required=False,
        help_text="How to read the file, as one JSON object: is_dry_run, columns, proposes_columns and sheet; for stimuli also "
        "creates_systems, allows_empty, replaces_changed, makes_batches, makes_pairs, pairs_by, max_length_difference, max_pairs, groups_by, "
        "human_systems and left_out_systems. Default: {}.",
    )


class RowCountsSerializer(serializers.Serializer):
    new = serializers.IntegerField()
    same = serializers.IntegerField(help_text="In the study already.")
    changed = serializers.IntegerField(help_text="In the study with other content.")


class ImportFindingSerializer(serializers.Serializer):
    kind = serializers.CharField()
    text = serializers.CharField()
    count = serializers.IntegerField()
    examples = serializers.ListField(child=serializers.CharField())


class ImportSerializer(serializers.Serializer):
    """The report of an import. Its numbers are null until the file is read."""

    id = serializers.CharField()
    filename = serializers.CharField()
    sha256 = serializers.CharField()
    state = serializers.ChoiceField(
        Job.State.choices, help_text="Of the job that reads a large file. Small ones are done at once."
    )
    job = serializers.UUIDField(
        allow_null=True, help_text="The job of a large file, with its progress; it can be cancelled."
    )
    is_written = serializers.BooleanField(help_text="Whether the study has the content of the file now.")
    rows = serializers.IntegerField(allow_null=True)
    counts = serializers.DictField(
        child=RowCountsSerializer(),
        allow_null=True,
        help_text="Of systems, prompts, outputs and batches; or of annotators, items and answers.",
    )
    findings = ImportFindingSerializer(many=True, help_text="What to know, such as columns that are not imported.")
    errors = RowErrorSerializer(many=True, help_text="Why nothing was written; the first 100.")
    columns = serializers.ListField(
        child=serializers.CharField(),
        help_text="How columns were read, as “columns” of the settings; for stimuli only if they have other names than heval's.",
    )
    samples = serializers.DictField(
        child=serializers.ListField(),
        help_text="Three outputs of each new system, drawn at random: key of the prompt and text.",
    )


class ImportsView(StudyView):
    """Import a file into a draft, all or nothing. A zip may hold images. Importing the same file again changes nothing."""

    tag = "stimuli"
    summaries = {"POST": "Import a file of stimuli into a draft"}
    parser_classes = (StrictJSONParser, StrictMultiPartParser)
    max_file_bytes = run.MAX_BYTES
    throttle_scope = "export"
    serializer_class = ImportSerializer
    body_serializer_class = ImportSettingsSerializer
    documented_body = {"multipart/form-data": ImportFormSerializer}
    success_status = 201
    other_results = {202: ImportSerializer}
    imports = "stimuli"

    def post(self, request, code):
        file = request.FILES.get("file") if isinstance(request.data, QueryDict) else None
        if file is None:
            raise FieldError("file", "There is no file. Send multipart/form-data with the table or the zip as “file”.")
        options = self.check_fields(read_settings(request))
        is_dry_run = options.pop("is_dry_run")
        importer = run.get_importer(self.imports)
        if refusal := importer.reason_not_importable(self.study):
            raise ActionRefused(refusal)
        upload = run.store_upload(
            file.chunks(),
            file.name,
            study_id=self.study.pk,
            user_id=request.user.pk,
            options=importer.checked_options(options),
            kind=self.imports,
        )
        try:
            job = run.process_or_queue_upload(self.study, upload, request.user, is_confirmed=not is_dry_run)
        except BaseException:
            upload.delete_file()
            raise
        if job is not None:
            return Response(import_json(upload), status=202)
        upload.delete_file()
        report = ImportReport.from_json(upload.report or {})
        if report.problems:
            raise RowErrors(row_errors(report.problems))
        return Response(import_json(upload), status=201 if report.is_written else 200)


class AnswerImportsView(ImportsView):
    """Import a file of answers that were given elsewhere, all or nothing. A draft is frozen and closed. Importing the same file again changes nothing."""

    tag = "answers"
    summaries = {"POST": "Import a file of answers given elsewhere"}
    body_serializer_class = AnswerSettingsSerializer
    imports = "answers"


class ImportDetailView(StudyView, RetrieveAPIView):
    """The report of an import, which heval keeps for one day. Poll it while the job of a large file runs."""

    tag = "stimuli"
    summaries = {"GET": "The report of an import"}
    read_action = Action.EDIT
    serializer_class = ImportSerializer

    def get_object(self) -> dict[str, Any]:
        found = run.get_upload(self.kwargs["token"], self.study.pk)
        if found is None:
            raise Http404
        return import_json(found)


def import_json(upload: Upload) -> dict[str, Any]:
    """Return an import and its report as JSON. A job that failed says why in ``errors``."""
    job, report = run.job_of(upload), upload.report
    read = ImportReport.from_json(report) if report else None
    errors = row_errors(read.problems) if read else []
    if fault := upload.fault or (job.error if job is not None else ""):
        errors.insert(0, row_error(None, None, fault))
    return {
        "id": upload.token,
        "filename": upload.filename,
        "sha256": upload.sha256,
        "state": job.state if job is not None else Job.State.DONE,
        "job": str(job.code) if job is not None else None,
        "is_written": upload.is_confirmed,
        "rows": report["rows"] if report else None,
        "counts": report["counts"] if report else None,
        "findings": report["findings"] if report else [],
        "errors": errors,
        "columns": read.mapping if read and (read.is_mapped or upload.kind == "answers") else [],
        "samples": read.samples if read else {},
    }
