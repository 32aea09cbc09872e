"""Reconcile a panel's submissions with heval's assignments.

The only writer of PanelSubmission and of trust "confirmed".
heval and the panel record work independently, and a browser redirect between them can fail. Reconciliation rejects no
one and deletes no answers. It releases places of people who left, and shows every difference to a person.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

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
from annotators.models.identity import ERASED_PREFIX, PERSON_PREFIX, keyed_hash, person_id_placeholder, store_person_ids
from annotators.places import assign
from annotators.places.places import compute_receipt, normalize_receipt
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.signals import submissions_imported
from studies.access import Action, check_permission_or_404
from studies.models import audit

from . import SubmissionSnapshot
from .http_client import has_service_secret

if TYPE_CHECKING:
    from annotators.models.assignments import SubmissionWithStatus

Trust, Released = Assignment.Trust, Assignment.Released

SENT_STATES = (SUBMITTED, APPROVED, REJECTED)  # submitted at the panel
LEFT_STATES = (RETURNED, EXPIRED)
UNSENT_AFTER = timedelta(minutes=30)
# The panel's data about a submission, in our columns.
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

# How a submission and an assignment match: (status for researchers, what to do).
MATCH_STATUSES = {
    "matched": ("finished at both", "Approve it."),
    "decided": ("approved or rejected", ""),
    "working": ("in progress", ""),
    "left": ("returned or expired", ""),
    "turned_away": ("ended early by heval", "Pay the amount promised for this outcome."),
    "orphan": ("submitted at the panel, not finished in heval", "Check how far the work got. Usually pay it. The person "
                                                       "may still finish."),
    "unknown": (
        "submitted at the panel, unknown in heval", "Never a reason to reject. Ask the person, and check whether they "
                                           "came by another link.",
    ),
    "surplus": ("one panel id, two people", "The panel pays the other person. Pay this person a compensation."),
    "left_after_work": ("finished in heval, returned at the panel", "The answers are kept. Ask the person "
                                                                  "whether they meant to return the task."),
    "unsent": ("finished in heval, not submitted at the panel", "Send them their completion code or return address. "
                                                       "They did the work, so you can pay a compensation."),
    "unreadable": ("in a state unknown to heval", "Check at the panel."),
}  # fmt: skip
NEEDS_REVIEW = ("orphan", "unknown", "surplus", "left_after_work", "unsent", "unreadable")


@dataclass(slots=True)
class ImportSummary:
    """The result of a check. ``seen``: number of submissions; the other fields count changes."""

    seen: int = 0
    new: int = 0
    changed: int = 0
    linked: int = 0
    confirmed: int = 0
    released: int = 0
    classes: dict[str, int] = field(default_factory=dict)


class DryRun(Exception):
    """Raised within the transaction of a dry run, so that nothing is stored."""


def import_panel_file_and_release_places(
    recruitment: Recruitment, text: str, by, dry_run: bool = False
) -> ImportSummary:
    """Import submissions from the panel's exported file. Raises ValueError if the file is not readable."""
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    channel = REGISTRY.get(recruitment.channel)
    if channel is None or not channel.can_read_export_file(recruitment):
        raise ValueError(
            "This link accepts no exported file. Enter the file's columns in the link's settings, if its "
            "channel supports files."
        )
    with transaction.atomic():
        summary = import_submissions_and_release_places(
            recruitment, channel.read_export(recruitment, text), PanelSubmission.Source.FILE, dry_run
        )
        if not dry_run:
            audit.record("read panel file", study=recruitment.study, by=by, recruitment=recruitment.key, n=summary.seen)
    return summary


