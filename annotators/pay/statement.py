"""The pay statement on a person's own page: amount and way of payment. It reveals no other person and no condition."""

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Q, Sum

from annotators.models import Assignment, OutcomePay, PageVisit, Payment
from annotators.models.identity import get_person_id
from annotators.recruitment.channels import REGISTRY

from . import id_retention
from .owed_amounts import assignments_considered_for_pay, compute_amount_owed, payable_outcome, promises_for
from .promises import ZERO, Rule, get_pay_terms


@dataclass(frozen=True, slots=True)
class PayStatement:
    """The pay that a person reads on their own page. ``amount`` is 0 if the page said that this is not paid."""

    amount: Decimal
    currency: str
    payment_text: str
    is_share: bool
    sent: int


def pay_statement(assignment: Assignment, assumed_outcome: str = "") -> PayStatement | None:
    """Return this person's pay for how their work ended, or would end now with ``assumed_outcome``; None if nothing was
    promised.
    """
    recruitment = assignment.recruitment
    if recruitment is None or assignment.origin != Assignment.Origin.LIVE:
        return None
    # If a person found no place and got one later, only the work is paid.
    if (
        assignment.batch_id is None
        and not assignments_considered_for_pay(recruitment).filter(pk=assignment.pk).exists()
    ):
        return None
    outcome = (
        assumed_outcome
        if assumed_outcome and not assignment.submitted_at
        else payable_outcome(assignment, assignment.study)
    )
    terms = get_pay_terms(recruitment)
    if not outcome or (outcome != "complete" and terms.rules.keys().isdisjoint(promises_for(assignment, outcome))):
        return None
    n_sent = PageVisit.objects.filter(assignment=assignment, recorded_at__isnull=False).count()
    owed = compute_amount_owed(assignment, n_sent, terms, outcome)
    if not owed.reward:
        return None
    rule = terms.rules.get(outcome)
    return PayStatement(
        owed.amount,
        terms.currency,
        _payment_way_text(recruitment.channel, outcome),
        bool(rule and rule.rule == Rule.SHARE),
        n_sent,
    )


def _payment_way_text(channel: str, outcome: str) -> str:
    ways, name = REGISTRY[channel].pays_by, REGISTRY[channel].label
    if outcome == "complete" and Payment.Way.APPROVAL in ways:
        return f"You receive it through {name}, once the researchers approve your work there."
    if outcome == OutcomePay.Outcome.SCREENED_OUT and Payment.Way.SCREEN_OUT in ways:
        return f"You receive it through {name}."
    if Payment.Way.BONUS in ways:
        return f"You receive it through {name}, as a bonus or by approval."
    return "You receive it from the panel or the people who invited you."


def is_annotator_owed_on_withdrawal(assignment: Assignment) -> bool:
    """Return whether a person who leaves now is owed partial pay, so that their panel id is needed until it is paid."""
    same_person = {"annotator": assignment.annotator_id}
    if id_retention.unpaid_payments().filter(
        assignment__annotator=assignment.annotator_id
    ).exists() or id_retention.finished_assignments_awaiting_credit().filter(**same_person):
        return True
    assignments = Assignment.objects.filter(study=assignment.study_id, **same_person)
    paid = Payment.objects.filter(assignment__in=assignments, state=Payment.State.PAID, kind__in=Payment.COVERING)
    amount_by_assignment = dict(paid.order_by().values_list("assignment").annotate(Sum("amount")))
    parts = assignments.filter(Q(pk=assignment.pk) | Q(submitted_at__isnull=False))
    for part in parts.select_related("study", "recruitment", "batch__arm"):
        pay = pay_statement(part, "withdrawn")
        if pay is not None and pay.amount > amount_by_assignment.get(part.pk, ZERO):
            return True
    return False


def reason_id_retained_on_withdrawal(assignment: Assignment) -> str:
    """Return why the panel id of a leaving person is kept: "owed", "elsewhere" for another study, or "" if erased at
    once.
    """
    if assignment.recruitment_id is None or get_person_id(assignment.annotator) is None:
        return ""
    other_work = (
        id_retention.unwithdrawn_assignments_before_id_erasure()
        .filter(annotator=assignment.annotator_id)
        .exclude(study=assignment.study_id)
    )
    return "owed" if is_annotator_owed_on_withdrawal(assignment) else "elsewhere" if other_work.exists() else ""
