"""Store and read codings: the items of a coder, current codings, and disagreements. Only this module creates Coding rows."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from studies.access import Action, allowed_active_member_users
from studies.services.lifecycle import ActionRefused

from .codebook import Codebook
from .models import Coding, CodingItem, CodingSample
from .sampling import items_without_withdrawn_or_erased

ADJUDICATOR_SEAT = 3


class CodingConflict(ActionRefused):
    """The coder stored another coding of the item meanwhile, from another window."""


@dataclass(frozen=True, slots=True)
class CurrentCoding:
    """One coder's current labels of one item. Empty ``labels``: no label applies."""

    labels: frozenset[str]
    revision: int


def coder_seat_number(sample: CodingSample, user) -> int | None:
    """Return the user's seat, or None if the user has no seat or no longer a role that can code."""
    if not allowed_active_member_users(Action.CODE, sample.study).filter(pk=user.pk).exists():
        return None
    return sample.seats.filter(user=user).values_list("number", flat=True).first()


def current_codings_by_item(sample: CodingSample) -> dict[int, dict[int, CurrentCoding]]:
    """Return the latest coding of each item (id) and seat."""
    seats = dict(sample.seats.values_list("user", "number"))
    by_item: dict[int, dict[int, CurrentCoding]] = {}
    rows = Coding.objects.filter(item__sample=sample).order_by("item", "coder", "revision")
    for item, coder, revision, labels in rows.values_list("item_id", "coder_id", "revision", "labels"):
        by_item.setdefault(item, {})[seats[coder]] = CurrentCoding(frozenset(labels.split()), revision)
    return by_item


def are_first_two_codings_different(codings_by_seat: Mapping[int, CurrentCoding]) -> bool:
    """Return whether both coders have coded the item with different labels."""
    return 1 in codings_by_seat and 2 in codings_by_seat and codings_by_seat[1].labels != codings_by_seat[2].labels


def items_of_seat(
    sample: CodingSample, seat: int, codings_by_item: Mapping[int, Mapping[int, CurrentCoding]]
) -> list[CodingItem]:
    """Return the items of a seat in order: all items, or for the third coder those on which the first two differ."""
    items = list(items_without_withdrawn_or_erased(sample).select_related("response__question", "assignment"))
    return [
        item
        for item in items
        if seat != ADJUDICATOR_SEAT or are_first_two_codings_different(codings_by_item.get(item.pk, {}))
    ]


def store_coding(item: CodingItem, user, labels: list[str], is_none: bool, seen_revision: int) -> Coding | None:
    """Store a coding or a new revision. ``seen_revision``: the revision that the page showed, 0 for none.

    Return None if nothing changed. Raises ActionRefused.
    """
    known = Codebook.from_json(item.sample.codebook).keys
    if unknown := [label for label in labels if label not in known]:
        raise ActionRefused(f"The codebook has no label “{unknown[0][:40]}”. Reload the page and choose again.")
    chosen = [label for label in known if label in labels]
    if chosen and is_none:
        raise ActionRefused("Choose either labels or “no label applies”, not both.")
    if not chosen and not is_none:
        raise ActionRefused("Choose at least one label, or choose that no label applies.")
    last = item.codings.filter(coder=user).order_by("revision").last()
    if (last.revision if last else 0) != seen_revision:
        raise CodingConflict
    if last is not None and last.labels.split() == chosen and last.is_none == is_none:
        return None
    try:
        with transaction.atomic():
            return Coding.objects.create(
                item=item, coder=user, revision=seen_revision + 1, labels=" ".join(chosen), is_none=is_none
            )
    except IntegrityError:
        raise CodingConflict from None
