"""The parts of a study that stand on its own page: members, systems, arms, sections, contrasts, exclusion rules."""

import secrets

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import CharField, F, Value
from django.db.models.functions import Cast, Concat
from django.forms.models import BaseInlineFormSet
from django.urls import reverse
from django.utils.html import format_html

from studies.models import rules

from .. import access
from ..access import Action
from ..models import Arm, Contrast, ExclusionRule, Section, StudyMember, System
from ..protocols import REGISTRY
from . import field_labels
from .access import InlineRoles
from .forms.fields import RowChoice, RowChoices
from .forms.settings import SettingsCell, SettingsWidget
from .forms.words import CleanWords, names_once

MOVED = 10_000  # positions are moved here while they are given anew, so that two rows may change places


class MoreRows:
    """Empty rows where the address asks for them: how a row is added without a script (``admin/studies/_more_rows.html``)."""

    most = 20

    def get_extra(self, request, obj=None, **kwargs):
        asked = request.GET.get("rows", "")
        return min(int(asked), self.most) if asked.isascii() and asked.isdecimal() else 0


class Rows(MoreRows, InlineRoles, admin.TabularInline):
    """A table whose every field says, to who cannot see the head of the column, what it is."""

    form_class: type[forms.ModelForm] = forms.ModelForm

    def extra_fields(self, study) -> dict[str, forms.Field]:
        """Fields that depend on the study: choices among its own rows."""
        return {}

    def get_formset(self, request, obj=None, **kwargs):
        form = type(self.form_class.__name__, (Labelled, self.form_class), self.extra_fields(obj))
        return super().get_formset(request, obj, form=form, **kwargs)


class Labelled:
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            row = f" of {self.instance}" if self.instance.pk else " of the new row"
            field.widget.attrs.setdefault("aria-label", f"{field.label or name}{row}")


class LabelledDeletion(BaseInlineFormSet):
    def add_fields(self, form, index):
        super().add_fields(form, index)
        if "DELETE" in form.fields:
            form.fields["DELETE"].widget.attrs["aria-label"] = (
                f"Delete {form.instance if form.instance.pk else 'the new row'}"
            )


class Traded:
    """Mixin for formsets: two rows may trade what each has for itself alone, and a new row may take it from one that goes.

    The database looks at each row as it is saved. Those that change or go are marked first, in the column ``marked``.
    """

    marked = "name"

    def save(self, commit=True):
        rows = [form.instance.pk for form in self.initial_forms if form.has_changed() or form in self.deleted_forms]
        if commit and rows:
            mark = Concat(Value(f"{secrets.token_hex(8)} "), Cast("pk", CharField()))
            self.model.objects.filter(pk__in=rows).update(**{self.marked: mark})
        return super().save(commit)


class Named(Traded, LabelledDeletion):
    """Rows whose names differ to a person's eye."""

    def clean(self):
        kept = [form for form in self.forms if hasattr(form, "cleaned_data") and not form.cleaned_data.get("DELETE")]
        names_once(((form, form.cleaned_data.get("name") or "") for form in kept), self.model._meta.verbose_name)
        super().clean()


class MemberForm(forms.ModelForm):
    username = forms.CharField(max_length=150, help_text="Of a colleague who may log in.")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["username"].disabled = True
            self.initial["username"] = self.instance.user.get_username()

    def clean_username(self):
        if self.instance.pk:
            return self.cleaned_data["username"]
        model = get_user_model()
        try:
            lookup = {model.USERNAME_FIELD: self.cleaned_data["username"]}
            self.instance.user = model.objects.get(**lookup, is_active=True)
        except model.DoesNotExist:
            raise ValidationError("Nobody with this name may log in here.") from None
        return self.cleaned_data["username"]


class MemberFormSet(LabelledDeletion):
    def clean(self):
        super().clean()
        if any(form.errors for form in self.forms):
            return
        kept = [form for form in self.forms if form.instance.user_id and not form.cleaned_data.get("DELETE")]
        users = [form.instance.user_id for form in kept]
        if len(users) > len(set(users)):
            raise ValidationError("A colleague stands here twice.")
        if self.instance.pk and not any(form.cleaned_data["role"] in access.OWNERS for form in kept):
            raise ValidationError("A study needs at least one owner.")


class Members(Rows):
    model = StudyMember
    fields = ("username", "role")
    form_class = MemberForm
    formset = MemberFormSet
    is_design = False
    action = Action.SHARE
    verbose_name = "person"
    verbose_name_plural = "people who may see or change this study"

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("user")

    # Methods named as a form's own fields say them where they can only be looked at.

    @admin.display(description="user name")
    def username(self, member):
        return member.user.get_username()


