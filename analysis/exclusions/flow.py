"""The flow of annotators through the rules, from arrival to the kept answers."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from . import UNKNOWN
from .applied_rules import AppliedRule

if TYPE_CHECKING:
    from pandas import DataFrame


def exclusion_flow(applied_rules: list[AppliedRule], assignments: "DataFrame") -> dict[str, Any]:
    """Return the flow: stages, each rule's marginal and sequential counts (also by arm), overlaps, and excluded assignments.

    Sequential counts follow the order of the rules: n_in - n_excluded = n_out. Each started assignment is either released,
    unfinished or submitted.
    """
    submitted = assignments[assignments["is_submitted"]]
    arms = dict(zip(submitted["assignment"], submitted["arm"], strict=True))
    names = dict(zip(submitted["assignment"], submitted["annotator"], strict=True))
    remaining = list(arms)
    flagged_by: dict[int, list[str]] = {}
    steps, excluded_assignments = [], []
    for rule in applied_rules:
        for assignment in rule.failed_assignment_ids & arms.keys():
            if rule.excludes:
                flagged_by.setdefault(assignment, []).append(rule.slug)
        excluded = (
            [assignment for assignment in remaining if assignment in rule.failed_assignment_ids]
            if rule.excludes
            else []
        )
        before = Counter(arms[assignment] for assignment in remaining)
        n_excluded_by_arm = Counter(arms[assignment] for assignment in excluded)
        n_in = len(remaining)
        remaining = (
            [assignment for assignment in remaining if assignment not in rule.failed_assignment_ids]
            if rule.excludes
            else remaining
        )
        steps.append(
            {
                "rule": rule.slug,
                "label": rule.label,
                "role": rule.role,
                "is_outcome_blind": rule.is_outcome_blind,
                "settings": dict(rule.settings),
                "problem": rule.problem,
                "n_in": n_in,
                "n_flagged": len(rule.failed_assignment_ids & arms.keys()),
                "n_unknown": sum(state == UNKNOWN for state in rule.flags.states.values()),
                "n_excluded": len(excluded),
                "n_out": len(remaining),
                "by_arm": {
                    arm: {"n_in": n, "n_excluded": n_excluded_by_arm.get(arm, 0)} for arm, n in sorted(before.items())
                },
            }
        )
        excluded_assignments += [
            {"annotator": names[assignment], "rule": rule.slug, "evidence": rule.flags.evidence.get(assignment, "")}
            for assignment in excluded
        ]
    overlaps = Counter(tuple(sorted(rules)) for rules in flagged_by.values())
    # Annotators who submitted after their release count as submitted, not as released.
    unsubmitted = assignments[~assignments["is_submitted"]]
    reasons = Counter(reason for reason in unsubmitted["released_reason"] if reason)
    return {
        "unit": "assignment",
        "arrived": len(assignments),
        "turned_away": reasons.get("full", 0),
        "started": len(assignments) - reasons.get("full", 0),
        "released": {reason: n for reason, n in sorted(reasons.items()) if reason != "full"},
        "unfinished": int((~assignments["is_submitted"] & assignments["released_at"].isna()).sum()),
        "submitted": len(arms),
        "rules": steps,
        "overlaps": [
            {"rules": list(rules), "n": n} for rules, n in sorted(overlaps.items(), key=lambda o: (-o[1], o[0]))
        ],
        "excluded_assignments": sorted(excluded_assignments, key=lambda row: (row["rule"], row["annotator"])),
        "kept": len(remaining),
    }
