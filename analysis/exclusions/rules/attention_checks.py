"""Rule about wrong answers to attention checks."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from django import forms

from studies.models.rules import register

from .. import FAIL, PASS, UNKNOWN, AssignmentFlags, RuleInput

if TYPE_CHECKING:
    from studies.models import Section


class FailedAttentionChecksSettings(forms.Form):
    failed = forms.IntegerField(
        min_value=1,
        max_value=100,
        initial=1,
        label="failed attention checks",
        help_text="Excludes annotators who answered at least this many wrongly. Two already end the assignment.",
    )


def missing_attention_check_problems(sections: Iterable["Section"], **settings) -> Iterator[str]:
    """Yield why the rule cannot work: no section has attention checks."""
    if not any(section.purpose == "attention" for section in sections):
        yield "no section has attention checks. Add one with the purpose attention."


@register(
    "failed_attention_checks",
    "failed attention checks: wrong answers to questions that say which answer to give",
    settings_form=FailedAttentionChecksSettings,
    problems=missing_attention_check_problems,
)
def flag_failed_attention_checks(rule_input: RuleInput, failed: int = 1) -> AssignmentFlags:
    """Flag submitted assignments with too many wrong answers to attention checks.

    Assignments that were not asked any are unknown. Those that the second wrong answer ended were never submitted.
    """
    flags = AssignmentFlags()
    right_keys = rule_input.attention_check_keys()
    rows = rule_input.responses
    rows = rows[(rows["purpose"] == "attention") & ~rows["is_erased"]]
    answered: Counter[int] = Counter()
    wrong: Counter[int] = Counter()
    for assignment, section, question, choice in zip(
        rows["assignment"], rows["section"], rows["question"], rows["choice"], strict=True
    ):
        answered[assignment] += 1
        wrong[assignment] += choice != right_keys.get((section, question))
    submitted = rule_input.assignments[rule_input.assignments["is_submitted"]]
    for assignment in submitted["assignment"]:
        if not answered[assignment]:
            flags.add(assignment, UNKNOWN)
            continue
        is_failed = wrong[assignment] >= failed
        evidence = f"{wrong[assignment]} of {answered[assignment]} attention checks wrong" if is_failed else ""
        flags.add(assignment, FAIL if is_failed else PASS, evidence)
    return flags
