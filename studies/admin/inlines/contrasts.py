"""The table of planned comparisons on a study's page."""

from django import forms

from studies.admin.forms.cleaning import CleanTextMixin
from studies.design.margins import hypothesis_problem, too_wide_margin_problem
from studies.models import Contrast, Section
from studies.protocols import REGISTRY

from .. import field_labels
from ..forms.fields import RowChoiceField
from .base import LabelledDeleteFormSet, StudyRowsInline, SwappableFormSetMixin


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
        """Return the column that contradicts the hypothesis, and why, or None. ``sections``: see ``studies.design.margins``."""
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
    fields = (
        "x", "expected", "y", "role", "population", "hypothesis", "margin", "criterion", "section", "estimand", "level", "family",
        "x_condition", "y_condition",
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
