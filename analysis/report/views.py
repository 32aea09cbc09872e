"""Report pages for researchers. Nothing is computed here: pages print what the job stored, and never load numpy."""

import json
import uuid
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from analysis.data.flat.selection import COUNTED
from analysis.models import AnalysisRun, Figure
from analysis.protocols.blocks import apa, figures, tables
from annotators.models import Assignment
from studies.access import Action, allowed, get_study
from studies.models import Job, Study
from studies.services import jobs

from .build import NO_PLAN
from .latex import latex
from .parameters import DEFAULTS, STAR_SCHEMES, default_origins
from .runs import request_analysis

SHOWN_ROWS = 100
SHARED_REPORTS = 20
REFRESH_SECONDS = 2
TEXT_KINDS = frozenset({"text"})


class ReportForm(forms.Form):
    """What a report is asked for with."""

    origins = forms.MultipleChoiceField(
        choices=[(value, label) for value, label in Assignment.Origin.choices if value != "test"],
        initial=DEFAULTS["origins"],
        widget=forms.CheckboxSelectMultiple,
        label="Answers of",
        help_text="Live: people who came to this study. Robot: programs that tried it out. Imported: read from a file.",
        error_messages={"required": "Choose at least one origin."},
    )
    level = forms.FloatField(
        min_value=0.5,
        max_value=0.999,
        initial=DEFAULTS["level"],
        label="Confidence level",
        help_text="Of the intervals: 0.95 is usual.",
    )
    resamples = forms.IntegerField(
        min_value=99,
        max_value=99_999,
        initial=DEFAULTS["resamples"],
        label="Resamples",
        help_text="How often annotators are drawn anew to see how sure a number is. More takes longer.",
    )
    star_scheme = forms.ChoiceField(
        choices=[(scheme, f"{scheme} %") for scheme in STAR_SCHEMES],
        initial=DEFAULTS["star_scheme"],
        label="Stars at",
        help_text="Which adjusted p earn one, two and three stars in the tables.",
    )


def run_for(request: HttpRequest, code: uuid.UUID, number: int) -> AnalysisRun:
    study = get_study(request.user, Action.LOOK, code=code)
    return get_object_or_404(AnalysisRun.objects.select_related("by"), study=study, number=number)


@login_required
@require_GET
def analyses(request, code):
    """The analyses of a study, the newest first, and the form that asks for another."""
    study = get_study(request.user, Action.LOOK, code=code)
    return _list(request, study, ReportForm(initial={"origins": default_origins(study)}))


def _list(request, study: Study, form: ReportForm, status: int = 200):
    may_run = allowed(request.user, Action.ANALYSE, study)
    running = Job.objects.filter(study=study, kind="analyse", state__in=["waiting", "running"]).order_by("pk")
    runs = study.analyses.defer("result").select_related("by")
    submitted = Assignment.objects.filter(study=study, withdrawn_at=None, submitted_at__isnull=False)
    there = dict(submitted.values_list("origin").annotate(n=Count("pk")))
    context = {
        "study": study,
        "runs": runs,
        "running": running,
        "samples": study.coding_samples.all() if study.launched_at else (),
        "form": form,
        "origins": [(box, there.get(box.data["value"], 0)) for box in form["origins"]],
        "may_run": may_run,
        "token": uuid.uuid4().hex,
    }
    return render(request, "report/list.html", context, status=status)


@login_required
@require_GET
def share(request, code):
    """What of a study can be given away, and to whom: links to its reports, its archive, its design."""
    study = get_study(request.user, Action.LOOK, code=code)
    runs = [
        (run, f"{settings.SITE_URL}{reverse('analysis', args=[study.code, run.number])}")
        for run in study.analyses.only("number", "at").order_by("-number")[:SHARED_REPORTS]
    ]
    design = study.designs.defer("canonical").order_by("version").last()
    found = Assignment.objects.filter(study=study)
    is_played = found.filter(origin="robot").exists() and not found.filter(origin__in=COUNTED).exists()
    context = {"study": study, "runs": runs, "design": design, "is_blind": study.is_blind, "is_played": is_played}
    return render(request, "report/share.html", context)


@login_required
@require_POST
def run(request, code):
    """Ask for a report; the same form sent twice asks once."""
    study = get_study(request.user, Action.ANALYSE, code=code)
    form = ReportForm(request.POST)
    if not form.is_valid():
        return _list(request, study, form, status=400)
    token = request.POST.get("token", "")
    token = f"analyse-{study.pk}-{token}" if token.isalnum() and len(token) <= 32 else None
    job = request_analysis(study, request.user, form.cleaned_data, token)
    return redirect("analysis_progress", code=study.code, job=job.code)


