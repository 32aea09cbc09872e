"""Tables of rows on a study's page, one for each part of the study. A section's page has the table of its questions."""

import secrets
from copy import deepcopy
from typing import TYPE_CHECKING

from django import forms
from django.contrib import admin
from django.contrib.admin.options import InlineModelAdmin
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import CharField, F, Model, Value
from django.db.models.functions import Cast, Concat
from django.forms.models import BaseInlineFormSet, BaseModelFormSet
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.text import slugify

from studies import access
from studies.access import Action
from studies.admin.forms import CleanTextMixin, add_lookalike_name_errors, find_lookalike_name
from studies.admin.permissions import InlinePermissions
from studies.design.comparisons import families_before, hypothesis_problem, too_wide_margin_problem
from studies.models import (
    Arm,
    ComparisonFamily,
    Contrast,
    ExclusionRule,
    Question,
    Section,
    StudyMember,
    System,
    design,
)
from studies.protocols import REGISTRY
from studies.protocols.base.fields import values_of_new_row
from studies.services.questions import find_free_name

from . import field_labels
from .forms import (
    SCALE_FIELDS,
    OptionsField,
    RowChoiceField,
    RowMultipleChoiceField,
    ScaleForm,
    SettingsWidget,
    changed_field_names,
    choice_field,
    choices_of,
    merge_settings,
    scale_summary_text,
)

# Base classes for the tables of a study's page: a label for each field, distinct names, and renumbered positions.


# The bases of the mixins below, while types are checked.
if TYPE_CHECKING:
    _ModelForm = forms.ModelForm

    class _FormSet(BaseModelFormSet):
        model: type[Model]
else:
    _ModelForm = _FormSet = object

KEY_STEM = 40  # characters of a name that is made from a text; a number may follow
POSITION_OFFSET = 10_000  # offset of positions while rows are renumbered, so that two rows can be swapped


class ExtraRowsMixin:
    """Mixin for empty rows that the URL asks for: it adds rows without a script (``admin/studies/_more_rows.html``)."""

    most = 20

    def get_extra(self, request, obj=None, **kwargs):
        n_rows = request.GET.get("rows", "")
        return min(int(n_rows), self.most) if n_rows.isascii() and n_rows.isdecimal() else 0


class StudyRowsInline(ExtraRowsMixin, InlinePermissions, admin.TabularInline):
    """A table in which each field has its own label, for people who cannot see the column's heading."""

    form_class: type[forms.ModelForm] = forms.ModelForm

    def extra_fields(self, study) -> dict[str, forms.Field]:
        """Return fields that depend on the study: choices among its own rows."""
        return {}

    def get_formset(self, request, obj=None, **kwargs):
        form = type(self.form_class.__name__, (RowLabelsMixin, self.form_class), self.extra_fields(obj))
        return super().get_formset(request, obj, form=form, **kwargs)


class RowLabelsMixin(_ModelForm):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            row = f" of {self.instance}" if self.instance.pk else " of the new row"
            field.widget.attrs.setdefault("aria-label", f"{field.label or name}{row}")


class LabelledDeleteFormSet(BaseInlineFormSet):
    def add_fields(self, form, index):
        super().add_fields(form, index)
        if "DELETE" in form.fields:
            form.fields["DELETE"].widget.attrs["aria-label"] = (
                f"Delete {form.instance if form.instance.pk else 'the new row'}"
            )


class SwappableFormSetMixin(_FormSet):
    """Mixin for formsets with a unique column: two rows can swap its values, and a new row can take over a deleted row's value.

    The database checks each row when it is saved. So changed and deleted rows first get temporary values in ``unique_column``.
    """

    unique_column = "name"

    def save(self, commit=True):
        rows = [form.instance.pk for form in self.initial_forms if form.has_changed() or form in self.deleted_forms]
        if commit and rows:
            mark = Concat(Value(f"{secrets.token_hex(8)} "), Cast("pk", CharField()))
            self.model._default_manager.filter(pk__in=rows).update(**{self.unique_column: mark})
        return super().save(commit)


