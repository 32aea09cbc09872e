"""What each number of a report is about: which units represent others like them, and which are exactly those of the study.

A population is "people and prompts", "people" (for exactly these prompts), or "<units>, for exactly <what is fixed>". Where prompts belong
to groups, groups take the place of prompts.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.frames import SECOND_SAMPLE, is_group_label

from .cells import GROUP, format_count, plural_noun
from .comparisons import Comparison
from .layouts import Figure, Table

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate

    from . import Block

# The words of a stored number that can name what was sampled beside people.
WORDED = ("unit", "reason", "fallback", "saved_reason")


def has_groups(rows: "DataFrame") -> bool:
    """Return whether some prompts of the rows belong to groups, so that the second sample are groups."""
    return any(is_group_label(label) for label in rows[SECOND_SAMPLE].unique())


def group_noun(labels: Iterable[object]) -> str:
    """Return what one group of these labels is called: by the study's word if each prompt has a group, else "group of prompts".

    >>> group_noun(["\\x1fdocument\\x1freport"]), group_noun(["\\x1fdocument\\x1freport", "p1"])
    ('document', 'group of prompts')
    """
    nouns = {str(label).split("\x1f")[1] if is_group_label(label) else "" for label in set(labels)}
    return (min(nouns) if len(nouns) == 1 else "") or GROUP


def second_sample_noun(rows: "DataFrame") -> str:
    return plural_noun(group_noun(rows[SECOND_SAMPLE])) if has_groups(rows) else "prompts"


def about_groups(estimate: "Estimate", rows: "DataFrame", population: str) -> "Estimate":
    """Return an estimate over annotators and the second sample of these rows. If that are groups, it says so.

    ``detail["n_groups"]`` counts them, ``n_prompts`` their prompts, and ``group_noun`` is what one is called. Unless ``population`` declares exactly these prompts, fewer
    than five groups give no interval: its sensitivities still have the one for exactly these prompts.
    """
    from analysis.stats.cluster_variances import PEOPLE, TOO_FEW_ITEMS
    from analysis.stats.clusters import without_interval_if_too_few

    if isinstance(rows.index.names[0], str):
        rows = rows.reset_index()
    if not len(rows) or not has_groups(rows):
        return estimate
    n_groups = rows[SECOND_SAMPLE].nunique()
    noun = group_noun(rows[SECOND_SAMPLE])
    counts = {"n_prompts": rows["prompt"].nunique()} | noun_of_groups(noun)
    if estimate.settings.get("population") != PEOPLE or population != "people":
        counts["n_groups"] = n_groups
    warnings = tuple(
        replace(warning, detail={**warning.detail, "cluster": noun})
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
    return without_interval_if_too_few(replace(estimate, sensitivity=sensitivity), n_groups, plural_noun(noun))


def table_population(comparisons: Iterable[Comparison], rows: "DataFrame") -> str:
    """Return the declared population of the tables of one question: people and prompts, or people for exactly these prompts.

    They are about the narrowest population that a planned comparison of the question declares. If none declares any, the rows
    decide, as they do for comparisons.
    """
    from analysis.stats.cluster_variances import TOO_FEW_ITEMS

    declared = {compared.population for compared in comparisons if compared.is_planned} - {""}
    if declared:
        return "people" if "people" in declared else "people_and_prompts"
    return "people" if rows[SECOND_SAMPLE].nunique() < TOO_FEW_ITEMS else "people_and_prompts"


def population_of(estimate: "Estimate") -> str:
    """Return what an estimate is about. If it does not say so, it is about the units that it counts, and all else is fixed."""
    named = estimate.settings.get("population")
    return str(named) if named else _population_of_unit(estimate.unit)


def _population_of_unit(unit: str) -> str:
    return "people" if unit == "annotator" else f"{unit}s, for exactly these people"


def name_populations_of_plain(value: Any) -> Any:
    """Return a stored result with the population of each estimate in it, however deep, as ``name_populations`` does for blocks."""
    if isinstance(value, list):
        return [name_populations_of_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    value = {name: name_populations_of_plain(one) for name, one in value.items()}
    if {"analysis", "unit", "settings"} <= value.keys():
        value["settings"] = {"population": _population_of_unit(value["unit"]), **value["settings"]}
    return value


def noun_of_groups(noun: str) -> dict[str, str]:
    """Return the entry of a stored result for the study's word for a group; none for a "group of prompts", as stored before."""
    return {} if noun == GROUP else {"group_noun": noun}


