"""The ledger of payments: each amount due is recorded once, with its later states.

The only writer of Payment.
Every writer locks the link's row, so two settlements at once do not record the same amount twice.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.utils import timezone

from annotators.models import (
    Assignment,
    OutcomePay,
    PanelIdentity,
    PanelOrder,
    PanelSubmission,
    Payment,
    Recruitment,
    Verdict,
)
from annotators.models.constants import APPROVED, REJECTED, SCREENED_OUT, SUBMITTED
from annotators.models.identity import ERASED_PREFIX
from annotators.pages.record import full_page_state
from annotators.pages.sequence import get_section_itinerary
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.alerts import Alert
from annotators.recruitment.panels.orders import get_or_create_order
from studies.access import Action, check_permission_or_404
from studies.models import Study, audit
from studies.services.lifecycle import ActionRefused

from .promises import ZERO, PayTerms, Rule, get_pay_terms, pay_obstacles

if TYPE_CHECKING:
    from annotators.models.assignments import PayableAssignment


# Panel ids are kept until the erasure date, and longer for people whose pay still needs them.


@dataclass(frozen=True, slots=True)
class RetainedIds:
    """The number of people whose ids a link keeps beyond ``day``, and the amount due to them."""

    people: int
    amount: Decimal
    currency: str
    day: date


def id_erasure_time(study: Study) -> datetime:
    """Return the erasure date of the ids of a closed study's people."""
    return study.closed_at + timedelta(days=study.erase_after_days)


def study_ids_past_erasure_time() -> list[int]:
    """Return studies past their erasure date."""
    closed = Study.objects.filter(state=Study.State.CLOSED).annotate(now=Now())
    return [study.pk for study in closed if id_erasure_time(study) < study.now]


def unpaid_payments() -> QuerySet[Payment]:
    """Return payments that are neither paid nor cancelled.

    Payments refused by the panel appear again with another way.
    """
    return Payment.objects.filter(state__in=[Payment.State.DUE, Payment.State.ORDERED])


def unwithdrawn_assignments_before_id_erasure() -> QuerySet[Assignment]:
    """Return work of people in studies before their erasure date, without those who left."""
    leavers = Assignment.objects.filter(
        annotator=OuterRef("annotator"), study=OuterRef("study"), withdrawn_at__isnull=False
    )
    return Assignment.objects.exclude(study__in=study_ids_past_erasure_time()).filter(~Exists(leavers))


def finished_assignments_awaiting_credit() -> QuerySet[Assignment]:
    """Return finished work for which the panel has not confirmed the credit yet."""
    crediting = [slug for slug, channel in REGISTRY.items() if channel.credits_on_completion]
    granted = PanelSubmission.objects.filter(
        recruitment=OuterRef("recruitment"), annotator=OuterRef("annotator"), state=APPROVED
    )
    submitted = Assignment.objects.filter(recruitment__channel__in=crediting, submitted_at__isnull=False)
    return submitted.filter(~Exists(granted), origin=Assignment.Origin.LIVE)


def erase_ids_of_withdrawn_without_open_payments(annotators) -> int:
    """Erase the ids of people who have left every study and have no recorded amount due.

    The caller checks whether an unrecorded amount is due.
    """
    same_person = {"annotator": OuterRef("annotator")}
    due = unpaid_payments().filter(assignment__annotator=OuterRef("annotator"))
    identities = PanelIdentity.objects.filter(annotator__in=annotators, ciphertext__isnull=False)
    erasable = identities.filter(
        ~Exists(unwithdrawn_assignments_before_id_erasure().filter(**same_person)),
        ~Exists(finished_assignments_awaiting_credit().filter(**same_person)),
        ~Exists(due),
    )
    return erasable.update(ciphertext=None, purge_at=None)


def ids_retained_for_pay_past_erasure_time(recruitment: Recruitment) -> RetainedIds | None:
    """Return None if no ids are kept beyond the erasure date."""
    study = recruitment.study
    if study.state != Study.State.CLOSED or id_erasure_time(study) > timezone.now():
        return None
    rows = _filter_with_ids(unpaid_payments().filter(assignment__recruitment=recruitment))
    totals = rows.aggregate(people=Count("assignment__annotator", distinct=True), amount=Sum("amount"))
    if not totals["people"]:
        return None
    currency = recruitment.currency or study.currency
    return RetainedIds(totals["people"], totals["amount"], currency, id_erasure_time(study).date())


