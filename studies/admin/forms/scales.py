"""Form fields for a question's scale, one for each of its parts, never raw JSON."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django import forms

from studies.protocols.base.scales import SCALE_KINDS, parse_scale

from .cleaning import CleanTextMixin
from .fields import LinesField, OptionsField, with_default_suffix

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
        if kind == "text" and stored.get("minimum_length", 0) > stored.get("maximum_length", 2000):
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
