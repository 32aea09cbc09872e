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
    MAX_EXTERNAL_ID_LENGTH,
    REJECTED,
    RETURNED,
    SCREENED_OUT,
    SUBMITTED,
    UNKNOWN,
    WORKING,
)
from annotators.models.crypto import keyed_hash
from annotators.models.identity import ERASED_PREFIX, PERSON_PREFIX, person_id_placeholder, store_person_ids
from annotators.places import assign
from annotators.places.receipts import normalize_receipt, receipt_of
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.signals import submissions_imported
from studies.access import Action, check_permission
from studies.models import audit

from . import SubmissionSnapshot
from .secrets import has_token

Trust, Released = Assignment.Trust, Assignment.Released

SENT_STATES = (SUBMITTED, APPROVED, REJECTED)  # it reached the panel
LEFT_STATES = (RETURNED, EXPIRED)
UNSENT_AFTER = timedelta(minutes=30)
# What a panel tells of a submission, in our columns.
SNAPSHOT_FIELDS = (
    "task",
    "state",
    "word",
    "receipt",
    "source",
    "started_at",
    "submitted_at",
    "decided_at",
    "decides_itself_at",
)

# How a submission and an assignment stand to each other: (what a researcher reads, what is to be done).
MATCH_STATUSES = {
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
NEEDS_REVIEW = ("orphan", "unknown", "surplus", "left_after_work", "unsent", "unreadable")


@dataclass(slots=True)
class ImportSummary:
    """What a look at a panel came to. ``seen``: submissions; the others count what it changed."""

    seen: int = 0
    new: int = 0
    changed: int = 0
    linked: int = 0
    confirmed: int = 0
    released: int = 0
    classes: dict[str, int] = field(default_factory=dict)


class DryRun(Exception):
    """Raised within the transaction of a rehearsal, so that nothing of it stays."""


def import_panel_file(recruitment: Recruitment, text: str, by, dry_run: bool = False) -> ImportSummary:
    """The same from the file that a panel exports. Raises ValueError for what cannot be read."""
    check_permission(by, Action.PANEL, recruitment.study)
    channel = REGISTRY.get(recruitment.channel)
    if channel is None or not channel.takes_file(recruitment):
        raise ValueError(
            "This link takes no exported file: its channel reads none, or its settings name no column of it."
        )
    with transaction.atomic():
        found = import_submissions(
            recruitment, channel.read_export(recruitment, text), PanelSubmission.Source.FILE, dry_run
        )
        if not dry_run:
            audit.record("read panel file", study=recruitment.study, by=by, recruitment=recruitment.key, n=found.seen)
    return found


def import_submissions(
    recruitment: Recruitment,
    snapshots: Iterable[SubmissionSnapshot],
    source: str,
    dry_run: bool = False,
    assignments: Mapping[SubmissionSnapshot, Assignment] | None = None,
) -> ImportSummary:
    """Write down what the panel shows, and do what follows from it. Again with the same, it changes nothing.

    ``is_dry``: only count what would change. ``whose``: the work that a submission is about, where it is known here and the panel
    shows nobody; its person is not looked for then. One transaction: a panel that falls silent half-way has shown nothing. Raises ValueError
    for a submission whose ids cannot be kept, by its number.
    """
    summary = ImportSummary()
    left: list[tuple[int, str]] = []
    shown = list(snapshots)  # everything the network has to say, before the transaction
    for n, one in enumerate(shown, 1):
        for what, name in (("submission", one.submission), ("person", one.person), ("task", one.task)):
            if len(name) > MAX_EXTERNAL_ID_LENGTH or "\x00" in name or not (name or what == "task"):
                raise ValueError(
                    f"Submission {n}: the {what}'s id is empty, longer than {MAX_EXTERNAL_ID_LENGTH} characters, or no text."
                )
    try:
        with transaction.atomic():
            Recruitment.objects.select_for_update(of=("self",), no_key=True).get(pk=recruitment.pk)
            left = _take_in(recruitment, shown, source, summary, assignments or {})
            if dry_run:
                summary.released = len(left)
                summary.classes = match_status_counts(recruitment)
                raise DryRun
    except DryRun:
        return summary
    # Places have locks of their own, in an order of their own.
    summary.released = sum(assign.release(pk, reason) for pk, reason in left)
    summary.classes = match_status_counts(recruitment)
    submissions_imported.send(Recruitment, recruitment=recruitment)
    return summary


def _take_in(
    recruitment: Recruitment,
    shown: list[SubmissionSnapshot],
    source: str,
    summary: ImportSummary,
    whose: Mapping[SubmissionSnapshot, Assignment],
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
        row = known.get((one.submission, annotator)) or known.get(
            (_erased_id(recruitment.pk, one.submission), annotator)
        )
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
        if row.state in SENT_STATES and assignment.submitted_at and assignment.trust != Trust.CONFIRMED:
            confirmed.add(assignment.pk)
        if (
            row.state in LEFT_STATES
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
    PanelSubmission.objects.bulk_update(changed, [*SNAPSHOT_FIELDS, "assignment", "seen_at"], batch_size=200)
    now_confirmed = Assignment.objects.filter(pk__in=confirmed).exclude(trust=Trust.CONFIRMED)
    summary.confirmed = now_confirmed.update(trust=Trust.CONFIRMED)
    summary.new, summary.changed = len(new), len(changed)
    return left


def _without_person(pool: str, one: SubmissionSnapshot) -> SubmissionSnapshot:
    """The submission with a mark wherever the panel, or the person at the panel, wrote the person's own id."""
    mark = person_id_placeholder(assign.hash_person_id(pool, one.person))
    same = {name: mark for name in ("submission", "code") if getattr(one, name).strip() == one.person}
    return replace(one, **same) if same else one


def _tasks(recruitment: Recruitment, named: set[str]) -> dict[str, PanelTask]:
    """The recruitment's tasks by the panel's id; those that were made at the panel by hand are written down now."""
    have = set(PanelTask.objects.filter(recruitment=recruitment).values_list("external_id", flat=True))
    PanelTask.objects.bulk_create(PanelTask(recruitment=recruitment, external_id=name) for name in sorted(named - have))
    return {row.external_id: row for row in PanelTask.objects.filter(recruitment=recruitment)}


def _annotators(pool: str, people: set[str]) -> dict[str, int]:
    """The annotators whom a pool knows by these ids, made where they have never been here."""
    keys = {assign.hash_person_id(pool, person): person for person in people}
    pool_of = Annotator.objects.filter(pool=pool, external_id__in=list(keys))
    have = set(pool_of.values_list("external_id", flat=True))
    missing = sorted(set(keys) - have)
    Annotator.objects.bulk_create((Annotator(pool=pool, external_id=key) for key in missing), ignore_conflicts=True)
    found = dict(pool_of.values_list("external_id", "pk"))
    # Whose id was erased has a row without it, and keeps that.
    met = set(PanelIdentity.objects.filter(annotator__in=found.values()).values_list("annotator", flat=True))
    store_person_ids({found[key]: person for key, person in keys.items() if found[key] not in met})
    return {person: found[key] for key, person in keys.items()}


def _columns(one: SubmissionSnapshot, row: PanelSubmission, task: PanelTask | None, source: str) -> dict:
    # A word that nobody knows changes nothing of what is known.
    state = row.state if one.state == UNKNOWN and row.state else one.state
    told = {
        "task": task,
        "state": state,
        "word": one.word[:40],
        "source": source,
        "receipt": one.code[:64],
    }
    told |= {name: getattr(one, name) for name in SNAPSHOT_FIELDS if name.endswith("_at")}
    # What one source leaves out another has told.
    return {name: value if value not in (None, "") else getattr(row, name) for name, value in told.items()}


def _assignments_by_person(recruitment: Recruitment) -> dict[int, list[Assignment]]:
    people: dict[int, list[Assignment]] = {}
    rows = Assignment.objects.filter(recruitment=recruitment).exclude(origin="test").order_by("-pk")
    for row in rows.only("pk", "code", "annotator_id", "external_ids", "submitted_at", "released_at", "trust"):
        people.setdefault(row.annotator_id, []).append(row)
    return people


def _found(mine: list[Assignment], one: SubmissionSnapshot) -> Assignment | None:
    """The person's assignment that this submission is about: by the panel's id, by the receipt, or the only one there is."""
    for row in mine:
        if one.submission in row.external_ids.values():
            return row
    if one.code:
        for row in mine:
            if is_same_receipt(one.code, receipt_of(row.code)):
                return row
    # Where the panel shows people alone, it shows one work of each: the newest.
    return mine[0] if len(mine) == 1 or (mine and one.submission.startswith(PERSON_PREFIX)) else None


def is_same_receipt(typed: str, receipt: str) -> bool:
    """Whether a receipt that a person typed is that one: letters of any size, with or without the dash."""
    return normalize_receipt(typed) == normalize_receipt(receipt)


def _is_current(assignment: Assignment, one: SubmissionSnapshot, is_news: bool) -> bool:
    """Whether they work under this id still: who returned and took it again has another one by now. Where no session tells, what was known
    before is about the time before they took it again."""
    ids = {value for value in assignment.external_ids.values() if not value.startswith(PERSON_PREFIX)}
    return one.submission in ids if ids and not one.submission.startswith(PERSON_PREFIX) else is_news


# How things stand


def with_match_status(recruitment: Recruitment) -> QuerySet[PanelSubmission]:
    """The recruitment's submissions with ``standing``, one of CLASSES."""
    mine = PanelSubmission.objects.filter(recruitment=recruitment)
    rival = mine.filter(external_id=OuterRef("external_id"), state__in=SENT_STATES).exclude(pk=OuterRef("pk"))
    # Who gave the task back, took it again and sent it did what they meant to.
    sent_again = mine.filter(assignment=OuterRef("assignment"), state__in=SENT_STATES).exclude(pk=OuterRef("pk"))
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
            When(Q(Exists(rival)) & ~Q(state__in=SENT_STATES) & finished, then=Value("surplus")),
            When(Q(state__in=[APPROVED, REJECTED]), then=Value("decided")),
            When(Q(state=SUBMITTED) & ~ours, then=Value("unknown")),
            When(Q(state=SUBMITTED) & finished, then=Value("matched")),
            When(Q(state=SUBMITTED) & ended, then=Value("turned_away")),
            When(Q(state=SUBMITTED), then=Value("orphan")),
            When(Q(state__in=LEFT_STATES) & finished & ~Exists(sent_again), then=Value("left_after_work")),
            When(state__in=[*LEFT_STATES, SCREENED_OUT], then=Value("left")),
            When(
                Q(state=WORKING) & finished & Q(assignment__submitted_at__lt=Now() - UNSENT_AFTER), then=Value("unsent")
            ),
            default=Value("working"),
            output_field=CharField(),
        )
    )


def unseen_assignments(recruitment: Recruitment) -> list[tuple[Assignment, str]]:
    """Finished here half an hour before the panel was looked at, and no row of the panel is about it: each with "unsent", or "surplus"
    where the panel's id has gone to another person. Nobody where the panel was never looked at: nothing is known then."""
    looked_at = _looked_at(recruitment)
    if looked_at is None:
        return []
    seen = PanelSubmission.objects.filter(assignment=OuterRef("pk"))
    mine = Assignment.objects.filter(recruitment=recruitment, submitted_at__lt=looked_at - UNSENT_AFTER, origin="live")
    rows = list(mine.filter(~Exists(seen)).order_by("pk"))
    ids = {value for row in rows for value in row.external_ids.values()}
    gone = PanelSubmission.objects.filter(recruitment=recruitment, external_id__in=ids, state__in=SENT_STATES)
    taken = set(gone.values_list("external_id", flat=True)) if ids else set()
    return [(row, "surplus" if taken.intersection(row.external_ids.values()) else "unsent") for row in rows]


def _looked_at(recruitment: Recruitment) -> datetime | None:
    """When it was last seen what the panel shows: all the time with a token, else when a file last told something new; or never."""
    if not REGISTRY[recruitment.channel].shows_submissions:
        return None
    if has_token(recruitment):
        return timezone.now()
    return PanelSubmission.objects.filter(recruitment=recruitment).aggregate(at=Max("seen_at"))["at"]


def match_status_counts(recruitment: Recruitment) -> dict[str, int]:
    """How many stand how, people whom the panel does not show at all included. In the order of CLASSES."""
    found = Counter(with_match_status(recruitment).values_list("standing", flat=True))
    found.update(standing for _, standing in unseen_assignments(recruitment))
    return {name: found[name] for name in MATCH_STATUSES if found[name]}


def erase_submission_ids(recruitments: QuerySet[Recruitment], except_assignments: QuerySet) -> int:
    """The panel's ids of people and submissions leave these recruitments' rows, ``but`` those of these assignments; what became of them
    stays."""
    mine = PanelSubmission.objects.filter(recruitment__in=recruitments).exclude(assignment__in=except_assignments)
    rows = list(mine.exclude(external_id__startswith=ERASED_PREFIX))
    for row in rows:
        row.external_id = _erased_id(row.recruitment_id, row.external_id)
    PanelSubmission.objects.bulk_update(rows, ["external_id"], batch_size=500)
    return len(rows)


def _erased_id(recruitment: int, submission: str) -> str:
    """What stands in the place of an erased id: the same each time, so that a panel that goes on showing it makes no second row."""
    return f"{ERASED_PREFIX}{keyed_hash('submission', str(recruitment), submission)[:40]}"
