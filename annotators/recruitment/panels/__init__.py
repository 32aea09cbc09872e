"""The common interface of all panel services.

No model and no network here.
A channel (``annotators.recruitment.channels``) that can contact its panel creates a ``PanelService``. Only jobs call it,
because each method waits for the network. Orders are stored before they are sent. An order whose reply was lost is
checked at the panel and not sent twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any


class RequestRefused(Exception):
    """The panel understood and refused. The message is the panel's, for researchers."""


class ResultUnclear(Exception):
    """There was no clear answer: the order may have been carried out."""


class ForgedMessage(Exception):
    """The notification was not signed with the panel's secret."""


class PanelBusy(Exception):
    """The panel asks to try again later; nothing was done."""

    def __init__(self, message: str, seconds: float = 60):
        super().__init__(message)
        self.seconds = seconds


class OrderNotReady(PanelBusy):
    """The panel is still processing this submission, and nothing was done. Other orders can continue."""


@dataclass(frozen=True, slots=True)
class SubmissionSnapshot:
    """A submission as the panel shows it, from its service or an exported file.

    ``submission`` is the panel's id. After a return it may belong to another person, so only ``submission`` and
    ``person`` together identify work. If a file lists only people, it is the person's id again. ``word``: the panel's
    own word for ``state``. ``code``: the code that the person entered at the panel, if any. ``decides_itself_at``: when
    the panel approves automatically.
    """

    task: str
    submission: str
    person: str
    state: str
    word: str = ""
    code: str = ""
    started_at: datetime | None = None
    submitted_at: datetime | None = None
    decided_at: datetime | None = None
    decides_itself_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """A notification from the panel.

    It says that something changed, not the new state. It may come twice, late and in any order.
    ``event_id``: the same for each repetition. ``submission``: '' if it is about something else.
    """

    event_id: str
    submission: str
    person: str
    word: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """An order that the panel must carry out once. ``token`` identifies it permanently; ``values`` as in OPERATIONS."""

    operation: str
    token: str
    values: Mapping[str, Any] = field(default_factory=dict)


class PanelService:
    """A panel's service as one recruitment may use it.

    ``operations``: the supported operations; each has a method of its name, ``(values, token) -> result``. Every call may
    raise RequestRefused, ResultUnclear or PanelBusy, and no other exception for network or panel failures.
    """

    operations: frozenset[str] = frozenset()

    def funds(self) -> "Funds | None":
        """Return the account's available funds; None if the panel does not say."""
        return None

    def charged_fees(self, task: str) -> "ChargedFees | None":
        """Return the fees charged for a task so far; None if unknown or not understood."""
        return None

    def submissions(self, task: str) -> Iterator[SubmissionSnapshot]:
        """Return all submissions of a task, from all pages, in the panel's order."""
        raise NotImplementedError

    def submission(self, submission: str) -> SubmissionSnapshot | None:
        """Read one submission anew; None if the panel shows none with this id."""
        raise NotImplementedError

    def subscribe(self, webhook_url: str) -> str:
        """Subscribe to notifications at this address. Return the secret that signs them. Idempotent."""
        raise RequestRefused("This panel sends no notifications. heval asks it regularly instead.")

    def carry_out(self, order: Order) -> dict[str, Any]:
        """Carry out the order. Return the parts of the answer to store (``{"task": id}`` for a published task)."""
        if order.operation not in self.operations:
            raise RequestRefused(
                f"This panel does not support “{order.operation.replace('_', ' ')}”. Do it at the panel itself."
            )
        return getattr(self, order.operation)(order.values, order.token)

    def find_order_result(self, order: Order) -> dict[str, Any] | None:
        """Return the result of an order whose reply was lost; None if it was not carried out and may be sent again.

        Raises ResultUnclear if the panel cannot say. A person then decides.
        """
        raise ResultUnclear("This panel cannot say whether the order was carried out. Check at the panel.")


@dataclass(frozen=True, slots=True)
class Funds:
    """The available funds of an account. ``currency`` is '' if the panel does not say."""

    amount: Decimal
    currency: str = ""


@dataclass(frozen=True, slots=True)
class ChargedFees:
    """Fees charged by the panel so far: for rewards, for bonuses, and the tax on both."""

    rewards: Decimal
    bonuses: Decimal
    tax: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Fee:
    """A fee rate of a panel. ``source``: origin and date of the rate."""

    label: str
    amount: Decimal
    source: str


# The possible grounds of a rejection.
FAILED_CHECKS = "checks"  # attention checks (questions with a known answer)
TOO_FAST = "too_fast"  # time for the whole study, compared with all others
TOO_SLOW = "too_slow"
NO_ANSWERS = "no_answers"
OBSERVED = "seen"  # not measurable: a person describes what they saw


@dataclass(frozen=True, slots=True)
class RejectionPolicy:
    """A panel's rejection policy: ``categories`` by slug with their meaning, and the minimum length of the message.

    ``evidence_by_category``: the evidence for each category, of which at least one must exist. Categories that are not listed need a
    person's note. ``source``: (text, address) of the panel's own rules.
    """

    categories: Mapping[str, str]
    min_message_length: int = 1
    rules: tuple[str, ...] = ()
    evidence_by_category: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: tuple[str, str] = ("", "")

    def evidence_for(self, category: str) -> tuple[str, ...]:
        return self.evidence_by_category.get(category, (OBSERVED,))


@dataclass(frozen=True, slots=True)
class BulkText:
    """Lines for a panel's own bulk form, for use without a token. ``where`` names the form."""

    name: str
    text: str
    where: str