def id_retention_alerts(recruitment: Recruitment) -> Iterator[Alert]:
    if retained := ids_retained_for_pay_past_erasure_time(recruitment):
        subject = "1 person are" if retained.people == 1 else f"{retained.people} people are"
        owed = f"{retained.amount:.2f} {retained.currency}"
        yield Alert(
            "ids",
            f"Ids of {subject} kept beyond the erasure date ({retained.day}), because {owed} is still due to them.",
            "Pay them, and mark payments made by hand. heval then erases the ids within an hour.",
        )


def links_retaining_ids_for_pay_past_erasure() -> QuerySet[Recruitment]:
    """Return links that keep ids."""
    rows = _filter_with_ids(unpaid_payments().filter(assignment__study__in=study_ids_past_erasure_time()))
    return Recruitment.objects.filter(pk__in=rows.values("assignment__recruitment")).select_related("study")


def _filter_with_ids(rows: QuerySet[Payment]) -> QuerySet[Payment]:
    identities = PanelIdentity.objects.filter(annotator=OuterRef("assignment__annotator"), ciphertext__isnull=False)
    submissions = PanelSubmission.objects.filter(assignment=OuterRef("assignment")).exclude(
        external_id__startswith=ERASED_PREFIX
    )
    return rows.filter(Exists(identities) | Exists(submissions) | ~Q(assignment__external_ids={}))


# What one settlement of a link's payments changed.


@dataclass(slots=True)
class LedgerUpdateSummary:
    """Counts of payments by their new state. ``due``: newly due payments; ``amount``: their sum."""

    due: int = 0
    amount: Decimal = ZERO
    paid: int = 0
    failed: int = 0
    cancelled: int = 0
    currency: str = ""
    outcomes: Counter[str] = field(default_factory=Counter)


# The amount owed for an assignment, by how it ended. Reads only; exclusion from the analysis does not matter here.


Released, Outcome = Assignment.Released, OutcomePay.Outcome
OUTCOME_BY_RELEASE: dict[str, str] = {
    Released.SCREENED_OUT: Outcome.SCREENED_OUT,
    Released.FAILED_CHECKS: Outcome.FAILED_CHECKS,
    Released.FAULT: Outcome.FAULT,
    Released.FULL: Outcome.FULL,
    Released.WITHDRAWN: Outcome.WITHDRAWN,
}


@dataclass(frozen=True, slots=True)
class OwedAmount:
    """The amount owed for an assignment. ``reward``: the pay for the last page."""

    outcome: str
    reward: Decimal
    amount: Decimal


def payable_outcome(assignment: Assignment, study: Study) -> str:
    """Return "complete", an OutcomePay outcome, or "" if nothing is owed (at work, returned, or abandoned).

    Finished work is paid, late or not, even after a withdrawal. "Fault": the person was at work when the study was
    closed, or did not fail the attention checks or the test by their own fault.
    """
    if assignment.submitted_at:
        return "complete"
    reason = assignment.released_reason
    if reason == Released.EXPIRED:
        closed, reserved_until = study.closed_at, assignment.reserved_until
        is_cut_off = bool(
            assignment.started_at
            and closed
            and reserved_until
            and assignment.released_at >= closed
            and reserved_until > closed
        )
        return Outcome.FAULT if is_cut_off else ""
    return OUTCOME_BY_RELEASE.get(reason, "")


def assignments_considered_for_pay(recruitment: Recruitment) -> "QuerySet[PayableAssignment]":
    """Return everyone who came by this link, with ``sent`` pages. Test runs, robots and imports are not paid."""
    assignments = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE)
    placed_assignments = Assignment.objects.filter(
        study=OuterRef("study"), annotator=OuterRef("annotator"), batch__isnull=False
    )
    return (
        assignments.exclude(Q(batch=None) & Exists(placed_assignments))
        .select_related("batch__arm")
        .annotate(sent=Count("visits", filter=Q(visits__recorded_at__isnull=False)))
        .order_by("pk")
    )


