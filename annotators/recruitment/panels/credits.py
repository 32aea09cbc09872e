"""Credit for who reached the last page, ordered by itself at channels that say so. Nobody decides, and nobody is refused by default.

Each step follows from what is written down and not from what was done before: a run that broke off is gone on with by the next,
and a second one changes nothing. What the panel refuses, or does not tell, is a person's: it is never ordered again from here.
"""

from collections.abc import Iterable

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

State = PanelOrder.State
# A person has to look at these.
STUCK_STATES = (State.REFUSED, State.UNCLEAR, State.CANCELLED)
UNCREDITED_WORD, GRANTED_WORD = "no credit yet", "credit granted"
# How the last page finds it.
GIVEN, COMING = "given", "coming"


def finished_assignments(recruitments: Iterable[Recruitment]) -> QuerySet[Assignment]:
    """Who reached the last page of links that credit by themselves, with their ``sign_up``; who left the study afterwards too."""
    crediting = [one.pk for one in recruitments if REGISTRY[one.channel].credits_on_completion]
    done = Assignment.objects.filter(
        recruitment__in=crediting, origin=Assignment.Origin.LIVE, submitted_at__isnull=False
    )
    signed_up = done.filter(external_ids__has_key="session").exclude(external_ids__session="")
    return signed_up.annotate(sign_up=KT("external_ids__session"))


def _sign_up_filter(prefix: str = "") -> Q:
    """What is about the sign-up of an assignment of ``finished``: a person with several parts has one."""
    names = {"recruitment": "recruitment", "annotator": "annotator", "external_id": "sign_up"}
    return Q(**{f"{prefix}{name}": OuterRef(ours) for name, ours in names.items()})


def order_credits(recruitment: Recruitment) -> int:
    """Order the credit of everybody who finished, once for each sign-up. Gives how many orders are new."""
    if not REGISTRY[recruitment.channel].credits_on_completion:
        return 0
    with transaction.atomic():
        # Whoever takes in an answer meanwhile waits: what it says must not be undone by what was read here before.
        Recruitment.objects.select_for_update(of=("self",), no_key=True).get(pk=recruitment.pk)
        known = PanelSubmission.objects.filter(_sign_up_filter())
        first: dict[tuple[int, str], Assignment] = {}
        for one in finished_assignments([recruitment]).filter(~Exists(known)).order_by("pk"):
            first.setdefault((one.annotator_id, one.sign_up), one)
        if first:
            # Nothing has reached the panel yet: half an hour later that is worth a person's look.
            whose = {
                SubmissionSnapshot("", one.sign_up, one.sign_up, WORKING, word=UNCREDITED_WORD): one
                for one in first.values()
            }
            import_submissions(recruitment, whose, PanelSubmission.Source.SERVICE, assignments=whose)
        done = PanelSubmission.objects.filter(recruitment=recruitment, assignment__submitted_at__isnull=False)
        rows = list(done.filter(state=WORKING).select_related("assignment").order_by("pk"))
        if not rows:
            return 0
        # Who was ordered for before is passed over.
        return create_orders(recruitment, "approve", {f"approve-{row.pk}": row for row in rows}, by=None, message="")


def record_granted_credits(recruitment: Recruitment) -> None:
    """What was carried out is approved: that is all that such a panel ever shows."""
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
    """Links with somebody whose credit is still to be ordered, sent or noted. Not those at which nothing can be ordered."""
    able = [
        one
        for one in recruitments
        if REGISTRY[one.channel].credits_on_completion and "approve" in available_operations(one)
    ]
    if not able:
        return set()
    stuck = PanelOrder.objects.filter(_sign_up_filter("submission__"), operation="approve", state__in=STUCK_STATES)
    credited = PanelSubmission.objects.filter(_sign_up_filter(), state=APPROVED)
    rest = finished_assignments(able).filter(~Exists(stuck), ~Exists(credited)).order_by()
    return set(rest.values_list("recruitment", flat=True).distinct())


def credit_status(assignment: Assignment) -> str:
    """For a person's own page: GIVEN, COMING, or "" where credit does not come by itself, or nobody can promise that it does."""
    recruitment = assignment.recruitment
    if recruitment is None or assignment.submitted_at is None or assignment.origin != Assignment.Origin.LIVE:
        return ""
    if not REGISTRY[recruitment.channel].credits_on_completion:
        return ""
    mine = PanelSubmission.objects.filter(recruitment=recruitment, annotator=assignment.annotator_id)
    # Ids are erased one day, and what was given stays given.
    about = Q(assignment=assignment) | Q(external_id=assignment.external_ids.get("session", ""))
    row = mine.filter(about).order_by("pk").first()
    if row is not None and row.state == APPROVED:
        return GIVEN
    last = PanelOrder.objects.filter(submission=row, operation="approve").order_by("pk").last() if row else None
    is_stuck = last is not None and last.state in STUCK_STATES
    is_fresh = timezone.now() - assignment.submitted_at < UNSENT_AFTER and not assignment.is_late
    return COMING if is_fresh and not is_stuck and "approve" in available_operations(recruitment) else ""
