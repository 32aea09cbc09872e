"""Who may see a study at a panel: thresholds as settings of a link. Where heval publishes, they become the panel's filters.

Any other panel takes no filters from a program, so the link's page lists them for its form.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms

# Settings that are numbers, and those that are lists of names: their words for pages.
NUMBERS = {
    "min_approval_rate": "approval rate, at least (%)",
    "min_approved_tasks": "approved tasks, at least",
}
NAMES = {
    "countries": "lives in one of these countries",
    "languages": "fluent in one of these languages",
}
MAX_APPROVED_TASKS = 10_000
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

    parts: ClassVar[dict[str, tuple[str, tuple[str, ...]]]] = {
        "Who may see the study at the panel": (
            "Where heval publishes, it sends them. For other panels, the page “Your link” lists them for the panel's form.",
            (*NUMBERS, *NAMES),
        )
    }

    min_approval_rate = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=100,
        label=NUMBERS["min_approval_rate"],
        help_text="Only people with this share of approved tasks see the study. Empty: everybody.",
    )
    min_approved_tasks = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_APPROVED_TASKS,
        label=NUMBERS["min_approved_tasks"],
        help_text="A high number keeps newcomers out. A test before the work is often fairer. Empty: everybody.",
    )
    countries = NamesField(
        label=NAMES["countries"], help_text="One per line, as the panel writes them. Empty: all countries."
    )
    languages = NamesField(
        label=NAMES["languages"], help_text="One per line, as the panel writes them. Empty: all languages."
    )


def split_names(text: str) -> list[str]:
    names = (" ".join(line.split()) for line in text.splitlines())
    return list(dict.fromkeys(name for name in names if name))


def declared_thresholds(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the thresholds that a link declares: numbers, and lists of names. Undeclared ones are left out."""
    numbers = {name: settings[name] for name in NUMBERS if settings.get(name) is not None}
    names = {name: split_names(settings[name]) for name in NAMES if settings.get(name)}
    return numbers | names


def threshold_lines(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the declared thresholds of a link as labels and words.

    >>> threshold_lines({"min_approval_rate": 98, "countries": "United States"})
    [('approval rate, at least (%)', '98'), ('lives in one of these countries', 'United States')]
    """
    labels = NUMBERS | NAMES
    return [
        (labels[name], ", ".join(value) if isinstance(value, list) else str(value))
        for name, value in declared_thresholds(settings).items()
    ]
