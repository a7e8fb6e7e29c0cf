"""Excel (``.xlsx``, ``.xlsm``): one sheet as a table. Needs the package fastexcel."""

from __future__ import annotations

import copy
import re
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.errors import DataError, listing, unknown_name
from lowland._base.memory import format_bytes, require_memory
from lowland.tables.budget import HARMLESS, RATIO, refuse_bomb
from lowland.tables.columns.vectors import with_vectors
from lowland.tables.contents import Contents, Request, free_id, reading, refuse_twice
from lowland.tables.formats.arrays import BROKEN
from lowland.tables.formats.delimited import numbers_in_text
from lowland.tables.formats.dialect import looks_numeric
from lowland.tables.formats.formulas import unguarded
from lowland.tables.opening import File

if TYPE_CHECKING:
    import polars as pl

# Limits of an Excel file that are checked before a library reads it.
#
# The library allocates the whole rectangle of cells between the first and the last one, and a
# copy of a shared text for every cell that refers to it. A file of a few kilobytes can therefore
# ask for any amount of memory, and an allocation that fails ends the process. So the parts of the
# file are unpacked here first: their true sizes, the places of their cells and the lengths of
# their texts are known before anything large is allocated.


CHUNK = 1 << 20
CELL_BYTES = 64  # of one cell: 32 in the library's rectangle, as much in the columns made of it
MOST_PARTS = 10_000
PLACE = re.compile(rb"""\br\s*=\s*["']\s*([A-Za-z]{0,8})([0-9]{1,9})["']""")
TAG = re.compile(rb"<(?:[\w.-]+:)?(c|row)[\s/>]")
TEXT_PLACE = re.compile(rb"""\bt\s*=\s*["']s["'][^>]*>\s*<(?:[\w.-]+:)?v>\s*([0-9]{1,9})\s*<""")
ITEM = re.compile(rb"<(?:[\w.-]+:)?si[\s/>]")


def check_workbook(file: File) -> None:
    """Refuse a file whose cells or texts need more memory than there is, or than they should."""
    with reading(file, "Excel", *BROKEN), zipfile.ZipFile(file.path) as archive:
        parts = archive.infolist()
        if len(parts) > MOST_PARTS:
            raise DataError(f"{file}: has {len(parts)} parts, which no Excel file has.")
        _check_parts(file, archive, [part for part in parts if not part.is_dir()])


def _check_parts(file: File, archive: zipfile.ZipFile, parts: list[zipfile.ZipInfo]) -> None:
    lengths, places, unpacked = np.zeros(0, np.int64), [], 0
    for part in parts:
        content = _content(file, archive, part, unpacked)
        unpacked += len(content)
        if b"<" not in content[:100]:  # a picture
            continue
        if ITEM.search(content):
            starts = [found.start() for found in ITEM.finditer(content)]
            lengths = np.diff([*starts, len(content)])
        elif TAG.search(content):
            _check_rectangle(file, part.filename, content)
            places.append(np.array(TEXT_PLACE.findall(content), dtype=np.int64))
    used = np.concatenate(places) if places else np.zeros(0, np.int64)
    used = used[used < len(lengths)]
    if len(used) * int(lengths.max(initial=0)) > HARMLESS:
        needed, task = int(lengths[used].sum()), f"{file}: reading {len(used)} cells of text"
        refuse_bomb(file, needed, unpacked)
        require_memory(2 * needed, task=task, alternative="save it as CSV with fewer columns")


def _content(file: File, archive: zipfile.ZipFile, part: zipfile.ZipInfo, unpacked: int) -> bytes:
    """A part, unpacked whatever size it declares, up to a limit for the whole file."""
    most = max(HARMLESS, RATIO * file.size) - unpacked
    undeclared = copy.copy(part)
    undeclared.file_size = 1 << 62
    pieces, size = [], 0
    with archive.open(undeclared) as packed:
        while piece := packed.read(CHUNK):
            size += len(piece)
            if size > most:
                sizes = f"{format_bytes(file.size)} unpack to more than "
                sizes += format_bytes(size + unpacked)
                raise DataError(f"{file}: {sizes}; save the sheet as CSV.")
            require_memory(size, task=f"{file}: unpacking it", alternative="save it as CSV")
            pieces.append(piece)
    if size != part.file_size:
        raise ValueError(f"{part.filename} has {size} bytes and declares {part.file_size}")
    return b"".join(pieces)


