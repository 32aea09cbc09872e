"""Thresholds: who may see a study at Prolific, as settings of the link and as filters of Prolific's API.

Prolific lists its filters (``GET filters/``): ranges, and selections among choices with ids. The ids may change, so they
are looked up by name whenever a study is published.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from annotators.recruitment.panels import RequestRefused

# Setting: (Prolific's id of the filter, words for pages).
RANGES = {
    "min_approval_rate": ("approval_rate", "approval rate, at least (%)"),
    "min_approved_tasks": ("approval_numbers", "approved tasks, at least"),
}
SELECTIONS = {
    "countries": ("current-country-of-residence", "lives in one of these countries"),
    "languages": ("fluent-languages", "fluent in one of these languages"),
}
MAX_APPROVED_TASKS = 10_000
UPPER_ENDS = {"min_approval_rate": 100, "min_approved_tasks": 100_000}
MAX_NAMES = 60


class NamesField(forms.CharField):
    """Names, one per line, cleaned to a text with one name on each line."""

    def __init__(self, **options):
        super().__init__(required=False, max_length=3000, widget=forms.Textarea(attrs={"rows": 3}), **options)

    def clean(self, value):
        names = split_names(super().clean(value))
        if len(names) > MAX_NAMES:
            raise forms.ValidationError(f"There are {len(names)} names. Enter at most {MAX_NAMES}.")
        return "\n".join(names)


class ThresholdsForm(forms.Form):
    """The settings of a link that say who may see the study."""

    min_approval_rate = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=100,
        label=RANGES["min_approval_rate"][1],
        help_text="Only people with this share of approved tasks see the study. Empty: everybody.",
    )
    min_approved_tasks = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_APPROVED_TASKS,
        label=RANGES["min_approved_tasks"][1],
        help_text="A high number keeps newcomers out. A test before the work is often fairer. Empty: everybody.",
    )
    countries = NamesField(
        label=SELECTIONS["countries"][1], help_text="One per line, as Prolific writes them. Empty: all countries."
    )
    languages = NamesField(
        label=SELECTIONS["languages"][1], help_text="One per line, as Prolific writes them. Empty: all languages."
    )


def split_names(text: str) -> list[str]:
    names = (" ".join(line.split()) for line in text.splitlines())
    return list(dict.fromkeys(name for name in names if name))


def declared_thresholds(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the thresholds that a link declares: numbers, and lists of names. Undeclared ones are left out."""
    numbers = {name: settings[name] for name in RANGES if settings.get(name) is not None}
    names = {name: split_names(settings[name]) for name in SELECTIONS if settings.get(name)}
    return numbers | names


def threshold_lines(thresholds: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the declared thresholds as words for pages."""
    labels = {name: label for name, (_, label) in (RANGES | SELECTIONS).items()}
    return [
        (labels[name], ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in thresholds.items()
    ]


def build_filters(thresholds: Mapping[str, Any], catalogue: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return Prolific's filters for these thresholds. ``catalogue``: the filters that Prolific offers.

    Raises RequestRefused if Prolific does not offer a filter or a name, so that no study is published without it.
    """
    offered = {row.get("filter_id"): row for row in catalogue}
    filters: list[dict[str, Any]] = []
    for name, value in thresholds.items():
        filter_id, label = (RANGES | SELECTIONS)[name]
        row = offered.get(filter_id)
        if row is None:
            raise RequestRefused(f"Prolific offers no filter “{label}” now. Remove it from the link's settings.")
        if name in RANGES:
            filters.append({"filter_id": filter_id, "selected_range": {"lower": int(value), "upper": UPPER_ENDS[name]}})
            continue
        ids = {str(choice).casefold(): key for key, choice in (row.get("choices") or {}).items()}
        if unknown := [one for one in value if one.casefold() not in ids]:
            raise RequestRefused(
                f"Prolific does not know “{unknown[0]}” for “{label}”. Write it in the link's settings as Prolific does."
            )
        filters.append({"filter_id": filter_id, "selected_values": [ids[one.casefold()] for one in value]})
    return filters
