"""The overview of a person's parts, for work over several days: done, started and free parts, and their pay."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet

from annotators.models import Assignment
from annotators.pages.record import full_page_state
from annotators.pay.promises import PayTerms, get_pay_terms
from annotators.pay.verdict_status import barring_status
from annotators.places import assign, places
from annotators.places.barrings import is_barred
from annotators.places.places import Offer, arm_offer, compute_receipt
from annotators.recruitment.links import LinkState, recruitment_link_state
from studies.design.wording import wording_of


@dataclass(frozen=True, slots=True)
class Part:
    """One batch of a person, without its number in the study. ``state`` is "done", "begun" or "given back"."""

    number: int
    state: str
    path: str
    offer: Offer
    at: datetime | None = None
    receipt: str = ""
    page: int = 0
    pages: int = 0


def count_startable_parts(assignment: Assignment, own_assignments: Sequence[Assignment]) -> int:
    """Return how many parts this person could start now.

    ``own_assignments``: all of theirs with batches, oldest first.
    """
    study = assignment.study
    n_left = study.batches_per_annotator - sum(row.submitted_at is not None for row in own_assignments)
    has_left = any(row.withdrawn_at or row.released_reason in assign.FINAL_RELEASE_REASONS for row in own_assignments)
    if n_left <= 0 or has_left or not _is_link_open(assignment):
        return 0
    if own_assignments and is_barred(study, assignment.annotator_id):
        return 0
    arms = [own_assignments[0].batch.arm_id] if own_assignments else []
    own = [row.batch_id for row in own_assignments if assign.is_place_revivable(row)]
    return min(places.claimable_batches(study, assignment.annotator, arms, own).count(), n_left)


@dataclass(frozen=True, slots=True)
class RemainingParts:
    """The remaining parts of a person who has finished one.

    ``has_begun_part``: another part is started but not finished.
    """

    has_begun_part: bool
    free: int
    done: int
    allowed: int

    @property
    def is_any_left(self) -> bool:
        return self.has_begun_part or self.free > 0


def get_remaining_parts(assignment: Assignment) -> RemainingParts | None:
    """Return the remaining parts, or None if a person may do only one part."""
    study = assignment.study
    if study.batches_per_annotator <= 1 or assignment.recruitment is None:
        return None
    own_assignments = list(_own_assignments(assignment).select_related("batch"))
    has_begun_part = any(not row.submitted_at and not row.released_at for row in own_assignments)
    n_done = sum(row.submitted_at is not None for row in own_assignments)
    free = count_startable_parts(assignment, own_assignments)
    return RemainingParts(has_begun_part, free, n_done, study.batches_per_annotator)


def _own_assignments(assignment: Assignment) -> QuerySet[Assignment]:
    same = {"study": assignment.study, "annotator": assignment.annotator_id, "origin": assignment.origin}
    return Assignment.objects.filter(batch__isnull=False, **same).order_by("pk")


def parts_overview_context(assignment: Assignment) -> dict[str, Any]:
    """Return the context of the overview page. The number of queries does not grow with the number of parts."""
    study, recruitment = assignment.study, assignment.recruitment
    own_assignments = list(_own_assignments(assignment).select_related("study", "recruitment", "batch__arm"))
    terms = get_pay_terms(recruitment) if recruitment else None
    parts = [
        _describe_part(number, row, terms if recruitment and row.recruitment_id == recruitment.pk else None)
        for number, row in enumerate(own_assignments, 1)
    ]
    done = [part for part in parts if part.state == "done"]
    begun = [part for part in parts if part.state != "done"]
    allowed = study.batches_per_annotator
    free = count_startable_parts(assignment, own_assignments)
    wording = wording_of(study, assignment.design_id)
    pays = [part.offer.reward for part in parts if part.offer.reward is not None]
    last = next((row for row in reversed(own_assignments) if row.submitted_at), None)
    return {
        "study": wording.study,
        "parts": parts,
        "n_done": len(done),
        "allowed": allowed,
        "begun": begun,
        "free": free,
        "barring": barring_status(study, assignment.annotator_id),
        "is_open": _is_link_open(assignment),
        "may_start": bool(free and not begun and last),
        "start_path": f"/p/{last.code}/another/" if last else "",
        "assignment_path": f"/p/{assignment.code}/",
        "has_agreed": assignment.consented_at is not None,
        "earned": sum((part.offer.reward for part in done if part.offer.reward), Decimal(0)),
        "each": pays[0] if len(set(pays)) == 1 else None,
        "is_paid": any(pays),
        "currency": (recruitment.currency if recruitment else "") or wording.study["currency"],
        "minutes": parts[-1].offer.minutes if parts else None,
    }


def _describe_part(number: int, assignment: Assignment, terms: PayTerms | None) -> Part:
    wording = wording_of(assignment.study, assignment.design_id)
    reward = assignment.recruitment.reward if assignment.recruitment else None
    offer = arm_offer(wording, wording.arms[assignment.batch.arm.name], reward)
    if terms and offer.reward is not None:
        offer = replace(
            offer, reward=terms.reward_of(assignment.design_id, assignment.batch.arm.name)
        )  # pay may have risen since
    path = f"/p/{assignment.code}/"
    if assignment.submitted_at:
        return Part(number, "done", f"{path}done/", offer, assignment.submitted_at, compute_receipt(assignment.code))
    if assignment.released_at:
        return Part(number, "given back", path, offer, assignment.released_at)
    # At most one part is started and not released, so this takes two queries in all.
    state = full_page_state(assignment)
    pages = len(state.sequence.keys)
    recorded = sum(state.is_recorded(key) for key in state.sequence.keys)
    return Part(number, "begun", path, offer, assignment.reserved_until, page=min(recorded + 1, pages), pages=pages)


def _is_link_open(assignment: Assignment) -> bool:
    """Return whether the link by which this person came accepts new work."""
    link = assignment.recruitment
    return link is not None and recruitment_link_state(assignment.study, link) is LinkState.OPEN
