"""Work that belongs to no app: housekeeping, and the rehearsal, which needs all of them."""

from annotators.recruitment.panels.rehearsal_jobs import KIND
from studies.services import jobs


@jobs.every(24 * 60 * 60)
def clear_sessions() -> None:
    """Sessions that have expired; a few for each login of a researcher, none for annotators."""
    from django.core.management import call_command

    call_command("clearsessions")


@jobs.register(KIND, exclusive=True)
def run_rehearsal_job(job, progress) -> dict:
    """The report; whatever was made for it has gone when it ends."""
    from annotators.models import Recruitment

    from .rehearsal.runner import rehearse

    recruitment = Recruitment.objects.select_related("study").get(pk=job.arguments["recruitment"])
    return rehearse(recruitment, job.arguments["people"], job.arguments.get("seed", 0), progress)
