"""API views of the pay report and of payments."""

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from django.db.models import Value
from django.db.models.functions import Coalesce
from drf_spectacular.types import OpenApiTypes
from rest_framework.generics import ListAPIView, RetrieveAPIView

from annotators.models import Payment
from annotators.pay.costs import compute_link_cost
from annotators.pay.statement import ArmPay, pay_by_arm
from studies.models import Study
from studies.stimuli.rows import formula_safe_csv_text

from . import serializers as shapes
from .base import MEDIA_TYPES, StudyView, download_response


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


class PayReportView(StudyView, RetrieveAPIView):
    """Pay per hour by arm, and the cost of each link. Amounts are strings with two decimals."""

    tag = "pay"
    summaries = {"GET": "Pay per hour by arm, cost by link"}
    serializer_class = shapes.PayReportSerializer

    def get_object(self) -> dict[str, Any]:
        return build_pay_report_by_arm_and_link(self.study)


class PaymentsView(StudyView, ListAPIView):
    """All payments, with the pseudonym of the assignment."""

    tag = "pay"
    summaries = {"GET": "Payments"}
    # Payments have pseudonyms. They never have ids of a panel, codes or receipts.
    queryset = Payment.objects.select_related("assignment").annotate(
        link=Coalesce("assignment__recruitment__key", Value("")),
        arm=Coalesce("assignment__batch__arm__name", Value("")),
    )
    serializer_class = shapes.PaymentSerializer


class PaymentsCsvView(PaymentsView):
    """All payments as CSV."""

    summaries = {"GET": "Payments as CSV"}
    pagination_class = None
    media_type, response_type = "text/csv", OpenApiTypes.STR
    throttle_scope = "export"

    def list(self, request, code):
        payments: Any = self.get_serializer(self.get_queryset().order_by("pk"), many=True)
        table = [payments.child.fields, *(row.values() for row in payments.data)]
        name = f"payments-{str(self.study.code)[:8]}.csv"
        return download_response([formula_safe_csv_text(table).encode()], name, MEDIA_TYPES["csv"])
