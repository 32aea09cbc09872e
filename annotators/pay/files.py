"""Payment files: for paying by hand, for reading bonuses, and lines for a panel's own forms."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation

from annotators.models.identity import get_person_ids, submission_id_at_panel
from annotators.places.places import compute_receipt, normalize_receipt
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import BulkText, Order
from studies.access import Action, check_permission_or_404
from studies.models import audit
from studies.stimuli.columns import Columns
from studies.stimuli.dialects import find_delimiter
from studies.stimuli.rows import TableLimits, formula_safe_csv_text, read_rows

from ..models import Assignment, Payment, Recruitment
from .ledger import (
    DEFAULT_REASONS,
    ExtraPayment,
    due_payments_not_by_approval,
    is_extra_payment_recorded,
    latest_submission_by_assignment_id,
    recruitment_payments,
)

COLUMNS = ("receipt", "person", "amount", "currency", "what", "reason")
BONUS_COLUMNS = ("receipt", "amount", "reason")
MOST_ROWS = 10_000
MAX_BONUS = Decimal(1000)
LONGEST_REASON = 300
CENT = Decimal("0.01")


def due_payments_not_by_approval_csv(recruitment: Recruitment, by) -> str:
    """Return payments that are due and not paid by approval, one line each, with the panel's id if it is still known.

    The log says who took the file.
    """
    check_permission_or_404(by, Action.PAY, recruitment.study)
    audit.record("take payment file", study=recruitment.study, by=by, recruitment=recruitment.key)
    rows = list(due_payments_not_by_approval(recruitment).select_related("assignment"))
    people = get_person_ids([row.assignment.annotator_id for row in rows])
    lines = [
        (
            compute_receipt(row.assignment.code),
            people.get(row.assignment.annotator_id, ""),
            f"{row.amount:.2f}",
            row.currency,
            row.kind,
            row.reason or DEFAULT_REASONS.get(row.kind, ""),
        )
        for row in rows
    ]
    return formula_safe_csv_text([COLUMNS, *lines])


def parse_bonuses(recruitment: Recruitment, text: str) -> list[ExtraPayment]:
    """Read lines of a receipt, an amount and a reason, with or without a header, pasted from a spreadsheet or from a file.

    Raises ValueError listing every error with its row.
    """
    head = next((line for line in text.splitlines() if line.strip()), "")
    if not head:
        raise ValueError("The file has no rows. Each row needs a receipt, an amount and a reason, separated by commas.")
    n_added = 0
    if BONUS_COLUMNS[0] not in head.lower():
        text, n_added = f"{find_delimiter(head).join(BONUS_COLUMNS)}\n{text}", 1
    table = read_rows("bonuses.csv", text.encode(), columns=Columns(BONUS_COLUMNS), limits=TableLimits(rows=MOST_ROWS))
    rows = [(row.number - n_added, [row.values[name].strip() for name in BONUS_COLUMNS]) for row in table]
    if table.problems:
        where = [
            replace(problem, row=None if problem.row is None else problem.row - n_added) for problem in table.problems
        ]
        raise ValueError("\n".join(f"{str(problem)[:1].upper()}{str(problem)[1:]}" for problem in where[:20]))
    return check_bonuses(recruitment, rows)


def check_bonuses(recruitment: Recruitment, rows: Sequence[tuple[int, Sequence[str]]]) -> list[ExtraPayment]:
    """Check rows of a receipt, an amount and a reason, each with its number. Raises ValueError listing every error."""
    people = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE)
    by_receipt = {
        normalize_receipt(compute_receipt(assignment.code)): assignment for assignment in people.only("pk", "code")
    }
    recorded: dict[int, list[Payment]] = {}
    for row in recruitment_payments(recruitment).filter(kind=Payment.Kind.BONUS):
        recorded.setdefault(row.assignment_id, []).append(row)
    extras, faults = [], []
    first_rows: dict[tuple[int, Decimal, str], int] = {}
    for n, cells in rows:
        try:
            extra = _extra(n, cells, by_receipt)
            if is_extra_payment_recorded(recorded.get(extra.assignment.pk, ()), Payment.Kind.BONUS, extra):
                raise ValueError(
                    f"Row {n}: this bonus is already recorded, with the same reason. Remove the row, or change its reason."
                )
            if (earlier_row := first_rows.setdefault((extra.assignment.pk, extra.amount, extra.reason), n)) != n:
                raise ValueError(f"Row {n}: it repeats row {earlier_row}. Remove one of them.")
            extras.append(extra)
        except ValueError as fault:
            faults.append(str(fault))
    if faults:
        suffix = f" … and {len(faults) - 20} more." if len(faults) > 20 else ""
        raise ValueError("\n".join(faults[:20]) + suffix)
    return extras


def _extra(n: int, cells: Sequence[str], by_receipt: dict[str, Assignment]) -> ExtraPayment:
    receipt, amount, reason = cells
    assignment = by_receipt.get(normalize_receipt(receipt))
    if assignment is None:
        raise ValueError(f"Row {n}, receipt: no annotator of this link has “{receipt[:40]}”. Correct the receipt.")
    try:
        value = Decimal(amount)
        is_money = value.is_finite() and 0 < value <= MAX_BONUS and value == value.quantize(CENT)
    except InvalidOperation:
        is_money = False
    if not is_money:
        raise ValueError(
            f"Row {n}, amount: “{amount[:40]}” is not an amount. Enter one such as 1.50, at most {MAX_BONUS}."
        )
    if not reason or len(reason) > LONGEST_REASON or "\x00" in reason:
        raise ValueError(
            f"Row {n}, reason: it is empty, too long or not text. Enter at most {LONGEST_REASON} characters."
        )
    return ExtraPayment(assignment, value.quantize(CENT), reason)


def due_payment_bulk_form_texts(recruitment: Recruitment) -> list[BulkText]:
    """Return due payments as lines for the panel's forms, for people whom it shows and whose id is known.

    A person with several payments is one line with the total.
    """
    rows = list(due_payments_not_by_approval(recruitment).filter(way__in=[Payment.Way.BONUS, Payment.Way.SCREEN_OUT]))
    submissions = latest_submission_by_assignment_id(rows)
    people = get_person_ids([submission.annotator_id for submission in submissions.values()])
    sums: dict[tuple[str, str, str, str], Decimal] = {}
    for row in rows:
        current = submissions.get(row.assignment_id)
        person = people.get(current.annotator_id) if current else None
        if current and person:
            key = (
                row.way,
                current.task.external_id if current.task else "",
                submission_id_at_panel(current, person),
                person,
            )
            sums[key] = sums.get(key, Decimal(0)) + row.amount
    orders = [
        Order(way, "", {"task": task, "submission": submission, "person": person, "amount": f"{amount:.2f}"})
        for (way, task, submission, person), amount in sums.items()
    ]
    return REGISTRY[recruitment.channel].bulk_texts(orders)