def import_submissions_and_release_places(
    recruitment: Recruitment,
    snapshots: Iterable[SubmissionSnapshot],
    source: str,
    dry_run: bool = False,
    assignments: Mapping[SubmissionSnapshot, Assignment] | None = None,
) -> ImportSummary:
    """Store the panel's submissions and apply the consequences.

    Idempotent.
    ``dry_run``: only count the changes. ``assignments``: the known assignment of a submission for which the panel shows
    no person; no person is searched then. Everything is one transaction, so an interrupted check stores nothing. Raises
    ValueError with the number of a submission with unusable ids.
    """
    summary = ImportSummary()
    releases: list[tuple[int, str]] = []
    listed = list(snapshots)  # all network requests happen before the transaction
    for n, snapshot in enumerate(listed, 1):
        ids = {"submission": snapshot.submission, "person": snapshot.person, "task": snapshot.task}
        for id_name, external_id in ids.items():
            is_missing = not external_id and id_name != "task"
            if len(external_id) > MAX_EXTERNAL_ID_LENGTH or "\x00" in external_id or is_missing:
                raise ValueError(
                    f"Submission {n}: the {id_name}'s id is empty, longer than {MAX_EXTERNAL_ID_LENGTH} "
                    "characters, or not text. Correct it at the panel."
                )
    try:
        with transaction.atomic():
            Recruitment.objects.select_for_update(of=("self",), no_key=True).get(pk=recruitment.pk)
            releases = _store_snapshots(recruitment, listed, source, summary, assignments or {})
            if dry_run:
                summary.released = len(releases)
                summary.classes = count_submissions_and_missing_by_status(recruitment)
                raise DryRun
    except DryRun:
        return summary
    # Places have their own locks, in their own order.
    summary.released = sum(assign.release_assignment(pk, reason) for pk, reason in releases)
    summary.classes = count_submissions_and_missing_by_status(recruitment)
    submissions_imported.send(Recruitment, recruitment=recruitment)
    return summary


def _store_snapshots(
    recruitment: Recruitment,
    snapshots: list[SubmissionSnapshot],
    source: str,
    summary: ImportSummary,
    assignments: Mapping[SubmissionSnapshot, Assignment],
) -> list[tuple[int, str]]:
    tasks = _tasks(recruitment, {snapshot.task for snapshot in snapshots if snapshot.task})
    annotators = _annotators(recruitment.pool, {row.person for row in snapshots if row not in assignments})
    snapshots = [row if row in assignments else _redact_person_id(recruitment.pool, row) for row in snapshots]
    known_rows = {
        (row.external_id, row.annotator_id): row
        for row in PanelSubmission.objects.filter(recruitment=recruitment).select_related("assignment")
    }
    assignments_by_annotator = _assignments_by_person(recruitment)
    new, changed, confirmed = [], [], set()
    releases: list[tuple[int, str]] = []
    for snapshot in snapshots:
        summary.seen += 1
        annotator = assignments[snapshot].annotator_id if snapshot in assignments else annotators[snapshot.person]
        row = known_rows.get((snapshot.submission, annotator)) or known_rows.get(
            (_erased_id(recruitment.pk, snapshot.submission), annotator)
        )
        is_new = row is None
        if row is None:
            row = PanelSubmission(recruitment=recruitment, external_id=snapshot.submission, annotator_id=annotator)
            known_rows[snapshot.submission, annotator] = row
        own_assignments = assignments_by_annotator.get(annotator, [])
        assignment = row.assignment or assignments.get(snapshot) or _match_assignment(own_assignments, snapshot)
        summary.linked += assignment is not None and row.assignment_id is None
        columns = _columns(snapshot, row, tasks.get(snapshot.task), source) | {"assignment": assignment}
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
            and _is_current(assignment, snapshot, is_news)
        ):
            releases.append((assignment.pk, Released.RETURNED if row.state == RETURNED else Released.EXPIRED))
    # A row that appears twice in one check is the same object in both lists.
    new_ids = {id(row) for row in new}
    changed = list({id(row): row for row in changed if id(row) not in new_ids}.values())
    PanelSubmission.objects.bulk_create(new, batch_size=500)
    for row in changed:
        row.seen_at = Now()
    PanelSubmission.objects.bulk_update(changed, [*SNAPSHOT_FIELDS, "assignment", "seen_at"], batch_size=200)
    newly_confirmed = Assignment.objects.filter(pk__in=confirmed).exclude(trust=Trust.CONFIRMED)
    summary.confirmed = newly_confirmed.update(trust=Trust.CONFIRMED)
    summary.new, summary.changed = len(new), len(changed)
    return releases