class SystemForm(CleanWords, forms.ModelForm):
    pass


class Systems(Rows):
    model = System
    fields = ("name", "is_human", "reference")
    form_class = SystemForm
    formset = Named


class ArmForm(CleanWords, forms.ModelForm):
    Meta = field_labels.meta("arm")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk and "shown_systems" in self.fields:
            self.initial["shown_systems"] = [row.system_id for row in self.instance.arm_systems.all()]

    def _save_m2m(self):
        super()._save_m2m()
        if "shown_systems" in self.changed_data:
            self.instance.systems.set(self.cleaned_data["shown_systems"])


class ArmFormSet(Named):
    def clean(self):
        super().clean()
        if self.instance.pk and not any(
            form for form in self.forms
            if getattr(form, "cleaned_data", None) and not form.cleaned_data.get("DELETE")
        ):  # fmt: skip
            raise ValidationError("A study has at least one arm; with one, everybody does the same.")


class Arms(Rows):
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
        systems = {row.pk: row for row in study.systems.order_by("name")} if study and study.pk else {}
        return {
            "shown_systems": RowChoices(systems, label="systems", help_text="None ticked: all."),
            "instructions": forms.CharField(
                required=False,
                widget=forms.Textarea(attrs={"rows": 2, "cols": 26}),
                help_text="Replaces the study's instructions for this arm. Markdown.",
            ),
        }


class Ordered:
    """Mixin for formsets of rows with a ``position``: any numbers, also equal ones, are given anew as 1, 2, 3 …

    The rows are moved aside first, so that two may change places though each position is there once. Where nobody touched the order,
    the rows keep the numbers that they have.
    """

    def add_fields(self, form, index):
        super().add_fields(form, index)
        if "position" in form.fields:
            form.fields["position"].required = False
            form._get_validation_exclusions = _without_position(form._get_validation_exclusions)

    def _ordered(self):
        kept = [
            form for form in self.forms
            if form not in self.deleted_forms and (form.instance.pk or form.has_changed()) and form.is_valid()
        ]  # fmt: skip
        far = float("inf")
        given = [(form.cleaned_data.get("position"), number, form) for number, form in enumerate(kept)]
        return [form for _, _, form in sorted(given, key=lambda p: (far if p[0] is None else p[0], p[1]))]

    def _is_order_changed(self):
        return bool(self.deleted_forms) or any(
            form.has_changed() and ("position" in form.changed_data or not form.instance.pk) for form in self.forms
        )

    def save(self, commit=True):
        if not self._is_order_changed():
            return super().save(commit)
        in_order = self._ordered()
        moved = []
        for number, form in enumerate(in_order, 1):
            if form.instance.pk and form.initial.get("position") != number:
                moved.append(form.instance)
            form.instance.position = number
        if not commit:
            return super().save(commit)
        gone = [form.instance.pk for form in self.deleted_forms if form.instance.pk]
        if aside := [row.pk for row in moved] + gone:
            self.model.objects.filter(pk__in=aside).update(position=F("position") + MOVED)
        saved = super().save(commit)
        self.model.objects.bulk_update([row for row in moved if row not in saved], ["position"])
        return saved


def _without_position(exclusions):
    def excluded():
        return exclusions() | {"position"}

    return excluded


class OrderedRows(Ordered, LabelledDeletion):
    pass


class Sections(Rows):
    model = Section
    fields = ("position", "protocol_words", "purpose", "m", "asked", "open_it")
    readonly_fields = ("protocol_words", "asked", "open_it")
    formset = OrderedRows
    form_class = SystemForm
    verbose_name_plural = "sections, in the order in which they are met"

    def get_formset(self, request, obj=None, **kwargs):
        return super().get_formset(request, obj, labels=field_labels.LABELS["section"], **kwargs)

    def has_add_permission(self, request, obj=None):
        return False  # a section begins with its protocol, on a page of its own

    def get_queryset(self, request):
        return super().get_queryset(request).prefetch_related("questions")

    @admin.display(description="protocol")
    def protocol_words(self, section):
        protocol = REGISTRY.get(section.protocol)
        return protocol.label if protocol else f"{section.protocol} (not installed)"

    @admin.display(description="questions")
    def asked(self, section):
        return len(section.questions.all())

    @admin.display(description="")
    def open_it(self, section):
        url = reverse("admin:studies_section_change", args=[section.pk])
        return format_html('<a href="{}">Open section {}</a>', url, section.position)


