"""The amount owed for an assignment, by how it ended. Reads only; exclusion from the analysis does not matter here."""

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from annotators.models import Assignment, OutcomePay, Recruitment
from annotators.pages.record import full_page_state
from annotators.pages.sequence import get_section_itinerary
from studies.models import Study

from .promises import ZERO, PayTerms, Rule

if TYPE_CHECKING:
    from annotators.models.annotated import PayableAssignment

Released, Outcome = Assignment.Released, OutcomePay.Outcome
OUTCOME_BY_RELEASE: dict[str, str] = {
    Released.SCREENED_OUT: Outcome.SCREENED_OUT,
    Released.FAILED_CHECKS: Outcome.FAILED_CHECKS,
    Released.FAULT: Outcome.FAULT,
    Released.FULL: Outcome.FULL,
    Released.WITHDRAWN: Outcome.WITHDRAWN,
}


@dataclass(frozen=True, slots=True)
class OwedAmount:
    """The amount owed for an assignment. ``reward``: the pay for the last page."""

    outcome: str
    reward: Decimal
    amount: Decimal


def payable_outcome(assignment: Assignment, study: Study) -> str:
    """Return "complete", an OutcomePay outcome, or "" if nothing is owed (at work, returned, or abandoned).

    Finished work is paid, late or not, even after a withdrawal. "Fault": the person was at work when the study was
    closed, or did not fail the attention checks by their own fault.
    """
    if assignment.submitted_at:
        return "complete"
    reason = assignment.released_reason
    if reason == Released.EXPIRED:
        closed, reserved_until = study.closed_at, assignment.reserved_until
        is_cut_off = bool(
            assignment.started_at
            and closed
            and reserved_until
            and assignment.released_at >= closed
            and reserved_until > closed
        )
        return Outcome.FAULT if is_cut_off else ""
    return OUTCOME_BY_RELEASE.get(reason, "")


def assignments_considered_for_pay(recruitment: Recruitment) -> "QuerySet[PayableAssignment]":
    """Return everyone who came by this link, with ``sent`` pages. Test runs, robots and imports are not paid."""
    assignments = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE)
    placed_assignments = Assignment.objects.filter(
        study=OuterRef("study"), annotator=OuterRef("annotator"), batch__isnull=False
    )
    return (
        assignments.exclude(Q(batch=None) & Exists(placed_assignments))
        .select_related("batch__arm")
        .annotate(sent=Count("visits", filter=Q(visits__recorded_at__isnull=False)))
        .order_by("pk")
    )


def compute_amount_owed(
    assignment: Assignment, n_pages_sent: int, terms: PayTerms, assumed_outcome: str = ""
) -> OwedAmount:
    """Compute the amount.

    ``n_pages_sent``: the number of stored pages; ``assumed_outcome``: as if it had ended like this.
    """
    outcome = assumed_outcome or payable_outcome(assignment, terms.study)
    if not outcome:
        return OwedAmount("", ZERO, ZERO)
    reward = terms.reward_of(assignment.design_id, assignment.batch.arm.name if assignment.batch else None)
    promises = promises_for(assignment, outcome)
    is_share = any((rule := terms.rules.get(name)) is not None and rule.rule == Rule.SHARE for name in promises)
    pages = _pages(assignment) if is_share and n_pages_sent and assignment.batch_id else 0
    amount = max(terms.promised_pay(name, reward, n_pages_sent, pages) for name in promises)
    return OwedAmount(outcome, reward, amount)


def promises_for(assignment: Assignment, outcome: str) -> tuple[str, ...]:
    """Return the outcomes whose best promise is paid. An upheld objection never lowers what failed checks pay."""
    if outcome == Outcome.FAULT and assignment.released_reason == Released.FAULT:
        return (outcome, Outcome.FAILED_CHECKS)
    return (outcome,)


def _pages(assignment: Assignment) -> int:
    """Return the total number of pages, as determined by the answers. Cached by batch if nothing depends on answers."""
    fixed = get_section_itinerary(assignment).fixed
    return len((fixed or full_page_state(assignment).sequence).keys)
