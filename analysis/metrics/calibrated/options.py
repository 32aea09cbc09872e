"""What the person who asks for combined numbers chooses, and who made which judge and which system."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django import forms

from studies.models import Study

from ..store import metrics_in_use

# Who made a judge's model and who made a judged system: a judge may favour its own family.


# A system's name has words of models, numbers and sizes. These words name no family.
_WORDS = re.compile(r"[a-z]+")
MIN_LENGTH = 3


def words_of(text: str) -> set[str]:
    """Return the words of a name: runs of letters in lower case with at least three letters."""
    return {word for word in _WORDS.findall(text.casefold()) if len(word) >= MIN_LENGTH}


def families_by_name(judges: Mapping[str, str], systems: Iterable[str]) -> dict[str, str]:
    """Return the families of judges and systems, by name.

    ``judges``: the family that the upload declared, by the judge's name. A system belongs to a family if its name has all words of the family's name:
    the family "llama" has the system "llama-2-7b". A system with the words of two families belongs to the longer name.
    """
    declared = {judge: family.strip().casefold() for judge, family in judges.items() if words_of(family)}
    found = dict(declared)
    by_length = sorted(set(declared.values()), key=lambda family: (-len(words_of(family)), family))
    for system in systems:
        own = next((family for family in by_length if words_of(family) <= words_of(system)), None)
        if own is not None:
            found[system] = own
    return found


RANDOM, CHOSEN, UNKNOWN = "random", "chosen", "unknown"
MAX_WIDTHS = 6
MAX_OUTPUTS = 10_000_000


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """``sample``: how the outputs that people judged were selected. ``are_people_known``: whether answers say who gave them.

    ``metrics``: ids of the metrics and judges to combine; empty means all judges, or all metrics if there is no judge. ``widths``: wanted
    widths of an interval, in points of 100; empty means the present width, three quarters and half of it. ``n_outputs``: outputs of each
    system that judges will score; None lets the page choose.
    """

    sample: str = RANDOM
    are_people_known: bool = True
    metrics: tuple[int, ...] = ()
    widths: tuple[float, ...] = ()
    n_outputs: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"metrics": list(self.metrics), "widths": list(self.widths)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "CalibrationOptions":
        chosen = dict(stored)
        return cls(**chosen | {name: tuple(chosen.get(name, ())) for name in ("metrics", "widths")})


class CalibrationForm(forms.Form):
    """The form of the page, which REST reads too."""

    sample = forms.ChoiceField(
        label="How were the outputs that people judged selected?",
        choices=[
            (RANDOM, "at random, by heval or by me"),
            (CHOSEN, "by their content, their scores or their systems"),
            (UNKNOWN, "I do not know"),
        ],
    )
    are_people_known = forms.BooleanField(
        label="The answers say who gave them",
        required=False,
        help_text="Clear this if imported answers name places such as “first annotator” instead of people.",
    )
    metrics = forms.MultipleChoiceField(
        label="Judges and metrics to combine",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Without a choice, heval combines all judges, or all metrics if there is no judge.",
    )
    widths = forms.CharField(
        label="Wanted widths of an interval, in points of 100",
        required=False,
        max_length=100,
        help_text="Up to six numbers, separated by spaces. Empty: the present width, three quarters and half of it.",
    )
    n_outputs = forms.IntegerField(
        label="Outputs of each system that judges will score",
        required=False,
        max_value=MAX_OUTPUTS,
        help_text="Empty: those of this study, or ten times as many if people judged more than half of them.",
    )

    def __init__(self, study: Study, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.n_prompts = study.prompts.count()
        self.fields["metrics"].choices = [(str(metric.pk), _named(metric)) for metric in metrics_in_use(study)]  # type: ignore[attr-defined]  # a field of this form

    def clean_widths(self) -> tuple[float, ...]:
        found = []
        for word in self.cleaned_data["widths"].replace(",", " ").replace(";", " ").split():
            try:
                width = float(word)
            except ValueError:
                width = -1.0
            if not 0.01 <= width <= 100:
                raise forms.ValidationError(f"“{word[:20]}” is not a width. Enter numbers from 0.01 to 100.")
            found.append(width)
        if len(found) > MAX_WIDTHS:
            raise forms.ValidationError(f"These are {len(found)} widths. Enter at most {MAX_WIDTHS}.")
        return tuple(sorted(set(found), reverse=True))

    def clean_n_outputs(self) -> int | None:
        wanted = self.cleaned_data["n_outputs"]
        if wanted is not None and wanted < self.n_prompts:
            raise forms.ValidationError(
                f"Each system has up to {self.n_prompts:,} outputs in this study. Enter at least this number, or leave it empty."
            )
        return wanted

    def options(self) -> CalibrationOptions:
        """Return the options of a valid form."""
        chosen = self.cleaned_data
        return CalibrationOptions(
            chosen["sample"],
            chosen["are_people_known"],
            tuple(sorted(int(pk) for pk in chosen["metrics"])),
            chosen["widths"],
            chosen["n_outputs"],
        )


def _named(metric) -> str:
    about = f", about “{metric.question.key}”" if metric.question else ""
    return f"{metric} ({metric.get_kind_display()}{about})"


# The widths of the figure, as shares of the present width.
