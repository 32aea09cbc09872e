"""A section's page: the choice of its protocol, then the protocol's settings, the questions, and a form that generates them."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.validators import MaxValueValidator
from django.db import transaction
from django.db.models import Max
from django.http import HttpResponseRedirect
from django.urls import path, reverse
from django.utils.text import capfirst

from studies.design.subjects import numbered_name
from studies.protocols.base.pairs import unknown_system_names
from studies.services import drafts, questions
from studies.services.lifecycle import ActionRefused

from ..access import Action, filter_allowed, get_row, is_researcher
from ..models import Contrast, Qualification, Question, Section, Study
from ..protocols import REGISTRY
from . import attention_checks, field_labels, known_answers, study, workflow
from .forms import (
    CleanTextMixin,
    RowChoiceField,
    RowMultipleChoiceField,
    SettingsFormMixin,
    build_form_with_settings,
    choice_field,
    choices_of,
    headed_settings_fieldsets,
    prefixed_settings_fields,
)
from .inlines import QuestionInline
from .permissions import StudyScopedAdmin, changed_fields_and_row_kinds, is_request_allowed

# Forms of a section: the choice of its protocol, its settings, and the form that generates its questions.


def qualification_fields(study) -> dict[str, forms.Field]:
    """Return the fields that name the qualification of a test. The study's owner has it once for each name and validity."""
    names = Qualification.objects.filter(owner=study.owner_id).values_list("name", flat=True).distinct()
    existing = f" You have: {', '.join(names[:20])}." if names else ""
    return {
        "qualification_name": forms.CharField(
            required=False,
            max_length=100,
            label="qualification",
            help_text=f"People who passed a test with this name lately, in any of your studies, skip it. Empty: everybody takes the test.{existing}",
        ),
        "valid_days": forms.IntegerField(
            required=False,
            min_value=1,
            max_value=3650,
            initial=180,
            label="valid for days",
            help_text="How long a pass lasts.",
        ),
    }


class SectionForm(SettingsFormMixin):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk and self.instance.qualification:
            self.initial["qualification_name"] = self.instance.qualification.name
            self.initial["valid_days"] = self.instance.qualification.valid_days
        if self.instance.pk and "shown_arms" in self.fields:
            self.initial["shown_arms"] = [row.arm_id for row in self.instance.section_arms.all()]

    def clean_m(self):
        m = self.cleaned_data["m"]
        protocol = REGISTRY.get(self.instance.protocol)
        if protocol and not protocol.has_items and m and not self.data.get("pass_mark"):
            raise forms.ValidationError("This protocol shows no items: enter 0 for m.")
        return m

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("pass_mark") is None:
            if cleaned.get("qualification_name"):
                self.add_error(
                    "qualification_name", "Only a test has a qualification. Enter a pass mark, or leave this empty."
                )
            return cleaned
        if cleaned.get("purpose") not in (Section.Purpose.TRAINING, Section.Purpose.SCREENING):
            self.add_error("pass_mark", "Only training and screening can be a test. Choose one of these purposes.")
        others = Section.objects.filter(study=self.instance.study_id, pass_mark__isnull=False).exclude(
            pk=self.instance.pk
        )
        if others.exists():
            self.add_error("pass_mark", "Another section is the test of this study. Remove its pass mark first.")
        if cleaned.get("qualification_name") and self.instance.study.owner_id is None:
            self.add_error("qualification_name", "The study has no owner to hold the qualification. Leave this empty.")
        if cleaned.get("qualification_name") and not cleaned.get("valid_days"):
            self.add_error("valid_days", "A qualification needs a validity. Enter a number of days.")
        return cleaned

    def save(self, commit=True):
        if "qualification_name" in self.fields:
            name = self.cleaned_data["qualification_name"]
            wanted = {
                "owner_id": self.instance.study.owner_id,
                "name": name,
                "valid_days": self.cleaned_data["valid_days"],
            }
            self.instance.qualification = Qualification.objects.get_or_create(**wanted)[0] if name else None
        return super().save(commit)

    def clean_position(self):
        position = self.cleaned_data["position"]
        others = Section.objects.filter(study=self.instance.study_id, position=position).exclude(pk=self.instance.pk)
        if others.exists():
            raise forms.ValidationError("Another section has this position. Change the order on the study's page.")
        return position

    def _save_m2m(self):
        super()._save_m2m()  # type: ignore[misc]  # private in Django
        if "shown_arms" in self.changed_data:
            self.instance.arms.set(self.cleaned_data["shown_arms"])


