"""The page Question of a new study: cards of what one may want to know, a few fields, and what annotators will see."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

from django import forms
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import cached_property
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from analysis.stats.planning.inputs import StudySize, Target, Variation
from analysis.stats.planning.sizes import Pace, minutes_each, needed_people
from studies import signals
from studies.design.criteria import CRITERIA, CRITERIA_BY_KEY, Criterion, own_criterion
from studies.imports.study_templates import STUDY_TEMPLATES, StudyTemplate, load_template_bundle
from studies.models import Study, System
from studies.protocols import REGISTRY, DraftTexts, Protocol, ProtocolCard
from studies.protocols.base.pairs import EXTREME_REFERENCES
from studies.services import questions
from studies.services.lifecycle import ActionRefused

from .forms import CleanTextMixin
from .new_study import find_draft_or_redirect
from .study_page import render_new_study_page
from .workflow import reverse_or_empty

OWN = "own"
# The example of the costs on the cards.
EXAMPLE_SYSTEMS, EXAMPLE_PROMPTS, EXAMPLE_SHARE, EXAMPLE_POWER, EXAMPLE_OUTPUTS = 3, 40, 0.65, 0.8, 200


@dataclass(frozen=True, slots=True)
class Offer:
    """A card with its protocol or template, what it costs, and why it cannot be chosen, or ''."""

    slug: str
    card: ProtocolCard
    protocol: Protocol
    template: StudyTemplate | None
    cost: str
    reason: str

    @property
    def picture(self) -> str:
        return f"cards/{self.slug}.webp"


def find_offers(texts: DraftTexts) -> dict[str, Offer]:
    """Return the cards by slug, in their order."""
    found = [
        Offer(slug, protocol.card, protocol, None, example_cost(protocol.card), protocol.reason_not_offered(texts))
        for slug, protocol in REGISTRY.items()
        if protocol.card
    ]
    for template in STUDY_TEMPLATES:
        if template.card:
            protocol = REGISTRY[load_template_bundle(template)["sections"][0]["protocol"]]
            reason = protocol.reason_not_offered(texts)
            found.append(Offer(template.slug, template.card, protocol, template, template_cost(template.slug), reason))
    return {offer.slug: offer for offer in sorted(found, key=lambda offer: offer.card.order)}


@cache
def example_cost(card: ProtocolCard) -> str:
    """Return the people and minutes of the example with this protocol, by the formulas of the plan."""
    pairs = math.comb(EXAMPLE_SYSTEMS, 2)
    each = card.example_m // pairs if card.takes_turns else card.example_m
    size = StudySize(
        protocol=card.headline, people=math.ceil(EXAMPLE_PROMPTS / each), prompts=EXAMPLE_PROMPTS, prompts_each=each
    )
    target = Target(difference=EXAMPLE_SHARE, wanted=EXAMPLE_POWER, tests=1 if card.estimand else pairs)
    found = needed_people(size, target, Variation())
    if found is None:
        return "With so few prompts, no number of people is enough."
    n_outputs = min(card.n_outputs or EXAMPLE_SYSTEMS, EXAMPLE_SYSTEMS)
    answers = card.answers + card.answers_each * n_outputs
    # Without answers to an item, they come at the end.
    pace = Pace(outputs_per_prompt=n_outputs, answers_per_prompt=answers or None)
    minutes = minutes_each(replace(found, prompts_each=card.example_m), pace)
    return f"About {found.people} people, {minutes:.0f} minutes each."


@cache
def template_cost(slug: str) -> str:
    """Return what a template's own numbers cost for 200 outputs."""
    bundle = load_template_bundle(next(one for one in STUDY_TEMPLATES if one.slug == slug))
    study, section = bundle["study"], bundle["sections"][0]
    parts = math.ceil(EXAMPLE_OUTPUTS * study["annotators_per_batch"] / section["m"])
    return (
        f"For {EXAMPLE_OUTPUTS} outputs: {parts} parts of {study['minutes']} minutes, "
        f"{study['annotators_per_batch']} people for each output."
    )


