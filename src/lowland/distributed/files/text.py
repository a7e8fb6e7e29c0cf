"""Delimited text in leaves: a range of bytes is parsed in the dialect that opening found out."""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland.distributed.files.leaves import SourceFile
from lowland.distributed.files.records import (
    line_of,
    outside,
    quotes_of,
    read_bytes,
    record_starts,
)
from lowland.distributed.files.values import WHOLE, MisfitError, Written, converted
from lowland.io.contents import unreadable
from lowland.io.text.dialect import BLANKS, split_at_blanks
from lowland.io.text.formulas import unguarded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

FALLBACK = "cp1252"  # the encoding of text that is no UTF-8


class Place(NamedTuple):
    """Some bytes of a file, for messages."""

    path: str
    name: str
    begin: int

    def error(self, body: bytes, row: int, what: str) -> DataError:
        """The error about a row of these bytes."""
        starts = record_starts(body)
        begin = self.begin + int(starts[row]) if row < len(starts) else self.begin
        return DataError(f"{self.name}, line {line_of(self.path, self.name, begin)}: {what}.")


class TextReader(NamedTuple):
    """Parses ranges of bytes of a text."""

    names: tuple[str, ...]
    written: tuple[Written, ...]  # how each column is
    separator: str
    is_utf8: bool
    id_name: str | None = None

    @property
    def together(self) -> bool:
        return False

    @property
    def key(self) -> str:
        return hashlib.sha256(repr(tuple(self)).encode()).hexdigest()[:24]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        kinds = [how.dtype() for how in self.written]
        return dict(zip(self.names, kinds, strict=True))

    def read(self, file: SourceFile, first: int, n_rows: int, span: tuple[int, int]) -> Any:
        body = read_bytes(file.path, file.name, *span)
        place = Place(file.path, file.name, span[0])
        own = [name for name in file.layout.kept if file.layout.types[name].is_integer()]
        return self.parse(body, place, n_rows, file.layout.wanted, own)

    def parse(
        self, raw: bytes, place: Place, n_rows: int, wanted: Sequence[str], whole: Sequence[str]
    ) -> pl.DataFrame:
        """The wanted columns of some rows; those in ``whole`` are whole numbers or refused."""
        import polars as pl

        body = self.plain(raw, place, n_rows)
        separator = "\t" if self.separator == BLANKS else self.separator
        places = {name: i for i, name in enumerate(self.names)}
        chosen = sorted(places[name] for name in wanted)
        how = {i: self._how(i, whole) for i in chosen}
        if len(chosen) < len(self.names):  # polars does not look at the other columns
            self._check_widths(raw, body, separator, place)
        try:
            frame = self._parsed(body, separator, how, as_text=False)
        except pl.exceptions.PolarsError:
            try:
                frame = self._parsed(body, separator, how, as_text=True)
            except pl.exceptions.PolarsError as error:
                self._check_widths(raw, body, separator, place)
                reason = "its quotation marks do not pair up" if b'"' in body else error
                raise unreadable(place.name, "delimited text", reason) from error
        text = unguarded(frame)
        try:
            columns = [
                converted(text[self.names[i]], how[i]) if _is_text(text[self.names[i]]) else column
                for i, column in zip(chosen, frame.get_columns(), strict=True)
            ]
        except MisfitError as misfit:
            what = (
                f"column {misfit.name!r} holds {misfit.value!r}, but a {misfit.kind} in the rows "
                "by which its type was decided; correct it, or save the table as Parquet"
            )
            raise place.error(raw, misfit.row, what) from misfit
        return pl.DataFrame(columns).select(wanted)

    def _how(self, i: int, whole: Sequence[str]) -> Written:
        """How a column is read: whole numbers as any numbers, if they become floats anyway."""
        how = self.written[i]
        return (
            how._replace(kind="number") if how.kind == WHOLE and self.names[i] not in whole else how
        )

    def _parsed(
        self, body: bytes, separator: str, how: dict[int, Written], *, as_text: bool
    ) -> pl.DataFrame:
        import polars as pl

        auto = [f"column_{i + 1}" for i in range(len(self.names))]
        schema: dict[str, Any] = dict.fromkeys(auto, pl.String)
        if not as_text:
            schema |= {auto[i]: each.dtype() for i, each in how.items() if each.native}
        frame = pl.read_csv(
            body,
            has_header=False,
            schema=schema,
            columns=[auto[i] for i in how],
            separator=separator,
            decimal_comma=any(each.native and each.decimal == "," for each in self.written),
        )
        return frame.rename({auto[i]: self.names[i] for i in how})

    def plain(self, raw: bytes, place: Place, n_rows: int) -> bytes:
        """The bytes in UTF-8, one separator between fields, no blank lines, equally wide rows."""
        body = raw
        if not self.is_utf8:
            try:
                body = body.decode(FALLBACK).encode()
            except UnicodeDecodeError as error:
                line = line_of(place.path, place.name, place.begin + error.start)
                raise DataError(
                    f"{place.name}, line {line}: not UTF-8 text (byte 0x{raw[error.start]:02x}); "
                    "save the file as UTF-8."
                ) from error
        if self.separator == BLANKS:
            return self._split(body, place)
        if _count(body, "\n") > n_rows - (body[-1:] != b"\n"):
            body = _without_blank_lines(body)
        if _count(body, self.separator) != n_rows * (len(self.names) - 1):
            self._check_widths(raw, body, self.separator, place)
        return body

    def _split(self, body: bytes, place: Place) -> bytes:
        """Fields between white space, with tabs between them."""
        lines: list[str] = []
        for line in body.decode().split("\n"):
            fields = split_at_blanks(line) if '"' in line else line.split()
            if fields and len(fields) != len(self.names):
                raise place.error(body, len(lines), _width_trouble(len(fields), len(self.names)))
            if fields:
                lines.append("\t".join(fields))
        return "\n".join(lines).encode() + b"\n"

    def _check_widths(self, raw: bytes, body: bytes, separator: str, place: Place) -> None:
        """Raise for the first row with another number of fields."""
        width = len(self.names)
        starts = np.append(record_starts(body), len(body))
        marks = outside(np.frombuffer(body, np.uint8), ord(separator), quotes_of(body))
        counts = np.diff(np.searchsorted(marks, starts)) + 1
        bad = np.flatnonzero(counts != width)
        if len(bad):
            raise place.error(raw, int(bad[0]), _width_trouble(int(counts[bad[0]]), width))


def _is_text(column: pl.Series) -> bool:
    import polars as pl

    return column.dtype == pl.String


def _width_trouble(found: int, width: int) -> str:
    return f"{found} fields where the first line has {width}"


def _count(body: bytes, mark: str) -> int:
    """How often a character stands outside quotation marks."""
    quotes = quotes_of(body)
    if not len(quotes):
        return body.count(mark.encode())
    places = np.flatnonzero(np.frombuffer(body, np.uint8) == ord(mark))
    within = np.diff(np.searchsorted(places, quotes))[::2].sum()
    return len(places) - int(within)


def _without_blank_lines(body: bytes) -> bytes:
    starts = record_starts(body)
    lines = np.append(starts, len(body))
    parts = [body[i:j].rstrip(b"\r\n") for i, j in itertools.pairwise(lines)]
    return b"\n".join(parts) + b"\n"
