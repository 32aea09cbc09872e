"""Automatic credit for people who reach the last page, at channels that support it.

heval never rejects by itself.
Each step depends only on stored data, so the next run continues an interrupted one, and a repeated run changes nothing.
If the panel refuses or does not answer clearly, a person decides, and heval does not order again.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KT
from django.utils import timezone

from annotators.models import Assignment, PanelOrder, PanelSubmission, Recruitment
from annotators.models.constants import APPROVED, WORKING
from annotators.recruitment.channels import REGISTRY

from . import SubmissionSnapshot
from .orders import create_orders
from .reconcile import UNSENT_AFTER, import_submissions_and_release_places
from .secrets import available_operations

if TYPE_CHECKING:
    from annotators.models.annotated import SignedUpAssignment

State = PanelOrder.State
# A person must check these.
STUCK_STATES = (State.REFUSED, State.UNCLEAR, State.CANCELLED)
UNCREDITED_WORD, GRANTED_WORD = "no credit yet", "credit granted"
# The last page finds the order by this.
GIVEN, COMING = "given", "coming"


def credit_earning_assignments(recruitments: Iterable[Recruitment]) -> "QuerySet[SignedUpAssignment]":
    """Return people who reached the last page of automatically crediting links, with ``sign_up``, including later
    withdrawals.
    """
    crediting = [recruitment.pk for recruitment in recruitments if REGISTRY[recruitment.channel].credits_on_completion]
    finished = Assignment.objects.filter(
        recruitment__in=crediting, origin=Assignment.Origin.LIVE, submitted_at__isnull=False
    )
    signed_up = finished.filter(external_ids__has_key="session").exclude(external_ids__session="")
    return signed_up.annotate(sign_up=KT("external_ids__session"))


def _sign_up_filter(prefix: str = "") -> Q:
    """Return the condition for records about the sign-up of an assignment of ``credit_earning_assignments``.

    A person with several parts has one sign-up.
    """
    names = {"recruitment": "recruitment", "annotator": "annotator", "external_id": "sign_up"}
    return Q(**{f"{prefix}{name}": OuterRef(outer_name) for name, outer_name in names.items()})


def record_sign_ups_and_order_credits(recruitment: Recruitment) -> int:
    """Order credit for everyone who finished, once per sign-up. Return the number of new orders."""
    if not REGISTRY[recruitment.channel].credits_on_completion:
        return 0
    with transaction.atomic():
        # Lock out other processes that store an answer, so that older data read here does not overwrite it.
        Recruitment.objects.select_for_update(of=("self",), no_key=True).get(pk=recruitment.pk)
        known_submissions = PanelSubmission.objects.filter(_sign_up_filter())
        first_by_sign_up: dict[tuple[int, str], SignedUpAssignment] = {}
        for assignment in credit_earning_assignments([recruitment]).filter(~Exists(known_submissions)).order_by("pk"):
            first_by_sign_up.setdefault((assignment.annotator_id, assignment.sign_up), assignment)
        if first_by_sign_up:
            # Nothing has reached the panel yet. After half an hour a person should check this.
            assignments = {
                SubmissionSnapshot(
                    "", assignment.sign_up, assignment.sign_up, WORKING, word=UNCREDITED_WORD
                ): assignment
                for assignment in first_by_sign_up.values()
            }
            import_submissions_and_release_places(
                recruitment, assignments, PanelSubmission.Source.SERVICE, assignments=assignments
            )
        submissions = PanelSubmission.objects.filter(recruitment=recruitment, assignment__submitted_at__isnull=False)
        rows = list(submissions.filter(state=WORKING).select_related("assignment").order_by("pk"))
        if not rows:
            return 0
        # Skip people with an earlier order.
        return create_orders(recruitment, "approve", {f"approve-{row.pk}": row for row in rows}, by=None, message="")


def record_granted_credits(recruitment: Recruitment) -> None:
    """Mark carried-out orders as approved, because such a panel shows no other state."""
    if not REGISTRY[recruitment.channel].credits_on_completion:
        return
    granted = PanelOrder.objects.filter(recruitment=recruitment, operation="approve", state=State.DONE)
    new = granted.filter(submission__assignment__isnull=False).exclude(submission__state=APPROVED)
    assignments = {}
    for order in new.select_related("submission__assignment").order_by("pk"):
        row = order.submission
        assignments[
            SubmissionSnapshot(
                "", row.external_id, row.external_id, APPROVED, word=GRANTED_WORD, decided_at=order.ended_at
            )
        ] = row.assignment
    if assignments:
        import_submissions_and_release_places(
            recruitment, assignments, PanelSubmission.Source.SERVICE, assignments=assignments
        )


def recruitment_ids_with_pending_credits(recruitments: Iterable[Recruitment]) -> set[int]:
    """Return links with credit to order, send or record, except those that cannot order."""
    crediting = [
        recruitment
        for recruitment in recruitments
        if REGISTRY[recruitment.channel].credits_on_completion and "approve" in available_operations(recruitment)
    ]
    if not crediting:
        return set()
    stuck = PanelOrder.objects.filter(_sign_up_filter("submission__"), operation="approve", state__in=STUCK_STATES)
    credited = PanelSubmission.objects.filter(_sign_up_filter(), state=APPROVED)
    pending = credit_earning_assignments(crediting).filter(~Exists(stuck), ~Exists(credited)).order_by()
    return set(pending.values_list("recruitment", flat=True).distinct())


def credit_status(assignment: Assignment) -> str:
    """Return GIVEN or COMING for a person's own page; "" if credit is not automatic or cannot be promised."""
    recruitment = assignment.recruitment
    if recruitment is None or assignment.submitted_at is None or assignment.origin != Assignment.Origin.LIVE:
        return ""
    if not REGISTRY[recruitment.channel].credits_on_completion:
        return ""
    submissions = PanelSubmission.objects.filter(recruitment=recruitment, annotator=assignment.annotator_id)
    # Ids are erased later, but granted credit stays granted.
    is_same_sign_up = Q(assignment=assignment) | Q(external_id=assignment.external_ids.get("session", ""))
    row = submissions.filter(is_same_sign_up).order_by("pk").first()
    if row is not None and row.state == APPROVED:
        return GIVEN
    last = PanelOrder.objects.filter(submission=row, operation="approve").order_by("pk").last() if row else None
    is_stuck = last is not None and last.state in STUCK_STATES
    is_fresh = timezone.now() - assignment.submitted_at < UNSENT_AFTER and not assignment.is_late
    return COMING if is_fresh and not is_stuck and "approve" in available_operations(recruitment) else ""
