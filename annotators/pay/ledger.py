"""The book of payments: what is due is written down once, and what became of it. The only writer of Payment.

Every writer holds the lock of the link's row, so that two who look at once do not find the same sum missing twice.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from annotators.models import Assignment, OutcomePay, PanelOrder, PanelSubmission, Payment, Recruitment, Verdict
from annotators.models.constants import APPROVED, REJECTED, SCREENED_OUT, SUBMITTED
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.orders import give
from studies.access import Action, check
from studies.models import audit
from studies.services.lifecycle import NotNow

from .keeping import forget_leavers
from .owed import Owed, owed_to, people_of
from .promises import NOBODY, terms_of

Kind, Way, State = Payment.Kind, Payment.Way, Payment.State
# It reached the panel.
SENT = (SUBMITTED, APPROVED, REJECTED, SCREENED_OUT)
PROMISED = (Kind.BASE, Kind.OUTCOME, Kind.DIFFERENCE)
ENDED = {
    PanelOrder.State.DONE: State.PAID,
    PanelOrder.State.REFUSED: State.FAILED,
    PanelOrder.State.CANCELLED: State.CANCELLED,
}
REASONS = {
    Kind.BASE: "The reward of the study.",
    Kind.OUTCOME: "What was promised for this way to end.",
    Kind.DIFFERENCE: "The difference to what the study promises.",
}


@dataclass(slots=True)
class Settled:
    """What a look at the book changed. ``due``: newly due, ``amount`` in all of it."""

    due: int = 0
    amount: Decimal = NOBODY
    paid: int = 0
    failed: int = 0
    cancelled: int = 0
    currency: str = ""
    outcomes: Counter[str] = field(default_factory=Counter)


@contextmanager
def _book(recruitment: Recruitment):
    with transaction.atomic():
        yield (
            Recruitment.objects.select_for_update(of=("self",), no_key=True)
            .select_related("study")
            .get(pk=recruitment.pk)
        )


def payments_of(recruitment: Recruitment) -> QuerySet[Payment]:
    return Payment.objects.filter(assignment__recruitment=recruitment)


def settle(recruitment: Recruitment, *, by, is_dry: bool = False) -> Settled:
    """Write down what became of orders and approvals, and what is due now. Again, or twice at once, it changes nothing.

    ``is_dry``: only count.
    """
    check(by, Action.PAY, recruitment.study)
    with _book(recruitment) as locked:
        told = _Look(locked, by).settle()
        if is_dry:
            transaction.set_rollback(True)
        elif told.due:
            audit.record(
                "pay due", study=locked.study, by=by, recruitment=locked.key, n=told.due, amount=str(told.amount)
            )
    return told


def foreseen(recruitment: Recruitment) -> list[Payment]:
    """What is due, ordered or paid, as it would stand after a look now. Reads alone, without a lock: for the figures of a page."""
    look = _Look(recruitment, None)
    look.find()
    over = (State.FAILED, State.CANCELLED)
    return [row for rows in look.rows.values() for row in rows if row.state not in over]


def _rejected_here() -> QuerySet[Verdict]:
    """Where the panel is told of a rejection, or made it, what it shows of it counts; elsewhere the decision does."""
    told_there = PanelOrder.objects.filter(operation="reject", submission=OuterRef("submission"))
    standing = Verdict.objects.filter(~Exists(told_there), kind=Verdict.Kind.REJECT, reversed_by=None)
    return standing.exclude(category=Verdict.AT_PANEL)


def rejected(assignments: QuerySet[Assignment]) -> set[int]:
    """Those of them that are promised nothing any more, because their work was rejected."""
    shown = PanelSubmission.objects.filter(assignment__in=assignments).order_by()
    states: dict[int, set[str]] = defaultdict(set)
    for pk, state in shown.filter(state__in=[APPROVED, REJECTED]).values_list("assignment", "state"):
        states[pk].add(state)
    for pk in _rejected_here().filter(assignment__in=assignments).values_list("assignment", flat=True):
        states[pk].add(REJECTED)
    return {pk for pk, found in states.items() if APPROVED not in found}


class _Look:
    """One look at a link's people, under its lock where it writes: four reads, whatever their number."""

    def __init__(self, recruitment: Recruitment, by):
        self.recruitment, self.by = recruitment, by
        self.channel = REGISTRY[recruitment.channel]
        self.terms = terms_of(recruitment)
        self.rows: dict[int, list[Payment]] = defaultdict(list)
        for row in payments_of(recruitment).select_related("order").order_by("pk"):
            self.rows[row.assignment_id].append(row)
        self.shown: dict[int, set[str]] = defaultdict(set)
        self.task_of: dict[int, str] = {}
        seen = PanelSubmission.objects.filter(recruitment=recruitment, assignment__isnull=False).order_by("pk")
        for assignment, state, task in seen.values_list("assignment", "state", "task__external_id"):
            self.shown[assignment].add(state)
            self.task_of[assignment] = task or ""
        decided = _rejected_here().filter(assignment__recruitment=recruitment)
        for assignment in decided.values_list("assignment", flat=True):
            self.shown[assignment].add(REJECTED)
        published = PanelOrder.objects.filter(recruitment=recruitment, operation="publish", state=PanelOrder.State.DONE)
        told = published.order_by("pk").values_list("result", "values")
        self.listed = {str(result.get("task")): Decimal(values["reward"]) for result, values in told}
        self.new: list[Payment] = []
        self.changes: dict[str, list[int]] = defaultdict(list)

    def settle(self) -> Settled:
        """Find what has to be written down, and write it."""
        told = self.find()
        Payment.objects.bulk_create(self.new, batch_size=500)
        for state, pks in self.changes.items():
            Payment.objects.filter(pk__in=pks).update(state=state, ended_at=Now())
        _forget_who_left(self.recruitment)
        return told

    def find(self) -> Settled:
        """What has to be written down; ``rows`` stand as they would then."""
        told = Settled(currency=self.terms.currency)
        for row in [row for rows in self.rows.values() for row in rows if row.state == State.ORDERED]:
            if row.order.state in ENDED:
                self._change(row, ENDED[row.order.state])
                if row.state == State.FAILED and row.kind == Kind.BONUS:
                    self._again_by_hand(row)
        people = list(people_of(self.recruitment))
        for one in people:
            owed = owed_to(one, self.terms)
            told.outcomes[owed.outcome] += bool(owed.outcome)
            self._settle(one, owed)
        self._drop_all_but({one.pk for one in people})
        due = [row for row in self.new if row.state == State.DUE]
        told.due, told.amount = len(due), sum((row.amount for row in due), NOBODY)
        told.paid = len(self.changes[State.PAID]) + len(self.new) - len(due)
        told.failed, told.cancelled = len(self.changes[State.FAILED]), len(self.changes[State.CANCELLED])
        return told

    def _change(self, row: Payment, state: str) -> None:
        row.state = state
        self.changes[state].append(row.pk)

    def _standing(self, one: Assignment) -> list[Payment]:
        mine = (row for row in self.rows[one.pk] if row.kind in Payment.COVERING)
        return [row for row in mine if row.state not in (State.FAILED, State.CANCELLED)]

    def _settle(self, one: Assignment, owed: Owed) -> None:
        shown, promised = self.shown[one.pk], owed.amount
        if APPROVED in shown:
            self._approved(one, owed)
        elif REJECTED in shown:
            promised = NOBODY  # a person decided so; what was ordered or paid before stays
        for row in self._standing(one):
            if row.way == Way.SCREEN_OUT and row.state == State.DUE and SCREENED_OUT in shown:
                self._change(row, State.PAID)
        standing = self._standing(one)
        gap = promised - sum((row.amount for row in standing), NOBODY)
        if gap > 0:
            self._write_down(one, owed, gap, is_first=not standing)
            return
        for row in reversed(standing):
            if row.kind in PROMISED and row.state == State.DUE and row.amount <= -gap:
                self._change(row, State.CANCELLED)
                gap += row.amount

    def _drop_all_but(self, people: Collection[int]) -> None:
        """Who found no place and was given one later is paid for the work, and not for having come in vain too."""
        for pk in set(self.rows) - set(people):
            for row in self.rows[pk]:
                if row.kind in PROMISED and row.state == State.DUE:
                    self._change(row, State.CANCELLED)

    def _approved(self, one: Assignment, owed: Owed) -> None:
        """The panel has paid its reward, whoever approved. Where approving pays nothing, as credit does not, what is owed stays owed."""
        by_approval = [row for row in self._standing(one) if row.way == Way.APPROVAL]
        for row in by_approval:
            if row.state == State.DUE:
                self._change(row, State.PAID)
        listed = self._listed(one)
        if not by_approval and listed and Way.APPROVAL in self.channel.pays_by:
            kind = Kind.BASE if owed.outcome in ("complete", "") else Kind.OUTCOME
            self._add(one, kind, listed, Way.APPROVAL, State.PAID)

    def _write_down(self, one: Assignment, owed: Owed, gap: Decimal, is_first: bool) -> None:
        listed, ways = self._listed(one), self.channel.pays_by
        if is_first and owed.outcome == "complete" and Way.APPROVAL in ways and listed:
            self._add(one, Kind.BASE, listed, Way.APPROVAL)
            is_first, gap = False, gap - listed
        elif is_first and gap == listed and Way.APPROVAL in ways and SUBMITTED in self.shown[one.pk]:
            return self._add(one, Kind.OUTCOME, gap, Way.APPROVAL)
        if gap <= 0:
            return None
        kind = Kind.DIFFERENCE if not is_first else Kind.BASE if owed.outcome == "complete" else Kind.OUTCOME
        return self._add(one, kind, gap, self._way(one, owed, is_first))

    def _way(self, one: Assignment, owed: Owed, is_first: bool) -> str:
        # What the panel refused once it would refuse again.
        if any(row.state == State.FAILED for row in self.rows[one.pk]):
            return Way.HAND
        if is_first and owed.outcome == OutcomePay.Outcome.SCREENED_OUT and Way.SCREEN_OUT in self.channel.pays_by:
            return Way.SCREEN_OUT
        return Way.BONUS if Way.BONUS in self.channel.pays_by else Way.HAND

    def _again_by_hand(self, row: Payment) -> None:
        """What somebody decided to give is no promise that a look would find missing: it is due once more where the panel refuses it."""
        made = Payment(
            assignment_id=row.assignment_id, kind=row.kind, number=_next(self.rows[row.assignment_id], row.kind), amount=row.amount,
            currency=row.currency, way=Way.HAND, reason=row.reason, by=row.by,
        )  # fmt: skip
        self.rows[row.assignment_id].append(made)
        self.new.append(made)

    def _listed(self, one: Assignment) -> Decimal:
        """What the panel pays for an approval: as it was published; where that was done at the panel, what this person was told."""
        if reward := self.listed.get(self.task_of.get(one.pk, "")):
            return reward
        return self.terms.listed(one.design_id)

    def _add(self, one: Assignment, kind: str, amount: Decimal, way: str, state: str = State.DUE) -> None:
        row = Payment(
            assignment=one, kind=kind, number=_next(self.rows[one.pk], kind), amount=amount, currency=self.terms.currency, way=way, state=state,
            by=self.by, ended_at=None if state == State.DUE else Now(),
        )  # fmt: skip
        self.rows[one.pk].append(row)
        self.new.append(row)