class DistinctNamesFormSet(SwappableFormSetMixin, LabelledDeleteFormSet):
    """A formset of rows whose names must look different to a person."""

    def clean(self):
        remaining = [f for f in self.forms if hasattr(f, "cleaned_data") and not f.cleaned_data.get("DELETE")]
        add_lookalike_name_errors(
            ((form, form.cleaned_data.get("name") or "") for form in remaining), self.model._meta.verbose_name
        )
        super().clean()


class OrderedFormSetMixin(_FormSet):
    """Mixin for formsets of rows with a ``position``. It renumbers the rows as 1, 2, 3 …, whatever numbers were entered.

    The rows first move to temporary positions, because positions are unique. If the order did not change, the rows keep their
    numbers.
    """

    def add_fields(self, form, index):
        super().add_fields(form, index)
        if "position" in form.fields:
            form.fields["position"].required = False
            form._get_validation_exclusions = _without_position(form._get_validation_exclusions)

    def _ordered(self):
        remaining = [
            form
            for form in self.forms
            if form not in self.deleted_forms and (form.instance.pk or form.has_changed()) and form.is_valid()
        ]
        far = float("inf")
        entered = [(form.cleaned_data.get("position"), number, form) for number, form in enumerate(remaining)]
        return [form for _, _, form in sorted(entered, key=lambda p: (far if p[0] is None else p[0], p[1]))]

    def _is_order_changed(self):
        return bool(self.deleted_forms) or any(
            form.has_changed() and ("position" in form.changed_data or not form.instance.pk) for form in self.forms
        )

    def save(self, commit=True):
        if not self._is_order_changed():
            return super().save(commit)
        in_order = self._ordered()
        moved_rows = []
        for number, form in enumerate(in_order, 1):
            if form.instance.pk and form.initial.get("position") != number:
                moved_rows.append(form.instance)
            form.instance.position = number
        if not commit:
            return super().save(commit)
        deleted_ids = [form.instance.pk for form in self.deleted_forms if form.instance.pk]
        if aside := [row.pk for row in moved_rows] + deleted_ids:
            self.model._default_manager.filter(pk__in=aside).update(position=F("position") + POSITION_OFFSET)
        saved = super().save(commit)
        self.model._default_manager.bulk_update([row for row in moved_rows if row not in saved], ["position"])
        return saved


def _without_position(exclusions):
    def excluded():
        return exclusions() | {"position"}

    return excluded


class OrderedFormSet(OrderedFormSetMixin, LabelledDeleteFormSet):
    pass


# The cards of planned comparisons on a study's page.


RARE_CONTRAST_FIELDS = (
    "population", "role", "family", "section", "criterion", "estimand", "level", "x_condition", "y_condition",
)  # fmt: skip


