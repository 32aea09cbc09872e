"""Pages outside the admin's classes: importing answers given elsewhere, and trying a new study.

Preview and confirmation of an import are shared with other imports.
"""

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotators.imports import Options, reason_answers_not_importable
from annotators.models import Assignment
from annotators.places.batch_plan import start_test_run
from studies.access import Action, get_study
from studies.admin import study_page, workflow
from studies.admin.views import render_page
from studies.design.checklist import unfilled_text_problems
from studies.imports.tables import run
from studies.services import lifecycle
from studies.stimuli.rows import ACCEPTED

from .launch import local_url, qr_code


class AnswersForm(forms.Form):
    file = forms.FileField(
        label="File",
        help_text="A table (CSV, JSON or a workbook): a row for each answer, for each output, or for each annotator.",
        widget=forms.FileInput(attrs={"accept": ACCEPTED}),
    )


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def answers_upload_page(request, pk) -> HttpResponse:
    """Choose a file of answers. The next page shows what each column is."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    if obstacle := reason_answers_not_importable(study):
        return render_page(request, "import_frozen", study, 409 if request.method == "POST" else 200, fault=obstacle)
    form = AnswersForm(request.POST, request.FILES) if request.method == "POST" else AnswersForm()
    if form.is_bound and form.is_valid():
        file, options = form.cleaned_data["file"], Options(proposes_columns=True)
        try:
            upload = run.store_upload(
                file.chunks(),
                file.name,
                study_id=study.pk,
                user_id=request.user.pk,
                options=options.as_json(),
                kind="answers",
            )
            run.process_or_queue_upload(study, upload, request.user, is_confirmed=False)
        except lifecycle.ActionRefused as refused:
            form.add_error("file", str(refused))
        else:
            return HttpResponseRedirect(reverse("import_confirm", args=[study.pk, upload.token]))
    questions = [
        (section.position, question.key, question.text)
        for section in study.sections.prefetch_related("questions")
        for question in section.questions.all()
    ]
    return render_page(request, "import_answers", study, 400 if form.errors else 200, form=form, questions=questions)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_study_try_page(request, pk) -> HttpResponse:
    """Let a researcher take part in a draft, here or on a phone. POST starts a test run; its address needs no account."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    if not study.is_draft:
        return HttpResponseRedirect(reverse("admin:studies_study_change", args=[pk]))
    refusal = ""
    if request.method == "POST":
        try:
            if not study.sections.exists():
                raise lifecycle.ActionRefused("The study has no question. Choose one first.")
            start_test_run(study, request.user)
            return HttpResponseRedirect(f"{request.path}#run")
        except (lifecycle.ActionRefused, ValueError, TypeError) as refused:
            refusal = f"A test run is not possible yet. {refused}"
    test_runs = study.assignments.filter(origin=Assignment.Origin.TEST, source=None)
    newest = test_runs.filter(submitted_at=None, released_at=None).order_by("-pk").first()
    address = f"{settings.SITE_URL}/p/{newest.code}/" if newest else ""
    context = {
        "refusal": refusal,
        "run": newest,
        "address": address,
        "qr": qr_code(address) if newest else None,
        "is_local": bool(local_url()),
        "unfilled": list(unfilled_text_problems(study)),
        "n_arms": study.arms.count(),
        "invented": workflow.reverse_or_empty("new_study_invented", pk),
    }
    return study_page.render_new_study_page(
        request, "admin/studies/new/try.html", study, "Try it", context, 422 if refusal else 200
    )
