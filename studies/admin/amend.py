"""The page of an amendment: a form for what may change after launch, the differences, then a new version of the design."""

from copy import copy
from typing import Any

from django import forms
from django.contrib import messages
from django.db import models
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from studies.design.subjects import numbered_name, question_labels, read_words_of_sections
from studies.services import lifecycle
from studies.services.lifecycle import is_lifecycle_step_allowed

from ..access import Action, get_study
from ..models import Arm, Question, Study
from . import field_labels
from .forms import CleanTextMixin
from .study_page import render_study_page


class AmendForm(CleanTextMixin, forms.Form):
    """A field for each column that may be amended, and a reason. ``changes`` returns the argument of ``lifecycle.amend``."""

    reason = forms.CharField(
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 70}),
        help_text="Why you make this change. The report lists each version with its reason.",
    )

    def __init__(self, study: Study, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.rows: list[tuple[str, int | None, Study | Arm | Question, str]] = [("study", None, study, "The study")]
        self.rows += [("arm", arm.pk, arm, f"Arm {arm.name}") for arm in study.arms.all()]
        sections = list(study.sections.prefetch_related("questions__x", "questions__y", "arms"))
        read_words_of_sections(sections)
        for section in sections:
            labels = question_labels(section.questions.all())
            where = f"Section {numbered_name(section)}"
            self.rows += [("question", q.pk, q, f"{where}, {labels[q.key]}") for q in section.questions.all()]
        reason = self.fields.pop("reason")
        for kind, pk, row, _ in self.rows:
            for column in sorted(lifecycle.AMENDABLE[kind], key=_column_order(row)):
                field: forms.Field = _column(row, column).formfield()  # type: ignore[assignment]  # each has one
                field.label = field_labels.LABELS[kind].get(column, field.label)
                field.help_text = field_labels.HELP.get(kind, {}).get(column, field.help_text)
                if isinstance(field.widget, forms.Textarea):
                    field.widget.attrs.update(rows=3, cols=70)
                if isinstance(field, forms.DateField):
                    field.widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
                name = _field_name(kind, pk, column)
                self.fields[name] = field
                self.initial[name] = getattr(row, column)
        self.fields["reason"] = reason

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        for kind, pk, row, _ in self.rows:
            for column in lifecycle.AMENDABLE[kind]:
                name = _field_name(kind, pk, column)
                if name not in self.changed_data or name not in cleaned:
                    continue
                try:
                    _column(row, column).clean(cleaned[name], row)
                except forms.ValidationError as refused:
                    self.add_error(name, refused)
        study = copy(self.rows[0][2])
        for column, value in self.changes().get("study", {}).get(None, {}).items():
            setattr(study, column, value)
        try:
            study.clean()
        except forms.ValidationError as refused:
            for column, errors in refused.error_dict.items():
                if (name := _field_name("study", None, column)) in self.fields:
                    self.add_error(name, errors)
        return cleaned

    def field_groups(self):
        """Yield (heading, fields, is open) for each row, in the order of the page."""
        for kind, pk, _, heading in self.rows:
            names = [name for name in self.fields if name.startswith(_field_name(kind, pk, ""))]
            yield heading, [self[name] for name in names], kind == "study"

    def changes(self) -> dict[str, dict[Any, dict[str, Any]]]:
        changes: dict[str, dict[Any, dict[str, Any]]] = {}
        for kind, pk, _, _ in self.rows:
            prefix = _field_name(kind, pk, "")
            for name in self.changed_data:
                if name.startswith(prefix) and name in self.cleaned_data:
                    changes.setdefault(kind, {}).setdefault(pk, {})[name.removeprefix(prefix)] = self.cleaned_data[name]
        return changes

    def differences(self) -> list[tuple[str, str, Any, Any]]:
        """Return (row, column, before, after) for each change."""
        rows = []
        for kind, pk, row, heading in self.rows:
            for column, value in self.changes().get(kind, {}).get(pk, {}).items():
                label = str(_column(row, column).verbose_name)
                rows.append((heading, label, getattr(row, column), value))
        return rows


def _column(row: models.Model, name: str) -> models.Field:
    return next(field for field in row._meta.concrete_fields if field.name == name)


def _field_name(kind: str, pk: int | None, column: str) -> str:
    return f"{kind}-{pk or 0}-{column}"


def _column_order(row):
    names = [field.name for field in row._meta.concrete_fields]
    return names.index


def amend_page(request, pk) -> HttpResponse:
    """Show the form, then the differences. A confirmed POST stores a new version of the design."""
    study = get_study(request.user, Action.RUN, pk=pk)
    home = reverse("admin:studies_study_change", args=[study.pk])
    if not is_lifecycle_step_allowed("amend", study):
        messages.warning(request, lifecycle.AMEND_REFUSAL)
        return HttpResponseRedirect(home)
    form = AmendForm(study, request.POST) if request.method == "POST" else AmendForm(study)
    differences = None
    if request.method == "POST" and form.is_valid():
        differences = form.differences()
        if not differences:
            form.add_error(None, "You have not changed anything. Change at least one value.")
        elif "confirm" in request.POST:
            try:
                design = lifecycle.amend(study, form.changes(), request.user, form.cleaned_data["reason"])
                messages.success(
                    request, f"Version {design.version} of the design applies to everybody who starts from now on."
                )
                return HttpResponseRedirect(home)
            except lifecycle.ActionRefused as refused:
                form.add_error(None, str(refused))
                differences = None
    context = {
        "title": "Amend",
        "form": form,
        "differences": differences,
        "posted": [
            (name, value) for name, values in request.POST.lists() for value in values if name != "csrfmiddlewaretoken"
        ],
        "home": home,
        "versions": study.designs.select_related("by").order_by("-version"),
    }
    return render_study_page(request, "admin/studies/amend.html", study, context, 422 if form.errors else 200)
