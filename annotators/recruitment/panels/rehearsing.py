"""Asking for a rehearsal, and its last report. Who plays it stands above this app, which knows the job by its name alone."""

from annotators.models import Recruitment
from studies.access import Action, check
from studies.models import Job
from studies.services import jobs

KIND = "rehearsal"
LEAST, USUAL, MOST = 3, 12, 200  # people


def rehearse_soon(recruitment: Recruitment, people: int = USUAL, *, by) -> Job:
    """The job that plays it: the one that waits or runs, else a new one."""
    check(by, Action.PANEL, recruitment.study)
    asked = of(recruitment).filter(ended_at=None).first()
    return asked or jobs.submit(KIND, study=recruitment.study, by=by, recruitment=recruitment.pk, people=people)


def of(recruitment: Recruitment):
    """All of a recruitment's, the newest first. Their results are reports."""
    return Job.objects.filter(kind=KIND, arguments__recruitment=recruitment.pk).order_by("-pk")
