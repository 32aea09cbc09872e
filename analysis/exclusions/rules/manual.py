"""A researcher's own decision."""

from studies.models.rules import register

from .. import FAIL, PASS, Flags, RuleInput


@register("manual", "left out by a researcher's decision")
def manual(rule_input: RuleInput) -> Flags:
    """Finds assignments for which an exclusion was entered and not taken back. Applied to every study."""
    flags = Flags()
    for assignment in rule_input.submitted:
        reason = rule_input.decisions.get(assignment)
        flags.add(assignment, PASS if reason is None else FAIL, reason or "")
    return flags
