"""API views of a board's metrics beside people."""

from typing import Any

from django.http import Http404
from rest_framework.response import Response

from analysis.api.base import document_operation, require_json_object
from analysis.api.serializers import JobSerializer
from boards.access import BoardAction
from boards.models import BoardMetricTable
from boards.services import metric_tables, snapshots

from . import serializers as shapes
from .base import BoardView, accepted_job_response, hashed_idempotency_key
from .results import require_visible_results

TAG = "boards"


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
