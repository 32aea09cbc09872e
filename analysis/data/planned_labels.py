"""Claims in their order, and every label that they plan: what sequential rules take in."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import F, Max, Q, TextField
from django.db.models.functions import Cast

from annotators.models import Assignment, Response
from studies.models import Batch, Exposure, Item, Placement, Question, Study

from .flat_rows.selection import annotator_pseudonym
from .frames import checked_origins

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = (
    "claim", "assignment", "annotator", "is_settled", "is_submitted", "is_top_up", "is_imported", "section", "question", "item", "item_number", "pair",
    "is_retired", "is_given", "chosen_system", "choice", "skip_reason", "label", "received_at", "id",
)  # fmt: skip


def assign_queue_numbers(study: Study) -> int:
    """Give newly seen claims the next numbers of the queue, in the order in which they were made. The study is locked.

    A number is never changed. Third labels stand outside the queue.
    """
    new = list(
        Assignment.objects.filter(study=study, queue_number=None, origin=Assignment.Origin.LIVE, batch__isnull=False)
        .exclude(batch__origin=Batch.Origin.TOP_UP)
        .order_by("claimed_at", "pk")
        .only("pk")
    )
    last = Assignment.objects.filter(study=study).aggregate(last=Max("queue_number"))["last"] or 0
    for number, assignment in enumerate(new, last + 1):
        assignment.queue_number = number
    Assignment.objects.bulk_update(new, ["queue_number"], batch_size=500)
    return len(new)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedLabels:
    """``rows``: a row a planned label, see ``read_planned_labels``. ``items``: (section, number, names of the systems) of all live items,
    claimed or not, but those that were retired before anybody answered."""

    rows: "DataFrame"
    items: tuple[tuple[int, int, str], ...]


def read_planned_labels(study: Study, origins: Iterable[str] = ("live",)) -> PlannedLabels:
    """Every label planned in a batch that was claimed, given or not: a row an assignment, item and question.

    ``claim`` counts claims in their order. ``is_approved_at_panel``: submitted in time, or released. A released assignment counts with what
    it had answered by then, and is left out where that is nothing; a withdrawn one with nothing that it said. An item that an
    amendment retired is planned for those whose version of the design still asked it: what was said of it counts as it did at the
    looks before, and nobody after them owes it an answer.
    """
    import pandas as pd

    claims = _claims(study, checked_origins(origins))
    given = _given(study, claims)
    told = {assignment for assignment, *_ in given}
    claims = {pk: row for pk, row in claims.items() if not row["is_released"] or pk in told}
    items, retired = _items(study), _retired(study)
    answered = {item for _, item, _ in given}
    asked: dict[int, list[tuple[int, str]]] = {}
    for section, pk, key in Question.objects.filter(section__study=study).values_list("section_id", "pk", "key"):
        asked.setdefault(section, []).append((pk, key))
    placed: dict[int, list[int]] = {}
    batches = {row["batch"] for row in claims.values()}
    rows = Placement.objects.filter(batch__study=study).order_by("batch", "number").values_list("batch_id", "item_id")
    for batch, item in rows:
        if batch in batches and item in items:
            placed.setdefault(batch, []).append(item)
    made: list[tuple[Any, ...]] = []
    for pk, claim in claims.items():
        said = (claim[name] for name in ("annotator", "is_settled", "is_submitted", "is_top_up", "is_imported"))
        head = (claim["claim"], pk, *said)
        for item in placed.get(claim["batch"], ()):
            position, number, pair, section = items[item]
            is_asked = item not in retired or (claim["version"] or 0) < retired[item]
            for question, key in asked.get(section, ()):
                answer = given.get((pk, item, question))
                if answer is None and not is_asked:
                    continue
                about = (position, key, f"s{position}.{number}", number, pair, item in retired)
                made.append((*head, *about, answer is not None, *(answer or (None, "", "", "", "", 0))))
    live = sorted(
        (position, number, pair)
        for item, (position, number, pair, _) in items.items()
        if item not in retired or item in answered
    )
    return PlannedLabels(pd.DataFrame(made, columns=list(COLUMNS)), tuple(live))


def _claims(study: Study, origins: list[str]) -> dict[int, dict[str, Any]]:
    """Assignments with a batch, in the order of their claims."""
    rows = (
        Assignment.objects.filter(study=study, origin__in=origins, batch__isnull=False)
        .order_by(F("queue_number").asc(nulls_last=True), "claimed_at", "pk")
        .values_list(
            "pk", "batch_id", "batch__origin", "annotator__code", "released_at", "submitted_at", "is_late", "withdrawn_at",
            "design__version",
        )
    )  # fmt: skip
    found: dict[int, dict[str, Any]] = {}
    names: dict[Any, str] = {}
    for number, (pk, batch, origin, code, released, submitted, is_late, withdrawn, version) in enumerate(rows, 1):
        name = names.setdefault(code, annotator_pseudonym(study, code))
        found[pk] = {
            "claim": number,
            "batch": batch,
            "annotator": name,
            "is_top_up": origin == Batch.Origin.TOP_UP,
            "is_imported": origin == Batch.Origin.ANSWERED,
            "is_released": released is not None,
            "released_at": released,
            "is_submitted": submitted is not None and not is_late,
            "is_settled": released is not None or submitted is not None,
            "is_withdrawn": withdrawn is not None,
            "version": version,
        }
    return found


def _given(study: Study, claims: dict[int, dict[str, Any]]) -> dict[tuple[int, int, int], tuple[Any, ...]]:
    """(assignment, item, question) > what was said in time."""
    rows = (
        Response.objects.filter(assignment__study=study, item__isnull=False, assignment__withdrawn_at=None)
        .filter(Q(assignment__released_at=None) | Q(received_at__lte=F("assignment__released_at")))
        .annotate(received_text=Cast("received_at", TextField()))
        .values_list(
            "assignment_id", "item_id", "question_id", "chosen__output__system__name", "choice", "skip_reason", "label", "received_text", "pk"
        )
    )  # fmt: skip
    return {
        (assignment, item, question): tuple(said)
        for assignment, item, question, *said in rows.iterator(2000)
        if assignment in claims
    }


def _items(study: Study) -> dict[int, tuple[int, int, str, int]]:
    """item > (section's position, its number, the names of its systems, the section)."""
    systems: dict[int, list[str]] = {}
    for item, system in Exposure.objects.filter(item__study=study).values_list("item_id", "output__system__name"):
        systems.setdefault(item, []).append(system)
    rows = Item.objects.filter(study=study, kind=Item.Kind.LIVE, section__purpose="live")
    return {
        pk: (position, number, "\x1f".join(sorted(systems.get(pk, ()))), section)
        for pk, position, number, section in rows.values_list("pk", "section__position", "number", "section_id")
    }


def _retired(study: Study) -> dict[int, int]:
    """item > the version of the design that took it out."""
    return dict(Item.objects.filter(study=study, retired_in__isnull=False).values_list("pk", "retired_in__version"))
