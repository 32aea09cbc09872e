"""Stand-ins: simulated panels on this machine, for tests and rehearsals.

No one is paid.
The simulation of a channel's service is in the channel's package. Nothing leaves this machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

from django.db.models import QuerySet

from annotators.models import Recruitment
from annotators.models.constants import EXPIRED, RETURNED, SUBMITTED, WORKING
from annotators.recruitment.panels.loopback import LoopbackServer
from studies.access import Action, check_permission_or_404
from studies.models import Job
from studies.services import jobs


@dataclass(frozen=True, slots=True)
class AcceptedTask:
    """A person who accepted the task: their ids at the panel, and the address that the panel opens for them."""

    person: str
    session: str
    address: str


@dataclass(frozen=True, slots=True)
class ShownWayBack:
    """The way back as a page showed it: a code, an address, and the fields if it is a form."""

    code: str = ""
    url: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


class StandIn(LoopbackServer):
    """A panel as a rehearsal uses it.

    ``secrets``: invented secrets by name, which its service accepts.
    ``shows_leavers``: whether its service shows that a person returned the task or ran out of time.
    """

    secrets: ClassVar[Mapping[str, str]] = {}
    shows_leavers = False

    def open_account(self, currency: str) -> None:
        """Prepare an account with enough money, in this currency if the panel has several."""

    def nth_person_id(self, number: int) -> str:
        """Return the id of the panel's n-th person."""
        raise NotImplementedError

    def preview_url(self) -> str:
        """Return the address that opens for people who have not accepted; '' if there is no preview."""
        return ""

    def accept_task(self, person: str) -> AcceptedTask:
        """Let the person accept the newest task."""
        raise NotImplementedError

    def use_way_back(self, visit: AcceptedTask, way_back: ShownWayBack) -> str:
        """Let the person use the way back. Return the panel's objection as a sentence; '' if accepted."""
        raise NotImplementedError

    def return_task(self, visit: AcceptedTask) -> None:
        raise NotImplementedError

    def expire_task(self, visit: AcceptedTask) -> None:
        """Let the panel's time for the task run out."""
        raise NotImplementedError

    def submission_state(self, visit: AcceptedTask) -> str:
        """Return the state of the visit, one of the panel's states, even if the panel's service does not show it."""
        raise NotImplementedError

    def paid_bonus_total(self, visit: AcceptedTask) -> Decimal:
        """Return the payments beside the reward."""
        return Decimal(0)

    def count_open_tasks(self) -> int:
        """Return the number of published tasks that are not stopped."""
        return 0

    def lose_next_reply(self, operation: str) -> None:
        """Carry out the next such order, but lose its reply."""
        raise NotImplementedError

    def throttle_next(self, operation: str) -> None:
        """Postpone the next such request. The operation ``look`` is the list of submissions."""
        raise NotImplementedError


class LinkOnlyStandIn(StandIn):
    """A panel known only by its link: it opens the pasted link and accepts any way back that the page shows.

    ``link(number)`` returns the address for the n-th person and the id of their visit.
    """

    def __init__(self, link):
        self._link, self._states = link, {}

    def nth_person_id(self, number):
        return str(number)

    def accept_task(self, person):
        address, session = self._link(int(person))
        self._states[session] = WORKING
        return AcceptedTask(person, session, address)

    def use_way_back(self, visit, way_back):
        if not (way_back.code or way_back.url):
            return "The last page shows neither a code nor an address, so people cannot prove their work."
        if unfilled := [mark for mark in "{}" if mark in way_back.url + way_back.code]:
            return f"The way back still contains “{unfilled[0]}”: a placeholder was not filled in."
        self._states[visit.session] = SUBMITTED
        return ""

    def return_task(self, visit):
        self._states[visit.session] = RETURNED

    def expire_task(self, visit):
        self._states[visit.session] = EXPIRED

    def submission_state(self, visit):
        return self._states[visit.session]


# Request a rehearsal and read its last report.
#
# The code that runs it is in another app; this app knows the job only by name.


KIND = "rehearsal"
MIN_PEOPLE, DEFAULT_PEOPLE, MAX_PEOPLE = 3, 12, 200  # people


def get_or_create_rehearsal_job(recruitment: Recruitment, n_people: int = DEFAULT_PEOPLE, *, by, seed: int = 0) -> Job:
    """Return the rehearsal job that is waiting or running, otherwise a new one."""
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    job = rehearsal_jobs_of(recruitment).filter(ended_at=None).first()
    return job or jobs.submit(
        KIND, study=recruitment.study, by=by, recruitment=recruitment.pk, people=n_people, seed=seed
    )


def rehearsal_jobs_of(recruitment: Recruitment) -> QuerySet[Job]:
    """Return all rehearsals of a recruitment, the newest first. Their results are reports."""
    return Job.objects.filter(kind=KIND, arguments__recruitment=recruitment.pk).order_by("-pk")
