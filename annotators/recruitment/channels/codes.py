"""Codes that say how a visit ended: one for each outcome. No code can be guessed from another."""

import re
import secrets
from itertools import combinations

from django import forms

from . import OUTCOMES

# As in receipts: easy to copy by hand, without 0, 1, I and O.
ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
CODE_PATTERN = re.compile(r"[A-Za-z0-9_-]{6,64}", re.ASCII)
# Words that people would try first. These are stems, so that COMPLETED and SCREENEDOUT match too.
GUESSABLE_STEMS = (
    "complet",
    "screen",
    "fail",
    "full",
    "consent",
    "withdr",
    "close",
    "done",
    "finish",
    "return",
    "prolific",
)
MIN_DIFFERENCES = 4


def generate_outcome_code() -> str:
    """Generate ten characters. Two codes share a character position only by chance."""
    return "".join(secrets.choice(ALPHABET) for _ in range(10))


def clean_outcome_code(value: str) -> str:
    if not CODE_PATTERN.fullmatch(value):
        raise forms.ValidationError("This code is not valid. Enter 6 to 64 letters and digits, without spaces.")
    if word := next((word for word in GUESSABLE_STEMS if word in re.sub("[^a-z]", "", value.lower())), None):
        raise forms.ValidationError(f"The code contains “{word}” and is easy to guess. Choose another code.")
    if len(set(value.lower())) < 4:
        raise forms.ValidationError("This code repeats itself and is easy to guess. Choose another code.")
    return value


def is_guessable_from_code(code: str, other_code: str) -> bool:
    """Return whether a person who knows one code could find the other in a few attempts."""
    code, other_code = code.casefold(), other_code.casefold()
    if code in other_code or other_code in code:
        return True
    n_differences = sum(a != b for a, b in zip(code, other_code, strict=False)) + abs(len(code) - len(other_code))
    return n_differences < MIN_DIFFERENCES


class OutcomeCodesForm(forms.Form):
    """Add a field ``code_<outcome>`` for each way to end, with a generated value."""

    required_outcomes = ("complete",)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for outcome, description in OUTCOMES.items():
            self.fields[f"code_{outcome}"] = forms.CharField(
                required=outcome in self.required_outcomes,
                max_length=64,
                label=f"code: {description}",
                initial=generate_outcome_code,
                validators=[clean_outcome_code],  # type: ignore[list-item]  # its result is not used
            )
        self.order_fields([f"code_{outcome}" for outcome in OUTCOMES])

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        codes = [(name, cleaned[name]) for name in self.fields if name.startswith("code_") and cleaned.get(name)]
        for (name, code), (later_name, other_code) in combinations(codes, 2):
            if later_name not in self.errors and is_guessable_from_code(code, other_code):
                self.add_error(
                    later_name,
                    f"This code is too similar to “{self.fields[name].label}”: people could guess it. "
                    "Choose another code.",
                )
        return cleaned
