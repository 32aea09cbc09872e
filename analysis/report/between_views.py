"""Pages of studies beside each other: the list with the form, one stored comparison, and its files."""

import json
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_http_methods

from analysis.models import StudiesComparison
from studies.access import Action, check_permission_or_404, get_study, is_allowed
from studies.admin.study_page import render_study_page
from studies.services.lifecycle import ActionRefused, FieldsRefused

from .between_studies import KIND, offered_parts, request_comparison, visible_comparisons
from .page import figure_context, table_context
from .page_jobs import job_context, token_of_form
from .views import COUNTABLE_ORIGINS, file_response, table_response

HERE = "Analyse"


class ComparisonForm(forms.Form):
    """Which studies and links are compared. ``comparisons`` are named only if the studies compare different systems."""

    comparisons = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Comparisons, if the systems differ",
        help_text="One line for each ticked study, in their order: the name of its comparison, such as “GPT-2 > human” and “GPT-3 > human”. "
        "Empty: all comparisons that the studies share.",
    )
    origins = forms.MultipleChoiceField(
        choices=COUNTABLE_ORIGINS,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Answers of",
        help_text="Nothing ticked: live answers, or imported ones if a study has no others.",
    )
    level = forms.FloatField(min_value=0.5, max_value=0.999, initial=0.95, label="Confidence level")

    def __init__(self, parts, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["studies"] = forms.MultipleChoiceField(
            choices=[(part.code, part.name) for part in parts],
            widget=forms.CheckboxSelectMultiple,
            label="Studies or links",
            help_text="Tick two or more. They must be closed and ask the same question.",
            error_messages={"required": "Nothing is ticked. Tick two studies or links, or more."},
        )
        self.order_fields(["studies"])

    def parameters(self) -> dict[str, Any]:
        sent = self.cleaned_data
        lines = [line.strip() for line in sent["comparisons"].splitlines() if line.strip()]
        found = {"studies": sent["studies"], "comparisons": lines, "level": sent["level"]}
        return found | ({"origins": sent["origins"]} if sent["origins"] else {})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def studies_comparisons_page(request: HttpRequest, pk: int) -> HttpResponse:
    """List the comparisons of a study with others, newest first, with the form that starts one."""
    study, status = get_study(request.user, Action.VIEW, pk=pk), 200
    if request.method == "POST":
        check_permission_or_404(request.user, Action.ANALYSE, study)
    may_run = is_allowed(request.user, Action.ANALYSE, study)
    parts = offered_parts(study, request.user) if may_run else []
    form = ComparisonForm(parts, request.POST if request.method == "POST" else None)
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                token = token_of_form(study, KIND, request.POST)
                job = request_comparison(study, request.user, form.parameters(), token)
            except FieldsRefused as refused:
                for name, text in refused.errors.items():
                    form.add_error(name, text)
            except (ActionRefused, PermissionDenied) as refused:
                form.add_error(None, str(refused))
            else:
                return redirect("admin:studies_job_page", code=job.code)
    rows = visible_comparisons(study, request.user).defer("result", "figure_svg", "figure_pdf")
    context = {"rows": rows, "form": form, "n_parts": len(parts), "may_run": may_run, "here": HERE}
    context |= job_context(request, study, KIND)
    return render_study_page(request, "report/studies_comparisons.html", study, context, status)


def _get_comparison(request: HttpRequest, pk: int, number: int) -> StudiesComparison:
    study = get_study(request.user, Action.VIEW, pk=pk)
    return get_object_or_404(visible_comparisons(study, request.user), number=number)


@login_required
@require_GET
def studies_comparison_page(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Show one comparison: sentences, the figure and the tables, as the job stored them."""
    row = _get_comparison(request, pk, number)
    context = {
        "row": row,
        "result": row.result,
        "tables": [table_context(table) for table in row.result["tables"]],
        "figures": [figure_context(figure) for figure in row.result["figures"]],
        "here": HERE,
    }
    return render_study_page(request, "report/studies_comparison.html", row.study, context)


@login_required
@require_GET
def studies_comparison_file(request: HttpRequest, pk: int, number: int, name: str, file_format: str) -> HttpResponse:
    """Return a table as CSV, LaTeX, Markdown, text or JSON, the figure as SVG or PDF, or the whole result as JSON."""
    row = _get_comparison(request, pk, number)
    file = f"studies-{row.number}-{name}.{file_format}"
    if (name, file_format) == ("result", "json"):
        text = json.dumps(row.result, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return file_response(text, "application/json", file)
    if (name, file_format) == ("studies", "svg"):
        return HttpResponse(row.figure_svg, content_type="image/svg+xml; charset=utf-8")
    if (name, file_format) == ("studies", "pdf"):
        return file_response(bytes(row.figure_pdf), "application/pdf", file)
    table = next((table for table in row.result["tables"] if table["name"] == name), None)
    if table is None:
        raise Http404
    return table_response(table, file_format, file)