def _forget_who_left(recruitment: Recruitment) -> None:
    """Who left is known to nobody any more once nothing is to be paid to them."""
    left = Assignment.objects.filter(withdrawn_at__isnull=False, origin=Assignment.Origin.LIVE)
    # What is owed by another link is written down when somebody looks at that link.
    paid = Payment.objects.filter(assignment=OuterRef("pk"))
    elsewhere = left.filter(~Exists(paid), annotator=OuterRef("annotator")).exclude(recruitment=recruitment)
    forget_leavers(left.filter(~Exists(elsewhere), recruitment=recruitment).values("annotator"))


def _next(rows: Iterable[Payment], kind: str) -> int:
    return 1 + max((row.number for row in rows if row.kind == kind), default=0)


# What a person adds, orders and marks


@dataclass(frozen=True, slots=True)
class Extra:
    """A bonus or a compensation that somebody decided to pay."""

    assignment: Assignment
    amount: Decimal
    reason: str


def add(recruitment: Recruitment, extras: Sequence[Extra], kind: str, by) -> int:
    """Write bonuses or compensations down as due. The same sum to the same person for the same reason is there once: gives how many
    are new. Compensation stands in place of what was promised and could not be paid."""
    check(by, Action.PAY, recruitment.study)
    with _book(recruitment) as locked:
        terms = terms_of(locked)
        rows: dict[int, list[Payment]] = defaultdict(list)
        for row in payments_of(locked).filter(assignment__in=[one.assignment for one in extras]):
            rows[row.assignment_id].append(row)
        new = []
        for one in extras:
            mine = rows[one.assignment.pk]
            if is_there(mine, kind, one):
                continue
            failed = any(row.state == State.FAILED for row in mine)
            # Who never reached the panel has nothing there that a bonus could hang on.
            at_panel = kind == Kind.BONUS and Way.BONUS in REGISTRY[locked.channel].pays_by and not failed
            made = Payment(
                assignment=one.assignment, kind=kind, number=_next(mine, kind), amount=one.amount, currency=terms.currency,
                way=Way.BONUS if at_panel else Way.HAND, reason=one.reason, by=by,
            )  # fmt: skip
            mine.append(made)
            new.append(made)
        Payment.objects.bulk_create(new, batch_size=500)
        if new:
            total = sum((row.amount for row in new), NOBODY)
            audit.record(
                f"pay {kind}", study=locked.study, by=by, recruitment=locked.key, n=len(new), amount=str(total)
            )
        _Look(locked, by).settle()
    return len(new)


