"""Codes that tell a panel how a visit ended: one for each outcome, none to be guessed from another."""

import re
import secrets
from itertools import combinations

from django import forms

from . import OUTCOMES

# As in receipts: easy to copy by hand, no 0, 1, I, O.
ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
CODE_PATTERN = re.compile(r"[A-Za-z0-9_-]{6,64}", re.ASCII)
# What somebody would try first. Stems, so that COMPLETED and SCREENEDOUT are among them.
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


def new_code() -> str:
    """Ten characters, of which two codes share a place by chance alone."""
    return "".join(secrets.choice(ALPHABET) for _ in range(10))


def clean_code(value: str) -> str:
    if not CODE_PATTERN.fullmatch(value):
        raise forms.ValidationError("A code has 6 to 64 letters and digits, without blanks.")
    if word := next((word for word in GUESSABLE_STEMS if word in re.sub("[^a-z]", "", value.lower())), None):
        raise forms.ValidationError(f"Anybody could guess a code with “{word}” in it.")
    if len(set(value.lower())) < 4:
        raise forms.ValidationError("This code repeats itself; anybody could guess it.")
    return value


def is_similar_code(code: str, other: str) -> bool:
    """Whether who knows one of them would find the other by a few tries."""
    code, other = code.casefold(), other.casefold()
    if code in other or other in code:
        return True
    apart = sum(a != b for a, b in zip(code, other, strict=False)) + abs(len(code) - len(other))
    return apart < MIN_DIFFERENCES


class OutcomeCodesForm(forms.Form):
    """A field ``code_<outcome>`` for each way to end, generated until somebody types another."""

    required_outcomes = ("complete",)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for outcome, words in OUTCOMES.items():
            self.fields[f"code_{outcome}"] = forms.CharField(
                required=outcome in self.required_outcomes,
                max_length=64,
                label=f"code: {words}",
                initial=new_code,
                validators=[clean_code],
            )
        self.order_fields([f"code_{outcome}" for outcome in OUTCOMES])

    def clean(self):
        cleaned = super().clean()
        given = [(name, cleaned[name]) for name in self.fields if name.startswith("code_") and cleaned.get(name)]
        for (name, one), (later, other) in combinations(given, 2):
            if later not in self.errors and is_similar_code(one, other):
                self.add_error(
                    later, f"Too near to “{self.fields[name].label}”: who was told one could guess the other."
                )
        return cleaned
