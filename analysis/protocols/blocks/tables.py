"""Tables of a report as data: rows of plain values. Page, CSV, LaTeX and JSON print the same values.

This module only arranges values. An undefined value is None, and the row gives the reason.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, TypeVar, cast

from studies.stimuli.spreadsheet import formula_safe_csv_text as guarded_csv

from . import apa
from .cells import (
    claim_of,
    contrast_of,
    interval_bounds,
    is_not_tested,
    pvalue_cell,
    significance_stars,
)
from .warning_sentences import gravest_warnings_with_sentences

if TYPE_CHECKING:
    from analysis.stats.results import Estimate, ResultWarning

    from . import Block
    from .figures import Figure

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
        note = f"{note} {apa.SIMULTANEOUS_NOTE}".strip()
    return {
        "name": name,
        "title": title,
        "place": place,
        "columns": columns,
        "rows": [{key: row.get(key) for key in (*keys, *(column["key"] for column in columns))} for row in rows],
        "note": note,
        "warnings": gravest_warnings_with_sentences(warnings),
    }


def estimate_interval_and_pvalue_cells(prefix: str, estimate: "Estimate | None") -> dict[str, Any]:
    """Return the cells of an estimate: estimate, interval, p-value and stars, under keys with this prefix."""
    if estimate is None:
        return {}
    return {
        prefix: estimate.estimate,
        f"{prefix}_interval": interval_bounds(estimate),
        f"{prefix}_pvalue": pvalue_cell(estimate),
        f"{prefix}_stars": significance_stars(estimate),
    }


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
        notes.append(apa.NO_AGREEING_INTERVALS_NOTE)
    if any(map(is_not_tested, compared)):
        notes.append(apa.NOT_TESTED_NOTE)
    return [
        {**table, "note": " ".join([table["note"], *notes])}
        if notes and table["note"].endswith(apa.SIMULTANEOUS_NOTE)
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
        return apa.UNDEFINED
    extra_digits = kind.startswith("fine_")
    match kind.removeprefix("fine_"):
        case "probability":
            return apa.format_proportion(value, 2 + extra_digits)
        case "number" | "points":
            return apa.format_number(value, 2 + extra_digits)
        case "p":
            return value if isinstance(value, str) else apa.format_pvalue(value)
        case "interval":
            return apa.format_interval(value, digits=2 + extra_digits, references=references)
        case "wide_interval":
            return apa.format_interval(value, "number", 2 + extra_digits, references)
        case "percent":
            return apa.format_percent(value, 0 + extra_digits)
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
