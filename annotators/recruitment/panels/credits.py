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
from .reconcile import UNSENT_AFTER, import_submissions
from .secrets import available_operations

if TYPE_CHECKING:
    from annotators.models.annotated import SignedUpAssignment

State = PanelOrder.State
# A person must check these.
STUCK_STATES = (State.REFUSED, State.UNCLEAR, State.CANCELLED)
UNCREDITED_WORD, GRANTED_WORD = "no credit yet", "credit granted"
# The last page finds the order by this.
GIVEN, COMING = "given", "coming"


def creditable_assignments(recruitments: Iterable[Recruitment]) -> "QuerySet[SignedUpAssignment]":
    """Return people who reached the last page of automatically crediting links, with ``sign_up``, including later
    withdrawals.
    """
    crediting = [one.pk for one in recruitments if REGISTRY[one.channel].credits_on_completion]
    done = Assignment.objects.filter(
        recruitment__in=crediting, origin=Assignment.Origin.LIVE, submitted_at__isnull=False
    )
    signed_up = done.filter(external_ids__has_key="session").exclude(external_ids__session="")
    return signed_up.annotate(sign_up=KT("external_ids__session"))


def _sign_up_filter(prefix: str = "") -> Q:
    """Return the records about the sign-up of an assignment of ``finished``: a person with several parts has one
    sign-up.
    """
    names = {"recruitment": "recruitment", "annotator": "annotator", "external_id": "sign_up"}
    return Q(**{f"{prefix}{name}": OuterRef(ours) for name, ours in names.items()})


def order_credits(recruitment: Recruitment) -> int:
    """Order credit for everyone who finished, once per sign-up. Return the number of new orders."""
    if not REGISTRY[recruitment.channel].credits_on_completion:
        return 0
    with transaction.atomic():
        # Lock out other processes that store an answer, so that older data read here does not overwrite it.
        Recruitment.objects.select_for_update(of=("self",), no_key=True).get(pk=recruitment.pk)
        known = PanelSubmission.objects.filter(_sign_up_filter())
        first: dict[tuple[int, str], SignedUpAssignment] = {}
        for one in creditable_assignments([recruitment]).filter(~Exists(known)).order_by("pk"):
            first.setdefault((one.annotator_id, one.sign_up), one)
        if first:
            # Nothing has reached the panel yet. After half an hour a person should check this.
            whose = {
                SubmissionSnapshot("", one.sign_up, one.sign_up, WORKING, word=UNCREDITED_WORD): one
                for one in first.values()
            }
            import_submissions(recruitment, whose, PanelSubmission.Source.SERVICE, assignments=whose)
        done = PanelSubmission.objects.filter(recruitment=recruitment, assignment__submitted_at__isnull=False)
        rows = list(done.filter(state=WORKING).select_related("assignment").order_by("pk"))
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
    whose = {}
    for done in new.select_related("submission__assignment").order_by("pk"):
        row = done.submission
        whose[
            SubmissionSnapshot(
                "", row.external_id, row.external_id, APPROVED, word=GRANTED_WORD, decided_at=done.ended_at
            )
        ] = row.assignment
    if whose:
        import_submissions(recruitment, whose, PanelSubmission.Source.SERVICE, assignments=whose)


def uncredited_recruitment_ids(recruitments: Iterable[Recruitment]) -> set[int]:
    """Return links with credit to order, send or record, except those that cannot order."""
    able = [
        one
        for one in recruitments
        if REGISTRY[one.channel].credits_on_completion and "approve" in available_operations(one)
    ]
    if not able:
        return set()
    stuck = PanelOrder.objects.filter(_sign_up_filter("submission__"), operation="approve", state__in=STUCK_STATES)
    credited = PanelSubmission.objects.filter(_sign_up_filter(), state=APPROVED)
    rest = creditable_assignments(able).filter(~Exists(stuck), ~Exists(credited)).order_by()
    return set(rest.values_list("recruitment", flat=True).distinct())


def credit_status(assignment: Assignment) -> str:
    """Return GIVEN or COMING for a person's own page; "" if credit is not automatic or cannot be promised."""
    recruitment = assignment.recruitment
    if recruitment is None or assignment.submitted_at is None or assignment.origin != Assignment.Origin.LIVE:
        return ""
    if not REGISTRY[recruitment.channel].credits_on_completion:
        return ""
    mine = PanelSubmission.objects.filter(recruitment=recruitment, annotator=assignment.annotator_id)
    # Ids are erased later, but granted credit stays granted.
    about = Q(assignment=assignment) | Q(external_id=assignment.external_ids.get("session", ""))
    row = mine.filter(about).order_by("pk").first()
    if row is not None and row.state == APPROVED:
        return GIVEN
    last = PanelOrder.objects.filter(submission=row, operation="approve").order_by("pk").last() if row else None
    is_stuck = last is not None and last.state in STUCK_STATES
    is_fresh = timezone.now() - assignment.submitted_at < UNSENT_AFTER and not assignment.is_late
    return COMING if is_fresh and not is_stuck and "approve" in available_operations(recruitment) else ""
