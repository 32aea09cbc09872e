"""Rule about annotators whose identity is not verified."""

from studies.models.rules import register

from .. import FAIL, PASS, AssignmentFlags, RuleInput


@register("unverified", "unverified: only the address gives the person's identity")
def flag_unverified_identity(rule_input: RuleInput) -> AssignmentFlags:
    """Flag assignments that came by an open link, or whose identity comes only from the address and was never confirmed."""
    flags = AssignmentFlags()
    rows = rule_input.assignments[rule_input.assignments["is_submitted"]]
    for assignment, trust, is_identified in zip(rows["assignment"], rows["trust"], rows["is_identified"], strict=True):
        is_loose = trust in ("none", "claimed") or not is_identified
        flags.add(assignment, FAIL if is_loose else PASS, f"identity {trust}" if is_loose else "")
    return flags
