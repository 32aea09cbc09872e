"""Report tables as LaTeX with booktabs, from the same rows as the page."""

import re

from analysis.protocols.blocks.tables import Table, format_cell, nonempty_columns
from analysis.protocols.blocks.warning_sentences import SEVERITY_LABELS

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "−": "$-$", "–": "--",
    "Δ": r"$\Delta$", "δ": r"$\delta$", "±": r"$\pm$", "≥": r"$\geq$", "≤": r"$\leq$", "\u00a0": "~",
}  # fmt: skip
_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL)))
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def escape_latex(text: str) -> str:
    """Escape text so that LaTeX prints it unchanged.

    >>> escape_latex("a_b & 5 % < {x}")
    'a\\\\_b \\\\& 5 \\\\% \\\\textless{} \\\\{x\\\\}'
    """
    return _SPECIAL.sub(lambda match: SPECIAL[match.group()], _CONTROL.sub(" ", text))


def render_latex_table(table: Table) -> str:
    """Return a table environment with a caption, a label and the table's note. It needs the package booktabs."""
    columns = nonempty_columns(table)
    alignment = "".join("l" if column["kind"] == "text" else "r" for column in columns)
    head = " & ".join(escape_latex(column["label"]) for column in columns)
    references = table.get("references", ())
    body = [
        " & ".join(escape_latex(format_cell(row.get(column["key"]), column["kind"], references)) for column in columns)
        + r" \\"
        for row in table["rows"]
    ]
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table['title'])}}}",
        rf"\label{{tab:{re.sub('[^a-z0-9]+', '-', table['name'])}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        head + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if table["note"]:
        lines.append(rf"\par\smallskip\footnotesize {escape_latex(table['note'])}")
    for warning in table.get("warnings", ()):  # a report from an earlier version has none
        text = f"{SEVERITY_LABELS[warning['severity']]}: {warning['text']}"
        lines.append(rf"\par\smallskip\footnotesize {escape_latex(text)}")
    return "\n".join([*lines, r"\end{table}", ""])
