"""Tables of metrics: the metrics of a snapshot's systems beside their scores by people."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from studies.models.fields import optional_protected_foreign_key
from studies.models.guards import AppendOnlyModel

from .snapshots import BoardSnapshot


class BoardMetricTable(AppendOnlyModel):
    """The metrics of the systems of a snapshot, beside their scores by people, as a job computed them.

    ``names``: the metrics of this site that were chosen; uploaded scores of the rounds' studies are in every table. ``result`` names
    submissions by their numbers, as snapshots do. A newer row of a snapshot replaces an older one on its page.
    """

    snapshot = models.ForeignKey(BoardSnapshot, models.PROTECT, related_name="metric_tables")
    names = models.JSONField(default=list)
    result = models.JSONField()
    result_sha256 = models.CharField(max_length=64)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-pk"]
        base_manager_name = "objects"

    def __str__(self):
        return f"metrics of {self.snapshot}"
