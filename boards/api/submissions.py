"""API views of submissions: list, submit, withdraw, publish, choose anchors, compare."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, QueryDict
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.response import Response

from analysis.api.base import PostMixin
from analysis.api.query import Parameter, choice_parser, integer_parser, parse_single_line
from analysis.api.renderers import FieldError, RowErrors, StrictJSONParser, flatten_field_errors, row_error, row_errors
from analysis.api.uploads import json_lines, require_json_object
from boards.access import BoardAction
from boards.models import Submission, Team
from boards.services import images, rounds, submissions
from boards.services.preferences import compare_submissions
from boards.services.rounds import keys_to_answer
from boards.services.snapshots import STATES, SubmissionStatus, find_statuses, newest_snapshot, rows_by_submission
from boards.services.submissions import SubmissionRefused
from studies.models import Job
from studies.services.lifecycle import ActionRefused

from . import serializers as shapes
from .base import ZIP, BoardView, SubmissionFormParser, ZipBody, ZipBodyParser, own_submissions

# The fields of a submission whose body is a ZIP alone. The serializer checks their values.
FIELDS_OF_ZIP = tuple(
    Parameter(name, str, f"{text} Only if the body is a ZIP.")
    for name, text in (
        ("name", "The name of the system."),
        ("description", "A description for the board's page."),
        ("url", "A web address."),
        ("is_anonymous", "true: hide the name until it is published."),
        ("team", "Only for members: the team that submits."),
    )
)


def submission_json(one: Submission, status: SubmissionStatus, *, is_own: bool) -> dict[str, Any]:
    """Return a submission as JSON. ``is_own``: for its team and for members, who may know everything."""
    is_named = is_own or not (one.is_anonymous or one.withdrawn_at)
    fields = {
        "number": one.number,
        "name": one.name if is_own else one.public_name,
        "team": one.team.name if one.team and is_named else "",
        "description": one.description if is_named else "",
        "url": one.url if is_named else "",
        "state": status.state,
        "round": status.round,
        "snapshot": status.snapshot,
        "overall": status.overall,
        "scores": status.row["scores"] if status.row else None,
        "is_anonymous": one.is_anonymous,
        "is_anchor": one.is_anchor,
        "is_human": one.is_human,
        "is_reference": one.team_id is None,
        "received_at": one.received_at,
        "published_at": one.published_at,
        "withdrawn_at": one.withdrawn_at,
    }
    if is_own:
        fields |= {"filename": one.filename, "sha256": one.sha256, "n_outputs": one.n_outputs, "metrics": one.metrics}
    return fields


class SubmissionBaseView(BoardView):
    serializer_class: Any = shapes.SubmissionSerializer

    def answer(self, result: Submission, status: int | None = None, *, is_own: bool = True) -> Response:
        one = Submission.objects.select_related("team", "board").get(pk=result.pk)
        statuses = find_statuses(one.board, [one], newest_snapshot(one.board))
        fields = submission_json(one, statuses[one.number], is_own=is_own)
        return Response(fields, status=status or self.success_status)


class SubmissionsView(SubmissionBaseView, ListAPIView):
    """The submissions of a board. Teams see their own; on a public board, everybody sees scored ones."""

    summaries = {"GET": "Submissions", "POST": "Submit outputs; a repeated request returns the stored submission"}
    parser_classes = (StrictJSONParser, SubmissionFormParser, ZipBodyParser)
    write_throttle_scope = "submit"
    parameters = (
        Parameter("name", parse_single_line, "Only the submission with this name."),
        Parameter("state", choice_parser(*STATES), "Only submissions in this state.", enum=STATES),
    )
    body_parameters = FIELDS_OF_ZIP
    documented_body = {
        "application/json": shapes.SubmissionRequestSerializer,
        "multipart/form-data": shapes.SubmissionFormSerializer,
        ZIP: OpenApiTypes.BINARY,
    }
    success_status = 201
    other_results = {
        202: OpenApiResponse(
            shapes.SubmissionCheckSerializer, description="A job checks the images. Poll checks/<check>/."
        )
    }

    def query_parameters(self):
        is_zip = self.request.content_type.partition(";")[0].strip().lower() == ZIP
        return super().query_parameters() if self.is_read or is_zip else ()

    def list(self, request, slug):
        snapshot = newest_snapshot(self.board)
        own = set(own_submissions(self.caller, self.board).values_list("pk", flat=True))
        seen = Q(pk__in=own)
        if self.board.is_public:
            seen |= Q(number__in=list(rows_by_submission(snapshot)))
        found = Submission.objects.filter(seen, board=self.board).select_related("team").order_by("number")
        statuses = find_statuses(self.board, found, snapshot)
        rows = [
            (one.number, submission_json(one, statuses[one.number], is_own=one.pk in own))
            for one in found
            if one.number > self.values["cursor"][0] and self.values["state"] in (None, statuses[one.number].state)
        ]
        # By the name that this caller sees: a filter must not reveal a hidden name.
        rows = [row for row in rows if self.values["name"] in (None, row[1]["name"])]
        return self.page_of(rows[: self.rows_needed])

    def post(self, request, slug):
        if not self.caller.is_team_of(self.board):
            self.caller.check(BoardAction.MANAGE_TEAMS, self.board)
        is_form = isinstance(request.data, QueryDict)
        if isinstance(request.data, ZipBody):
            fields = {name: value for name, value in self.values.items() if value is not None}
            stored, is_new = self._submit_images(_with_flag(fields), request.data, "submission.zip")
        elif is_form and self.board.takes_images:
            file = request.FILES.get("file")
            stored, is_new = self._submit_images(_form_fields(request), file, file.name if file else "")
        else:
            fields, filename, data = self._read_outputs()
            stored, is_new = submissions.submit_outputs(
                self.board, filename=filename, file=data, **self._with_team(fields)
            )
        if isinstance(stored, Job):
            return Response(check_json(stored), status=202)
        return self.answer(stored, 201 if is_new else 200)

    def _read_outputs(self) -> tuple[dict[str, Any], str, bytes]:
        """Return the fields of a submission, its file's name and its file. Raise RowErrors with all that is wrong."""
        request = self.request
        is_form = isinstance(request.data, QueryDict)
        body = _form_fields(request) if is_form else dict(require_json_object(request))
        filename, data, errors = _uploaded_file(request) if is_form else _sent_rows(body.pop("outputs", None))
        serializer = shapes.SubmissionFieldsSerializer(data=body)
        if not serializer.is_valid():
            errors = [*flatten_field_errors(serializer.errors), *errors]
            if data:
                try:
                    sent = body.get("columns")
                    mapping = [text for text in sent if isinstance(text, str)] if isinstance(sent, list) else []
                    submissions.read_outputs_file(filename, data, keys_to_answer(self.board), mapping, proposes=False)
                except SubmissionRefused as refused:
                    errors += row_errors(refused.problems)
        if errors:
            raise RowErrors(errors)
        return dict(serializer.validated_data), filename, data

    def _submit_images(self, sent: dict[str, Any], file: Any, filename: str) -> tuple[Submission | Job, bool]:
        """Store a ZIP of images, or start the job that checks it. ``file``: it, in chunks, if it is the body."""
        serializer = shapes.SubmissionFieldsSerializer(data=sent)
        errors = [] if serializer.is_valid() else flatten_field_errors(serializer.errors)
        errors += [] if file is not None else _uploaded_file(self.request)[2]
        if errors:
            raise RowErrors(errors)
        fields = self._with_team(serializer.validated_data)
        if fields.pop("columns"):
            raise FieldError("columns", "The table of a ZIP has heval's names of columns. Leave this field out.")
        return images.submit_images(self.board, filename=filename, chunks=file.chunks(), **fields)

    def _with_team(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with the team instead of its name, and with the token of a repeated request."""
        team = self._team(fields.get("team"))
        return {**fields, "team": team, "request_token": self.request_token}

    def _team(self, name: str | None) -> Team:
        if self.caller.team is not None:
            if name not in (None, self.caller.team.name):
                raise FieldError("team", "The key belongs to another team. Leave this field out.")
            return self.caller.team
        team = Team.objects.filter(board=self.board, name=name, revoked_at=None).first() if name else None
        if team is None:
            raise FieldError("team", "A member submits for a team. Send the name of a team that is not revoked.")
        return team


def _form_fields(request) -> dict[str, Any]:
    """Return the fields beside the file; the last of repeated ones. A form has only texts."""
    fields = {name: request.data[name] for name in request.data if name != "file"}
    return _with_flag(fields | ({"columns": request.data.getlist("columns")} if "columns" in fields else {}))


def _with_flag(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields that were sent as texts, with the flag among them as true or false."""
    flag = fields.get("is_anonymous")
    return fields | ({"is_anonymous": flag == "true"} if flag in ("true", "false") else {})


def _uploaded_file(request) -> tuple[str, bytes, list[dict[str, Any]]]:
    file = request.FILES.get("file")
    if file is None:
        return "", b"", [row_error(None, "file", "The form has no file. Send the outputs as a file named “file”.")]
    return file.name, file.read(submissions.MAX_FILE_BYTES + 1), []


def _sent_rows(rows: Any) -> tuple[str, bytes, list[dict[str, Any]]]:
    """Return the outputs of a JSON body as the lines of a file, so that one reader checks both."""
    if not isinstance(rows, list) or not rows:
        text = "There are no outputs. Send a list with one object for each prompt."
        return "", b"", [row_error(None, "outputs", text)]
    return "outputs.jsonl", json_lines(rows), []


def check_json(job: Job) -> dict[str, Any]:
    """Return the progress of a check, and when it has ended, the submission's number or the problems."""
    result = job.result or {}
    failed = [row_error(None, None, job.error)] if job.error else []
    return {
        "check": str(job.code),
        "state": job.state,
        "doing": job.doing,
        "done": job.done,
        "total": job.total,
        "submission": result.get("submission"),
        "errors": [row_error(*problem) for problem in result.get("problems", [])] or failed,
        "n_errors": result.get("n_problems", len(failed)),
    }


class SubmissionCheckView(BoardView):
    """The progress of the check of a submission of images, and its result."""

    readers = "submitters"
    summaries = {"GET": "The check of a submission"}
    serializer_class = shapes.SubmissionCheckSerializer

    def get(self, request, slug, job):
        found = images.find_check(self.board, self.caller.team, job)
        if found is None:
            raise Http404
        return Response(check_json(found))


class SubmissionView(SubmissionBaseView):
    """A resource of one submission that the caller sees."""

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.submission, self.is_own = self.find_submission(kwargs["number"])

    def find_submission(self, number: int) -> tuple[Submission, bool]:
        """Return a submission, and whether the caller may know everything about it."""
        own = own_submissions(self.caller, self.board).select_related("team", "board").filter(number=number).first()
        if own is not None:
            return own, True
        one = self.board.submissions.select_related("team", "board").filter(number=number).first()
        if one is None or not self.board.is_public or number not in rows_by_submission(newest_snapshot(self.board)):
            raise Http404
        return one, False

    def require_own_team(self) -> None:
        if self.caller.team is None or self.submission.team_id != self.caller.team.pk:
            raise PermissionDenied("Only the team of the submission may do this. Send the key of the team.")


class SubmissionDetailView(SubmissionView):
    """One submission with its state and its scores."""

    summaries = {"GET": "A submission"}

    def get(self, request, slug, number):
        return self.answer(self.submission, is_own=self.is_own)


class WithdrawSubmissionView(PostMixin, SubmissionView):
    """Withdraw a submission. Its name disappears, and later rounds and snapshots leave it out."""

    summaries = {"POST": "Withdraw a submission"}

    def perform(self) -> Submission:
        if self.submission.team_id is None:
            raise ActionRefused("A system of the template cannot be withdrawn. Close the board instead.")
        if self.caller.team is not None:
            self.require_own_team()
        else:
            self.caller.check(BoardAction.MANAGE_TEAMS, self.board)
        submissions.withdraw(self.submission, self.caller.user)
        return self.submission


class PublishSubmissionView(PostMixin, SubmissionView):
    """Show the name of an anonymous submission. Only its team may do this, and cannot undo it."""

    summaries = {"POST": "Publish the name of a submission"}

    def perform(self) -> Submission:
        self.require_own_team()
        if self.submission.withdrawn_at:
            raise ActionRefused("The submission is withdrawn, so its name stays hidden. Submit it again.")
        submissions.publish(self.submission)
        return self.submission


class AnchorSubmissionView(PostMixin, SubmissionView):
    """Let later rounds score a submission again, or no longer."""

    write_action = BoardAction.RUN
    summaries = {"POST": "Choose an anchor"}
    body_serializer_class = shapes.AnchorSerializer

    def perform(self, is_anchor: bool) -> Submission:
        rounds.choose_anchor(self.submission, self.caller.user, is_anchor)
        return self.submission


class CompareSubmissionView(SubmissionView, RetrieveAPIView):
    """The difference from another submission, with the simultaneous interval of the newest snapshot."""

    summaries = {"GET": "Compare two submissions"}
    parameters = (Parameter("baseline", integer_parser(1), "Number of the other submission.", None, int),)
    serializer_class = shapes.ComparisonSerializer

    def get_object(self) -> Any:
        baseline = self.values["baseline"]
        if baseline is None:
            raise FieldError("baseline", "This parameter is missing. Send the number of a submission.")
        self.find_submission(baseline)
        snapshot = newest_snapshot(self.board)
        if snapshot is None:
            raise ActionRefused("The board has no snapshot yet. Wait until its first round is closed.")
        return compare_submissions(snapshot, self.submission.number, baseline)
