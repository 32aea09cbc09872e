"""Tables for a paper: LaTeX with booktabs, from the same rows as the page."""

import re

from analysis.protocols.blocks.tables import Table, filled, printed

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "−": "$-$", "–": "--",
    "Δ": r"$\Delta$", "δ": r"$\delta$", "±": r"$\pm$", "≥": r"$\geq$", "≤": r"$\leq$", "\u00a0": "~",
}  # fmt: skip
_SPECIAL = re.compile("|".join(map(re.escape, SPECIAL)))
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def escaped(text: str) -> str:
    """Text that LaTeX prints as it stands.

    >>> escaped("a_b & 5 % < {x}")
    'a\\\\_b \\\\& 5 \\\\% \\\\textless{} \\\\{x\\\\}'
    """
    return _SPECIAL.sub(lambda found: SPECIAL[found.group()], _CONTROL.sub(" ", text))


def latex(table: Table) -> str:
    """A table environment with a caption, a label and the table's note; it needs the package booktabs."""
    columns = filled(table)
    alignment = "".join("l" if column["kind"] == "text" else "r" for column in columns)
    head = " & ".join(escaped(column["label"]) for column in columns)
    body = [
        " & ".join(escaped(printed(row.get(column["key"]), column["kind"])) for column in columns) + r" \\"
        for row in table["rows"]
    ]
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(table['title'])}}}",
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
        lines.append(rf"\par\smallskip\footnotesize {escaped(table['note'])}")
    return "\n".join([*lines, r"\end{table}", ""])
