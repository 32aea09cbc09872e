"""API views of imports: a file of systems, prompts and outputs, with images in a zip, as the admin's import page reads it."""

from typing import Any

from django.http import Http404, QueryDict
from rest_framework import serializers
from rest_framework.response import Response

from studies.access import Action
from studies.imports.tables import import_job, uploads
from studies.imports.tables.options import GROUPS_BY, Options
from studies.imports.tables.result import ImportReport
from studies.imports.tables.uploads import Upload
from studies.models import Job
from studies.services.lifecycle import ActionRefused

from .base import StudyView, document_operation
from .fields import CleanTextField, ListedField, ListField, StrictBooleanField, StrictIntegerField, StrictMixin
from .parsers import StrictMultiPartParser
from .renderers import RowErrors, StrictJSONParser, row_error
from .serializers import RowErrorSerializer
from .uploads import read_settings, row_errors

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
    max_form_bytes = uploads.MAX_BYTES + 2**20

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
        if refusal := import_job.reason_not_importable(self.study):
            raise ActionRefused(refusal)
        upload = uploads.store_upload(
            file.chunks(),
            file.name,
            study_id=self.study.pk,
            user_id=request.user.pk,
            options=Options(**options | {"pairs_by": tuple(options["pairs_by"])}).as_json(),
        )
        try:
            job = import_job.process_or_queue_upload(self.study, upload, request.user, is_confirmed=not is_dry_run)
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
        found = uploads.get_upload(token, self.study.pk)
        if found is None or found.kind != "stimuli":
            raise Http404
        return Response(import_json(found))


def import_json(upload: Upload) -> dict[str, Any]:
    """Return an import and its report as JSON. A job that failed says why in ``errors``."""
    job, report = import_job.job_of(upload), upload.report
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
