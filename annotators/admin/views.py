"""The page for importing a file of answers given elsewhere. Preview and confirmation are shared with other imports."""

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from annotators.imports import Options, reason_answers_not_importable
from studies.access import Action, get_study
from studies.admin.views import render_page
from studies.imports.tables import run
from studies.services import lifecycle
from studies.stimuli.rows import ACCEPTED


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
