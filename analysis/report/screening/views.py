"""The page of a study's annotators. It shows the last stored screening, computes nothing and never imports numpy."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from analysis.exclusions.screening import probability_in_words
from analysis.report.build import default_origins
from analysis.report.page_jobs import job_context, token_of_form
from annotators.counting import Use, select
from studies.access import Action, get_study, is_allowed
from studies.admin.study_page import render_study_page
from studies.models import Item, Study

from .run import KIND, SORT_KEYS, AnnotatorRow, add_other_studies, read_screened_study, request_screening, sort_rows

PAGE_SIZE = 50
ORIGINS = ("live", "imported", "robot")
DEFAULT_SORT = "-probability"
# How many other studies a row names before it counts the rest.
MAX_OTHERS = 3
# The picture of a row: the line from 0 to 1, in its own units.
PICTURE_LEFT, PICTURE_WIDTH = 6, 88
# These depend on answers to live items, so they are left out while outcomes are hidden.
OF_OUTCOMES = ("agreement", "errors", "competence", "severity")
# Headings, and whether the first click sorts downwards.
COLUMNS = {
    "annotator": ("Annotator", False),
    "probability": ("Probability of being inattentive", True),
    "flagged": ("Model", True),
    "failed": ("Simple rule", True),
    "barred": ("Further batches", True),
    "positive": ("Positive, right", False),
    "negative": ("Negative, right", False),
    "uncounted": ("Not counted", True),
    "agreement": ("Agreement", False),
    "errors": ("Errors", True),
    "competence": ("Competence", False),
    "severity": ("Severity", False),
    "minutes": ("Minutes", False),
    "labels": ("Answers", True),
}


def read_origin(request: HttpRequest, study: Study) -> str:
    """Return whose annotators to show: the parameter ``origin``, or the study's usual one. Raise Http404 for another value."""
    origin = request.GET.get("origin") or default_origins(study)[0]
    if origin not in ORIGINS:
        raise Http404("There are no annotators of this origin.")
    return origin


@login_required
@require_GET
def annotators_page(request, pk) -> HttpResponse:
    """Show one row per annotator, sorted by ``?sort=``, with the model in words and its boundary table."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    origin = read_origin(request, study)
    sort = request.GET.get("sort", DEFAULT_SORT)
    if sort.removeprefix("-") not in SORT_KEYS:
        raise Http404("The page cannot be sorted by this.")
    screened = read_screened_study(study, origin)
    page = Paginator(sort_rows(screened.rows, sort), PAGE_SIZE).get_page(request.GET.get("page"))
    rows = list(page.object_list)
    add_other_studies(study, rows, request.user)
    shown = [name for name in COLUMNS if name not in OF_OUTCOMES or not screened.is_hidden]
    cutoff = screened.screening.rule_settings["model"]["cutoff"] if screened.screening else None
    by_origin = select(Use.RESULTS, study.assignments.all(), ORIGINS)
    present = set(by_origin.order_by().values_list("origin", flat=True).distinct())
    context = {
        "study": study,
        "screened": screened,
        "screening": screened.screening,
        "page": page,
        "rows": [_row_context(row, cutoff) for row in rows],
        "n_flagged": sum(row.is_flagged is True for row in screened.rows),
        "n_failed": sum(row.is_failed is True for row in screened.rows),
        "columns": [_column_context(name, sort) for name in shown],
        "sort": sort,
        "origin": origin,
        "origins": [choice for choice in ORIGINS if choice in present or choice == origin],
        "has_test_questions": Item.objects.filter(study=study, kind=Item.Kind.TEST).exists(),
        "may_decide": is_allowed(request.user, Action.MANAGE_ASSIGNMENTS, study),
        "may_run": is_allowed(request.user, Action.ANALYSE, study) and bool(study.launched_at),
        **job_context(request, study, KIND),
    }
    return render_study_page(request, "report/annotators.html", study, context)


def _column_context(name: str, sort: str) -> dict[str, Any]:
    label, is_downwards = COLUMNS[name]
    is_sorted = sort.removeprefix("-") == name
    if is_sorted:
        is_downwards = not sort.startswith("-")
    direction = ("descending" if sort.startswith("-") else "ascending") if is_sorted else ""
    return {"label": label, "sort": f"-{name}" if is_downwards else name, "direction": direction}


def _row_context(row: AnnotatorRow, cutoff: float | None) -> dict[str, Any]:
    def across(value: float) -> float:
        return round(PICTURE_LEFT + PICTURE_WIDTH * value, 1)

    named = [{"study": other, "url": reverse("study_annotators", args=[other.pk])} for other in row.others[:MAX_OTHERS]]
    return {
        "row": row,
        "probability": None if row.probability is None else probability_in_words(row.probability),
        "posteriors": [None if chance is None else probability_in_words(chance) for chance in row.posteriors],
        "dots": [None if chance is None else across(chance) for chance in row.posteriors],
        "cutoff": None if cutoff is None else across(cutoff),
        "others": named,
        "n_more": len(row.others) - len(named),
    }


@login_required
@require_POST
def start_screening(request, pk) -> HttpResponse:
    """Start the job. A form that is sent twice starts one job."""
    study = get_study(request.user, Action.ANALYSE, pk=pk)
    origin = request.POST.get("origin", "")
    if origin not in ORIGINS or not study.launched_at:
        raise Http404("There are no annotators of this origin.")
    request_screening(study, request.user, origin, token_of_form(study, "screen", request.POST))
    return redirect(f"{reverse('study_annotators', args=[study.pk])}?origin={origin}")
