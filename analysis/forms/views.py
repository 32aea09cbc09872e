"""The page "Report it": questions for a person, deviations from the design, and forms to take away."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods

from analysis.report.page import table_context
from studies.access import Action, get_study
from studies.admin.permissions import is_request_allowed
from studies.admin.study_page import render_study_page
from studies.services.lifecycle import FieldsRefused

from .answers import MAX_ANSWER, save_answers
from .facts import Facts
from .questions import FORMS
from .render import MEDIA_TYPES, fact_words, facts_with_deviations, item_facts, render_form


def answer_form(facts: Facts, data=None) -> forms.Form:
    """Return a form with a field for each question that only a person can answer."""
    form = forms.Form(data)
    for question in facts.questions:
        options = " · ".join(f"{number} {words}" for number, words in enumerate(question.options, 1))
        form.fields[question.key] = forms.CharField(
            label=question.label,
            required=False,
            max_length=MAX_ANSWER,
            initial=facts.answers.get(question.key, ""),
            help_text=options and f"{options}. Write the numbers, then a colon and what you add.",
            widget=forms.Textarea(attrs={"rows": 1}),
        )
    return form


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def forms_page(request: HttpRequest, pk: int) -> HttpResponse:
    study = get_study(request.user, Action.ANALYSE if request.method == "POST" else Action.VIEW, pk=pk)
    facts, deviations = facts_with_deviations(study)
    form = answer_form(facts, request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            changed = save_answers(study, form.cleaned_data, by=request.user)
        except FieldsRefused as refused:
            messages.error(request, str(refused))
        else:
            messages.success(request, f"Stored: {len(changed)} changed." if changed else "Nothing changed.")
        return redirect("report_forms", pk=study.pk)
    shown = [
        (
            one,
            [
                (item, [(about, fact_words(key, fact), fact) for about, key, fact in item_facts(item, facts)])
                for item in one.items
            ],
        )
        for one in FORMS
    ]
    context = {
        "study": study,
        "run": facts.run,
        "form": form,
        "open_fields": [field for field in form if facts.by_key[field.name].is_open],
        "answered_fields": [field for field in form if not facts.by_key[field.name].is_open],
        "may_answer": is_request_allowed(request, Action.ANALYSE, study.pk),
        "deviations": table_context(deviations),
        "forms": shown,
    }
    return render_study_page(request, "report/forms.html", study, context, status=400 if form.errors else 200)


@login_required
@require_GET
def form_file(request: HttpRequest, pk: int, form: str, extension: str) -> HttpResponse:
    """Return a form as text, Markdown, LaTeX or JSON, or the BibTeX entries."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    text = render_form(study, form, extension)
    if text is None:
        raise Http404
    headers = {"Content-Disposition": f'attachment; filename="{form}-{str(study.code)[:8]}.{extension}"'}
    return HttpResponse(text, content_type=f"{MEDIA_TYPES[extension]}; charset=utf-8", headers=headers)