def compute_amount_owed(
    assignment: Assignment, n_pages_sent: int, terms: PayTerms, assumed_outcome: str = ""
) -> OwedAmount:
    """Compute the amount.

    ``n_pages_sent``: the number of stored pages; ``assumed_outcome``: as if it had ended like this.
    """
    outcome = assumed_outcome or payable_outcome(assignment, terms.study)
    if not outcome:
        return OwedAmount("", ZERO, ZERO)
    reward = terms.reward_of(assignment.design_id, assignment.batch.arm.name if assignment.batch else None)
    promises = promises_for(assignment, outcome)
    is_share = any((rule := terms.rules.get(name)) is not None and rule.rule == Rule.SHARE for name in promises)
    pages = _pages(assignment) if is_share and n_pages_sent and assignment.batch_id else 0
    amount = max(terms.promised_pay(name, reward, n_pages_sent, pages) for name in promises)
    return OwedAmount(outcome, reward, amount)


def promises_for(assignment: Assignment, outcome: str) -> tuple[str, ...]:
    """Return the outcomes whose best promise is paid. An upheld objection never lowers what wrong answers paid before."""
    if outcome == Outcome.FAULT and assignment.released_reason == Released.FAULT:
        return (outcome, Outcome.FAILED_CHECKS, Outcome.SCREENED_OUT)
    return (outcome,)


def _pages(assignment: Assignment) -> int:
    """Return the total number of pages, as determined by the answers. Cached by batch if nothing depends on answers."""
    fixed = get_section_itinerary(assignment).fixed
    return len((fixed or full_page_state(assignment).sequence).keys)


Kind, Way, State = Payment.Kind, Payment.Way, Payment.State
# It was submitted at the panel.
REACHED_PANEL = (SUBMITTED, APPROVED, REJECTED, SCREENED_OUT)
PROMISED_KINDS = (Kind.BASE, Kind.OUTCOME, Kind.DIFFERENCE)
STATE_BY_ORDER_STATE = {
    PanelOrder.State.DONE: State.PAID,
    PanelOrder.State.REFUSED: State.FAILED,
    PanelOrder.State.CANCELLED: State.CANCELLED,
}
DEFAULT_REASONS: dict[str, str] = {
    Kind.BASE: "The reward of the study.",
    Kind.OUTCOME: "What was promised for this way to end.",
    Kind.DIFFERENCE: "The difference to what the study promises.",
}


@contextmanager
def _locked_ledger(recruitment: Recruitment):
    with transaction.atomic():
        yield (
            Recruitment.objects.select_for_update(of=("self",), no_key=True)
            .select_related("study")
            .get(pk=recruitment.pk)
        )


def recruitment_payments(recruitment: Recruitment) -> QuerySet[Payment]:
    return Payment.objects.filter(assignment__recruitment=recruitment)


def update_ledger(recruitment: Recruitment, *, by, dry_run: bool = False) -> LedgerUpdateSummary:
    """Record results of orders and approvals, and new amounts due.

    Idempotent, also if run twice at once.
    ``dry_run``: only count the changes.
    """
    check_permission_or_404(by, Action.PAY, recruitment.study)
    with _locked_ledger(recruitment) as locked:
        summary = _LedgerRun(locked, by).write_changes()
        if dry_run:
            transaction.set_rollback(True)
        elif summary.due:
            audit.record(
                "pay due", study=locked.study, by=by, recruitment=locked.key, n=summary.due, amount=str(summary.amount)
            )
    return summary


def preview_payments_after_ledger_update(recruitment: Recruitment) -> list[Payment]:
    """Return the ledger as a settlement would leave it. Reads only, without a lock, for a page's figures."""
    ledger_run = _LedgerRun(recruitment, None)
    ledger_run.find()
    ended_states = (State.FAILED, State.CANCELLED)
    return [row for rows in ledger_run.rows.values() for row in rows if row.state not in ended_states]


def _local_rejections() -> QuerySet[Verdict]:
    """Return heval's rejections that count. If the panel received or made one, the panel's state decides instead."""
    rejections_at_panel = PanelOrder.objects.filter(operation="reject", submission=OuterRef("submission"))
    rejections = Verdict.objects.filter(~Exists(rejections_at_panel), kind=Verdict.Kind.REJECT, reversed_by=None)
    return rejections.exclude(category=Verdict.AT_PANEL)


