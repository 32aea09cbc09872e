"""Forms of the researchers' pages. Texts, scales, answers and settings are real fields, never raw JSON."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html

from studies.protocols.base.fields import SCALE_KINDS, TEXT_KINDS, parse_scale, values_of_new_row
from studies.stimuli.texts import TextRefused, clean_name, clean_text, is_blank, name_key

# Clean what people type, so that databases can store all texts and people can tell all names apart.
#
# Control characters, invisible names, and names that differ only in case are refused with a message that names the
# field.


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


# Form fields of the researchers' pages: rows of a study, lists of lines, answer options, times, Markdown.


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


MAX_SHOWN_PROBLEMS = 20


def add_file_problems(form: forms.Form, problems: Sequence[Any], n_problems: int) -> None:
    """Show the first problems of a file beside its field, and how many more there are."""
    for problem in problems[:MAX_SHOWN_PROBLEMS]:
        form.add_error("file", str(problem))
    if n_problems > MAX_SHOWN_PROBLEMS:
        form.add_error("file", f"And {n_problems - MAX_SHOWN_PROBLEMS} more problems.")


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


# Form fields for a question's scale, one for each of its parts, never raw JSON.


# The parts of a scale that each kind uses; the script of the page hides the others.
PARTS: dict[str, tuple[str, ...]] = {
    "percent": ("low", "middle", "high"),
    "likert": ("minimum", "maximum", "low", "middle", "high", "labels", "is_best_first", "is_lower_better"),
    "continuous": ("minimum", "maximum", "low", "middle", "high", "is_lower_better"),
    "number": ("minimum", "maximum"),
    "choice": ("options",),
    "output": (),
    "multiple": ("options",),
    "acknowledgement": ("high",),
    "text": ("minimum_length", "maximum_length", "is_long"),
    "rewrite": ("minimum_length", "maximum_length"),
}


def _where_empty(kind: str) -> dict[str, int]:
    """Return the default numbers of a kind of scale. Scales with answer options have none."""
    if "options" in PARTS[kind]:
        return {}
    spec = parse_scale({"kind": kind})
    return {part: getattr(spec, part) for part in PARTS[kind] if type(getattr(spec, part)) is int}


SCALE_DEFAULTS = {kind: _where_empty(kind) for kind in SCALE_KINDS}


def _scale_fields() -> dict[str, forms.Field]:
    whole_number: dict[str, Any] = {"required": False, "min_value": -1_000_000, "max_value": 1_000_000}
    return {
        "kind": forms.ChoiceField(
            label="kind of answer",
            choices=[(kind, label) for kind, (label, _) in SCALE_KINDS.items()],
            widget=forms.Select(
                attrs={
                    "data-parts": " ".join(f"{k}:{','.join(p)}" for k, p in PARTS.items()),
                    "data-where-empty": json.dumps(SCALE_DEFAULTS),
                }
            ),
        ),
        "minimum": forms.IntegerField(label="lowest value", **whole_number),
        "maximum": forms.IntegerField(label="highest value", **whole_number),
        "low": forms.CharField(label="label of the low end", required=False, max_length=200),
        "middle": forms.CharField(label="label of the middle", required=False, max_length=200),
        "high": forms.CharField(
            label="label of the high end",
            required=False,
            max_length=500,
            help_text="For a box to tick: the text beside it.",
        ),
        "labels": LinesField(
            label="labels of all points",
            required=False,
            help_text="One per line, from the lowest. They replace the labels of the ends.",
        ),
        "is_best_first": forms.BooleanField(label="highest point first", required=False),
        "is_lower_better": forms.BooleanField(
            label="lower ratings are better",
            required=False,
            help_text="For ratings of something unwanted, such as mistakes. Annotators do not see this.",
        ),
        "options": OptionsField(
            label="answers",
            required=False,
            help_text="One per line: key | label. Add | screens out if the answer ends participation, or | right in attention checks.",
        ),
        "minimum_length": forms.IntegerField(
            label="minimum number of characters", required=False, min_value=0, max_value=100_000
        ),
        "maximum_length": forms.IntegerField(
            label="maximum number of characters", required=False, min_value=1, max_value=100_000
        ),
        "is_long": forms.BooleanField(label="a large field", required=False, initial=True),
    }


SCALE_FIELDS = _scale_fields()
if TYPE_CHECKING:

    class ScaleFields(forms.Form): ...

else:
    ScaleFields = type("ScaleFields", (forms.Form,), {f"scale_{name}": field for name, field in SCALE_FIELDS.items()})


class ScaleForm(CleanTextMixin, ScaleFields, forms.ModelForm):
    """Mixin for forms of Question: its scale as fields ``scale_<part>``, its skip reasons as lines."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        kind = (self.instance.scale or {}).get("kind") or self.fields["scale_kind"].initial
        for part, value in SCALE_DEFAULTS.get(kind, {}).items():
            self.fields[f"scale_{part}"].widget.attrs["placeholder"] = with_default_suffix(value)
        self.has_readable_scale = False
        if not self.instance.pk and not self.instance.scale:
            return
        try:
            spec = parse_scale(self.instance.scale)
        except (ValueError, TypeError, KeyError):
            return  # the checklist names the problem; the fields offer a new scale
        self.has_readable_scale = True
        stored = spec.as_json()
        for name in SCALE_FIELDS:
            has_own_default = name in ("kind", "is_long", "is_best_first", "is_lower_better")
            initial = stored.get(name, getattr(spec, name) if has_own_default else None)
            self.initial[f"scale_{name}"] = initial

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if self.has_readable_scale and not any(name.startswith("scale_") for name in self.changed_data):
            return cleaned  # one scale has several spellings: keep the stored one
        kind = cleaned.get("scale_kind")
        parts = [f"scale_{part}" for part in PARTS.get(kind or "", ())]
        if not kind or any(part in self.errors for part in parts):
            return cleaned
        stored: dict[str, Any] = {"kind": kind}
        for part in PARTS[kind]:
            value = cleaned.get(f"scale_{part}")
            if value not in (None, "", []):
                stored[part] = value
        if kind in TEXT_KINDS and stored.get("minimum_length", 0) > stored.get("maximum_length", 2000):
            self.add_error(
                "scale_minimum_length",
                "The minimum is above the maximum number of characters. Lower the minimum, or raise the maximum.",
            )
        labels = stored.get("labels")
        if labels and {"minimum", "maximum"} <= set(stored):
            points = stored["maximum"] - stored["minimum"] + 1
            if points != len(labels):
                self.add_error(
                    "scale_labels", f"There are {len(labels)} labels for {points} points. Enter one label per point."
                )
        elif labels and "minimum" in stored:
            stored["maximum"] = stored["minimum"] + len(labels) - 1
        try:
            self.instance.scale = parse_scale(stored).as_json()
        except (ValueError, TypeError, KeyError) as refused:
            self.add_error("scale_options" if kind in ("choice", "multiple") else "scale_kind", str(refused))
        return cleaned


