"""What a PDF of a report must have, and what it has."""

import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

from analysis.protocols.blocks import layouts

MARGIN = 50  # points at the top and at the bottom of a page


def squeezed(text: str) -> str:
    """The text without spaces: a PDF breaks lines anywhere between words."""
    return re.sub(r"\s+", "", text)


def text_of_pdf(content: bytes, with_margins: bool = False) -> str:
    """All words in the order of the pages. What is in the margins of each page would divide sentences that go on."""
    from pypdf import PdfReader

    found: list[str] = []
    for page in PdfReader(io.BytesIO(content)).pages:
        top = float(page.mediabox.height) - MARGIN

        def keep(text, matrix, text_matrix, *font, top=top):
            y = text_matrix[4] * matrix[1] + text_matrix[5] * matrix[3] + matrix[5]
            if with_margins or MARGIN < y < top:
                found.append(text)

        page.extract_text(visitor_text=keep)
    return squeezed("".join(found))


def wanted(report: Mapping[str, Any]) -> Iterator[str]:
    """Title and last column of every table, every conclusion, and the paragraph of methods."""
    for table in report["tables"]:
        yield table["title"]
        columns = layouts.nonempty_columns(table)
        for row in table["rows"]:
            yield layouts.format_cell(row[columns[-1]["key"]], columns[-1]["kind"], table.get("references", ()))
    for conclusion in report["conclusions"]:
        yield conclusion["claim"]
        yield conclusion["text"]
    if report["answer"]:
        yield report["answer"]["methods"]


def missing(report: Mapping[str, Any], content: bytes) -> list[str]:
    found = text_of_pdf(content)
    return [one for one in wanted(report) if squeezed(one) not in found]


def cut_tables(document) -> list[str]:
    """The beginnings of tables that are wider than the page between its margins."""
    from weasyprint.formatting_structure.boxes import TableBox, TextBox

    found = []
    for page in document.pages:
        sheet = page._page_box
        for box in sheet.descendants():
            if isinstance(box, TableBox) and box.position_x + box.width > sheet.content_box_x() + sheet.width + 1:
                found.append(" ".join(one.text for one in box.descendants() if isinstance(one, TextBox))[:60])
    return found