def rejected_assignment_ids(assignments: QuerySet[Assignment]) -> set[int]:
    """Return the assignments that are owed nothing any more because their work was rejected."""
    submissions = PanelSubmission.objects.filter(assignment__in=assignments).order_by()
    states: dict[int, set[str]] = defaultdict(set)
    for pk, state in submissions.filter(state__in=[APPROVED, REJECTED]).values_list("assignment", "state"):
        states[pk].add(state)
    for pk in _local_rejections().filter(assignment__in=assignments).values_list("assignment", flat=True):
        states[pk].add(REJECTED)
    return {pk for pk, assignment_states in states.items() if APPROVED not in assignment_states}


class _LedgerRun:
    """One settlement of a link's people: four reads, whatever their number. Locks the link if it writes."""

    def __init__(self, recruitment: Recruitment, by):
        self.recruitment, self.by = recruitment, by
        self.channel = REGISTRY[recruitment.channel]
        self.terms = get_pay_terms(recruitment)
        self.rows: dict[int, list[Payment]] = defaultdict(list)
        for row in recruitment_payments(recruitment).select_related("order").order_by("pk"):
            self.rows[row.assignment_id].append(row)
        self.panel_states: dict[int, set[str]] = defaultdict(set)
        self.task_by_assignment: dict[int, str] = {}
        submissions = PanelSubmission.objects.filter(recruitment=recruitment, assignment__isnull=False).order_by("pk")
        for assignment, state, task in submissions.values_list("assignment", "state", "task__external_id"):
            self.panel_states[assignment].add(state)
            self.task_by_assignment[assignment] = task or ""
        rejections = _local_rejections().filter(assignment__recruitment=recruitment)
        for assignment in rejections.values_list("assignment", flat=True):
            self.panel_states[assignment].add(REJECTED)
        published = PanelOrder.objects.filter(recruitment=recruitment, operation="publish", state=PanelOrder.State.DONE)
        publications = published.order_by("pk").values_list("result", "values")
        self.listed = {str(result.get("task")): Decimal(values["reward"]) for result, values in publications}
        self.new: list[Payment] = []
        self.changes: dict[str, list[int]] = defaultdict(list)

    def write_changes(self) -> LedgerUpdateSummary:
        """Find the required changes and store them."""
        summary = self.find()
        Payment.objects.bulk_create(self.new, batch_size=500)
        for state, pks in self.changes.items():
            Payment.objects.filter(pk__in=pks).update(state=state, ended_at=Now())
        _erase_withdrawn_ids(self.recruitment)
        return summary

    def find(self) -> LedgerUpdateSummary:
        """Return the required changes; ``rows`` are updated as they would be."""
        summary = LedgerUpdateSummary(currency=self.terms.currency)
        for row in [row for rows in self.rows.values() for row in rows if row.state == State.ORDERED]:
            if row.order.state in STATE_BY_ORDER_STATE:
                self._set_state(row, STATE_BY_ORDER_STATE[row.order.state])
                if row.state == State.FAILED and row.kind == Kind.BONUS:
                    self._make_due_by_hand(row)
        assignments = list(assignments_considered_for_pay(self.recruitment))
        for assignment in assignments:
            owed = compute_amount_owed(assignment, assignment.sent, self.terms)
            summary.outcomes[owed.outcome] += bool(owed.outcome)
            self._settle(assignment, owed)
        self._cancel_due_except({assignment.pk for assignment in assignments})
        due = [row for row in self.new if row.state == State.DUE]
        summary.due, summary.amount = len(due), sum((row.amount for row in due), ZERO)
        summary.paid = len(self.changes[State.PAID]) + len(self.new) - len(due)
        summary.failed, summary.cancelled = len(self.changes[State.FAILED]), len(self.changes[State.CANCELLED])
        return summary

    def _set_state(self, row: Payment, state: str) -> None:
        row.state = state
        self.changes[state].append(row.pk)

    def _active_payments(self, assignment: Assignment) -> list[Payment]:
        covering_payments = (row for row in self.rows[assignment.pk] if row.kind in Payment.COVERING)
        return [row for row in covering_payments if row.state not in (State.FAILED, State.CANCELLED)]

    def _settle(self, assignment: Assignment, owed: OwedAmount) -> None:
        panel_states, promised = self.panel_states[assignment.pk], owed.amount
        if APPROVED in panel_states:
            self._mark_approved_as_paid(assignment, owed)
        elif REJECTED in panel_states:
            promised = ZERO  # a person decided this; ordered or paid amounts stay
        for row in self._active_payments(assignment):
            if row.way == Way.SCREEN_OUT and row.state == State.DUE and SCREENED_OUT in panel_states:
                self._set_state(row, State.PAID)
        active_payments = self._active_payments(assignment)
        gap = promised - sum((row.amount for row in active_payments), ZERO)
        if gap > 0:
            self._record_gap(assignment, owed, gap, is_first=not active_payments)
            return
        for row in reversed(active_payments):
            if row.kind in PROMISED_KINDS and row.state == State.DUE and row.amount <= -gap:
                self._set_state(row, State.CANCELLED)
                gap += row.amount

    def _cancel_due_except(self, payable: Collection[int]) -> None:
        """If a person found no place and got one later, pay the work but not the useless visit too."""
        for pk in set(self.rows) - set(payable):
            for row in self.rows[pk]:
                if row.kind in PROMISED_KINDS and row.state == State.DUE:
                    self._set_state(row, State.CANCELLED)

    def _mark_approved_as_paid(self, assignment: Assignment, owed: OwedAmount) -> None:
        """Mark rewards of approved work as paid. If approval pays nothing (credit), the amount stays due."""
        by_approval = [row for row in self._active_payments(assignment) if row.way == Way.APPROVAL]
        for row in by_approval:
            if row.state == State.DUE:
                self._set_state(row, State.PAID)
        listed = self._listed_reward(assignment)
        if not by_approval and listed and Way.APPROVAL in self.channel.pays_by:
            kind = Kind.BASE if owed.outcome in ("complete", "") else Kind.OUTCOME
            self._add_payment(assignment, kind, listed, Way.APPROVAL, State.PAID)

    def _record_gap(self, assignment: Assignment, owed: OwedAmount, gap: Decimal, is_first: bool) -> None:
        listed, ways = self._listed_reward(assignment), self.channel.pays_by
        if is_first and owed.outcome == "complete" and Way.APPROVAL in ways and listed:
            self._add_payment(assignment, Kind.BASE, listed, Way.APPROVAL)
            is_first, gap = False, gap - listed
        elif is_first and gap == listed and Way.APPROVAL in ways and SUBMITTED in self.panel_states[assignment.pk]:
            return self._add_payment(assignment, Kind.OUTCOME, gap, Way.APPROVAL)
        if gap <= 0:
            return None
        kind = Kind.DIFFERENCE if not is_first else Kind.BASE if owed.outcome == "complete" else Kind.OUTCOME
        return self._add_payment(assignment, kind, gap, self._choose_way(assignment, owed, is_first))

    def _choose_way(self, assignment: Assignment, owed: OwedAmount, is_first: bool) -> str:
        # An order that the panel refused would be refused again.
        if any(row.state == State.FAILED for row in self.rows[assignment.pk]):
            return Way.HAND
        if is_first and owed.outcome == OutcomePay.Outcome.SCREENED_OUT and Way.SCREEN_OUT in self.channel.pays_by:
            return Way.SCREEN_OUT
        return Way.BONUS if Way.BONUS in self.channel.pays_by else Way.HAND

    def _make_due_by_hand(self, row: Payment) -> None:
        """Handle bonuses and compensations, which become due again if the panel refuses them."""
        payment = Payment(
            assignment_id=row.assignment_id, kind=row.kind, number=_next_number(self.rows[row.assignment_id], row.kind), amount=row.amount,
            currency=row.currency, way=Way.HAND, reason=row.reason, by=row.by,
        )  # fmt: skip
        self.rows[row.assignment_id].append(payment)
        self.new.append(payment)

    def _listed_reward(self, assignment: Assignment) -> Decimal:
        """Return what an approval pays: the published amount, or what this person saw if heval did not publish."""
        if reward := self.listed.get(self.task_by_assignment.get(assignment.pk, "")):
            return reward
        return self.terms.reward_listed_at_panel(assignment.design_id)

    def _add_payment(
        self, assignment: Assignment, kind: str, amount: Decimal, way: str, state: str = State.DUE
    ) -> None:
        row = Payment(
            assignment=assignment, kind=kind, number=_next_number(self.rows[assignment.pk], kind), amount=amount, currency=self.terms.currency, way=way, state=state,
            by=self.by, ended_at=None if state == State.DUE else Now(),
        )  # fmt: skip
        self.rows[assignment.pk].append(row)
        self.new.append(row)