def is_there(rows: Iterable[Payment], kind: str, extra: Extra) -> bool:
    wanted = (kind, extra.amount, extra.reason)
    return any(
        (row.kind, row.amount, row.reason) == wanted for row in rows if row.state not in (State.FAILED, State.CANCELLED)
    )


def to_order(recruitment: Recruitment, can: Collection[str]) -> QuerySet[Payment]:
    """What is due and may be ordered at the panel: of people whom it shows, in a way that its service has."""
    shown = PanelSubmission.objects.filter(recruitment=recruitment, assignment__isnull=False).values("assignment")
    ways = [way for way in (Way.BONUS, Way.SCREEN_OUT) if way in can]
    return payments_of(recruitment).filter(state=State.DUE, way__in=ways, assignment__in=shown).order_by("pk")


def to_pay(recruitment: Recruitment) -> QuerySet[Payment]:
    """What is due and is not paid by approving: the rows of the payment file."""
    return payments_of(recruitment).filter(state=State.DUE).exclude(way=Way.APPROVAL).order_by("pk")


def submissions_of(rows: Iterable[Payment]) -> dict[int, PanelSubmission]:
    """The panel's work of each assignment: of several the last that was sent there."""
    found: dict[int, PanelSubmission] = {}
    shown = PanelSubmission.objects.filter(assignment__in=[row.assignment_id for row in rows]).order_by("pk")
    for one in shown.select_related("assignment", "task"):
        before = found.get(one.assignment_id)
        if before is None or one.state in SENT or before.state not in SENT:
            found[one.assignment_id] = one
    return found


