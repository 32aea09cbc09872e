"""API views of assignments, answers, codings and exclusions."""

from typing import TYPE_CHECKING, Any, TypedDict

from django.db import models
from django.db.models import F
from django.http import Http404, QueryDict
from rest_framework import serializers
from rest_framework.response import Response

from analysis.data import exports
from analysis.data.codings import CODING_COLUMNS, codings_of, keyed_coding_rows
from analysis.data.exports import build_permitted_selection
from analysis.data.flat_rows import assignment_pseudonym, find_damaged_cells
from annotators import models as answers
from annotators.counting import Use, select
from annotators.places.exclusions import create_exclusion_reversal, exclude_assignments
from studies.access import Action
from studies.imports.tables import run
from studies.imports.tables.columns import GROUPS_BY, Options
from studies.imports.tables.result import ImportReport
from studies.imports.tables.run import Upload
from studies.models import Job, Study
from studies.services.lifecycle import ActionRefused

from . import serializers as shapes
from .base import (
    StrictMultiPartParser,
    StudyView,
    document_operation,
    page_serializer,
    read_settings,
    require_json_object,
    row_errors,
)
from .query import ORIGINS, WITHDRAWN, Parameter, integer_parser, page_parameters, page_response, parse_single_line
from .renderers import RowErrors, StrictJSONParser, row_error
from .serializers import (
    CleanTextField,
    ListedField,
    ListField,
    RowErrorSerializer,
    StrictBooleanField,
    StrictIntegerField,
    StrictMixin,
)

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class _WithReversal(TypedDict):
        reversal: int | None

    ExclusionInList = WithAnnotations[answers.Exclusion, _WithReversal]


class AssignmentsView(StudyView):
    """The assignments, with their state and times. Names are pseudonyms within this study."""

    parameters = (
        *page_parameters(),
        Parameter(
            "origins",
            ORIGINS.read,
            "Origins, separated by commas. Default: all.",
            tuple(answers.Assignment.Origin.values),
        ),
        Parameter("arm", parse_single_line, "Only assignments in this arm."),
        Parameter("batch", integer_parser(), "Only assignments with the batch with this number.", None, int),
    )

    @document_operation(
        "Assignments", page_serializer("Assignment", shapes.AssignmentSerializer), parameters=parameters, tag="answers"
    )
    def get(self, request, code):
        rows = select(Use.RECORD, answers.Assignment.objects.filter(study=self.study), self.values["origins"])
        if self.values["arm"] is not None:
            rows = rows.filter(batch__arm__name=self.values["arm"])
        if self.values["batch"] is not None:
            rows = rows.filter(batch__number=self.values["batch"])
        page_rows = exports.page_of_assignments(rows, self.study, self.cursor_key()[0], self.values["page_size"] + 1)
        return page_response(request, self.values, page_rows)


class ResponsesView(StudyView):
    """The flat rows of the exports, in pages. Use an export to get all answers from one snapshot."""

    read_action = Action.EXPORT
    parameters = (
        *page_parameters(2),
        ORIGINS,
        WITHDRAWN,
        Parameter("section", integer_parser(0, 32767), "Only answers in the section at this position.", None, int),
        Parameter("question", parse_single_line, "Only answers to the question with this key."),
        Parameter("system", parse_single_line, "Only answers about an output of this system."),
        Parameter("prompt", parse_single_line, "Only answers about items with this prompt."),
        Parameter("arm", parse_single_line, "Only answers in this arm."),
        Parameter("batch", integer_parser(), "Only answers in the batch with this number.", None, int),
    )
    filter_paths = {
        "section": "question__section__position",
        "question": "question__key",
        "system": "exposure__output__system__name",
        "prompt": "item__prompt__key",
        "arm": "assignment__batch__arm__name",
        "batch": "assignment__batch__number",
    }

    @document_operation(
        "Answers, one flat row per judgement",
        page_serializer(
            "Response",
            shapes.ResponseSerializer,
            n_problems=serializers.IntegerField(),
            problems=serializers.JSONField(),
        ),
        parameters=parameters,
        tag="answers",
    )
    def get(self, request, code):
        chosen = self.values["origins"], self.values["withdrawn"]
        selection = build_permitted_selection("responses", self.study, *chosen, by=request.user)
        filters = {path: self.values[name] for name, path in self.filter_paths.items() if self.values[name] is not None}
        rows = selection.responses.filter(**filters)
        page_rows = exports.page_of_responses(rows, self.study, self.cursor_key(), self.values["page_size"] + 1)
        n, problems = find_damaged_cells(selection) if self.cursor_key() == (0, 0) else (0, [])
        return page_response(request, self.values, page_rows, n_problems=n, problems=problems)


