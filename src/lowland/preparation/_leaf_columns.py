"""What a table in leaves looks like, learned block by block: values of columns, and their sums.

A column of text or dates is represented by few of its values, from which an encoding learns the
same as from all of them. Columns of numbers are represented by their sums, which decide the scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._core.errors import DataError, ParameterError
from lowland._core.rows.leaves import Block
from lowland._core.validation import check_finite, is_sparse
from lowland._engines.linalg.column_sums import ColumnSums, column_sums, merge_columns
from lowland._engines.linalg.magnitude import check_magnitude
from lowland.preparation._categories import as_text
from lowland.preparation._dates import telling_dates
from lowland.preparation._scales import Scale, decided
from lowland.preparation._weights import SWITCH, gower_divisors

if TYPE_CHECKING:
    import polars as pl

    from lowland.preparation.encoding import Encoding

MOST_LEVELS = 100_000  # different values of a column of text


class Few(NamedTuple):
    """Some values of each column; what an encoding needs of a data frame."""

    values: dict[str, pl.Series]

    @property
    def schema(self) -> Mapping[str, Any]:
        return {name: column.dtype for name, column in self.values.items()}

    @property
    def columns(self) -> list[str]:
        return list(self.values)

    def __getitem__(self, name: str) -> pl.Series:  # type: ignore[override]
        return self.values[name]


class Representatives:
    """The values of a block that tell how its columns are encoded."""

    def __init__(self, ordered: Sequence[str], dates: Sequence[str]) -> None:
        self.ordered, self.dates = frozenset(ordered), frozenset(dates)

    def __call__(self, block: Block) -> Few:
        return Few({column.name: self._of(column) for column in block.X.get_columns()})

    def merged(self, a: Few, b: Few) -> Few:
        """The values that tell about the rows of both."""
        import polars as pl

        found = {}
        for name, column in a.values.items():
            other = b.values[name]
            if column.dtype != other.dtype and not column.dtype.is_numeric():
                raise DataError(
                    f"column {name!r} is {column.dtype} in some rows and {other.dtype} in others; "
                    "give it one type."
                )
            if column.dtype.is_numeric() and name not in self.dates:
                found[name] = column
            else:
                both = pl.concat([column, other.cast(column.dtype)])
                found[name] = self._of(both)
        return Few(found)

    def _of(self, column: pl.Series) -> pl.Series:
        name = column.name
        if name in self.dates and not column.dtype.is_temporal():
            return telling_dates(column)
        if column.dtype.is_temporal():
            known = column.drop_nulls()
            return known.filter((known == known.min()) | (known == known.max())).unique()
        if column.dtype.is_numeric() or name in self.ordered:
            return column.head(0)
        values = as_text(column).unique(maintain_order=True)
        if len(values) > MOST_LEVELS:
            raise DataError(
                f"column {name!r} has more than {MOST_LEVELS} different values, one 0/1 column "
                "each; leave this column out."
            )
        return values


class Numbers(NamedTuple):
    """Sums of the columns of numbers, and facts about rows."""

    columns: ColumnSums
    binary: np.ndarray  # whether all known values are 0 or 1
    n_rows: int
    n_empty: int
    is_sparse: bool
    is_single: bool  # float32


class NumbersIn:
    """The sums of one block, before its gaps are filled, or as it is before it is scaled."""

    def __init__(self, preparation: Any, *, ready: bool) -> None:
        self.preparation, self.ready = preparation, ready

    def __call__(self, block: Block) -> Numbers:
        preparation, n_empty = self.preparation, 0
        numbers = preparation._numbers(preparation._entered(block.X))
        if self.ready:
            numbers, n_empty = preparation._normalized(preparation._filled(numbers))
        elif preparation.missing == "refuse":
            preparation._filled(numbers)
        if is_sparse(numbers):
            binary = np.zeros(numbers.shape[1], bool)
        else:
            gaps = np.isnan(numbers)
            if gaps.any():
                check_finite(np.where(gaps, 0.0, numbers), None)
            binary = ((numbers == 0) | (numbers == 1) | gaps).all(axis=0)
        single = numbers.dtype == np.float32
        n = numbers.shape[0]
        return Numbers(column_sums(numbers), binary, n, n_empty, is_sparse(numbers), single)


def merge_numbers(a: Numbers, b: Numbers) -> Numbers:
    """The sums of the rows of both."""
    return Numbers(
        merge_columns(a.columns, b.columns),
        a.binary & b.binary,
        a.n_rows + b.n_rows,
        a.n_empty + b.n_empty,
        a.is_sparse,
        a.is_single and b.is_single,
    )


class SummedColumns:
    """Columns of numbers as the choice of a scale sees them, by their sums."""

    def __init__(self, found: Numbers, n_plain: int | None = None) -> None:
        self.found = found
        self.sums = ColumnSums(*(values[:n_plain] for values in found.columns))
        self.binary = found.binary[:n_plain]

    @property
    def n_columns(self) -> int:
        return len(self.binary)

    def plain(self, n: int) -> SummedColumns:
        """The first n columns."""
        return SummedColumns(self.found, n)

    def _deviations(self) -> np.ndarray:
        for value in self.sums.largest:
            check_magnitude(float(value), "Preparation", "value")
        found = np.sqrt(self.sums.squares / np.maximum(self.sums.known, 1))
        return np.where(self.sums.constant, 0.0, found)

    def choose(self, names: Sequence[str] | None) -> Scale:
        """See :func:`lowland.preparation._scales.choose_scale`, of all rows."""
        if self.found.is_sparse:
            return Scale("none", "the data are sparse")
        chosen = decided(self._deviations(), self.sums.low, names)
        return chosen if chosen.kind == "none" else self.standard(chosen.reason)

    def standard(self, reason: str) -> Scale:
        """See :func:`lowland.preparation._scales.standard_scale`."""
        deviations = self._deviations()
        spread = np.where(deviations > 0, deviations, 1.0)
        if self.found.is_sparse:
            return Scale("standard", f"{reason}; not centered, to stay sparse", None, spread)
        return Scale("standard", reason, self.sums.mean, spread)

    def robust(self, reason: str) -> Scale:
        """Refused: quartiles are not sums."""
        raise ParameterError(
            "Preparation: scale='robust' needs all rows in memory, for quartiles; use "
            "scale='standard', or fit a sample, rows.sample(100_000)."
        )

    def keep_binary(self, found: Scale) -> Scale:
        """See :func:`lowland.preparation._weights.keep_binary`."""
        assert found.center is not None
        assert found.spread is not None
        switch = self.binary & (self.sums.low == 0) & (self.sums.high == 1)
        center = np.where(switch, 0.0, found.center)
        return found._replace(center=center, spread=np.where(switch, SWITCH, found.spread))

    def gower(self, encoding: Encoding) -> Scale:
        """See :func:`lowland.preparation._weights.gower_scale`."""
        n = encoding._n_plain
        with np.errstate(over="ignore"):
            ranges = (self.sums.high - self.sums.low)[:n]
        return gower_divisors(None if self.found.is_sparse else ranges, encoding)