@login_required
@require_http_methods(["GET", "POST"])
def progress(request, code, job):
    """How far a report is; it leads on to the report when that is there. POST cancels."""
    study = get_study(request.user, Action.CANCEL if request.method == "POST" else Action.LOOK, code=code)
    found = get_object_or_404(Job, study=study, kind="analyse", code=job)
    if request.method == "POST":
        jobs.cancel(found, request.user)
        return redirect("analysis_progress", code=study.code, job=found.code)
    if found.state == Job.State.DONE:
        return redirect("analysis", code=study.code, number=found.result["number"])
    is_going = found.state in (Job.State.WAITING, Job.State.RUNNING)
    is_still = "still" in request.GET
    response = render(
        request,
        "report/progress.html",
        {
            "study": study,
            "job": found,
            "is_going": is_going,
            "is_still": is_still,
            "is_nobody": is_going and not jobs.is_runner_alive(),
        },
    )
    if is_going and not is_still:
        # As a header, so that the page itself can be left to stand still.
        response["Refresh"] = str(REFRESH_SECONDS)
    return response


def _unbroken(conclusion: dict[str, Any]) -> dict[str, Any]:
    """A conclusion whose numbers do not part from their signs at the end of a line."""
    text = (
        conclusion["text"].replace(" %", "\u00a0%").replace("p < ", "p\u00a0<\u00a0").replace("n = ", "n\u00a0=\u00a0")
    )
    return conclusion | {"text": text}


@login_required
@require_GET
def report(request, code, number):
    """One analysis: conclusions first, then the paper's table, then how sure, then everything."""
    run = run_for(request, code, number)
    study, found = run.study, run.result
    shown = [shown_table(one) for one in found.get("tables", [])]
    drawn = found.get("figures", [])
    front = figures.in_front(drawn)
    withdrawn = Assignment.objects.filter(
        study=study, withdrawn_at__gt=run.at, origin__in=found["parameters"]["origins"]
    ).count()
    flow = found["flow"]
    left = [f"{n} {reason.replace('_', ' ')}" for reason, n in flow["released"].items()]
    if flow["unfinished"]:
        left.append(f"{flow['unfinished']} not finished yet")
    context = {
        "left": ", ".join(left),
        "is_planned": NO_PLAN not in found["confirmatory"]["reasons"],
        "study": study,
        "run": run,
        "result": found,
        "withdrawn_since": withdrawn,
        "first": [one for one in shown if one["place"] == "first"],
        "sure": [one for one in shown if one["place"] == "sure"],
        "more": [one for one in shown if one["place"] == "more"],
        "front": front,
        "others": [figure for figure in drawn if figure is not front],
        "steps": [
            step | {"name": step["label"].partition(":")[0]}
            for step in flow["rules"]
            if step["n_excluded"] or step["role"] != "always"
        ],
        "beside_intervals": apa.BESIDE_INTERVALS
        if any("adjusted p" in one["text"] for one in found["conclusions"])
        else "",
        "primary": [_unbroken(one) for one in found["conclusions"] if one["role"] == "primary"],
        "secondary": [_unbroken(one) for one in found["conclusions"] if one["role"] != "primary"],
        "may_run": allowed(request.user, Action.ANALYSE, study),
        "token": uuid.uuid4().hex,
    }
    return render(request, "report/report.html", context)


def shown_table(one: tables.Table) -> dict[str, Any]:
    """A table as the page prints it: columns in which something stands, cells as text, at most so many rows."""
    columns = tables.filled(one)
    rows = [
        [
            {
                "text": tables.printed(row[column["key"]], column["kind"]).replace(" %", "\u00a0%"),
                "is_number": column["kind"] not in TEXT_KINDS,
            }
            for column in columns
        ]
        for row in one["rows"][:SHOWN_ROWS]
    ]
    heads = [{"text": column["label"], "is_number": column["kind"] not in TEXT_KINDS} for column in columns]
    return {**one, "heads": heads, "rows": rows, "n_rows": len(one["rows"]), "is_cut": len(one["rows"]) > SHOWN_ROWS}


@login_required
@require_GET
def result(request, code, number):
    """The whole result, as it was stored and hashed."""
    run = run_for(request, code, number)
    text = json.dumps(run.result, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return _file(text, "application/json", f"analysis-{run.number}.json")


@login_required
@require_GET
def table(request, code, number, name, form):
    """One table as CSV, LaTeX or JSON."""
    run = run_for(request, code, number)
    one = next((one for one in run.result.get("tables", []) if one["name"] == name), None)
    if one is None:
        raise Http404
    file = f"analysis-{run.number}-{name}.{form}"
    match form:
        case "csv":
            return _file(tables.csv_text(one), "text/csv", file)
        case "tex":
            return _file(latex(one), "text/x-tex", file)
        case "json":
            return _file(json.dumps(one, ensure_ascii=False, allow_nan=False, indent=1), "application/json", file)
    raise Http404


@login_required
@require_GET
def figure(request, code, number, name, form):
    """One figure: SVG for the page, PDF for the paper."""
    run = run_for(request, code, number)
    found = get_object_or_404(Figure, run=run, name=name)
    if form == "svg":
        response = HttpResponse(found.svg, content_type="image/svg+xml; charset=utf-8")
        response["Cache-Control"] = "private, max-age=31536000, immutable"
        return response
    if form == "pdf":
        return _file(bytes(found.pdf), "application/pdf", f"analysis-{run.number}-{name}.pdf")
    raise Http404


def _file(content: str | bytes, kind: str, name: str) -> HttpResponse:
    kind = kind if isinstance(content, bytes) else f"{kind}; charset=utf-8"
    return HttpResponse(content, content_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})
