"""Jobs that plan studies, build reports and export files, screen annotators, and compute, compare and combine metrics; periodic tasks."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.core.exceptions import PermissionDenied
from django.urls import reverse

from studies.models import Job
from studies.services import jobs
from studies.services.lifecycle import ActionRefused, FieldsRefused

from .api.repeats import delete_old_requests
from .data import exports
from .data.planned_labels import create_replacement_places_of_launched_studies
from .data.snapshot import TooManySnapshots
from .metrics import comparison, computed
from .metrics.calibrated import run as calibrated
from .metrics.calibrated.options import CalibrationOptions
from .metrics.judge_check import measuring
from .planning import noise_models, pilots, strategies
from .planning import run as planning
from .planning.inputs import InvalidPlanInputs, PlanInputs
from .planning.pilots import draws_of
from .planning.results import Piece, compute_piece
from .report import between_studies, pdf, stopping
from .report.build import BadParameters
from .report.links import submit_analyses_after_withdrawals
from .report.runs import run_analysis
from .report.screening import run as screening
from .report.screening.run import bar_annotators_flagged_by


@jobs.register_periodic(300)
def open_places_replacing_excluded_annotators() -> int:
    """Open new places in studies that replace excluded annotators or count only kept ones."""
    return create_replacement_places_of_launched_studies()


@jobs.register_periodic(3600)
def delete_keys_of_old_requests() -> int:
    """Delete the Idempotency-Keys that are older than a day."""
    return delete_old_requests()


@jobs.register_periodic(60)
def submit_stopping_rule_checks() -> int:
    """Submit a stopping-rule check for each study in which assignments were submitted or released since the last check."""
    return stopping.submit_stopping_checks()


@jobs.register_periodic(300)
def submit_due_screenings() -> int:
    """Submit a screening of annotators for each study with enough new answers to test questions."""
    return screening.submit_due_screenings()


@jobs.register_periodic(60)
def submit_analyses_of_links_after_withdrawals() -> int:
    """Submit a new analysis for each working link whose analysis has answers of people who withdrew since."""
    return submit_analyses_after_withdrawals()


@jobs.register(screening.KIND, is_one_per_study=True)
def screen_annotators_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Fit the model of test questions, store what it says about each annotator, and bar whom the study declares to bar."""
    progress(0, 1, "Reading the answers to test questions")
    stored = screening.screen_annotators(job.study, job.arguments["origin"], by=job.by)
    barred = bar_annotators_flagged_by(stored)
    return {
        "screening": stored.pk,
        "model": stored.result["model"],
        "flagged": len(stored.result["flagged"]),
        "barred": len(barred),
    }


@jobs.register("analyse", is_one_per_study=True, user_facing_errors=(BadParameters, TooManySnapshots))
def run_analysis_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Build and store a report. After a crash, return the analysis that the first run stored."""
    run = run_analysis(job.study, job.arguments.get("parameters"), by=job.by, job_code=str(job.code), progress=progress)
    return {"number": run.number, "result_sha256": run.result_sha256}


@jobs.register(pdf.KIND, is_one_per_study=True, user_facing_errors=(ActionRefused,))
def make_report_pdf_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Make the PDF of a stored report."""
    return pdf.write_pdf_file(job, progress)


@jobs.register(
    between_studies.KIND,
    is_one_per_study=True,
    user_facing_errors=(ActionRefused, FieldsRefused, PermissionDenied, TooManySnapshots),
)
def compare_studies_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Compare studies and store the result. After a crash, return the comparison that the first run stored."""
    row = between_studies.run_comparison(
        job.study, job.arguments["parameters"], by=job.by, job_code=str(job.code), progress=progress
    )
    url = reverse("studies_comparison", args=[job.study_id, row.number])
    return {"number": row.number, "result_sha256": row.result_sha256, "url": url}


@jobs.register(
    planning.KIND,
    is_one_per_study=True,
    is_batch=True,
    user_facing_errors=(ActionRefused, InvalidPlanInputs),
    part=compute_piece,
)
def plan_size_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Simulate the plan of a study's size and store it. After a crash, return the plan that the first run stored."""
    inputs = PlanInputs.from_json(job.arguments["inputs"])

    def compute(pieces: Sequence[Piece]) -> list[Any]:
        return jobs.compute_parts(job, progress, pieces, "Simulating studies")

    draws, seed = draws_of(inputs, job.by), planning.seed_of_job(job)
    plan = planning.compute_plan(job.study, job.by, inputs, draws, seed=seed, compute=compute)
    return {"plan": plan.pk, "url": f"{reverse('admin:studies_plan', args=[job.study_id])}?plan={plan.pk}"}


@jobs.register(
    pilots.KIND,
    is_one_per_study=True,
    user_facing_errors=(ActionRefused, InvalidPlanInputs, PermissionDenied),
)
def estimate_pilot_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Estimate how much people and prompts vary from the answers of a study, and store it for plans."""
    progress(0, 1, "Reading the answers of the pilot")
    return pilots.estimate_for_job(job)


@jobs.register(
    strategies.StrategiesForm.kind, is_one_per_study=True, is_batch=True, user_facing_errors=(ActionRefused,)
)
def plan_strategies_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Simulate labelling strategies with a stopping rule."""
    # The job's own number is the seed, so a repetition gives the same numbers.
    options, pilot = strategies.with_pilot(job.arguments["options"], job.by)
    result = strategies.compute_strategies(options, job.pk, progress) | {"pilot": pilot}
    return result | {"url": reverse("admin:studies_plan_strategies", args=[job.study_id])}


@jobs.register(noise_models.NoiseModelsForm.kind, is_one_per_study=True, is_batch=True)
def plan_test_questions_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Simulate how well test questions find careless annotators."""
    result = noise_models.compute_flag_rates(job.arguments["options"], job.pk, progress)
    return result | {"url": reverse("admin:studies_plan_test_questions", args=[job.study_id])}


@jobs.register("export", user_facing_errors=(exports.ParquetNotInstalled,))
def run_export_job_and_delete_old_files(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Write an export table to a file."""
    return exports.write_export_file_and_delete_old_files(job, progress)


@jobs.register(computed.KIND, is_batch=True, user_facing_errors=(ActionRefused,))
def compute_metrics_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Compute metrics of the outputs of a study and store them."""
    parts_of = partial(jobs.StoredParts, job, progress)
    stored = computed.compute_metrics(
        job.study, job.by, job.arguments["names"], progress, parts_of, progress.record_stored
    )
    return {"metrics": [metric.pk for metric in stored]}


@jobs.register(
    comparison.KIND, is_one_per_study=True, is_batch=True, user_facing_errors=(ActionRefused, PermissionDenied)
)
def compare_metrics_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Compare the metrics of a study with its people and store the results."""
    stored = comparison.compare_with_people(job.study, job.by, progress)
    return {"comparisons": [row.pk for row in stored]}


@jobs.register(measuring.KIND, is_one_per_study=True, is_batch=True, user_facing_errors=(ActionRefused,))
def check_judge_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Compare people with the newest version of the judge and store what was found."""
    progress(0, 1, "Comparing people and the judge")
    stored = measuring.compute_result(job.study, by=job.by)
    return {"result": stored.pk, "verdict": stored.verdict}


@jobs.register(calibrated.KIND, is_one_per_study=True, is_batch=True, user_facing_errors=(ActionRefused,))
def calibrate_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Combine the numbers of people with the scores of judges, and store the result of each question."""
    options = CalibrationOptions.from_json(job.arguments["options"])
    stored = calibrated.calibrate(job.study, options, job.by, progress)
    return {"results": [row.pk for row in stored]}
