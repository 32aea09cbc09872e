"""The page of combined numbers. It shows stored results, computes nothing and never imports numpy."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from analysis.data.blinding import are_outcomes_hidden
from annotators.counting import SIMULATED, counted_origins, is_simulated
from studies.access import Action, check_permission_or_404, get_study, is_allowed
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from ..scoring.rows import describe_scores
from ..store import metrics_in_use
from .figure import plan_figure
from .options import CalibrationForm
from .run import KIND, LatestResult, latest_results, request_calibration
from .sentences import (
    all_biases,
    bias_sentences,
    judge_sentences,
    main_sentences,
    plan_sentences,
    points,
    span,
    whole,
)

INITIAL = {"sample": "random", "are_people_known": True}


@login_required
@require_http_methods(["GET", "POST"])
def calibrated_page(request: HttpRequest, code) -> HttpResponse:
    """Show the newest result of each question, people first, and the form of the plan. POST starts the job."""
    study = get_study(request.user, Action.VIEW, code=code)
    form, status = CalibrationForm(study, initial=_initial(study)), 200
    if request.method == "POST":
        check_permission_or_404(request.user, Action.ANALYSE, study)
        form = CalibrationForm(study, request.POST)
        if form.is_valid():
            sent = request.POST.get("token", "")
            token = f"calibrate-{study.pk}-{sent}" if sent.isalnum() and len(sent) <= 32 else None
            try:
                request_calibration(study, request.user, form.options(), token)
            except ActionRefused as refused:
                form.add_error(None, str(refused))
            else:
                return redirect("study_calibrated", study.code)
        status = 400
    is_hidden = are_outcomes_hidden(study, counted_origins(study))
    running = Job.objects.filter(study=study, kind=KIND, state__in=[Job.State.WAITING, Job.State.RUNNING]).last()
    failed = Job.objects.filter(study=study, kind=KIND).order_by("-pk").first()
    context = {
        "study": study,
        "simulated": SIMULATED if is_simulated(study) else "",
        "is_hidden": is_hidden,
        "questions": [] if is_hidden else [_question(latest) for latest in latest_results(study)],
        "has_scores": metrics_in_use(study).exists(),
        "form": form,
        "may_run": is_allowed(request.user, Action.ANALYSE, study) and not is_hidden,
        "running": running,
        "error": failed.error if failed and failed.state == Job.State.FAILED else "",
        "is_runner_missing": running is not None and not jobs.is_runner_alive(),
        "token": uuid.uuid4().hex,
    }
    return render(request, "report/calibrated.html", context, status=status)


def _initial(study: Study) -> dict[str, Any]:
    is_imported = counted_origins(study) == ["imported"]
    return INITIAL | ({"sample": "unknown"} if is_imported else {})


def _question(latest: LatestResult) -> dict[str, Any]:
    shown: dict[str, Any] = {"question": latest.question, "text": latest.question.text.replace("{label}", "…")}
    shown |= {"meaning": describe_scores(latest.question), "stored": latest.stored, "is_stale": latest.is_stale}
    if latest.stored is None:
        return shown
    result, options = latest.stored.result, latest.stored.options
    shown["sentences"] = main_sentences(result, options)
    shown["result"] = result
    if result["status"] != "ok":
        return shown
    return shown | {
        "systems": [_number(row["system"], row["result"]) for row in result["systems"]],
        "pairs": [
            _number(_pair_name(row, result), row["result"]) | {"own_family": _own_family(row["own_family"])}
            for row in result["pairs"]
        ],
        "judges": [_judge(row) for row in result["judges"]],
        "biases": [_bias(row) for row in all_biases(result)],
        "judge_sentences": judge_sentences(result["judges"]),
        "bias_sentences": bias_sentences(result),
        "plan_sentences": plan_sentences(result),
        "plan": [_needs(row) for row in result["plan"]["groups"] if row["needs"]],
        "figure": plan_figure(result["plan"]["curve"]),
        "figure_group": result["plan"]["curve"].get("group", ""),
    }


def _own_family(warnings: Sequence[Mapping[str, str]]) -> str:
    """Return which judges belong to the families of which systems: by name, or their number if a system has several."""
    judges: dict[str, list[str]] = {}
    for one in warnings:
        judges.setdefault(one["system"], []).append(one["judge"])
    return ", ".join(
        f"“{own[0]}” of “{system}”" if len(own) == 1 else f"{len(own)} judges of “{system}”"
        for system, own in judges.items()
    )


def _pair_name(row: dict[str, Any], result: dict[str, Any]) -> str:
    return (
        f"{row['first']} over {row['second']}"
        if result["kind"] == "preferences"
        else f"{row['first']} – {row['second']}"
    )


def _number(name: str, result: dict[str, Any]) -> dict[str, Any]:
    human, combined = result["human"], result["combined"]
    return {
        "name": name,
        "human": points(human["estimate"]),
        "human_span": span(human["interval"]),
        "human_reason": human["reason"],
        "n": f"{result['n_labels']:,} ({human['n']:,} {human['unit']}{'' if human['n'] == 1 else 's'})",
        "combined": "–" if combined is None else points(combined["estimate"]),
        "combined_span": "–" if combined is None else span(combined["interval"]),
        "ratio": "–" if result["width_ratio"] is None else f"{result['width_ratio']:.2f}",
        "labels_saved": whole(result["labels_saved"]),
        "money_saved": "–" if result["money_saved"] is None else f"{result['money_saved']:,.2f}".replace("-", "−"),
        "fallback": result["fallback"],
    }


def _judge(row: dict[str, Any]) -> dict[str, Any]:
    bias = row["bias"]
    return row | {
        "correlation": "–" if row["correlation"] is None else f"{row['correlation']:.2f}".replace("-", "−"),
        "bias": "–" if bias.get("estimate") is None else f"{points(bias['estimate'])} ({span(bias['interval'], 0.0)})",
        "bias_reason": bias["reason"],
        "labels_saved": whole(row["labels_saved"]),
    }


def _bias(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "judge": row["judge"],
        "group": row["group"] or "no domain",
        "n_labels": row["n_labels"],
        "bias": points(row["bias"].get("estimate")),
        "bias_span": span(row["bias"].get("interval"), 0.0),
        "favour": points(row["favour"].get("estimate")),
        "favour_span": span(row["favour"].get("interval_adjusted") or row["favour"].get("interval"), 0.0),
        "is_own_family": row["is_own_family"],
    }


def _needs(row: dict[str, Any]) -> dict[str, Any]:
    return {"group": row["group"], "needs": [need | {"points": points(need["width"])} for need in row["needs"]]}
