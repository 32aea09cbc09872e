"""What tables and figures of several protocols are filled with."""

from collections.abc import Mapping, Sequence
from typing import Any

from .comparisons import NOT_PLANNED


def plain(names: Sequence[str]) -> list[str]:
    """Names as heads of columns, without the signs that part columns."""
    return [name.replace("|", "/").replace(";", ",") for name in names]


def ends(estimate: Any) -> list[float] | None:
    """The interval of an estimate; None where there is none, or no estimate."""
    return [estimate.interval.low, estimate.interval.high] if estimate and estimate.interval else None


def pvalue(estimate: Any) -> float | None:
    """The p value of an estimate, adjusted within its family where it has one."""
    if estimate is None or estimate.test is None:
        return None
    return estimate.test.pvalue if estimate.test.pvalue_adjusted is None else estimate.test.pvalue_adjusted


def point(estimate: Any, label: str, series: str) -> dict[str, Any]:
    """A row of a figure of intervals."""
    low, high = ends(estimate) or (None, None)
    return {
        "label": label, "series": series, "estimate": estimate.estimate, "n": estimate.n, "unit": estimate.unit, "low": low,
        "high": high,
    }  # fmt: skip


def role(contrast: Mapping[str, Any]) -> str:
    """The role of a comparison as tables name it, or that nobody planned it."""
    return str(contrast["role"]) if contrast["is_planned"] else NOT_PLANNED


def placed(one: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A table or figure whose title says, where several have the same, which section it is about."""
    return {**one, "title": f"{one['title']}{where}"}
