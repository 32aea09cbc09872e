"""The common frame of a study's pages, with the study's tabs on top, and the preview of Markdown fields."""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import reverse

from studies.stimuli.markdown import render_markdown

from ..access import Action, is_researcher
from ..models import Study
from . import workflow
from .permissions import is_request_allowed


def render_study_page(request, template: str, study: Study, context: dict, status: int = 200) -> TemplateResponse:
    """Return a page of one study in the frame of the study. ``here`` in the context is the tab of a page that no tab has."""
    base = {
        **admin.site.each_context(request),
        "study": study,
        "original": study,
        "opts": Study._meta,
        "tabs": workflow.study_tabs(request, study, context.get("here", "")),
    }
    return TemplateResponse(request, template, base | context, status=status)


# The pages that lead to a launched study, in their order: (step, name of the URL). Other apps serve some of them.
NEW_STUDY_STEPS = (
    ("Your file", "new_study_file"),
    ("Question", "new_study_question"),
    ("People", "new_study_people"),
    ("Texts", "new_study_texts"),
    ("Try it", "new_study_try"),
    ("Launch", "study_launch"),
)


def render_new_study_page(
    request, template: str, study: Study | None, step: str, context: dict, status: int = 200
) -> TemplateResponse:
    """Return one of the pages that lead to a launched study. ``step`` is its name; without a study it is the first page."""
    names = [name for name, _ in NEW_STUDY_STEPS]
    here = names.index(step)
    guide = [
        {
            "name": name,
            "number": number + 1,
            "url": workflow.reverse_or_empty(url, study.pk) if study else "",
            "is_here": number == here,
        }
        for number, (name, url) in enumerate(NEW_STUDY_STEPS)
    ]
    base = {
        **admin.site.each_context(request),
        "study": study,
        "original": study,
        "opts": Study._meta,
        "title": step,
        "tabs": workflow.study_tabs(request, study, "Design") if study else [],
        "guide": guide,
        "previous": guide[here - 1] if here else None,
        "following": guide[here + 1] if here + 1 < len(guide) else None,
    }
    return TemplateResponse(request, template, base | context, status=status)


def next_new_study_url(request, study: Study, step: str) -> str:
    """Return the address of the page after ``step``, or of the study's own page after the last step.

    Somebody who came to correct what the launch needs goes back to the launch.
    """
    if workflow.BACK_TO_LAUNCH in request.GET:
        step = NEW_STUDY_STEPS[-2][0]
    names = [name for name, _ in NEW_STUDY_STEPS]
    following = NEW_STUDY_STEPS[names.index(step) + 1 :]
    return (workflow.reverse_or_empty(following[0][1], study.pk) if following else "") or reverse(
        "admin:studies_study_change", args=[study.pk]
    )


def url_beside_new_study(request, study: Study) -> str:
    """Return where a page that *Try it* leads to leads back: to that step of a draft of these pages, or to the study's own page."""
    is_guided = study.guide is not None and study.is_draft and is_request_allowed(request, Action.EDIT, study.pk)
    own = reverse("admin:studies_study_change", args=[study.pk])
    return (workflow.reverse_or_empty("new_study_try", study.pk) if is_guided else "") or own


def markdown_preview_page(request) -> HttpResponse:
    """Show the Markdown of one field as annotators will see it. Store nothing."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not is_researcher(request.user):
        raise PermissionDenied
    name = request.POST.get("_preview_field", "")[:200]
    html = render_markdown(request.POST.get(name, "").replace("\x00", ""))
    return TemplateResponse(
        request, "admin/studies/preview_text.html", {"html": html, "title": "As annotators will read it"}
    )
