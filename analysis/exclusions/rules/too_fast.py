"""Rule about work that took less time than reading."""

import math

from django import forms

from studies.models.rules import register

from .. import FAIL, PASS, UNKNOWN, AssignmentFlags, RuleInput


class TooFastSettings(forms.Form):
    words_per_minute = forms.IntegerField(
        min_value=100,
        max_value=5000,
        initial=700,
        label="fastest reading, words per minute",
        help_text="A speed that no reader exceeds.",
    )
    z = forms.FloatField(
        required=False,
        max_value=-1,
        initial=-3,
        label="fastest compared with others (robust z)",
        help_text="Also excludes annotators with a robust z of log seconds below this, within their arm. Empty: no limit.",
    )


@register(
    "too_fast",
    "too fast: the work took less time than reading",
    settings_form=TooFastSettings,
    source="Clark et al. 2021, section 3",
)
def flag_too_fast(rule_input: RuleInput, words_per_minute: int = 700, z: float | None = -3) -> AssignmentFlags:
    """Flag annotators who were faster than the words of their batch can be read, or much faster than others of their arm.

    Time is from start to submission by the server's clock. The time that the page's script counts is not used.
    """
    flags = AssignmentFlags()
    rows = rule_input.assignments[rule_input.assignments["is_submitted"]]
    words = rule_input.words_by_batch()
    logs: dict[str, list[float]] = {}
    for arm, seconds in zip(rows["arm"], rows["seconds"], strict=True):
        if seconds == seconds and seconds > 0:
            logs.setdefault(arm, []).append(math.log(seconds))
    centre = {arm: _median_and_spread(values) for arm, values in logs.items()}
    for assignment, arm, batch, seconds in zip(
        rows["assignment"], rows["arm"], rows["batch"], rows["seconds"], strict=True
    ):
        if seconds != seconds:
            flags.add(assignment, UNKNOWN)
            continue
        needed = 60 * words.get(batch, 0) / words_per_minute
        if seconds < needed:
            flags.add(assignment, FAIL, f"{seconds:.0f} s for {words[batch]} words")
            continue
        middle, spread = centre.get(arm, (0.0, 0.0))
        distance = (math.log(max(seconds, 1e-3)) - middle) / spread if spread > 0 else 0.0
        if z is not None and distance < z:
            flags.add(assignment, FAIL, f"{seconds:.0f} s, {-distance:.1f} spreads below the arm's median")
        else:
            flags.add(assignment, PASS)
    return flags


def _median_and_spread(values: list[float]) -> tuple[float, float]:
    def median(numbers):
        ordered = sorted(numbers)
        half = len(ordered) // 2
        return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2

    middle = median(values)
    return middle, 1.4826 * median([abs(value - middle) for value in values])
