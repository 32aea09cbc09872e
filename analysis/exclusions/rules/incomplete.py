"""Rule about annotators who answered too few of their questions."""

from typing import TYPE_CHECKING, Any, cast

from django import forms

from annotators.counting import UNSEEN
from studies.models.rules import register

from .. import FAIL, PASS, UNKNOWN, AssignmentFlags, RuleInput

if TYPE_CHECKING:
    from pandas import DataFrame


class IncompleteSettings(forms.Form):
    share = forms.FloatField(
        min_value=0.01,
        max_value=1,
        initial=1.0,
        label="answered at least",
        help_text="Minimum share of the annotator's questions, from 0.01 to 1.",
    )


@register("incomplete", "incomplete: too few questions answered", settings_form=IncompleteSettings)
def flag_incomplete(rule_input: RuleInput, share: float = 1.0) -> AssignmentFlags:
    """Flag annotators who answered less than the given share of the questions that their arm was asked in live sections.

    Skipped, erased and unreadable answers count as not given; questions about unseen images count as answered. Optional texts are not counted, and all error marks in one text
    are one answer. Annotators with fewer items (one was retired, or third labels were needed) are compared only with each other.
    """
    flags = AssignmentFlags()
    rows = rule_input.responses
    rows = rows[rows["purpose"] == "live"]
    is_text = (rows["text"] != "") & rows["value"].isna() & (rows["choice"] == "") & rows["chosen_system"].isna()
    voluntary = set(rows.loc[is_text, "question"])
    rows = rows[~rows["question"].isin(voluntary)]
    is_given = rows["value"].notna() | (rows["choice"] != "") | rows["chosen_system"].notna()
    # An image that was not shown is no fault of the annotator.
    given = rows[(is_given & (rows["skip_reason"] == "")) | (rows["skip_reason"] == UNSEEN)]
    fewer = rule_input.live_item_counts()
    counts = _question_counts(given)
    submitted = rule_input.assignments[rule_input.assignments["is_submitted"]]
    group_by_assignment = {
        assignment: (arm, fewer.get(assignment))
        for assignment, arm in zip(rule_input.assignments["assignment"], rule_input.assignments["arm"], strict=True)
    }
    n_asked_by_group: dict[Any, int] = {}
    for assignment, n in _question_counts(rows).items():
        if assignment in group_by_assignment:
            n_asked_by_group[group_by_assignment[assignment]] = max(
                n, n_asked_by_group.get(group_by_assignment[assignment], 0)
            )
    for assignment in submitted["assignment"]:
        n_asked = n_asked_by_group.get(group_by_assignment[assignment], 0)
        if not n_asked:
            flags.add(assignment, UNKNOWN)
            continue
        n = counts.get(assignment, 0)
        is_short = n < share * n_asked - 1e-9
        flags.add(assignment, FAIL if is_short else PASS, f"answered {n} of {n_asked}" if is_short else "")
    return flags


def _question_counts(rows: "DataFrame") -> dict[int, int]:
    """Count the questions of each assignment. A question about an item, or about one of its outputs, counts once."""
    keys = ["assignment", "section", "question", "item", "system", "sample"]
    counts = rows[keys].drop_duplicates().groupby("assignment").size().to_dict()
    return cast("dict[int, int]", counts)  # the stubs of pandas do not know the type of a column
