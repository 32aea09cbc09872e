"""Tables and figures of a report as data: rows of plain values."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, TypeVar, cast

from studies.stimuli.rows import formula_safe_csv_text as guarded_csv

from . import cells
from .cells import claim_of, contrast_of, interval_bounds, is_not_tested, is_sequential, pvalue_cell, significance_stars
from .warning_sentences import gravest_warnings_with_sentences

if TYPE_CHECKING:
    from analysis.stats.ranks import RankSets
    from analysis.stats.results import Estimate, ResultWarning

    from . import Block


# Tables of a report as data: rows of plain values. Page, CSV, LaTeX and JSON print the same values.
#
# This module only arranges values. An undefined value is None, and the row gives the reason.


DEFAULT_INTERVAL_LABEL = "95% CI"


class Column(TypedDict):
    key: str
    label: str
    # text | integer | probability | number | p | interval | wide_interval | points | percent. The prefix fine_ adds one digit,
    # for differences and the values beside them. Without it, a small difference would print as zero.
    kind: str


class Table(TypedDict):
    name: str
    title: str
    place: str  # first | sure | more
    columns: list[Column]
    rows: list[dict[str, Any]]
    note: str
    # Sentences about results that are not estimates, such as ranks: code, severity and text, the gravest first.
    warnings: list[dict[str, str]]
    # Values that tests of the report are about: an end of an interval that is another value is not printed like one of them.
    # A table of a report from an earlier version has none.
    references: NotRequired[list[float]]
    # The paper whose numbers the table has.
    paper: NotRequired[str]


def parse_columns(text: str) -> list[Column]:
    """Parse columns written as "key|label|kind", separated by semicolons. Labels from a study need ``Column`` itself."""
    columns: list[Column] = []
    for column_text in text.split(";"):
        key, label, kind = (part.strip() for part in column_text.split("|"))
        columns.append({"key": key, "label": label, "kind": kind})
    return columns


def build_table(
    name: str,
    title: str,
    column_spec: str | Sequence[Column],
    rows: Iterable[Mapping[str, Any]],
    place: str,
    note: str = "",
    warnings: "Iterable[ResultWarning]" = (),
    keys: Sequence[str] = (),
) -> Table:
    """Build a table. Columns are written as for ``parse_columns``. Every row gets every key.

    ``warnings`` of its results that are not estimates. Those of estimates are in the table of warnings. ``keys`` are in the
    stored rows, and no column shows them, because a reader knows what they stand for by words.
    """
    columns = parse_columns(column_spec) if isinstance(column_spec, str) else list(column_spec)
    is_adjusted = any(column["label"].startswith("adj. p") for column in columns)
    if is_adjusted and any(column["kind"].endswith("interval") for column in columns):
        note = f"{note} {cells.SIMULTANEOUS_NOTE}".strip()
    return {
        "name": name,
        "title": title,
        "place": place,
        "columns": columns,
        "rows": [{key: row.get(key) for key in (*keys, *(column["key"] for column in columns))} for row in rows],
        "note": note,
        "warnings": gravest_warnings_with_sentences(warnings),
    }


def prefixed_cells(prefix: str, estimate: "Estimate | None") -> dict[str, Any]:
    """Return the cells of one of several estimates in a row: estimate, interval, p-value and stars, under keys with this prefix.

    Tables have two names for the key of a p-value, and stored reports keep both.
    """
    if estimate is None:
        return {}
    return {
        prefix: estimate.estimate,
        f"{prefix}_interval": interval_bounds(estimate),
        f"{prefix}_p": pvalue_cell(estimate),
        f"{prefix}_pvalue": pvalue_cell(estimate),
        f"{prefix}_stars": significance_stars(estimate),
    }


def estimate_row(
    estimate: "Estimate", value: str = "estimate", n_rows: str = "n_rows", /, **other_cells: Any
) -> dict[str, Any]:
    """Return a row about one estimate: all cells that tables have of it. A table shows those for which it has a column.

    ``value`` and ``n_rows``: the keys of the number and of its answers. ``other_cells`` come beside these, or replace them.
    """
    row = {
        "what": estimate.estimand,
        "system": estimate.settings.get("system"),
        value: estimate.estimate,
        "interval": interval_bounds(estimate),
        "p": pvalue_cell(estimate),
        "n": estimate.n,
        n_rows: estimate.n_rows,
        "unit": estimate.unit,
        "reason": estimate.reason,
    }
    if contrast := contrast_of(estimate):
        x, y = cells.compared_names(estimate)
        row |= {
            "contrast": cells.comparison_label(estimate),
            "pair": cells.comparison_label(estimate),
            "x": x,
            "y": y,
            "about": cells.subject_note(estimate),
            "role": cells.role_label(contrast),
            "verdict": cells.verdict_text(estimate),
        }
    return row | other_cells


def rank_cells(sets: "RankSets") -> dict[str, dict[str, Any]]:
    """Return the cells of each system for its rank and its set of ranks."""
    bounds = zip(sets.ranks or (), sets.low or (), sets.high or (), strict=False)
    keys = ("rank", "highest", "lowest")
    return {system: dict(zip(keys, cells, strict=True)) for system, cells in zip(sets.systems, bounds, strict=False)}


def by_value(estimate: "Estimate") -> tuple[bool, float, str]:
    """Return the sort key of the estimate of a system: the largest comes first, and undefined ones last."""
    return estimate.estimate is None, -(estimate.estimate or 0.0), estimate.settings["system"]


TableOrFigure = TypeVar("TableOrFigure", "Table", "Figure")


def merge_nonempty_by_name_and_title(tables_or_figures: Iterable[TableOrFigure]) -> list[TableOrFigure]:
    """Merge tables or figures with the same name and title. Those without rows are left out.

    A name with several titles is numbered from the second title on.
    """
    merged: dict[tuple[str, str], TableOrFigure] = {}
    for item in tables_or_figures:
        before: TableOrFigure = merged.setdefault((item["name"], item["title"]), item)
        if before is not item:
            if before.get("columns") != item.get("columns"):
                raise ValueError(f"The table {item['name']} has other columns in another block.")
            joined: dict[str, Any] = {**before, "rows": before["rows"] + item["rows"]}
            other: dict[str, Any] = {**item}
            if sentences := [*joined.get("warnings", ()), *other.get("warnings", ())]:
                joined["warnings"] = list({one["text"]: one for one in sentences}.values())
            merged[item["name"], item["title"]] = cast(TableOrFigure, joined)
    seen: Counter[str] = Counter()
    numbered = []
    for item in merged.values():
        if item["rows"]:
            seen[item["name"]] += 1
            n = seen[item["name"]]
            numbered.append(item if n == 1 else item | {"name": f"{item['name']}_{n}"})
    return numbered


def add_family_notes(tables: Iterable[Table], blocks: Iterable["Block"]) -> list[Table]:
    """Return the tables of comparisons with the notes that the methods and the order of declared families need."""
    compared = [
        estimate
        for block in blocks
        if block.mode == "recommended"
        for estimate in block.estimates
        if contrast_of(estimate).get("is_planned")
    ]
    notes = []
    if any(estimate.interval and claim_of(estimate).interval is None for estimate in compared):
        notes.append(cells.NO_AGREEING_INTERVALS_NOTE)
    if any(map(is_not_tested, compared)):
        notes.append(cells.NOT_TESTED_NOTE)
    return [
        {**table, "note": " ".join([table["note"], *notes])}
        if notes and table["note"].endswith(cells.SIMULTANEOUS_NOTE)
        else table
        for table in tables
    ]


def add_references(tables: Iterable[Table], blocks: Iterable["Block"]) -> list[Table]:
    """Return the tables with the nulls and limits of all tests of the report, which ends of intervals must not look like."""
    tested = [estimate for block in blocks for estimate in block.estimates if estimate.test is not None]
    references = sorted({value for estimate in tested for value in claim_of(estimate).references})
    return [{**table, "references": references} for table in tables]


def relabel_interval_columns(table: Table, level: float) -> Table:
    """Return the table with the report's confidence level in its headings instead of the default level."""
    interval_label = f"{100 * level:g}% CI"
    return {
        **table,
        "columns": [
            {**column, "label": column["label"].replace(DEFAULT_INTERVAL_LABEL, interval_label)}
            for column in table["columns"]
        ],
    }


