"""Compensation for finished work that the panel never received: its reward is paid by hand."""

from collections.abc import Collection

from django.db.models import QuerySet

from annotators.models import PanelSubmission, Payment, Recruitment
from annotators.recruitment.panels.reconcile import unseen_assignments, with_match_status

from . import ledger

COMPENSATION_REASON = "The work was done and did not reach the panel."


def unsent_rewards(recruitment: Recruitment) -> QuerySet[Payment]:
    """Return rewards that only an approval would pay, for people who finished here but whose work the panel does not
    have.
    """
    gone = [assignment.pk for assignment, _ in unseen_assignments(recruitment)]
    left = with_match_status(recruitment).filter(
        standing__in=["unsent", "left_after_work", "surplus"], assignment__isnull=False
    )
    gone += left.values_list("assignment", flat=True)
    arrived = PanelSubmission.objects.filter(recruitment=recruitment, state__in=ledger.REACHED_PANEL).values(
        "assignment"
    )
    rows = ledger.payments_of(recruitment).filter(
        assignment__in=gone, state=Payment.State.DUE, way=Payment.Way.APPROVAL
    )
    rows = rows.exclude(assignment__in=arrived.filter(assignment__isnull=False))
    return rows.select_related("assignment").order_by("pk")


def compensate_unsent_rewards(recruitment: Recruitment, payment_pks: Collection[int], by) -> int:
    """Record the named unsent rewards as due by hand. Return how many; no other payment changes."""
    extras = [
        ledger.ExtraPayment(row.assignment, row.amount, COMPENSATION_REASON)
        for row in unsent_rewards(recruitment).filter(pk__in=payment_pks)
    ]
    return ledger.add_extra_payments(recruitment, extras, Payment.Kind.COMPENSATION, by)
