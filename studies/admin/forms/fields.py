"""Form fields of the researchers' pages: rows of a study, lists of lines, answer options, times, Markdown."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils.html import format_html

from studies.stimuli.texts import TextRefused, clean_text


def choice_field(form: forms.BaseForm, name: str) -> forms.ChoiceField:
    """Return a form's field that offers choices."""
    field = form.fields[name]
    if not isinstance(field, forms.ChoiceField):
        raise TypeError(f"{name} offers no choices.")
    return field


def choices_of(field: forms.ChoiceField) -> list[tuple[Any, Any]]:
    """Return the choices of a field, which gives them as an iterator."""
    return list(field.choices)  # type: ignore[arg-type]  # the stubs also count what may be assigned


class MarkdownArea(forms.Textarea):
    """A field for Markdown. Its button opens a preview in a new tab, as annotators will read it, and saves nothing."""

    def render(self, name, value, attrs=None, renderer=None):
        area = super().render(name, value, attrs, renderer)
        return format_html(
            '<div class="markdown-area">{}<button class="show-words" formaction="{}" formtarget="_blank" formnovalidate '
            'name="_preview_field" value="{}">Preview<span class="heard">: {}</span></button></div>',
            area,
            reverse("admin:studies_preview_text"),
            name,
            name.replace("_", " ").replace("settings-", ""),
        )


def optional_utc_datetime_field(**options) -> forms.DateTimeField:
    """Return a field for date and time, with the browser's own control."""
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(required=False, widget=widget, help_text="UTC. Empty: no limit.", **options)


class RowChoiceField(forms.TypedChoiceField):
    """A choice of one row of a study. The rows are read once for all forms of a page, and other rows are refused."""

    def __init__(self, rows: Mapping[int, Any], *, empty="nothing", **options):
        self.rows = {str(pk): row for pk, row in rows.items()}
        choices = [("", f"({empty})"), *((pk, str(row)) for pk, row in self.rows.items())]
        super().__init__(choices=choices, coerce=self._row, empty_value=None, **options)

    def _row(self, value):
        return value if not isinstance(value, int | str) else self.rows[str(value)]

    def has_changed(self, initial, data):
        return str(initial or "") != str(data or "")


class RowMultipleChoiceField(forms.MultipleChoiceField):
    """A choice of several rows of a study, as boxes. None means all."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, rows: Mapping[int, Any], **options):
        self.rows = {str(pk): row for pk, row in rows.items()}
        super().__init__(choices=[(pk, str(row)) for pk, row in self.rows.items()], required=False, **options)

    def clean(self, value):
        return [self.rows[pk] for pk in super().clean(value)]

    def has_changed(self, initial, data):
        return {str(pk) for pk in initial or ()} != set(data or ())


class LinesField(forms.CharField):
    """A list of texts, one per line."""

    def __init__(self, *, rows=4, **options):
        super().__init__(widget=forms.Textarea(attrs={"rows": rows, "cols": 50}), strip=False, **options)

    def prepare_value(self, value):
        return "\n".join(map(self.format_line, value)) if isinstance(value, list | tuple) else value

    def format_line(self, part: Any) -> str:
        return str(part)

    def parse_line(self, line: str, number: int) -> Any:
        return line

    def clean(self, value):
        text = super().clean(value)
        try:
            text = clean_text(text or "", field=str(self.label or "this list"))
        except TextRefused as refused:
            raise ValidationError(str(refused)) from None
        lines = [line.strip() for line in text.split("\n")]
        return [self.parse_line(line, number) for number, line in enumerate(lines, 1) if line]

    def has_changed(self, initial, data):
        try:
            return self.clean(self.prepare_value(initial) or "") != self.clean(data)
        except ValidationError:
            return True


# What may follow an option's label, and the flag of the option.
OPTION_WORDS = {"screens out": "screens_out", "right": "is_right"}
_BAR = re.compile(r"(?<!\\)\|")


class OptionsField(LinesField):
    r"""The answer options, one per line: ``key | label``. Add ``| screens out`` if the answer ends participation, or
    ``| right`` if it is the right answer to an attention check.

    Write a bar in a key or a label as ``\|``.
    """

    def __init__(self, *, allows_screening=True, **options):
        self.allows_screening = allows_screening
        super().__init__(**options)

    def format_line(self, part):
        key, label = (part[name].replace("|", r"\|") for name in ("key", "label"))
        flags = [words for words, flag in OPTION_WORDS.items() if part.get(flag)]
        return " | ".join([key, label, *flags])

    def parse_line(self, line, number):
        parts = [part.strip().replace(r"\|", "|") for part in _BAR.split(line)]
        if len(parts) == 1:
            parts = [_key_of(parts[0]), parts[0]]
        key, label, *extras = parts
        if not key or not label:
            raise ValidationError(f"Line {number} has no key or no label. Write both, such as “yes | Yes, fluently”.")
        if len(key) > 50:
            raise ValidationError(f"Line {number}: the key has {len(key)} characters. Use at most 50.")
        if extras and (not self.allows_screening or len(extras) > 1 or extras[0].casefold() not in (*OPTION_WORDS, "")):
            allowed = "“screens out”, “right” or nothing" if self.allows_screening else "nothing"
            raise ValidationError(
                f"Line {number}: only {allowed} may follow the label, not “{extras[0]}”. Write \\| for a bar in a label."
            )
        option = {"key": key, "label": label}
        return option | {OPTION_WORDS[extras[0].casefold()]: True} if extras and extras[0] else option

    def clean(self, value):
        options = super().clean(value)
        keys = [option["key"] for option in options]
        if repeated := next((key for key in keys if keys.count(key) > 1), None):
            raise ValidationError(f"Two lines have the key “{repeated}”. Change one of them.")
        return options


def _key_of(label: str) -> str:
    from django.utils.text import slugify

    return slugify(label, allow_unicode=True)[:50]


def with_default_suffix(value: Any) -> str:
    return f"{value} (default)"
