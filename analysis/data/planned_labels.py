"""Read claims in order, with every label that they plan, for sequential stopping rules."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, F, Max, TextField
from django.db.models.functions import Cast, Now

from analysis.exclusions.screening import AppliedRule, excluding_rules, kept_assignment_ids, left_out_answer_ids
from annotators.counting import REFUSED_REASONS, UNSEEN, Use, arrived_before, select
from annotators.models import Assignment, Response
from annotators.places import exclusions
from studies.models import Batch, Exposure, Item, Placement, Question, Study

from .flat_rows import annotator_pseudonym
from .frames import SECOND_SAMPLE, second_sample_labels, validate_origins
from .rule_input import apply_rules_now

if TYPE_CHECKING:
    from pandas import DataFrame


COLUMNS = (
    "claim", "assignment", "annotator", "is_settled", "is_submitted", "is_top_up", "is_imported", "section", "question", "item", "item_number", "prompt", SECOND_SAMPLE, "pair",
    "is_retired", "is_given", "chosen_system", "choice", "skip_reason", "label", "received_at", "id", "is_counted", "is_known",
)  # fmt: skip


def assign_claim_queue_numbers(study: Study) -> int:
    """Give new claims the next queue numbers, in the order of the claims. The caller must lock the study.

    A number never changes. Batches of third labels get no number.
    """
    new = list(
        select(Use.RECORD, study.assignments.filter(queue_number=None, batch__isnull=False), [Assignment.Origin.LIVE])
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
    """The result of ``read_planned_labels_of_claimed_batches``.

    ``rows``: one row per planned label. ``unjudged``: why claims that no stopping rule has passed would not count, '' if they
    would; ``read_at``: when. ``items``: (section, number, system names) of all live items, claimed or not, except
    items that were retired before anybody answered them.
    """

    rows: "DataFrame"
    items: tuple[tuple[int, int, str], ...]
    unjudged: Mapping[int, str] = field(default_factory=dict)
    read_at: datetime | None = None


def read_planned_labels_of_claimed_batches(
    study: Study, origins: Iterable[str] = ("live",), applied_rules: list[AppliedRule] | None = None
) -> PlannedLabels:
    """Return every label planned in a claimed batch, given or not: one row per assignment, item and question.

    ``claim``: number of the claim. ``is_settled``: submitted, released, or passed by a stopping rule. A released assignment
    has the answers that it had at its release, and is dropped if it had none. A withdrawn assignment has none of its answers.
    ``is_counted``: whether a stopping rule counts the label (``judged_units``). ``is_known``: whether the label had arrived
    when the rule passed the claim. An item that an amendment retired is planned only for assignments whose design version
    had it. Answers to it count as in earlier checks. ``applied_rules`` None: they are applied here.
    """
    import pandas as pd

    origins, read_at, rules = validate_origins(origins), None, []
    left_out: set[int] = set()
    is_judged = study.counting_version >= Study.JUDGED_COUNTING
    if is_judged:
        read_at = database_now(study)
        applied_rules = apply_rules_now(study, origins) if applied_rules is None else applied_rules
        rules, left_out = unit_rules(applied_rules), left_out_answer_ids(applied_rules)
    claims = _claims(study, origins)
    for claim in claims.values():
        if is_judged and claim["judged_at"] is None and claim["is_settled"]:
            claim["reason"] = reasons_against(claim, rules)
    answers = _given(study, claims)
    with_answers = {assignment for assignment, *_ in answers}
    claims = {pk: row for pk, row in claims.items() if not row["is_released"] or pk in with_answers}
    items, retired = _items(study), _retired(study)
    answered = {item for _, item, _ in answers}
    questions_by_section: dict[int, list[tuple[int, str]]] = {}
    for section, pk, key in Question.objects.filter(section__study=study).values_list("section_id", "pk", "key"):
        questions_by_section.setdefault(section, []).append((pk, key))
    placed: dict[int, list[int]] = {}
    batches = {row["batch"] for row in claims.values()}
    rows = Placement.objects.filter(batch__study=study).order_by("batch", "number").values_list("batch_id", "item_id")
    for batch, item in rows:
        if batch in batches and item in items:
            placed.setdefault(batch, []).append(item)
    labels: list[tuple[Any, ...]] = []
    for pk, claim in claims.items():
        cells = (claim[name] for name in ("annotator", "is_settled", "is_submitted", "is_top_up", "is_imported"))
        head = (claim["claim"], pk, *cells)
        for item in placed.get(claim["batch"], ()):
            position, number, prompt, second_sample, pair, section = items[item]
            is_asked = item not in retired or (claim["version"] or 0) < retired[item]
            for question, key in questions_by_section.get(section, ()):
                answer = answers.get((pk, item, question))
                if answer is None and not is_asked:
                    continue
                item_cells = (
                    position,
                    key,
                    f"s{position}.{number}",
                    number,
                    prompt,
                    second_sample,
                    pair,
                    item in retired,
                )
                *given, is_known = answer or (None, "", "", "", "", 0, False)
                is_unseen = is_judged and (given[2] == UNSEEN or given[-1] in left_out)
                is_counted = not claim["reason"] and not is_unseen
                labels.append((*head, *item_cells, answer is not None, *given, is_counted, is_known))
    live = sorted(
        (position, number, pair)
        for item, (position, number, _, _, pair, _) in items.items()
        if item not in retired or item in answered
    )
    unjudged = {
        pk: claim["reason"] for pk, claim in claims.items() if claim["judged_at"] is None and claim["is_settled"]
    }
    return PlannedLabels(pd.DataFrame(labels, columns=list(COLUMNS)), tuple(live), unjudged, read_at)


def _claims(study: Study, origins: list[str]) -> dict[int, dict[str, Any]]:
    """Return assignments with a batch, in the order of their claims."""
    rows = (
        select(Use.RECORD, Assignment.objects.filter(study=study, batch__isnull=False), origins)
        .order_by(F("queue_number").asc(nulls_last=True), "claimed_at", "pk")
        .values_list(
            "pk", "batch_id", "batch__origin", "annotator__code", "released_at", "submitted_at", "is_late", "withdrawn_at",
            "design__version", "released_reason", "judged_at", "judged_out",
        )
    )  # fmt: skip
    claims: dict[int, dict[str, Any]] = {}
    names: dict[Any, str] = {}
    for number, row in enumerate(rows, 1):
        (
            pk,
            batch,
            origin,
            code,
            released,
            submitted,
            is_late,
            withdrawn,
            version,
            why_released,
            judged_at,
            judged_out,
        ) = row
        name = names.setdefault(code, annotator_pseudonym(study, code))
        claims[pk] = {
            "pk": pk,
            "claim": number,
            "batch": batch,
            "annotator": name,
            "is_top_up": origin == Batch.Origin.TOP_UP,
            "is_imported": origin == Batch.Origin.ANSWERED,
            "is_released": released is not None,
            "released_at": released,
            "is_submitted": submitted is not None and not is_late,
            # A place that is taken again after the rule passed it changes nothing for the rule.
            "is_settled": released is not None or submitted is not None or judged_at is not None,
            "is_withdrawn": withdrawn is not None,
            "released_reason": why_released,
            "judged_at": judged_at,
            "reason": judged_out,
            "version": version,
        }
    return claims


def _given(study: Study, claims: dict[int, dict[str, Any]]) -> dict[tuple[int, int, int], tuple[Any, ...]]:
    """Map (assignment, item, question) to the answer that was given in time."""
    rows = (
        select(Use.ROWS, Response.objects.filter(assignment__study=study, item__isnull=False))
        .filter(arrived_before("released_at"))
        .annotate(
            received_text=Cast("received_at", TextField()),
            is_known=ExpressionWrapper(arrived_before("judged_at"), BooleanField()),
        )
        .values_list(
            "assignment_id", "item_id", "question_id", "chosen__output__system__name", "choice", "skip_reason", "label", "received_text", "pk", "is_known"
        )
    )  # fmt: skip
    return {
        (assignment, item, question): tuple(answer)
        for assignment, item, question, *answer in rows.iterator(2000)
        if assignment in claims
    }


def _items(study: Study) -> dict[int, tuple[int, int, str, str | None, str, int]]:
    """Map each item to (its section's position, its number, the key of its prompt, its second sample, its systems, the section)."""
    systems: dict[int, list[str]] = {}
    for item, system in Exposure.objects.filter(item__study=study).values_list("item_id", "output__system__name"):
        systems.setdefault(item, []).append(system)
    rows = Item.objects.filter(study=study, kind=Item.Kind.LIVE, section__purpose="live")
    return {
        pk: (
            position,
            number,
            prompt,
            second_sample_labels([prompt], [group], study.group_noun)[0],
            "\x1f".join(sorted(systems.get(pk, ()))),
            section,
        )
        for pk, position, number, prompt, group, section in rows.values_list(
            "pk", "section__position", "number", "prompt__key", "prompt__group", "section_id"
        )
    }


def _retired(study: Study) -> dict[int, int]:
    """Map each retired item to the version of the design that retired it."""
    return dict(Item.objects.filter(study=study, retired_in__isnull=False).values_list("pk", "retired_in__version"))


# Which claims a stopping rule counts. It judges a claim when it passes it, and never again.
#
# A claim that the study's outcome-blind rules exclude by then is left out. So are claims of people who withdrew, and
# those that ended because checks or a test were failed. All this says nothing about which system an annotator
# prefers, so the error rate of the rule holds. What becomes known later could follow from a look at the outcomes, so
# the report shows it as a sensitivity analysis only, and it can make no new crossing.


WITHDRAWN = "withdrawn"
# Late answers of a released claim never enter the rule, so being late changes nothing for it.
NOT_FOR_UNITS = frozenset({"late"})


def database_now(study: Study) -> datetime:
    return Study.objects.filter(pk=study.pk).values_list(Now(), flat=True).get()


def reasons_against(claim: Mapping[str, Any], rules: Sequence[AppliedRule]) -> str:
    """Return why a claim does not count by what is known now, or ''. ``rules``: those of ``unit_rules``."""
    if claim["is_withdrawn"]:
        return WITHDRAWN
    if claim["released_reason"] in REFUSED_REASONS:
        return str(claim["released_reason"])
    return next((rule.slug for rule in rules if claim["pk"] in rule.failed_assignment_ids), "")


def unit_rules(applied_rules: list[AppliedRule]) -> list[AppliedRule]:
    """Return the rules that may remove a claim: those that exclude and are outcome-blind."""
    return [rule for rule in excluding_rules(applied_rules) if rule.slug not in NOT_FOR_UNITS]


def store_judgements(
    study: Study, passed: Collection[int], unjudged: Mapping[int, str], read_at: datetime | None
) -> bool:
    """Store what was decided about the passed claims. Return False if another check judged one of them meanwhile.

    ``unjudged``: the reasons, '' if the claim counts, of all claims that were not judged when they were read.
    """
    new = {pk: unjudged[pk] for pk in passed if pk in unjudged}
    with transaction.atomic():
        own = select(Use.SETTLED, Assignment.objects.filter(study=study, pk__in=new, judged_at=None))
        rows = list(own.select_for_update(no_key=True, of=("self",)).order_by("pk"))
        for row in rows:
            row.judged_at, row.judged_out = read_at, new[row.pk]
        Assignment.objects.bulk_update(rows, ["judged_at", "judged_out"], batch_size=500)
    return len(rows) == len(new)


def excluded_after_they_were_judged(study: Study, origins: Collection[str], kept: Collection[int]) -> int:
    """Return how many submitted claims counted when a stopping rule passed them, and are excluded now."""
    judged = Assignment.objects.filter(study=study, judged_at__isnull=False, judged_out="")
    counted = select(Use.SUBMITTED, judged, origins)
    return len(set(counted.values_list("pk", flat=True)) - set(kept))


# Replace annotators who no longer count: reopen each place once, up to the study's cap.


def uncounted_submitted_assignment_ids(study: Study) -> set[int]:
    """Return submitted assignments that hold a place but do not count towards the study's target.

    If the target counts kept annotators: those excluded by an outcome-blind rule or by a researcher, and those withdrawn. If it
    counts submitted annotators and replaces excluded ones: only those excluded by a researcher.
    """
    holding = select(Use.HOLDING, Assignment.objects.filter(study=study), [Assignment.Origin.LIVE])
    uncounted = set(exclusions.active_exclusions(holding).values_list("assignment_id", flat=True))
    if study.target_kind == Study.Target.KEPT:
        uncounted |= set(select(Use.WITHDRAWN, holding).values_list("pk", flat=True))
        held = list(select(Use.RESULTS, holding).values_list("pk", flat=True))
        uncounted |= set(held) - set(kept_assignment_ids(apply_rules_now(study), held))
    return uncounted


def create_replacement_places(study: Study) -> int:
    """Open a place for each uncounted annotator without a replacement, up to the cap. Return the number of opened places.

    Each annotator is replaced at most once, even if this runs twice at the same time, or if the result of a rule changes.
    """
    if not select(Use.TARGET, Assignment.objects.filter(study=study)).exists():
        return 0
    return exclusions.open_replacement_places_up_to_cap(study, sorted(uncounted_submitted_assignment_ids(study)))


def create_replacement_places_of_launched_studies() -> int:
    """Open replacements in all launched studies that replace annotators. Return the number of opened places."""
    wanting = Study.objects.filter(state=Study.State.LAUNCHED)
    counting = wanting.filter(target_kind=Study.Target.KEPT) | wanting.filter(replaces_excluded=True)
    return sum(create_replacement_places(study) for study in counting)
