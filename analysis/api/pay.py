"""API views of the pay report, of payments, and of what is done about the payments of a link."""

from collections.abc import Callable
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from django.db.models import Value
from django.db.models.functions import Coalesce
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.generics import ListAPIView, RetrieveAPIView

from annotators.models import Payment
from annotators.pay import costs, files, ledger
from annotators.pay.costs import compute_link_cost
from annotators.pay.statement import ArmPay, pay_by_arm
from annotators.places.places import compute_receipt
from annotators.recruitment.panels import sync
from annotators.recruitment.panels.http_client import get_panel_service
from studies.access import Action
from studies.models import Study
from studies.services.lifecycle import FieldsRefused
from studies.stimuli.rows import formula_safe_csv_text

from . import serializers as shapes
from .answers import assignments_by_name
from .base import MEDIA_TYPES, PostMixin, StudyView, download_response
from .links import OfLinkView


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


# What is done about the payments of a link. Each function of the ledger writes the log.


class SettleSerializer(shapes.StrictMixin, serializers.Serializer):
    is_dry_run = shapes.StrictBooleanField(default=False, help_text="true: only count what would change.")


class SettledSerializer(serializers.Serializer):
    due = serializers.IntegerField(help_text="Payments that are newly due.")
    amount = serializers.DecimalField(max_digits=12, decimal_places=2, help_text="Their sum.")
    currency = serializers.CharField(help_text="Currency of the sum.")
    paid = serializers.IntegerField(help_text="Payments that the panel has paid since.")
    failed = serializers.IntegerField(help_text="Payments that the panel has refused since.")
    cancelled = serializers.IntegerField(help_text="Payments that are not owed any more.")


class OrderPaymentsSerializer(shapes.StrictMixin, serializers.Serializer):
    total = shapes.StrictDecimalField(
        max_digits=12,
        decimal_places=2,
        min_value=0,
        help_text="The sum of the payments that you order, to confirm it.",
    )


class ChosenPaymentsSerializer(shapes.StrictMixin, serializers.Serializer):
    payments = shapes.ListField(
        child=shapes.StrictIntegerField(min_value=1, max_value=2**63 - 1),
        allow_empty=False,
        max_length=shapes.MAX_ROWS,
        help_text="Numbers of payments, from the list of payments.",
    )


class BonusSerializer(shapes.StrictMixin, serializers.Serializer):
    assignment = shapes.NameField(help_text="The assignment, as the list of assignments names it.")
    amount = shapes.StrictDecimalField(
        max_digits=6, decimal_places=2, min_value=Decimal("0.01"), help_text="In the currency of the link."
    )
    reason = shapes.NameField(max_length=files.LONGEST_REASON, help_text="The annotator may read it.")


class BonusesSerializer(SettleSerializer):
    bonuses = shapes.ListField(
        child=BonusSerializer(), allow_empty=False, max_length=shapes.MAX_ROWS, help_text="One for each assignment."
    )


class ChangedPaymentsSerializer(serializers.Serializer):
    changed = serializers.IntegerField(help_text="The number of payments that were made or changed.")
    total = serializers.CharField(allow_null=True, help_text="Their sum, of bonuses. Null for other changes.")


class LinkPayView(PostMixin, OfLinkView):
    tag = "pay"
    write_action = Action.PAY
    serializer_class = ChangedPaymentsSerializer


class SettleView(LinkPayView):
    """Write down what is due by the link: rewards, and the promised pay of early ends. Repeating it changes nothing."""

    summaries = {"POST": "Record what is due by a link"}
    serializer_class = SettledSerializer
    body_serializer_class = SettleSerializer

    def perform(self, is_dry_run: bool) -> ledger.LedgerUpdateSummary:
        return ledger.update_ledger(self.link, by=self.request.user, dry_run=is_dry_run)


class OrderPaymentsView(LinkPayView):
    """Order the payments that are due and that the panel pays, each once. Nothing is ordered if their sum is not ``total``."""

    summaries = {"POST": "Order the due payments at the panel"}
    body_serializer_class = OrderPaymentsSerializer

    def perform(self, total: Decimal) -> dict[str, Any]:
        operations = get_panel_service(self.link).operations
        n = ledger.order_due_payments_at_panel(self.link, operations, total, self.request.user)
        sync.schedule_sync(self.link, by=self.request.user)
        return {"changed": n, "total": _format_money(total)}


class ChosenPaymentsView(LinkPayView):
    body_serializer_class = ChosenPaymentsSerializer
    change: Callable[..., int]

    def perform(self, payments: list[int]) -> dict[str, Any]:
        return {"changed": self.change(self.link, payments, self.request.user), "total": None}


class MarkPaidView(ChosenPaymentsView):
    """Mark payments as paid, by hand or on the panel's page. Payments that are not due stay as they are."""

    summaries = {"POST": "Mark payments as paid"}
    change = staticmethod(ledger.mark_payments_paid_and_erase_withdrawn_ids)


class CancelPaymentsView(ChosenPaymentsView):
    """Take back bonuses and compensations that are not paid or ordered yet. What was promised cannot be taken back."""

    summaries = {"POST": "Take bonuses back"}

    @staticmethod
    def change(link, payments, by):
        return sum(ledger.cancel_extra_payment(link, payment, by) for payment in sorted(set(payments)))


class CompensateView(ChosenPaymentsView):
    """Pay by hand the rewards of people who finished here, and whose work the panel does not have."""

    summaries = {"POST": "Pay unsent rewards by hand"}
    change = staticmethod(costs.add_manual_payments_for_unsent_rewards)


class BonusesView(LinkPayView):
    """Record bonuses as due, all or none. The same amount to the same person for the same reason is refused."""

    summaries = {"POST": "Record bonuses as due"}
    body_serializer_class = BonusesSerializer

    def perform(self, bonuses: list[dict[str, Any]], is_dry_run: bool) -> dict[str, Any]:
        named = assignments_by_name(self.study, [row["assignment"] for row in bonuses])
        rows = [
            (n, (compute_receipt(named[row["assignment"]].code), str(row["amount"]), row["reason"]))
            for n, row in enumerate(bonuses, 1)
        ]
        try:
            extras = files.check_bonuses(self.link, rows)
        except ValueError as refused:
            raise FieldsRefused({"bonuses": str(refused).replace("\n", " ")}) from None
        total = _format_money(sum((extra.amount for extra in extras), Decimal(0)))
        if is_dry_run:
            return {"changed": len(extras), "total": total}
        n = ledger.add_extra_payments(self.link, extras, Payment.Kind.BONUS, self.request.user)
        return {"changed": n, "total": total}


class PaymentFileView(OfLinkView):
    """Payments that are due and not paid by approval, with the panel's ids of people. The log says who took it."""

    tag = "pay"
    read_action = Action.PAY
    needs_people_scope = True
    summaries = {"GET": "Due payments with ids of a panel as CSV"}
    media_type, response_type = "text/csv", OpenApiTypes.STR

    def get(self, request, code, key):
        text = files.due_payments_not_by_approval_csv(self.link, request.user)
        return download_response([text.encode()], f"payments-{key}.csv", MEDIA_TYPES["csv"])
