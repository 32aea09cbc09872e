"""The parts of a report's page, from a stored result: the answer, why to believe it, and everything else.

A page shows what the job stored, in whatever version. What an earlier version did not store is missing here, and the page says so.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from analysis.models import AnalysisRun
from analysis.protocols.blocks import layouts
from analysis.protocols.blocks.warning_sentences import SEVERITY_LABELS
from annotators.counting import Use, select
from studies.imports.study_templates import TEMPLATES_BY_SLUG
from studies.models import Study

from .build import NO_COMPARISON_PLANNED, STILL_COLLECTING
from .items import items_context

SHOWN_ROWS = 100
TEXT_KINDS = frozenset({"text"})
# Tables show at most this number of columns. The whole table is at the end of the page.
MOST_COLUMNS = 7
# Columns that say what a row is about, and what was found. They are kept before others.
SUBJECTS = (
    "contrast",
    "pair",
    "x",
    "y",
    "system",
    "what",
    "rule",
    "label",
    "where",
    "about",
    "model",
    "condition",
    "arm",
)
FINDINGS = ("places", "verdict", "found", "outcome", "recovered", "above_recovered", "change", "n_excluded", "problem")
# Tables that say why to believe the answer, in this order. A name may have a number at its end.
REASONS = (
    "planned_and_reached",
    "rule_effects",
    "before_after",
    "reliability",
    "ranking_checks",
    "marks_checks",
    "choice_agreement",
    "coherence",
    "gap",
    "relative_checks",
    "choice_sides",
    "attrition",
    "test_questions",
)


def run_context(run: AnalysisRun, shown_rows: int | None = SHOWN_ROWS) -> dict[str, Any]:
    """Return what the page shows of an analysis: its stored result, the texts of its items, and what has happened since."""
    study, stored = run.study, run.result
    withdrawn = select(Use.WITHDRAWN, study.assignments.all(), stored["parameters"]["origins"])
    was_collecting = STILL_COLLECTING in stored["confirmatory"]["reasons"]
    is_closed = study.state == Study.State.CLOSED
    later = study.analyses.filter(at__gte=study.closed_at) if was_collecting and is_closed else study.analyses.none()
    return {
        **report_context(stored, shown_rows),
        "items": items_context(study, stored),
        "study": study,
        "run": run,
        "withdrawn_since": sum(at > run.at for at in withdrawn.values_list("withdrawn_at", flat=True)),
        "was_collecting": was_collecting,
        "is_closed": is_closed,
        "final": later.only("number").order_by("-number").first(),
    }


def report_context(stored: Mapping[str, Any], shown_rows: int | None = SHOWN_ROWS) -> dict[str, Any]:
    """Return what the page shows of a stored result. ``shown_rows``: how many rows of a table at most."""
    context_of = partial(table_context, shown_rows=shown_rows)
    tables = stored.get("tables", [])
    answer = [table for table in tables if table["place"] == "answer"]
    opinions = [table for table in tables if table["place"] == "opinions"]
    compared = [table for table in tables if table["place"] == "first" and "paper" not in table]
    reasons = sorted(
        (table for table in tables if _plain_name(table) in REASONS and table["place"] != "answer"),
        key=lambda table: REASONS.index(_plain_name(table)),
    )
    papers: dict[str, list[layouts.Table]] = {}
    for table in tables:
        if "paper" in table:
            papers.setdefault(table["paper"], []).append(table)
    shown = [*answer, *compared, *reasons, *opinions]
    rest = [table for table in tables if table not in shown and "paper" not in table]
    followed = TEMPLATES_BY_SLUG.get(stored["study"].get("template", ""))
    figures = stored.get("figures", [])
    front = layouts.lead_figure(figures)
    conclusions = stored["conclusions"]
    return {
        "result": stored,
        "is_planned": NO_COMPARISON_PLANNED not in stored["confirmatory"]["reasons"],
        "answer": stored.get("answer"),
        "systems": [context_of(table, MOST_COLUMNS) for table in answer],
        "compared": [context_of(table, MOST_COLUMNS) for table in compared],
        "reasons": [context_of(table, MOST_COLUMNS) for table in reasons],
        "opinions": [context_of(table, MOST_COLUMNS) for table in opinions],
        "whole": [context_of(table) for table in shown if context_of(table, MOST_COLUMNS)["is_narrowed"]],
        "papers": [
            {
                "name": name,
                "tables": [context_of(table) for table in found],
                "is_open": followed is not None and followed.source.startswith(name),
            }
            for name, found in papers.items()
        ],
        "rest": [context_of(table) for table in rest],
        "front": front and figure_context(front),
        "others": [figure_context(figure) for figure in figures if figure is not front],
        "primary": [_conclusion_context(one) for one in conclusions if one["role"] == "primary"],
        "secondary": [_conclusion_context(one) for one in conclusions if one["role"] != "primary"],
        "fragility": stored.get("fragility"),
        "warned": _warnings_of_claims(conclusions),
        **_flow_context(stored["flow"], stored["study"]["state"] == "closed"),
    }


def _plain_name(table: Mapping[str, Any]) -> str:
    """Return the name of a table without the number that distinguishes it from others of the name."""
    return table["name"].rstrip("0123456789").removesuffix("_")


def _flow_context(flow: Mapping[str, Any], is_closed: bool) -> dict[str, Any]:
    unfinished = [f"{n} {reason.replace('_', ' ')}" for reason, n in flow["released"].items()]
    if flow["unfinished"]:
        unfinished.append(f"{flow['unfinished']} {'did not finish' if is_closed else 'not finished yet'}")
    return {
        "left": ", ".join(unfinished),
        "steps": [
            step | {"name": step["label"].partition(":")[0]}
            for step in flow["rules"]
            if step["n_excluded"] or step["role"] != "always"
        ],
    }


def _conclusion_context(conclusion: Mapping[str, Any]) -> dict[str, Any]:
    """Return a conclusion for the page. Only what forbids a claim is beside it; other warnings come once, for all claims."""
    labelled = labelled_warnings(conclusion)
    return {
        **conclusion,
        "text": nonbreaking(conclusion["text"]),
        "warnings": [warning for warning in labelled if warning["severity"] == "block"],
        "n_other_warnings": sum(warning["severity"] != "block" for warning in labelled),
    }


def _warnings_of_claims(conclusions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each warning that does not forbid a claim once, with the claims that it concerns."""
    found: dict[str, dict[str, Any]] = {}
    for conclusion in conclusions:
        for warning in labelled_warnings(conclusion):
            if warning["severity"] != "block":
                found.setdefault(warning["text"], {**warning, "claims": []})["claims"].append(conclusion["claim"])
    return list(found.values())


