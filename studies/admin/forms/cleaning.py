"""Clean what people type, so that databases can store all texts and people can tell all names apart.

Control characters, invisible names, and names that differ only in case are refused with a message that names the field.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django import forms
from django.utils.functional import cached_property

from studies.stimuli.texts import TextRefused, clean_name, clean_text, is_blank, name_key

# The base of the mixin below, while types are checked.
if TYPE_CHECKING:
    _Form = forms.BaseForm
else:
    _Form = object

# Fields that identify rows. An invisible character must not be the only difference between two of them.
NAMES = frozenset({"name", "key", "title", "domain", "group"})


def _unify_line_breaks(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_unchanged(bound_field: forms.BoundField) -> bool:
    """Return whether the sent value is what the field showed, so that the stored value must stay as it is.

    Cleaning changes values: a browser sends line breaks as CR LF, a field strips blanks and shows a time without its seconds, and 1
    becomes 1.0. Saving a form must not change a value that the user did not change.
    """
    sent, initial = bound_field.data, bound_field.initial
    if not isinstance(sent, str) or bound_field.field.disabled:
        return not bound_field._has_changed()  # type: ignore[attr-defined]  # private in Django
    displayed = bound_field.field.widget.format_value(bound_field.field.prepare_value(initial))
    if displayed is not None and not isinstance(displayed, str):  # a choice, which has no text of its own
        return not bound_field._has_changed()  # type: ignore[attr-defined]  # private in Django
    return _unify_line_breaks(displayed or "") == _unify_line_breaks(sent)


def changed_field_names(form: forms.BaseForm) -> list[str]:
    """Return the names of the fields that the user changed in a bound form."""
    return [name for name in form.fields if not is_unchanged(form[name])]


class CleanTextMixin(_Form):
    """Mixin for forms: a database can store every text, and a person can see it. A name is one visible line.

    A field that comes back unchanged keeps the stored value.
    """

    @cached_property
    def changed_data(self):
        return changed_field_names(self)

    def _clean_fields(self):
        super()._clean_fields()  # type: ignore[misc]  # private in Django
        self._clean_texts()
        for name, value in self.cleaned_data.items():
            # Not get_initial_for_field: it drops the microseconds of a time.
            stored = self.initial.get(name, self.fields[name].initial) if name in self.fields else None
            if isinstance(stored, type(value)) and value is not None and is_unchanged(self[name]):
                self.cleaned_data[name] = stored

    def _clean_texts(self):
        for name, field in self.fields.items():
            value = self.cleaned_data.get(name)
            if not isinstance(field, forms.CharField) or not isinstance(value, str) or not value:
                continue
            label = str(field.label or name.replace("_", " "))
            try:
                if field.required and is_blank(value):
                    raise TextRefused(f"{label}: it contains no visible character. Enter a visible text.")
                self.cleaned_data[name] = (clean_name if name in NAMES else clean_text)(value, field=label)
            except TextRefused as refused:
                self.add_error(name, str(refused))


def find_lookalike_name(name: str, names: Iterable[str]) -> str | None:
    """Return the first of these names that looks the same to a person: it differs only in case, width or composition."""
    return next((other for other in names if name_key(other) == name_key(name)), None)


def add_lookalike_name_errors(forms_and_names: Iterable[tuple[forms.BaseForm, str]], noun: object) -> None:
    """Refuse names that look the same to a person: they differ only in case, width or composition."""
    seen: dict[str, str] = {}
    for form, name in forms_and_names:
        key = name_key(name or "")
        if key in seen:
            form.add_error("name", f"Another {noun} has this name: “{seen[key]}”. Choose another name.")
        elif key:
            seen[key] = name
