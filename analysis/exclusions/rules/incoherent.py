"""Two answers to one pair that cannot both be meant: their chances add up to far more than 100 %."""

from django import forms

from studies.models.rules import register

from .. import FAIL, PASS, UNKNOWN, Flags, RuleInput


class TauSettings(forms.Form):
    tau = forms.DecimalField(
        min_value=0,
        max_value=2,
        decimal_places=2,
        initial=1.1,
        label="largest sum of two answers (tau)",
        help_text="Whose two answers to some pair add up to more than this. 2 excludes nobody.",
    )
    symmetric = forms.BooleanField(
        required=False,
        initial=False,
        label="sums that are too small too",
        help_text="Also those whose answers add up to less than 2 minus tau.",
    )

    def clean(self):
        cleaned = super().clean()
        # Settings are kept as JSON, which has no decimals.
        if cleaned.get("tau") is not None:
            cleaned["tau"] = float(cleaned["tau"])
        return cleaned


@register(
    "incoherent",
    "incoherent: two answers to one pair add up to too much (tau)",
    settings_form=TauSettings,
    is_outcome_blind=False,
    source="Ethayarajh and Jurafsky 2022, section 5.2",
)
def incoherent(rule_input: RuleInput, tau: float = 1.1, symmetric: bool = False) -> Flags:
    """Finds who gave P[x > y] and P[y > x] that add up to more than tau, for any pair; one pair is enough.

    It selects on the answers themselves: one-order estimates after it are biased downwards, so the recommended estimates are
    made without it and show what it would do.
    """
    limit = round(100 * float(tau))
    flags = Flags(dict.fromkeys(rule_input.submitted, UNKNOWN))
    rows = rule_input.responses
    rows = rows[rows["x"].notna() & rows["value"].notna() & (rows["purpose"] == "live")]
    answers: dict[tuple, int] = {}
    columns = ("assignment", "section", "criterion", "x", "y", "value")
    for assignment, section, criterion, x, y, value in zip(*(rows[name] for name in columns), strict=True):
        percent = round(100 * value)
        answers[assignment, section, criterion, x, y] = percent
        reverse = answers.get((assignment, section, criterion, y, x))
        if reverse is None or flags.states.get(assignment) is None:
            continue
        total = percent + reverse
        if total > limit or (symmetric and total < 200 - limit):
            flags.add(assignment, FAIL, f"{x} over {y} and {y} over {x} add up to {total} %")
        elif flags.states[assignment] == UNKNOWN:
            flags.states[assignment] = PASS
    return flags
