"""Values that fields, settings and columns may hold."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

from django import forms
from django.core.exceptions import ValidationError

from studies.protocols.base.fields import SCALE_KINDS, parse_scale

DAY, MOMENT = date(2031, 5, 17), datetime(2031, 5, 17, 10, 11, 12, 131415, tzinfo=UTC)
# What fields may hold


LONG = "\n  blanks at both ends, “quotes”, <b>&amp;</b>, \\| \n\n\ttwo paragraphs  \n"
LINE = "“quotes”, <b>&amp;</b> and 何か 🙂"
WORDS = (
    LINE, "abc", "ABC-12x", "123", "US, GB", "a" * 24, "https://example.org/done?cc={code}", "yourschool.sona-systems.com",
    "Completed = submitted", "key | Label | explanation", "key | Label | 1 | explanation\nworse | Label | 5 | explanation", "EUR", "pt-BR", "domain; panel",
)  # fmt: skip
LISTS = (["yes"], ["yes", "no"], ["of age, or nearly", '"so" to say', "b"])


def accepted(field: forms.Field, values) -> list:
    found = []
    for value in values:
        try:
            field.clean(value)
        except (ValidationError, AttributeError, TypeError):
            continue
        found.append(value)
    return found


def values_of(field: forms.Field) -> list:
    """What may be stored for a setting: every choice, both ends of a number, several texts; as a bundle brings it, not as a form leaves it."""
    keys = [key for key, _ in getattr(field, "choices", ())]
    initial = field.initial() if callable(field.initial) else field.initial
    match field:
        case forms.BooleanField():
            return [True, False]
        case forms.MultipleChoiceField():
            return accepted(field, [[], keys, keys[-1:]])
        case forms.ChoiceField():
            assert len(keys) <= MOST
            return keys
        case forms.DecimalField() | forms.FloatField():
            low, high = field.min_value or 0, field.max_value or 10
            middle = round(float(low) + float(high - low) / 3, getattr(field, "decimal_places", None) or 9)
            return accepted(field, [initial, low, high, middle, *([] if field.required else [None])])
        case forms.IntegerField():
            low, high = field.min_value or 0, field.max_value or 10
            return accepted(field, [initial, low, high, (low + high) // 2 | 1, *([] if field.required else [None])])
    if type(field).__name__ == "Keys":
        return [list(each) for each in LISTS]
    long = [LONG] if isinstance(field.widget, forms.Textarea) else []
    shown = [words for words in WORDS if "\n" not in words or long]
    return accepted(field, [*([initial] if initial else []), *([] if field.required else [""]), *long, *shown])


MOST = 9  # values of one field; no choice has more


def variants(settings_form: type[forms.Form]) -> Iterator[dict]:
    """Settings that the form accepts, so many that each value of each field is among them where the others allow it."""
    blank = settings_form()
    values = {name: values_of(field) for name, field in blank.fields.items()}
    usual = {name: found[0] for name, found in values.items() if found}
    values = {
        name: [value for value in found if name not in settings_form(usual | {name: value}).errors][:MOST]
        for name, found in values.items()
    }
    assert all(values.values()), (settings_form, [name for name, found in values.items() if not found])
    base = {name: found[0] for name, found in values.items()}
    kept = [name for name, field in blank.fields.items() if isinstance(field, forms.BooleanField | forms.ChoiceField)]
    seen: dict[str, set[str]] = {name: set() for name in values}
    for n in range(max(map(len, values.values()))):
        wanted = {name: found[n % len(found)] for name, found in values.items()}
        for again in range(3):
            form = settings_form(wanted)
            if form.is_valid():
                break
            # Some values do not go together: first those that are refused are given up, then all but the choices.
            wanted |= {
                name: base[name]
                for name in (form.errors if again == 0 else base)
                if name in base and not (again and name in kept)
            }
        assert form.is_valid(), (settings_form, form.errors)
        for name in values:
            seen[name].add(repr(wanted[name]))
        yield wanted
    for name in kept:
        assert seen[name] == {repr(value) for value in values[name]}, (settings_form, name)


def columns_of(model, skipped=(), **given) -> dict:
    """A value for each editable column of a model that is not its usual one, as a bundle or a program may store it."""
    found = {}
    for column in model._meta.concrete_fields:
        if not column.editable or column.primary_key or column.is_relation or column.name in skipped:
            continue
        kind = column.get_internal_type()
        if column.choices:
            values = [key for key, _ in reversed(column.flatchoices)]
        elif kind == "BooleanField":
            values = [not column.default]
        elif kind in ("CharField", "SlugField"):
            values = [LINE, *WORDS]
        elif kind == "TextField":
            values = [LONG]
        elif kind == "DecimalField":
            values = [Decimal("7.50"), Decimal("0.05")]
        elif kind in ("DateField", "DateTimeField"):
            values = [{"DateField": DAY, "DateTimeField": MOMENT}[kind]]
        elif kind == "JSONField":
            continue
        else:
            values = [0.1, 97, 3, 600] if kind == "FloatField" else [97, 3, 600]
        for value in values:
            try:
                found[column.name] = column.clean(value, None)
                break
            except ValidationError:
                continue
        assert column.name in found, column
    return found | given


def scales() -> Iterator[dict]:
    """Each kind of scale: as short as can be, with each part that it may have, and with all of them."""
    from studies.admin.forms import PARTS

    parts = {
        "minimum": 0, "maximum": 7, "low": " worst", "middle": "so | so", "high": "best ", "is_best_first": True, "is_lower_better": True,
        "labels": ["very bad", "", "good", "good | very good"], "minimum_length": 3, "maximum_length": 2000, "is_long": False,
        "options": [
            {"key": "yes", "label": "Yes, | of course"}, {"key": "a|b", "label": "No", "screens_out": True}, {"key": "c, d", "label": "\\|"},
        ],
    }  # fmt: skip
    assert set(PARTS) == set(SCALE_KINDS)
    for kind, names in PARTS.items():
        usual = {"kind": kind} | ({"options": parts["options"]} if "options" in names else {})
        for scale in (
            usual,
            *(usual | {name: parts[name]} for name in names),
            usual | {name: parts[name] for name in names if name not in ("minimum", "maximum")},
        ):
            try:
                parse_scale(scale)
            except ValueError:
                continue
            yield scale
