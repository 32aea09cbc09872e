"""The job that combines numbers of people with scores of judges, and what it stored."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analysis.data.blinding import check_outcomes_visible
from analysis.models import CalibratedResult
from annotators.counting import Use, about_what_counts, counted_origins, select
from annotators.models import Assignment, Recruitment, Response
from annotators.pay.costs import cached_link_fees
from studies.access import Action, check_permission_or_404
from studies.models import Job, Question, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from ..beside_people import read_beside_people, scored_questions
from ..store import metrics_in_use
from .options import CalibrationOptions

KIND = "calibrate"


@dataclass(frozen=True, slots=True)
class LatestResult:
    """The newest result of a question. ``is_stale``: answers or judges have changed since."""

    question: Question
    stored: CalibratedResult | None
    is_stale: bool = False


def request_calibration(study: Study, by, options: CalibrationOptions, request_token: str | None = None) -> Job:
    """Submit the job. Raise ActionRefused without questions or scores, and PermissionDenied while outcomes are hidden."""
    check_permission_or_404(by, Action.ANALYSE, study)
    check_outcomes_visible(study, counted_origins(study))
    if not scored_questions(study):
        raise ActionRefused(
            "No question of the study gives scores. Only ratings, relative scales, two choices, human or machine, and error marks do."
        )
    if not metrics_in_use(study).exists():
        raise ActionRefused("The study has no scores of a metric or judge. Store scores first.")
    return jobs.submit(KIND, study=study, by=by, request_token=request_token, options=options.as_json())


def calibrate(
    study: Study, options: CalibrationOptions, by, progress: Callable[..., None] = lambda done, total, doing="": None
) -> list[CalibratedResult]:
    """Compute and store the result of each question that has scores."""
    from .compute import calibrated_result

    questions = scored_questions(study)
    n_assignments = _n_assignments(study)
    found = []
    for number, beside in enumerate(read_beside_people(study, questions)):
        question = beside.question

        def say(doing: str, number: int = number, question: Question = question) -> None:
            progress(number, len(questions), f"Question “{question.key}”: {doing}")

        result = calibrated_result(beside, options, price_of_label(study, question), say)
        used = set(result.get("used", ()))
        found.append(
            CalibratedResult(
                study=study,
                question=question,
                judges=[metric.fingerprint for metric in beside.metrics if str(metric) in used],
                options=options.as_json() | {"in_use": _in_use(beside.metrics)},
                n_assignments=n_assignments,
                result=result,
                by=by,
            )
        )
    progress(len(questions), len(questions), "Storing")
    return CalibratedResult.objects.bulk_create(found)


def latest_results(study: Study) -> list[LatestResult]:
    """Return the newest result of each question. Raise PermissionDenied while outcomes are hidden."""
    check_outcomes_visible(study, counted_origins(study))
    newest = {row.question_id: row for row in study.calibrated_results.select_related("by").order_by("pk")}
    n_assignments, metrics = _n_assignments(study), list(metrics_in_use(study))
    found = []
    for question in scored_questions(study):
        stored = newest.get(question.pk)
        own = [metric for metric in metrics if metric.question_id in (None, question.pk)]
        is_stale = stored is not None and (
            stored.n_assignments != n_assignments or stored.options.get("in_use") != _in_use(own)
        )
        found.append(LatestResult(question, stored, is_stale))
    return found


def _in_use(metrics: Any) -> list[int]:
    return sorted(metric.pk for metric in metrics)


def _submitted(study: Study):
    return select(Use.RESULTS, Assignment.objects.filter(study=study), counted_origins(study))


def _n_assignments(study: Study) -> int:
    return _submitted(study).count()


def price_of_label(study: Study, question: Question) -> float | None:
    """Return what one answer to a question costs: rewards and known fees of all assignments, divided by the answers. None if unpaid.

    The other questions of an assignment are paid with it, so their answers come for the same money.
    """
    assignments = _submitted(study)
    n_assignments = assignments.count()
    rows = about_what_counts(Response.objects.filter(assignment__in=assignments, question=question))
    # An answer may have several rows: one for each part of it.
    n_answers = rows.order_by().values("assignment", "item", "exposure").distinct().count()
    if study.reward is None or not n_answers:
        return None
    fees = sum(
        fee.amount
        for recruitment in Recruitment.objects.filter(study=study).select_related("study")
        for fee in cached_link_fees(recruitment, study.currency)
    )
    return float(study.reward * n_assignments + fees) / n_answers
