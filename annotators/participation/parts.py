"""What somebody who works over days sees of their own work: parts done, begun and still to be had, and what they pay."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet

from annotators.models import Assignment
from annotators.pages.record import page_state
from annotators.pay.promises import PayTerms, terms_of
from annotators.places import assign, open_places
from annotators.places.offers import Offer, offer_of
from annotators.places.receipts import receipt_of
from annotators.recruitment.links import LinkState, link_state
from studies.design.wording import wording_of


@dataclass(frozen=True, slots=True)
class Part:
    """One batch of a person, without its number in the study: ``state`` is done, begun or given back."""

    number: int
    state: str
    path: str
    offer: Offer
    at: datetime | None = None
    receipt: str = ""
    page: int = 0
    pages: int = 0


def count_free_parts(assignment: Assignment, own_assignments: Sequence[Assignment]) -> int:
    """How many parts this person could begin now. ``mine``: all that they were given, the first one first, with their batches."""
    study = assignment.study
    left = study.batches_per_annotator - sum(one.submitted_at is not None for one in own_assignments)
    has_left = any(one.withdrawn_at or one.released_reason in assign.FINAL_RELEASE_REASONS for one in own_assignments)
    if left <= 0 or has_left or not _is_link_open(assignment):
        return 0
    arms = [own_assignments[0].batch.arm_id] if own_assignments else []
    own = [one.batch_id for one in own_assignments if assign.is_revivable(one)]
    return min(open_places.open_batches(study, assignment.annotator, arms, own).count(), left)


@dataclass(frozen=True, slots=True)
class RemainingParts:
    """What is left for somebody who has finished a part. ``is_begun``: another part of theirs waits to be finished."""

    has_begun_part: bool
    free: int
    done: int
    allowed: int

    @property
    def is_any_left(self) -> bool:
        return self.has_begun_part or self.free > 0


def get_remaining_parts(assignment: Assignment) -> RemainingParts | None:
    """None where one part is all that a person may do."""
    study = assignment.study
    if study.batches_per_annotator <= 1 or assignment.recruitment is None:
        return None
    mine = list(_own_assignments(assignment).select_related("batch"))
    is_begun = any(not one.submitted_at and not one.released_at for one in mine)
    done = sum(one.submitted_at is not None for one in mine)
    return RemainingParts(is_begun, count_free_parts(assignment, mine), done, study.batches_per_annotator)


def _own_assignments(assignment: Assignment) -> QuerySet[Assignment]:
    same = {"study": assignment.study, "annotator": assignment.annotator_id, "origin": assignment.origin}
    return Assignment.objects.filter(batch__isnull=False, **same).order_by("pk")


def parts_overview_context(assignment: Assignment) -> dict[str, Any]:
    """The context of the page. Queries do not grow with the number of parts."""
    study, recruitment = assignment.study, assignment.recruitment
    mine = list(_own_assignments(assignment).select_related("study", "recruitment", "batch__arm"))
    terms = terms_of(recruitment) if recruitment else None
    parts = [
        _part(number, one, terms if recruitment and one.recruitment_id == recruitment.pk else None)
        for number, one in enumerate(mine, 1)
    ]
    done = [part for part in parts if part.state == "done"]
    begun = [part for part in parts if part.state != "done"]
    allowed = study.batches_per_annotator
    free = count_free_parts(assignment, mine)
    words = wording_of(study, assignment.design_id)
    pays = [part.offer.reward for part in parts if part.offer.reward is not None]
    last = next((one for one in reversed(mine) if one.submitted_at), None)
    return {
        "study": words.study,
        "parts": parts,
        "n_done": len(done),
        "allowed": allowed,
        "begun": begun,
        "free": free,
        "is_open": _is_link_open(assignment),
        "may_start": bool(free and not begun and last),
        "start_path": f"/p/{last.code}/another/" if last else "",
        "assignment_path": f"/p/{assignment.code}/",
        "has_agreed": assignment.consented_at is not None,
        "earned": sum((part.offer.reward for part in done if part.offer.reward), Decimal(0)),
        "each": pays[0] if len(set(pays)) == 1 else None,
        "is_paid": any(pays),
        "currency": (recruitment.currency if recruitment else "") or words.study["currency"],
        "minutes": parts[-1].offer.minutes if parts else None,
    }


def _part(number: int, one: Assignment, terms: PayTerms | None) -> Part:
    words = wording_of(one.study, one.design_id)
    reward = one.recruitment.reward if one.recruitment else None
    offer = offer_of(words, words.arms[one.batch.arm.name], reward)
    if terms and offer.reward is not None:
        offer = replace(offer, reward=terms.reward_of(one.design_id, one.batch.arm.name))  # pay may have risen since
    path = f"/p/{one.code}/"
    if one.submitted_at:
        return Part(number, "done", f"{path}done/", offer, one.submitted_at, receipt_of(one.code))
    if one.released_at:
        return Part(number, "given back", path, offer, one.released_at)
    # At most one is begun and not given back: two queries, not two for each part.
    standing = page_state(one)
    pages = len(standing.walk.keys)
    recorded = sum(standing.is_recorded(key) for key in standing.walk.keys)
    return Part(number, "begun", path, offer, one.reserved_until, page=min(recorded + 1, pages), pages=pages)


def _is_link_open(assignment: Assignment) -> bool:
    """Whether people may begin something by the link by which this person came."""
    link = assignment.recruitment
    return link is not None and link_state(assignment.study, link) is LinkState.OPEN
