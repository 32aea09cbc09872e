"""The questions on a section's page, each with the fields of its scale."""

from copy import deepcopy

from django import forms
from django.contrib import admin

from studies.admin.forms.cleaning import find_lookalike_name
from studies.admin.permissions import InlinePermissions
from studies.models import Question
from studies.protocols import REGISTRY

from .. import field_labels
from ..forms.fields import OptionsField, RowChoiceField
from ..forms.scales import SCALE_FIELDS, ScaleForm, scale_summary_text
from .base import ExtraRowsMixin, LabelledDeleteFormSet, OrderedFormSetMixin, SwappableFormSetMixin


class QuestionForm(ScaleForm):
    Meta = field_labels.build_form_meta("question")

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        x, y = cleaned.get("x"), cleaned.get("y")
        if bool(x) != bool(y):
            self.add_error("y" if x else "x", "Only one system is chosen. Choose two systems or none.")
        elif x and x == y:
            self.add_error("y", "Choose another system: a system cannot be compared with itself.")
        return cleaned


class QuestionFormSet(SwappableFormSetMixin, OrderedFormSetMixin, LabelledDeleteFormSet):
    unique_column = "key"

    def clean(self):
        super().clean()
        seen: list[str] = []
        for form in self.forms:
            key = (getattr(form, "cleaned_data", None) or {}).get("key")
            if not key or form.cleaned_data.get("DELETE"):
                continue
            if other := find_lookalike_name(key, seen):
                form.add_error("key", f"Another question of this section has the key “{other}”. Choose another key.")
            seen.append(key)


class QuestionInline(ExtraRowsMixin, InlinePermissions, admin.StackedInline):
    model = Question
    form = QuestionForm
    formset = QuestionFormSet
    fieldsets = (
        (None, {"fields": (("position", "key", "criterion"), "text", ("x", "y"), "scale_kind")}),
        (
            "Points, labels or answers",
            {
                "fields": (
                    ("scale_minimum", "scale_maximum"),
                    ("scale_low", "scale_middle", "scale_high"),
                    "scale_labels",
                    ("scale_is_best_first", "scale_is_lower_better"),
                    "scale_options",
                    ("scale_minimum_length", "scale_maximum_length", "scale_is_long"),
                ),
                "classes": ["scale-parts"],
            },
        ),
        ("More", {"fields": ("required", "skip_reasons", "help"), "classes": ["collapse"]}),
    )

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("x", "y")

    def get_fieldsets(self, request, obj=None):
        if self.has_change_permission(request, obj):
            if _names_systems(obj):
                return self.fieldsets
            (title, first), *others = self.fieldsets
            return ((title, first | {"fields": tuple(name for name in first["fields"] if name != ("x", "y"))}), *others)
        return ((None, {"fields": (("key", "criterion"), "text", ("x", "y"), "scale_text", "required", "help")}),)

    def get_readonly_fields(self, request, obj=None):
        return () if self.has_change_permission(request, obj) else ("scale_text",)

    @admin.display(description="kind of answer")
    def scale_text(self, question):
        return scale_summary_text(question.scale)

    def get_formset(self, request, obj=None, **kwargs):
        saved = obj is not None and obj.pk
        systems = {row.pk: row for row in obj.study.systems.judged().order_by("name")} if saved else {}
        kind = deepcopy(SCALE_FIELDS["kind"])
        protocol = REGISTRY.get(obj.protocol) if saved else None
        kind.initial = protocol.default_scale_kind if protocol else None
        extra = {
            "scale_kind": kind,
            "skip_reasons": OptionsField(
                allows_screening=False,
                rows=2,
                required=False,
                label="reasons to skip",
                help_text="One per line: key | label, such as “cannot_judge | I cannot judge this”. Empty: no reason is offered.",
            ),
            "text": forms.CharField(
                label="Question",
                widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
                help_text=protocol.placeholder_help if protocol else "",
            ),
            "help": forms.CharField(
                required=False,
                widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
                help_text="Shown under the question. Markdown.",
            ),
        }
        if _names_systems(obj):
            extra |= {
                name: RowChoiceField(
                    systems, empty="no system", required=False, label=name, help_text=f"{{{name}}} in the question."
                )
                for name in ("x", "y")
            }
        return super().get_formset(request, obj, form=type("QuestionForm", (self.form,), extra), **kwargs)


def _names_systems(section) -> bool:
    """Return whether questions of this section have fields for two systems.

    A question that wrongly names systems needs the fields too, so that it can be corrected.
    """
    protocol = REGISTRY.get(section.protocol) if section is not None else None
    return protocol is None or protocol.has_directed_questions or section.questions.exclude(x=None).exists()
