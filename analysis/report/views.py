"""Report pages for researchers. Pages show what the job stored. They compute nothing and never import numpy."""

import json
import uuid
from collections.abc import Iterable
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from analysis.data.exports import TABLES, request_export
from analysis.data.flat_rows import COUNTED_ORIGINS
from analysis.models import AnalysisRun, Figure, ReportLink
from analysis.protocols import REGISTRY
from analysis.protocols.blocks import layouts
from analysis.report.page_jobs import job_context, token_of_form
from annotators.counting import Use, select, simulated_words
from annotators.models import Assignment
from studies.access import Action, get_study, may_read_draw
from studies.admin.permissions import is_request_allowed
from studies.admin.study_page import render_new_study_page, render_study_page
from studies.admin.workflow import problems_with_correction_urls
from studies.models import Job, Study
from studies.services.lifecycle import ActionRefused, FieldsRefused, NotReady

from .build import DEFAULT_PARAMETERS, DELTAS, STAR_SCHEMES, BadParameters, default_origins, validate_deltas
from .items import items_context
from .links import DEFAULT_DAYS, MAX_DAYS
from .page import report_context, run_context
from .pdf import newest_pdf_job, request_pdf
from .plots import render_latex_table
from .runs import INVENTED, invented_report_jobs, request_analysis, request_invented_report
from .texts import FORMATS, render_answer, render_table

SHARED_REPORTS = 20
COUNTABLE_ORIGINS = [(value, label) for value, label in Assignment.Origin.choices if value != "test"]


