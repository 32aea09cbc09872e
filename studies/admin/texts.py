"""The page of a new study about the texts that annotators read, and the page of the facts about a researcher that fill them in."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from studies.design.checklist import unfilled_text_problems
from studies.imports.study_templates import fill_marks, follow_pay, model_consent_text
from studies.services.drafts import store_facts, update_draft
from studies.services.lifecycle import ActionRefused
from studies.services.questions import AI_TOOLS_REQUEST, ask_about_ai_tools, find_ai_tools_question

from ..access import Action, get_study, is_researcher
from ..models import ResearcherFacts, Study, audit
from . import study_page, workflow
from .forms import CleanTextMixin

MODEL_TITLE = "Reading and judging texts"
MODEL_PURPOSE = "You read some texts and answer questions about them."
# Facts that every study's consent text needs. Pay is asked for where a link needs it, too.
TEXT_FACTS = ("institution", "responsible", "contact", "ethics_contact", "legal_basis", "storage", "retention")


class FactsForm(CleanTextMixin, forms.ModelForm):
    prefix = "facts"

    class Meta:
        model = ResearcherFacts
        fields: tuple[str, ...] = (*TEXT_FACTS, "screened_out_pay", "full_pay")
        help_texts = {"legal_basis": "Why you may process the data."}


class TextFactsForm(FactsForm):
    class Meta(FactsForm.Meta):
        fields = TEXT_FACTS


class TextsForm(CleanTextMixin, forms.ModelForm):
    asks_about_ai_tools = forms.BooleanField(
        required=False,
        label="ask people not to use AI tools, and at the end whether they did",
        help_text=f"The instructions end with: “{AI_TOOLS_REQUEST}”",
    )

    class Meta:
        model = Study
        fields = ("public_title", "purpose", "consent")
        labels = {
            "public_title": "Title that people see",
            "purpose": "Why, and what people do",
            "consent": "What people agree to",
        }
        help_texts = {
            "public_title": "At the top of each page. It should not reveal what you expect.",
            "purpose": "One or two sentences on the first page.",
            "consent": "Markdown. A fact below replaces its place in brackets […].",
        }
        widgets = {"purpose": forms.Textarea(attrs={"rows": 2}), "consent": forms.Textarea(attrs={"rows": 16})}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["public_title"].required = True


def facts_of(user) -> ResearcherFacts:
    """Return the stored facts of an account, or empty ones."""
    return ResearcherFacts.objects.filter(user=user).first() or ResearcherFacts(user=user, contact=user.email)


def _is_made_here(study: Study) -> bool:
    """Return whether the draft was begun on these pages, and not from a paper's template, a bundle, a round or another study."""
    return study.clone_of_id is None and audit.events_of(study).filter(verb="create").exists()


def initial_texts(study: Study, facts: ResearcherFacts) -> dict[str, Any]:
    """Return what the form begins with: the model texts where the study has none."""
    is_new = not study.consent.strip()
    return {
        "public_title": study.public_title or MODEL_TITLE,
        "purpose": study.purpose or MODEL_PURPOSE,
        # An account's address is only proposed until its facts are stored.
        "consent": fill_marks(model_consent_text(study), facts if facts.pk else ResearcherFacts())
        if is_new
        else follow_pay(study),
        "asks_about_ai_tools": find_ai_tools_question(study) is not None or (is_new and _is_made_here(study)),
    }


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_study_texts_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask for title, purpose and consent, and for the facts that fill them in. POST stores them."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    if not study.is_draft:
        return HttpResponseRedirect(reverse("admin:studies_study_change", args=[pk]))
    facts = facts_of(request.user)
    own = study.contact or facts.contact
    data = request.POST if request.method == "POST" else None
    form = TextsForm(data, instance=study, initial=initial_texts(study, facts))
    facts_form = TextFactsForm(data, instance=facts, initial={"contact": own})
    if request.method == "POST" and all([form.is_valid(), facts_form.is_valid()]):
        try:
            store_texts(study, request.user, form, facts_form)
        except (ActionRefused, ValidationError) as refused:
            form.add_error(None, refused if isinstance(refused, ValidationError) else str(refused))
        else:
            here = "preview" in request.POST
            url = f"{request.get_full_path()}#seen" if here else study_page.next_new_study_url(request, study, "Texts")
            return HttpResponseRedirect(url)
    preview = workflow.reverse_or_empty("admin:annotators_preview_page", study.pk, "landing")
    context = {
        "form": form,
        "facts_form": facts_form,
        "facts_missing": [field.label for field in facts_form if not field.value()],
        "preview": preview if Study.objects.filter(pk=pk).exclude(consent="").exists() else "",
        "has_sections": study.sections.exists(),
        "unfilled": list(unfilled_text_problems(study)),
    }
    is_refused = bool(form.errors or facts_form.errors)
    return study_page.render_new_study_page(
        request, "admin/studies/new/texts.html", study, "Texts", context, 422 if is_refused else 200
    )


def store_texts(study: Study, by, form: TextsForm, facts_form: TextFactsForm) -> None:
    """Store the texts with the facts in their places, and the facts."""
    facts, values = facts_form.instance, form.cleaned_data
    changed_facts = {
        name: (facts_form.get_initial_for_field(facts_form.fields[name], name), facts_form.cleaned_data[name])
        for name in facts_form.changed_data
    }
    # The form has written its values into the study.
    texts = values | {"consent": follow_pay(study, changed_facts)}
    changes = {name: fill_marks(texts[name], facts) for name in TextsForm.Meta.fields}
    changes["contact"] = facts.contact
    for name in ("institution", "retention"):
        if value := getattr(facts, name):
            changes[name] = value
    stored = Study.objects.get(pk=study.pk)
    request, is_asked = AI_TOOLS_REQUEST, values["asks_about_ai_tools"]
    if is_asked != (request in stored.instructions):
        parts = stored.instructions.replace(request, "").rstrip()
        changes["instructions"] = "\n\n".join(filter(None, [parts, request])) if is_asked else parts
    with transaction.atomic():
        if facts_form.has_changed() or facts.pk is None:
            store_facts(by, {name: facts_form.cleaned_data[name] for name in facts_form.fields})
        stored = update_draft(stored, by, changes)
        ask_about_ai_tools(stored, by, is_asked)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def facts_page(request: HttpRequest) -> HttpResponse:
    """Show and store what the account writes in the texts of its studies."""
    if not is_researcher(request.user):
        raise PermissionDenied
    form = FactsForm(request.POST if request.method == "POST" else None, instance=facts_of(request.user))
    if request.method == "POST" and form.is_valid():
        store_facts(request.user, form.cleaned_data)
        messages.success(request, "Saved. New studies and links are filled in with it.")
        return HttpResponseRedirect(request.path)
    context = {**admin.site.each_context(request), "title": "Facts about us", "form": form}
    return TemplateResponse(request, "admin/studies/new/facts.html", context, status=422 if form.errors else 200)
