"""The contents of a source before its columns get their roles; every reader returns them."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._base.errors import PYTHON, DataError, Spelling, listing

if TYPE_CHECKING:
    import numpy as np
    import polars as pl


PICKLED = (
    "holds pickled objects, which are never loaded because they can run code; save a plain array "
    "of numbers."
)


class Request(NamedTuple):
    """What the caller wants of a source; a reader need not read the rest.

    ``columns`` None means every column of numbers; ``part`` names what to take out of a container,
    ``vector`` the column whose lists of numbers are the features, and ``drop`` columns to leave
    out. ``missing_values`` and ``transpose`` are for the table that is made of the contents.
    ``use`` are features although they look like ids or classes; with ``guess`` false, none does.
    """

    columns: Sequence[str] | None = None
    labels: Sequence[str] = ()
    id_column: str | None = None
    part: str | None = None
    vector: str | None = None
    missing_values: Sequence[str] = ()
    transpose: bool = False
    use: Sequence[str] = ()
    drop: Sequence[str] = ()
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
    """All columns of a source, with what the source states about them.

    ``frame`` holds the named columns. ``matrix`` is set when the features are an array without
    names, or a sparse one whose names, if any, are ``matrix_names``; then every column of
    ``frame`` is a label. ``unread`` are columns of numbers that were not asked for, ``left_out``
    those of nested or binary values, which were not read. ``declared`` states that the source
    itself distinguishes features from labels.
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
    def n_rows(self) -> int:
        return self.frame.height if self.matrix is None else self.matrix.shape[0]

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

    def columns(self, names: Sequence[str]) -> pl.DataFrame:
        """Columns by name, of the frame or of a sparse matrix."""
        import polars as pl

        known = {*self.frame.columns}
        found = []
        for name in names:
            if name in known:
                found.append(self.frame[name])
            else:
                place = (self.matrix_names or ()).index(name)
                found.append(pl.Series(name, self.matrix[:, [place]].toarray().ravel()))
        return pl.DataFrame(found)


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

    frame, notes = pl.DataFrame(labels), [*notes]
    names = None if names is None else _numbered(names, notes)
    if names is not None:
        kept = {name: free_name(name, names) for name in frame.columns}
        frame, id_name = frame.rename(kept), kept.get(id_name, id_name)
    contents = Contents(frame, matrix, names, tuple(frame.columns), id_name, tuple(notes))
    if names is None or not isinstance(matrix, np.ndarray):
        return contents
    # Columns in Fortran order are copied neither here nor by an estimator.
    features = pl.from_numpy(np.asfortranarray(matrix), schema=names, orient="row")
    columns = {"frame": features.hstack(frame), "matrix": None, "matrix_names": None}
    return dataclasses.replace(contents, declared=True, **columns)


def _numbered(names: Sequence[str], notes: list[str]) -> tuple[str, ...]:
    """Distinct names; a note states that equal ones were given numbers."""
    taken, unique = {*names}, {}
    for name in names:
        free = name
        if name in unique:
            numbered = (f"{name}-{number}" for number in itertools.count(1))
            free = next(each for each in numbered if each not in taken)
            taken.add(free)
        unique[free] = name
    twice = [name for free, name in unique.items() if free != name]
    if twice:
        notes.append(f"several columns are called {twice[0]!r} and were given numbers")
    return tuple(unique)


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name of a label, with the suffix ``_label`` as often as it is taken."""
    known = set(taken)
    while name in known:
        name += "_label"
    return name


def free_id(names: Collection[str]) -> str:
    """The name given to the column that names the rows, if the file has no name for it."""
    return "index" if "row" in names else "row"


def refuse_twice(source: object, names: Sequence[str]) -> None:
    """Refuse columns with the same name."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        names = listing(twice, 5)
        raise DataError(f"{source}: several columns are called {names}; rename all but one.")


def one_line(reason: object) -> str:
    """The first line of the message of a library."""
    first = str(reason).strip().split("\n")[0][:160].rstrip(".:")
    return first or type(reason).__name__


@contextlib.contextmanager
def reading(file: object, kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn the errors that a library raises on a damaged file into a DataError of one line."""
    try:
        yield
    except DataError:
        raise
    except BaseException as error:
        # Rust panics on some damaged files; PanicException is not a subclass of Exception, and its
        # words are those of a programmer of polars.
        panicked = type(error).__name__ == "PanicException"
        opened = not isinstance(error, OSError) or error.filename is None
        if not panicked and not (isinstance(error, errors) and opened):
            raise
        if "pickle" in str(error):
            raise DataError(f"{file}: {PICKLED}") from error
        panicked = panicked or "panic" in str(error).lower()
        raise unreadable(file, kind, "it is damaged" if panicked else error) from error


def unreadable(file: object, kind: str, reason: object) -> DataError:
    """The error for a file that is not what its name says."""
    return DataError(f"{file}: cannot be read as {kind}: {one_line(reason)}.")