def _erase_withdrawn_ids(recruitment: Recruitment) -> None:
    """Erase the ids of people who left once nothing remains to be paid."""
    withdrawn = Assignment.objects.filter(withdrawn_at__isnull=False, origin=Assignment.Origin.LIVE)
    # Amounts due from another link are recorded when that link is settled.
    paid = Payment.objects.filter(assignment=OuterRef("pk"))
    unpaid = withdrawn.filter(~Exists(paid), annotator=OuterRef("annotator")).exclude(recruitment=recruitment)
    erase_ids_of_withdrawn_without_open_payments(
        withdrawn.filter(~Exists(unpaid), recruitment=recruitment).values("annotator")
    )


def _next_number(rows: Iterable[Payment], kind: str) -> int:
    return 1 + max((row.number for row in rows if row.kind == kind), default=0)


# Actions by researchers: add, order and mark payments


@dataclass(frozen=True, slots=True)
class ExtraPayment:
    """A bonus or compensation that a researcher decided to pay."""

    assignment: Assignment
    amount: Decimal
    reason: str


def add_extra_payments(recruitment: Recruitment, extras: Sequence[ExtraPayment], kind: str, by) -> int:
    """Record bonuses or compensations as due, and return the number of new ones.

    The same sum to the same person for the same reason is recorded once. A compensation replaces promised pay that
    could not be paid.
    """
    check_permission_or_404(by, Action.PAY, recruitment.study)
    with _locked_ledger(recruitment) as locked:
        terms = get_pay_terms(locked)
        rows: dict[int, list[Payment]] = defaultdict(list)
        for row in recruitment_payments(locked).filter(assignment__in=[extra.assignment for extra in extras]):
            rows[row.assignment_id].append(row)
        new = []
        for extra in extras:
            payments = rows[extra.assignment.pk]
            if is_extra_payment_recorded(payments, kind, extra):
                continue
            failed = any(row.state == State.FAILED for row in payments)
            # A person who never submitted at the panel cannot get a bonus there.
            at_panel = kind == Kind.BONUS and Way.BONUS in REGISTRY[locked.channel].pays_by and not failed
            payment = Payment(
                assignment=extra.assignment, kind=kind, number=_next_number(payments, kind), amount=extra.amount, currency=terms.currency,
                way=Way.BONUS if at_panel else Way.HAND, reason=extra.reason, by=by,
            )  # fmt: skip
            payments.append(payment)
            new.append(payment)
        Payment.objects.bulk_create(new, batch_size=500)
        if new:
            total = sum((row.amount for row in new), ZERO)
            audit.record(
                f"pay {kind}", study=locked.study, by=by, recruitment=locked.key, n=len(new), amount=str(total)
            )
        _LedgerRun(locked, by).write_changes()
    return len(new)