class QuestionForm(CleanTextMixin, forms.Form):
    """The chosen card, the criteria, the baseline and the size of a person's work."""

    card = forms.ChoiceField(error_messages={"required": "Choose one of the cards."})
    criterion = forms.ChoiceField(
        choices=[*((one.key, one.name) for one in CRITERIA), (OWN, "Your own wording, below")],
        initial=CRITERIA[0].key,
        required=False,
        help_text="What the outputs are judged by.",
    )
    more = forms.MultipleChoiceField(
        choices=[(one.key, one.name) for one in CRITERIA],
        required=False,
        label="Further criteria",
        widget=forms.CheckboxSelectMultiple,
        help_text="Only for ratings. Each asks one question more about every output.",
    )
    own_name = forms.CharField(
        max_length=50, required=False, label="Name", help_text="A noun that fits “better in …”, such as: suspense."
    )
    own_definition = forms.CharField(
        max_length=1000,
        required=False,
        label="Definition",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What annotators read. Say what counts, and what does not.",
    )
    own_low = forms.CharField(max_length=80, required=False, label="Words of the worst point")
    own_high = forms.CharField(max_length=80, required=False, label="Words of the best point")
    own_question = forms.CharField(
        max_length=500,
        required=False,
        label="Question",
        help_text="Only if the usual wording does not fit. For “How often is it better overall?” with {x} and {y}.",
    )
    baseline = forms.ChoiceField(
        required=False,
        label="Compare everything with",
        help_text="The comparisons are planned now, before anybody answers. All pairs need more people.",
    )
    m = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=100,
        label="Prompts for each person",
        help_text="Empty: as many as fit into about 12 minutes, at most 20.",
    )

    def __init__(self, offers: dict[str, Offer], systems: Sequence[System], texts: DraftTexts, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.offers, self.systems, self.texts = offers, {str(one.pk): one for one in systems}, texts
        choices = {
            "card": [(slug, offer.card.name) for slug, offer in offers.items()],
            "baseline": [("", "each other (all pairs)"), *((pk, one.name) for pk, one in self.systems.items())],
        }
        for name, chosen in choices.items():
            cast(forms.ChoiceField, self.fields[name]).choices = chosen

    def clean_card(self):
        slug = self.cleaned_data["card"]
        if self.offers[slug].reason:
            raise forms.ValidationError(self.offers[slug].reason)
        return slug

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if "card" not in cleaned:
            return cleaned
        offer = self.offers[cleaned["card"]]
        if offer.card.most_criteria:
            self._check_criteria(offer)
        most = offer.protocol.most_items(self.texts)
        if (cleaned.get("m") or 0) > most:
            self.add_error(
                "m", f"Only {most} prompts can be shown to one person. Enter at most {most}, or leave it empty."
            )
        return cleaned

    def _check_criteria(self, offer: Offer) -> None:
        chosen = self.cleaned_data
        if chosen.get("criterion") == OWN:
            needed = ["own_name", "own_definition"]
            if offer.protocol.default_scale_kind == "likert":
                needed += ["own_low", "own_high"]
            for name in needed:
                if not chosen.get(name) and name not in self.errors:
                    self.add_error(name, "Your own wording needs this. Fill it in, or choose a criterion of the list.")
            wording = chosen.get("own_question") or "{x}{y}"
            if offer.protocol.has_directed_questions and not ("{x}" in wording and "{y}" in wording):
                self.add_error(
                    "own_question", "The question does not contain {x} and {y}. Add both; they become letters."
                )
        if self.errors:
            return
        criteria = self.criteria
        if len(criteria) > offer.card.most_criteria:
            if offer.card.most_criteria > 1:
                self.add_error("more", f"At most {offer.card.most_criteria} criteria fit on a page. Untick some.")
            else:
                self.add_error(
                    "more", "This card asks by one criterion. Untick the others, or choose the card of ratings."
                )
        elif len({one.label.casefold() for one in criteria}) < len(criteria):
            self.add_error("more", "Two criteria have the same name. Rename yours, or untick the other.")

    @cached_property
    def criteria(self) -> list[Criterion]:
        """The criteria in the order of the questions."""
        chosen = self.cleaned_data
        if not self.offers[chosen["card"]].card.most_criteria:
            return []
        if chosen["criterion"] == OWN:
            names = ("own_name", "own_definition", "own_low", "own_high", "own_question")
            first = own_criterion(*(chosen[name] for name in names))
        else:
            first = CRITERIA_BY_KEY[chosen["criterion"] or CRITERIA[0].key]
        return [first, *(one for key in chosen["more"] if (one := CRITERIA_BY_KEY[key]) is not first)]

    def build_section(self, study: Study) -> questions.GuidedSection:
        """Return the section that was chosen."""
        chosen = self.cleaned_data
        offer, m = self.offers[chosen["card"]], chosen["m"]
        choice = {name: chosen[name] for name in self.fields}
        if offer.template is not None:
            return _section_of_template(offer.template, min(m or 100, offer.protocol.most_items(self.texts)), choice)
        baseline = self.systems.get(chosen["baseline"])
        return questions.build_guided_section(study, offer.protocol, self.texts, self.criteria, baseline, m, choice)


def _section_of_template(template: StudyTemplate, most: int, choice: dict[str, Any]) -> questions.GuidedSection:
    bundle = load_template_bundle(template)
    section, study = bundle["sections"][0], bundle["study"]
    return questions.GuidedSection(
        protocol=section["protocol"],
        settings=section["settings"],
        m=min(section["m"], most),
        questions=[
            {name: value for name, value in row.items() if name not in ("position", "x", "y")}
            for row in section["questions"]
        ],
        instructions=study["instructions"],
        choice=choice,
        study={name: study[name] for name in ("annotators_per_batch", "batches_per_annotator")},
    )


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def question_page(request, pk: int) -> HttpResponse:
    """Show the cards and the stored choice. POST writes the section, or shows its page and writes nothing."""
    study, elsewhere = find_draft_or_redirect(request, pk)
    if elsewhere:
        return elsewhere
    texts = questions.read_draft_texts(study)
    offers = find_offers(texts)
    systems = study.systems.judged().exclude(reference__in=EXTREME_REFERENCES).order_by("name")
    section = questions.find_guided_section(study)
    stored = (study.guide or {}).get("question", {}) | ({"m": section.m} if section else {})
    sent = request.POST if request.method == "POST" else None
    form = QuestionForm(offers, systems, texts, sent, initial=stored)
    if sent is not None and "preview" in sent:
        return _render_preview(request, study, form)
    reason = questions.reason_not_guided(study)
    if sent is not None and not reason and form.is_valid():
        try:
            questions.write_guided_section(study.pk, form.build_section(study), request.user)
        except ActionRefused as refused:
            form.add_error(None, str(refused))
        else:
            return HttpResponseRedirect(_next_address(study, offers[form.cleaned_data["card"]]))
    context = {
        "form": form,
        "offers": offers.values(),
        "chosen": form["card"].value(),
        "texts": texts,
        "reason": reason,
        "example": {
            "systems": EXAMPLE_SYSTEMS,
            "prompts": EXAMPLE_PROMPTS,
            "share": round(100 * EXAMPLE_SHARE),
            "power": round(100 * EXAMPLE_POWER),
            "words": Pace().words_per_output,
        },
    }
    status = 409 if reason and sent is not None else 400 if form.errors else 200
    return render_new_study_page(request, "admin/studies/new/question.html", study, "Question", context, status)


def _next_address(study: Study, offer: Offer) -> str:
    """Return the next page: of a judge, the page on which its scores are uploaded and its sample is drawn."""
    judge = reverse_or_empty("judge_check", study.pk) if offer.template else ""
    return judge or reverse_or_empty("new_study_people", study.pk) or reverse("new_study_question", args=[study.pk])


def _render_preview(request, study: Study, form: QuestionForm) -> HttpResponse:
    """Return what annotators will see, for the frame beside the form. All that is written for it is rolled back."""
    faults = []
    if form.is_valid():
        try:
            with transaction.atomic():
                written = questions.write_guided_section(study.pk, form.build_section(study), request.user)
                section = questions.find_guided_section(written)
                answers = signals.rendering_first_question.send(Study, request=request, study=written, section=section)
                transaction.set_rollback(True)
            return answers[0][1]
        except ActionRefused as refused:
            faults = [str(refused)]
    faults = faults or [str(message) for messages in form.errors.values() for message in messages]
    response = render(request, "admin/studies/new/no_preview.html", {"faults": faults})
    response.headers["Content-Security-Policy"] = "default-src 'none'; style-src 'self'; frame-ancestors 'self'"
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    return response
