"""Report tables as LaTeX with booktabs, from the same rows as the page."""

import io
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from textwrap import shorten, wrap
from typing import Any
from xml.sax.saxutils import escape

from analysis.protocols.blocks.cells import format_number
from analysis.protocols.blocks.layouts import Table, format_cell, interval_ends_as_text, nonempty_columns
from analysis.protocols.blocks.warning_sentences import SEVERITY_LABELS

SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "−": "$-$",
    "–": "--",
    "Δ": r"$\Delta$",
    "δ": r"$\delta$",
    "±": r"$\pm$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "\u00a0": "~",
}
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


# Draw the figures of a report from its JSON, as SVG for the page and PDF for print.
#
# SVG keeps text as text. The same figure always gives the same bytes.


# Distinguishable without colour (shape and fill), and with any colour vision (Okabe and Ito's palette, darkened for contrast).
STYLES = (
    {"marker": "o", "color": "#0b5c8a", "fill": True},
    {"marker": "s", "color": "#9a4a00", "fill": False},
    {"marker": "D", "color": "#006b4f", "fill": True},
    {"marker": "^", "color": "#8a2f6b", "fill": False},
)
INK, QUIET, GRID = "#1c2126", "#545c64", "#d3d7da"
RC_PARAMS: dict[str, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.edgecolor": QUIET,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": QUIET,
    "ytick.color": INK,
    "text.parse_math": False,
    "figure.facecolor": "white",
}
MAX_ROWS = 120
# Sizes in inches. Every other size follows from the extents of the texts.
AXES_WIDTH = 4.1
ROW_HEIGHT, LINE_HEIGHT, GAP = 0.17, 0.165, 0.1
TITLE_HEIGHT, LEGEND_HEIGHT, AXIS_HEIGHT = 0.22, 0.22, 0.62
EDGE = 0.12
MAX_LABEL_CHARACTERS = 44
RUNNING_HEIGHT = 2.4
# Kinds of figures that draw an estimate against n.
BY_N = ("running", "curves")
DASHES = ("-", "--", ":")


