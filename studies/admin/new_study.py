"""The first page of a new study: its title and its file. It makes the draft that the other pages fill."""

from pathlib import Path

from django import forms
from django.contrib.auth.decorators import login_required
from django.contrib.staticfiles import finders
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from studies.access import Action, check_permission_or_404, get_study
from studies.imports.tables import run
from studies.imports.tables.columns import Options
from studies.models import Output, Study, System
from studies.services import drafts
from studies.services.lifecycle import ActionRefused

from .forms import CleanTextMixin
from .study_page import render_new_study_page
from .views import FileForm, study_page_url

EXAMPLE_TEXTS, EXAMPLE_AUTHORS = "docs/first-study.jsonl", ("human",)
# The buttons that need no file, with the title of a study that gets none.
EXAMPLE, EMPTY = "example", "empty"
WITHOUT_FILE = {EXAMPLE: "Example: endings of fables", EMPTY: "New study"}


class NewStudyForm(CleanTextMixin, FileForm):
    title = forms.CharField(
        max_length=Study._meta.get_field("title").max_length,
        help_text="For you and your colleagues. Annotators do not see it.",
    )
    field_order = ("title", "file", "pasted")


class TitleForm(CleanTextMixin, forms.Form):
    title = forms.CharField(max_length=Study._meta.get_field("title").max_length, required=False)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_study_page(request) -> HttpResponse:
    """Show the form of a new study. POST makes the draft and reads its file, takes the example texts, or leaves it empty."""
    check_permission_or_404(request.user, Action.CREATE)
    if request.method != "POST":
        return _render_first_page(request, NewStudyForm())
    pressed = next((name for name in WITHOUT_FILE if name in request.POST), "")
    form = TitleForm(request.POST) if pressed else NewStudyForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            # A file that is refused at once leaves no draft.
            with transaction.atomic():
                title = form.cleaned_data["title"] or WITHOUT_FILE[pressed]
                study = Study(title=title, guide=None if pressed == EMPTY else {})
                drafts.create_draft_with_default_arm(study, request.user)
                if pressed == EMPTY:
                    return HttpResponseRedirect(study_page_url(study))
                if isinstance(form, TitleForm):
                    _import_example_texts(study, request.user)
                    return HttpResponseRedirect(reverse("new_study_question", args=[study.pk]))
                upload = form.store_and_read(study, request.user, is_guided=True)
        except ActionRefused as refused:
            form.add_error("title" if pressed else "file", str(refused))
        except ValidationError as refused:
            form.add_error("title", refused.messages)
        else:
            return HttpResponseRedirect(reverse("import_confirm", args=[study.pk, upload.token]))
    return _render_first_page(request, form, 400)


def _render_first_page(request, form, status: int = 200) -> HttpResponse:
    if isinstance(form, TitleForm):
        refused, form = form, NewStudyForm(initial={"title": form.data.get("title", "")})
        form.full_clean()
        for name, messages in refused.errors.items():
            form.errors[name] = messages
    return render_new_study_page(request, "admin/studies/new/study.html", None, "Your file", {"form": form}, status)


def _import_example_texts(study: Study, by) -> None:
    path = Path(str(finders.find(EXAMPLE_TEXTS)))
    options = Options(creates_systems=True, human_systems=EXAMPLE_AUTHORS)
    run.import_stimuli_file(study, path, by=by, filename=path.name, options=options)


def find_draft_or_redirect(request, pk: int) -> tuple[Study, HttpResponse | None]:
    """Return the study for a page that leads to a launch, and where to go if it is launched already."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    return study, None if study.is_draft else HttpResponseRedirect(study_page_url(study))


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def file_page(request, pk: int) -> HttpResponse:
    """Show what a draft holds. POST reads another file, or goes on and stores which systems are people."""
    study, elsewhere = find_draft_or_redirect(request, pk)
    if elsewhere:
        return elsewhere
    is_about_authors = request.method == "POST" and "authors" in request.POST
    form = FileForm(request.POST, request.FILES) if request.method == "POST" and not is_about_authors else FileForm()
    if is_about_authors:
        _set_human_authors(study, request.POST.getlist("human"), request.user)
        return HttpResponseRedirect(reverse("new_study_question", args=[study.pk]))
    if form.is_bound and form.is_valid():
        try:
            upload = form.store_and_read(study, request.user, is_guided=True)
        except ActionRefused as refused:
            form.add_error("file", str(refused))
        else:
            return HttpResponseRedirect(reverse("import_confirm", args=[study.pk, upload.token]))
    context = {
        "form": form,
        "n_prompts": study.prompts.count(),
        "n_outputs": Output.objects.filter(system__study=study).count(),
        "systems": study.systems.judged().annotate(n=Count("outputs")).order_by("name"),
    }
    status = 400 if form.errors else 200
    return render_new_study_page(request, "admin/studies/new/file.html", study, "Your file", context, status)


def _set_human_authors(study: Study, ids: list[str], by) -> None:
    """Mark exactly these systems as human authors."""
    with drafts.locked_draft(study.pk, by) as draft:
        wrong = [system for system in draft.systems.judged() if system.is_human != (str(system.pk) in ids)]
        for system in wrong:
            system.is_human = not system.is_human
        System.objects.bulk_update(wrong, ["is_human"])
        if wrong:
            drafts.record_edit_and_raise_version(draft, by, human_authors=sorted(system.name for system in wrong))