class ContrastForm(CleanTextMixin, forms.ModelForm):
    Meta = field_labels.build_form_meta("contrast")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.instance.pk is None:
            self.initial["population"] = Contrast.Population.PEOPLE_AND_PROMPTS
        self.fields["hypothesis"].required = False

    def clean_hypothesis(self):
        return self.cleaned_data["hypothesis"] or Contrast.Hypothesis.DIFFERENCE

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        x, y = cleaned.get("x"), cleaned.get("y")
        first, second = cleaned.get("x_condition"), cleaned.get("y_condition")
        if bool(x) != bool(y):
            self.add_error("y" if x else "x", "Only one system is chosen. Choose two systems.")
        elif x and x == y:
            self.add_error("y", "Choose another system: a system cannot be compared with itself.")
        if bool(first) != bool(second):
            self.add_error(
                "y_condition" if first else "x_condition", "Only one condition is chosen. Choose two conditions."
            )
        elif first and first == second:
            self.add_error("y_condition", "Choose another condition: a condition cannot be compared with itself.")
        if x and first:
            self.add_error(
                "x_condition", "Systems and conditions are chosen. Choose two systems or two conditions, not both."
            )
        if cleaned.get("margin") == 0:
            self.add_error("margin", "The margin must be above 0. Leave it empty for none.")
        if (contradiction := self.hypothesis_problem(())) and contradiction[0] not in self.errors:
            self.add_error(contradiction[0], contradiction[1].text)
        return cleaned

    def hypothesis_problem(self, sections):
        """Return the column that contradicts the hypothesis, and why, or None. ``sections``: see ``studies.design.comparisons``."""
        cleaned = self.cleaned_data
        return hypothesis_problem(
            cleaned.get("hypothesis", Contrast.Hypothesis.DIFFERENCE),
            margin=cleaned.get("margin"),
            has_systems=bool(cleaned.get("x")),
            expected=cleaned.get("expected") or "",
            estimand=cleaned.get("estimand") or "",
            criterion=cleaned.get("criterion") or "",
            sections=sections,
        )

    @property
    def has_unusual_settings(self):
        """Return whether a rare field has an error, or another value than in a new row. Its card then shows the rare fields."""
        usual = Contrast(population=Contrast.Population.PEOPLE_AND_PROMPTS)
        return any(
            name in self.errors
            or str((self[name].value() if name in self.fields else getattr(self.instance, name)) or "")
            != str(getattr(usual, name) or "")
            for name in RARE_CONTRAST_FIELDS
        )

    @property
    def identity(self):
        """Return what identifies the comparison. A reversed comparison has the same identity."""
        c = self.cleaned_data
        pair = {c.get("x"), c.get("y")} - {None} or {c.get("x_condition"), c.get("y_condition")} - {"", None}
        return frozenset(pair), c.get("section"), c.get("estimand"), c.get("criterion")


class ContrastFormSet(SwappableFormSetMixin, LabelledDeleteFormSet):
    unique_column = "criterion"

    def clean(self):
        super().clean()
        seen = set()
        sections = self._live_sections_with_questions()
        rows: list[ContrastForm] = self.forms  # type: ignore[assignment]  # of ContrastInline
        for form in rows:
            if form.errors or not form.has_changed() and not form.instance.pk or form.cleaned_data.get("DELETE"):
                continue
            if form.identity in seen:
                form.add_error("y", "Two rows have this comparison (x and y may be reversed). Delete one of them.")
            seen.add(form.identity)
            cleaned = form.cleaned_data
            own_sections = [pair for pair in sections if cleaned.get("section") in (None, pair[0])]
            if too_wide := too_wide_margin_problem(
                cleaned.get("margin"), cleaned.get("estimand") or "", cleaned.get("criterion") or "", own_sections
            ):
                form.add_error("margin", too_wide.text)
            if contradiction := form.hypothesis_problem(own_sections):
                form.add_error(contradiction[0], contradiction[1].text)

    def _live_sections_with_questions(self):
        if self.instance.pk is None:
            return []
        sections = self.instance.sections.filter(purpose=Section.Purpose.LIVE).order_by("position")
        return [(section, list(section.questions.all())) for section in sections.prefetch_related("questions")]


class ContrastInline(StudyRowsInline):
    model = Contrast
    template = "admin/studies/comparison_cards.html"
    fieldsets = (
        (None, {"fields": ("x", "expected", "y", "hypothesis", "margin")}),
        ("More settings", {"fields": RARE_CONTRAST_FIELDS}),
    )
    form_class = ContrastForm
    formset = ContrastFormSet
    verbose_name = "planned comparison"
    verbose_name_plural = "planned comparisons"

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("x", "y", "section")

    def extra_fields(self, study):
        saved = study is not None and study.pk
        systems = {row.pk: row for row in study.systems.judged().order_by("name")} if saved else {}
        sections = (
            {row.pk: row for row in study.sections.prefetch_related("questions").order_by("position")} if saved else {}
        )
        live = [s for s in sections.values() if s.purpose == Section.Purpose.LIVE and s.protocol in REGISTRY]
        estimands = {
            key: label for section in live for key, label in REGISTRY[section.protocol].estimands(section).items()
        }
        defaults = dict.fromkeys(filter(None, (REGISTRY[s.protocol].default_estimand(s) for s in live)))
        return {
            "x": RowChoiceField(systems, empty="x", required=False, label="x"),
            "y": RowChoiceField(systems, empty="y", required=False, label="y"),
            "section": RowChoiceField(sections, empty="all possible sections", required=False, label="Section"),
            "estimand": forms.ChoiceField(
                choices=[
                    ("", f"{', '.join(defaults)} (default)" if defaults else "(default)"),
                    *((key, f"{key}: {label}") for key, label in estimands.items()),
                ],
                required=False,
                label=field_labels.LABELS["contrast"]["estimand"],
            ),
        }


