"""Compensation for finished work that the panel never received: its reward is paid by hand."""

from collections.abc import Collection

from django.db.models import QuerySet

from annotators.models import PanelSubmission, Payment, Recruitment
from annotators.recruitment.panels.reconcile import finished_assignments_missing_at_panel, submissions_with_match_status

from . import ledger

COMPENSATION_REASON = "The work was done and did not reach the panel."


def rewards_unpayable_by_approval(recruitment: Recruitment) -> QuerySet[Payment]:
    """Return rewards that only an approval would pay, for people who finished here but whose work the panel does not
    have.
    """
    assignment_ids = [assignment.pk for assignment, _ in finished_assignments_missing_at_panel(recruitment)]
    submissions = submissions_with_match_status(recruitment).filter(
        standing__in=["unsent", "left_after_work", "surplus"], assignment__isnull=False
    )
    assignment_ids += submissions.values_list("assignment", flat=True)
    arrived = PanelSubmission.objects.filter(recruitment=recruitment, state__in=ledger.REACHED_PANEL).values(
        "assignment"
    )
    rows = ledger.recruitment_payments(recruitment).filter(
        assignment__in=assignment_ids, state=Payment.State.DUE, way=Payment.Way.APPROVAL
    )
    rows = rows.exclude(assignment__in=arrived.filter(assignment__isnull=False))
    return rows.select_related("assignment").order_by("pk")


def add_manual_payments_for_unsent_rewards(recruitment: Recruitment, payment_pks: Collection[int], by) -> int:
    """Record the named unsent rewards as due by hand. Return how many; no other payment changes."""
    extras = [
        ledger.ExtraPayment(row.assignment, row.amount, COMPENSATION_REASON)
        for row in rewards_unpayable_by_approval(recruitment).filter(pk__in=payment_pks)
    ]
    return ledger.add_extra_payments(recruitment, extras, Payment.Kind.COMPENSATION, by)
