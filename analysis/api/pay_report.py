"""The pay report: what the work came to an hour, by arm, and every payment under a pseudonym. No panel's id, no code, no receipt."""

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet

from analysis.data.flat_rows.selection import assignment_pseudonym
from annotators.models import Payment
from annotators.pay.costs import link_cost
from annotators.pay.hourly_pay import ArmPay, pay_by_arm
from studies.models import Study
from studies.stimuli.spreadsheet import csv_text

COLUMNS = (
    "number", "assignment", "link", "arm", "kind", "nth", "amount", "currency", "way", "state", "reason", "made_at", "ended_at",
)  # fmt: skip


def payments_of(study: Study) -> QuerySet[Payment]:
    rows = Payment.objects.filter(assignment__study=study)
    return rows.select_related("assignment__recruitment", "assignment__batch__arm").order_by("pk")


def row_of(payment: Payment) -> dict[str, Any]:
    """Money is text with two places."""
    about = payment.assignment
    cells = (
        payment.pk,
        assignment_pseudonym(about.code),
        about.recruitment.key if about.recruitment else "",
        about.batch.arm.name if about.batch else "",
        payment.kind,
        payment.number,
        f"{payment.amount:.2f}",
        payment.currency,
        payment.way,
        payment.state,
        payment.reason,
        payment.made_at,
        payment.ended_at,
    )
    return dict(zip(COLUMNS, cells, strict=True))


def payments_csv(study: Study) -> str:
    return csv_text([COLUMNS, *([_cell(value) for value in row_of(one).values()] for one in payments_of(study))])


def _cell(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value


def build_pay_report(study: Study) -> dict[str, Any]:
    """By arm the quarters of minutes and of pay an hour; by link what is paid, ordered, due, owed and not written down yet, and to come, with fees."""
    links = list(study.recruitments.order_by("pk"))
    for one in links:
        one.study = study
    return {
        "currency": study.currency,
        "declared_per_hour": _format_money(study.wage_per_hour),
        "arms": [_arm(one) for one in pay_by_arm(study)],
        "links": [_link(one) for one in links],
    }


def _arm(one: ArmPay) -> dict[str, Any]:
    quarters = {
        name: {key: str(value) for key, value in asdict(found).items()} if found else None
        for name, found in (("minutes", one.minutes), ("per_hour", one.hourly))
    }
    return {
        "arm": one.name,
        "people": one.n,
        **quarters,
        "below_declared": one.below_wage,
        "without_active_time": one.without_active_time,
        "in_another_currency": one.in_another_currency,
    }


def _link(recruitment) -> dict[str, Any]:
    money = link_cost(recruitment)
    sums = {
        name: _format_money(amount)
        for name, amount in (
            ("paid", money.paid),
            ("ordered", money.ordered),
            ("due", money.due),
            ("unwritten", money.unsettled),
            ("to_come", money.to_come),
            ("total", money.total),
        )
    }
    fees = [{"label": fee.label, "amount": _format_money(fee.amount), "source": fee.source} for fee in money.fees]
    return {"link": recruitment.key, "currency": money.currency, **sums, "fees": fees}


def _format_money(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:.2f}"