def total_of(rows: Iterable[Payment]) -> Decimal:
    return sum((row.amount for row in rows), NOBODY)


def order(recruitment: Recruitment, can: Collection[str], total: Decimal, by) -> int:
    """Order what is due at the panel, each once for ever. Raises NotNow where it comes to another sum than somebody agreed to."""
    check(by, Action.PAY, recruitment.study)
    with _book(recruitment) as locked:
        rows = list(to_order(locked, can).select_related("assignment"))
        if not rows:
            raise NotNow("Nothing is due that could be ordered at the panel.")
        if total_of(rows) != total:
            raise NotNow(f"It comes to {total_of(rows)} now, and {total} was typed. Nothing was ordered.")
        about = submissions_of(rows)
        for row in rows:
            values = {"amount": f"{row.amount:.2f}", "currency": row.currency}
            if row.way == Way.BONUS:
                values["reason"] = row.reason or REASONS[Kind(row.kind)]
            row.order = give(locked, row.way, f"payment-{row.pk}", submission=about[row.assignment_id], by=by, **values)
            row.state = State.ORDERED
        Payment.objects.bulk_update(rows, ["order", "state"], batch_size=200)
    return len(rows)


def mark_paid(recruitment: Recruitment, pks: Collection[int], by) -> int:
    """Somebody has paid these by hand, or at the panel itself. What was ordered here is not marked: its order tells."""
    check(by, Action.PAY, recruitment.study)
    with _book(recruitment) as locked:
        rows = list(payments_of(locked).filter(pk__in=pks, state=State.DUE))
        marked = Payment.objects.filter(pk__in=[row.pk for row in rows]).update(state=State.PAID, ended_at=Now())
        if marked:
            _forget_who_left(locked)
            audit.record(
                "mark paid", study=locked.study, by=by, recruitment=locked.key, n=marked, amount=str(total_of(rows))
            )
    return marked


def cancel(recruitment: Recruitment, pk: int, by) -> bool:
    """Take a bonus or a compensation back before it was paid or ordered. What is promised cannot be taken back."""
    check(by, Action.PAY, recruitment.study)
    with _book(recruitment) as locked:
        rows = payments_of(locked).filter(pk=pk, state=State.DUE, kind__in=[Kind.BONUS, Kind.COMPENSATION])
        is_taken_back = bool(
            Payment.objects.filter(pk__in=list(rows.values_list("pk", flat=True))).update(
                state=State.CANCELLED, ended_at=Now()
            )
        )
        if is_taken_back:
            audit.record("cancel payment", study=locked.study, by=by, recruitment=locked.key, payment=pk)
            _Look(locked, by).settle()
    return is_taken_back
