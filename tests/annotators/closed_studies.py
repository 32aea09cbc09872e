"""Studies that were closed some days ago."""

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from studies.models import Study
from studies.services import lifecycle


def closed_long_ago(study, days):
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    before = timezone.now() - timedelta(days=days)
    QuerySet(Study).filter(pk=study.pk).update(launched_at=before, closing_at=before, closed_at=before)