def render_figure_svg_and_pdf(figure: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return one figure as (SVG, PDF). The bytes do not depend on the time, the machine or earlier figures."""
    import matplotlib

    with matplotlib.rc_context(RC_PARAMS | {"svg.hashsalt": figure["name"]}):  # type: ignore[arg-type]  # any text is a key
        canvas = _drawn_by_n(figure) if figure.get("kind") in BY_N else _drawn(figure)
        svg, pdf = io.StringIO(), io.BytesIO()
        canvas.savefig(svg, format="svg", metadata={"Date": None, "Creator": "heval", "Format": None, "Type": None})
        canvas.savefig(
            pdf,
            format="pdf",
            metadata={"CreationDate": None, "Creator": "heval", "Producer": "heval", "Title": figure["title"]},
        )
    return _described(svg.getvalue(), figure), pdf.getvalue()


def _drawn(figure: Mapping[str, Any]):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    rows: Sequence[Mapping[str, Any]] = figure["rows"][:MAX_ROWS]
    digits = _digits(figure)
    canvas = Figure()
    FigureCanvasAgg(canvas)  # it measures texts
    labels = {row["label"]: _wrapped(row["label"]) for row in rows}
    names = list(dict.fromkeys(row["series"] for row in rows)) if _is_grouped(rows) else []
    series = names or [rows[0]["series"]]
    series_by_label = {label: [row["series"] for row in rows if row["label"] == label] for label in labels}
    heights = [
        max(ROW_HEIGHT * len(series_by_label[label]), LINE_HEIGHT * (text.count("\n") + 1)) + GAP
        for label, text in labels.items()
    ]
    middles = dict(zip(labels, _middles(heights), strict=True))
    left = 2 * EDGE + max(_width(canvas, text) for text in labels.values())
    # The numbers are to the right of the axes. The margin fits the longest one.
    right = 2 * EDGE + max(_width(canvas, _numbers(row, digits, figure["reference"]), fontsize=8) for row in rows)
    width = left + AXES_WIDTH + right
    title = _fitting_lines(canvas, figure["title"].split(" "), width - 2 * EDGE, " ", fontsize=11, fontweight="bold")
    legend = _legend_lines(canvas, names, width - 2 * EDGE)
    top = EDGE + TITLE_HEIGHT * len(title) + LEGEND_HEIGHT * len(legend)
    height = top + sum(heights) + AXIS_HEIGHT
    canvas.set_size_inches(width, height)
    axes = canvas.add_axes((left / width, AXIS_HEIGHT / height, AXES_WIDTH / width, sum(heights) / height))
    if figure["reference"] is not None:
        axes.axvline(figure["reference"], color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    ends = [value for row in rows for value in (row["low"], row["high"], row["estimate"]) if value is not None]
    for row in rows:
        group = series_by_label[row["label"]]
        position = middles[row["label"]] + (group.index(row["series"]) - (len(group) - 1) / 2) * ROW_HEIGHT
        style = STYLES[series.index(row["series"]) % len(STYLES) if names else 0]
        if figure.get("kind") == "bars" and row["series"] == series[0]:
            axes.barh([position], [row["estimate"]], height=0.85 * ROW_HEIGHT, color=style["color"])
        elif row["low"] is not None and row["high"] is not None:
            axes.plot(
                [row["low"], row["high"]],
                [position, position],
                color=style["color"],
                linewidth=1.6,
                solid_capstyle="butt",
            )
        if figure.get("kind") != "bars" or row["series"] != series[0]:
            axes.plot(
                [row["estimate"]],
                [position],
                marker=style["marker"],
                markersize=6,
                color=style["color"],
                linestyle="none",
                markerfacecolor=style["color"] if style["fill"] else "white",
                markeredgewidth=1.4,
            )
        axes.text(
            1.015,
            position,
            _numbers(row, digits, figure["reference"]),
            transform=axes.get_yaxis_transform(),
            va="center",
            ha="left",
            fontsize=8,
            color=INK,
        )
    axes.set_yticks(list(middles.values()), list(labels.values()))
    axes.set_ylim(sum(heights), 0)
    low, high = _limits(figure, ends)
    axes.set_xlim(low, high)
    # Round tick steps. Counts of people need integer ticks.
    is_count = figure.get("kind") == "bars"
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10], integer=is_count))
    axes.set_xlabel(figure["axis"])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    y = height - EDGE - TITLE_HEIGHT / 2
    for line in title:
        canvas.text(EDGE / width, y / height, line, fontsize=11, fontweight="bold", va="center", ha="left")
        y -= TITLE_HEIGHT
    for entries in legend:
        for x, name in entries:
            canvas.add_artist(_key((EDGE + x) / width, y / height, STYLES[names.index(name) % len(STYLES)]))
            canvas.text((2 * EDGE + x) / width, y / height, name, va="center", ha="left", fontsize=9)
        y -= LEGEND_HEIGHT
    if mark := figure.get("watermark"):
        canvas.text(0.5, 0.5, mark, fontsize=26, rotation=12, alpha=0.35, color=QUIET, va="center", ha="center")
    return canvas


def _drawn_by_n(figure: Mapping[str, Any]):
    """Draw an estimate with its bounds after each unit, and where the bounds have decided; or a curve for each label and series."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    canvas = Figure()
    FigureCanvasAgg(canvas)  # it measures texts
    width = AXES_WIDTH + 10 * EDGE
    title = _fitting_lines(canvas, figure["title"].split(" "), width - 2 * EDGE, " ", fontsize=11, fontweight="bold")
    rows = figure["rows"][:MAX_ROWS]
    series = list(dict.fromkeys(row["series"] for row in rows))
    lines = list(dict.fromkeys((row["label"], row["series"]) for row in rows))
    labels = list(dict.fromkeys(label for label, _ in lines))
    drawn: dict[tuple[str, str], dict[str, Any]] = {
        (label, name): {
            "color": (style := STYLES[labels.index(label) % len(STYLES)])["color"],
            "linestyle": DASHES[series.index(name) % len(DASHES)],
            "marker": style["marker"],
            "markersize": 5,
            "markerfacecolor": style["color"] if style["fill"] else "white",
        }
        for label, name in lines
    }
    # Each curve has a line of the legend to itself.
    names = lines if figure["kind"] == "curves" else []
    top = EDGE + TITLE_HEIGHT * len(title) + LEGEND_HEIGHT * len(names)
    height = RUNNING_HEIGHT + EDGE + top + AXIS_HEIGHT
    canvas.set_size_inches(width, height)
    axes = canvas.add_axes((7 * EDGE / width, AXIS_HEIGHT / height, AXES_WIDTH / width, RUNNING_HEIGHT / height))
    units = [row["n"] for row in rows]
    for line in lines:
        own = [row for row in rows if (row["label"], row["series"]) == line]
        at, shares, low, high = ([row[name] for row in own] for name in ("n", "estimate", "low", "high"))
        if names:
            axes.plot(at, shares, linewidth=1.6, **drawn[line])
            continue
        color = drawn[line]["color"]
        axes.fill_between(at, low, high, color=color, alpha=0.18, linewidth=0)
        for bound in (low, high):
            axes.plot(at, bound, color=color, linewidth=0.8)
        axes.plot(at, shares, color=color, linewidth=1.6)
    axes.axhline(figure["reference"], color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    if decided_at := figure.get("decided_at"):
        axes.axvline(decided_at, color=INK, linewidth=1.2, linestyle=":")
        side = "right" if decided_at > max(units) / 2 else "left"
        axes.text(decided_at, 0.02, f" decided after {decided_at} ", fontsize=8, color=INK, ha=side)
    axes.set_ylim(*figure["limits"])
    axes.set_xlim(0, max(units) + 1)
    axes.set_xlabel(f"{rows[0]['unit']}s")
    axes.set_ylabel(figure["axis"])
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for n, words in enumerate(title):
        y = height - EDGE - TITLE_HEIGHT * (n + 0.5)
        canvas.text(EDGE / width, y / height, words, fontsize=11, fontweight="bold", va="center", ha="left")
    for n, (label, name) in enumerate(names):
        y = height - EDGE - TITLE_HEIGHT * len(title) - LEGEND_HEIGHT * (n + 0.5)
        canvas.add_artist(Line2D([EDGE / width, 4 * EDGE / width], [y / height] * 2, **drawn[label, name]))
        words = shorten(f"{name}: {label}", 60, placeholder=" …")
        canvas.text(5 * EDGE / width, y / height, words, va="center", ha="left", fontsize=8)
    if mark := figure.get("watermark"):
        canvas.text(0.5, 0.5, mark, fontsize=26, rotation=12, alpha=0.35, color=QUIET, va="center", ha="center")
    return canvas


def _width(canvas: Any, text: str, **font: Any) -> float:
    """Return the width of a text in inches, with room for the hinting of other resolutions."""
    drawn = canvas.text(0, 0, text, **font)
    try:
        return 1.06 * drawn.get_window_extent(canvas.canvas.get_renderer()).width / canvas.dpi
    finally:
        drawn.remove()


def _wrapped(label: str) -> str:
    return "\n".join(wrap(label, MAX_LABEL_CHARACTERS)) or label


def _fitting_lines(canvas: Any, words: Sequence[str], width: float, blank: str, **font: Any) -> list[str]:
    """Return the words in lines of at most this width, at least one word in each."""
    lines: list[str] = []
    for word in words:
        if lines and _width(canvas, lines[-1] + blank + word, **font) <= width:
            lines[-1] += blank + word
        else:
            lines.append(word)
    return lines


def _legend_lines(canvas: Any, names: Sequence[str], width: float) -> list[list[tuple[float, str]]]:
    """Return the entries of the legend in lines: where each begins, in inches, and its name."""
    lines: list[list[tuple[float, str]]] = []
    x = 0.0
    for name in names:
        entry = 3 * EDGE + _width(canvas, name, fontsize=9)
        if not lines or x + entry > width:
            lines.append([])
            x = 0.0
        lines[-1].append((x, name))
        x += entry
    return lines


def _middles(heights: Sequence[float]) -> list[float]:
    ends = list(accumulate(heights))
    return [end - height / 2 for end, height in zip(ends, heights, strict=True)]


def _key(x: float, y: float, style: Mapping[str, Any]):
    from matplotlib.lines import Line2D

    return Line2D(
        [x],
        [y],
        marker=style["marker"],
        markersize=6,
        color=style["color"],
        linestyle="none",
        markeredgewidth=1.4,
        markerfacecolor=style["color"] if style["fill"] else "white",
    )


def _is_grouped(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether several series share the same labels. If not, the row labels are enough and need no legend."""
    names = {row["series"] for row in rows}
    return 1 < len(names) <= len(STYLES) and len({row["label"] for row in rows}) < len(rows)


def _numbers(row: Mapping[str, Any], digits: int, reference: float | None) -> str:
    # In figures that count people, a whole number is a count and needs no decimals.
    text = format_number(row["estimate"], 0 if digits == 1 and float(row["estimate"]).is_integer() else digits)
    if row["low"] is not None and row["high"] is not None:
        low, high = interval_ends_as_text(row["low"], row["high"], reference, digits)
        text += f" [{low}, {high}]"
    return text


def _digits(figure: Mapping[str, Any]) -> int:
    """Return the number of decimals: 1 for counts, 3 if all estimates are below 0.1, else 2."""
    if figure.get("kind") == "bars":
        return 1
    return 3 if max(abs(row["estimate"]) for row in figure["rows"]) < 0.1 else 2


def _limits(figure: Mapping[str, Any], ends: Sequence[float]) -> tuple[float, float]:
    if figure["limits"]:
        return figure["limits"][0], figure["limits"][1]
    values = [*ends, *([figure["reference"]] if figure["reference"] is not None else [])]
    low, high = min(values), max(values)
    if figure["reference"] == 0:
        # A minimum range keeps tiny effects from looking large.
        low, high = min(low, -0.05), max(high, 0.05)
    margin = 0.06 * (high - low) or 0.05
    if figure.get("kind") == "bars":
        return 0.0, high + margin
    return low - margin, high + margin


def _described(svg: str, figure: Mapping[str, Any]) -> str:
    """Return the SVG with a title and a description for screen readers, and without the XML prologue."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, count=1, flags=re.DOTALL)
    head, _, rest = svg.partition(">")
    described = figure["rows"][:MAX_ROWS]
    if figure.get("kind") in BY_N:  # the last one of each line says where it has arrived
        described = list({(row["label"], row["series"]): row for row in described}.values())
    rows = "; ".join(
        f"{row['label']}, {row['series']}: {_numbers(row, _digits(figure), figure['reference'])}" for row in described
    )
    title, description = escape(figure["title"]), escape(f"{figure['description']} {rows}")
    return f'{head} role="img">\n <title>{title}</title>\n <desc>{description}</desc>{rest}'
