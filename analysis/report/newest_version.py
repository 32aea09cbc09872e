"""Repeat the planned comparisons with only the answers to the newest version of an amended design.

The recommended estimates use all versions. This table shows whether the amendment changed them. It is descriptive, so it has
no tests and belongs to no family.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks import Block, Conclusion
from analysis.protocols.blocks.cells import comparison_label, contrast_of, interval_bounds
from analysis.protocols.blocks.populations import population_of
from analysis.protocols.blocks.tables import Table, build_table

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

NAME = "design.newest"
NO_ESTIMATE_REASON = "the newest version alone gives no estimate"
TITLE = "The result without earlier versions of the design"


def newest_version_blocks(all_version_blocks: Sequence[Block], newest_only_blocks: Sequence[Block]) -> list[Block]:
    """Return the newest-version estimate of each planned comparison in ``all_version_blocks``.

    ``detail["all_versions"]`` has the estimate and the n from all versions.
    """
    latest = {
        _key(name, conclusion): conclusion.estimate for name, conclusion in _named_conclusions(newest_only_blocks)
    }
    estimates = []
    for name, conclusion in _named_conclusions(all_version_blocks):
        overall = conclusion.estimate
        # Keep a row without an estimate if the newest version has no answers, or if its analysis failed (see the problems).
        newest = latest.get(_key(name, conclusion)) or replace(
            overall,
            status="no_data",
            reason=NO_ESTIMATE_REASON,
            estimate=None,
            interval=None,
            interval_adjusted=None,
            test=None,
            n=0,
            n_clusters=None,
            n_rows=0,
        )
        estimates.append(
            replace(
                newest,
                analysis=NAME,
                estimand=f"{newest.estimand}, from annotators of the newest version of the design",
                interval_adjusted=None,
                test=None,
                effect=None,
                sensitivity=(),
                warnings=(),
                settings={
                    "contrast": contrast_of(overall),
                    "subject": overall.settings["subject"],
                    "symbol": conclusion.wording.symbol,
                    "population": population_of(newest),
                },
                detail={"all_versions": {"estimate": overall.estimate, "n": overall.n}},
            )
        )
    if not estimates:
        return []
    note = "Descriptive comparison with the estimates from all versions, without tests."
    return [Block(NAME, TITLE, "recommended", estimates=tuple(estimates), tables=[_table(estimates)], note=note)]


def _named_conclusions(blocks: Iterable[Block]) -> Iterator[tuple[str, Conclusion]]:
    """Give each conclusion with the name of its block."""
    return ((block.name, conclusion) for block in blocks for conclusion in block.conclusions)


def _key(name: str, conclusion: Conclusion) -> tuple[Any, ...]:
    return name, contrast_of(conclusion.estimate)["section"], conclusion.name


def _table(estimates: Iterable["Estimate"]) -> Table:
    """Return each planned comparison from all versions and from only the newest version."""
    rows = [
        {
            "contrast": comparison_label(estimate),
            "what": estimate.settings["symbol"],
            "all": estimate.detail["all_versions"]["estimate"],
            "all_n": estimate.detail["all_versions"]["n"],
            "newest": estimate.estimate,
            "interval": interval_bounds(estimate),
            "n": estimate.n,
            "unit": estimate.unit,
            "reason": estimate.reason,
        }
        for estimate in estimates
    ]
    return build_table(
        "versions",
        TITLE,
        "contrast|Comparison|text; what|Quantity|text; all|All versions|fine_number; all_n|n|integer; newest|Newest version only|fine_number; "
        "interval|95% CI|fine_wide_interval; n|n, newest|integer; unit|n counts|text; reason|Undefined because|text",
        rows,
        "sure",
    )
