"""The contents of a source before its columns get their roles; every reader returns them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._base.errors import PYTHON, DataError, Spelling, listing

if TYPE_CHECKING:
    import numpy as np
    import polars as pl


class Request(NamedTuple):
    """What the caller wants of a source; a reader need not read the rest.

    ``columns`` None means every column of numbers; ``part`` names what to take out of a container,
    ``vector`` the column whose lists of numbers are the features, and ``drop`` columns to leave
    out. ``missing_values`` and ``transpose`` are for the table that is made of the contents.
    ``use`` are features although they look like ids or classes; with ``guess`` false, none does.
    """

    columns: tuple[str, ...] | None = None
    labels: tuple[str, ...] = ()
    id_column: str | None = None
    part: str | None = None
    vector: str | None = None
    missing_values: tuple[str, ...] = ()
    transpose: bool = False
    use: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    guess: bool = True
    allow_text: bool = False  # whether columns of text may take part, so that numbers may lack
    spelling: Spelling = PYTHON  # of options in notes and errors

    def for_reader(self) -> Request:
        """What the reader may rely on: names of columns mean other things before transposing."""
        if not self.transpose:
            return self
        return Request(part=self.part, guess=False, spelling=self.spelling)


@dataclasses.dataclass(frozen=True, eq=False)
class Contents:
    """All columns of a source, with what the source says about them.

    ``frame`` holds the named columns. ``matrix`` is set when the features are an array without
    names, or a sparse one whose names, if any, are ``matrix_names``; then every column of
    ``frame`` is a label. ``unread`` are columns of numbers that were not asked for, ``left_out``
    those of nested or binary values, which were not read. ``declared`` says that the source itself
    tells features from labels.
    """

    frame: pl.DataFrame
    matrix: Any = None
    matrix_names: tuple[str, ...] | None = None
    labels: tuple[str, ...] = ()
    id_name: str | None = None
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None
    declared: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether the features can be chosen by name."""
        return self.matrix is None or self.matrix_names is not None

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Type by name of every column that can be chosen."""
        import polars as pl

        numbers = dict.fromkeys(self.matrix_names or (), pl.Float64())
        return {**numbers, **self.frame.schema}

    def column(self, name: str) -> pl.Series:
        """One column by name, of the frame or of the matrix."""
        import polars as pl

        if name in self.frame.columns:
            return self.frame[name]
        place = (self.matrix_names or ()).index(name)
        return pl.Series(name, self.matrix[:, [place]].toarray().ravel())


def is_text(dtype: pl.DataType) -> bool:
    """Whether a column of this type holds text."""
    import polars as pl

    return dtype == pl.String


def is_number(dtype: pl.DataType) -> bool:
    """Whether a column of this type holds numbers or truth values, which may be features."""
    import polars as pl

    return dtype.is_numeric() or dtype == pl.Boolean


def holds_no_values(dtype: pl.DataType) -> bool:
    """Whether a column of this type is left out: nested or binary values have no role."""
    import polars as pl

    return dtype.is_nested() or dtype in (pl.Binary, pl.Object)


def described(schema: Mapping[str, pl.DataType]) -> str:
    """The names and types of columns, for a message."""
    return listing([f"{name!r} ({dtype})" for name, dtype in schema.items()], quote=False)


def named_matrix(
    matrix: Any,
    names: Sequence[str] | None,
    labels: dict[str, np.ndarray] | pl.DataFrame,
    notes: Sequence[str] = (),
    id_name: str | None = None,
) -> Contents:
    """Contents of an array: named columns where there are names, a bare matrix otherwise.

    A sparse matrix stays sparse, with its names beside it. Equal names get numbers, and a label
    with the name of a feature is renamed.
    """
    import numpy as np
    import polars as pl

    frame = pl.DataFrame(labels)
    if names is None:
        return Contents(frame, matrix, None, tuple(frame.columns), id_name, tuple(notes))
    names, renamed = _unique(names)
    if renamed:
        notes = [*notes, f"several columns are called {renamed[0]!r} and were given numbers"]
    kept = {name: free_name(name, names) for name in frame.columns}
    frame = frame.rename(kept)
    id_name = kept.get(id_name, id_name)
    if not isinstance(matrix, np.ndarray):
        return Contents(frame, matrix, tuple(names), tuple(frame.columns), id_name, tuple(notes))
    # Columns in Fortran order are copied neither here nor by an estimator.
    features = pl.from_numpy(np.asfortranarray(matrix), schema=names, orient="row")
    beside = tuple(frame.columns)
    return Contents(
        features.hstack(frame), None, None, beside, id_name, tuple(notes), declared=True
    )


def _unique(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Distinct names, and those that occurred more than once."""
    if len(set(names)) == len(names):
        return list(names), []
    taken, seen, unique, renamed = set(names), set(), [], []
    for name in names:
        if name in seen:
            renamed.append(name)
            number = 1
            while f"{name}-{number}" in taken:
                number += 1
            name = f"{name}-{number}"
            taken.add(name)
        seen.add(name)
        unique.append(name)
    return unique, renamed


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name of a label, with the suffix ``_label`` as often as it is taken."""
    known = set(taken)
    while name in known:
        name += "_label"
    return name


def refuse_twice(source: object, names: Sequence[str]) -> None:
    """Refuse columns with the same name."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise DataError(
            f"{source}: several columns are called {listing(twice, 5)}; rename all but one."
        )


def one_line(reason: object) -> str:
    """The first line of the message of a library."""
    first = str(reason).strip().split("\n")[0][:160].rstrip(".:")
    return first or type(reason).__name__


def unreadable(file: object, kind: str, reason: object) -> DataError:
    """The error for a file that is not what its name says."""
    return DataError(f"{file}: cannot be read as {kind}: {one_line(reason)}.")
