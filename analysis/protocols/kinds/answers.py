"""Prepare rows of answers for the statistics."""

from typing import TYPE_CHECKING, Any

from analysis.data.frames import SECOND_SAMPLE, cluster_labels, rows_where
from studies.protocols import REGISTRY
from studies.protocols.base.fields import ScaleSpec, parse_scale

if TYPE_CHECKING:
    from pandas import DataFrame, Series

# The columns of clusters, whose names no statistic prints, and those whose names are in results. All others are numbers.
CLUSTERS = frozenset({"annotator", "item", "prompt", SECOND_SAMPLE})
NAMES = frozenset({"system", "text", "group", "condition", "domain", "label"})


def column_arrays(rows: "DataFrame", *names: str) -> list[Any]:
    """Return columns as arrays: clusters as ``cluster_labels``, names as objects, and everything else as numbers."""
    return [
        cluster_labels(rows[name]) if name in CLUSTERS else rows[name].to_numpy(object if name in NAMES else float)
        for name in names
    ]


def kept_and_paper_rows(rows: "DataFrame") -> tuple["DataFrame", "DataFrame"]:
    """Return the rows that the outcome-blind rules keep, and those that all primary rules keep."""
    return rows_where(rows, rows["is_kept"].astype(bool)), rows_where(rows, rows["is_kept_paper"].astype(bool))


def settings_of(section: Any) -> dict[str, Any]:
    return REGISTRY[section.protocol].cleaned_settings(section)


def readable_scale(question: Any) -> ScaleSpec | None:
    """Return the scale of a question, or None if it cannot be read, which the frame reports as a problem."""
    try:
        return parse_scale(question.scale)
    except (AttributeError, ValueError, TypeError, KeyError):
        return None


def join_columns(rows: "DataFrame", *names: str) -> "Series":
    """Return one column of categories that names what several columns name together."""
    import numpy as np
    import pandas as pd

    numbers = rows.groupby(list(names), dropna=False, sort=False).ngroup().to_numpy()
    distinct = rows.iloc[np.unique(numbers, return_index=True)[1]]
    first, *others = (distinct[name].astype(str) for name in names)
    for other in others:
        first = first + "\x1f" + other
    return pd.Series(pd.Categorical(first).take(numbers), index=rows.index)
