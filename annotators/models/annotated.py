"""Rows with the columns that a query adds. Only for checks of types: at run time this module is empty."""

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    from .assignments import Assignment
    from .recruitment import PanelSubmission

    class _WithStatus(TypedDict):
        standing: str

    class _Judged(TypedDict):
        is_excluded: bool

    class _SignedUp(TypedDict):
        sign_up: str

    class _Payable(TypedDict):
        sent: int

    SubmissionWithStatus = WithAnnotations[PanelSubmission, _WithStatus]
    JudgedAssignment = WithAnnotations[Assignment, _Judged]
    SignedUpAssignment = WithAnnotations[Assignment, _SignedUp]
    PayableAssignment = WithAnnotations[Assignment, _Payable]
