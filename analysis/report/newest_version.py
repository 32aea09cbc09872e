"""The planned comparisons once more, from those alone who answered the newest version of an amended design.

The recommended estimates take all versions together. Whether the amendment moved them is seen beside what they are without the
versions before; nobody is judged by it, so it has no tests and belongs to no family.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks import Block, Conclusion
from analysis.protocols.blocks.cells import comparison_label, contrast_of, interval_bounds
from analysis.protocols.blocks.tables import Table, build_table

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

NAME = "design.newest"
NO_ESTIMATE_REASON = "nothing could be estimated from the newest version alone"
TITLE = "The result without earlier versions of the design"


def newest_version_blocks(all_version_blocks: Sequence[Block], newest_only_blocks: Sequence[Block]) -> list[Block]:
    """What ``newest`` has for each comparison that ``whole`` concludes from; none where nothing was planned.
    ``detail["all_versions"]`` holds the estimate and the n that it stands beside."""
    latest = {_key(name, one): one.estimate for name, one in _named_conclusions(newest_only_blocks)}
    found = []
    for name, one in _named_conclusions(all_version_blocks):
        before = one.estimate
        # Told too where nobody of the newest version was asked, or where their analysis failed (which is among the problems).
        mine = latest.get(_key(name, one)) or replace(
            before,
            status="no_data",
            reason=NO_ESTIMATE_REASON,
            estimate=None,
            interval=None,
            test=None,
            n=0,
            n_clusters=None,
            n_rows=0,
        )
        found.append(
            replace(
                mine,
                analysis=NAME,
                estimand=f"{mine.estimand}, from those who answered the newest version of the design",
                test=None,
                effect=None,
                sensitivity=(),
                warnings=(),
                settings={"contrast": contrast_of(before), "symbol": one.wording.symbol},
                detail={"all_versions": {"estimate": before.estimate, "n": before.n}},
            )
        )
    if not found:
        return []
    note = "Set beside the whole, not judged: no tests."
    return [Block(NAME, TITLE, "recommended", estimates=tuple(found), tables=[_table(found)], note=note)]


def _named_conclusions(blocks: Iterable[Block]) -> Iterator[tuple[str, Conclusion]]:
    """(block's name, what it concludes)."""
    return ((block.name, one) for block in blocks for one in block.conclusions)


def _key(name: str, one: Conclusion) -> tuple[Any, ...]:
    return name, contrast_of(one.estimate)["section"], one.name


def _table(found: Iterable["Estimate"]) -> Table:
    """Each planned comparison from all versions and from the newest alone."""
    rows = [
        {
            "contrast": comparison_label(one, True),
            "what": one.settings["symbol"],
            "all": one.detail["all_versions"]["estimate"],
            "all_n": one.detail["all_versions"]["n"],
            "newest": one.estimate,
            "interval": interval_bounds(one),
            "n": one.n,
            "unit": one.unit,
            "reason": one.reason,
        }
        for one in found
    ]
    return build_table(
        "versions",
        TITLE,
        "contrast|Comparison|text; what|What|text; all|All versions|fine_number; all_n|n|integer; newest|Newest version alone|fine_number; "
        "interval|95% CI|fine_wide_interval; n|n, newest|integer; unit|n counts|text; reason|Undefined because|text",
        rows,
        "sure",
    )
