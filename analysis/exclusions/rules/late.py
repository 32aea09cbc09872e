"""Answers that came after the place had been given away."""

from studies.models.rules import register

from .. import FAIL, PASS, Flags, RuleInput


@register("late", "late: submitted after the place had been given to somebody else, or after the study was closed")
def late(rule_input: RuleInput) -> Flags:
    """Finds assignments that were submitted after they had been released. Applied to every study."""
    rows = rule_input.assignments
    rows = rows[rows["is_submitted"]]
    flags = Flags()
    for assignment, is_late, reason in zip(rows["assignment"], rows["is_late"], rows["released_reason"], strict=True):
        flags.add(assignment, FAIL if is_late else PASS, f"released before: {reason}" if is_late else "")
    return flags
