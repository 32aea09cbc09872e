"""API views of what the pages of a new study ask: the question by a card, the texts for annotators, bundles and templates."""

from typing import Any

from django.core.exceptions import ValidationError
from django.forms import BaseForm
from django.shortcuts import get_object_or_404
from django.utils.choices import flatten_choices
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.response import Response

from analysis.api.permissions import get_api_token
from studies import access
from studies.access import Action
from studies.admin import new_study, texts
from studies.imports.bundle import BundleIncomplete
from studies.imports.bundle_files import replace_draft_by_bundle, serialize_bundle
from studies.imports.study_templates import StudyTemplate, template_keys
from studies.models import Study
from studies.protocols.base.pairs import EXTREME_REFERENCES
from studies.services import questions
from studies.services.lifecycle import ActionRefused, FieldsRefused

from . import act_serializers
from . import serializers as shapes
from .base import ApiView, PostMixin, StudyView
from .studies import reload_study
from .uploads import require_json_object


def check_form(form: BaseForm, names: dict[str, str] | None = None) -> None:
    """Raise FieldsRefused with the errors of a form. ``names``: fields of the form that have another name in REST."""
    if form.is_valid():
        return
    raise FieldsRefused(
        {
            (names or {}).get(name, name).replace("__all__", ""): " ".join(
                _message(form, name, error) for error in errors
            )
            for name, errors in form.errors.as_data().items()
        }
    )


def _message(form: BaseForm, name: str, error: ValidationError) -> str:
    """Return the words of an error. A page shows the choices, and a program cannot see them."""
    value, choices = (error.params or {}).get("value"), getattr(form.fields.get(name), "choices", ())
    if error.code != "invalid_choice" or value is None:
        return " ".join(map(str, error.messages))
    keys = [str(key) for key, _ in flatten_choices(choices) if key not in ("", None)]
    return f"There is no choice “{value}”. Choose one of: {', '.join(keys)}."


class CardsView(StudyView, ListAPIView):
    """The cards of the page Question: what can be asked about the texts of this draft, and why the others cannot."""

    pagination_class = None
    summaries = {"GET": "What can be asked about the texts of a draft"}
    serializer_class = act_serializers.CardSerializer

    def get_queryset(self):
        return list(new_study.find_offers(questions.read_draft_texts(self.study)).values())


class QuestionView(PostMixin, StudyView):
    """Ask by a card: this writes the section with its questions and comparisons, in place of what an earlier card wrote."""

    summaries = {"POST": "Choose what a draft asks"}
    serializer_class = shapes.StudySerializer
    body_serializer_class = act_serializers.CardChoiceSerializer

    def perform(self, baseline: str = "", **sent: Any) -> Study:
        study = self.study
        systems = study.systems.judged().exclude(reference__in=EXTREME_REFERENCES).order_by("name")
        if baseline:
            found = next((system for system in systems if system.name == baseline), None)
            if found is None:
                raise FieldsRefused({"baseline": f"The study has no system “{baseline}”. Name one of its systems."})
            sent["baseline"] = str(found.pk)
        drafts_texts = questions.read_draft_texts(study)
        form = new_study.QuestionForm(new_study.find_offers(drafts_texts), systems, drafts_texts, sent)
        if reason := questions.reason_not_guided(study):
            raise ActionRefused(reason)
        check_form(form)
        return reload_study(questions.write_guided_section(study.pk, form.build_section(study), self.request.user))


class TextsView(PostMixin, StudyView):
    """Store title, purpose and consent. Without a consent of your own, heval's model text is filled in with the facts about you.

    The facts are kept for the account: the next study needs only those that change.
    """

    summaries = {"POST": "Write the texts that annotators read first"}
    serializer_class = shapes.StudySerializer
    body_serializer_class = act_serializers.TextsSerializer

    def perform(self, facts: dict[str, Any] | None = None, **sent: Any) -> Study:
        known = texts.facts_of(self.request.user)
        initial = texts.initial_texts(self.study, known)
        form = texts.TextsForm(initial | sent, instance=self.study, initial=initial)
        stored = {name: getattr(known, name) for name in texts.TEXT_FACTS} | (facts or {})
        stored = {name: value for name, value in stored.items() if value is not None}
        prefix = texts.FactsForm.prefix
        about = texts.TextFactsForm(
            {f"{prefix}-{name}": value for name, value in stored.items()},
            instance=known,
            initial={"contact": self.study.contact or known.contact},
        )
        check_form(form)
        check_form(about, {name: f"facts.{name}" for name in texts.TEXT_FACTS})
        texts.store_texts(self.study, self.request.user, form, about)
        return reload_study(self.study)


class BothDirectionsView(PostMixin, StudyView):
    """Also ask the reverse of each question about a pair, with the same words."""

    summaries = {"POST": "Ask each pair in both directions"}
    serializer_class = act_serializers.AddedQuestionsSerializer
    body_serializer_class = act_serializers.BothDirectionsSerializer

    def perform(self, with_tau: bool) -> dict[str, int]:
        section = get_object_or_404(self.study.sections, position=self.kwargs["position"])
        section.study = self.study
        return {"added": questions.add_reverse_questions(section, by=self.request.user, with_tau=with_tau)}


class BundleView(StudyView, RetrieveAPIView):
    """The design of a study with its texts and images, from which a new study can be made here or on another site.

    PUT replaces the whole content of a draft. Its code, owner and members stay.
    """

    read_action = Action.VIEW
    summaries = {"GET": "The bundle of a study", "PUT": "Replace a draft by a bundle"}
    serializer_class = act_serializers.BundleSerializer
    body_serializer_class = act_serializers.SentBundleSerializer
    result_serializer_class = shapes.StudySerializer

    def put(self, request, code):
        self.study = replace_draft_by_bundle(self.study, require_json_object(request), request.user)
        return self.answer(reload_study(self.study))

    def get(self, request, code):
        access.check_draw_is_readable(request.user, self.study)
        try:
            return Response(serialize_bundle(self.study))
        except BundleIncomplete as incomplete:
            raise ActionRefused(str(incomplete)) from None


class TemplatesView(ApiView, ListAPIView):
    """The templates from which you may make a study: those of heval, and those that were kept from studies of this site."""

    pagination_class = None
    summaries = {"GET": "Templates of studies"}
    serializer_class = act_serializers.TemplateSerializer

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.read_query()

    def get_queryset(self):
        return [
            {
                "key": key,
                "title": one.title,
                "source": one.source if isinstance(one, StudyTemplate) else "",
                "is_own": not isinstance(one, StudyTemplate),
            }
            for key, one in template_keys(self.request.user, get_api_token(self.request)).items()
        ]