def labelled_warnings(part: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the warnings of a conclusion or a table for the page. A report from an earlier version has none."""
    return [
        {
            "label": SEVERITY_LABELS[warning["severity"]],
            "severity": warning["severity"],
            "text": nonbreaking(warning["text"]),
        }
        for warning in part.get("warnings", ())
    ]


def nonbreaking(text: str) -> str:
    """Put non-breaking spaces between numbers and their signs, so that lines do not break there."""
    return text.replace(" %", "\u00a0%").replace("p < ", "p\u00a0<\u00a0").replace("n = ", "n\u00a0=\u00a0")


def table_context(
    stored_table: layouts.Table, most: int | None = None, shown_rows: int | None = SHOWN_ROWS
) -> dict[str, Any]:
    """Return a table for the page: columns with content, cells as text, at most ``shown_rows`` rows.

    With ``most``, it has at most so many columns, and only rows with a number if there are any: the rest is in the whole table.
    """
    references, stored_rows = stored_table.get("references", ()), stored_table["rows"]
    filled = layouts.nonempty_columns(stored_table)
    if most is not None:
        defined = [row for row in stored_rows if not _is_undefined(row, filled)]
        stored_rows = defined or stored_rows
    columns = chosen_columns(layouts.nonempty_columns({**stored_table, "rows": stored_rows}), most)
    rows = [
        [
            {
                "text": layouts.format_cell(row[column["key"]], column["kind"], references).replace(" %", "\u00a0%"),
                "is_number": column["kind"] not in TEXT_KINDS,
            }
            for column in columns
        ]
        for row in stored_rows[:shown_rows]
    ]
    return {
        **stored_table,
        "heads": [{"text": column["label"], "is_number": column["kind"] not in TEXT_KINDS} for column in columns],
        "rows": rows,
        "n_rows": len(stored_rows),
        "n_columns": len(filled),
        "n_undefined": len(stored_table["rows"]) - len(stored_rows),
        "has_fewer_columns": len(columns) < len(filled),
        "is_narrowed": len(columns) < len(filled) or len(stored_rows) < len(stored_table["rows"]),
        "is_cut": len(rows) < len(stored_rows),
        "warnings": labelled_warnings(stored_table),
    }


def _is_undefined(row: Mapping[str, Any], columns: Sequence[layouts.Column]) -> bool:
    """Return whether a row has a reason in place of its numbers."""
    numbers = [row[column["key"]] for column in columns if column["kind"] not in ("text", "integer")]
    return bool(row.get("reason")) and all(number is None for number in numbers)


def chosen_columns(columns: Sequence[layouts.Column], most: int | None) -> list[layouts.Column]:
    """Return at most ``most`` columns in their order: what the rows are about, the first number with its interval, p and n, findings."""
    if most is None or len(columns) <= most:
        return list(columns)
    kept = [column for column in columns if column["key"] in SUBJECTS][:3] or [columns[0]]
    for is_wanted in (
        lambda column: column["kind"] not in ("text", "integer", "p") and not column["kind"].endswith("interval"),
        lambda column: column["kind"].endswith("interval"),
        lambda column: column["kind"] == "p",
        lambda column: column["key"] in FINDINGS,
        lambda column: column["kind"] == "integer" and column["label"].startswith(("n ", "n,", "After")),
        lambda column: column["key"] in FINDINGS,
    ):
        kept += [column for column in columns if is_wanted(column) and column not in kept][:1]
    kept += [column for column in columns if column not in kept]
    return [column for column in columns if column in kept[:most]]


def figure_context(stored_figure: layouts.Figure) -> dict[str, Any]:
    """Return a figure for the page, with the ends of its intervals as text."""
    reference = stored_figure.get("reference")
    rows = [
        {**row, "ends": layouts.interval_ends_as_text(row["low"], row["high"], reference, 3)}
        for row in stored_figure["rows"]
    ]
    return {**stored_figure, "rows": rows}
