"""The page of the words of a study's pages: which language they have, who translated them, and a file of them to download and to bring."""

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_http_methods

from studies.design.translations import words_file, words_file_name, words_of
from studies.language.catalogues import language_name
from studies.services.lifecycle import ActionRefused, FileRefused
from studies.services.translation_files import remove_file, use_file

from ..access import Action, get_study
from ..models import Study
from . import study_page, workflow
from .forms import add_file_problems
from .permissions import is_request_allowed


class WordsFileForm(forms.Form):
    """A PO file of the words around a study's texts."""

    file = forms.FileField(
        label="file", help_text="A PO file, translated.", widget=forms.FileInput(attrs={"accept": ".po"})
    )


@require_http_methods(["GET", "HEAD", "POST"])
def words_page(request, pk) -> HttpResponse:
    """Show which words a study's pages have; with ``?file``, send them. POST gives a draft a file of words, or removes it."""
    study = get_study(request.user, Action.EDIT if request.method == "POST" else Action.VIEW, pk=pk)
    if request.method == "GET" and "file" in request.GET:
        name = words_file_name(study)
        return HttpResponse(
            words_file(study),
            content_type="text/x-gettext-translation; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )
    form = None
    if request.method == "POST" or (study.is_draft and is_request_allowed(request, Action.EDIT, study.pk)):
        form = WordsFileForm(*([request.POST, request.FILES] if request.method == "POST" else []))
    if form and form.is_bound and _is_changed(request, study, form):
        return HttpResponseRedirect(request.path)
    words = words_of(study)
    context = {
        "title": "Words of the pages",
        "here": "Design",
        "words": words,
        "names": {"study": language_name(study.language), "words": language_name(words.language)},
        "brought_at": study.translation.at if study.translation else None,
        "translated": words.messages - words.untranslated,
        "is_english": words.study_language.lower().startswith("en"),
        "preview_url": workflow.reverse_or_empty("admin:annotators_preview", study.pk),
        "form": form,
    }
    status = 422 if form and form.is_bound else 200
    return study_page.render_study_page(request, "admin/studies/words.html", study, context, status=status)


def _is_changed(request, study: Study, form: WordsFileForm) -> bool:
    try:
        if "remove" in request.POST:
            remove_file(study, request.user)
            messages.success(request, "The file is removed. The pages have the words that come with heval.")
            return True
        if not form.is_valid():
            return False
        words = words_of(use_file(study, form.cleaned_data["file"].read(), request.user))
    except FileRefused as refused:
        add_file_problems(form, refused.problems.first, refused.problems.count)
        return False
    except ActionRefused as refused:
        form.add_error(None, str(refused))
        return False
    translated = words.messages - words.untranslated
    messages.success(request, f"The pages have the words of the file: {translated} of {words.messages} messages.")
    return True
