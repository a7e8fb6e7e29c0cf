"""Small Excel files, written by hand so that no other library is needed."""

from __future__ import annotations

import datetime
import io
import zipfile

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
DATES = (
    f'<styleSheet {MAIN}><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    "</styleSheet>"
)


def cell(row, column, value):
    place = f"{chr(65 + column)}{row + 1}"
    if value is None:
        return ""
    if isinstance(value, datetime.date):
        days = (value - datetime.date(1899, 12, 30)).days
        return f'<c r="{place}" s="1"><v>{days}</v></c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def sheet_text(rows):
    lines = [
        f'<row r="{i + 1}">{"".join(cell(i, j, value) for j, value in enumerate(row))}</row>'
        for i, row in enumerate(rows)
    ]
    return f"<worksheet {MAIN}><sheetData>{''.join(lines)}</sheetData></worksheet>"


def book(sheets, shared=None):
    """An Excel file as bytes, from the text of each sheet by name."""
    numbers = list(enumerate(sheets, start=1))
    listed = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="rId{i}"/>' for i, name in numbers)
    related = "".join(
        f'<Relationship Id="rId{i}" Type="{RELATIONS}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i, _ in numbers
    )
    related += f'<Relationship Id="rIdS" Type="{RELATIONS}/styles" Target="styles.xml"/>'
    related += (
        f'<Relationship Id="rIdT" Type="{RELATIONS}/sharedStrings" Target="sharedStrings.xml"/>'
    )
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="rId1" '
        f'Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATIONS}"><sheets>{listed}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{related}</Relationships>',
        "xl/styles.xml": DATES,
        "xl/sharedStrings.xml": shared or f"<sst {MAIN}/>",
        **{f"xl/worksheets/sheet{i}.xml": sheets[name] for i, name in numbers},
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()
