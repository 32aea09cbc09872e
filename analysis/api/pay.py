"""API views of the pay report and of payments."""

from drf_spectacular.types import OpenApiTypes
from rest_framework.response import Response

from . import pay_report
from . import serializers as shapes
from .base import MEDIA_TYPES, StudyView, document_operation, download_response, page_serializer
from .query import page_parameters


class PayReportView(StudyView):
    """Pay per hour by arm, and the cost of each link. Amounts are strings with two decimals."""

    @document_operation("Pay per hour by arm, cost by link", shapes.PayReportSerializer, tag="pay")
    def get(self, request, code):
        return Response(pay_report.build_pay_report_by_arm_and_link(self.study))


class PaymentsView(StudyView):
    """All payments, with the pseudonym of the assignment."""

    parameters = page_parameters()

    @document_operation(
        "Payments", page_serializer("Payment", shapes.PaymentSerializer), parameters=parameters, tag="pay"
    )
    def get(self, request, code):
        return self.paginated_response(pay_report.payments_of_study(self.study), pay_report.payment_row)


class PaymentsCsvView(StudyView):
    """All payments as CSV."""

    throttle_scope = "export"

    @document_operation("Payments as CSV", OpenApiTypes.STR, media_type="text/csv", tag="pay")
    def get(self, request, code):
        name = f"payments-{str(self.study.code)[:8]}.csv"
        return download_response([pay_report.payments_csv(self.study).encode()], name, MEDIA_TYPES["csv"])