# The table of families of comparisons on a study's page.


class FamilyForm(CleanTextMixin, forms.ModelForm):
    Meta = field_labels.build_form_meta("family")

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("name") and cleaned.get("name") == cleaned.get("after"):
            self.add_error("after", "A family cannot wait for itself. Enter another family, or nothing.")
        return cleaned


class FamilyFormSet(DistinctNamesFormSet):
    def clean(self):
        super().clean()
        remaining = [f for f in self.forms if getattr(f, "cleaned_data", None) and not f.cleaned_data.get("DELETE")]
        after = {form.cleaned_data.get("name", ""): form.cleaned_data.get("after", "") for form in remaining}
        for form in remaining:
            name = form.cleaned_data.get("name", "")
            if name != after[name] and name in families_before(name, after):
                form.add_error("after", "These families wait for each other. Empty the field in one of them.")


class ComparisonFamilyInline(StudyRowsInline):
    model = ComparisonFamily
    fields = ("name", "adjustment", "after")
    form_class = FamilyForm
    formset = FamilyFormSet
    classes = ("collapse",)


# The table of the people who may see or change a study, each with a role.


class MemberForm(forms.ModelForm):
    username = forms.CharField(max_length=150, help_text="The user name of a colleague who can log in here.")

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
            raise ValidationError("No active user has this name. Ask an administrator to create the account.") from None
        return self.cleaned_data["username"]


class MemberFormSet(LabelledDeleteFormSet):
    def clean(self):
        super().clean()
        if any(form.errors for form in self.forms):
            return
        access.require_owner_and_distinct_members(self.roles())

    def roles(self) -> list[tuple[int, str]]:
        """Return (user id, role) for each remaining row."""
        remaining = [form for form in self.forms if form.instance.user_id and not form.cleaned_data.get("DELETE")]
        return [(form.instance.user_id, form.cleaned_data["role"]) for form in remaining]


class MemberInline(StudyRowsInline):
    model = StudyMember
    fields = ("username", "role")
    form_class = MemberForm
    formset = MemberFormSet
    is_design = False
    action = Action.SHARE
    verbose_name = "person"
    verbose_name_plural = "people who may see or change this study"
    classes = ("collapse",)

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("user")

    # Methods with the names of the form's own fields show their values on read-only pages.

    @admin.display(description="user name")
    def username(self, member):
        return member.user.get_username()


# The questions on a section's page, each with the fields of its scale.


class QuestionForm(ScaleForm):
    """A question without a name in the data gets one from its criterion or its text."""

    Meta = field_labels.build_form_meta("question")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if "key" in self.fields:
            self.fields["key"].required = False

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if "key" in self.fields and "key" not in self.errors and not cleaned.get("key"):
            others = Question.objects.filter(section=self.instance.section_id).exclude(pk=self.instance.pk)
            stem = slugify(cleaned.get("criterion") or cleaned.get("text") or "")
            cleaned["key"] = find_free_name(stem[:KEY_STEM], others.values_list("key", flat=True))
        x, y = cleaned.get("x"), cleaned.get("y")
        if bool(x) != bool(y):
            self.add_error("y" if x else "x", "Only one system is chosen. Choose two systems or none.")
        elif x and x == y:
            self.add_error("y", "Choose another system: a system cannot be compared with itself.")
        return cleaned


