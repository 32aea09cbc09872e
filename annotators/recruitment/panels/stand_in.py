"""Stand-ins: a panel on this machine, as its people and as our orders meet it. Tests and rehearsals speak to one; nobody is paid.

What a channel's real service does stands beside that service, and nothing leaves this machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

from annotators.models.constants import EXPIRED, RETURNED, SUBMITTED, WORKING

from .loopback import LoopbackServer


@dataclass(frozen=True, slots=True)
class AcceptedTask:
    """Somebody has accepted the task: their ids, as the panel knows them, and the address that it opens for them."""

    person: str
    session: str
    address: str


@dataclass(frozen=True, slots=True)
class ShownWayBack:
    """The way back as a page showed it: a code, an address, and the fields where it is a form."""

    code: str = ""
    url: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


class StandIn(LoopbackServer):
    """What a rehearsal asks of a panel. ``secrets``: invented ones, by name, that its service takes.

    ``shows_who_left``: whether its service tells that somebody gave the task back or ran out of time.
    """

    secrets: ClassVar[Mapping[str, str]] = {}
    shows_leavers = False

    def open_account(self, currency: str) -> None:
        """An account with enough in it, in this currency where the panel has several."""

    def person(self, number: int) -> str:
        """The id of the panel's n-th person."""
        raise NotImplementedError

    def preview_url(self) -> str:
        """The address that is opened for somebody who has not accepted; '' where there is no such look."""
        return ""

    def accept_task(self, person: str) -> AcceptedTask:
        """The person accepts the newest task."""
        raise NotImplementedError

    def sent(self, visit: AcceptedTask, way_back: ShownWayBack) -> str:
        """The person goes the way back. Gives what the panel says against it, in a sentence; '' where it is taken."""
        raise NotImplementedError

    def return_task(self, visit: AcceptedTask) -> None:
        raise NotImplementedError

    def expire_task(self, visit: AcceptedTask) -> None:
        """The panel's time for the task is over."""
        raise NotImplementedError

    def standing(self, visit: AcceptedTask) -> str:
        """One of the panels' STATES: what the panel itself would say, whether its service shows it or not."""
        raise NotImplementedError

    def bonus(self, visit: AcceptedTask) -> Decimal:
        """What was paid beside the reward."""
        return Decimal(0)

    def count_open_tasks(self) -> int:
        """How many tasks were published and not stopped."""
        return 0

    def lose_next_reply(self, operation: str) -> None:
        """The next such order is carried out, and its answer is lost."""
        raise NotImplementedError

    def throttle_next(self, operation: str) -> None:
        """The next such request is put off. ``look``: the list of submissions."""
        raise NotImplementedError


class LinkOnlyStandIn(StandIn):
    """A panel of which only the link is known: it opens what its researcher pasted, and takes whatever way back the page shows.

    ``link(number)`` gives the address for the n-th person, and what names their visit in it.
    """

    def __init__(self, link):
        self._link, self._states = link, {}

    def person(self, number):
        return str(number)

    def accept_task(self, person):
        address, session = self._link(int(person))
        self._states[session] = WORKING
        return AcceptedTask(person, session, address)

    def sent(self, visit, way_back):
        if not (way_back.code or way_back.url):
            return "The last page shows neither a code nor an address: the person cannot prove what they did."
        if left := [mark for mark in "{}" if mark in way_back.url + way_back.code]:
            return f"The way back still has a “{left[0]}” in it: something in it was not filled in."
        self._states[visit.session] = SUBMITTED
        return ""

    def return_task(self, visit):
        self._states[visit.session] = RETURNED

    def expire_task(self, visit):
        self._states[visit.session] = EXPIRED

    def standing(self, visit):
        return self._states[visit.session]