class CodingsView(StudyView):
    """Codings of explanations and of work, in pages, in stored order. Coders are identified by seat, not by name."""

    read_action = Action.EXPORT
    parameters = (
        *page_parameters(),
        ORIGINS,
        WITHDRAWN,
        Parameter("sample", integer_parser(1), "Only codings of the sample with this number.", None, int),
    )

    @document_operation(
        "Codings, one flat row each",
        page_serializer("Coding", shapes.CodingSerializer),
        parameters=parameters,
        tag="answers",
    )
    def get(self, request, code):
        chosen = self.values["origins"], self.values["withdrawn"]
        rows = codings_of(build_permitted_selection("codings", self.study, *chosen, by=request.user))
        if self.values["sample"] is not None:
            rows = rows.filter(item__sample__number=self.values["sample"])
        rows = rows.filter(pk__gt=self.cursor_key()[0]).order_by("pk")[: self.values["page_size"] + 1]
        names = [column.name for column in CODING_COLUMNS]
        keyed_rows = [(key, dict(zip(names, cells, strict=True))) for key, cells in keyed_coding_rows(self.study, rows)]
        return page_response(request, self.values, keyed_rows)


class ExclusionsView(StudyView):
    """Exclusions that researchers decided. Exclusion rules are part of the design; their results are in the analyses."""

    write_action = Action.MANAGE_ASSIGNMENTS
    parameters = page_parameters()

    @document_operation(
        "Exclusions", page_serializer("Exclusion", shapes.ExclusionSerializer), parameters=parameters, tag="answers"
    )
    def get(self, request, code):
        return self.paginated_response(_exclusions_of(self.study), _exclusion_row)

    @document_operation(
        "Exclude assignments, all or none",
        shapes.ExclusionsCreatedSerializer,
        request=shapes.ExclusionRequestSerializer,
        status=201,
        tag="answers",
    )
    def post(self, request, code):
        serializer = shapes.ExclusionRequestSerializer(data=require_json_object(request))
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        chosen = _assignments_by_name(self.study, fields["assignments"])
        created = exclude_assignments(chosen, fields["reason"], request.user, fields["note"], fields["reopen"])
        rows = [
            _exclusion_row(row)
            for row in _exclusions_of(self.study).filter(pk__in=[exclusion.pk for exclusion in created]).order_by("pk")
        ]
        return Response({"created": rows}, status=201 if rows else 200)


class ReverseExclusionView(StudyView):
    """Reverse an exclusion by adding another row. Both rows stay on record."""

    write_action = Action.MANAGE_ASSIGNMENTS

    @document_operation(
        "Reverse an exclusion",
        shapes.ExclusionsCreatedSerializer,
        request=shapes.ReverseExclusionSerializer,
        status=201,
        tag="answers",
    )
    def post(self, request, code, number):
        serializer = shapes.ReverseExclusionSerializer(data=require_json_object(request))
        serializer.is_valid(raise_exception=True)
        rows = answers.Exclusion.objects.filter(assignment__study=self.study, pk=number)
        exclusion = rows.select_related("assignment__study").first()
        if exclusion is None:
            raise Http404
        reversal = create_exclusion_reversal(exclusion, request.user, serializer.validated_data["note"])
        return Response({"created": [_exclusion_row(_exclusions_of(self.study).get(pk=reversal.pk))]}, status=201)


def _exclusions_of(study: Study) -> "models.QuerySet[ExclusionInList]":
    rows = answers.Exclusion.objects.filter(assignment__study=study).select_related("assignment", "by")
    return rows.annotate(reversal=F("reversed_by__pk"))


