"""The tables of systems, arms, sections and exclusion rules on a study's page."""

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils.html import format_html

from studies.admin.forms.cleaning import CleanTextMixin
from studies.models import Arm, ExclusionRule, Section, System, rules
from studies.protocols import REGISTRY

from .. import field_labels
from ..forms.fields import RowMultipleChoiceField, choice_field, choices_of
from ..forms.settings import SettingsCell, SettingsWidget
from .base import (
    DistinctNamesFormSet,
    LabelledDeleteFormSet,
    OrderedFormSet,
    OrderedFormSetMixin,
    StudyRowsInline,
    SwappableFormSetMixin,
)


class SystemForm(CleanTextMixin, forms.ModelForm):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # heval makes the source of texts that only test questions show. A system under evaluation cannot become one.
        if "reference" in self.fields and self.instance.reference != System.Reference.TEST:
            field = choice_field(self, "reference")
            field.choices = [choice for choice in choices_of(field) if choice[0] != System.Reference.TEST]


class SystemInline(StudyRowsInline):
    model = System
    fields = ("name", "is_human", "reference")
    form_class = SystemForm
    formset = DistinctNamesFormSet


class ArmForm(CleanTextMixin, forms.ModelForm):
    Meta = field_labels.build_form_meta("arm")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk and "shown_systems" in self.fields:
            self.initial["shown_systems"] = [row.system_id for row in self.instance.arm_systems.all()]

    def _save_m2m(self):
        super()._save_m2m()  # type: ignore[misc]  # private in Django
        if "shown_systems" in self.changed_data:
            self.instance.systems.set(self.cleaned_data["shown_systems"])


class ArmFormSet(DistinctNamesFormSet):
    def clean(self):
        super().clean()
        if self.instance.pk and not any(
            form for form in self.forms if getattr(form, "cleaned_data", None) and not form.cleaned_data.get("DELETE")
        ):
            raise ValidationError("A study needs at least one arm. Keep one: with one arm, all annotators do the same.")


class ArmInline(StudyRowsInline):
    model = Arm
    fields = ("name", "condition", "shown_systems", "domain", "wanted", "reward", "minutes", "instructions")
    form_class = ArmForm
    formset = ArmFormSet
    verbose_name_plural = "arms (between-subject cells)"

    def get_queryset(self, request):
        return super().get_queryset(request).prefetch_related("arm_systems__system")

    @admin.display(description="systems")
    def shown_systems(self, arm):
        return ", ".join(row.system.name for row in arm.arm_systems.all()) or "all"

    def extra_fields(self, study):
        systems = {row.pk: row for row in study.systems.judged().order_by("name")} if study and study.pk else {}
        return {
            "shown_systems": RowMultipleChoiceField(systems, label="systems", help_text="None ticked: all."),
            "instructions": forms.CharField(
                required=False,
                widget=forms.Textarea(attrs={"rows": 2, "cols": 26}),
                help_text="Replaces the study's instructions in this arm. Markdown.",
            ),
        }


class SectionInline(StudyRowsInline):
    model = Section
    fields = ("position", "protocol_label", "purpose", "m", "question_count", "open_link")
    readonly_fields = ("protocol_label", "question_count", "open_link")
    formset = OrderedFormSet
    form_class = SystemForm
    verbose_name_plural = "sections, in the order that annotators see"

    def get_formset(self, request, obj=None, **kwargs):
        return super().get_formset(request, obj, labels=field_labels.LABELS["section"], **kwargs)

    def has_add_permission(self, request, obj=None):
        return False  # a new section has a page of its own, because its protocol comes first

    def get_queryset(self, request):
        return super().get_queryset(request).prefetch_related("questions")

    @admin.display(description="protocol")
    def protocol_label(self, section):
        protocol = REGISTRY.get(section.protocol)
        return protocol.label if protocol else f"{section.protocol} (not installed)"

    @admin.display(description="questions")
    def question_count(self, section):
        return len(section.questions.all())

    @admin.display(description="")
    def open_link(self, section):
        url = reverse("admin:studies_section_change", args=[section.pk])
        return format_html('<a href="{}">Open section {}</a>', url, section.position)


class RuleForm(SettingsCell):
    Meta = field_labels.build_form_meta("rule")

    parameters = forms.Field(
        required=False, label="Settings", widget=SettingsWidget, help_text="They appear when the rule is saved."
    )

    def settings_form_of(self, instance):
        rule = rules.REGISTRY.get(instance.rule)
        return rule.settings_form if rule else None


class RuleFormSet(SwappableFormSetMixin, OrderedFormSetMixin, LabelledDeleteFormSet):
    unique_column = "rule"

    def clean(self):
        super().clean()
        remaining = [f for f in self.forms if getattr(f, "cleaned_data", None) and not f.cleaned_data.get("DELETE")]
        seen = set()
        for form in remaining:
            if (rule := form.cleaned_data.get("rule")) in seen:
                form.add_error("rule", "Two rows have this rule. Delete one of them.")
            seen.add(rule)


class ExclusionRuleInline(StudyRowsInline):
    model = ExclusionRule
    fields = ("position", "rule", "role", "parameters")
    form_class = RuleForm
    formset = RuleFormSet
    verbose_name_plural = "exclusion rules, declared before the first answer"

    @admin.display(description="settings")
    def parameters(self, row):
        """Return the declared settings, and the rule's defaults for the others."""
        rule = rules.REGISTRY.get(row.rule)
        fields = rule.settings_form().fields if rule and rule.settings_form else {}
        settings = {name: field.initial for name, field in fields.items()} | row.settings
        labels = {name: field.label or name.replace("_", " ") for name, field in fields.items()}
        return ", ".join(f"{labels.get(name, name)} = {value}" for name, value in settings.items()) or "none"
