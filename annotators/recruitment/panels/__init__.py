"""What a panel's own service offers, in words that are the same for every panel. No model and no network here.

A channel (``annotators.recruitment.channels``) that can speak to its panel makes a ``Service``. Jobs call it, requests never do: each method
waits for the network. What is ordered is written down before it is sent, so that an order whose reply was lost is looked up and
not given twice.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any


class RequestRefused(Exception):
    """The panel understood and said no. The words are the panel's, for a researcher."""


class ResultUnclear(Exception):
    """No answer came, or none that tells: the order may have been carried out."""


class ForgedMessage(Exception):
    """What came was not signed with the panel's secret."""


class PanelBusy(Exception):
    """The panel asks to come back later; nothing was done."""

    def __init__(self, words: str, seconds: float = 60):
        super().__init__(words)
        self.seconds = seconds


class OrderNotReady(PanelBusy):
    """Nothing was done about this one, which is on its way at the panel; other orders are taken meanwhile."""


@dataclass(frozen=True, slots=True)
class SubmissionSnapshot:
    """A submission as the panel shows it, read from its service or from a file that it exports.

    ``submission`` is the panel's id, which may be given to another person after a return: only with ``person`` does it name one
    work. Where a file knows people alone it is the person's id again. ``word``: the panel's own word for ``state``. ``code``: what the person entered at the panel, where it asks for a code.
    ``decides_itself_at``: when the panel approves without us.
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
    """What a panel sent by itself. It says that something changed, not what holds: messages come twice, late and in any order.

    ``event``: the same for each repetition. ``submission``: '' where it is about something else.
    """

    event_id: str
    submission: str
    person: str
    word: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """Something that a panel shall do once. ``token`` names it for ever; ``values`` as in OPERATIONS."""

    operation: str
    token: str
    values: Mapping[str, Any] = field(default_factory=dict)


class PanelService:
    """A panel's service as one recruitment may use it.

    ``can``: the operations that it carries out; each has a method of its name, ``(values, token) -> result``. Every call may raise
    Refused, Unclear or Busy, and nothing else for what a network or a panel does.
    """

    operations: frozenset[str] = frozenset()

    def check(self) -> str:
        """In a few words whose account this is and what it holds: proof that the secrets are right."""
        raise NotImplementedError

    def funds(self) -> "Funds | None":
        """What the account can still spend; None where the panel does not tell."""
        return None

    def cost(self, task: str) -> "ChargedFees | None":
        """What the panel has taken for a task until now; None where it does not tell, or in words that we do not know."""
        return None

    def submissions(self, task: str) -> Iterator[SubmissionSnapshot]:
        """All of a task, to the last page, in whatever order the panel has them."""
        raise NotImplementedError

    def submission(self, submission: str) -> SubmissionSnapshot | None:
        """One, read anew; None where the panel shows none under this id."""
        raise NotImplementedError

    def subscribe(self, webhook_url: str) -> str:
        """Let the panel send its messages to this address; gives the secret with which it signs them. Twice is once."""
        raise RequestRefused("This panel sends no messages.")

    def do(self, order: Order) -> dict[str, Any]:
        """Carry it out; gives what the panel answered and is worth keeping (``{"task": id}`` of what was published)."""
        if order.operation not in self.operations:
            raise RequestRefused(f"This panel has no way to {order.operation.replace('_', ' ')}.")
        return getattr(self, order.operation)(order.values, order.token)

    def look(self, order: Order) -> dict[str, Any] | None:
        """What came of an order whose reply was lost: its result, or None where it was not carried out and may be sent again.

        Raises Unclear where the panel cannot tell: a person decides then.
        """
        raise ResultUnclear("This panel cannot tell whether it was carried out.")


@dataclass(frozen=True, slots=True)
class Funds:
    """What an account can still spend. ``currency`` '' where the panel does not say."""

    amount: Decimal
    currency: str = ""


@dataclass(frozen=True, slots=True)
class ChargedFees:
    """What a panel says that it has taken until now beside what people got: of rewards, of bonuses, and the tax on both."""

    rewards: Decimal
    bonuses: Decimal
    tax: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Fee:
    """What a panel takes beside what people get. ``source``: where the rate is from and of when."""

    label: str
    amount: Decimal
    source: str


# What a rejection may rest on.
FAILED_CHECKS = "checks"  # questions with a known answer
TOO_FAST = "too_fast"  # the whole study, against everybody's time
TOO_SLOW = "too_slow"
NO_ANSWERS = "no_answers"
OBSERVED = "seen"  # what no count shows: a person says what they saw
EVIDENCE_KINDS = (FAILED_CHECKS, TOO_FAST, TOO_SLOW, NO_ANSWERS, OBSERVED)


@dataclass(frozen=True, slots=True)
class RejectionPolicy:
    """What a panel lets one refuse: ``categories`` by slug with what each means; the least length of the message.

    ``grounds``: on what a category may rest, one of which must be there; a person's note where a category is not named.
    ``source``: (words, address) of the panel's own rules.
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
    """Lines for a panel's own bulk form: for those who give heval no token. ``where`` says into which form they go."""

    name: str
    text: str
    where: str
