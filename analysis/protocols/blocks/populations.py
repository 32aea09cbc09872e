"""What numbers are about: people and, as the second sample, prompts or groups of prompts."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.data.frames import SECOND_SAMPLE, is_group_label

from .comparisons import Comparison

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate

GROUP = "group of prompts"


def has_groups(rows: "DataFrame") -> bool:
    """Return whether some prompts of the rows belong to groups, so that the second sample are groups."""
    return any(is_group_label(label) for label in rows[SECOND_SAMPLE].unique())


def second_sample_noun(rows: "DataFrame") -> str:
    return "groups of prompts" if has_groups(rows) else "prompts"


def about_groups(estimate: "Estimate", rows: "DataFrame", population: str) -> "Estimate":
    """Return an estimate over annotators and the second sample of these rows. If that are groups, it says so.

    ``detail["n_groups"]`` counts them, and ``n_prompts`` their prompts. Unless ``population`` declares exactly these prompts, fewer
    than five groups give no interval: its sensitivities still have the one for exactly these prompts.
    """
    from analysis.stats.clusters import PEOPLE, TOO_FEW_ITEMS, without_interval_if_too_few

    if isinstance(rows.index.names[0], str):
        rows = rows.reset_index()
    if not len(rows) or not has_groups(rows):
        return estimate
    n_groups = rows[SECOND_SAMPLE].nunique()
    counts = {"n_prompts": rows["prompt"].nunique()}
    if estimate.settings.get("population") != PEOPLE or population != "people":
        counts["n_groups"] = n_groups
    warnings = tuple(
        replace(warning, detail={**warning.detail, "cluster": GROUP})
        if warning.detail.get("cluster") in ("item", "prompt")
        else warning
        for warning in estimate.warnings
    )
    estimate = replace(estimate, detail={**estimate.detail, **counts}, warnings=warnings)
    if population == "people" or n_groups >= TOO_FEW_ITEMS:
        return estimate
    for_these = replace(estimate, sensitivity=(), analysis=f"{estimate.analysis}.by_annotator")
    known = {one.analysis for one in estimate.sensitivity}
    sensitivity = (*estimate.sensitivity, *(() if for_these.analysis in known else (for_these,)))
    return without_interval_if_too_few(replace(estimate, sensitivity=sensitivity), n_groups, "groups of prompts")


def table_population(comparisons: Iterable[Comparison], rows: "DataFrame") -> str:
    """Return the declared population of the tables of one question: people and prompts, or people for exactly these prompts.

    They are about the narrowest population that a planned comparison of the question declares. If none declares any, the rows
    decide, as they do for comparisons.
    """
    from analysis.stats.clusters import TOO_FEW_ITEMS

    declared = {compared.population for compared in comparisons if compared.is_planned} - {""}
    if declared:
        return "people" if "people" in declared else "people_and_prompts"
    return "people" if rows[SECOND_SAMPLE].nunique() < TOO_FEW_ITEMS else "people_and_prompts"
