"""A section's own page: first its protocol, then that protocol's settings, its questions, and a pen that writes them."""

from copy import deepcopy

from django import forms
from django.contrib import admin, messages
from django.core.validators import MaxValueValidator
from django.db import transaction
from django.db.models import Max
from django.http import HttpResponseRedirect
from django.urls import path, reverse

from studies import signals
from studies.protocols.base.pairs import unknown_names
from studies.services import drafts, questions
from studies.services.lifecycle import NotNow

from ..access import Action, get_row, is_researcher, visible
from ..models import Contrast, Question, Section, Study
from ..protocols import REGISTRY
from . import field_labels, life, practice, stale
from .access import InlineRoles, Scoped, changed_in, may
from .forms.fields import Options, RowChoice, RowChoices
from .forms.scales import SCALE_FIELDS, ScaleForm, scale_in_words
from .forms.settings import WithSettings, settings_fields, with_settings
from .forms.words import CleanWords, other_with
from .inlines import LabelledDeletion, MoreRows, Ordered, Traded


class QuestionForm(ScaleForm):
    Meta = field_labels.meta("question")

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        x, y = cleaned.get("x"), cleaned.get("y")
        if bool(x) != bool(y):
            self.add_error("y" if x else "x", "A question names two systems or none.")
        elif x and x == y:
            self.add_error("y", "A system is not compared with itself.")
        return cleaned


class QuestionRows(Traded, Ordered, LabelledDeletion):
    marked = "key"

    def clean(self):
        super().clean()
        seen: list[str] = []
        for form in self.forms:
            key = (getattr(form, "cleaned_data", None) or {}).get("key")
            if not key or form.cleaned_data.get("DELETE"):
                continue
            if other := other_with(key, seen):
                form.add_error("key", f"Another question of this section has the key “{other}”.")
            seen.append(key)


class Questions(MoreRows, InlineRoles, admin.StackedInline):
    model = Question
    form = QuestionForm
    formset = QuestionRows
    fieldsets = (
        (None, {"fields": (("position", "key", "criterion"), "text", ("x", "y"), "scale_kind")}),
        (
            "Its points, ends or answers",
            {
                "fields": (
                    ("scale_minimum", "scale_maximum"), ("scale_low", "scale_middle", "scale_high"), "scale_labels",
                    "scale_is_best_first", "scale_options", ("scale_minimum_length", "scale_maximum_length", "scale_is_long"),
                ),
                "classes": ["scale-parts"],
            },
        ),
        ("More", {"fields": ("required", "skip_reasons", "help"), "classes": ["collapse"]}),
    )  # fmt: skip

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("x", "y")

    def get_fieldsets(self, request, obj=None):
        if self.has_change_permission(request, obj):
            if _names_systems(obj):
                return self.fieldsets
            (title, first), *others = self.fieldsets
            return ((title, first | {"fields": tuple(each for each in first["fields"] if each != ("x", "y"))}), *others)
        return ((None, {"fields": (("key", "criterion"), "text", ("x", "y"), "asked_as", "required", "help")}),)

    def get_readonly_fields(self, request, obj=None):
        return () if self.has_change_permission(request, obj) else ("asked_as",)

    @admin.display(description="asked as")
    def asked_as(self, question):
        return scale_in_words(question.scale)

    def get_formset(self, request, obj=None, **kwargs):
        saved = obj is not None and obj.pk
        systems = {row.pk: row for row in obj.study.systems.order_by("name")} if saved else {}
        kind = deepcopy(SCALE_FIELDS["kind"])
        protocol = REGISTRY.get(obj.protocol) if saved else None
        kind.initial = protocol.question_kind if protocol else None
        extra = {
            "scale_kind": kind,
            "skip_reasons": Options(
                may_screen=False,
                rows=2,
                required=False,
                label="ways not to answer",
                help_text="One a line: key | label, such as “cannot_judge | I cannot judge this”. Empty: none is offered.",
            ),
            "text": forms.CharField(
                label="Question",
                widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
                help_text=protocol.letters_in_words if protocol else "",
            ),
            "help": forms.CharField(
                required=False,
                widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
                help_text="Stands under the question. Markdown.",
            ),
        }
        if _names_systems(obj):
            extra |= {
                name: RowChoice(
                    systems, empty="no system", required=False, label=name, help_text=f"{{{name}}} in the words."
                )
                for name in ("x", "y")
            }
        return super().get_formset(request, obj, form=type("QuestionForm", (self.form,), extra), **kwargs)


