"""The page of the launch lists what stands against it, its cost, and the warnings to be acknowledged by name."""

from dataclasses import dataclass
from decimal import Decimal

from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse

from studies.services import lifecycle

from ..access import Action, get_study
from ..models import Job, Study
from . import workflow
from .study_page import render


def latest_launch_job(study: Study) -> Job | None:
    return study.jobs.filter(kind="launch").order_by("-pk").first()


def launch_page(request, site, pk):
    """All that stands against a launch, what it will cost, the warnings to be acknowledged by name."""
    study = get_study(request.user, Action.LAUNCH, pk=pk)
    job = latest_launch_job(study)
    is_under_way = job is not None and job.state in (Job.State.WAITING, Job.State.RUNNING)
    if is_under_way or study.state != Study.State.DRAFT:
        target = reverse("admin:studies_job_page", args=[job.code]) if job else None
        return HttpResponseRedirect(target or reverse("admin:studies_study_change", args=[study.pk]))
    found = workflow.checklist(study)
    blocking = [one for one in found if one.is_blocking]
    warnings = [one for one in found if not one.is_blocking]
    acknowledged = [key for key in request.POST.getlist("acknowledge") if key in {one.key for one in warnings}]
    unmet: list[str] = []
    if request.method == "POST":
        try:
            job = lifecycle.request_launch(study, request.user, acknowledged)
            return HttpResponseRedirect(reverse("admin:studies_job_page", args=[job.code]))
        except lifecycle.NotReady as refused:
            unmet += [one.text if one.is_blocking else f"Please acknowledge: {one.text}" for one in refused.problems]
        except lifecycle.ActionRefused as refused:
            unmet.append(str(refused))
    elif request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "POST"])
    context = {
        "title": "Launch",
        "here": "Launch",
        "blocking": blocking,
        "warnings": warnings,
        "acknowledged": set(acknowledged),
        "unmet": unmet,
        "loads": workflow.batch_burdens(study),
        "cost": cost(study),
        "failed": job if job is not None and job.state == Job.State.FAILED else None,
        "home": reverse("admin:studies_study_change", args=[study.pk]),
    }
    return render(request, site, "admin/studies/launch.html", study, context, 422 if unmet else 200)


@dataclass(frozen=True, slots=True)
class Cost:
    places: int
    cap: int | None
    reward: Decimal | None
    total: Decimal | None
    most: Decimal | None
    currency: str


def cost(study: Study) -> Cost:
    """What the annotators' rewards come to at the target, and at the cap."""
    places = study.target_n or 0
    rewards = [arm.reward if arm.reward is not None else study.reward for arm in study.arms.all()]
    known = [reward for reward in rewards if reward is not None]
    mean = sum(known) / len(known) if known and len(known) == len(rewards) else None
    return Cost(
        places=places,
        cap=study.cap,
        reward=mean,
        total=mean * places if mean is not None else None,
        most=mean * study.cap if mean is not None and study.cap else None,
        currency=study.currency,
    )
