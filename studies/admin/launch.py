"""The launch page: what blocks the launch, what it costs, and the warnings to acknowledge one by one."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.http import HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse

from studies.services import lifecycle

from ..access import Action, get_study
from ..design.checklist import UNFILLED
from ..design.comparisons import planned_claim_sentences
from ..design.workload import mean_reward
from ..models import Job, Study
from . import workflow
from .study_page import render_study_page
from .workflow import LinkedProblem


def latest_launch_job(study: Study) -> Job | None:
    return study.jobs.filter(kind="launch").order_by("-pk").first()


def page_instead_of_launch(study: Study) -> str:
    """Return the page of the running launch, or of a study that is launched. Return '' if the study can be launched."""
    job = latest_launch_job(study)
    if not (job is not None and job.state in (Job.State.WAITING, Job.State.RUNNING)) and study.is_draft:
        return ""
    target = reverse("admin:studies_job_page", args=[job.code]) if job else None
    return target or reverse("admin:studies_study_change", args=[study.pk])


def launch_context(study: Study, acknowledged: Iterable[str]) -> dict[str, Any]:
    """Return what both launch pages show: what is missing, the warnings with those that are acknowledged, and the cost."""
    problems, populations = workflow.check_linked_design(study)
    warnings = [problem for problem in problems if not problem.is_blocking]
    job = latest_launch_job(study)
    return {
        "blocking": [problem for problem in problems if problem.is_blocking],
        "warnings": warnings,
        "acknowledged": {problem.key for problem in warnings} & set(acknowledged),
        "populations": populations,
        "planned_claims": planned_claim_sentences(study),
        "planned_families": workflow.planned_families(study),
        **workflow.design_forecast(study),
        "cost": estimate_reward_cost(study),
        "failed": job if job is not None and job.state == Job.State.FAILED else None,
    }


def refusal_lines(refused: lifecycle.ActionRefused) -> list[str]:
    """Return why a launch was refused."""
    if not isinstance(refused, lifecycle.NotReady):
        return [str(refused)]
    return [p.text if p.is_blocking else f"Acknowledge this warning: {p.text}" for p in refused.problems]


def launch_page(request, pk) -> HttpResponse:
    """Show the launch page. POST requests the launch."""
    study = get_study(request.user, Action.LAUNCH, pk=pk)
    if target := page_instead_of_launch(study):
        return HttpResponseRedirect(target)
    if request.method not in ("GET", "HEAD", "POST"):
        return HttpResponseNotAllowed(["GET", "POST"])
    context = launch_context(study, request.POST.getlist("acknowledge"))
    launch_errors: list[str] = []
    if request.method == "POST":
        try:
            job = lifecycle.request_launch(study, request.user, context["acknowledged"])
            return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
        except lifecycle.ActionRefused as refused:
            launch_errors = refusal_lines(refused)
    context |= {
        "title": "Launch",
        "here": "Launch",
        "launch_errors": launch_errors,
        "home": reverse("admin:studies_study_change", args=[study.pk]),
    }
    return render_study_page(request, "admin/studies/launch.html", study, context, 422 if launch_errors else 200)


# A field of a problem > the page of a new study that asks for it.
NEW_STUDY_PAGES = {
    **dict.fromkeys(("prompts", "outputs", "systems"), "new_study_file"),
    **dict.fromkeys(("target_n", "minutes", "reward", "annotators_per_batch", "wage_per_hour"), "new_study_people"),
    **dict.fromkeys(("public_title", "purpose", "consent", "contact", "instructions"), "new_study_texts"),
}


def problems_on_new_study_pages(study: Study, problems: Iterable[LinkedProblem]) -> list[LinkedProblem]:
    """Return the problems, each with the page of a new study that corrects it if there is one. A mark in a text blocks, too."""
    has_question = study.sections.exists()
    found = []
    for problem in problems:
        name = NEW_STUDY_PAGES.get(problem.field, "" if has_question else "new_study_question")
        url = (name and workflow.reverse_or_empty(name, study.pk)) or problem.url
        found.append(
            replace(problem, url=url, is_blocking=problem.is_blocking or problem.key.startswith(f"{UNFILLED}:"))
        )
    return found


@dataclass(frozen=True, slots=True)
class RewardCostEstimate:
    places: int
    cap: int | None
    reward: Decimal | None
    total: Decimal | None
    most: Decimal | None
    currency: str


def estimate_reward_cost(study: Study) -> RewardCostEstimate:
    """Return the sum of the annotators' rewards at the target, and at the cap."""
    places = study.target_n or 0
    mean = mean_reward(study)
    return RewardCostEstimate(
        places=places,
        cap=study.cap,
        reward=mean,
        total=mean * places if mean is not None else None,
        most=mean * study.cap if mean is not None and study.cap else None,
        currency=study.currency,
    )