def _assignments_by_name(study: Study, names: list[str]) -> list[answers.Assignment]:
    """Return the assignments with these names. A name is a hash of the code, so all codes of the study are hashed to find it."""
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
    return list(answers.Assignment.objects.filter(code__in={by_name[name] for name in names}))


def _exclusion_row(row: "ExclusionInList") -> dict[str, Any]:
    return {
        "number": row.pk,
        "assignment": assignment_pseudonym(row.assignment.code),
        "reason": row.reason,
        "note": row.note,
        "by": row.by.get_username(),
        "at": row.at,
        "reverses": row.reverses_id,
        "is_active": row.reverses_id is None and row.reversal is None,
    }


# API views of imports: a file of systems, prompts and outputs, with images in a zip, as the admin's import page reads
# it.


TAG = "stimuli"
LARGEST = 1_000_000


class ImportSettingsSerializer(StrictMixin, serializers.Serializer):
    """How the file is read. Each switch allows something that is refused without it."""

    is_dry_run = StrictBooleanField(default=False, help_text="true: only report what would change.")
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

    def validate(self, attrs):
        if attrs["makes_pairs"] and attrs["makes_batches"]:
            raise serializers.ValidationError(
                {"makes_pairs": "A file of single texts cannot contain ready-made batches. Send one of the two."}
            )
        return attrs


class ImportFormSerializer(serializers.Serializer):
    """A form with a file."""

    file = serializers.FileField(help_text="CSV or JSON lines; or a zip with one such table and its images.")
    settings = serializers.CharField(
        required=False,
        help_text="How to read the file, as one JSON object: is_dry_run, creates_systems, allows_empty, replaces_changed, "
        "makes_batches, makes_pairs, pairs_by, max_length_difference, max_pairs and groups_by. Default: {}.",
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
    is_written = serializers.BooleanField(help_text="Whether the study has the content of the file now.")
    rows = serializers.IntegerField(allow_null=True)
    counts = serializers.DictField(
        child=RowCountsSerializer(), allow_null=True, help_text="Of systems, prompts, outputs and batches."
    )
    findings = ImportFindingSerializer(many=True, help_text="What to know, such as columns that are not imported.")
    errors = RowErrorSerializer(many=True, help_text="Why nothing was written; the first 100.")


class ImportsView(StudyView):
    """Import a file into a draft, all or nothing. A zip may hold images. Importing the same file again changes nothing."""

    parser_classes = (StrictJSONParser, StrictMultiPartParser)
    throttle_scope = "export"
    # A form has a few short fields beside its file.
    max_form_bytes = run.MAX_BYTES + 2**20

    @document_operation(
        "Import a file of stimuli into a draft",
        ImportSerializer,
        request={"multipart/form-data": ImportFormSerializer},
        status=201,
        tag=TAG,
        other_responses={202: ImportSerializer},
    )
    def post(self, request, code):
        file = request.FILES.get("file") if isinstance(request.data, QueryDict) else None
        if file is None:
            problem = "There is no file. Send multipart/form-data with the table or the zip as “file”."
            raise RowErrors([row_error(None, "file", problem)])
        serializer = ImportSettingsSerializer(data=read_settings(request))
        serializer.is_valid(raise_exception=True)
        options = dict(serializer.validated_data)
        is_dry_run = options.pop("is_dry_run")
        if refusal := run.reason_not_importable(self.study):
            raise ActionRefused(refusal)
        upload = run.store_upload(
            file.chunks(),
            file.name,
            study_id=self.study.pk,
            user_id=request.user.pk,
            options=Options(**options | {"pairs_by": tuple(options["pairs_by"])}).as_json(),
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


class ImportDetailView(StudyView):
    """The report of an import, which heval keeps for one day. Poll it while the job of a large file runs."""

    read_action = Action.EDIT

    @document_operation("The report of an import", ImportSerializer, tag=TAG)
    def get(self, request, code, token):
        found = run.get_upload(token, self.study.pk)
        if found is None or found.kind != "stimuli":
            raise Http404
        return Response(import_json(found))


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
        "is_written": upload.is_confirmed,
        "rows": report["rows"] if report else None,
        "counts": report["counts"] if report else None,
        "findings": report["findings"] if report else [],
        "errors": errors,
    }
