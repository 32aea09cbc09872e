"""Rule about two answers to one pair that contradict each other: their chances add up to much more than 100 %."""

from django import forms

from studies.models.rules import register

from .. import FAIL, PASS, UNKNOWN, AssignmentFlags, RuleInput


class TauSettings(forms.Form):
    tau = forms.DecimalField(
        min_value=0,
        max_value=2,
        decimal_places=2,
        initial=1.1,
        label="largest sum of two answers (tau)",
        help_text="Excludes annotators whose two answers to a pair add up to more than this. 2 excludes no annotator.",
    )
    symmetric = forms.BooleanField(
        required=False,
        initial=False,
        label="also exclude sums that are too small",
        help_text="Also excludes annotators whose two answers add up to less than 2 minus tau.",
    )

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        # Settings are stored as JSON, which has no decimals.
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
def flag_incoherent_sums_of_both_orders(
    rule_input: RuleInput, tau: float = 1.1, symmetric: bool = False
) -> AssignmentFlags:
    """Flag annotators whose answers P[x > y] and P[y > x] add up to more than tau for at least one pair.

    The rule selects on the answers themselves, so one-order estimates after it are biased downwards. The recommended estimates
    ignore it and show its effect as a sensitivity analysis.
    """
    limit = round(100 * float(tau))
    flags = AssignmentFlags(dict.fromkeys(rule_input.submitted, UNKNOWN))
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
