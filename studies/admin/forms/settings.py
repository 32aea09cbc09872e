"""Show the settings of a protocol, a rule or a channel as form fields inside the form of their row."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.functional import cached_property

from studies.protocols.base.settings_fields import values_of_new_row

from .cleaning import CleanTextMixin, changed_field_names
from .fields import MarkdownArea, choices_of, with_default_suffix


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


class SettingsCell(CleanTextMixin, forms.ModelForm):
    """Mixin for forms in a table whose rows have different settings. The field ``parameters`` holds the small form."""

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
