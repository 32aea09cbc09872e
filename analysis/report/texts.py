"""The answer and the tables of a report as text to paste: plain, Markdown and LaTeX."""

from collections.abc import Mapping
from typing import Any

from analysis.protocols.blocks.layouts import Table, format_cell, nonempty_columns

from .plots import escape_latex

FORMATS = {"txt": "text/plain", "md": "text/markdown", "tex": "text/x-tex"}


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown prints it unchanged, also in a cell of a table.

    >>> escape_markdown("a_b | *c*")
    'a\\\\_b \\\\| \\\\*c\\\\*'
    """
    return "".join(f"\\{one}" if one in "\\`*_[]<>|#" else one for one in " ".join(text.split()))


def render_table(table: Table, file_format: str) -> str:
    """Return a table with its filled columns, as Markdown ("md") or as text with tabs, which spreadsheets and editors read ("txt")."""
    columns, references = nonempty_columns(table), table.get("references", ())
    lines = [[column["label"] for column in columns]]
    lines += [
        [format_cell(row[column["key"]], column["kind"], references) for column in columns] for row in table["rows"]
    ]
    if file_format == "txt":
        tabbed = "".join("\t".join(" ".join(cell.split()) for cell in line) + "\n" for line in lines)
        return "\n".join([table["title"], tabbed + table["note"]]).rstrip() + "\n"
    rule = ["---" if column["kind"] == "text" else "---:" for column in columns]
    head, *rows = ([escape_markdown(cell) for cell in line] for line in lines)
    text = "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *rows))
    note = f"\n{escape_markdown(table['note'])}\n" if table["note"] else ""
    return f"**{escape_markdown(table['title'])}**\n\n{text}{note}"


def render_answer(result: Mapping[str, Any], file_format: str) -> str:
    """Return what a paper may say first: the sentences, each planned comparison with its numbers, and the paragraph of methods."""
    answer = result.get("answer", {})
    cautions = [notice["text"] for notice in result["notices"] if notice["code"] == "origins"]
    paragraphs = [
        " ".join([*cautions, *answer.get("sentences", ())]),
        *(
            " ".join([one["claim"], one["text"], *(warning["text"] for warning in one.get("warnings", ()))])
            for one in result["conclusions"]
        ),
        f"This report does not show that {'; '.join(answer['limits'])}." if answer.get("limits") else "",
        answer.get("methods", ""),
    ]
    escape = {"md": escape_markdown, "tex": escape_latex}.get(file_format, str)
    return "\n\n".join(escape(paragraph) for paragraph in paragraphs if paragraph) + "\n"
