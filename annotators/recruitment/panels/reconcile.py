"""What a panel shows beside what we know. The only writer of PanelSubmission and of trust "confirmed".

What was answered here and what was submitted there are two facts of two systems, and the hop of a browser lies between them.
Nothing is refused here, nobody's answers go: places of people who left are given back, and every difference is shown to a person.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Case, CharField, Exists, Max, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Now
from django.utils import timezone

from annotators.models import Annotator, Assignment, PanelIdentity, PanelSubmission, PanelTask, Recruitment
from annotators.models.constants import (
    APPROVED,
    EXPIRED,
    LONGEST_ID,
    REJECTED,
    RETURNED,
    SCREENED_OUT,
    SUBMITTED,
    UNKNOWN,
    WORKING,
)
from annotators.models.crypto import keyed
from annotators.models.identity import ERASED, OF_PERSON, keep_identities, mark_of
from annotators.places import assign
from annotators.places.receipts import plain, receipt_of
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.signals import submissions_taken_in
from studies.access import Action, check
from studies.models import audit

from . import Seen
from .secrets import has_token

Trust, Released = Assignment.Trust, Assignment.Released

SENT = (SUBMITTED, APPROVED, REJECTED)  # it reached the panel
LEFT = (RETURNED, EXPIRED)
UNSENT_AFTER = timedelta(minutes=30)
# What a panel tells of a submission, in our columns.
KEPT = ("task", "state", "word", "receipt", "source", "started_at", "submitted_at", "decided_at", "decides_itself_at")

# How a submission and an assignment stand to each other: (what a researcher reads, what is to be done).
CLASSES = {
    "matched": ("sent to both", "Approve it."),
    "decided": ("approved or rejected", ""),
    "working": ("at work", ""),
    "left": ("given back or out of time", ""),
    "turned_away": ("ended by us before its end", "Pay what was promised for this outcome."),
    "orphan": ("sent to the panel, not finished here", "Look at how far it came. Pay is the rule; the person may still finish."),
    "unknown": (
        "sent to the panel, unknown here", "Never a reason to reject: ask the person, and look whether they came by another link.",
    ),
    "surplus": ("one id of the panel, two people", "The panel names the other one: this person is paid by compensation."),
    "left_after_work": ("finished here, given back at the panel", "The answers are kept. Ask the person whether that was meant."),
    "unsent": ("finished here, not sent to the panel", "Send them the way back. They did the work: compensation is possible."),
    "unreadable": ("in a state that we do not know", "Look at the panel."),
}  # fmt: skip
NEEDS_A_PERSON = ("orphan", "unknown", "surplus", "left_after_work", "unsent", "unreadable")


@dataclass(slots=True)
class Summary:
    """What a look at a panel came to. ``seen``: submissions; the others count what it changed."""

    seen: int = 0
    new: int = 0
    changed: int = 0
    linked: int = 0
    confirmed: int = 0
    released: int = 0
    classes: dict[str, int] = field(default_factory=dict)


class Rehearsed(Exception):
    """Raised within the transaction of a rehearsal, so that nothing of it stays."""


def read_file(recruitment: Recruitment, text: str, by, is_dry: bool = False) -> Summary:
    """The same from the file that a panel exports. Raises ValueError for what cannot be read."""
    check(by, Action.PANEL, recruitment.study)
    channel = REGISTRY.get(recruitment.channel)
    if channel is None or not channel.takes_file(recruitment):
        raise ValueError(
            "This link takes no exported file: its channel reads none, or its settings name no column of it."
        )
    with transaction.atomic():
        found = take_in(recruitment, channel.read_export(recruitment, text), PanelSubmission.Source.FILE, is_dry)
        if not is_dry:
            audit.record("read panel file", study=recruitment.study, by=by, recruitment=recruitment.key, n=found.seen)
    return found


def take_in(
    recruitment: Recruitment,
    seen: Iterable[Seen],
    source: str,
    is_dry: bool = False,
    whose: Mapping[Seen, Assignment] | None = None,
) -> Summary:
    """Write down what the panel shows, and do what follows from it. Again with the same, it changes nothing.

    ``is_dry``: only count what would change. ``whose``: the work that a submission is about, where it is known here and the panel
    shows nobody; its person is not looked for then. One transaction: a panel that falls silent half-way has shown nothing. Raises ValueError
    for a submission whose ids cannot be kept, by its number.
    """
    summary = Summary()
    left: list[tuple[int, str]] = []
    shown = list(seen)  # everything the network has to say, before the transaction
    for n, one in enumerate(shown, 1):
        for what, name in (("submission", one.submission), ("person", one.person), ("task", one.task)):
            if len(name) > LONGEST_ID or "\x00" in name or not (name or what == "task"):
                raise ValueError(
                    f"Submission {n}: the {what}'s id is empty, longer than {LONGEST_ID} characters, or no text."
                )
    try:
        with transaction.atomic():
            Recruitment.objects.select_for_update(of=("self",), no_key=True).get(pk=recruitment.pk)
            left = _take_in(recruitment, shown, source, summary, whose or {})
            if is_dry:
                summary.released = len(left)
                summary.classes = counts(recruitment)
                raise Rehearsed
    except Rehearsed:
        return summary
    # Places have locks of their own, in an order of their own.
    summary.released = sum(assign.release(pk, reason) for pk, reason in left)
    summary.classes = counts(recruitment)
    submissions_taken_in.send(Recruitment, recruitment=recruitment)
    return summary


def _take_in(
    recruitment: Recruitment, shown: list[Seen], source: str, summary: Summary, whose: Mapping[Seen, Assignment]
) -> list[tuple[int, str]]:
    tasks = _tasks(recruitment, {one.task for one in shown if one.task})
    annotators = _annotators(recruitment.pool, {one.person for one in shown if one not in whose})
    shown = [one if one in whose else _without_person(recruitment.pool, one) for one in shown]
    known = {
        (row.external_id, row.annotator_id): row
        for row in PanelSubmission.objects.filter(recruitment=recruitment).select_related("assignment")
    }
    theirs = _assignments_by_person(recruitment)
    new, changed, confirmed, left = [], [], set(), []
    for one in shown:
        summary.seen += 1
        annotator = whose[one].annotator_id if one in whose else annotators[one.person]
        row = known.get((one.submission, annotator)) or known.get((_erased(recruitment.pk, one.submission), annotator))
        is_new = row is None
        if row is None:
            row = PanelSubmission(recruitment=recruitment, external_id=one.submission, annotator_id=annotator)
            known[one.submission, annotator] = row
        assignment = row.assignment or whose.get(one) or _found(theirs.get(annotator, []), one)
        summary.linked += assignment is not None and row.assignment_id is None
        columns = _columns(one, row, tasks.get(one.task), source) | {"assignment": assignment}
        is_changed = any(getattr(row, name) != value for name, value in columns.items())
        is_news = is_new or row.state != columns["state"]
        for name, value in columns.items():
            setattr(row, name, value)
        if is_new:
            new.append(row)
        elif is_changed:
            changed.append(row)
        if assignment is None:
            continue
        if row.state in SENT and assignment.submitted_at and assignment.trust != Trust.CONFIRMED:
            confirmed.add(assignment.pk)
        if (
            row.state in LEFT
            and not assignment.submitted_at
            and not assignment.released_at
            and _is_current(assignment, one, is_news)
        ):
            left.append((assignment.pk, Released.RETURNED if row.state == RETURNED else Released.EXPIRED))
    # A row that comes twice in one look is in both lists as one object.
    fresh = {id(row) for row in new}
    changed = list({id(row): row for row in changed if id(row) not in fresh}.values())
    PanelSubmission.objects.bulk_create(new, batch_size=500)
    for row in changed:
        row.seen_at = Now()
    PanelSubmission.objects.bulk_update(changed, [*KEPT, "assignment", "seen_at"], batch_size=200)
    now_confirmed = Assignment.objects.filter(pk__in=confirmed).exclude(trust=Trust.CONFIRMED)
    summary.confirmed = now_confirmed.update(trust=Trust.CONFIRMED)
    summary.new, summary.changed = len(new), len(changed)
    return left


def _without_person(pool: str, one: Seen) -> Seen:
    """The submission with a mark wherever the panel, or the person at the panel, wrote the person's own id."""
    mark = mark_of(assign.pool_key(pool, one.person))
    same = {name: mark for name in ("submission", "code") if getattr(one, name).strip() == one.person}
    return replace(one, **same) if same else one


