"""Check arrivals against the panel, in a job after people have started, so that nobody waits for it.

Addresses are not signed: anyone can type another person's id. The panel's answer raises the trust in an assignment or
is shown to a researcher. It never rejects a person, because panels update late.
"""

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now

from annotators.models import Assignment, PanelEvent, Recruitment
from annotators.models.constants import APPROVED, REJECTED, SUBMITTED, UNKNOWN, WORKING
from annotators.models.identity import keyed_hash
from annotators.places.assign import hash_person_id
from annotators.recruitment.channels import REGISTRY

from . import SubmissionSnapshot

SOURCE = "arrival"
# Later, the regular check has seen them, or the panel does not show them at all.
CHECK_WINDOW = timedelta(days=1)
MAX_AT_ONCE = 200
VERIFIED, HAS_LEFT, OTHER_PERSON, UNKNOWN_TO_PANEL = "verified", "left", "of another person", "unknown to the panel"
# Messages for researchers about an arrival.
FLAG_MESSAGES = {
    OTHER_PERSON: "The panel shows this submission under another person or another task.",
    UNKNOWN_TO_PANEL: "The panel shows no submission with the id from the address.",
}
Trust = Assignment.Trust


def hashed_arrival_key(assignment: Assignment) -> str:
    """Return the name of this arrival.

    It changes if the same person comes with another submission, and contains no panel id.
    """
    return f"{assignment.pk}-{keyed_hash('arrival', assignment.external_ids.get('session', ''))[:24]}"


def recent_unchecked_arrivals(recruitments: Iterable[Recruitment]) -> list[Assignment]:
    """Return recent arrivals that have not been checked, for panels that show people at work."""
    showing = [recruitment.pk for recruitment in recruitments if REGISTRY[recruitment.channel].shows_active_submissions]
    arrivals_to_check = Assignment.objects.filter(
        recruitment__in=showing,
        origin=Assignment.Origin.LIVE,
        trust__in=[Trust.CLAIMED, Trust.KEYED],
        claimed_at__gt=Now() - CHECK_WINDOW,
        external_ids__has_key="session",
    )
    arrivals = (
        {
            hashed_arrival_key(assignment): assignment
            for assignment in arrivals_to_check.select_related("annotator").order_by("-pk")[:MAX_AT_ONCE]
        }
        if showing
        else {}
    )
    checked_keys = PanelEvent.objects.filter(source=SOURCE, external_id__in=list(arrivals)).values_list(
        "external_id", flat=True
    )
    for key in checked_keys if arrivals else ():
        del arrivals[key]
    return list(arrivals.values())


def classify_arrival(assignment: Assignment, snapshot: SubmissionSnapshot | None) -> str:
    """Classify an arrival by the panel's answer; '' if it is still unknown."""
    if snapshot is None:
        return UNKNOWN_TO_PANEL
    annotator, task = assignment.annotator, assignment.external_ids.get("task", snapshot.task)
    if (hash_person_id(annotator.pool, snapshot.person), snapshot.task) != (annotator.external_id, task):
        return OTHER_PERSON
    if snapshot.state in (WORKING, SUBMITTED, APPROVED, REJECTED):
        return VERIFIED
    return "" if snapshot.state == UNKNOWN else HAS_LEFT


def record_checks_and_verify_arrivals(
    assignments: list[Assignment], snapshots: dict[str, SubmissionSnapshot | None]
) -> int:
    """Store the panel's answers about these arrivals. Trust only rises. Return the number of verified arrivals."""
    kinds = {
        assignment: classify_arrival(assignment, snapshots[assignment.external_ids["session"]])
        for assignment in assignments
        if assignment.external_ids["session"] in snapshots
    }
    PanelEvent.objects.bulk_create(
        (
            PanelEvent(
                source=SOURCE,
                external_id=hashed_arrival_key(assignment),
                recruitment_id=assignment.recruitment_id,
                kind=kind,
                body={"assignment": assignment.pk},
                handled_at=Now(),
            )
            for assignment, kind in kinds.items()
            if kind
        ),
        ignore_conflicts=True,
    )
    verified = [assignment.pk for assignment, kind in kinds.items() if kind == VERIFIED]
    unverified = Assignment.objects.filter(pk__in=verified, trust__in=[Trust.CLAIMED, Trust.KEYED])
    return unverified.update(trust=Trust.VERIFIED)


def doubtful_arrivals(recruitment: Recruitment) -> list[tuple[Assignment, str]]:
    """Return arrivals that do not match the panel, each with a message, unless the panel has confirmed them since."""
    events: QuerySet[PanelEvent] = PanelEvent.objects.filter(source=SOURCE, recruitment=recruitment).order_by("pk")
    latest = {event.body["assignment"]: event.kind for event in events.only("body", "kind")}
    flagged = [pk for pk, kind in latest.items() if kind in FLAG_MESSAGES]
    unverified = Assignment.objects.filter(pk__in=flagged, trust__in=[Trust.CLAIMED, Trust.KEYED])
    return [(assignment, FLAG_MESSAGES[latest[assignment.pk]]) for assignment in unverified.order_by("pk")]
