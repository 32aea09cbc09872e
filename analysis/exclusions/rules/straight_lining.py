"""Rule about giving the same answer to all questions although the answers contradict each other."""

from itertools import groupby
from typing import cast

from studies.models.rules import register

from .. import FAIL, PASS, UNKNOWN, AssignmentFlags, RuleInput

MIN_CONSTANT = 8
MIN_RUN, RUN_SHARE = 10, 0.8


@register("straight_lining", "straight lining: the same answer to contradicting questions", is_outcome_blind=False)
def flag_contradictory_straight_lining(rule_input: RuleInput) -> AssignmentFlags:
    """Flag long runs of one answer that contradict themselves: the same answer to both directions of a pair, except 50 %.

    A long run of equal ratings is unknown, with its length as evidence. It may be the person's opinion, so it never excludes.
    """
    flags = AssignmentFlags(dict.fromkeys(rule_input.submitted, PASS))
    rows = rule_input.responses
    rows = rows[rows["value"].notna() & (rows["purpose"] == "live") & (rows["choice"] == "")]
    rows = rows.sort_values(["assignment", "received_at", "section", "position", "id"], kind="stable")
    for group, own_rows in rows.groupby("assignment", sort=False):
        assignment = cast(int, group)  # the stubs of pandas do not know the type of a column
        if assignment not in flags.states:
            continue
        for _, part in own_rows.groupby("section", sort=False):
            values = [round(value, 6) for value in part["value"]]
            value, longest = max(
                ((value, len(list(run))) for value, run in groupby(values)),
                key=lambda value_and_length: value_and_length[1],
            )
            is_long = longest >= max(MIN_RUN, RUN_SHARE * len(values))
            is_constant = len(set(values)) == 1 and len(values) >= MIN_CONSTANT
            if not (is_long or is_constant):
                continue
            pairs = set(zip(part["x"], part["y"], strict=True))
            asks_both_directions = any(isinstance(x, str) and (y, x) in pairs for x, y in pairs)
            evidence = f"{longest} times {value:g} of the scale in a row, of {len(values)} answers"
            if asks_both_directions and value != 0.5:
                flags.add(assignment, FAIL, evidence)
            elif not asks_both_directions and flags.states[assignment] == PASS:
                flags.add(assignment, UNKNOWN, evidence)
    return flags