class ContrastForm(CleanWords, forms.ModelForm):
    Meta = field_labels.meta("contrast")

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        x, y = cleaned.get("x"), cleaned.get("y")
        first, second = cleaned.get("x_condition"), cleaned.get("y_condition")
        if bool(x) != bool(y):
            self.add_error("y" if x else "x", "A comparison names two systems.")
        elif x and x == y:
            self.add_error("y", "A system is not compared with itself.")
        if bool(first) != bool(second):
            self.add_error("y_condition" if first else "x_condition", "A comparison names two conditions.")
        elif first and first == second:
            self.add_error("y_condition", "A condition is not compared with itself.")
        if x and first:
            self.add_error("x_condition", "Name two systems or two conditions, not both.")
        if cleaned.get("margin") == 0:
            self.add_error("margin", "A margin is above 0; leave it empty for none.")
        return cleaned

    @property
    def identity(self):
        """What makes it the same comparison, also reversed."""
        c = self.cleaned_data
        pair = {c.get("x"), c.get("y")} - {None} or {c.get("x_condition"), c.get("y_condition")} - {"", None}
        return frozenset(pair), c.get("section"), c.get("estimand"), c.get("criterion")


class ContrastFormSet(Traded, LabelledDeletion):
    marked = "criterion"

    def clean(self):
        super().clean()
        seen = set()
        for form in self.forms:
            if form.errors or not form.has_changed() and not form.instance.pk or form.cleaned_data.get("DELETE"):
                continue
            if form.identity in seen:
                form.add_error("y", "This comparison stands twice (a reversed one is the same).")
            seen.add(form.identity)


class Contrasts(Rows):
    model = Contrast
    fields = (
        "x", "expected", "y", "role", "criterion", "section", "estimand", "margin", "level", "family", "x_condition", "y_condition",
    )  # fmt: skip
    form_class = ContrastForm
    formset = ContrastFormSet
    verbose_name = "planned comparison"
    verbose_name_plural = "planned comparisons"
    classes = ("wide-table",)

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("x", "y", "section")

    def extra_fields(self, study):
        saved = study is not None and study.pk
        systems = {row.pk: row for row in study.systems.order_by("name")} if saved else {}
        sections = {row.pk: row for row in study.sections.order_by("position")} if saved else {}
        live = [s for s in sections.values() if s.purpose == Section.Purpose.LIVE and s.protocol in REGISTRY]
        estimands = {
            key: words for section in live for key, words in REGISTRY[section.protocol].estimands(section).items()
        }
        return {
            "x": RowChoice(systems, empty="x", required=False, label="x"),
            "y": RowChoice(systems, empty="y", required=False, label="y"),
            "section": RowChoice(sections, empty="all that can", required=False, label="Section"),
            "estimand": forms.ChoiceField(
                choices=[("", "(the section's own)"), *((key, f"{key}: {words}") for key, words in estimands.items())],
                required=False,
                label=field_labels.LABELS["contrast"]["estimand"],
            ),
        }


class RuleForm(SettingsCell):
    Meta = field_labels.meta("rule")

    parameters = forms.Field(
        required=False, label="Settings", widget=SettingsWidget, help_text="Asked for once the rule is saved."
    )

    def settings_form_of(self, instance):
        rule = rules.REGISTRY.get(instance.rule)
        return rule.settings_form if rule else None


class RuleFormSet(Traded, Ordered, LabelledDeletion):
    marked = "rule"

    def clean(self):
        super().clean()
        kept = [f for f in self.forms if getattr(f, "cleaned_data", None) and not f.cleaned_data.get("DELETE")]
        seen = set()
        for form in kept:
            if (rule := form.cleaned_data.get("rule")) in seen:
                form.add_error("rule", "This rule stands twice.")
            seen.add(rule)


class ExclusionRules(Rows):
    model = ExclusionRule
    fields = ("position", "rule", "role", "parameters")
    form_class = RuleForm
    formset = RuleFormSet
    verbose_name_plural = "exclusion rules, declared before the first answer"

    @admin.display(description="settings")
    def parameters(self, row):
        """What holds: what was declared, else the rule's own default."""
        rule = rules.REGISTRY.get(row.rule)
        fields = rule.settings_form().fields if rule and rule.settings_form else {}
        held = {name: field.initial for name, field in fields.items()} | row.settings
        named = {name: field.label or name.replace("_", " ") for name, field in fields.items()}
        return ", ".join(f"{named.get(name, name)} = {value}" for name, value in held.items()) or "none"


INLINES = [Systems, Arms, Sections, Contrasts, ExclusionRules, Members]