def format_cell(value: Any, kind: str, references: Sequence[float] = ()) -> str:
    """Return the text of a cell. An end of an interval is not printed like one of the ``references`` if it is another value."""
    if value is None:
        return cells.UNDEFINED
    extra_digits = kind.startswith("fine_")
    match kind.removeprefix("fine_"):
        case "probability":
            return cells.format_proportion(value, 2 + extra_digits)
        case "number" | "points":
            return cells.format_number(value, 2 + extra_digits)
        case "p":
            return value if isinstance(value, str) else cells.format_pvalue(value)
        case "interval":
            return cells.format_interval(value, digits=2 + extra_digits, references=references)
        case "wide_interval":
            return cells.format_interval(value, "number", 2 + extra_digits, references)
        case "percent":
            return cells.format_percent(value, 0 + extra_digits)
        case "integer":
            return str(value)
    return str(value)


def nonempty_columns(table: Table) -> list[Column]:
    """Return the columns that are not empty, which pages show. CSV and JSON have all columns."""
    return [column for column in table["columns"] if any(row[column["key"]] not in (None, "") for row in table["rows"])]


def csv_text(table: Table) -> str:
    """Return the table as CSV with full precision. An interval has two columns; an undefined value is empty."""
    head: list[str] = []
    for column in table["columns"]:
        is_interval = column["kind"].endswith("interval")
        head += [f"{column['key']}_low", f"{column['key']}_high"] if is_interval else [column["key"]]
    lines: list[list[Any]] = [head]
    for row in table["rows"]:
        cells: list[Any] = []
        for column in table["columns"]:
            value = row[column["key"]]
            if column["kind"].endswith("interval"):
                cells += ["", ""] if value is None else list(value)
            else:
                cells.append(value)
        lines.append(cells)
    return guarded_csv(lines)


