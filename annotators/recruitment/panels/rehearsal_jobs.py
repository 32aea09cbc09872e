"""Request a rehearsal and read its last report.

The code that runs it is in another app; this app knows the job only by name.
"""

from django.db.models import QuerySet

from annotators.models import Recruitment
from studies.access import Action, check_permission_or_404
from studies.models import Job
from studies.services import jobs

KIND = "rehearsal"
MIN_PEOPLE, DEFAULT_PEOPLE, MAX_PEOPLE = 3, 12, 200  # people


def get_or_create_rehearsal_job(recruitment: Recruitment, n_people: int = DEFAULT_PEOPLE, *, by) -> Job:
    """Return the rehearsal job that is waiting or running, otherwise a new one."""
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    job = rehearsal_jobs_of(recruitment).filter(ended_at=None).first()
    return job or jobs.submit(KIND, study=recruitment.study, by=by, recruitment=recruitment.pk, people=n_people)


def rehearsal_jobs_of(recruitment: Recruitment) -> QuerySet[Job]:
    """Return all rehearsals of a recruitment, the newest first. Their results are reports."""
    return Job.objects.filter(kind=KIND, arguments__recruitment=recruitment.pk).order_by("-pk")
