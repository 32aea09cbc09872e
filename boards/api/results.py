"""API views of rounds, snapshots and jobs."""

from typing import Any

from django.http import Http404
from rest_framework.response import Response

from analysis.api.base import document_operation, page_serializer, require_json_object
from analysis.api.query import page_parameters, page_response
from analysis.api.serializers import JobSerializer
from boards.access import BoardAction
from boards.models import BoardMetricTable, BoardRound, BoardSnapshot, RoundEntry
from boards.services import metric_tables, rounds, snapshots
from boards.services.snapshots import scored_withdrawals
from studies.models import Job

from . import serializers as shapes
from .base import BoardView, accepted_job_response, hashed_idempotency_key

TAG = "boards"
# What pages need to know whether they are still current.
LEFT_OUT_OF_ROWS = ("is_named", "changed_at")
# What others than members know of the state of a round that is not closed.
RUNNING = "running"


class RoundsView(BoardView):
    """The rounds of a board, and for members the plan of the next one. Others see launched rounds, and submissions of closed ones."""

    write_action = BoardAction.RUN
    parameters = page_parameters()

    @document_operation(
        "Rounds",
        page_serializer("Round", shapes.RoundSerializer, plan=shapes.RoundPlanSerializer(required=False)),
        parameters=parameters,
        tag=TAG,
    )
    def get(self, request, slug):
        found = BoardRound.objects.filter(board=self.board, number__gt=self.values["cursor"][0])
        if not self.is_member:
            found = found.filter(launched_at__isnull=False)
        page = list(found.select_related("study").order_by("number")[: self.values["page_size"] + 1])
        entries: dict[int, list[int]] = {}
        for one, number in RoundEntry.objects.filter(round__in=page).values_list("round", "submission__number"):
            entries.setdefault(one, []).append(number)
        rows = [(one.number, round_json(one, sorted(entries.get(one.pk, [])), self.is_member)) for one in page]
        extra = {"plan": plan_json(self.board)} if self.is_member else {}
        return page_response(request, self.values, rows, **extra)

    @document_operation("Open the next round; returns the job to poll", JobSerializer, request={}, status=202, tag=TAG)
    def post(self, request, slug):
        token = hashed_idempotency_key(request, rounds.KIND, self.board.pk, self.caller.user.pk)
        return accepted_job_response(rounds.request_round(self.board, self.caller.user, token))


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


class CancelRoundView(BoardView):
    """Give up a round that is not launched. Its submissions wait for the next one."""

    write_action = BoardAction.RUN

    @document_operation("Cancel a round that is not launched", shapes.RoundSerializer, request={}, tag=TAG)
    def post(self, request, slug, number):
        one = self.board.rounds.filter(number=number).first()
        if one is None:
            raise Http404
        rounds.cancel_round(one, self.caller.user)
        one = self.board.rounds.select_related("study").get(number=number)
        numbers = one.entries.order_by("submission__number").values_list("submission__number", flat=True)
        return Response(round_json(one, list(numbers), is_member=True))


class SnapshotsView(BoardView):
    """The snapshots of a board. POST takes one. A team of a private board sees its scores with its submissions instead."""

    write_action = BoardAction.RUN
    parameters = page_parameters()

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        require_visible_results(self)

    @document_operation(
        "Snapshots", page_serializer("Snapshot", shapes.SnapshotSerializer), parameters=parameters, tag=TAG
    )
    def get(self, request, slug):
        found = BoardSnapshot.objects.filter(board=self.board, number__gt=self.values["cursor"][0]).defer("result")
        page = found.order_by("number")[: self.values["page_size"] + 1]
        return page_response(request, self.values, [(one.number, snapshot_json(one)) for one in page])

    @document_operation("Take a snapshot; returns the job to poll", JobSerializer, request={}, status=202, tag=TAG)
    def post(self, request, slug):
        token = hashed_idempotency_key(request, snapshots.KIND, self.board.pk, self.caller.user.pk)
        return accepted_job_response(snapshots.request_snapshot(self.board, self.caller.user, token))


