"""What may make arms incomparable: they lose different shares of their annotators, or were filled at different times."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.exclusions.applied_rules import AppliedRule
from analysis.protocols.blocks import Block, apa
from analysis.protocols.blocks.cells import interval_bounds, pvalue_cell
from analysis.protocols.blocks.tables import Table, build_table

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from analysis.stats.groups import Attrition

NAME = "attrition"
# Shares of people who leave do not depend on prompts alone, but on all that they were asked to do.
POPULATION = "people, for exactly this task"
# Reasons of annotators who left before they saw their arm. Screening comes before the arm's first page.
NEVER_STARTED_REASONS = ("full", "screened_out")
ARRIVAL_NAME = "arrival"
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
    excluded = _outcome_blind_exclusions(applied_rules)
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
        )
        losses.append((reason, lost))
        estimates += [
            replace(estimate, settings={**estimate.settings, "lost": reason, "population": POPULATION})
            for estimate in (*lost.shares, *lost.differences, lost.test)
        ]
    return Block(NAME, "Attrition by arm", "recommended", estimates=tuple(estimates), tables=[_table(losses)])


def _outcome_blind_exclusions(applied_rules: list[AppliedRule]) -> set[int]:
    return set().union(
        *(rule.failed_assignment_ids for rule in applied_rules if rule.excludes and rule.is_outcome_blind)
    )


def build_arrival_block(
    assignments: "DataFrame", applied_rules: list[AppliedRule], *, resamples: int, rng: "np.random.Generator"
) -> Block | None:
    """Return the places of the arms in the order of arrival, or None for a single arm.

    Only annotators who submitted and are not excluded count, each with their first assignment. Imported answers have no
    arrival.
    """
    from analysis.stats.groups import arrival_order

    is_excluded = assignments["assignment"].isin(_outcome_blind_exclusions(applied_rules))
    counted = assignments[assignments["is_submitted"] & ~is_excluded & (assignments["origin"] != "imported")]
    counted = counted.sort_values(["claimed_at", "assignment"]).drop_duplicates("annotator")
    counted = counted[counted["arm"].notna() & counted["claimed_at"].notna()]
    if counted["arm"].nunique() < 2:
        return None
    since_first = (counted["claimed_at"] - counted["claimed_at"].min()).dt.total_seconds()
    found = arrival_order(since_first.to_numpy(), counted["arm"].tolist(), resamples=resamples, rng=rng)
    test_text = (
        f" Test that arms were filled at the same time: {apa.format_named_pvalue(found.test.test)}."
        if found.test.test
        else ""
    )
    rows = [{"arm": place.settings["condition"], "n": place.n, "place": place.estimate} for place in found.places]
    table = build_table(
        ARRIVAL_NAME,
        "Arrival by arm",
        "arm|Arm|text; n|n annotators|integer; place|Mean place|number",
        rows,
        "sure",
        "The mean place in the order of arrival of those who submitted and are not excluded: 0 is the first, 1 is the last, and 0.5 is expected. "
        "An arm that loses people is filled later, so a change over time can look like an effect of the arm."
        + test_text,
    )
    estimates = tuple(
        replace(one, settings={**one.settings, "population": POPULATION}) for one in (*found.places, found.test)
    )
    return Block(ARRIVAL_NAME, "Arrival by arm", "recommended", estimates=estimates, tables=[table])


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
                    "p": pvalue_cell(difference),
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