class AddSectionForm(CleanTextMixin, forms.ModelForm):
    """The choice of the protocol. The other fields depend on it."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["protocol"].widget = forms.RadioSelect(choices=choices_of(choice_field(self, "protocol"))[1:])

    def save(self, commit=True):
        section = self.instance
        protocol = REGISTRY[section.protocol]
        section.settings = protocol.settings_of_new_section()
        if not protocol.has_items:
            section.m = 0
        last = Section.objects.filter(study=section.study_id).aggregate(last=Max("position"))["last"]
        section.position = (last or 0) + 1
        return super().save(commit)

    def _save_m2m(self):
        super()._save_m2m()  # type: ignore[misc]  # private in Django
        Question.objects.bulk_create(
            Question(section=self.instance, position=n, **columns)
            for n, columns in enumerate(REGISTRY[self.instance.protocol].questions, 1)
        )


class GenerateQuestionsForm(CleanTextMixin, forms.Form):
    """The pairs and the text of the questions to generate."""

    which = forms.ChoiceField(choices=list(questions.PAIR_CHOICES.items()), label="pairs")
    order = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3, "cols": 40}),
        required=False,
        label="order of the systems",
        help_text="Their names, one per line. Systems that you leave out follow at the end. Empty: in alphabetical order.",
    )
    text = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
        label="question",
        help_text="heval replaces {x} and {y} by the letters.",
    )
    size_text = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
        required=False,
        label="question of size",
        help_text="Asked beside each chance, on points from −3 (much worse) to 3 (much better), such as: How much better is writer {x} than "
        "writer {y}? Empty: not asked.",
    )
    criterion = forms.CharField(max_length=50, required=False)
    both = forms.BooleanField(required=False, label="both directions of each pair")
    plans = forms.BooleanField(required=False, initial=True, label="plan the missing comparisons too")

    def __init__(self, study, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.study = study

    def clean_order(self):
        if unknown := unknown_system_names(self.study, self.cleaned_data["order"]):
            raise forms.ValidationError(f"The study has no system “{unknown[0]}”. Correct or remove this line.")
        return self.cleaned_data["order"]

    def clean_text(self):
        return self._with_both_letters(self.cleaned_data["text"])

    def clean_size_text(self):
        return self._with_both_letters(text) if (text := self.cleaned_data["size_text"]) else ""

    def _with_both_letters(self, text):
        if "{x}" not in text or "{y}" not in text:
            raise forms.ValidationError(
                "The question does not contain {x} and {y}. Add both; heval replaces them by the letters."
            )
        return text


class BothDirectionsForm(forms.Form):
    """One tick adds the reverse of each question about a pair, and another one the filter that needs both."""

    reverse = forms.BooleanField(label="ask each pair in both directions")
    tau = forms.BooleanField(
        required=False,
        label="leave out people whose two answers to a pair add up to more than tau = 1.1",
        help_text="A primary exclusion rule. The report also shows the result without it.",
    )

    def __init__(self, section, data=None):
        super().__init__(data, prefix="directions")
        n = len(questions.questions_without_reverse(section))
        if not n:
            del self.fields["reverse"]
        else:
            self.fields["reverse"].help_text = f"Adds {n} question{'' if n == 1 else 's'}, with the same words."
        if section.study.exclusion_rules.filter(rule=questions.TAU_RULE).exists():
            del self.fields["tau"]


TEST_FIELDS: dict[str, Any] = {
    "fields": ("pass_mark", ("qualification_name", "valid_days")),
    "description": "Only for training and screening. Annotators who fail twice are screened out, with the pay of the link.",
    "classes": ("collapse",),
}


@admin.register(Section)
class SectionAdmin(StudyScopedAdmin):
    form = SectionForm
    inlines = [QuestionInline]
    change_form_template = "admin/studies/section.html"
    list_display = ("study", "position", "protocol", "purpose", "m")
    list_display_links = ("position",)
    list_select_related = ("study",)
    actions = None
    view_on_site = False

    def has_module_permission(self, request):
        return is_researcher(request.user)

    def has_view_permission(self, request, obj=None):
        return is_researcher(request.user) and (obj is None or is_request_allowed(request, Action.VIEW, obj.study_id))

    def has_add_permission(self, request):
        return is_request_allowed(request, Action.EDIT)

    def get_urls(self):
        return [
            path(
                "<int:pk>/generate-questions/",
                self.admin_site.admin_view(self.generate_questions_view),
                name="studies_section_generate_questions",
            ),
            path(
                "<int:pk>/practice/",
                self.admin_site.admin_view(known_answers.practice_page),
                name="studies_section_practice",
            ),
            path(
                "<int:pk>/test-questions/",
                self.admin_site.admin_view(known_answers.known_answers_page),
                name="studies_section_test_questions",
            ),
            *super().get_urls(),
        ]

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("study", "reuses", "qualification")

    def get_inlines(self, request, obj):
        return self.inlines if obj is not None else ()

    def get_fieldsets(self, request, obj=None):
        if obj is None:
            return ((None, {"fields": ("study", "protocol", "purpose")}),)
        protocol = REGISTRY.get(obj.protocol)
        settings_form = protocol.settings_form if protocol else None
        headed = headed_settings_fieldsets(settings_form)
        headed_names = {name for _, options in headed for name in options["fields"]}
        names = tuple(name for name in prefixed_settings_fields(settings_form) if name not in headed_names)
        shared = [("position", "purpose", "m"), "reuses", "shown_arms"]
        if protocol and not protocol.has_items and not obj.reuses_id:
            shared.remove("reuses")
        if not self.has_change_permission(request, obj):
            return (
                ("Section", {"fields": (("position", "purpose", "m"), ("pass_mark", "qualification"))}),
            )  # the template shows the rest as text
        parts: list[tuple[str, dict[str, Any]]] = [
            ("Section", {"fields": shared}),
            ("Test before the work", TEST_FIELDS),
        ]
        if names:
            parts.append(("Settings of the protocol", {"fields": names}))
        parts += [(heading, options | {"classes": ("collapse",)}) for heading, options in headed]
        return tuple(parts)

    def get_readonly_fields(self, request, obj=None):
        return ()

    def get_form(self, request, obj=None, change=False, **kwargs):
        if obj is None:
            studies = filter_allowed(request.user, Study.objects.filter(state="draft", archived_at=None), Action.EDIT)
            rows = {row.pk: row for row in studies.order_by("-pk")[:200]}
            form = type("AddSectionForm", (AddSectionForm,), {"study": RowChoiceField(rows, empty="choose a draft")})
            return super().get_form(request, obj, change, **kwargs | {"form": form})
        others = {row.pk: row for row in obj.study.sections.exclude(pk=obj.pk).filter(reuses=None).order_by("position")}
        arms = {row.pk: row for row in obj.study.arms.order_by("name")}
        protocol = REGISTRY.get(obj.protocol)
        kwargs |= _m_labels_and_help(protocol)
        form = build_form_with_settings(self.form, protocol.settings_form if protocol else None)
        extra = {
            "reuses": RowChoiceField(
                others,
                empty="its own items",
                required=False,
                label="repeats items of",
                help_text="Show the first m items of that section instead of new ones.",
            ),
            "shown_arms": RowMultipleChoiceField(
                arms, label="arms", help_text="None ticked: every arm has this section."
            ),
            **qualification_fields(obj.study),
        }
        if not self.has_change_permission(request, obj):
            return super().get_form(request, obj, change, **kwargs | {"form": forms.ModelForm})
        return super().get_form(request, obj, change, **kwargs | {"form": type("SectionForm", (form,), extra)})

    def get_changeform_initial_data(self, request):
        return {name: value for name, value in super().get_changeform_initial_data(request).items() if name == "study"}

    def _fingerprint(self, section):
        return study.editable_columns_fingerprint(section, section.questions.all())

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        section = self.get_object(request, object_id) if object_id else None
        if section is None:
            return super().changeform_view(request, object_id, form_url, extra_context)
        if request.method == "POST" and self.has_change_permission(request, section):
            with transaction.atomic():
                study.lock_study(section.study_id)
                if study.request_deletes_draft_rows(request, section.study):
                    drafts.delete_test_runs(section.study_id, request.user)
                section = self.get_object(request, object_id)
                if section is not None and (conflict := self._conflict(request, section)):
                    return conflict
                return super().changeform_view(request, object_id, form_url, extra_context)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _conflict(self, request, section):
        fingerprint = self._fingerprint(section)
        if request.POST.get(study.FINGERPRINT_FIELD, fingerprint) == fingerprint:
            return None
        fields = [
            n
            for _, o in self.get_fieldsets(request, section)
            for f in o["fields"]
            for n in ([f] if isinstance(f, str) else f)
        ]
        form = self.get_form(request, section, change=True, fields=fields)(request.POST, instance=section)
        return study.conflict_page(
            request,
            self.admin_site,
            opts=self.opts,
            original=section,
            current_fingerprint=fingerprint,
            differing=study.differing_field_values(form),
        )

    def render_change_form(self, request, context, add=False, change=False, form_url="", obj=None):
        if obj is not None:
            protocol = REGISTRY.get(obj.protocol)
            may_change = self.has_change_permission(request, obj)
            context |= {
                "study": obj.study,
                "tabs": workflow.study_tabs(request, obj.study, "Design"),
                "protocol": protocol,
                "fingerprint_field": study.FINGERPRINT_FIELD,
                "fingerprint": request.POST.get(study.FINGERPRINT_FIELD, "") or self._fingerprint(obj),
                "question_form": self._question_form(obj)
                if may_change and protocol and protocol.has_directed_questions
                else None,
                "directions_form": BothDirectionsForm(obj)
                if may_change and protocol and protocol.can_ask_both_directions
                else None,
                "practice": known_answers.practice_page_link(obj),
                "test_questions": known_answers.known_answer_page_link(obj),
                "attention_checks": attention_checks.attention_checks_link(obj),
                "generate_url": reverse("admin:studies_section_generate_questions", args=[obj.pk]),
                "frozen_settings": [] if may_change else _frozen_settings_rows(protocol, obj),
                "title": f"Section {numbered_name(obj)}",
                "subtitle": obj.study.title,
                "show_save_and_add_another": False,
            }
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _question_form(self, section, data=None):
        initial = {
            "which": "neighbours",
            "text": questions.default_question_text(section),
            "both": questions.asks_both_directions(section),
            "plans": True,
        }
        return GenerateQuestionsForm(section.study, data, initial=initial, prefix="generate")

    def save_related(self, request, form, formsets, change):
        super().save_related(request, form, formsets, change)
        section, columns = form.instance, changed_fields_and_row_kinds(form, formsets)
        if not change:
            drafts.record_edit_and_raise_version(section.study, request.user, made=f"section {section.position}")
        elif columns:
            drafts.record_edit_and_raise_version(
                section.study, request.user, about=f"section {section.position}", columns=columns
            )

    def delete_model(self, request, obj):
        drafts.delete_section_and_test_runs(obj, request.user)

    def get_deleted_objects(self, objs, request):
        # Deleting a section deletes its questions. Comparisons, and sections that repeat its items, protect it.
        objs = list(objs)
        section_questions = Question.objects.filter(section__in=objs)
        protected = [f"Comparison: {row}" for row in Contrast.objects.filter(section__in=objs).select_related("x", "y")]
        protected += [f"Section that repeats its items: {row}" for row in Section.objects.filter(reuses__in=objs)]
        listed = [
            [str(row), [f"Question: {q.key}" for q in section_questions if q.section_id == row.pk]] for row in objs
        ]
        to_delete = [part for parts in listed for part in parts if part]
        return to_delete, {"questions": len(section_questions)}, set(), protected

    def response_add(self, request, obj, post_url_continue=None):
        self.message_user(request, "The section is added. Now enter the settings of its protocol.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:studies_section_change", args=[obj.pk]))

    def response_change(self, request, obj):
        if "_continue" in request.POST:
            return super().response_change(request, obj)
        self.message_user(request, f"Section {numbered_name(obj)} is saved.", messages.SUCCESS)
        return HttpResponseRedirect(f"{reverse('admin:studies_study_change', args=[obj.study_id])}#sections-group")

    def response_delete(self, request, obj_display, obj_id):
        self.message_user(request, f"Section {obj_display} is deleted.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:studies_study_changelist"))

    def changelist_view(self, request, extra_context=None):
        return HttpResponseRedirect(reverse("admin:studies_study_changelist"))

    def generate_questions_view(self, request, pk):
        """Generate the questions of some pairs, and the comparisons that they test."""
        section = get_row(request.user, Action.EDIT, Section.objects.select_related("study"), pk=pk)
        home = reverse("admin:studies_section_change", args=[section.pk])
        if request.method != "POST":
            return HttpResponseRedirect(home)
        try:
            drafts.refuse_if_launched(section.study)
        except ActionRefused as refused:
            messages.warning(request, str(refused))
            return HttpResponseRedirect(home)
        is_reverse = "reverse" in request.POST
        form: forms.Form = self._question_form(section, request.POST)
        if is_reverse:
            form = BothDirectionsForm(section, request.POST)
        if not form.is_valid():
            for name, errors in form.errors.items():
                messages.error(request, f"{capfirst(form[name].label)}: {' '.join(map(str, errors))}")
            return HttpResponseRedirect(f"{home}#generate")
        values = form.cleaned_data
        if is_reverse:
            with_tau = values.get("tau", False)
            n = questions.add_reverse_questions(section, by=request.user, with_tau=with_tau)
            said = _added_text(n, 0) if n or not with_tau else ""
            messages.success(request, f"{said} {'Exclusion rule declared: tau = 1.1.' if with_tau else ''}".strip())
            return HttpResponseRedirect(f"{home}#questions-group")
        pairs = questions.select_system_pairs(section, values["which"], values["order"])
        written = questions.add_missing_questions(
            section,
            pairs,
            values["text"],
            by=request.user,
            criterion=values["criterion"],
            both_directions=values["both"],
            with_contrasts=values["plans"],
            size_text=values["size_text"],
        )
        messages.success(request, _added_text(*written))
        return HttpResponseRedirect(f"{home}#questions-group")


def _added_text(n_questions: int, n_comparisons: int) -> str:
    if not n_questions and not n_comparisons:
        return "Nothing was missing: every question and comparison of these pairs exists already."
    return f"Added: {n_questions} question{'' if n_questions == 1 else 's'}, {n_comparisons} comparison{'' if n_comparisons == 1 else 's'}."


def _m_labels_and_help(protocol) -> dict[str, dict[str, str]]:
    """Return the label and the help text of m: what it counts under this protocol, and its range."""
    if protocol is None:
        return {}
    field = Section._meta.get_field("m")
    most = next(validator.limit_value for validator in field.validators if isinstance(validator, MaxValueValidator))
    labels = field_labels.LABELS["section"]
    if not protocol.has_items:
        return {
            "labels": labels | {"m": "Shown (m)"},
            "help_texts": {"m": "Always 0: this protocol shows only questions."},
        }
    counted = f"How many each annotator sees here. From 1 to {most}, by default {field.default}."
    return {
        "labels": labels | {"m": f"{protocol.item_noun.capitalize()} for each annotator (m)"},
        "help_texts": {"m": counted},
    }


def _frozen_settings_rows(protocol, section) -> list[tuple[str, str]]:
    """Return the settings of a frozen section as (label, value) texts."""
    arms = ", ".join(str(row.arm) for row in section.section_arms.select_related("arm")) or "all"
    rows = [("arms", arms), ("repeats items of", str(section.reuses or "its own items"))]
    if protocol and protocol.settings_form:
        for name, field in protocol.settings_form().fields.items():
            value = section.settings.get(name, field.initial)
            choices = dict(getattr(field, "choices", ()))
            rows.append((str(field.label or name.replace("_", " ")), str(choices.get(value, value))))
    return rows