def require_visible_results(view: BoardView) -> None:
    """Raise PermissionDenied if the caller is a team of a private board."""
    if not view.board.is_public:
        view.caller.check(BoardAction.VIEW, view.board)


def snapshot_json(one: BoardSnapshot) -> dict[str, Any]:
    return {"number": one.number, "at": one.at, "labels": one.n_labels, "result_sha256": one.result_sha256}


class SnapshotDetailView(BoardView):
    """One snapshot with its results."""

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        require_visible_results(self)

    @document_operation("A snapshot with its results", shapes.SnapshotResultSerializer, tag=TAG)
    def get(self, request, slug, number):
        return self.result_response(self.board.snapshots.filter(number=number))

    def result_response(self, found) -> Response:
        one = found.select_related("board").first()
        if one is None:
            raise Http404
        result = {name: value for name, value in snapshots.public_result(one.result).items() if name != "rows"}
        rows = [
            {name: value for name, value in row.items() if name not in LEFT_OUT_OF_ROWS}
            for row in snapshots.display_rows(one)
        ]
        withdrawn = len(scored_withdrawals(self.board))
        return Response({**snapshot_json(one), "withdrawn_scored": withdrawn, "rows": rows, "result": result})


class NewestSnapshotView(SnapshotDetailView):
    """The newest snapshot with its results."""

    @document_operation("The newest snapshot with its results", shapes.SnapshotResultSerializer, tag=TAG)
    def get(self, request, slug):
        return self.result_response(self.board.snapshots.order_by("-number"))


class BoardJobView(BoardView):
    """The progress and the result of a job of this board."""

    readers = "members"

    @document_operation("A job of a board", JobSerializer, tag=TAG)
    def get(self, request, slug, job):
        stored = Job.objects.filter(code=job, kind__in=(rounds.KIND, snapshots.KIND, metric_tables.KIND)).first()
        if stored is None or stored.arguments.get("board") != self.board.pk:
            raise Http404
        return Response(JobSerializer(stored).data)


# API views of a board's metrics beside people.


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


class MetricTableView(BoardView):
    """A stored table. A team of a private board does not see it, as it does not see the snapshots."""

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        require_visible_results(self)

    def table_response(self, found) -> Response:
        stored = found.select_related("snapshot__board").first()
        if stored is None:
            raise Http404
        return Response(table_json(stored))


class BoardMetricsView(MetricTableView):
    """The metrics of a board's systems beside their scores by people, as last computed. POST computes them for the newest snapshot."""

    write_action = BoardAction.RUN

    @document_operation("Metrics beside people", shapes.BoardMetricsSerializer, tag=TAG)
    def get(self, request, slug):
        return self.table_response(BoardMetricTable.objects.filter(snapshot__board=self.board))

    @document_operation(
        "Compute metrics; returns the job to poll",
        JobSerializer,
        request=shapes.ComputeBoardMetricsSerializer,
        status=202,
        tag=TAG,
    )
    def post(self, request, slug):
        wanted = shapes.ComputeBoardMetricsSerializer(data=require_json_object(request))
        wanted.is_valid(raise_exception=True)
        token = hashed_idempotency_key(request, metric_tables.KIND, self.board.pk, self.caller.user.pk)
        names = wanted.validated_data["names"]
        return accepted_job_response(metric_tables.request_metrics(self.board, self.caller.user, names, token))


class SnapshotMetricsView(MetricTableView):
    """The metrics of the systems of one snapshot."""

    @document_operation("Metrics beside people of a snapshot", shapes.BoardMetricsSerializer, tag=TAG)
    def get(self, request, slug, number):
        return self.table_response(BoardMetricTable.objects.filter(snapshot__board=self.board, snapshot__number=number))
