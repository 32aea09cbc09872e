"""Form fields for researchers: scales, options, settings as real fields, never raw JSON.

What Django's own fields let through and a database or a page cannot bear (control characters, names that nobody sees, equal
names in another case) is refused here, with words that name the field.
"""

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html

from studies.protocols.base.scales import KINDS, read_scale
from studies.stimuli.texts import TextRefused, clean_name, clean_text, is_blank, name_key

# Fields by which rows are told apart: what a person cannot see must not make the difference.
NAMES = frozenset({"name", "key", "title", "domain"})


def _one_break(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_as_shown(bound: forms.BoundField) -> bool:
    """Whether what was sent is what the field showed, so that the stored value stays as it is.

    Cleaning is not the identity: a browser sends line breaks as CR LF, blanks at the ends of a text are cut off, a moment is shown without
    its seconds, and 1 becomes 1.0. What nobody changed must not change by being saved.
    """
    sent, initial = bound.data, bound.initial
    if not isinstance(sent, str) or bound.field.disabled:
        return not bound._has_changed()
    shown = bound.field.widget.format_value(bound.field.prepare_value(initial))
    if shown is not None and not isinstance(shown, str):  # a choice, which has no text of its own
        return not bound._has_changed()
    return _one_break(shown or "") == _one_break(sent)


def changed_names(form: forms.BaseForm) -> list[str]:
    """The fields of a bound form that somebody changed."""
    return [name for name in form.fields if not is_as_shown(form[name])]


def changed_settings(stored: Mapping[str, Any], cleaned: Mapping[str, Any], changed: Iterable[str]) -> dict[str, Any]:
    """The stored settings with those that somebody changed. What was never stored and not changed is left to its default."""
    return dict(stored) | plain_settings({name: cleaned[name] for name in changed if name in cleaned})


class CleanWords:
    """Mixin for forms: every text is one that a database can hold and a person can see; a name is one visible line.

    A field that comes back as it was shown keeps the stored value.
    """

    @cached_property
    def changed_data(self):
        return changed_names(self)

    def _clean_fields(self):
        super()._clean_fields()
        self._clean_words()
        for name, value in self.cleaned_data.items():
            # Not get_initial_for_field: it gives a moment without its microseconds.
            stored = self.initial.get(name, self.fields[name].initial) if name in self.fields else None
            if isinstance(stored, type(value)) and value is not None and is_as_shown(self[name]):
                self.cleaned_data[name] = stored

    def _clean_words(self):
        for name, field in self.fields.items():
            value = self.cleaned_data.get(name)
            if not isinstance(field, forms.CharField) or not isinstance(value, str) or not value:
                continue
            label = str(field.label or name.replace("_", " "))
            try:
                if field.required and is_blank(value):
                    raise TextRefused(f"{label}: nothing in it can be seen.")
                self.cleaned_data[name] = (clean_name if name in NAMES else clean_text)(value, field=label)
            except TextRefused as refused:
                self.add_error(name, str(refused))


class MarkdownArea(forms.Textarea):
    """A field for Markdown with a button that shows it as annotators will read it, in a new tab; nothing is saved."""

    def render(self, name, value, attrs=None, renderer=None):
        area = super().render(name, value, attrs, renderer)
        return format_html(
            '<div class="markdown-area">{}<button class="show-words" formaction="{}" formtarget="_blank" formnovalidate '
            'name="_preview_field" value="{}">Show as read<span class="heard">: {}</span></button></div>',
            area,
            reverse("admin:studies_preview_text"),
            name,
            name.replace("_", " ").replace("settings-", ""),
        )


def moment_field(**options) -> forms.DateTimeField:
    """A moment, in one field of the browser's own."""
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(required=False, widget=widget, help_text="UTC. Empty: no limit.", **options)


class RowChoice(forms.TypedChoiceField):
    """One of the rows of a study, as a select. The rows are read once for all forms of a page, and others are refused."""

    def __init__(self, rows: Mapping[int, Any], *, empty="nothing", **options):
        self.rows = {str(pk): row for pk, row in rows.items()}
        choices = [("", f"({empty})"), *((pk, str(row)) for pk, row in self.rows.items())]
        super().__init__(choices=choices, coerce=self._row, empty_value=None, **options)

    def _row(self, value):
        return value if not isinstance(value, int | str) else self.rows[str(value)]

    def has_changed(self, initial, data):
        return str(initial or "") != str(data or "")


class RowChoices(forms.MultipleChoiceField):
    """Several of the rows of a study, as boxes; none means all."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, rows: Mapping[int, Any], **options):
        self.rows = {str(pk): row for pk, row in rows.items()}
        super().__init__(choices=[(pk, str(row)) for pk, row in self.rows.items()], required=False, **options)

    def clean(self, value):
        return [self.rows[pk] for pk in super().clean(value)]

    def has_changed(self, initial, data):
        return {str(pk) for pk in initial or ()} != set(data or ())


class Lines(forms.CharField):
    """A list of texts, one a line."""

    def __init__(self, *, rows=4, **options):
        super().__init__(widget=forms.Textarea(attrs={"rows": rows, "cols": 50}), strip=False, **options)

    def prepare_value(self, value):
        return "\n".join(map(self.written, value)) if isinstance(value, list | tuple) else value

    def written(self, part: Any) -> str:
        return str(part)

    def read(self, line: str, number: int) -> Any:
        return line

    def clean(self, value):
        text = super().clean(value)
        try:
            text = clean_text(text or "", field=str(self.label or "this list"))
        except TextRefused as refused:
            raise ValidationError(str(refused)) from None
        lines = [line.strip() for line in text.split("\n")]
        return [self.read(line, number) for number, line in enumerate(lines, 1) if line]

    def has_changed(self, initial, data):
        try:
            return self.clean(self.prepare_value(initial) or "") != self.clean(data)
        except ValidationError:
            return True


_BAR = re.compile(r"(?<!\\)\|")


class Options(Lines):
    r"""Answers to choose from, one a line: ``key | label``, and ``| screens out`` where it ends participation.

    A bar within a key or a label is written ``\|``.
    """

    def __init__(self, *, may_screen=True, **options):
        self.may_screen = may_screen
        super().__init__(**options)

    def written(self, part):
        key, label = (part[name].replace("|", r"\|") for name in ("key", "label"))
        return f"{key} | {label}{' | screens out' if part.get('screens_out') else ''}"

    def read(self, line, number):
        parts = [part.strip().replace(r"\|", "|") for part in _BAR.split(line)]
        if len(parts) == 1:
            parts = [_key_of(parts[0]), parts[0]]
        key, label, *more = parts
        if not key or not label:
            raise ValidationError(f"Line {number}: write “key | label”, such as “yes | Yes, fluently”.")
        if len(key) > 50:
            raise ValidationError(f"Line {number}: a key has at most 50 characters.")
        if more and (not self.may_screen or len(more) > 1 or more[0].casefold() not in ("screens out", "")):
            allowed = "“screens out” or nothing" if self.may_screen else "nothing"
            raise ValidationError(
                f"Line {number}: after the label only {allowed} may follow, not “{more[0]}”. Write \\| for a bar within a label."
            )
        option = {"key": key, "label": label}
        return option | {"screens_out": True} if more and more[0] else option

    def clean(self, value):
        options = super().clean(value)
        keys = [option["key"] for option in options]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise ValidationError(f"The key “{twice}” stands twice.")
        return options


def _key_of(label: str) -> str:
    from django.utils.text import slugify

    return slugify(label, allow_unicode=True)[:50]


# The parts of a scale that each kind uses; the script of the page hides the others.
PARTS: dict[str, tuple[str, ...]] = {
    "percent": ("low", "middle", "high"),
    "likert": ("minimum", "maximum", "low", "middle", "high", "labels", "is_best_first"),
    "continuous": ("minimum", "maximum", "low", "middle", "high"),
    "number": ("minimum", "maximum"),
    "choice": ("options",),
    "output": (),
    "multiple": ("options",),
    "acknowledgement": ("high",),
    "text": ("minimum_length", "maximum_length", "is_long"),
}


def _where_empty(kind: str) -> dict[str, int]:
    """The numbers that hold for a kind of scale where nothing is said. Where answers are to be written, there are none."""
    if "options" in PARTS[kind]:
        return {}
    spec = read_scale({"kind": kind})
    return {part: getattr(spec, part) for part in PARTS[kind] if type(getattr(spec, part)) is int}


WHERE_EMPTY = {kind: _where_empty(kind) for kind in KINDS}


def _scale_fields() -> dict[str, forms.Field]:
    whole = {"required": False, "min_value": -1_000_000, "max_value": 1_000_000}
    return {
        "kind": forms.ChoiceField(
            label="asked as",
            choices=[(kind, words) for kind, (words, _) in KINDS.items()],
            widget=forms.Select(
                attrs={
                    "data-parts": " ".join(f"{k}:{','.join(p)}" for k, p in PARTS.items()),
                    "data-where-empty": json.dumps(WHERE_EMPTY),
                }
            ),
        ),
        "minimum": forms.IntegerField(label="lowest", **whole),
        "maximum": forms.IntegerField(label="highest", **whole),
        "low": forms.CharField(label="words at the low end", required=False, max_length=200),
        "middle": forms.CharField(label="words in the middle", required=False, max_length=200),
        "high": forms.CharField(
            label="words at the high end", required=False, max_length=500, help_text="For a box to tick: its words."
        ),
        "labels": Lines(
            label="words of all points", required=False, help_text="One a line, from the lowest. Instead of the words at the ends."
        ),
        "is_best_first": forms.BooleanField(label="highest point first", required=False),
        "options": Options(
            label="answers", required=False, help_text="One a line: key | label, and | screens out where it ends participation."
        ),
        "minimum_length": forms.IntegerField(label="fewest characters", required=False, min_value=0, max_value=100_000),
        "maximum_length": forms.IntegerField(label="most characters", required=False, min_value=1, max_value=100_000),
        "is_long": forms.BooleanField(label="a large field", required=False, initial=True),
    }  # fmt: skip


SCALE_FIELDS = _scale_fields()


ScaleFields = type("ScaleFields", (forms.Form,), {f"scale_{name}": field for name, field in SCALE_FIELDS.items()})


class ScaleForm(CleanWords, ScaleFields, forms.ModelForm):
    """Mixin for forms of Question: its scale as fields ``scale_<part>``, its skip reasons as lines."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        kind = (self.instance.scale or {}).get("kind") or self.fields["scale_kind"].initial
        for part, value in WHERE_EMPTY.get(kind, {}).items():
            self.fields[f"scale_{part}"].widget.attrs["placeholder"] = by_default(value)
        self.has_readable_scale = False
        if not self.instance.pk and not self.instance.scale:
            return
        try:
            spec = read_scale(self.instance.scale)
        except (ValueError, TypeError, KeyError):
            return  # the checklist names it; the fields offer a fresh one
        self.has_readable_scale = True
        stored = spec.as_json()
        for name in SCALE_FIELDS:
            value = stored.get(name, getattr(spec, name) if name in ("kind", "is_long", "is_best_first") else None)
            self.initial[f"scale_{name}"] = value

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if self.has_readable_scale and not any(name.startswith("scale_") for name in self.changed_data):
            return cleaned  # a scale may be written in several ways: this one stays as it is written
        kind = cleaned.get("scale_kind")
        parts = [f"scale_{part}" for part in PARTS.get(kind, ())]
        if not kind or any(part in self.errors for part in parts):
            return cleaned
        stored: dict[str, Any] = {"kind": kind}
        for part in PARTS[kind]:
            value = cleaned.get(f"scale_{part}")
            if value not in (None, "", []):
                stored[part] = value
        if kind == "text" and stored.get("minimum_length", 0) > stored.get("maximum_length", 2000):
            self.add_error("scale_minimum_length", "The fewest characters must not be more than the most.")
        labels = stored.get("labels")
        if labels and {"minimum", "maximum"} <= set(stored):
            points = stored["maximum"] - stored["minimum"] + 1
            if points != len(labels):
                self.add_error("scale_labels", f"There are {len(labels)} words for {points} points.")
        elif labels and "minimum" in stored:
            stored["maximum"] = stored["minimum"] + len(labels) - 1
        try:
            self.instance.scale = read_scale(stored).as_json()
        except (ValueError, TypeError, KeyError) as refused:
            self.add_error("scale_options" if kind in ("choice", "multiple") else "scale_kind", str(refused))
        return cleaned


def scale_in_words(stored: Mapping[str, Any]) -> str:
    """A question's scale as a sentence, where it can only be looked at."""
    try:
        spec = read_scale(dict(stored))
    except (ValueError, TypeError, KeyError) as refused:
        return str(refused)
    words = KINDS[spec.kind][0]
    if spec.kind == "likert":
        named = [f"{point.key}{' ' + point.label if point.label else ''}" for point in spec.points]
        return f"{words}: {', '.join(named)}"
    if spec.options:
        return f"{words}: {', '.join(o.label + (' (screens out)' if o.screens_out else '') for o in spec.options)}"
    if spec.kind in ("continuous", "number"):
        return f"{words}, {spec.minimum} {spec.low} to {spec.maximum} {spec.high}".strip()
    return words


def plain_settings(cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """Cleaned values as JSON holds them; a zero has no sign, or equal designs would have other hashes."""
    return {
        name: float(value) + 0.0 if isinstance(value, Decimal | float) else value for name, value in cleaned.items()
    }


PREFIX = "settings"
# A line of this many characters is read without moving in its field.
WIDE = 60
MOST_ROWS = 32


def by_default(value: Any) -> str:
    return f"{value} (default)"


def said(field: forms.Field) -> forms.Field:
    """The field with its bounds and its default in words, and room for what it may hold."""
    if isinstance(field, forms.ChoiceField):
        field.choices = [(key, by_default(words) if key == field.initial else words) for key, words in field.choices]
        return field
    words = ""
    if isinstance(field, forms.IntegerField) and None not in (field.min_value, field.max_value):
        words = f"From {_plain(field.min_value)} to {_plain(field.max_value)}"
    # What is made anew each time is no default that could be told.
    is_told = field.initial not in (None, "") and not callable(field.initial)
    if isinstance(field.widget, forms.NumberInput | forms.TextInput) and is_told:
        default = _plain(field.initial) if words else f"“{field.initial}”"
        words = f"{words}, by default {default}" if words else f"By default {default}"
        field.widget.attrs["placeholder"] = by_default(field.initial)
    if words:
        field.help_text = f"{field.help_text} {words}.".strip()
    if isinstance(field.widget, forms.TextInput) and (getattr(field, "max_length", None) or 0) > WIDE:
        field.widget.attrs["size"] = WIDE
    return field


def _plain(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:f}".rstrip("0").rstrip(".")


def settings_fields(settings_form: type[forms.Form] | None) -> dict[str, forms.Field]:
    """The fields of a protocol's, rule's or channel's settings form, by the names they have inside another form."""
    if settings_form is None:
        return {}
    fields = {f"{PREFIX}-{name}": said(field) for name, field in settings_form().fields.items()}
    for name, field in fields.items():
        field.label = field.label or name.removeprefix(f"{PREFIX}-").replace("_", " ")
        if isinstance(field.widget, forms.Textarea) and "Markdown" in str(field.help_text):
            field.widget = MarkdownArea(attrs=field.widget.attrs)
    return fields


def settings_parts(settings_form: type[forms.Form]) -> list[tuple[str, dict[str, Any]]]:
    """Those of these fields that stand under a heading of their own, as fieldsets: where the form has ``parts``, (words, names) by heading."""
    return [
        (heading, {"fields": tuple(f"{PREFIX}-{name}" for name in names), "description": words})
        for heading, (words, names) in getattr(settings_form, "parts", {}).items()
    ]


class WithSettings(CleanWords, forms.ModelForm):
    """Mixin for forms of a row with ``settings`` JSON: its fields stand in the form, its own rules hold.

    Made by ``with_settings(form, settings_form)``; a value stored shows, else the settings form's initial one.
    """

    settings_form: type[forms.Form] | None = None
    # Whether a setting that was never stored is stored with the value that the form showed.
    stores_defaults = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name in settings_fields(self.settings_form):
            short = name.removeprefix(f"{PREFIX}-")
            if short in (self.instance.settings or {}):
                self.initial[name] = self.instance.settings[short]
            if isinstance(area := self.fields[name].widget, forms.Textarea):
                # A codebook of many lines is read as a whole, not through a slit.
                lines = str(self.get_initial_for_field(self.fields[name], name) or "").count("\n") + 2
                area.attrs["rows"] = min(MOST_ROWS, max(int(area.attrs.get("rows", 0)), lines))

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        if self.settings_form is None:
            return cleaned
        own = self.settings_form(data=self.data, files=self.files, prefix=self.add_prefix(PREFIX))
        if own.is_valid():
            stored = self.instance.settings or {}
            changed = {
                name for name in own.cleaned_data
                if f"{PREFIX}-{name}" in self.changed_data
                or (self.stores_defaults and name not in stored and own.cleaned_data[name])
            }  # fmt: skip
            self.instance.settings = changed_settings(stored, own.cleaned_data, changed)
            return cleaned
        for name, messages in own.errors.items():
            outer = f"{PREFIX}-{name}"
            if outer in self.fields and outer not in self.errors:
                self.add_error(outer, list(messages))
            elif outer not in self.fields:
                self.add_error(None, list(messages))
        return cleaned


def with_settings(form: type[forms.ModelForm], settings_form: type[forms.Form] | None) -> type[forms.ModelForm]:
    """A subclass of the form (a WithSettings) that asks for these settings too."""
    return type(form.__name__, (form,), {**settings_fields(settings_form), "settings_form": settings_form})


class SettingsWidget(forms.Widget):
    """A small form inside one cell of a table."""

    form: forms.Form | None = None

    def render(self, name, value, attrs=None, renderer=None):
        from django.template.loader import render_to_string

        return render_to_string("admin/studies/settings_cell.html", {"form": self.form})

    def value_from_datadict(self, data, files, name):
        return None

    def value_omitted_from_data(self, data, files, name):
        return False


class SettingsCell(CleanWords, forms.ModelForm):
    """Mixin for forms in a table, each row with settings of its own kind: one field ``parameters`` holds the small form."""

    def settings_form_of(self, instance) -> type[forms.Form] | None:
        raise NotImplementedError

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
        changed = [name for name in changed_names(self) if name != "parameters"]
        return [*changed, "parameters"] if self.inner is not None and changed_names(self.inner) else changed

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        kind = self.settings_form_of(self.instance_of(cleaned))
        if self.inner is not None and isinstance(self.inner, kind or ()):
            if self.inner.is_valid():
                self.instance.settings = changed_settings(
                    self.instance.settings or {}, self.inner.cleaned_data, changed_names(self.inner)
                )
            else:
                self.add_error("parameters", "Please look at these parameters.")
        elif not self.instance.pk or self.inner is not None or kind is not None:
            # A new row, or one that is of another kind now: what was set for the old kind says nothing.
            self.instance.settings = (
                {n: f.initial for n, f in kind().fields.items() if f.initial is not None} if kind else {}
            )
        return cleaned

    def instance_of(self, cleaned):
        """An instance that has the values just cleaned, to ask for its kind of settings."""
        return forms.models.construct_instance(self, type(self.instance)(), fields=list(cleaned), exclude=["settings"])


def other_with(name: str, names: Iterable[str]) -> str | None:
    """The one of these names that a person would read as this one: in another case, width or composition."""
    return next((other for other in names if name_key(other) == name_key(name)), None)


def names_once(rows: Iterable[tuple[forms.Form, str]], what: str) -> None:
    """Refuse names that a person would read as the same: in another case, width or composition."""
    seen: dict[str, str] = {}
    for form, name in rows:
        key = name_key(name or "")
        if key in seen:
            form.add_error("name", f"There is another {what} with this name: “{seen[key]}”.")
        elif key:
            seen[key] = name
