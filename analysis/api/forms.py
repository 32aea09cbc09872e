"""API views of forms about a study, and of the questions in them that a person answers."""

from typing import Any

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.response import Response

from analysis.forms.answers import save_answers
from analysis.forms.questions import FORMS
from analysis.forms.render import MEDIA_TYPES, facts_with_deviations, render_form
from studies.access import Action

from . import serializers as shapes
from .base import StudyView
from .uploads import require_json_object


class ReportFormsView(StudyView):
    """The forms about a study, the questions that only a person can answer, and the deviations from the design."""

    tag = "analyses"
    write_action = Action.ANALYSE
    summaries = {"GET": "Forms, open questions and deviations", "PATCH": "Answer questions of forms"}
    serializer_class = shapes.ReportFormsSerializer
    body_serializer_class = shapes.FormAnswersSerializer

    def get(self, request, code):
        return Response(self.get_serializer(self.get_object()).data)

    def get_object(self) -> dict[str, Any]:
        facts, deviations = facts_with_deviations(self.study)
        questions = [
            {"key": one.key, "label": one.label, "options": one.options, "text": facts.answers.get(one.key, "")}
            for one in facts.questions
        ]
        return {
            "analysis": facts.run and facts.run.number,
            "questions": questions,
            "forms": [{"slug": form.slug, "title": form.title} for form in FORMS],
            "deviations": deviations["rows"],
        }

    def patch(self, request, code):
        save_answers(self.study, self.check_fields(require_json_object(request))["answers"], by=request.user)
        return self.answer(self.get_object())


class ReportFormView(StudyView):
    """A form about the study as a file: txt, md, tex or json. ``citation.bib`` has BibTeX entries."""

    tag = "analyses"
    summaries = {"GET": "A form as text, Markdown, LaTeX, JSON or BibTeX"}
    media_type, response_type = "text/plain", OpenApiTypes.STR

    def get(self, request, code, form, extension):
        text = render_form(self.study, form, extension)
        if text is None:
            raise Http404("There is no such form in this format. The list of forms names them.")
        return HttpResponse(text, content_type=f"{MEDIA_TYPES[extension]}; charset=utf-8")
