"""The page and the badge of a check. They show what is stored and compute nothing."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST, require_safe

from analysis.models import JudgeCheck
from analysis.protocols.blocks import cells
from analysis.protocols.blocks.populations import heading_words
from annotators.counting import SIMULATED, Use, is_simulated, select
from studies.access import Action, get_study, is_allowed, may_read_draw
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from . import sentences
from .binding import CheckState, find_state
from .drawing import draw_check, judges_of, newest_check
from .forms import DrawForm
from .measuring import KIND, request_result

BADGE_COLOURS = {"good": "#1a6b3c", "not_good": "#a3281e", "stale": "#8a5a00", "open": "#4a5560"}
BADGE_SECONDS = 300
# The picture of shares: from 0 to 100 % in its own units.
LEFT, WIDTH, ROW = 8, 284, 34


@login_required
@require_GET
def judge_page(request: HttpRequest, code: uuid.UUID) -> HttpResponse:
    """Show the state of the study's check, and the form that draws its sample."""
    study = get_study(request.user, Action.VIEW, code=code)
    return _render(request, study, DrawForm(study))


def _render(request: HttpRequest, study: Study, form: DrawForm, status: int = 200) -> HttpResponse:
    check = newest_check(study)
    found = find_state(check)
    running = Job.objects.filter(study=study, kind=KIND, state__in=[Job.State.WAITING, Job.State.RUNNING]).exists()
    submitted = select(Use.RESULTS, study.assignments.all())
    context: dict[str, Any] = {
        "study": study,
        "simulated": SIMULATED if is_simulated(study) else "",
        "form": form,
        "check": check,
        "found": found,
        "headline": sentences.headline(found),
        "has_judge": judges_of(study).exists(),
        "may_draw": study.is_draft and is_allowed(request.user, Action.EDIT, study),
        "may_run": check is not None and bool(study.launched_at) and is_allowed(request.user, Action.ANALYSE, study),
        "is_hidden": study.is_blind,
        "may_read_draw": may_read_draw(request.user, study),
        "n_submitted": submitted.count() if study.launched_at else 0,
        "n_places": (study.target_n or 0) if check else 0,
        "is_running": running,
        "is_runner_missing": running and not jobs.is_runner_alive(),
        "token": uuid.uuid4().hex,
    }
    if check:
        if not found.result:
            context["workload"] = sentences.workload_sentence(
                check, check.question.section.m, study.batches_per_annotator
            )
        context["badge"] = settings.SITE_URL + reverse("judge_badge", args=[check.badge_key])
    if found.result:
        context |= _result_context(found, found.result.result)
    return render(request, "judge/check.html", context, status=status)


def _result_context(found: CheckState, result: Mapping[str, Any]) -> dict[str, Any]:
    test = result["test"]
    shown: dict[str, Any] = {
        "result": result,
        "criteria": sentences.criterion_sentences(result),
        "said": sentences.context_sentences(found.result.judge_check, result) if found.result else (),
    }
    if not test["agreement"]:
        return shown
    agreement, rates, possible = test["agreement"], test["rates"], test["possible"]
    rows = [
        ("Agreement with a person", agreement["agreement"]),
        (f"Always “{agreement['constant']}”", agreement["constant_agreement"]),
        ("True-positive rate", rates["true_positive_rate"]),
        ("True-negative rate", rates["true_negative_rate"]),
        ("Precision of “yes”", rates["precision"]),
        ("Precision of “no”", rates["negative_precision"]),
        ("People say “yes”", rates["prevalence"]),
        ("The judge says “yes”", rates["judge_prevalence"]),
        ("Person with person", possible["pair_agreement"]),
        ("Best possible judge", possible["best_possible"]),
    ]
    shown["rows"] = [_row(label, estimate) for label, estimate in rows]
    shown["picture"] = [_mark(number, label, estimate) for number, (label, estimate) in enumerate(rows)]
    shown["picture_height"] = ROW * len(rows) + 24
    shown["picture_bottom"] = ROW * len(rows) + 2
    shown["groups"] = [
        (
            name,
            [_row(one["group"] or "–", one["agreement"]) for one in group["groups"]],
            cells.format_equation("p", cells.format_pvalue(group["joint"]["test"]["pvalue"]))
            if group["joint"]["test"]
            else "",
        )
        for name, group in test["groups"].items()
    ]
    shown["people"] = test["alternative"]["people"]
    shown["kappa"] = agreement["kappa"]
    intervals = [one for _, one in rows if one["interval"]]
    shown["holds_for"] = heading_words(one["settings"].get("population", "") for one in intervals)
    shown["probes"] = sentences.probe_sentences(test["probes"], found.result.judge.family if found.result else "")
    development = result["development"]
    if development["agreement"]:
        shown["development"] = _row("Agreement with a person", development["agreement"]["agreement"])
        shown["differences"] = development["differences"]
    return shown


