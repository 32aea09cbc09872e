"""Whether people are who their address says: asked of the panel by a job after they started, never while they wait.

Addresses are not signed: anybody can type another person's id. What the panel shows raises the trust in an assignment, or is put before
a researcher; nobody is refused for it, because panels show things late.
"""

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now

from annotators.models import Assignment, PanelEvent, Recruitment
from annotators.models.constants import APPROVED, REJECTED, SUBMITTED, UNKNOWN, WORKING
from annotators.models.crypto import keyed_hash
from annotators.places.assign import hash_person_id
from annotators.recruitment.channels import REGISTRY

from . import SubmissionSnapshot

SOURCE = "arrival"
# Later the regular look has seen them, or their panel shows nothing of them.
CHECK_WINDOW = timedelta(days=1)
MAX_AT_ONCE = 200
VERIFIED, HAS_LEFT, OTHER_PERSON, UNKNOWN_TO_PANEL = "verified", "left", "of another person", "unknown to the panel"
# What a researcher reads of an arrival.
FLAG_MESSAGES = {
    OTHER_PERSON: "The panel shows this submission as another person's, or of another task.",
    UNKNOWN_TO_PANEL: "The panel shows no submission under the id that the address carried.",
}
Trust = Assignment.Trust


def arrival_key(assignment: Assignment) -> str:
    """The name of this arrival: another one where the same person comes with another submission. It holds no id of the panel."""
    return f"{assignment.pk}-{keyed_hash('arrival', assignment.external_ids.get('session', ''))[:24]}"


def unchecked_arrivals(recruitments: Iterable[Recruitment]) -> list[Assignment]:
    """Who came lately by these links and was not asked about yet, where the panel shows who is at work."""
    showing = [one.pk for one in recruitments if REGISTRY[one.channel].shows_active_submissions]
    came = Assignment.objects.filter(
        recruitment__in=showing,
        origin=Assignment.Origin.LIVE,
        trust__in=[Trust.CLAIMED, Trust.KEYED],
        claimed_at__gt=Now() - CHECK_WINDOW,
        external_ids__has_key="session",
    )
    found = (
        {arrival_key(one): one for one in came.select_related("annotator").order_by("-pk")[:MAX_AT_ONCE]}
        if showing
        else {}
    )
    asked = PanelEvent.objects.filter(source=SOURCE, external_id__in=list(found)).values_list("external_id", flat=True)
    for mark in asked if found else ():
        del found[mark]
    return list(found.values())


def judge_arrival(assignment: Assignment, snapshot: SubmissionSnapshot | None) -> str:
    """What the panel's answer says of an arrival; '' where it does not tell yet."""
    if snapshot is None:
        return UNKNOWN_TO_PANEL
    whose, task = assignment.annotator, assignment.external_ids.get("task", snapshot.task)
    if (hash_person_id(whose.pool, snapshot.person), snapshot.task) != (whose.external_id, task):
        return OTHER_PERSON
    if snapshot.state in (WORKING, SUBMITTED, APPROVED, REJECTED):
        return VERIFIED
    return "" if snapshot.state == UNKNOWN else HAS_LEFT


def record_arrival_checks(assignments: list[Assignment], snapshots: dict[str, SubmissionSnapshot | None]) -> int:
    """Write down what the panel's answers say of these arrivals. Trust only rises. Gives how many are verified now."""
    found = {
        one: judge_arrival(one, snapshots[one.external_ids["session"]])
        for one in assignments
        if one.external_ids["session"] in snapshots
    }
    PanelEvent.objects.bulk_create(
        (
            PanelEvent(
                source=SOURCE,
                external_id=arrival_key(one),
                recruitment_id=one.recruitment_id,
                kind=kind,
                body={"assignment": one.pk},
                handled_at=Now(),
            )
            for one, kind in found.items()
            if kind
        ),
        ignore_conflicts=True,
    )
    verified = [one.pk for one, kind in found.items() if kind == VERIFIED]
    below = Assignment.objects.filter(pk__in=verified, trust__in=[Trust.CLAIMED, Trust.KEYED])
    return below.update(trust=Trust.VERIFIED)


def doubtful_arrivals(recruitment: Recruitment) -> list[tuple[Assignment, str]]:
    """Whom the panel shows otherwise than their address, each with what a researcher reads; nobody whom it has confirmed since."""
    events: QuerySet[PanelEvent] = PanelEvent.objects.filter(source=SOURCE, recruitment=recruitment).order_by("pk")
    latest = {event.body["assignment"]: event.kind for event in events.only("body", "kind")}
    flagged = [pk for pk, kind in latest.items() if kind in FLAG_MESSAGES]
    below = Assignment.objects.filter(pk__in=flagged, trust__in=[Trust.CLAIMED, Trust.KEYED])
    return [(one, FLAG_MESSAGES[latest[one.pk]]) for one in below.order_by("pk")]