def is_extra_payment_recorded(payments: Iterable[Payment], kind: str, extra: ExtraPayment) -> bool:
    extra_key = (kind, extra.amount, extra.reason)
    return any(
        (row.kind, row.amount, row.reason) == extra_key
        for row in payments
        if row.state not in (State.FAILED, State.CANCELLED)
    )


def payments_orderable_at_panel(recruitment: Recruitment, operations: Collection[str]) -> QuerySet[Payment]:
    """Return due payments that the panel's service supports, for people whom the panel shows."""
    at_panel = PanelSubmission.objects.filter(recruitment=recruitment, assignment__isnull=False).values("assignment")
    ways = [way for way in (Way.BONUS, Way.SCREEN_OUT) if way in operations]
    payments = recruitment_payments(recruitment)
    return payments.filter(state=State.DUE, way__in=ways, assignment__in=at_panel).order_by("pk")


def due_payments_not_by_approval(recruitment: Recruitment) -> QuerySet[Payment]:
    """Return payments that are due and not paid by approval: the rows of the payment file."""
    return recruitment_payments(recruitment).filter(state=State.DUE).exclude(way=Way.APPROVAL).order_by("pk")


def latest_submission_by_assignment_id(payments: Iterable[Payment]) -> dict[int | None, PanelSubmission]:
    """Return the panel's submission of each assignment: the last one submitted, if there are several."""
    latest: dict[int | None, PanelSubmission] = {}
    submissions = PanelSubmission.objects.filter(assignment__in=[row.assignment_id for row in payments]).order_by("pk")
    for submission in submissions.select_related("assignment", "task"):
        earlier = latest.get(submission.assignment_id)
        if earlier is None or submission.state in REACHED_PANEL or earlier.state not in REACHED_PANEL:
            latest[submission.assignment_id] = submission
    return latest


