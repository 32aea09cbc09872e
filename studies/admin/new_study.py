"""The first pages of a new study. *Your file* makes the draft that the other pages fill; *Question* has cards of what one may want to know."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.staticfiles import finders
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import cached_property
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from analysis.stats.planning.inputs import StudySize, Target, Variation
from analysis.stats.planning.sizes import Pace, minutes_each, needed_people
from studies import signals
from studies.access import Action, check_permission_or_404, get_study
from studies.design.criteria import CRITERIA, CRITERIA_BY_KEY, Criterion, own_criterion
from studies.imports.study_templates import STUDY_TEMPLATES, StudyTemplate, load_template_bundle
from studies.imports.tables import run
from studies.imports.tables.columns import Options
from studies.models import Output, Study, System
from studies.protocols import REGISTRY, DraftTexts, Protocol, ProtocolCard
from studies.protocols.base.pairs import EXTREME_REFERENCES
from studies.services import copying, drafts, questions
from studies.services.lifecycle import ActionRefused

from .acts import counts_in_words
from .forms import CleanTextMixin
from .permissions import parse_row_id
from .study_page import render_new_study_page
from .views import FileForm, study_page_url
from .workflow import reverse_or_empty

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
    """Show what a draft holds. POST reads another file, removes a system, or goes on and stores which systems are people."""
    study, elsewhere = find_draft_or_redirect(request, pk)
    if elsewhere:
        return elsewhere
    if request.method == "POST" and "remove" in request.POST:
        return _remove_system(request, study)
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


def _remove_system(request, study: Study) -> HttpResponse:
    """Ask whether to remove a system, with what leaves with it. Confirmed, remove it."""
    back = reverse("new_study_file", args=[study.pk])
    system = study.systems.judged().filter(pk=parse_row_id(request.POST["remove"])).first()
    if system is None:
        messages.warning(request, "This system is no longer in the study.")
    elif "confirmed" in request.POST:
        try:
            counts = copying.remove_system(study, request.user, system)
            messages.success(
                request, f"“{system.name}” is removed. With it: {counts_in_words(counts) or 'nothing else'}."
            )
        except ActionRefused as refused:
            messages.error(request, str(refused))
    else:
        texts = {name: len(ids) for name, ids in copying.texts_to_remove(study, system.outputs.all()).items()}
        rows = {name: list(found) for name, found in copying.rows_about_system(study, system).items()}
        context = {
            "title": f"Remove “{system.name}”?",
            "removed": counts_in_words({"systems": 1} | texts | {name: len(found) for name, found in rows.items()}),
            "named": [str(row) for row in rows["comparisons"]],
            "system": system,
            "back": back,
        }
        return render_new_study_page(request, "admin/studies/remove_texts.html", study, "Your file", context)
    return HttpResponseRedirect(back)


def _set_human_authors(study: Study, ids: list[str], by) -> None:
    """Mark exactly these systems as human authors."""
    with drafts.locked_draft(study.pk, by) as draft:
        wrong = [system for system in draft.systems.judged() if system.is_human != (str(system.pk) in ids)]
        for system in wrong:
            system.is_human = not system.is_human
        System.objects.bulk_update(wrong, ["is_human"])
        if wrong:
            drafts.record_edit_and_raise_version(draft, by, human_authors=sorted(system.name for system in wrong))


# The page Question: cards, a few fields, and what annotators will see.

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
        return "Example: no number of people is enough."
    n_outputs = min(card.n_outputs or EXAMPLE_SYSTEMS, EXAMPLE_SYSTEMS)
    answers = card.answers + card.answers_each * n_outputs
    # Without answers to an item, they come at the end.
    pace = Pace(outputs_per_prompt=n_outputs, answers_per_prompt=answers or None)
    minutes = minutes_each(replace(found, prompts_each=card.example_m), pace)
    return f"Example: about {found.people} people, {minutes:.0f} minutes each."


@cache
def template_cost(slug: str) -> str:
    """Return what a template's own numbers cost for 200 outputs."""
    bundle = load_template_bundle(next(one for one in STUDY_TEMPLATES if one.slug == slug))
    study, section = bundle["study"], bundle["sections"][0]
    parts = math.ceil(EXAMPLE_OUTPUTS * study["annotators_per_batch"] / section["m"])
    return (
        f"Example with {EXAMPLE_OUTPUTS} outputs: {parts} parts of {study['minutes']} minutes, "
        f"{study['annotators_per_batch']} people for each output."
    )


class QuestionForm(CleanTextMixin, forms.Form):
    """The chosen card, the criteria, the baseline and the size of a person's work."""

    card = forms.ChoiceField(error_messages={"required": "Choose one of the cards."})
    criterion = forms.ChoiceField(
        choices=[*((one.key, one.name) for one in CRITERIA), (OWN, "Your own wording, below")],
        initial=CRITERIA[0].key,
        required=False,
    )
    more = forms.MultipleChoiceField(
        choices=[(one.key, one.name) for one in CRITERIA],
        required=False,
        label="More criteria",
        widget=forms.CheckboxSelectMultiple,
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
        help_text="All pairs need more people. To compare fewer systems, remove the others under Your file.",
    )
    m = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=100,
        label="Pages for each person",
        help_text="Empty: as many as fit into about 12 minutes, at most 20. A page shows what is judged together.",
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
        if len(self.systems) < 3:
            del self.fields["baseline"]  # there is only one pair

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
        baseline = self.systems.get(chosen.get("baseline", ""))
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
            "usual": round(100 * Target().difference),
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
