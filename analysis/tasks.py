"""The jobs that make reports and files, and look at stopping rules."""

from studies.models import Job
from studies.services import jobs

from .data import parquet
from .data.replacements import open_all_replacements
from .data.snapshot import TooManySnapshots
from .report import stopping
from .report.parameters import BadParameters
from .report.runs import run_analysis


@jobs.every(300)
def open_replacement_places() -> int:
    """Studies that count people kept, or replace those excluded, open the places of those who left."""
    return open_all_replacements()


@jobs.every(60)
def check_stopping_rules() -> int:
    """Studies with a stopping rule are looked at when somebody has submitted or left since the last look."""
    return stopping.submit_stopping_checks()


@jobs.register("analyse", exclusive=True, user_facing=(BadParameters, TooManySnapshots))
def analyse(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Build and store a report. Run again after a crash it gives the analysis that the first run stored."""
    run = run_analysis(job.study, job.arguments.get("parameters"), by=job.by, job=str(job.code), progress=progress)
    return {"number": run.number, "result_sha256": run.result_sha256}


@jobs.register("export", user_facing=(parquet.ParquetNotInstalled,))
def export(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Make a file of a table."""
    return parquet.make_file(job, progress)
