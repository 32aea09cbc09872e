"""Time that passes for a place, and what the database then says of the place."""

from datetime import timedelta

from django.db import connection
from django.db.models import F
from django.utils import timezone

from annotators.models import Assignment
from annotators.places import assign
from studies.models import Batch, Study
from studies.services import lifecycle

# What the words promise of answers that are sent from now on: they count, may be late, or are late.
COUNT, MAY_BE_LATE, LATE = "your answers count", "may be marked as late", "stored and marked as late"


def row(mine) -> Assignment:
    return Assignment.objects.select_related("study", "recruitment", "batch").get(pk=mine.pk)


def pass_time(mine, **elapsed):
    """So much time passes: for the place, and for the closing of the study."""
    shift = timedelta(**elapsed)
    Assignment.objects.filter(pk=mine.pk).update(reserved_until=F("reserved_until") - shift)
    if row(mine).study.closing_at:
        move_closing(mine.study_id, shift)


def move_closing(pk, shift):
    """Past the guard of frozen studies: time itself asks nobody."""
    study = Study.objects.get(pk=pk)
    columns = ["launched_at", "closing_at"] + (["closed_at"] if study.closed_at else [])
    with connection.cursor() as cursor:
        for column in columns:
            value = Study._meta.get_field(column).get_db_prep_save(getattr(study, column) - shift, connection)
            cursor.execute(f"UPDATE studies_study SET {column} = %s WHERE id = %s", [value, pk])


def close(mine):
    lifecycle.start_closing(Study.objects.get(pk=mine.study_id), by=None)


def give_away(mine):
    assign.release_assignment(mine.pk, "expired")
    Batch.objects.filter(pk=mine.batch_id).update(claimed=F("wanted"))


def truth(mine):
    """(minutes left, what becomes of answers, whether closed), from the rows alone."""
    mine, now = row(mine), timezone.now()
    study, batch = mine.study, mine.batch
    is_closing, is_closed = study.state == "closing", study.state == "closed"
    ends = mine.reserved_until
    if is_closing:
        ends = min(ends, study.closing_at + timedelta(seconds=study.grace_seconds))
    live = not mine.released_at
    if live and not is_closed and ends > now:
        return (ends - now).total_seconds() / 60, "", is_closing
    others = Assignment.objects.filter(annotator=mine.annotator, released_at=None, submitted_at=None).exclude(
        pk=mine.pk
    )
    if is_closed or (is_closing and not live):
        return None, LATE, True
    if is_closing:
        return None, MAY_BE_LATE, True
    is_lost = not live and (batch.claimed >= batch.wanted or others.exists())
    return None, LATE if is_lost else COUNT, False
