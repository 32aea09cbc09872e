"""The launch page: what blocks the launch, what it costs, and the warnings to acknowledge one by one."""

from dataclasses import dataclass
from decimal import Decimal

from django.http import HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse

from studies.services import lifecycle

from ..access import Action, get_study
from ..design.comparisons import planned_claim_sentences
from ..design.workload import mean_reward
from ..models import Job, Study
from . import workflow
from .study_page import render_study_page


def latest_launch_job(study: Study) -> Job | None:
    return study.jobs.filter(kind="launch").order_by("-pk").first()


def launch_page(request, pk) -> HttpResponse:
    """Show the launch page. POST requests the launch."""
    study = get_study(request.user, Action.LAUNCH, pk=pk)
    job = latest_launch_job(study)
    is_under_way = job is not None and job.state in (Job.State.WAITING, Job.State.RUNNING)
    if is_under_way or study.state != Study.State.DRAFT:
        target = reverse("admin:studies_job_page", args=[job.code]) if job else None
        return HttpResponseRedirect(target or reverse("admin:studies_study_change", args=[study.pk]))
    problems, populations = workflow.check_linked_design(study)
    blocking = [problem for problem in problems if problem.is_blocking]
    warnings = [problem for problem in problems if not problem.is_blocking]
    warning_keys = {problem.key for problem in warnings}
    acknowledged = [key for key in request.POST.getlist("acknowledge") if key in warning_keys]
    launch_errors: list[str] = []
    if request.method == "POST":
        try:
            job = lifecycle.request_launch(study, request.user, acknowledged)
            return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
        except lifecycle.NotReady as refused:
            launch_errors += [
                p.text if p.is_blocking else f"Acknowledge this warning: {p.text}" for p in refused.problems
            ]
        except lifecycle.ActionRefused as refused:
            launch_errors.append(str(refused))
    elif request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "POST"])
    context = {
        "title": "Launch",
        "here": "Launch",
        "blocking": blocking,
        "warnings": warnings,
        "acknowledged": set(acknowledged),
        "launch_errors": launch_errors,
        "populations": populations,
        "planned_claims": planned_claim_sentences(study),
        "planned_families": workflow.planned_families(study),
        **workflow.design_forecast(study),
        "cost": estimate_reward_cost(study),
        "failed": job if job is not None and job.state == Job.State.FAILED else None,
        "home": reverse("admin:studies_study_change", args=[study.pk]),
    }
    return render_study_page(request, "admin/studies/launch.html", study, context, 422 if launch_errors else 200)


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
