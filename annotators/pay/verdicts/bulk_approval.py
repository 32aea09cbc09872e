"""Approve all work that was finished both in heval and at the panel."""

from django.db.models import Exists, OuterRef, QuerySet

from annotators.models import PanelOrder, PanelSubmission, Recruitment, Verdict
from annotators.recruitment.panels.reconcile import submissions_with_match_status

from .decisions import approve_submissions


def finished_submissions_awaiting_approval(recruitment: Recruitment) -> QuerySet[PanelSubmission]:
    """Return work that was finished at both and not rejected in heval."""
    rejected = Verdict.objects.filter(assignment=OuterRef("assignment"), kind=Verdict.Kind.REJECT, reversed_by=None)
    # If the panel rejected the work but shows it as undecided again, heval has no decision about it.
    rejected_in_heval = rejected.exclude(category=Verdict.AT_PANEL)
    return submissions_with_match_status(recruitment).filter(~Exists(rejected_in_heval), standing="matched")


def submissions_to_approve(recruitment: Recruitment) -> QuerySet[PanelSubmission]:
    """Return those without an ordered approval, including approvals that the panel refused.

    The cause of the refusal, such as a lack of money, may be fixed by now.
    """
    ordered = PanelOrder.objects.filter(submission=OuterRef("pk"), operation="approve")
    return finished_submissions_awaiting_approval(recruitment).filter(
        ~Exists(ordered.exclude(state=PanelOrder.State.REFUSED))
    )


def approve_matched_submissions(recruitment: Recruitment, by) -> int:
    """Order the approval of all work finished at both. Skip work with an earlier order or another decision."""
    return approve_submissions(recruitment, list(submissions_to_approve(recruitment).select_related("assignment")), by)
