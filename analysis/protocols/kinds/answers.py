"""Prepare rows of answers for the statistics."""

import math
from typing import TYPE_CHECKING, Any

from analysis.data.frames import SECOND_SAMPLE, cluster_labels, rows_where, with_plain_texts
from studies.models import Output
from studies.protocols import REGISTRY
from studies.protocols.base.fields import ScaleSpec, parse_scale
from studies.stimuli.words import share_of_words_kept

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


def read_rewrites(frame: "DataFrame", section: Any) -> "DataFrame | None":
    """Return the rewritten texts of a section that outcome-blind rules keep, or None if no question asks for them.

    Column ``kept``: the share of the words of the original that the rewrite has too, NaN for an original without words.
    """
    keys = [one.key for one in section.questions.all() if (scale := readable_scale(one)) and scale.kind == "rewrite"]
    if not keys:
        return None
    rows = frame[(frame["section"] == section.position) & frame["question"].isin(keys) & frame["is_kept"].astype(bool)]
    rows = with_plain_texts(rows[(rows["text"] != "") & rows["system"].notna()])
    outputs = Output.objects.filter(system__study=section.study_id, prompt__key__in=set(rows["prompt"]))
    originals = {
        (prompt, system, sample): text
        for prompt, system, sample, text in outputs.values_list("prompt__key", "system__name", "sample", "text")
    }
    texts = [rows[name] for name in ("prompt", "system", "sample", "text")]
    kept = [share_of_words_kept(originals[*shown], text) for *shown, text in zip(*texts, strict=True)]
    return rows.assign(kept=[math.nan if share is None else share for share in kept])


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
