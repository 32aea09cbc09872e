"""Whether arms lost different shares of their people: a randomisation that the people themselves undid."""

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
# How those ended who saw nothing of their arm: the questions who may take part come before all else.
NEVER_STARTED_REASONS = ("full", "screened_out")
DROPOUT_LABEL, EXCLUDED_LABEL = "left before the last page", "left out by a primary rule"


def attrition(
    assignments: "DataFrame",
    applied_rules: list[AppliedRule],
    *,
    level: float,
    resamples: int,
    rng: "np.random.Generator",
) -> Block | None:
    """Shares lost by arm, for those who left and for those left out, each with its differences; None with one arm.

    Who found no place or may not take part did not begin, and who is still at work is not lost. People are left out by rules
    that do not look at outcomes: of others one would have to ask first why the outcomes differ.
    """
    from analysis.stats.groups import differential_attrition

    began = assignments[~assignments["released_reason"].isin(NEVER_STARTED_REASONS)]
    arms = sorted(began["arm"].dropna().unique())
    if len(arms) < 2:
        return None
    rules = [rule for rule in applied_rules if rule.excludes and rule.is_outcome_blind]
    excluded = set().union(*(rule.failed for rule in rules))
    submitted = began[began["is_submitted"]]
    found, lines = [], []
    for reason, people, is_lost in (
        (DROPOUT_LABEL, began, ~began["is_submitted"] & began["released_at"].notna()),
        (EXCLUDED_LABEL, submitted, submitted["assignment"].isin(excluded)),
    ):
        of_arm = [people["arm"] == arm for arm in arms]
        lost = differential_attrition(
            [int(mine.sum()) for mine in of_arm],
            [int((mine & is_lost).sum()) for mine in of_arm],
            arms,
            level=level,
            resamples=resamples,
            rng=rng,
            unit="assignment",
        )
        found.append((reason, lost))
        lines += [
            replace(one, settings={**one.settings, "lost": reason})
            for one in (*lost.shares, *lost.differences, lost.test)
        ]
    return Block(NAME, "Who was lost, by arm", "recommended", estimates=tuple(lines), tables=[_table(found)])


def _table(found: Sequence[tuple[str, "Attrition"]]) -> Table:
    """Who was lost in each arm, and whether arms differ in it."""
    rows = []
    for reason, lost in found:
        differences = {one.settings["condition"]: one for one in lost.differences}
        for one in lost.shares:
            other = differences.get(one.settings["condition"])
            rows.append(
                {
                    "lost": reason,
                    "arm": one.settings["condition"],
                    "n": one.n,
                    "n_lost": one.detail.get("successes", 0),
                    "share": one.estimate,
                    "interval": interval_bounds(one),
                    "difference": other and other.estimate,
                    "difference_interval": interval_bounds(other),
                    "p": reported_pvalue(other),
                    "reason": one.reason or (other.reason if other else ""),
                }
            )
    tests = [f"{reason}: {apa.test_pvalue(lost.test.test)}" for reason, lost in found if lost.test.test]
    return build_table(
        "attrition",
        "Who was lost, by arm",
        "lost|Lost|text; arm|Arm|text; n|n assignments|integer; n_lost|Of them lost|integer; share|Share|fine_percent; interval|95% CI|fine_interval; "
        "difference|Difference from the first arm|fine_percent; difference_interval|95% CI, difference|fine_interval; p|adj. p|p; "
        "reason|Undefined because|text",
        rows,
        "sure",
        "Where arms lose different people, those who remain are no longer alike, whatever drew them. Who found no place or was screened out did "
        "not begin." + (f" Test that all arms lose the same share: {'; '.join(tests)}." if tests else ""),
    )