def total_amount(payments: Iterable[Payment]) -> Decimal:
    return sum((row.amount for row in payments), ZERO)


def order_due_payments_at_panel(
    recruitment: Recruitment, operations: Collection[str], expected_total: Decimal, by
) -> int:
    """Order all due payments, each once. Raises ActionRefused if the total differs from the confirmed total."""
    check_permission_or_404(by, Action.PAY, recruitment.study)
    with _locked_ledger(recruitment) as locked:
        rows = list(payments_orderable_at_panel(locked, operations).select_related("assignment"))
        if not rows:
            raise ActionRefused("No due payment can be ordered at the panel. You need not do anything.")
        if total_amount(rows) != expected_total:
            raise ActionRefused(
                f"The total is now {total_amount(rows)}, but you entered {expected_total}. Nothing was ordered. Check the list and enter the new total."
            )
        submissions = latest_submission_by_assignment_id(rows)
        for row in rows:
            values = {"amount": f"{row.amount:.2f}", "currency": row.currency}
            if row.way == Way.BONUS:
                values["reason"] = row.reason or DEFAULT_REASONS[Kind(row.kind)]
            row.order = get_or_create_order(
                locked, row.way, f"payment-{row.pk}", submission=submissions[row.assignment_id], by=by, **values
            )
            row.state = State.ORDERED
        Payment.objects.bulk_update(rows, ["order", "state"], batch_size=200)
    return len(rows)


def mark_payments_paid_and_erase_withdrawn_ids(recruitment: Recruitment, due_payment_pks: Collection[int], by) -> int:
    """Mark payments as paid by hand or at the panel. Skip payments with an order, which shows their state."""
    check_permission_or_404(by, Action.PAY, recruitment.study)
    with _locked_ledger(recruitment) as locked:
        rows = list(recruitment_payments(locked).filter(pk__in=due_payment_pks, state=State.DUE))
        n_paid = Payment.objects.filter(pk__in=[row.pk for row in rows]).update(state=State.PAID, ended_at=Now())
        if n_paid:
            _erase_withdrawn_ids(locked)
            audit.record(
                "mark paid", study=locked.study, by=by, recruitment=locked.key, n=n_paid, amount=str(total_amount(rows))
            )
    return n_paid


def cancel_extra_payment(recruitment: Recruitment, payment_pk: int, by) -> bool:
    """Cancel a bonus or compensation before it is paid or ordered. Promised pay cannot be cancelled."""
    check_permission_or_404(by, Action.PAY, recruitment.study)
    with _locked_ledger(recruitment) as locked:
        rows = recruitment_payments(locked).filter(pk=payment_pk, state=State.DUE)
        rows = rows.filter(kind__in=[Kind.BONUS, Kind.COMPENSATION])
        due = Payment.objects.filter(pk__in=list(rows.values_list("pk", flat=True)))
        is_taken_back = bool(due.update(state=State.CANCELLED, ended_at=Now()))
        if is_taken_back:
            audit.record("cancel payment", study=locked.study, by=by, recruitment=locked.key, payment=payment_pk)
            _LedgerRun(locked, by).write_changes()
    return is_taken_back


# Pay's receivers of the signals of recruitment.


def collect_pay_obstacles(sender, recruitment: Recruitment, **kwargs) -> list[str]:
    return pay_obstacles(recruitment)


def collect_retention_alerts(sender, recruitment: Recruitment, **kwargs) -> Iterator[Alert]:
    return id_retention_alerts(recruitment)


def update_ledger_after_import(sender, recruitment: Recruitment, **kwargs) -> None:
    # Settle payments after each check or import, by any user or job.
    update_ledger(recruitment, by=None)
