"""Whether arms lost different shares of their people: a randomisation that the people themselves undid."""

from dataclasses import replace
from typing import TYPE_CHECKING

from .blocks import Block
from .exclusions.applied import Applied

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

NAME = "attrition"
# How those ended who saw nothing of their arm: the questions who may take part come before all else.
NOT_BEGUN = ("full", "screened_out")
LEFT, EXCLUDED = "left before the last page", "left out by a primary rule"


def attrition(
    assignments: "DataFrame", applied: list[Applied], *, level: float, resamples: int, rng: "np.random.Generator"
) -> Block | None:
    """Shares lost by arm, for those who left and for those left out, each with its differences; None with one arm.

    Who found no place or may not take part did not begin, and who is still at work is not lost. People are left out by rules
    that do not look at outcomes: of others one would have to ask first why the outcomes differ.
    """
    from analysis.stats.groups import differential_attrition

    began = assignments[~assignments["released_reason"].isin(NOT_BEGUN)]
    arms = sorted(began["arm"].dropna().unique())
    if len(arms) < 2:
        return None
    rules = [rule for rule in applied if rule.excludes and rule.is_outcome_blind]
    excluded = set().union(*(rule.failed for rule in rules))
    submitted = began[began["is_submitted"]]
    estimates = []
    for reason, people, is_lost in (
        (LEFT, began, ~began["is_submitted"] & began["released_at"].notna()),
        (EXCLUDED, submitted, submitted["assignment"].isin(excluded)),
    ):
        of_arm = [people["arm"] == arm for arm in arms]
        found = differential_attrition(
            [int(mine.sum()) for mine in of_arm], [int((mine & is_lost).sum()) for mine in of_arm], arms,
            level=level, resamples=resamples, rng=rng, unit="assignment",
        )  # fmt: skip
        estimates += [
            replace(one, settings={**one.settings, "lost": reason})
            for one in (*found.shares, *found.differences, found.test)
        ]
    return Block(NAME, "Who was lost, by arm", "recommended", estimates=tuple(estimates))