def scale_summary_text(scale_json: Mapping[str, Any]) -> str:
    """Return a question's scale as a sentence, for read-only pages."""
    try:
        spec = parse_scale(dict(scale_json))
    except (ValueError, TypeError, KeyError) as refused:
        return str(refused)
    label = SCALE_KINDS[spec.kind][0]
    if spec.kind == "likert":
        point_texts = [f"{point.key}{' ' + point.label if point.label else ''}" for point in spec.points]
        return f"{label}: {', '.join(point_texts)}"
    if spec.options:
        marks = [" (screens out)" if o.screens_out else " (right)" if o.is_right else "" for o in spec.options]
        return f"{label}: {', '.join(o.label + mark for o, mark in zip(spec.options, marks, strict=True))}"
    if spec.kind in ("continuous", "number"):
        return f"{label}, {spec.minimum} {spec.low} to {spec.maximum} {spec.high}".strip()
    return label


# Show the settings of a protocol, a rule or a channel as form fields inside the form of their row.


def merge_settings(
    stored: Mapping[str, Any], cleaned_data: Mapping[str, Any], changed_names: Iterable[str]
) -> dict[str, Any]:
    """Return the stored settings with the changed ones. A setting that was neither stored nor changed keeps its default."""
    return dict(stored) | settings_as_json({name: cleaned_data[name] for name in changed_names if name in cleaned_data})


def settings_as_json(cleaned_data: Mapping[str, Any]) -> dict[str, Any]:
    """Return cleaned values as JSON values. A zero has no sign: otherwise equal designs would have different hashes."""
    return {
        name: float(value) + 0.0 if isinstance(value, Decimal | float) else value
        for name, value in cleaned_data.items()
    }


PREFIX = "settings"
# Width of a field: a line of this many characters needs no scrolling.
WIDE = 60
MOST_ROWS = 32


