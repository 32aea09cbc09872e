"""API views of rounds, snapshots, metrics beside people, and jobs."""

from typing import Any

from django.http import FileResponse, Http404
from drf_spectacular.types import OpenApiTypes
from rest_framework.generics import ListAPIView, RetrieveAPIView

from analysis.api.base import MEDIA_TYPES, JobMixin, PostMixin
from analysis.api.serializers import JobSerializer
from boards.access import BoardAction
from boards.models import BoardMetricTable, BoardRound, BoardSnapshot, RoundEntry
from boards.services import labels, metric_tables, rounds, snapshots
from boards.services.annotators import BoardScreening, read_board_screening
from studies.models import Job

from . import serializers as shapes
from .base import BoardView

# What others than members know of the state of a round that is not closed.
RUNNING = "running"


class RoundView(BoardView):
    write_action = BoardAction.RUN
    queryset = BoardRound.objects.select_related("study")
    lookup_field = "number"
    serializer_class = shapes.RoundSerializer


class RoundsView(JobMixin, RoundView, ListAPIView):
    """The rounds of a board, and for members the plan of the next one. Others see launched rounds, and submissions of closed ones."""

    summaries = {"GET": "Rounds", "POST": "Open the next round; returns the job to poll"}
    page_key = "number"
    page_fields = {"plan": shapes.RoundPlanSerializer(required=False)}
    job_kind = rounds.KIND

    def get_queryset(self):
        found = super().get_queryset()
        return found if self.is_member else found.filter(launched_at__isnull=False)

    def list(self, request, slug):
        page = self.get_page()
        entries: dict[int, list[int]] = {}
        for one, number in RoundEntry.objects.filter(round__in=page).values_list("round", "submission__number"):
            entries.setdefault(one, []).append(number)
        rows = [round_json(one, sorted(entries.get(one.pk, [])), self.is_member) for one in page]
        response = self.get_paginated_response(rows)
        if self.is_member:
            response.data["plan"] = plan_json(self.board)
        return response

    def start_job(self, token: str | None) -> Job:
        return rounds.request_round(self.board, self.caller.user, token)


def round_json(one: BoardRound, submissions: list[int], is_member: bool) -> dict[str, Any]:
    is_public = is_member or one.is_closed
    fields = {
        "number": one.number,
        "state": "cancelled" if one.cancelled_at else one.study.state if is_public else RUNNING,
        "launched_at": one.launched_at,
        "closed_at": one.study.closed_at,
        "submissions": submissions if is_public else None,
        **one.public_draw,
    }
    if is_member:
        fields |= {
            "study": one.study.code,
            "expected_cost": str(one.expected_cost),
            "currency": one.study.currency,
            "planned_at": one.planned_at,
            "cancelled_at": one.cancelled_at,
            "problem": one.problem,
        }
    return fields


def plan_json(board) -> dict[str, Any]:
    plan = rounds.plan_round(board)
    return {
        "submissions": [one.number for one in plan.submissions],
        "anchors": [one.number for one in plan.anchors],
        "places": plan.places,
        "cost": f"{plan.cost:.2f}",
        "currency": board.template.currency,
        "n_waiting": plan.n_waiting,
        "refusal": plan.refusal,
        "next_launch_at": rounds.next_launch_at(board),
    }


class CancelRoundView(PostMixin, RoundView):
    """Give up a round that is not launched. Its submissions wait for the next one."""

    summaries = {"POST": "Cancel a round that is not launched"}

    def perform(self) -> dict[str, Any]:
        one = self.get_object()
        one.board = self.board
        rounds.cancel_round(one, self.caller.user)
        one = self.get_object()
        numbers = one.entries.order_by("submission__number").values_list("submission__number", flat=True)
        return round_json(one, list(numbers), is_member=True)


class ResultsView(BoardView):
    """Results of a board. A team of a private board does not see them; it sees its scores with its submissions."""

    write_action: BoardAction | None = BoardAction.RUN

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        if not self.board.is_public:
            self.caller.check(BoardAction.VIEW, self.board)


class SnapshotsView(JobMixin, ResultsView, ListAPIView):
    """The snapshots of a board. POST takes one. A team of a private board sees its scores with its submissions instead."""

    summaries = {"GET": "Snapshots", "POST": "Take a snapshot; returns the job to poll"}
    queryset = BoardSnapshot.objects.defer("result")
    page_key = "number"
    serializer_class = shapes.SnapshotSerializer
    job_kind = snapshots.KIND

    def start_job(self, token: str | None) -> Job:
        return snapshots.request_snapshot(self.board, self.caller.user, token)


class SnapshotDetailView(ResultsView, RetrieveAPIView):
    """One snapshot with its results."""

    write_action = None
    summaries = {"GET": "A snapshot with its results"}
    queryset = BoardSnapshot.objects.select_related("board")
    lookup_field = "number"
    serializer_class = shapes.SnapshotResultSerializer