def _redact_person_id(pool: str, snapshot: SubmissionSnapshot) -> SubmissionSnapshot:
    """Return the submission with the person's own id masked in all free text."""
    mark = person_id_placeholder(assign.hash_person_id(pool, snapshot.person))
    texts = (snapshot.submission, snapshot.code)
    submission, code = (mark if text.strip() == snapshot.person else text for text in texts)
    return replace(snapshot, submission=submission, code=code)


def _tasks(recruitment: Recruitment, external_ids: set[str]) -> dict[str, PanelTask]:
    """Return the recruitment's tasks by panel id. Tasks made by hand at the panel are stored now."""
    existing_ids = set(PanelTask.objects.filter(recruitment=recruitment).values_list("external_id", flat=True))
    new_ids = sorted(external_ids - existing_ids)
    PanelTask.objects.bulk_create(PanelTask(recruitment=recruitment, external_id=new_id) for new_id in new_ids)
    return {row.external_id: row for row in PanelTask.objects.filter(recruitment=recruitment)}


def _annotators(pool: str, people: set[str]) -> dict[str, int]:
    """Return the annotators of a pool with these ids; create unknown ones."""
    keys = {assign.hash_person_id(pool, person): person for person in people}
    in_pool = Annotator.objects.filter(pool=pool, external_id__in=list(keys))
    existing_keys = set(in_pool.values_list("external_id", flat=True))
    missing = sorted(set(keys) - existing_keys)
    Annotator.objects.bulk_create((Annotator(pool=pool, external_id=key) for key in missing), ignore_conflicts=True)
    pk_by_key = dict(in_pool.values_list("external_id", "pk"))
    # If a person's id was erased, their row stays without it.
    identities = PanelIdentity.objects.filter(annotator__in=pk_by_key.values())
    with_identity = set(identities.values_list("annotator", flat=True))
    store_person_ids({pk_by_key[key]: person for key, person in keys.items() if pk_by_key[key] not in with_identity})
    return {person: pk_by_key[key] for key, person in keys.items()}


def _columns(snapshot: SubmissionSnapshot, row: PanelSubmission, task: PanelTask | None, source: str) -> dict:
    # An unknown state word does not change the stored state.
    state = row.state if snapshot.state == UNKNOWN and row.state else snapshot.state
    columns = {
        "task": task,
        "state": state,
        "word": snapshot.word[:40],
        "source": source,
        "receipt": snapshot.code[:64],
    }
    columns |= {name: getattr(snapshot, name) for name in SNAPSHOT_FIELDS if name.endswith("_at")}
    # Keep a value from one source if the other source leaves it out.
    return {name: value if value not in (None, "") else getattr(row, name) for name, value in columns.items()}


def _assignments_by_person(recruitment: Recruitment) -> dict[int, list[Assignment]]:
    people: dict[int, list[Assignment]] = {}
    rows = Assignment.objects.filter(recruitment=recruitment).exclude(origin="test").order_by("-pk")
    for row in rows.only("pk", "code", "annotator_id", "external_ids", "submitted_at", "released_at", "trust"):
        people.setdefault(row.annotator_id, []).append(row)
    return people


def _match_assignment(assignments: list[Assignment], snapshot: SubmissionSnapshot) -> Assignment | None:
    """Find the person's assignment for this submission: by the panel's id, by the receipt, or the only one."""
    for row in assignments:
        if snapshot.submission in row.external_ids.values():
            return row
    if snapshot.code:
        for row in assignments:
            if is_same_receipt(snapshot.code, compute_receipt(row.code)):
                return row
    # If the panel lists only people, it shows the newest submission of each.
    is_newest = len(assignments) == 1 or snapshot.submission.startswith(PERSON_PREFIX)
    return assignments[0] if assignments and is_newest else None


def is_same_receipt(typed_receipt: str, receipt: str) -> bool:
    """Return whether a typed receipt matches, ignoring case and the dash."""
    return normalize_receipt(typed_receipt) == normalize_receipt(receipt)


def _is_current(assignment: Assignment, snapshot: SubmissionSnapshot, is_news: bool) -> bool:
    """Return whether the assignment still belongs to this submission id.

    People who returned the task and took it again have a new id. Without session ids, older data is about the time
    before they took it again.
    """
    ids = {value for value in assignment.external_ids.values() if not value.startswith(PERSON_PREFIX)}
    return snapshot.submission in ids if ids and not snapshot.submission.startswith(PERSON_PREFIX) else is_news


