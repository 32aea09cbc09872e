"""The people of a rehearsal with the result expected for each, and the state that its steps share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from annotators.models import Assignment, Recruitment
from annotators.models.constants import APPROVED, EXPIRED, REJECTED, RETURNED, SCREENED_OUT, SUBMITTED, WORKING
from annotators.models.identity import person_id_placeholder
from annotators.places import assign
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.reconcile import submissions_with_match_status
from annotators.recruitment.panels.stand_in import AcceptedTask, ShownWayBack, StandIn
from studies.models import Study

from .browser import SendRequest

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from annotators.models.assignments import SubmissionWithStatus


# The people of a rehearsal, and the expected result for each of them.


# How an assignment may have ended in heval. NOTHING: there is no row.
NOTHING_STORED = "nothing stored"
FINISHED = "submitted"


@dataclass(frozen=True, slots=True)
class Role:
    """A role of people in a rehearsal. ``label`` says what these people do.

    ``site_states``: allowed states in heval. ``panel_states``: allowed states at the panel. ``classes``: allowed
    statuses in reconciliation, if the panel has a service. ``last_headings``: allowed headings of their last page; with
    an empty tuple any heading is allowed. ``has_way_back``: whether their last page must show a way back to the panel.
    """

    key: str
    label: str
    expected: str
    site_states: tuple[str, ...]
    panel_states: tuple[str, ...]
    classes: tuple[str, ...] = ()
    last_headings: tuple[str, ...] = ()
    has_way_back: bool = True

    @property
    def needs_place(self) -> bool:
        """Whether a place must be free for them."""
        return self.key not in ("never_starts", "full", "declines")


THANKS_HEADINGS = ("Thank you",)
FINISHING_ROLE = Role(
    "finishes",
    "accept and finish",
    "thanked and sent back; confirmed and approved if the panel has a service",
    (FINISHED,),
    (APPROVED,),
    ("decided",),
    THANKS_HEADINGS,
)
ROLES = (
    FINISHING_ROLE,
    Role(
        "lost_reply",
        "finish, and the reply to their last page is lost",
        "sending again is the same work: stored once, approved once",
        (FINISHED,),
        (APPROVED,),
        ("decided",),
        THANKS_HEADINGS,
    ),
    Role(
        "retakes",
        "return the task half-way, accept it again and finish",
        "they continue where they stopped, and are paid once",
        (FINISHED,),
        (APPROVED,),
        ("decided",),
        THANKS_HEADINGS,
    ),
    Role(
        "never_starts",
        "accept and never start",
        "nothing is stored for them",
        (NOTHING_STORED,),
        (EXPIRED,),
        ("left",),
        has_way_back=False,
    ),
    Role(
        "leaves",
        "leave half-way",
        "their place is free again, and their answers stay",
        ("expired", "returned"),
        (EXPIRED,),
        ("left",),
        has_way_back=False,
    ),
    Role(
        "returns",
        "return the task",
        "their place is free again, and their answers stay",
        ("expired", "returned"),
        (RETURNED,),
        ("left",),
        has_way_back=False,
    ),
    Role(
        "unsent",
        "finish here and never reach the panel",
        "their work is kept; if the panel has a service, they are listed for a person to check",
        (FINISHED,),
        (WORKING, EXPIRED),
        ("unsent",),
        THANKS_HEADINGS,
    ),
    Role(
        "screened_out",
        "answer so that they are screened out",
        "ended early, and sent back with their own code",
        ("screened_out",),
        (SUBMITTED, SCREENED_OUT, RETURNED),
        ("turned_away", "left"),
        ("This study is not for you",),
    ),
    Role(
        "full",
        "come when no place is left",
        "informed before any work",
        ("full", NOTHING_STORED),
        (SUBMITTED, SCREENED_OUT, RETURNED),
        ("turned_away", "left", "unknown"),
        ("The study is full", "No place was free", "No place right now"),
    ),
    Role(
        "rejected",
        "finish carelessly, and a person rejects them",
        "rejected only by a person's decision, with a reason",
        (FINISHED,),
        (REJECTED,),
        ("decided",),
        THANKS_HEADINGS,
    ),
    Role(
        "declines",
        "read the consent and do not agree",
        "nothing is stored about them",
        (NOTHING_STORED,),
        (SUBMITTED, SCREENED_OUT, RETURNED),
        ("unknown", "left"),
        ("You did not agree to take part",),
    ),
)
# These people finish without a check of the panel, so no one is approved there.
STATES_WITHOUT_SERVICE = {APPROVED: (SUBMITTED,), REJECTED: (SUBMITTED,)}


def choose_roles(count: int, skipped_keys: set[str]) -> list[Role]:
    """Return this number of people: one per playable role, in the order of ROLES; all others simply finish."""
    first_roles = [role for role in ROLES if role.key not in skipped_keys][:count]
    return [*first_roles, *[FINISHING_ROLE] * (count - len(first_roles))]


# Shared state of a rehearsal: the link, the panel's stand-in, the people, and the findings.


Progress = Callable[[int, int, str], object]


@dataclass
class Person:
    role: Role
    number: int
    send: SendRequest
    id: str = ""
    visit: AcceptedTask | None = None
    code: str = ""  # of their assignment
    last_heading: str = ""
    way_back: ShownWayBack = field(default_factory=ShownWayBack)
    faults: list[str] = field(default_factory=list)
    site_state: str = ""
    panel_state: str = ""
    match_status: str = ""
    pay: str = ""

    @property
    def accepted_task(self) -> AcceptedTask:
        """Return the task that this person has accepted."""
        if self.visit is None:
            raise ValueError("This person has not accepted the task.")
        return self.visit

    def add_fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)


class RehearsalContext:
    """The context of a rehearsal. Findings are in ``faults``, ``passed_checks`` and ``notes``, and with each person."""

    def __init__(self, recruitment: Recruitment, panel: StandIn, progress: Progress):
        self.recruitment, self.panel, self.progress = recruitment, panel, progress
        self.study: Study = recruitment.study
        self.channel = REGISTRY[recruitment.channel]
        self.has_service = bool(panel.secrets)
        self.people: list[Person] = []
        self.faults: list[str] = []  # problems not specific to a person
        self.passed_checks: list[str] = []  # simulated faults that were handled correctly
        self.notes: list[str] = []
        self.total = 0  # steps counted in the progress
        self._steps = 0

    @property
    def reward(self) -> Decimal | None:
        return self.recruitment.reward if self.recruitment.reward is not None else self.study.reward

    @property
    def currency(self) -> str:
        return self.recruitment.currency or self.study.currency

    def report_progress(self, text: str) -> None:
        self._steps += 1
        self.progress(self._steps, max(self.total, self._steps), text)

    def record_check(self, has_passed: bool, description: str) -> bool:
        (self.passed_checks if has_passed else self.faults).append(
            description if has_passed else f"This check failed: {description}."
        )
        return has_passed

    def submissions(self) -> "QuerySet[SubmissionWithStatus]":
        return submissions_with_match_status(self.recruitment).select_related("assignment", "annotator").order_by("pk")

    def submission_of(self, person: Person) -> "SubmissionWithStatus | None":
        if person.visit is None:
            return None
        key = assign.hash_person_id(self.recruitment.pool, person.id)
        own_rows = self.submissions().filter(
            external_id__in=[person.visit.session, person_id_placeholder(key)], annotator__external_id=key
        )
        return own_rows.first()

    def assignment_of(self, person: Person) -> Assignment | None:
        if person.code:
            return Assignment.objects.get(code=person.code)
        if not self.channel.identifies_people or person.visit is None:
            return None
        arrival = self.channel.read_arrival(self.recruitment, dict(parse_qsl(urlsplit(person.visit.address).query)))
        key = assign.hash_person_id(self.recruitment.pool, arrival.person)
        return Assignment.objects.filter(study=self.study, annotator__external_id=key).order_by("-pk").first()
