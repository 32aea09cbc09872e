"""Shared state of a rehearsal: the link, the panel's stand-in, the people, and the findings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from annotators.models import Assignment, Recruitment
from annotators.models.identity import person_id_placeholder
from annotators.places import assign
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.reconcile import submissions_with_match_status
from annotators.recruitment.panels.stand_in import AcceptedTask, ShownWayBack, StandIn
from studies.models import Study

from .browser import SendRequest
from .roles import Role

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from annotators.models.annotated import SubmissionWithStatus

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
