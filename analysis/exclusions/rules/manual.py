"""A researcher's own decision."""

from studies.models.rules import register

from .. import FAIL, PASS, Flags, Material


@register("manual", "left out by a researcher's decision")
def manual(material: Material) -> Flags:
    """Finds assignments for which an exclusion was entered and not taken back. Applied to every study."""
    flags = Flags()
    for assignment in material.submitted:
        reason = material.decisions.get(assignment)
        flags.add(assignment, PASS if reason is None else FAIL, reason or "")
    return flags