class NewestSnapshotView(SnapshotDetailView):
    """The newest snapshot with its results."""

    summaries = {"GET": "The newest snapshot with its results"}

    def get_object(self) -> BoardSnapshot:
        return first_or_404(self.get_queryset().order_by("-number"))


def first_or_404(rows) -> Any:
    row = rows.first()
    if row is None:
        raise Http404
    return row


class BoardAnnotatorsView(BoardView, RetrieveAPIView):
    """What the answers to test questions in all rounds say about the board's annotators, as last computed."""

    readers = "members"
    summaries = {"GET": "Annotators of all rounds and what test questions say about them"}
    serializer_class = shapes.BoardScreeningSerializer

    def get_object(self) -> BoardScreening:
        found = read_board_screening(self.board)
        if found is None:
            raise Http404
        return found


class BoardJobView(BoardView, RetrieveAPIView):
    """The progress and the result of a job of this board."""

    readers = "members"
    summaries = {"GET": "A job of a board"}
    serializer_class = JobSerializer

    def get_object(self) -> Job:
        kinds = (rounds.KIND, snapshots.KIND, metric_tables.KIND, labels.KIND)
        stored = first_or_404(Job.objects.filter(code=self.kwargs["job"], kind__in=kinds))
        if stored.arguments.get("board") != self.board.pk:
            raise Http404
        return stored


class LabelsView(JobMixin, BoardView):
    """Start the job that writes one file with the labels of all closed rounds, for people who develop metrics."""

    write_action = BoardAction.RUN
    summaries = {"POST": "Write the labels of all rounds; returns the job to poll"}
    body_serializer_class = shapes.LabelsRequestSerializer
    job_kind = labels.KIND

    def start_job(self, token: str | None, **sent: Any) -> Job:
        return labels.request_labels(self.board, self.caller.user, sent.get("format", "csv"), token)


class LabelsFileView(BoardView):
    """The file with the labels of all rounds. It is deleted after a week, and once a person or a submission was withdrawn."""

    readers = "members"
    summaries = {"GET": "The file of labels that a job wrote"}
    media_type, response_type = "application/octet-stream", OpenApiTypes.BINARY
    throttle_scope = "export"

    def get(self, request, slug, job):
        found = labels.find_labels_file(self.board, job)
        if found is None:
            raise Http404
        written, path = found
        return FileResponse(
            path.open("rb"),
            as_attachment=True,
            filename=labels.file_name(self.board, written),
            content_type=MEDIA_TYPES[written.arguments["format"]],
        )


class BoardMetricsView(JobMixin, ResultsView, RetrieveAPIView):
    """The metrics of a board's systems beside their scores by people, as last computed. POST computes them for the newest snapshot."""

    summaries = {"GET": "Metrics beside people", "POST": "Compute metrics; returns the job to poll"}
    serializer_class = shapes.BoardMetricsSerializer
    body_serializer_class = shapes.ComputeBoardMetricsSerializer
    job_kind = metric_tables.KIND

    def get_object(self) -> dict[str, Any]:
        return table_json(first_or_404(tables_of(self.board)))

    def start_job(self, token: str | None, names: list[str]) -> Job:
        return metric_tables.request_metrics(self.board, self.caller.user, names, token)


class SnapshotMetricsView(ResultsView, RetrieveAPIView):
    """The metrics of the systems of one snapshot."""

    write_action = None
    summaries = {"GET": "Metrics beside people of a snapshot"}
    serializer_class = shapes.BoardMetricsSerializer

    def get_object(self) -> dict[str, Any]:
        return table_json(first_or_404(tables_of(self.board).filter(snapshot__number=self.kwargs["number"])))


def tables_of(board):
    return BoardMetricTable.objects.filter(snapshot__board=board).select_related("snapshot__board")


def table_json(stored: BoardMetricTable) -> dict[str, Any]:
    """Return a table of metrics with the names that everybody may see now. Withdrawn submissions are left out."""
    facts = snapshots.public_facts(stored.snapshot.board)
    names = {number: one["name"] for number, one in facts.items() if not one["is_withdrawn"]}

    def named(rows):
        return [row | {"name": names[row["submission"]]} for row in rows if row["submission"] in names]

    # Tables of before 2026-11-27 have no means and no comparisons.
    tables = [
        {
            **one,
            **{part: named(one[part]) for part in ("rows", "paper")},
            "means": [own | {"rows": named(own["rows"])} for own in one.get("means", ())],
            "comparisons": one.get("comparisons", []),
        }
        for one in stored.result["tables"]
    ]
    return {
        "snapshot": stored.snapshot.number,
        "at": stored.at,
        "names": stored.names,
        "level": stored.result["level"],
        "result_sha256": stored.result_sha256,
        "tables": tables,
    }
