"""Rule about people who submitted more often than the study allows."""

from django import forms

from studies.models.rules import register

from .. import FAIL, PASS, AssignmentFlags, RuleInput


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
            evidence = f"submitted {len(own_rows)} times, {rule_input.allowed} allowed"
            flags.add(assignment, FAIL if is_over else PASS, evidence if is_over else "")
    return flags