def _tasks(recruitment: Recruitment, named: set[str]) -> dict[str, PanelTask]:
    """The recruitment's tasks by the panel's id; those that were made at the panel by hand are written down now."""
    have = set(PanelTask.objects.filter(recruitment=recruitment).values_list("external_id", flat=True))
    PanelTask.objects.bulk_create(PanelTask(recruitment=recruitment, external_id=name) for name in sorted(named - have))
    return {row.external_id: row for row in PanelTask.objects.filter(recruitment=recruitment)}


def _annotators(pool: str, people: set[str]) -> dict[str, int]:
    """The annotators whom a pool knows by these ids, made where they have never been here."""
    keys = {assign.pool_key(pool, person): person for person in people}
    pool_of = Annotator.objects.filter(pool=pool, external_id__in=list(keys))
    have = set(pool_of.values_list("external_id", flat=True))
    missing = sorted(set(keys) - have)
    Annotator.objects.bulk_create((Annotator(pool=pool, external_id=key) for key in missing), ignore_conflicts=True)
    found = dict(pool_of.values_list("external_id", "pk"))
    # Whose id was erased has a row without it, and keeps that.
    met = set(PanelIdentity.objects.filter(annotator__in=found.values()).values_list("annotator", flat=True))
    keep_identities({found[key]: person for key, person in keys.items() if found[key] not in met})
    return {person: found[key] for key, person in keys.items()}


