"""How people come to every end of a study, and what a panel then shows of them."""

from django.utils import timezone

from annotators.models import (
    Annotator,
    Assignment,
    PageVisit,
    Recruitment,
)
from annotators.places import assign
from annotators.places.places import compute_receipt
from annotators.recruitment.panels import SubmissionSnapshot
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places
from studies.models import Batch
from tests.players import answered, claimed

EARLY = {"screened_out": "0.30", "failed_checks": "all", "full": "0.10", "fault": "all", "withdrawn": "share"}


def started(study, person, link, pages=2, **answers) -> Assignment:
    mine = claimed(study, person, link)
    assign.mark_started_and_extend_deadline(mine)
    for _ in range(pages):
        answered(mine)
    return Assignment.objects.get(pk=mine.pk)


def finished_late(study, person, link, taken_by) -> Assignment:
    """The place ran out, another has it, and the person sends the rest all the same."""
    mine = started(study, person, link)
    assign.release_assignment(mine.pk, "expired")
    assert claimed(study, taken_by, link).batch_id == mine.batch_id
    while answered(mine).next_key:
        pass
    return Assignment.objects.get(pk=mine.pk)


def screened_out(study, person, link) -> Assignment:
    mine = claimed(study, person, link)
    assign.mark_started_and_extend_deadline(mine)
    answered(mine, **{"s1.q1": "no"})
    return Assignment.objects.get(pk=mine.pk)


def slow(assignment) -> Assignment:
    """Half an hour at work, and an hour from the first page to the last."""
    start = assignment.submitted_at - timezone.timedelta(hours=1)
    Assignment.objects.filter(pk=assignment.pk).update(started_at=start, claimed_at=start)
    PageVisit.objects.filter(assignment=assignment).update(active_seconds=0)
    PageVisit.objects.filter(pk=assignment.visits.first().pk).update(active_seconds=1800)
    return Assignment.objects.get(pk=assignment.pk)


def again(link) -> Recruitment:
    return Recruitment.objects.select_related("study").get(pk=link.pk)


def imported(study) -> None:
    last = study.batches.exclude(origin="test").order_by("number").last()
    batch = Batch.objects.create(
        study=study, arm=last.arm, number=last.number + 1, wanted=1, claimed=1, origin="answered"
    )
    person = Annotator.objects.create(pool="imported", external_id="x" * 64)
    now = timezone.now()
    Assignment.objects.create(
        study=study,
        batch=batch,
        annotator=person,
        origin="imported",
        design=study.designs.last(),
        started_at=now,
        submitted_at=now,
    )


def show(link, people, state) -> None:
    seen = []
    for one in people.values():
        if one.recruitment_id == link.pk:
            key = assign.hash_person_id(link.pool, f"person {one.annotator_id}")
            Annotator.objects.filter(pk=one.annotator_id).update(pool=link.pool, external_id=key)
            seen.append(
                SubmissionSnapshot(
                    "T", f"S{one.pk}", f"person {one.annotator_id}", state, code=compute_receipt(one.code)
                )
            )
    import_submissions_and_release_places(link, seen, "service")
