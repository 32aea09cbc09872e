"""Figures of a report as data: the rows of numbers of each. ``analysis.report.plots`` draws them."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from . import apa
from .cells import interval_bounds, is_sequential

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


# Names of figures that a report shows open at the top. If there are several, the first in this list wins.
FOREST, RATINGS = "forest", "ratings"
LEAD_FIGURES = (FOREST, RATINGS)
# How readers know the methods of intervals. Another method is named as it is in the JSON.
METHOD_NAMES = {
    "t": "t",
    "cv3_t": "t, with clusters",
    "two_way_cv3_t": "t, with clusters in two ways",
    "cv3_score": "score t, with clusters",
    "two_way_cv3_score": "score t, with clusters in two ways",
    "welch_t": "Welch's t",
    "percentile": "percentile bootstrap",
    "bca": "BCa bootstrap",
    "betting": "betting",
    "hoeffding": "Hoeffding's bound",
    "max_t": "largest of all t values",
    "wilson": "Wilson",
    "newcombe": "Newcombe",
    "fisher_z": "Fisher's z",
    "wald": "Wald",
    "games_howell": "Games and Howell",
    "tukey_hsd": "Tukey",
    "f": "F",
}


class Figure(TypedDict):
    name: str
    title: str
    description: str
    axis: str
    reference: float | None
    limits: list[float] | None
    kind: str  # intervals | bars
    rows: list[Mapping[str, Any]]


def build_figure(
    name: str,
    title: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    description: str,
    axis: str,
    reference: float | None = None,
    limits: list[float] | None = None,
    kind: str = "intervals",
) -> Figure:
    """Build a figure. Rows (see ``figure_row``) without an estimate are left out. ``limits``: the limits of the axis, if fixed.

    The caption names the levels and methods of the intervals that are drawn.
    """
    shown: list[dict[str, Any]] = [dict(row) for row in rows if row["estimate"] is not None]
    intervals: dict[str, dict[str, None]] = {}
    for row in shown:
        if interval := row.pop("interval", ""):
            intervals.setdefault(row["series"], {})[interval] = None
    return {
        "name": name,
        "title": title,
        "description": f"{description} {_intervals_sentence(intervals)}".strip(),
        "axis": axis,
        "reference": reference,
        "limits": limits,
        "kind": kind,
        "rows": [*shown],
    }


def figure_row(estimate: "Estimate", label: str, series: str) -> dict[str, Any]:
    """Return a row of an interval figure."""
    low, high = interval_bounds(estimate) or (None, None)
    return {
        "label": label,
        "series": series,
        "estimate": estimate.estimate,
        "n": estimate.n,
        "unit": estimate.unit,
        "low": low,
        "high": high,
        "interval": _interval_in_words(estimate) if low is not None else "",
    }


def _interval_in_words(estimate: "Estimate") -> str:
    """Return the level, kind and method of the interval that is drawn for an estimate."""
    interval = estimate.interval_adjusted or estimate.interval
    if interval is None:
        return ""
    kind = "confidence sequences" if is_sequential(estimate) else "confidence intervals"
    method = METHOD_NAMES.get(interval.method, interval.method.replace("_", " "))
    return f"{apa.format_confidence_level(estimate)} {kind} ({method})"


def _intervals_sentence(intervals: Mapping[str, Iterable[str]]) -> str:
    """Return the sentence about the lines of a figure. ``intervals``: those of each series, in words."""
    if len({tuple(found) for found in intervals.values()}) < 2:
        intervals = dict.fromkeys(("",), next(iter(intervals.values()), ()))
    named = [f"{f'{series}: ' if series else ''}{' or '.join(found)}" for series, found in intervals.items() if found]
    return f"Lines are {'; '.join(named)}." if named else ""


def interval_ends_as_text(
    low: float | None, high: float | None, reference: float | None, digits: int
) -> tuple[str, str]:
    """Return both ends of an interval with equally many decimals. None of them looks like the reference if it is another value.

    >>> interval_ends_as_text(0.5003, 0.76, 0.5, 2), interval_ends_as_text(None, None, 0.5, 2)
    (('0.5003', '0.7600'), ('–', '–'))
    """
    digits = apa.digits_to_distinguish([low, high], digits, () if reference is None else (reference,))
    return apa.format_number(low, digits), apa.format_number(high, digits)


def lead_figure(figures: Collection[Figure]) -> Figure | None:
    """Return the figure that the report shows open above its tables."""
    by_name = {figure["name"]: figure for figure in figures}
    return next((by_name[name] for name in LEAD_FIGURES if name in by_name), None)
