"""Codings as they are given: which item is next, what was said of it, where two coders differ. The only creator of Coding."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from studies.access import Action, allowed_users
from studies.services.lifecycle import ActionRefused

from .codebook import Codebook
from .models import Coding, CodingItem, CodingSample
from .sampling import remaining_items

ADJUDICATOR_SEAT = 3


class CodingConflict(ActionRefused):
    """The item was coded again meanwhile, from another window."""


@dataclass(frozen=True, slots=True)
class CurrentCoding:
    """What one coder says of one item; ``labels`` empty: no label applies."""

    labels: frozenset[str]
    revision: int


def seat_of(sample: CodingSample, user) -> int | None:
    """The user's seat, as long as they still have a role in the study that may code."""
    if not allowed_users(Action.CODE, sample.study).filter(pk=user.pk).exists():
        return None
    return sample.seats.filter(user=user).values_list("number", flat=True).first()


def current_codings(sample: CodingSample) -> dict[int, dict[int, CurrentCoding]]:
    """What stands: by item (id), by seat. Of several revisions the last."""
    seats = dict(sample.seats.values_list("user", "number"))
    found: dict[int, dict[int, CurrentCoding]] = {}
    rows = Coding.objects.filter(item__sample=sample).order_by("item", "coder", "revision")
    for item, coder, revision, labels in rows.values_list("item_id", "coder_id", "revision", "labels"):
        found.setdefault(item, {})[seats[coder]] = CurrentCoding(frozenset(labels.split()), revision)
    return found


def is_disputed(codings: Mapping[int, CurrentCoding]) -> bool:
    """Whether both coders have coded it, and not alike."""
    return 1 in codings and 2 in codings and codings[1].labels != codings[2].labels


def items_for(sample: CodingSample, seat: int, codings: Mapping[int, Mapping[int, CurrentCoding]]) -> list[CodingItem]:
    """The items that this seat codes, in their order: all of them; the third those on which the first two differ."""
    items = list(remaining_items(sample).select_related("response__question", "assignment"))
    return [item for item in items if seat != ADJUDICATOR_SEAT or is_disputed(codings.get(item.pk, {}))]


def store_coding(item: CodingItem, user, labels: list[str], is_none: bool, seen_revision: int) -> Coding | None:
    """Store a coding, or a revision of it. ``seen``: the revision that the coder looked at, 0 for none.

    None where nothing is new. Raises NotNow.
    """
    known = Codebook.from_json(item.sample.codebook).keys
    if strange := [label for label in labels if label not in known]:
        raise ActionRefused(f"The codebook has no label “{strange[0][:40]}”.")
    chosen = [label for label in known if label in labels]
    if chosen and is_none:
        raise ActionRefused("Give labels, or say that none applies; not both.")
    if not chosen and not is_none:
        raise ActionRefused("Give at least one label, or say that none applies.")
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