def _columns(one: Seen, row: PanelSubmission, task: PanelTask | None, source: str) -> dict:
    # A word that nobody knows changes nothing of what is known.
    state = row.state if one.state == UNKNOWN and row.state else one.state
    told = {
        "task": task,
        "state": state,
        "word": one.word[:40],
        "source": source,
        "receipt": one.code[:64],
    }
    told |= {name: getattr(one, name) for name in KEPT if name.endswith("_at")}
    # What one source leaves out another has told.
    return {name: value if value not in (None, "") else getattr(row, name) for name, value in told.items()}


def _assignments_by_person(recruitment: Recruitment) -> dict[int, list[Assignment]]:
    people: dict[int, list[Assignment]] = {}
    rows = Assignment.objects.filter(recruitment=recruitment).exclude(origin="test").order_by("-pk")
    for row in rows.only("pk", "code", "annotator_id", "external_ids", "submitted_at", "released_at", "trust"):
        people.setdefault(row.annotator_id, []).append(row)
    return people


def _found(mine: list[Assignment], one: Seen) -> Assignment | None:
    """The person's assignment that this submission is about: by the panel's id, by the receipt, or the only one there is."""
    for row in mine:
        if one.submission in row.external_ids.values():
            return row
    if one.code:
        for row in mine:
            if same_receipt(one.code, receipt_of(row.code)):
                return row
    # Where the panel shows people alone, it shows one work of each: the newest.
    return mine[0] if len(mine) == 1 or (mine and one.submission.startswith(OF_PERSON)) else None


def same_receipt(typed: str, receipt: str) -> bool:
    """Whether a receipt that a person typed is that one: letters of any size, with or without the dash."""
    return plain(typed) == plain(receipt)


def _is_current(assignment: Assignment, one: Seen, is_news: bool) -> bool:
    """Whether they work under this id still: who returned and took it again has another one by now. Where no session tells, what was known
    before is about the time before they took it again."""
    ids = {value for value in assignment.external_ids.values() if not value.startswith(OF_PERSON)}
    return one.submission in ids if ids and not one.submission.startswith(OF_PERSON) else is_news


# How things stand