class SectionForm(WithSettings):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk and "shown_arms" in self.fields:
            self.initial["shown_arms"] = [row.arm_id for row in self.instance.section_arms.all()]

    def clean_m(self):
        m = self.cleaned_data["m"]
        protocol = REGISTRY.get(self.instance.protocol)
        if protocol and not protocol.has_items and m:
            raise forms.ValidationError("This protocol shows no items: m is 0.")
        return m

    def clean_position(self):
        position = self.cleaned_data["position"]
        others = Section.objects.filter(study=self.instance.study_id, position=position).exclude(pk=self.instance.pk)
        if others.exists():
            raise forms.ValidationError("Another section stands there. Give the order on the study's page.")
        return position

    def _save_m2m(self):
        super()._save_m2m()
        if "shown_arms" in self.changed_data:
            self.instance.arms.set(self.cleaned_data["shown_arms"])


class AddSectionForm(CleanWords, forms.ModelForm):
    """The choice of the protocol, before anything else can be asked."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["protocol"].widget = forms.RadioSelect(choices=self.fields["protocol"].choices[1:])

    def save(self, commit=True):
        section = self.instance
        protocol = REGISTRY[section.protocol]
        section.settings = {}
        section.settings = protocol.stored_settings(section)
        if not protocol.has_items:
            section.m = 0
        last = Section.objects.filter(study=section.study_id).aggregate(last=Max("position"))["last"]
        section.position = (last or 0) + 1
        return super().save(commit)

    def _save_m2m(self):
        super()._save_m2m()
        Question.objects.bulk_create(
            Question(section=self.instance, position=n, **columns)
            for n, columns in enumerate(REGISTRY[self.instance.protocol].questions, 1)
        )


class PenForm(CleanWords, forms.Form):
    """What to write: which pairs, with which words."""

    which = forms.ChoiceField(choices=list(questions.CHOICES.items()), label="pairs")
    order = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3, "cols": 40}), required=False, label="order of the systems",
        help_text="Their names, one a line; who is not named follows. Empty: by name.",
    )  # fmt: skip
    text = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}), label="words", help_text="{x} and {y} become the letters."
    )
    criterion = forms.CharField(max_length=50, required=False)
    both = forms.BooleanField(required=False, label="both directions of each pair")
    plans = forms.BooleanField(required=False, initial=True, label="plan the missing comparisons too")

    def __init__(self, study, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.study = study

    def clean_order(self):
        if unknown := unknown_names(self.study, self.cleaned_data["order"]):
            raise forms.ValidationError(f"No system of the study is called {unknown[0]}.")
        return self.cleaned_data["order"]

    def clean_text(self):
        text = self.cleaned_data["text"]
        if "{x}" not in text or "{y}" not in text:
            raise forms.ValidationError("The words must contain {x} and {y}, where the letters go.")
        return text


@admin.register(Section)
class SectionAdmin(Scoped):
    form = SectionForm
    inlines = [Questions]
    change_form_template = "admin/studies/section.html"
    list_display = ("study", "position", "protocol", "purpose", "m")
    list_display_links = ("position",)
    list_select_related = ("study",)
    actions = None
    view_on_site = False

    def has_module_permission(self, request):
        return False  # sections are met on their study's page

    def has_view_permission(self, request, obj=None):
        return is_researcher(request.user) and (obj is None or may(request, Action.LOOK, obj.study_id))

    def has_add_permission(self, request):
        return may(request, Action.EDIT)

    def get_urls(self):
        return [
            path("<int:pk>/write/", self.admin_site.admin_view(self.write), name="studies_section_write"),
            path("<int:pk>/practice/", self.admin_site.admin_view(practice.page), name="studies_section_practice"),
            *super().get_urls(),
        ]

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("study", "reuses")

    def get_inlines(self, request, obj):
        return self.inlines if obj is not None else ()

    def get_fieldsets(self, request, obj=None):
        if obj is None:
            return ((None, {"fields": ("study", "protocol", "purpose")}),)
        protocol = REGISTRY.get(obj.protocol)
        names = tuple(settings_fields(protocol.settings_form if protocol else None))
        shared = [("position", "purpose", "m"), "reuses", "shown_arms"]
        if protocol and not protocol.has_items and not obj.reuses_id:
            shared.remove("reuses")
        if not self.has_change_permission(request, obj):
            return (("What it is", {"fields": (("position", "purpose", "m"),)}),)  # the rest stands above, in words
        parts = [("What it is", {"fields": shared})]
        if names:
            parts.append(("How it is asked", {"fields": names}))
        return tuple(parts)

    def get_readonly_fields(self, request, obj=None):
        return ()

    def get_form(self, request, obj=None, change=False, **kwargs):
        if obj is None:
            studies = visible(request.user, Study.objects.filter(state="draft", archived_at=None), Action.EDIT)
            rows = {row.pk: row for row in studies.order_by("-pk")[:200]}
            form = type("AddSectionForm", (AddSectionForm,), {"study": RowChoice(rows, empty="choose a draft")})
            return super().get_form(request, obj, change, **kwargs | {"form": form})
        others = {row.pk: row for row in obj.study.sections.exclude(pk=obj.pk).filter(reuses=None).order_by("position")}
        arms = {row.pk: row for row in obj.study.arms.order_by("name")}
        protocol = REGISTRY.get(obj.protocol)
        kwargs |= _m_in_words(protocol)
        form = with_settings(self.form, protocol.settings_form if protocol else None)
        extra = {
            "reuses": RowChoice(
                others,
                empty="its own items",
                required=False,
                label="shows again",
                help_text="The first m items of that section, instead of new ones.",
            ),
            "shown_arms": RowChoices(arms, label="arms", help_text="None ticked: every arm meets this section."),
        }
        if not self.has_change_permission(request, obj):
            return super().get_form(request, obj, change, **kwargs | {"form": forms.ModelForm})
        return super().get_form(request, obj, change, **kwargs | {"form": type("SectionForm", (form,), extra)})

    def get_changeform_initial_data(self, request):
        return {name: value for name, value in super().get_changeform_initial_data(request).items() if name == "study"}

    def _fingerprint(self, section):
        return stale.fingerprint(section, section.questions.all())

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        section = self.get_object(request, object_id) if object_id else None
        if section is None:
            return super().changeform_view(request, object_id, form_url, extra_context)
        if request.method == "POST" and self.has_change_permission(request, section):
            with transaction.atomic():
                stale.lock(section.study_id)
                if any(name.endswith("-DELETE") for name in request.POST):
                    signals.clearing_tries.send(Study, study=section.study)
                section = self.get_object(request, object_id)
                if section is not None and (conflict := self._conflict(request, section)):
                    return conflict
                return super().changeform_view(request, object_id, form_url, extra_context)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _conflict(self, request, section):
        now = self._fingerprint(section)
        if request.POST.get(stale.FIELD, now) == now:
            return None
        fields = [
            n
            for _, o in self.get_fieldsets(request, section)
            for f in o["fields"]
            for n in ([f] if isinstance(f, str) else f)
        ]
        form = self.get_form(request, section, change=True, fields=fields)(request.POST, instance=section)
        return stale.conflict_page(
            request, self.admin_site, opts=self.opts, original=section, now=now, differing=stale.differing_fields(form)
        )

    def render_change_form(self, request, context, add=False, change=False, form_url="", obj=None):
        if obj is not None:
            protocol = REGISTRY.get(obj.protocol)
            may_change = self.has_change_permission(request, obj)
            context |= {
                "study": obj.study,
                "life": life.line(obj.study),
                "protocol": protocol,
                "seen_field": stale.FIELD,
                "seen": request.POST.get(stale.FIELD, "") or self._fingerprint(obj),
                "pen": self._pen(obj) if may_change and protocol and protocol.names_systems else None,
                "practice": practice.summary(obj),
                "pen_url": reverse("admin:studies_section_write", args=[obj.pk]),
                "frozen_settings": [] if may_change else _in_words(protocol, obj),
                "title": f"Section {obj.position}",
                "subtitle": obj.study.title,
                "show_save_and_add_another": False,
            }
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _pen(self, section, data=None):
        initial = {
            "which": "neighbours",
            "text": questions.default_text(section),
            "both": questions.asks_both(section),
            "plans": True,
        }
        return PenForm(section.study, data, initial=initial, prefix="pen")

    def save_related(self, request, form, formsets, change):
        super().save_related(request, form, formsets, change)
        section, columns = form.instance, changed_in(form, formsets)
        if not change:
            drafts.edited(section.study, request.user, made=f"section {section.position}")
        elif columns:
            drafts.edited(section.study, request.user, about=f"section {section.position}", columns=columns)

    def delete_model(self, request, obj):
        drafts.delete_section(obj, request.user)

    def get_deleted_objects(self, objs, request):
        # Its questions go with a section. Whatever else hangs on it (comparisons, sections that show it again) protects it.
        objs = list(objs)
        questions_of = Question.objects.filter(section__in=objs)
        protected = [f"Comparison: {row}" for row in Contrast.objects.filter(section__in=objs).select_related("x", "y")]
        protected += [f"Section that shows it again: {row}" for row in Section.objects.filter(reuses__in=objs)]
        listed = [[str(one), [f"Question: {q.key}" for q in questions_of if q.section_id == one.pk]] for one in objs]
        to_delete = [part for parts in listed for part in parts if part]
        return to_delete, {"questions": len(questions_of)}, set(), protected

    def response_add(self, request, obj, post_url_continue=None):
        self.message_user(request, "The section is there; this is what its protocol asks for.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:studies_section_change", args=[obj.pk]))

    def response_change(self, request, obj):
        if "_continue" in request.POST:
            return super().response_change(request, obj)
        self.message_user(request, f"Section {obj.position} is saved.", messages.SUCCESS)
        return HttpResponseRedirect(f"{reverse('admin:studies_study_change', args=[obj.study_id])}#sections-group")

    def response_delete(self, request, obj_display, obj_id):
        self.message_user(request, f"Section {obj_display} is deleted.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:studies_study_changelist"))

    def changelist_view(self, request, extra_context=None):
        return HttpResponseRedirect(reverse("admin:studies_study_changelist"))

    def write(self, request, pk):
        """Write the questions of some pairs, and the comparisons that they are for."""
        section = get_row(request.user, Action.EDIT, Section.objects.select_related("study"), pk=pk)
        home = reverse("admin:studies_section_change", args=[section.pk])
        if request.method != "POST":
            return HttpResponseRedirect(home)
        form = self._pen(section, request.POST)
        try:
            drafts.refuse_launched(section.study)
        except NotNow as refused:
            messages.warning(request, str(refused))
            return HttpResponseRedirect(home)
        if not form.is_valid():
            for name, errors in form.errors.items():
                messages.error(request, f"{form[name].label}: {' '.join(errors)}")
            return HttpResponseRedirect(f"{home}#pen")
        words = form.cleaned_data
        pairs = questions.pairs_of(section, words["which"], words["order"])
        chosen = {name: words[name] for name in ("criterion", "both", "plans")}
        written = questions.write_questions(section, pairs, words["text"], by=request.user, **chosen)
        messages.success(request, _written(*written))
        return HttpResponseRedirect(f"{home}#questions-group")


def _written(asked: int, planned: int) -> str:
    if not asked and not planned:
        return "Nothing was missing: every question and comparison of these pairs is there."
    return f"Written: {asked} question{'' if asked == 1 else 's'}, {planned} comparison{'' if planned == 1 else 's'}."


def _names_systems(section) -> bool:
    """Whether a section's questions have a place for two systems; one that names them where it must not is to be mended."""
    protocol = REGISTRY.get(section.protocol) if section is not None else None
    return protocol is None or protocol.names_systems or section.questions.exclude(x=None).exists()


