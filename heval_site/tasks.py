"""Jobs that belong to no app: housekeeping, and the rehearsal, which needs all apps."""

from django.urls import reverse

from analysis.report.runs import INVENTED, invented_report_jobs
from annotators.recruitment.panels.stand_in import KIND
from studies.services import jobs


@jobs.register_periodic(24 * 60 * 60)
def clear_expired_sessions() -> None:
    """Delete expired sessions: a few per login of a researcher, none for annotators."""
    from django.core.management import call_command

    call_command("clearsessions")


@jobs.register(KIND, is_one_per_study=True, is_batch=True)
def run_rehearsal_job(job, progress) -> dict:
    """Run a rehearsal and return the report. Everything else that it created is deleted."""
    from annotators.models import Recruitment

    from .rehearsal.rehearsal import run_rehearsal

    recruitment = Recruitment.objects.select_related("study").get(pk=job.arguments["recruitment"])
    return run_rehearsal(recruitment, job.arguments["people"], job.arguments.get("seed", 0), progress)


@jobs.register("example_study")
def make_example_study_job(job, progress) -> dict:
    """Make the demo's finished study for a researcher who wants to look at one. Its report is a job of its own."""
    from .management.demo import get_or_create_example_study

    study, report = get_or_create_example_study(job.by)
    return {"url": report, "study": study.pk}


@jobs.register(INVENTED, is_one_per_study=True, is_batch=True)
def run_invented_report_job(job, progress) -> dict:
    """Let robots answer a copy of a draft, and keep the report. Only the newest report of a study is kept."""
    from .rehearsal.rehearsal import run_invented_report

    report = run_invented_report(job.study, job.arguments["are_systems_equal"], job.study.seed, progress)
    invented_report_jobs(job.study).exclude(pk=job.pk).update(result=None)
    return report | {"url": reverse("new_study_invented", args=[job.study_id])}


@jobs.register("demo_board", is_batch=True, keeps_steps=True)
def play_demo_board_job(job, progress) -> dict:
    """Play the rounds of the demo board with robots."""
    from .management.demo_board import play_rounds_job

    return play_rounds_job(job, progress)
