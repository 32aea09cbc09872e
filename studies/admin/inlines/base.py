"""Base classes for the tables of a study's page: a label for each field, distinct names, and renumbered positions."""

import secrets
from typing import TYPE_CHECKING

from django import forms
from django.contrib import admin
from django.db.models import CharField, F, Model, Value
from django.db.models.functions import Cast, Concat
from django.forms.models import BaseInlineFormSet, BaseModelFormSet

from studies.admin.forms.cleaning import add_lookalike_name_errors
from studies.admin.permissions import InlinePermissions

# The bases of the mixins below, while types are checked.
if TYPE_CHECKING:
    _ModelForm = forms.ModelForm

    class _FormSet(BaseModelFormSet):
        model: type[Model]
else:
    _ModelForm = _FormSet = object

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
