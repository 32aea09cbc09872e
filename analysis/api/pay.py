"""API views of the pay report and of payments."""

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from rest_framework.response import Response

from analysis.data.flat_rows import assignment_pseudonym
from annotators.models import Payment
from annotators.pay.costs import compute_link_cost
from annotators.pay.statement import ArmPay, pay_by_arm
from studies.models import Study
from studies.stimuli.rows import formula_safe_csv_text

from . import serializers as shapes
from .base import MEDIA_TYPES, StudyView, document_operation, download_response, page_serializer
from .query import page_parameters

# Build the pay report (pay per hour by arm, cost by link) and the list of payments.
#
# Payments have pseudonyms. They never have ids of a panel, codes or receipts.


COLUMNS = (
    "number", "assignment", "link", "arm", "kind", "ordinal", "amount", "currency", "method", "state", "reason", "created_at", "ended_at",
)  # fmt: skip


def payments_of_study(study: Study) -> QuerySet[Payment]:
    rows = Payment.objects.filter(assignment__study=study)
    return rows.select_related("assignment__recruitment", "assignment__batch__arm").order_by("pk")


def payment_row(payment: Payment) -> dict[str, Any]:
    """Return a payment as a row. The amount is a string with two decimals."""
    assignment = payment.assignment
    cells = (
        payment.pk,
        assignment_pseudonym(assignment.code),
        assignment.recruitment.key if assignment.recruitment else "",
        assignment.batch.arm.name if assignment.batch else "",
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
    return formula_safe_csv_text(
        [COLUMNS, *([_cell(value) for value in payment_row(payment).values()] for payment in payments_of_study(study))]
    )


def _cell(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value


def build_pay_report_by_arm_and_link(study: Study) -> dict[str, Any]:
    """Return the pay report.

    Arms have quartiles of minutes and of pay per hour. Links have amounts that are paid, ordered, due, owed but not yet in
    the ledger, and expected, each with fees.
    """
    links = list(study.recruitments.order_by("pk"))
    for link in links:
        link.study = study
    return {
        "currency": study.currency,
        "declared_per_hour": _format_money(study.wage_per_hour),
        "arms": [_arm(arm_pay) for arm_pay in pay_by_arm(study)],
        "links": [_link(link) for link in links],
    }


def _arm(arm_pay: ArmPay) -> dict[str, Any]:
    quartiles = {
        name: {key: str(value) for key, value in asdict(values).items()} if values else None
        for name, values in (("minutes", arm_pay.minutes), ("per_hour", arm_pay.hourly))
    }
    return {
        "arm": arm_pay.name,
        "people": arm_pay.n,
        **quartiles,
        "below_declared": arm_pay.below_wage,
        "without_active_time": arm_pay.without_active_time,
        "in_another_currency": arm_pay.in_another_currency,
    }


def _link(recruitment) -> dict[str, Any]:
    money = compute_link_cost(recruitment)
    sums = {
        name: _format_money(amount)
        for name, amount in (
            ("paid", money.paid),
            ("ordered", money.ordered),
            ("due", money.due),
            ("unrecorded", money.unsettled),
            ("to_come", money.to_come),
            ("total", money.total),
        )
    }
    fees = [{"label": fee.label, "amount": _format_money(fee.amount), "source": fee.source} for fee in money.fees]
    return {"link": recruitment.key, "currency": money.currency, **sums, "fees": fees}


def _format_money(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:.2f}"


class PayReportView(StudyView):
    """Pay per hour by arm, and the cost of each link. Amounts are strings with two decimals."""

    @document_operation("Pay per hour by arm, cost by link", shapes.PayReportSerializer, tag="pay")
    def get(self, request, code):
        return Response(build_pay_report_by_arm_and_link(self.study))


class PaymentsView(StudyView):
    """All payments, with the pseudonym of the assignment."""

    parameters = page_parameters()

    @document_operation(
        "Payments", page_serializer("Payment", shapes.PaymentSerializer), parameters=parameters, tag="pay"
    )
    def get(self, request, code):
        return self.paginated_response(payments_of_study(self.study), payment_row)


class PaymentsCsvView(StudyView):
    """All payments as CSV."""

    throttle_scope = "export"

    @document_operation("Payments as CSV", OpenApiTypes.STR, media_type="text/csv", tag="pay")
    def get(self, request, code):
        name = f"payments-{str(self.study.code)[:8]}.csv"
        return download_response([payments_csv(self.study).encode()], name, MEDIA_TYPES["csv"])