# Statuses


def submissions_with_match_status(recruitment: Recruitment) -> "QuerySet[SubmissionWithStatus]":
    """Return the recruitment's submissions with ``standing``, one of MATCH_STATUSES."""
    submissions = PanelSubmission.objects.filter(recruitment=recruitment)
    rival = submissions.filter(external_id=OuterRef("external_id"), state__in=SENT_STATES).exclude(pk=OuterRef("pk"))
    # A person who returned the task, took it again and submitted it counts as submitted.
    sent_again = submissions.filter(assignment=OuterRef("assignment"), state__in=SENT_STATES).exclude(pk=OuterRef("pk"))
    finished, is_linked = Q(assignment__submitted_at__isnull=False), Q(assignment__isnull=False)
    ended = Q(assignment__released_reason__in=[*assign.FINAL_RELEASE_REASONS, Released.FULL])
    return submissions.annotate(
        standing=Case(
            When(state=UNKNOWN, then=Value("unreadable")),
            When(Q(Exists(rival)) & ~Q(state__in=SENT_STATES) & finished, then=Value("surplus")),
            When(Q(state__in=[APPROVED, REJECTED]), then=Value("decided")),
            When(Q(state=SUBMITTED) & ~is_linked, then=Value("unknown")),
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


def finished_assignments_missing_at_panel(recruitment: Recruitment) -> list[tuple[Assignment, str]]:
    """Return assignments that were finished half an hour before the last check and have no submission at the panel.

    Each has "unsent", or "surplus" if the panel's id now belongs to another person. Empty if the panel was never
    checked.
    """
    read_at = _last_read_at(recruitment)
    if read_at is None:
        return []
    own_submissions = PanelSubmission.objects.filter(assignment=OuterRef("pk"))
    live = Assignment.objects.filter(recruitment=recruitment, submitted_at__lt=read_at - UNSENT_AFTER, origin="live")
    rows = list(live.filter(~Exists(own_submissions)).order_by("pk"))
    ids = {value for row in rows for value in row.external_ids.values()}
    sent = PanelSubmission.objects.filter(recruitment=recruitment, external_id__in=ids, state__in=SENT_STATES)
    taken_ids = set(sent.values_list("external_id", flat=True)) if ids else set()
    return [(row, "surplus" if taken_ids.intersection(row.external_ids.values()) else "unsent") for row in rows]


def _last_read_at(recruitment: Recruitment) -> datetime | None:
    """Return when the panel was last read: now with a token, otherwise at the last import with news; None if never."""
    if not REGISTRY[recruitment.channel].shows_submissions:
        return None
    if has_service_secret(recruitment):
        return timezone.now()
    return PanelSubmission.objects.filter(recruitment=recruitment).aggregate(at=Max("seen_at"))["at"]


def count_submissions_and_missing_by_status(recruitment: Recruitment) -> dict[str, int]:
    """Count the statuses, including people whom the panel does not show. The order is that of MATCH_STATUSES."""
    counts = Counter(submissions_with_match_status(recruitment).values_list("standing", flat=True))
    counts.update(match_status for _, match_status in finished_assignments_missing_at_panel(recruitment))
    return {name: counts[name] for name in MATCH_STATUSES if counts[name]}


def erase_submission_ids(recruitments: QuerySet[Recruitment], except_assignments: QuerySet) -> int:
    """Erase the panel's ids of people and submissions in these recruitments, except for these assignments.

    The states of the submissions stay.
    """
    submissions = PanelSubmission.objects.filter(recruitment__in=recruitments)
    rows = list(submissions.exclude(assignment__in=except_assignments).exclude(external_id__startswith=ERASED_PREFIX))
    for row in rows:
        row.external_id = _erased_id(row.recruitment_id, row.external_id)
    PanelSubmission.objects.bulk_update(rows, ["external_id"], batch_size=500)
    return len(rows)


def _erased_id(recruitment: int, submission: str) -> str:
    """Return the replacement of an erased id: always the same, so that a submission shown again makes no second row."""
    return f"{ERASED_PREFIX}{keyed_hash('submission', str(recruitment), submission)[:40]}"
