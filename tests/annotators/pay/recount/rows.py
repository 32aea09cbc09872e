"""Loops over raw rows, as the words of the documentation count."""

from collections import Counter

from annotators.models import (
    Assignment,
    Exclusion,
)
from studies.models import Batch


def live(study) -> list[Assignment]:
    return [one for one in Assignment.objects.order_by("pk") if one.study_id == study.pk and one.origin == "live"]


def holding(people) -> list[Assignment]:
    return [one for one in people if one.released_at is None]


def finished(people) -> list[Assignment]:
    return [one for one in people if one.submitted_at]


def in_time(people) -> list[Assignment]:
    return [one for one in finished(people) if not one.is_late]


def left_out(people) -> list[Assignment]:
    rows = list(Exclusion.objects.all())
    taken_back = {row.reverses_id for row in rows}
    out = {row.assignment_id for row in rows if row.reverses_id is None and row.pk not in taken_back}
    return [one for one in people if one.pk in out]


def open_batches(study) -> list[Batch]:
    return [one for one in Batch.objects.filter(study=study) if one.number < study.open_to and one.origin != "test"]


def free(batches) -> int:
    taken = Counter(one.batch_id for one in Assignment.objects.all() if one.released_at is None)
    assert all(one.claimed == taken[one.pk] for one in batches)
    return sum(one.wanted - taken[one.pk] for one in batches)


def counted_by_hand(study, arm=None) -> dict:
    people = [one for one in live(study) if arm is None or (one.batch and one.batch.arm_id == arm.pk)]
    batches = [one for one in open_batches(study) if arm is None or one.arm_id == arm.pk]
    inside = [one for one in holding(people) if not one.submitted_at]
    return {
        "wanted": sum(one.wanted for one in batches),
        "free": free(batches),
        "reserved": sum(not one.started_at for one in inside),
        "started": sum(bool(one.started_at) for one in inside),
        "submitted": len(finished(holding(people))),
        "excluded": len(left_out(people)),
        "replaced": sum(bool(one.replaced_at) for one in holding(people)),
        "late": sum(one.is_late for one in people),
        "released": dict(Counter(one.released_reason.replace("_", " ") for one in people if one.released_at)),
    }


STANDING = ("due", "ordered", "paid")