def add_range_and_default_hints(field: forms.Field, default: Any) -> forms.Field:
    """Return the field with its range and the default of a new row in the help text, and wide enough for its values."""
    if isinstance(field, forms.ChoiceField):
        field.choices = [
            (key, with_default_suffix(label) if key == default else label) for key, label in choices_of(field)
        ]
        return field
    hint = ""
    if isinstance(field, forms.IntegerField) and None not in (field.min_value, field.max_value):
        hint = f"From {_plain(field.min_value)} to {_plain(field.max_value)}"
    # A callable makes a new value each time: it has no default to show.
    shows_default = default not in (None, "") and not callable(default)
    if isinstance(field.widget, forms.NumberInput | forms.TextInput) and shows_default:
        shown = _plain(default) if hint else f"“{default}”"
        hint = f"{hint}, by default {shown}" if hint else f"By default {shown}"
        field.widget.attrs["placeholder"] = with_default_suffix(default)
    if hint:
        field.help_text = f"{field.help_text} {hint}.".strip()
    if isinstance(field.widget, forms.TextInput) and (getattr(field, "max_length", None) or 0) > WIDE:
        field.widget.attrs["size"] = WIDE
    return field


def _plain(number: Any) -> str:
    return str(number) if isinstance(number, int) else f"{number:f}".rstrip("0").rstrip(".")


def prefixed_settings_fields(settings_form: type[forms.Form] | None) -> dict[str, forms.Field]:
    """Return the fields of a settings form, by the names that they have inside another form."""
    if settings_form is None:
        return {}
    defaults = values_of_new_row(settings_form)
    fields = {
        f"{PREFIX}-{name}": add_range_and_default_hints(field, defaults[name])
        for name, field in settings_form().fields.items()
    }
    for name, field in fields.items():
        field.label = field.label or name.removeprefix(f"{PREFIX}-").replace("_", " ")
        if isinstance(field.widget, forms.Textarea) and "Markdown" in str(field.help_text):
            field.widget = MarkdownArea(attrs=field.widget.attrs)
    return fields


def headed_settings_fieldsets(settings_form: type[forms.Form] | None) -> list[tuple[str, dict[str, Any]]]:
    """Return fieldsets for the fields with their own heading. The form's ``parts`` maps each heading to (text, names)."""
    return [
        (heading, {"fields": tuple(f"{PREFIX}-{name}" for name in names), "description": words})
        for heading, (words, names) in getattr(settings_form, "parts", {}).items()
    ]


class SettingsFormMixin(CleanTextMixin, forms.ModelForm):
    """Mixin for forms of a row with ``settings`` JSON. It shows the settings as fields and applies their own rules.

    ``build_form_with_settings`` makes the class. A field shows the stored value, or else its initial value.
    """

    settings_form: type[forms.Form] | None = None
    # Whether to store the shown value of a setting that was never stored.
    stores_defaults = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name in prefixed_settings_fields(self.settings_form):
            short = name.removeprefix(f"{PREFIX}-")
            if short in (self.instance.settings or {}):
                self.initial[name] = self.instance.settings[short]
            if isinstance(area := self.fields[name].widget, forms.Textarea):
                # Show long texts such as codebooks in full.
                lines = str(self.get_initial_for_field(self.fields[name], name) or "").count("\n") + 2
                area.attrs["rows"] = min(MOST_ROWS, max(int(area.attrs.get("rows", 0)), lines))

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if self.settings_form is None:
            return cleaned
        inner_form = self.settings_form(data=self.data, files=self.files, prefix=self.add_prefix(PREFIX))
        if inner_form.is_valid():
            stored = self.instance.settings or {}
            changed = {
                name
                for name in inner_form.cleaned_data
                if f"{PREFIX}-{name}" in self.changed_data
                or (self.stores_defaults and name not in stored and inner_form.cleaned_data[name])
            }
            self.instance.settings = merge_settings(stored, inner_form.cleaned_data, changed)
            return cleaned
        for name, messages in inner_form.errors.items():
            outer = f"{PREFIX}-{name}"
            if outer in self.fields and outer not in self.errors:
                self.add_error(outer, list(messages))
            elif outer not in self.fields:
                self.add_error(None, list(messages))
        return cleaned


def build_form_with_settings(
    base_form: type[forms.ModelForm], settings_form: type[forms.Form] | None
) -> type[forms.ModelForm]:
    """Return a subclass of the form (a SettingsFormMixin) with fields for these settings."""
    return type(
        base_form.__name__, (base_form,), {**prefixed_settings_fields(settings_form), "settings_form": settings_form}
    )


class SettingsWidget(forms.Widget):
    """A widget that shows a small form inside one cell of a table."""

    form: forms.Form | None = None

    def render(self, name, value, attrs=None, renderer=None):
        from django.template.loader import render_to_string

        return render_to_string("admin/studies/settings_cell.html", {"form": self.form})

    def value_from_datadict(self, data, files, name):
        return None

    def value_omitted_from_data(self, data, files, name):
        return False
