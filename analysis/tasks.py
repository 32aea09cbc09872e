"""Jobs that build reports and export files, and periodic tasks of replacements and stopping rules."""

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
    """Open new places in studies that replace excluded annotators or count only kept ones."""
    return open_all_replacements()


@jobs.every(60)
def check_stopping_rules() -> int:
    """Submit a stopping-rule check for each study in which assignments were submitted or released since the last check."""
    return stopping.submit_stopping_checks()


@jobs.register("analyse", exclusive=True, user_facing=(BadParameters, TooManySnapshots))
def analyse(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Build and store a report. After a crash, return the analysis that the first run stored."""
    run = run_analysis(job.study, job.arguments.get("parameters"), by=job.by, job=str(job.code), progress=progress)
    return {"number": run.number, "result_sha256": run.result_sha256}


@jobs.register("export", user_facing=(parquet.ParquetNotInstalled,))
def export(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Write an export table to a file."""
    return parquet.make_file(job, progress)
