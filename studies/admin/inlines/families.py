"""The table of families of comparisons on a study's page."""

from django import forms

from studies.admin.forms.cleaning import CleanTextMixin
from studies.design.families import families_before
from studies.models import ComparisonFamily

from .. import field_labels
from .base import DistinctNamesFormSet, StudyRowsInline


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
