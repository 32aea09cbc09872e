"""Approving everybody whose work came both here and to the panel."""

from django.db.models import Exists, OuterRef, QuerySet

from annotators.models import PanelOrder, PanelSubmission, Recruitment, Verdict
from annotators.recruitment.panels.reconcile import with_match_status

from .decisions import approve_submissions


def undecided_submissions(recruitment: Recruitment) -> QuerySet[PanelSubmission]:
    """Work that came both here and there, and that nobody here has rejected."""
    rejected = Verdict.objects.filter(assignment=OuterRef("assignment"), kind=Verdict.Kind.REJECT, reversed_by=None)
    # Whom the panel had rejected and shows as undecided again nobody here has decided about.
    here = rejected.exclude(category=Verdict.AT_PANEL)
    return with_match_status(recruitment).filter(~Exists(here), standing="matched")


def submissions_to_approve(recruitment: Recruitment) -> QuerySet[PanelSubmission]:
    """Of these, whose approval is not ordered; also whose approval the panel refused, such as for want of money: what stood in its way
    may be mended."""
    ordered = PanelOrder.objects.filter(submission=OuterRef("pk"), operation="approve")
    return undecided_submissions(recruitment).filter(~Exists(ordered.exclude(state=PanelOrder.State.REFUSED)))


def approve_matched(recruitment: Recruitment, by) -> int:
    """Order the approval of everybody whose work came both here and there; nobody is ordered twice, and nobody about whom somebody has
    decided otherwise."""
    return approve_submissions(recruitment, list(submissions_to_approve(recruitment).select_related("assignment")), by)
