"""Excel (``.xlsx``, ``.xlsm``): one sheet as a table. Needs the package fastexcel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowland._core.errors import DataError, unknown_name
from lowland._core.wording import listing
from lowland.io.contents import Contents, Request, unreadable
from lowland.io.files.opening import File
from lowland.io.formats.workbook_limits import check_workbook
from lowland.io.text.conversions import numbers_in_text
from lowland.io.text.dialect import looks_numeric
from lowland.io.text.formulas import unguarded
from lowland.io.text.vector_text import with_vectors

if TYPE_CHECKING:
    import polars as pl


def read_workbook(file: File, request: Request) -> Contents:
    """The first sheet, or the one that ``part`` names; its first row is the header."""
    try:
        import fastexcel
    except ImportError as error:
        raise DataError(
            f"{file}: Excel files need the package fastexcel: pip install 'lowland[excel]'; "
            "or save the sheet as CSV."
        ) from error
    check_workbook(file)
    try:
        book = fastexcel.read_excel(file.path)
        sheets = list(book.sheet_names)
        name = _chosen(file, sheets, request.part)
        frame, notes = _sheet(book, name)
    except DataError:
        raise
    except BaseException as error:
        # Rust panics on some damaged files; PanicException is not a subclass of Exception.
        known = isinstance(error, fastexcel.FastExcelError | OSError | ValueError)
        if not known and type(error).__name__ != "PanicException":
            raise
        raise unreadable(file, "Excel", str(error).split("\n")[0]) from error
    if len(sheets) > 1 and request.part is None:
        others = listing([sheet for sheet in sheets if sheet != name], 4)
        notes.append(f"sheet {name!r} is read; --part takes {others}")
    return _contents(file, frame, notes, request)


def _chosen(file: File, sheets: list[str], part: str | None) -> str:
    if not sheets:
        raise DataError(f"{file}: has no sheet.")
    if part is None:
        return sheets[0]
    if part not in sheets:
        raise DataError(f"{file}: {unknown_name('sheet', part, sheets)}")
    return part


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
    empty = [
        column.name
        for column in frame.iter_columns()
        if column.name.startswith("__UNNAMED__") and column.null_count() == len(column)
    ]
    frame = frame.drop(empty)
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
        id_name = names[0] = "index" if "row" in names else "row"
        notes.append("the first column has no name and is taken as the row id")
    if len(set(names)) < len(names):
        raise DataError(f"{file}: several columns have the same name; rename all but one.")
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
