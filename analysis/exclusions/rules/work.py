"""Rules about how people worked."""

import math

from django import forms

from studies.models.design import register

from .. import AssignmentFlags, RuleInput

# Rule about work that took less time than reading.


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
            flags.judge(assignment, None)
            continue
        needed = 60 * words.get(batch, 0) / words_per_minute
        if seconds < needed:
            flags.judge(assignment, True, f"{seconds:.0f} s for {words[batch]} words")
            continue
        middle, spread = centre.get(arm, (0.0, 0.0))
        distance = (math.log(max(seconds, 1e-3)) - middle) / spread if spread > 0 else 0.0
        is_faster = z is not None and distance < z
        flags.judge(assignment, is_faster, f"{seconds:.0f} s, {-distance:.1f} spreads below the arm's median")
    return flags


def _median_and_spread(values: list[float]) -> tuple[float, float]:
    def median(numbers):
        ordered = sorted(numbers)
        half = len(ordered) // 2
        return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2

    middle = median(values)
    return middle, 1.4826 * median([abs(value - middle) for value in values])


# Rule about answers that came after the place was released.


@register("late", "late: submitted after the place was given to another annotator, or after the study closed")
def flag_submissions_after_release(rule_input: RuleInput) -> AssignmentFlags:
    """Flag assignments that were submitted after their release. Applied to every study."""
    rows = rule_input.assignments
    rows = rows[rows["is_submitted"]]
    flags = AssignmentFlags()
    for assignment, is_late, reason in zip(rows["assignment"], rows["is_late"], rows["released_reason"], strict=True):
        flags.judge(assignment, is_late, f"released before: {reason}")
    return flags


# Rule about people who submitted more often than the study allows.


class RepeatedSettings(forms.Form):
    policy = forms.ChoiceField(
        choices=[
            ("drop_all", "exclude all submissions of the person"),
            ("keep_first", "keep the first allowed submissions"),
        ],
        initial="drop_all",
        label="if a person submitted more often than allowed",
    )


@register(
    "repeated",
    "repeated: the same person submitted more often than allowed",
    settings_form=RepeatedSettings,
    source="Ethayarajh and Jurafsky 2022, appendix A.2",
)
def flag_repeated_submissions(rule_input: RuleInput, policy: str = "drop_all") -> AssignmentFlags:
    """Flag people who submitted more batches than the study allows: all their submissions, or only those above the limit."""
    flags = AssignmentFlags()
    rows = rule_input.assignments
    rows = rows[rows["is_submitted"]].sort_values(["submitted_at", "assignment"])
    for _, own_rows in rows.groupby("annotator", sort=False):
        for rank, assignment in enumerate(own_rows["assignment"]):
            is_over = len(own_rows) > rule_input.allowed and (policy == "drop_all" or rank >= rule_input.allowed)
            flags.judge(assignment, is_over, f"submitted {len(own_rows)} times, {rule_input.allowed} allowed")
    return flags


# Rule about work that reviewers refused.


@register(
    "failed_review",
    "failed review: two reviewers found reasons to refuse the work",
    is_outcome_blind=False,
    source="Clark et al. 2021, section 2.3",
)
def flag_failed_reviews(rule_input: RuleInput) -> AssignmentFlags:
    """Flag annotators whose work reviewers refused, by the declared rule of the sample. Annotators without a review are unknown.

    Reviewers see neither the condition nor the correct answer, but they read the answers. So the rule applies only to the
    paper's estimates.
    """
    reviews = rule_input.review_reasons()
    flags = AssignmentFlags()
    for assignment in rule_input.submitted:
        reasons = reviews.get(assignment)
        flags.judge(assignment, None if reasons is None else bool(reasons), reasons or "")
    return flags


# Rule about exclusions that a researcher decided.


@register("manual", "excluded by a researcher's decision")
def flag_excluded_assignments(rule_input: RuleInput) -> AssignmentFlags:
    """Flag assignments with an active exclusion by a researcher. Applied to every study."""
    flags = AssignmentFlags()
    for assignment in rule_input.submitted:
        reason = rule_input.decisions.get(assignment)
        flags.judge(assignment, reason is not None, reason or "")
    return flags


# Rule about annotators whose identity is not verified.


@register("unverified", "unverified: only the address gives the person's identity")
def flag_unverified_identity(rule_input: RuleInput) -> AssignmentFlags:
    """Flag assignments that came by an open link, or whose identity comes only from the address and was never confirmed."""
    flags = AssignmentFlags()
    rows = rule_input.assignments[rule_input.assignments["is_submitted"]]
    for assignment, trust, is_identified in zip(rows["assignment"], rows["trust"], rows["is_identified"], strict=True):
        is_loose = trust in ("none", "claimed") or not is_identified
        flags.judge(assignment, is_loose, f"identity {trust}")
    return flags
