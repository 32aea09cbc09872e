"""Small workbooks, written part by part as the format describes them."""

import io
import zipfile
from xml.sax.saxutils import escape

_TYPES = """<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>"""
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELS = """<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>"""
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def _cell(place: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{place}"><v>{value!r}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>'


def workbook(sheets: dict[str, list[list[object]]]) -> bytes:
    """An XLSX file of these sheets. None is an empty cell."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", _TYPES)
        main = f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        file.writestr("_rels/.rels", _RELS.format(main))
        names = "".join(
            f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(sheets, 1)
        )
        file.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{names}</sheets></workbook>'
        )
        links = "".join(
            f'<Relationship Id="rId{n}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        file.writestr("xl/_rels/workbook.xml.rels", _RELS.format(links))
        for n, rows in enumerate(sheets.values(), 1):
            cells = "".join(
                f'<row r="{r}">{"".join(_cell(f"{chr(64 + c)}{r}", value) for c, value in enumerate(row, 1))}</row>'
                for r, row in enumerate(rows, 1)
            )
            file.writestr(
                f"xl/worksheets/sheet{n}.xml", f'<worksheet xmlns="{_MAIN}"><sheetData>{cells}</sheetData></worksheet>'
            )
    return out.getvalue()
