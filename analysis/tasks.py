"""The jobs that make reports and files, and look at stopping rules."""

from studies import jobs
from studies.models import Job

from . import parquet, watch  # noqa: F401 - importing parquet registers the job that writes Parquet files
from .replacing import replace_everywhere
from .report_parameters import BadParameters
from .runs import run_analysis
from .snapshot import Busy


@jobs.every(300)
def replace_who_left() -> int:
    """Studies that count people kept, or replace those excluded, open the places of those who left."""
    return replace_everywhere()


@jobs.every(60)
def look_at_stopping_rules() -> int:
    """Studies with a stopping rule are looked at when somebody has submitted or left since the last look."""
    return watch.look_everywhere()


@jobs.register("analyse", exclusive=True, readable=(BadParameters, Busy))
def analyse(job: Job, progress: jobs.Progress) -> dict:
    """Build and store a report. Run again after a crash it gives the analysis that the first run stored."""
    run = run_analysis(job.study, job.arguments.get("parameters"), job.by, str(job.code), progress)
    return {"number": run.number, "result_sha256": run.result_sha256}
