"""People whose identity nobody but the address states."""

from studies.models.rules import register

from .. import FAIL, PASS, Flags, RuleInput


@register("unverified", "unverified: nobody but the address says who the person is")
def unverified(rule_input: RuleInput) -> Flags:
    """Finds assignments whose person only the address named, or who came by an open link: neither keyed nor confirmed."""
    flags = Flags()
    rows = rule_input.assignments[rule_input.assignments["is_submitted"]]
    for assignment, trust, is_identified in zip(rows["assignment"], rows["trust"], rows["is_identified"], strict=True):
        is_loose = trust == "claimed" or not is_identified
        flags.add(assignment, FAIL if is_loose else PASS, f"identity {trust}" if is_loose else "")
    return flags