class ReportLinkForm(forms.Form):
    """A read-only link to one of these analyses."""

    analysis = forms.TypedChoiceField(coerce=int, label="Analysis")
    days = forms.IntegerField(
        min_value=1,
        max_value=MAX_DAYS,
        initial=DEFAULT_DAYS,
        label="Days until it expires",
        help_text=f"From 1 to {MAX_DAYS}.",
    )
    is_anonymous = forms.BooleanField(
        required=False,
        label="Anonymous, for double-blind review",
        help_text="Without title, names, accounts, institution, contact and host. Look at the page before you send its link: heval removes what it knows.",
    )
    parts = forms.MultipleChoiceField(
        choices=ReportLink.Part.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="An anonymous link also shows",
        help_text="They can say who you are. A link with names always shows them.",
    )

    def __init__(self, numbers: Iterable[int], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["analysis"].choices = [(number, f"Analysis {number}") for number in numbers]  # type: ignore[attr-defined]  # it is declared above as a ChoiceField


class ReportForm(forms.Form):
    """The parameters of an analysis."""

    origins = forms.MultipleChoiceField(
        choices=COUNTABLE_ORIGINS,
        initial=DEFAULT_PARAMETERS["origins"],
        widget=forms.CheckboxSelectMultiple,
        label="Answers of",
        help_text="Live: people who took part in this study. Robot: simulated annotators. Imported: answers read from a file.",
        error_messages={"required": "No origin is chosen. Choose at least one."},
    )
    level = forms.FloatField(
        min_value=0.5,
        max_value=0.999,
        initial=DEFAULT_PARAMETERS["level"],
        label="Confidence level",
        help_text="Confidence level of the intervals. 0.95 is usual.",
    )
    resamples = forms.IntegerField(
        min_value=99,
        max_value=99_999,
        initial=DEFAULT_PARAMETERS["resamples"],
        label="Resamples",
        help_text="Number of bootstrap or permutation resamples. More resamples take longer.",
    )
    star_scheme = forms.ChoiceField(
        choices=[(scheme, f"{scheme} %") for scheme in STAR_SCHEMES],
        initial=DEFAULT_PARAMETERS["star_scheme"],
        label="Stars at",
        help_text="Adjusted p-values below which the tables show one, two and three stars.",
    )
    deltas = forms.CharField(
        required=False,
        max_length=100,
        label="Further values of delta",
        help_text="The report also counts the labels that each strategy needs at these values, such as 0.01, 0.001, 0.0001.",
    )

    def __init__(self, study: Study, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        protocols = study.sections.values_list("protocol", flat=True)
        if not any(REGISTRY[protocol].reads_deltas for protocol in protocols):
            del self.fields[DELTAS]

    def clean_deltas(self) -> list[float]:
        parts = self.cleaned_data[DELTAS].replace(",", " ").split()
        try:
            return validate_deltas([float(part) for part in parts])
        except BadParameters as refused:
            raise forms.ValidationError(refused.errors[DELTAS]) from None
        except ValueError:
            raise forms.ValidationError("Enter numbers with commas between them, such as 0.01, 0.001.") from None


def get_analysis_run(request: HttpRequest, pk: int, number: int) -> AnalysisRun:
    study = get_study(request.user, Action.VIEW, pk=pk)
    return get_object_or_404(study.analyses.select_related("by"), number=number)


@login_required
@require_GET
def analysis_list_page(request, pk) -> HttpResponse:
    """List the analyses of a study, newest first, with the form that starts one."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    origins = default_origins(study)
    assignments = Assignment.objects.filter(study=study)
    if not select(Use.RESULTS, assignments, origins).exists() and select(Use.RESULTS, assignments, ["robot"]).exists():
        origins = ["robot"]  # robots alone have answered, and the report is marked as simulated
    return _render_list(request, study, ReportForm(study, initial={"origins": origins}))


def _render_list(request, study: Study, form: ReportForm, status: int = 200):
    may_run = is_request_allowed(request, Action.ANALYSE, study.pk)
    runs = study.analyses.defer("result").select_related("by")
    submitted = select(Use.RESULTS, Assignment.objects.filter(study=study))
    submitted_by_origin = dict(submitted.values_list("origin").annotate(n=Count("pk")))
    context = {
        "study": study,
        "runs": runs,
        "samples": study.coding_samples.all() if study.launched_at else (),
        "form": form,
        "origins": [(box, submitted_by_origin.get(box.data["value"], 0)) for box in form["origins"]],
        "may_run": may_run,
        **job_context(request, study, "analyse"),
    }
    return render_study_page(request, "report/list.html", study, context, status)


@login_required
@require_GET
def share_page(request, pk) -> HttpResponse:
    """Show what members can share: links to reports, the archive, exports and the design."""
    return render_share(request, get_study(request.user, Action.VIEW, pk=pk))


def linkable_numbers(study: Study) -> list[int]:
    """Return the numbers of the newest analyses that a link can show. Whether outcomes are hidden now is checked when it is made."""
    shown = study.analyses.filter(result__outcomes__is_hidden=False).order_by("-number")
    return list(shown.values_list("number", flat=True)[:SHARED_REPORTS])


def render_share(request: HttpRequest, study: Study, form: ReportLinkForm | None = None, status: int = 200):
    """Return the page of what can be shared. ``form``: the form for a link that was not made."""
    runs = [
        (run, f"{settings.SITE_URL}{reverse('analysis', args=[study.pk, run.number])}")
        for run in study.analyses.only("number", "at").order_by("-number")[:SHARED_REPORTS]
    ]
    design = study.designs.defer("canonical").order_by("version").last()
    assignments = Assignment.objects.filter(study=study)
    has_robots = select(Use.RECORD, assignments, ["robot"]).exists()
    is_played = has_robots and not select(Use.RECORD, assignments, COUNTED_ORIGINS).exists()
    context = {"study": study, "runs": runs, "design": design, "is_blind": study.is_blind, "is_played": is_played}
    context["may_read_draw"] = may_read_draw(request.user, study)
    # A group says what a row is: in the labels of the files, a phone would cut it.
    context["files"] = [
        (f"{name}: {table.about.partition('.')[0]}", [(f"{name} {form}", f"{name}, {form}") for form in table.formats])
        for name, table in TABLES.items()
        if not table.is_streamed
        and not table.find_problem(study)
        and (context["may_read_draw"] or not table.shows_draw)
    ]
    context["may_make_files"] = is_request_allowed(request, Action.ANALYSE, study.pk)
    context["token"] = uuid.uuid4().hex
    if is_request_allowed(request, Action.SHARE, study.pk):
        links = ReportLink.objects.filter(run__study=study).select_related("run", "by").defer("run__result")
        numbers = linkable_numbers(study)
        context |= {
            "links": links,
            "form": form or (ReportLinkForm(numbers) if numbers and not study.is_blind else None),
        }
    return render_study_page(request, "report/share.html", study, context, status)


@login_required
@require_POST
def start_export(request, pk) -> HttpResponse:
    """Start the job that writes a file for another tool. A form that is sent twice starts one job."""
    study = get_study(request.user, Action.ANALYSE, pk=pk)
    table, _, form = request.POST.get("file", "").partition(" ")
    if table not in TABLES:
        raise Http404
    token = token_of_form(study, "export", request.POST)
    try:
        job = request_export(study, by=request.user, table=table, format=form, request_token=token)
    except (ActionRefused, FieldsRefused) as refused:
        messages.error(request, str(refused))
        return redirect("share", pk=study.pk)
    return redirect("admin:studies_job_page", code=job.code)


@login_required
@require_POST
def start_analysis(request, pk) -> HttpResponse:
    """Start an analysis. A form that is sent twice starts one job."""
    study = get_study(request.user, Action.ANALYSE, pk=pk)
    form = ReportForm(study, request.POST)
    if not form.is_valid():
        return _render_list(request, study, form, status=400)
    token = token_of_form(study, "analyse", request.POST)
    job = request_analysis(study, request.user, form.cleaned_data, token)
    return redirect("admin:studies_job_page", code=job.code)


@login_required
@require_POST
def start_pdf(request, pk, number) -> HttpResponse:
    """Return the PDF of a report if there is one. Otherwise show the job that makes it, and start one if no job makes it."""
    run = get_analysis_run(request, pk, number)
    try:
        job = newest_pdf_job(run) or request_pdf(run, request.user)
    except ActionRefused as refused:
        messages.error(request, str(refused))
        return redirect("analysis", pk=pk, number=number)
    if job.ended_at:
        return redirect("api-analysis-pdf", code=run.study.code, number=number)
    return redirect("admin:studies_job_page", code=job.code)


@login_required
@require_GET
def report_page(request, pk, number) -> HttpResponse:
    """Show one analysis: conclusions, comparisons, exclusions and uncertainty, then details."""
    run = get_analysis_run(request, pk, number)
    context = {
        **run_context(run),
        "may_run": is_request_allowed(request, Action.ANALYSE, pk),
        "token": uuid.uuid4().hex,
    }
    return render_study_page(request, "report/report.html", run.study, context)


class InventedForm(forms.Form):
    """How good the systems are for the robots of a report with invented answers."""

    truth = forms.ChoiceField(
        choices=[
            ("difference", "Differences: the system whose name comes first is the worst, and the last one the best"),
            ("equal", "No difference: all systems are equally good"),
        ],
        initial="difference",
        required=False,
        widget=forms.RadioSelect,
        label="What should the robots find?",
    )


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invented_report_page(request, pk) -> HttpResponse:
    """Show a draft's last report with invented answers, or what it is and what it needs. POST starts the job that makes one."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    if not study.is_draft:
        words = 'The report with invented answers was of the draft. <a href="{}">The reports of the launched study</a>'
        messages.info(request, format_html(words, reverse("analyses", args=[pk])))
        return redirect("admin:studies_study_change", pk)
    last = invented_report_jobs(study).defer("result").first()
    done = invented_report_jobs(study).filter(state=Job.State.DONE, result__isnull=False).first()
    form, missing = InventedForm(request.POST or None), []
    if "last" in request.POST and done and done.arguments["version"] == study.version:
        return redirect(request.path)  # the page Try it asks for the report, and there is one of this draft
    if request.method == "POST" and form.is_valid():
        token = token_of_form(study, INVENTED, request.POST)
        are_equal = form.cleaned_data["truth"] == "equal"
        try:
            job = request_invented_report(study, request.user, are_systems_equal=are_equal, request_token=token)
        except NotReady as refused:
            missing = problems_with_correction_urls(study, refused.problems)
        else:
            return redirect("admin:studies_job_page", code=job.code)
    invented = (done.result or {}) if done else {}
    if svg := invented.get("figures", {}).get(request.GET.get("figure")):
        return HttpResponse(svg, content_type="image/svg+xml; charset=utf-8")
    context = {
        "study": study,
        "form": form,
        "missing": missing,
        **job_context(request, study, INVENTED),
        "failed": last if last and last.state == Job.State.FAILED else None,
    }
    if done and invented and not missing and not form.errors:
        robots = invented["robots"]
        context |= report_context(invented["result"]) | {
            "invented": invented,
            "items": items_context(study, invented["result"]),
            "strengths": sorted(robots["strengths"].items(), key=lambda named: named[1]),
            "percent_for_first": round(100 * robots["acquiescent"]),
            "is_changed": done.arguments["version"] != study.version,
            "job": done,
        }
        return render_new_study_page(request, "report/report.html", study, "Try it", context)
    status = 422 if missing else 400 if form.errors else 200
    template = "report/invented.html"
    return render_new_study_page(request, template, study, "Try it", context, status)


@login_required
@require_GET
def result_json(request, pk, number) -> HttpResponse:
    """Return the full result as JSON, as it was stored and hashed."""
    run = get_analysis_run(request, pk, number)
    text = json.dumps(run.result, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return file_response(text, "application/json", f"analysis-{run.number}.json")


@login_required
@require_GET
def answer_file(request, pk, number, file_format) -> HttpResponse:
    """Return the answer of a report with its methods as text, Markdown or LaTeX."""
    run = get_analysis_run(request, pk, number)
    if file_format not in FORMATS:
        raise Http404
    text = render_answer(run.result, file_format)
    return file_response(text, FORMATS[file_format], f"analysis-{run.number}.{file_format}")


@login_required
@require_GET
def table_file(request, pk, number, name, file_format) -> HttpResponse:
    """Return one table as CSV, LaTeX, Markdown, text or JSON."""
    run = get_analysis_run(request, pk, number)
    stored_table = next((table for table in run.result.get("tables", []) if table["name"] == name), None)
    if stored_table is None:
        raise Http404
    mark = simulated_words(run.result["parameters"]["origins"]).replace(" ", "-")
    file = f"{mark and f'{mark}-'}analysis-{run.number}-{name}.{file_format}"
    return table_response(stored_table, file_format, file)


@login_required
@require_GET
def figure_file(request, pk, number, name, file_format) -> HttpResponse:
    """Return one figure as SVG or PDF."""
    run = get_analysis_run(request, pk, number)
    stored_figure = get_object_or_404(Figure, run=run, name=name)
    if file_format == "svg":
        response = HttpResponse(stored_figure.svg, content_type="image/svg+xml; charset=utf-8")
        response["Cache-Control"] = "private, max-age=31536000, immutable"
        return response
    if file_format == "pdf":
        return file_response(bytes(stored_figure.pdf), "application/pdf", f"analysis-{run.number}-{name}.pdf")
    raise Http404


def table_response(table: layouts.Table, file_format: str, file: str) -> HttpResponse:
    """Return a stored table as a file of this name. Raise Http404 for an unknown format."""
    match file_format:
        case "csv":
            return file_response(layouts.csv_text(table), "text/csv", file)
        case "tex":
            return file_response(render_latex_table(table), "text/x-tex", file)
        case "md" | "txt":
            return file_response(render_table(table, file_format), FORMATS[file_format], file)
        case "json":
            return file_response(
                json.dumps(table, ensure_ascii=False, allow_nan=False, indent=1), "application/json", file
            )
    raise Http404


def file_response(content: str | bytes, kind: str, name: str) -> HttpResponse:
    kind = kind if isinstance(content, bytes) else f"{kind}; charset=utf-8"
    return HttpResponse(content, content_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})