def name_groups_of_plain(value: Any, noun: str) -> Any:
    """Return a stored result, computed with groups in place of prompts, whose units and reasons name groups, however deep."""
    if isinstance(value, list):
        return [name_groups_of_plain(one, noun) for one in value]
    if not isinstance(value, dict):
        return value
    worded = {name: one for name, one in value.items() if name in WORDED and isinstance(one, str)}
    value = {name: name_groups_of_plain(one, noun) for name, one in value.items()}
    return value | {
        name: re.sub(r"\bprompts?\b", lambda found: plural_noun(noun) if found[0].endswith("s") else noun, one)
        for name, one in worded.items()
    }


def groups_sentence(result: Mapping[str, Any]) -> list[str]:
    """Return that groups are the sample in place of prompts; nothing without groups."""
    if (n_groups := result.get("n_groups")) is None:
        return []
    noun = result.get("group_noun", "group")
    return [
        f"The {result['n_prompts']:,} prompts belong to {format_count(n_groups, noun)}. Intervals and tests count "
        f"{plural_noun(noun)} in place of prompts."
    ]


def population_words(population: str) -> str:
    """Return a population with what is fixed, for a column of a table that has several.

    >>> population_words("people")
    'people, for exactly these prompts'
    """
    fixed = {"people": "prompts", "prompts": "people", "items": "people"}.get(population)
    return f"{population}, for exactly these {fixed}" if fixed else population


def heading_words(populations: Iterable[str]) -> str:
    """Return the end of a heading: what is fixed for some or all of the numbers below it, or ''.

    >>> heading_words(["people", "people and prompts"])
    ', in part for exactly these prompts'
    """
    fixed = [population_words(one).partition(", for ")[2] for one in populations]
    named = " and ".join(dict.fromkeys(filter(None, fixed)))
    return f", {'' if all(fixed) else 'in part '}for {named}" if named else ""


def heading(title: str, estimates: Iterable["Estimate"]) -> str:
    """Return the title with what is fixed for some or all of the intervals and tests below it.

    >>> heading("Mean rank", [])
    'Mean rank'
    """
    words = heading_words(population_of(one) for one in estimates if one.interval or one.test)
    return f"{title} ({words.removeprefix(', ')})" if words and title.endswith("?") else title + words


def name_populations(block: "Block") -> "Block":
    """Return a recommended block whose estimates have their population in their settings, and its headings what is fixed."""
    if block.mode != "recommended":
        return block
    tables: list[Table] = [
        {**table, "title": heading(table["title"], block.estimates)} if has_intervals(table) else table
        for table in block.tables
    ]
    figures: list[Figure] = [
        {**figure, "title": heading(figure["title"], block.estimates)} if figure["kind"] == "intervals" else figure
        for figure in block.figures
    ]
    return replace(
        block,
        title=heading(block.title, block.estimates),
        estimates=tuple(map(_with_population, block.estimates)),
        tables=tables,
        figures=figures,
    )


def has_intervals(table: Table) -> bool:
    """Return whether a table shows an interval or a p-value."""
    keys = [
        column["key"] for column in table["columns"] if column["kind"].endswith("interval") or column["kind"] == "p"
    ]
    return any(row[key] is not None for row in table["rows"] for key in keys)


def _with_population(estimate: "Estimate") -> "Estimate":
    return replace(
        estimate,
        settings={**estimate.settings, "population": population_of(estimate)},
        sensitivity=tuple(map(_with_population, estimate.sensitivity)),
    )
