"""The common frame of a study's pages, with the study's steps on top, and the preview of Markdown fields."""

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse

from studies.stimuli.markdown import render_markdown

from ..access import is_researcher
from ..models import Study
from . import workflow


def render_study_page(request, site, template: str, study: Study, context: dict, status: int = 200) -> TemplateResponse:
    """Return a page of one study, with the study's steps on top."""
    base = {
        **site.each_context(request),
        "study": study,
        "original": study,
        "opts": Study._meta,
        "subtitle": study.title,
        "steps": workflow.workflow_steps(study, current=context.get("here", "")),
    }
    return TemplateResponse(request, template, base | context, status=status)


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