class QuestionFormSet(SwappableFormSetMixin, OrderedFormSetMixin, LabelledDeleteFormSet):
    unique_column = "key"

    def clean(self):
        named: list[str] = []
        for form in self.forms:
            if key := (getattr(form, "cleaned_data", None) or {}).get("key"):
                if key in named and not form["key"].data:
                    form.cleaned_data["key"] = form.instance.key = find_free_name(key, named)
                named.append(form.cleaned_data["key"])
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


# The tables of systems, arms, sections and exclusion rules on a study's page.


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

    def get_formset(self, request, obj=None, **kwargs):
        formset = super().get_formset(request, obj, **kwargs)

        class Form(formset.form):  # type: ignore[name-defined]  # Django makes it
            def hand_clean_DELETE(self):
                """Refuse in one sentence, where Django lists every output."""
                try:
                    super().hand_clean_DELETE()
                except ValidationError:
                    page = reverse("new_study_file", args=[obj.pk])
                    raise ValidationError(
                        format_html(
                            '“{}” has outputs or is named in the design. Remove it on the page <a href="{}">Your file</a>, which says what leaves with it.',
                            self.instance.name,
                            page,
                        )
                    ) from None

        formset.form = Form
        return formset


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
    classes = ("collapse",)

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


class RuleForm(CleanTextMixin, forms.ModelForm):
    """A rule in the table. Rules have different settings, so the field ``parameters`` holds a small form of the rule's own."""

    Meta = field_labels.build_form_meta("rule")

    parameters = forms.Field(
        required=False, label="Settings", widget=SettingsWidget, help_text="They appear when the rule is saved."
    )

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        kind = self.settings_form_of(self.instance) if self.instance.pk else None
        self.inner = None
        if kind is not None:
            prefix = self.add_prefix("parameters")
            fields = kind().fields
            initial = {name: (self.instance.settings or {}).get(name, field.initial) for name, field in fields.items()}
            self.inner = kind(data=self.data if self.is_bound else None, initial=initial, prefix=prefix)
        if "parameters" in self.fields:
            self.fields["parameters"].widget.form = self.inner

    @cached_property
    def changed_data(self):
        changed = [name for name in changed_field_names(self) if name != "parameters"]
        return [*changed, "parameters"] if self.inner is not None and changed_field_names(self.inner) else changed

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        kind = self.settings_form_of(self.instance_of(cleaned))
        if self.inner is not None and isinstance(self.inner, kind or ()):
            if self.inner.is_valid():
                self.instance.settings = merge_settings(
                    self.instance.settings or {}, self.inner.cleaned_data, changed_field_names(self.inner)
                )
            else:
                self.add_error("parameters", "Some of these settings are not valid. Correct the marked fields.")
        elif not self.instance.pk or self.inner is not None or kind is not None:
            # A new row, or a row whose kind changed: settings of the old kind no longer apply.
            self.instance.settings = {n: value for n, value in values_of_new_row(kind).items() if value is not None}
        return cleaned

    def instance_of(self, cleaned):
        """Return an instance with the cleaned values, to find its kind of settings."""
        return forms.models.construct_instance(self, type(self.instance)(), fields=list(cleaned), exclude=["settings"])

    def settings_form_of(self, instance) -> type[forms.Form] | None:
        rule = design.REGISTRY.get(instance.rule)
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
    classes = ("collapse",)

    @admin.display(description="settings")
    def parameters(self, row):
        """Return the declared settings, and the rule's defaults for the others."""
        rule = design.REGISTRY.get(row.rule)
        fields = rule.settings_form().fields if rule and rule.settings_form else {}
        settings = {name: field.initial for name, field in fields.items()} | row.settings
        labels = {name: field.label or name.replace("_", " ") for name, field in fields.items()}
        return ", ".join(f"{labels.get(name, name)} = {value}" for name, value in settings.items()) or "none"


INLINES: list[type[InlineModelAdmin]] = [
    SystemInline,
    ArmInline,
    SectionInline,
    ContrastInline,
    ComparisonFamilyInline,
    ExclusionRuleInline,
    MemberInline,
]
