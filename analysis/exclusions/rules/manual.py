"""Rule about exclusions that a researcher decided."""

from studies.models.rules import register

from .. import FAIL, PASS, AssignmentFlags, RuleInput


@register("manual", "excluded by a researcher's decision")
def flag_excluded_assignments(rule_input: RuleInput) -> AssignmentFlags:
    """Flag assignments with an active exclusion by a researcher. Applied to every study."""
    flags = AssignmentFlags()
    for assignment in rule_input.submitted:
        reason = rule_input.decisions.get(assignment)
        flags.add(assignment, PASS if reason is None else FAIL, reason or "")
    return flags
