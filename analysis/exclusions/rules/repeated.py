"""People who submitted more often than the study allows."""

from django import forms

from studies.models.rules import register

from .. import FAIL, PASS, Flags, RuleInput


class RepeatedSettings(forms.Form):
    policy = forms.ChoiceField(
        choices=[
            ("drop_all", "leave out all that the person submitted"),
            ("keep_first", "keep what was submitted first"),
        ],
        initial="drop_all",
        label="where somebody submitted more than allowed",
    )


@register(
    "repeated",
    "repeated: the same person submitted more often than allowed",
    settings_form=RepeatedSettings,
    source="Ethayarajh and Jurafsky 2022, appendix A.2",
)
def repeated(rule_input: RuleInput, policy: str = "drop_all") -> Flags:
    """Finds people who submitted more batches than the study gives one person; all of them, or all but the first."""
    flags = Flags()
    rows = rule_input.assignments
    rows = rows[rows["is_submitted"]].sort_values(["submitted_at", "assignment"])
    for _, mine in rows.groupby("annotator", sort=False):
        for place, assignment in enumerate(mine["assignment"]):
            is_over = len(mine) > rule_input.allowed and (policy == "drop_all" or place >= rule_input.allowed)
            evidence = f"submitted {len(mine)} times, {rule_input.allowed} allowed"
            flags.add(assignment, FAIL if is_over else PASS, evidence if is_over else "")
    return flags