def _check_rectangle(file: File, name: str, content: bytes) -> None:
    """Refuse a sheet whose last row and column span far more cells than it stores."""
    places = PLACE.findall(content)
    rows = max((int(row) for _, row in places), default=0)
    columns = max((_column(text) for text in {letters for letters, _ in places}), default=0)
    stored = len(TAG.findall(content))
    unplaced = max(stored - len(places), 0)  # these follow the cell or row before them
    cells = (rows + unplaced) * (columns + unplaced)
    if cells * CELL_BYTES <= HARMLESS:
        return
    if cells > RATIO * stored:
        span = f"{rows} rows and {columns} columns, but only {stored} are stored"
        advice = "delete the cells far from the table, or save it as CSV"
        raise DataError(f"{file}: the cells of {name} span {span}; {advice}.")
    task = f"{file}: reading {rows} rows x {columns} columns"
    require_memory(cells * CELL_BYTES, task=task, alternative="save it as CSV")


def _column(letters: bytes) -> int:
    """The number of a column: A is 1, AA is 27."""
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


def read_workbook(file: File, request: Request) -> Contents:
    """The first sheet, or the one that ``part`` names; its first row is the header."""
    try:
        import fastexcel
    except ImportError as error:
        needs = "Excel files need the package fastexcel: pip install 'lowland[excel]'"
        raise DataError(f"{file}: {needs}; or save the sheet as CSV.") from error
    check_workbook(file)
    with reading(file, "Excel", fastexcel.FastExcelError, OSError, ValueError):
        book = fastexcel.read_excel(file.path)
        sheets = list(book.sheet_names)
        if not sheets:
            raise DataError(f"{file}: has no sheet.")
        name = sheets[0] if request.part is None else request.part
        if name not in sheets:
            raise DataError(f"{file}: {unknown_name('sheet', name, sheets)}")
        frame, notes = _sheet(book, name)
    if len(sheets) > 1 and request.part is None:
        others = listing([sheet for sheet in sheets if sheet != name], 4)
        notes.append(f"sheet {name!r} is read; --part takes {others}")
    return _contents(file, frame, notes, request)


def _sheet(book: Any, name: str) -> tuple[pl.DataFrame, list[str]]:
    """The cells of a sheet without empty rows and columns, and a note if it has no header."""
    import polars as pl

    first = pl.DataFrame(book.load_sheet(name, header_row=None, n_rows=1, dtypes="string"))
    header = [value for value in first.row(0) if value is not None] if first.height else []
    headed = not header or not all(map(looks_numeric, header))
    sheet = book.load_sheet(name, header_row=0 if headed else None, schema_sample_rows=None)
    frame = pl.DataFrame(sheet)
    if not headed:
        frame = frame.rename({old: f"column_{i}" for i, old in enumerate(frame.columns)})
        return frame, [f"no header row, columns are named column_0 to column_{frame.width - 1}"]
    # The library names cells without a header __UNNAMED__0 and so on.
    unnamed = [column for column in frame if column.name.startswith("__UNNAMED__")]
    frame = frame.drop([column.name for column in unnamed if not column.count()])
    if frame.width:
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return frame, []


def _contents(file: File, frame: pl.DataFrame, notes: list[str], request: Request) -> Contents:
    import polars as pl

    names = [
        f"column_{i}" if name.startswith("__UNNAMED__") else name.strip() or f"column_{i}"
        for i, name in enumerate(frame.columns)
    ]
    id_name = None
    if frame.width > 1 and frame.columns[0].startswith("__UNNAMED__"):
        id_name = names[0] = free_id(names)
        notes.append("the first column has no name and is taken as the row id")
    refuse_twice(file, names)
    frame = frame.rename(dict(zip(frame.columns, names, strict=True)))
    # Excel has no whole numbers: they are told by their values.
    frame = frame.with_columns(
        column.cast(pl.Int64)
        for column in frame.iter_columns()
        if column.dtype == pl.Float64
        and column.count()
        and (column.is_finite() | column.is_null()).all()
        and (column.round() == column).all()
        and column.abs().max() < 2**53
    )
    frame = with_vectors(file, unguarded(frame), request)
    frame, said = numbers_in_text(frame, [] if id_name is None else [id_name])
    return Contents(frame, id_name=id_name, notes=(*notes, *said))
