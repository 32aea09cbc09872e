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

from analysis.data.flat_rows.selection import COUNTED_ORIGINS
from analysis.models import AnalysisRun, Figure
from analysis.protocols.blocks import apa, figures, tables
from annotators.models import Assignment
from studies.access import Action, get_study, is_allowed
from studies.models import Job, Study
from studies.services import jobs

from .build import NO_COMPARISON_PLANNED
from .latex import latex
from .parameters import DEFAULT_PARAMETERS, STAR_SCHEMES, default_origins
from .runs import request_analysis

SHOWN_ROWS = 100
SHARED_REPORTS = 20
REFRESH_SECONDS = 2
TEXT_KINDS = frozenset({"text"})


class ReportForm(forms.Form):
    """What a report is asked for with."""

    origins = forms.MultipleChoiceField(
        choices=[(value, label) for value, label in Assignment.Origin.choices if value != "test"],
        initial=DEFAULT_PARAMETERS["origins"],
        widget=forms.CheckboxSelectMultiple,
        label="Answers of",
        help_text="Live: people who came to this study. Robot: programs that tried it out. Imported: read from a file.",
        error_messages={"required": "Choose at least one origin."},
    )
    level = forms.FloatField(
        min_value=0.5,
        max_value=0.999,
        initial=DEFAULT_PARAMETERS["level"],
        label="Confidence level",
        help_text="Of the intervals: 0.95 is usual.",
    )
    resamples = forms.IntegerField(
        min_value=99,
        max_value=99_999,
        initial=DEFAULT_PARAMETERS["resamples"],
        label="Resamples",
        help_text="How often annotators are drawn anew to see how sure a number is. More takes longer.",
    )
    star_scheme = forms.ChoiceField(
        choices=[(scheme, f"{scheme} %") for scheme in STAR_SCHEMES],
        initial=DEFAULT_PARAMETERS["star_scheme"],
        label="Stars at",
        help_text="Which adjusted p earn one, two and three stars in the tables.",
    )


def run_for(request: HttpRequest, code: uuid.UUID, number: int) -> AnalysisRun:
    study = get_study(request.user, Action.VIEW, code=code)
    return get_object_or_404(AnalysisRun.objects.select_related("by"), study=study, number=number)


@login_required
@require_GET
def analyses(request, code):
    """The analyses of a study, the newest first, and the form that asks for another."""
    study = get_study(request.user, Action.VIEW, code=code)
    return _render_list(request, study, ReportForm(initial={"origins": default_origins(study)}))


def _render_list(request, study: Study, form: ReportForm, status: int = 200):
    may_run = is_allowed(request.user, Action.ANALYSE, study)
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
def share_page(request, code):
    """What of a study can be given away, and to whom: links to its reports, its archive, its design."""
    study = get_study(request.user, Action.VIEW, code=code)
    runs = [
        (run, f"{settings.SITE_URL}{reverse('analysis', args=[study.code, run.number])}")
        for run in study.analyses.only("number", "at").order_by("-number")[:SHARED_REPORTS]
    ]
    design = study.designs.defer("canonical").order_by("version").last()
    found = Assignment.objects.filter(study=study)
    is_played = found.filter(origin="robot").exists() and not found.filter(origin__in=COUNTED_ORIGINS).exists()
    context = {"study": study, "runs": runs, "design": design, "is_blind": study.is_blind, "is_played": is_played}
    return render(request, "report/share.html", context)


@login_required
@require_POST
def start_analysis(request, code):
    """Ask for a report; the same form sent twice asks once."""
    study = get_study(request.user, Action.ANALYSE, code=code)
    form = ReportForm(request.POST)
    if not form.is_valid():
        return _render_list(request, study, form, status=400)
    token = request.POST.get("token", "")
    token = f"analyse-{study.pk}-{token}" if token.isalnum() and len(token) <= 32 else None
    job = request_analysis(study, request.user, form.cleaned_data, token)
    return redirect("analysis_progress", code=study.code, job=job.code)