def with_class(recruitment: Recruitment) -> QuerySet[PanelSubmission]:
    """The recruitment's submissions with ``standing``, one of CLASSES."""
    mine = PanelSubmission.objects.filter(recruitment=recruitment)
    rival = mine.filter(external_id=OuterRef("external_id"), state__in=SENT).exclude(pk=OuterRef("pk"))
    # Who gave the task back, took it again and sent it did what they meant to.
    sent_again = mine.filter(assignment=OuterRef("assignment"), state__in=SENT).exclude(pk=OuterRef("pk"))
    finished, ours = Q(assignment__submitted_at__isnull=False), Q(assignment__isnull=False)
    ended = Q(
        assignment__released_reason__in=[
            Released.SCREENED_OUT,
            Released.FAILED_CHECKS,
            Released.FULL,
            Released.WITHDRAWN,
        ]
    )
    return mine.annotate(
        standing=Case(
            When(state=UNKNOWN, then=Value("unreadable")),
            When(Q(Exists(rival)) & ~Q(state__in=SENT) & finished, then=Value("surplus")),
            When(Q(state__in=[APPROVED, REJECTED]), then=Value("decided")),
            When(Q(state=SUBMITTED) & ~ours, then=Value("unknown")),
            When(Q(state=SUBMITTED) & finished, then=Value("matched")),
            When(Q(state=SUBMITTED) & ended, then=Value("turned_away")),
            When(Q(state=SUBMITTED), then=Value("orphan")),
            When(Q(state__in=LEFT) & finished & ~Exists(sent_again), then=Value("left_after_work")),
            When(state__in=[*LEFT, SCREENED_OUT], then=Value("left")),
            When(
                Q(state=WORKING) & finished & Q(assignment__submitted_at__lt=Now() - UNSENT_AFTER), then=Value("unsent")
            ),
            default=Value("working"),
            output_field=CharField(),
        )
    )


def unseen(recruitment: Recruitment) -> list[tuple[Assignment, str]]:
    """Finished here half an hour before the panel was looked at, and no row of the panel is about it: each with "unsent", or "surplus"
    where the panel's id has gone to another person. Nobody where the panel was never looked at: nothing is known then."""
    looked_at = _looked_at(recruitment)
    if looked_at is None:
        return []
    seen = PanelSubmission.objects.filter(assignment=OuterRef("pk"))
    mine = Assignment.objects.filter(recruitment=recruitment, submitted_at__lt=looked_at - UNSENT_AFTER, origin="live")
    rows = list(mine.filter(~Exists(seen)).order_by("pk"))
    ids = {value for row in rows for value in row.external_ids.values()}
    gone = PanelSubmission.objects.filter(recruitment=recruitment, external_id__in=ids, state__in=SENT)
    taken = set(gone.values_list("external_id", flat=True)) if ids else set()
    return [(row, "surplus" if taken.intersection(row.external_ids.values()) else "unsent") for row in rows]


def _looked_at(recruitment: Recruitment) -> datetime | None:
    """When it was last seen what the panel shows: all the time with a token, else when a file last told something new; or never."""
    if not REGISTRY[recruitment.channel].shows_submissions:
        return None
    if has_token(recruitment):
        return timezone.now()
    return PanelSubmission.objects.filter(recruitment=recruitment).aggregate(at=Max("seen_at"))["at"]


def counts(recruitment: Recruitment) -> dict[str, int]:
    """How many stand how, people whom the panel does not show at all included. In the order of CLASSES."""
    found = Counter(with_class(recruitment).values_list("standing", flat=True))
    found.update(standing for _, standing in unseen(recruitment))
    return {name: found[name] for name in CLASSES if found[name]}


def forget(recruitments: QuerySet[Recruitment], but: QuerySet) -> int:
    """The panel's ids of people and submissions leave these recruitments' rows, ``but`` those of these assignments; what became of them
    stays."""
    mine = PanelSubmission.objects.filter(recruitment__in=recruitments).exclude(assignment__in=but)
    rows = list(mine.exclude(external_id__startswith=ERASED))
    for row in rows:
        row.external_id = _erased(row.recruitment_id, row.external_id)
    PanelSubmission.objects.bulk_update(rows, ["external_id"], batch_size=500)
    return len(rows)


def _erased(recruitment: int, submission: str) -> str:
    """What stands in the place of an erased id: the same each time, so that a panel that goes on showing it makes no second row."""
    return f"{ERASED}{keyed('submission', str(recruitment), submission)[:40]}"