# Figures of a report as data: the rows of numbers of each. ``analysis.report.plots`` draws them.


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
    kind: str  # intervals | bars | running | curves
    rows: list[Mapping[str, Any]]
    decided_at: NotRequired[int | None]  # of a running figure


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
    decided_at: int | None = None,
) -> Figure:
    """Build a figure. Rows (see ``figure_row``) without an estimate are left out. ``limits``: the limits of the axis, if fixed.

    ``kind``: "intervals", "bars", "running", whose rows are the estimate after each ``n``, with a line at ``decided_at``, or "curves", with
    an estimate at each ``n`` for each label and series.

    The caption names the levels and methods of the intervals that are drawn.
    """
    shown: list[dict[str, Any]] = [dict(row) for row in rows if row["estimate"] is not None]
    intervals: dict[str, dict[str, None]] = {}
    for row in shown:
        if interval := row.pop("interval", ""):
            intervals.setdefault(row["series"], {})[interval] = None
    figure: Figure = {
        "name": name,
        "title": title,
        "description": f"{description} {_intervals_sentence(intervals)}".strip(),
        "axis": axis,
        "reference": reference,
        "limits": limits,
        "kind": kind,
        "rows": [*shown],
    }
    if kind == "running":
        figure["decided_at"] = decided_at
    return figure


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
    return f"{cells.format_confidence_level(estimate)} {kind} ({method})"


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
    digits = cells.digits_to_distinguish([low, high], digits, () if reference is None else (reference,))
    return cells.format_number(low, digits), cells.format_number(high, digits)


def lead_figure(figures: Collection[Figure]) -> Figure | None:
    """Return the figure beside the answer: one of ``LEAD_FIGURES``, else the first of intervals."""
    by_name = {figure["name"]: figure for figure in figures}
    first = next((figure for figure in figures if figure.get("kind") not in ("bars", "curves")), None)
    return next((by_name[name] for name in LEAD_FIGURES if name in by_name), first)