def _row(label: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "label": label,
        "text": sentences.interval_text(estimate),
        "n_rows": estimate["n_rows"],
        "n": estimate["n"],
        "unit": estimate["unit"],
    }


def _mark(number: int, label: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the picture: the places of the estimate and of its interval."""

    def across(share: float) -> float:
        return round(LEFT + WIDTH * min(1.0, max(0.0, share)), 1)

    interval, value = estimate["interval"], estimate["estimate"]
    return {
        "label": label,
        "text_y": number * ROW + 12,
        "y": number * ROW + 22,
        "x": None if value is None else across(value),
        "low": across(interval["low"]) if interval else None,
        "high": across(interval["high"]) if interval else None,
    }


@login_required
@require_POST
def draw_sample(request: HttpRequest, code: uuid.UUID) -> HttpResponse:
    """Draw the sample of a draft."""
    study = get_study(request.user, Action.EDIT, code=code)
    form = DrawForm(study, request.POST)
    if form.is_valid():
        try:
            draw_check(study, request.user, form.settings())
        except ActionRefused as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("judge_check", code=study.code)
    return _render(request, study, form, status=400)


@login_required
@require_POST
def compute(request: HttpRequest, code: uuid.UUID) -> HttpResponse:
    """Start the job that computes the result. A form that is sent twice starts one job."""
    study = get_study(request.user, Action.ANALYSE, code=code)
    sent = request.POST.get("token", "")
    token = f"judge-{study.pk}-{sent}" if sent.isalnum() and len(sent) <= 32 else None
    try:
        request_result(study, request.user, token)
    except (ActionRefused, PermissionDenied) as refused:
        messages.error(request, str(refused))
    return redirect("judge_check", code=study.code)


@require_safe
def badge(request: HttpRequest, key: str) -> HttpResponse:
    """Show the state of a check to everybody with the key: nothing but the judge's name, the state, its date and n."""
    check = JudgeCheck.objects.filter(badge_key=key).select_related("judge__study", "question__section__study").first()
    if check is None:
        raise Http404("There is no badge at this address.")
    found = find_state(check)
    value = found.words
    if found.result and found.at:
        value += f", {found.at:%Y-%m-%d}, n = {found.result.n_labels}"
    name = check.judge.name
    label = f"judge {name if len(name) <= 40 else name[:39] + '…'}"
    # About the width of the letters of a sans-serif font at 11 pixels.
    label_width, value_width = (round(12 + 6.6 * len(text), 1) for text in (label, value))
    context = {
        "label": label,
        "value": value,
        "text": f"{label}: {value}",
        "colour": BADGE_COLOURS[found.state],
        "width": round(label_width + value_width, 1),
        "label_width": label_width,
        "label_middle": round(label_width / 2, 1),
        "value_middle": round(label_width + value_width / 2, 1),
    }
    response = render(request, "judge/badge.svg", context, content_type="image/svg+xml")
    response["Cache-Control"] = f"public, max-age={BADGE_SECONDS}"
    response["X-Robots-Tag"] = "noindex"
    return response