@login_required
@require_http_methods(["GET", "POST"])
def progress(request, code, job):
    """How far a report is; it leads on to the report when that is there. POST cancels."""
    study = get_study(request.user, Action.CANCEL if request.method == "POST" else Action.VIEW, code=code)
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


def _nonbreaking_conclusion(conclusion: dict[str, Any]) -> dict[str, Any]:
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
    shown = [table_context(one) for one in found.get("tables", [])]
    drawn = found.get("figures", [])
    front = figures.lead_figure(drawn)
    withdrawn = Assignment.objects.filter(
        study=study, withdrawn_at__gt=run.at, origin__in=found["parameters"]["origins"]
    ).count()
    flow = found["flow"]
    left = [f"{n} {reason.replace('_', ' ')}" for reason, n in flow["released"].items()]
    if flow["unfinished"]:
        left.append(f"{flow['unfinished']} not finished yet")
    context = {
        "left": ", ".join(left),
        "is_planned": NO_COMPARISON_PLANNED not in found["confirmatory"]["reasons"],
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
        "beside_intervals": apa.ADJUSTED_P_NOTE
        if any("adjusted p" in one["text"] for one in found["conclusions"])
        else "",
        "primary": [_nonbreaking_conclusion(one) for one in found["conclusions"] if one["role"] == "primary"],
        "secondary": [_nonbreaking_conclusion(one) for one in found["conclusions"] if one["role"] != "primary"],
        "may_run": is_allowed(request.user, Action.ANALYSE, study),
        "token": uuid.uuid4().hex,
    }
    return render(request, "report/report.html", context)


def table_context(stored_table: tables.Table) -> dict[str, Any]:
    """A table as the page prints it: columns in which something stands, cells as text, at most so many rows."""
    columns = tables.nonempty_columns(stored_table)
    rows = [
        [
            {
                "text": tables.format_cell(row[column["key"]], column["kind"]).replace(" %", "\u00a0%"),
                "is_number": column["kind"] not in TEXT_KINDS,
            }
            for column in columns
        ]
        for row in stored_table["rows"][:SHOWN_ROWS]
    ]
    heads = [{"text": column["label"], "is_number": column["kind"] not in TEXT_KINDS} for column in columns]
    return {
        **stored_table,
        "heads": heads,
        "rows": rows,
        "n_rows": len(stored_table["rows"]),
        "is_cut": len(stored_table["rows"]) > SHOWN_ROWS,
    }


@login_required
@require_GET
def result(request, code, number):
    """The whole result, as it was stored and hashed."""
    run = run_for(request, code, number)
    text = json.dumps(run.result, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return _file_response(text, "application/json", f"analysis-{run.number}.json")


@login_required
@require_GET
def table(request, code, number, name, file_format):
    """One table as CSV, LaTeX or JSON."""
    run = run_for(request, code, number)
    one = next((one for one in run.result.get("tables", []) if one["name"] == name), None)
    if one is None:
        raise Http404
    file = f"analysis-{run.number}-{name}.{file_format}"
    match file_format:
        case "csv":
            return _file_response(tables.csv_text(one), "text/csv", file)
        case "tex":
            return _file_response(latex(one), "text/x-tex", file)
        case "json":
            return _file_response(
                json.dumps(one, ensure_ascii=False, allow_nan=False, indent=1), "application/json", file
            )
    raise Http404


@login_required
@require_GET
def figure(request, code, number, name, file_format):
    """One figure: SVG for the page, PDF for the paper."""
    run = run_for(request, code, number)
    found = get_object_or_404(Figure, run=run, name=name)
    if file_format == "svg":
        response = HttpResponse(found.svg, content_type="image/svg+xml; charset=utf-8")
        response["Cache-Control"] = "private, max-age=31536000, immutable"
        return response
    if file_format == "pdf":
        return _file_response(bytes(found.pdf), "application/pdf", f"analysis-{run.number}-{name}.pdf")
    raise Http404


def _file_response(content: str | bytes, kind: str, name: str) -> HttpResponse:
    kind = kind if isinstance(content, bytes) else f"{kind}; charset=utf-8"
    return HttpResponse(content, content_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})