def _m_in_words(protocol) -> dict[str, dict[str, str]]:
    """What m counts under this protocol, and what it may be."""
    if protocol is None:
        return {}
    field = Section._meta.get_field("m")
    most = next(each.limit_value for each in field.validators if isinstance(each, MaxValueValidator))
    named = field_labels.LABELS["section"]
    if not protocol.has_items:
        return {
            "labels": named | {"m": "Shown (m)"},
            "help_texts": {"m": "0: this protocol shows nothing beside its questions."},
        }
    counted = f"How many each annotator is shown here. From 1 to {most}, by default {field.default}."
    return {
        "labels": named | {"m": f"{protocol.m_counts.capitalize()} for an annotator (m)"},
        "help_texts": {"m": counted},
    }


def _in_words(protocol, section) -> list[tuple[str, str]]:
    """The settings of a frozen section, as labels and words."""
    arms = ", ".join(str(row.arm) for row in section.section_arms.select_related("arm")) or "all"
    rows = [("arms", arms), ("shows again", str(section.reuses or "its own items"))]
    if protocol and protocol.settings_form:
        for name, field in protocol.settings_form().fields.items():
            value = section.settings.get(name, field.initial)
            choices = dict(getattr(field, "choices", ()))
            rows.append((str(field.label or name.replace("_", " ")), str(choices.get(value, value))))
    return rows
