"""Withdrawal: erase a person's answers, release their place, and erase their panel id."""

from collections.abc import Mapping
from typing import Any

from django.db.models import F, QuerySet
from django.db.models.functions import Now

from annotators.models import Annotator, Assignment, Inquiry, PageVisit, Response, SampleValue, Verdict
from annotators.pay.id_retention import erase_ids_of_withdrawn_without_open_payments
from annotators.pay.statement import is_annotator_owed_on_withdrawal
from annotators.pay.verdicts.appeals import erase_closed_appeals_of_withdrawn
from studies.models import Batch, audit
from studies.models.guards import allowing_erasure

from .erasures import note_erasure


def withdraw_annotator_and_erase_texts(assignment: Assignment) -> int:
    """Withdraw all assignments of the annotator in this study. Return the number of withdrawn assignments.

    Texts are erased at once, ratings only if the study declared so. An open objection keeps its text until it is
    closed. The place is released unless the work was submitted. The keyed hash of the person stays, to prevent a second
    start. Their panel id is erased, unless they are owed pay or take part in another study.
    """
    study, is_owed = assignment.study, is_annotator_owed_on_withdrawal(assignment)
    with allowing_erasure():
        Annotator.objects.select_for_update(no_key=True, of=("self",)).get(pk=assignment.annotator_id)
        own_assignments = Assignment.objects.filter(study=study, annotator=assignment.annotator_id)
        # Lock batches by number, then the assignments, in the same order as all other code.
        batches = [pk for pk in own_assignments.values_list("batch", flat=True) if pk]
        list(Batch.objects.select_for_update(no_key=True, of=("self",)).filter(pk__in=batches).order_by("number"))
        held_assignments = list(
            own_assignments.filter(batch__isnull=False).select_for_update(no_key=True, of=("self",)).order_by("pk")
        )
        for row in held_assignments:
            if not row.released_at and not row.submitted_at:
                Assignment.objects.filter(pk=row.pk).update(
                    released_at=Now(), released_reason=Assignment.Released.WITHDRAWN
                )
                Batch.objects.filter(pk=row.batch_id, claimed__gt=0).update(claimed=F("claimed") - 1)  # type: ignore[misc]  # not None
        withdrawn = Assignment.objects.filter(pk__in=[row.pk for row in held_assignments], withdrawn_at=None)
        codes = list(withdrawn.values_list("code", flat=True))
        withdrawn.update(withdrawn_at=Now())
        _erase_answers(
            Response.objects.filter(assignment__in=held_assignments, erased_at=None), study.withdrawal_blanks_ratings
        )
        if study.withdrawal_blanks_ratings:
            for verdict in Verdict.objects.filter(assignment__in=held_assignments, evidence__has_key="failed_checks"):
                Verdict.objects.filter(pk=verdict.pk).update(evidence=_erase_evidence_answers(verdict.evidence))
        blanked = {"unseen": ""} if study.withdrawal_blanks_ratings else {}
        PageVisit.objects.filter(assignment__in=held_assignments).update(draft=None, **blanked)
        Inquiry.objects.filter(assignment__in=own_assignments).delete()
        SampleValue.objects.filter(column__study=study, annotator=assignment.annotator_id).delete()
        if not is_owed:
            erase_ids_of_withdrawn_without_open_payments([assignment.annotator_id])
        for code in codes:
            audit.record("withdraw", study=study, by=None, assignment_code=code)
        erase_closed_appeals_of_withdrawn()
        note_erasure(codes)
    return len(codes)


def _erase_answers(answers: QuerySet[Response], blanks_ratings: bool) -> None:
    if blanks_ratings:
        answers.update(text="", value=None, chosen=None, choice="", part="", skip_reason="", erased_at=Now())
    else:
        answers.exclude(text="").update(text="", erased_at=Now())


def _erase_evidence_answers(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return a verdict's evidence without the person's answers."""
    return {name: value for name, value in evidence.items() if name != "failed_checks"}
