"""What was promised and paid."""

from drf_spectacular.types import OpenApiTypes
from rest_framework.response import Response

from . import pay_report
from . import serializers as shapes
from .base import MEDIA_TYPES, StudyView, document_operation, download, page_serializer
from .query import page_parameters


class PayReportView(StudyView):
    """What the work came to an hour, by arm, and what each link costs. Money is text with two places."""

    @document_operation("Pay an hour by arm, cost by link", shapes.PayReportSerializer, tag="pay")
    def get(self, request, code):
        return Response(pay_report.build_pay_report(self.study))


class PaymentsView(StudyView):
    """Every payment, under the pseudonym of its assignment."""

    parameters = page_parameters()

    @document_operation(
        "Payments", page_serializer("Payment", shapes.PaymentSerializer), parameters=parameters, tag="pay"
    )
    def get(self, request, code):
        return self.list_response(pay_report.payments_of(self.study), pay_report.row_of)


class PaymentsCsvView(StudyView):
    """Every payment as CSV."""

    throttle_scope = "export"

    @document_operation("Payments as CSV", OpenApiTypes.STR, media_type="text/csv", tag="pay")
    def get(self, request, code):
        name = f"payments-{str(self.study.code)[:8]}.csv"
        return download([pay_report.payments_csv(self.study).encode()], name, MEDIA_TYPES["csv"])
