"""Request and run analyses. An analysis is stored as a numbered row with its report, hash and figures."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet

from analysis.models import AnalysisRun, Figure
from studies.access import Action, check_permission_or_404
from studies.design.checklist import find_design_problems
from studies.models import Job, Study, audit
from studies.models.events import EventKind
from studies.services import events, jobs, lifecycle

from .build import build_report, validate_parameters

INVENTED = "invented_report"  # the kind of job; its code needs all apps, so it is registered above them
MAX_ROBOTS = 200
WATERMARK = "Invented answers"
# What a copy has where the draft has nothing yet. Annotators would read it, and no robot does.
MISSING_TEXTS = {
    "public_title": "A copy with invented answers",
    "consent": "The draft has no consent text yet.",
    "contact": "The draft has no contact yet.",
    "minutes": 10,
}
STEPS = 7  # five steps of the report, then figures, then storing


def request_analysis(study: Study, by, parameters: Mapping[str, Any], request_token: str | None = None) -> Job:
    """Submit the job of an analysis. Idempotent per ``request_token``. Raises BadParameters."""
    check_permission_or_404(by, Action.ANALYSE, study)
    validated = validate_parameters(parameters, study)
    return jobs.submit("analyse", study=study, by=by, request_token=request_token, parameters=validated)


def with_missing_texts(study: Study) -> Study:
    """Return the study, unsaved, with texts where it has none, so that what else is missing is seen and a copy can be launched."""
    filled = Study.objects.get(pk=study.pk)
    filled.guide = None  # places that are left to fill in block only the launch of a draft of the new pages
    for name, value in MISSING_TEXTS.items():
        if not str(getattr(filled, name) or "").strip():
            setattr(filled, name, value)
    return filled


def request_invented_report(study: Study, by, *, are_systems_equal: bool, request_token: str | None = None) -> Job:
    """Return the job that waits or runs, or submit one: robots answer a copy of a draft, and the job keeps the report.

    Raises NotReady with what is missing in the design.
    """
    check_permission_or_404(by, Action.EDIT, study)
    if unfinished := invented_report_jobs(study).filter(ended_at=None).first():
        return unfinished
    if problems := [problem for problem in find_design_problems(with_missing_texts(study)) if problem.is_blocking]:
        raise lifecycle.NotReady(problems)
    arguments = {"are_systems_equal": are_systems_equal, "version": study.version}
    return jobs.submit(INVENTED, study=study, by=by, request_token=request_token, **arguments)


def invented_report_jobs(study: Study) -> QuerySet[Job]:
    """Return the jobs of reports with invented answers of a study, the newest first."""
    return Job.objects.filter(study=study, kind=INVENTED).order_by("-pk")


def run_analysis(
    study: Study,
    parameters: Mapping[str, Any] | None = None,
    *,
    by,
    job_code: str = "",
    progress: Callable[[int, int, str], Any] = lambda done, total, doing: None,
) -> AnalysisRun:
    """Build the report, draw its figures and store both under the study's next number.

    ``by`` None: the site itself or its operator. ``job_code``: the code of the calling job. If this job already stored an
    analysis before a crash, return that analysis. Raises BadParameters.
    """
    from analysis.stats.seeds import canonical_json
    from studies.design.serialization import sha256_of

    from .plots import render_figure_svg_and_pdf

    check_permission_or_404(by, Action.ANALYSE, study)
    if job_code and (stored_run := AnalysisRun.objects.filter(study=study, parameters__job=job_code).first()):
        return stored_run
    validated = validate_parameters(parameters, study)
    result = build_report(study, validated, lambda done, _, doing: progress(done, STEPS, doing))
    drawn_figures = []
    for position, figure in enumerate(result["figures"], 1):
        progress(5, STEPS, f"Drawing figure {position} of {len(result['figures'])}")
        drawn_figures.append((figure["name"], *render_figure_svg_and_pdf(figure)))
    # The last report: a job that is cancelled after it has stored its result would say that nothing was changed.
    progress(STEPS, STEPS, "Storing")
    with transaction.atomic():
        Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        number = (AnalysisRun.objects.filter(study=study).aggregate(n=Max("number"))["n"] or 0) + 1
        run = AnalysisRun.objects.create(
            study=study,
            number=number,
            parameters=validated | ({"job": job_code} if job_code else {}),
            responses_n=result["data"]["responses_n"],
            responses_sha256=result["data"]["sha256"],
            design_sha256s=[version["sha256"] for version in result["design"]["versions"]],
            code_version=result["code_version"],
            seed=result["seed"],
            result=result,
            result_sha256=sha256_of(canonical_json(result)),
            by=by,
        )
        Figure.objects.bulk_create(Figure(run=run, name=name, svg=svg, pdf=pdf) for name, svg, pdf in drawn_figures)
        audit.record("analyse", study=study, by=by, number=number, result_sha256=run.result_sha256)
        events.record(study, EventKind.REPORT, str(number), number=number)
    return run
