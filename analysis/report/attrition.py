"""Differential attrition: arms that lose different shares of their annotators are no longer comparable."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.exclusions.applied_rules import AppliedRule
from analysis.protocols.blocks import Block, apa
from analysis.protocols.blocks.cells import interval_bounds, reported_pvalue
from analysis.protocols.blocks.tables import Table, build_table

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from analysis.stats.groups import Attrition

NAME = "attrition"
# Reasons of annotators who left before they saw their arm. Screening comes before the arm's first page.
NEVER_STARTED_REASONS = ("full", "screened_out")
DROPOUT_LABEL, EXCLUDED_LABEL = "left before the last page", "excluded by a primary rule"


def build_attrition_block(
    assignments: "DataFrame",
    applied_rules: list[AppliedRule],
    *,
    level: float,
    resamples: int,
    rng: "np.random.Generator",
) -> Block | None:
    """Return the share lost in each arm, with differences, for dropouts and exclusions, or None for a single arm.

    Annotators who found no place or were screened out did not start. Annotators who are still working are not lost.
    Only outcome-blind rules are used: rules that use outcomes can exclude different shares because outcomes differ.
    """
    from analysis.stats.groups import differential_attrition

    began = assignments[~assignments["released_reason"].isin(NEVER_STARTED_REASONS)]
    arms = sorted(began["arm"].dropna().unique())
    if len(arms) < 2:
        return None
    rules = [rule for rule in applied_rules if rule.excludes and rule.is_outcome_blind]
    excluded = set().union(*(rule.failed for rule in rules))
    submitted = began[began["is_submitted"]]
    losses, estimates = [], []
    for reason, people, is_lost in (
        (DROPOUT_LABEL, began, ~began["is_submitted"] & began["released_at"].notna()),
        (EXCLUDED_LABEL, submitted, submitted["assignment"].isin(excluded)),
    ):
        arm_masks = [people["arm"] == arm for arm in arms]
        lost = differential_attrition(
            [int(is_in_arm.sum()) for is_in_arm in arm_masks],
            [int((is_in_arm & is_lost).sum()) for is_in_arm in arm_masks],
            arms,
            level=level,
            resamples=resamples,
            rng=rng,
            unit="assignment",
        )
        losses.append((reason, lost))
        estimates += [
            replace(estimate, settings={**estimate.settings, "lost": reason})
            for estimate in (*lost.shares, *lost.differences, lost.test)
        ]
    return Block(NAME, "Attrition by arm", "recommended", estimates=tuple(estimates), tables=[_table(losses)])


def _table(losses: Sequence[tuple[str, "Attrition"]]) -> Table:
    """Return the share lost in each arm and its difference from the first arm."""
    rows = []
    for reason, lost in losses:
        differences = {difference.settings["condition"]: difference for difference in lost.differences}
        for share in lost.shares:
            difference = differences.get(share.settings["condition"])
            rows.append(
                {
                    "lost": reason,
                    "arm": share.settings["condition"],
                    "n": share.n,
                    "n_lost": share.detail.get("successes", 0),
                    "share": share.estimate,
                    "interval": interval_bounds(share),
                    "difference": difference and difference.estimate,
                    "difference_interval": interval_bounds(difference),
                    "p": reported_pvalue(difference),
                    "reason": share.reason or (difference.reason if difference else ""),
                }
            )
    tests = [f"{reason}: {apa.format_named_pvalue(lost.test.test)}" for reason, lost in losses if lost.test.test]
    return build_table(
        "attrition",
        "Attrition by arm",
        "lost|Lost|text; arm|Arm|text; n|n assignments|integer; n_lost|n lost|integer; share|Share|fine_percent; interval|95% CI|fine_interval; "
        "difference|Difference from the first arm|fine_percent; difference_interval|95% CI, difference|fine_interval; p|adj. p|p; "
        "reason|Undefined because|text",
        rows,
        "sure",
        "If arms lose different annotators, the remaining annotators are no longer comparable, despite random assignment. Annotators who found no "
        "place or were screened out did not start and are not counted."
        + (f" Test that all arms lose the same share: {'; '.join(tests)}." if tests else ""),
    )
