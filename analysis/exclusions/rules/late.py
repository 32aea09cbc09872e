"""Rule about answers that came after the place was released."""

from studies.models.rules import register

from .. import FAIL, PASS, AssignmentFlags, RuleInput


@register("late", "late: submitted after the place was given to another annotator, or after the study closed")
def flag_submissions_after_release(rule_input: RuleInput) -> AssignmentFlags:
    """Flag assignments that were submitted after their release. Applied to every study."""
    rows = rule_input.assignments
    rows = rows[rows["is_submitted"]]
    flags = AssignmentFlags()
    for assignment, is_late, reason in zip(rows["assignment"], rows["is_late"], rows["released_reason"], strict=True):
        flags.add(assignment, FAIL if is_late else PASS, f"released before: {reason}" if is_late else "")
    return flags
