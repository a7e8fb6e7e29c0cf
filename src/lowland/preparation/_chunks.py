"""What a preparation learns of the columns of numbers, by their sums; and tables in chunks."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError, ParameterError
from lowland._base.rows.chunks import Block
from lowland._base.rows.fitting import float_type
from lowland._base.rows.table import Rows
from lowland._base.validation import all_finite, check_finite, is_sparse
from lowland._engines.linalg.moments import ColumnSums, column_sums, merge_columns, with_value
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland.preparation._categories import as_text
from lowland.preparation._dates import telling_dates
from lowland.preparation._scales import Scale, decided, no_zeros

if TYPE_CHECKING:
    import polars as pl

    from lowland.preparation.encoding import Encoding
    from lowland.preparation.preparation import Preparation

# The weight of a category beside a number.
#
# A column of numbers with deviation 1 adds (x_i - x_j)^2 to the squared distance of two rows, on
# average over pairs 2. The columns of a category, 1_k - p_k divided by s_k, where p_k is the
# share of level k, add
#
#     1 / s_k^2 + 1 / s_l^2      for rows of two different levels k and l, else 0.
#
# Multiple correspondence analysis takes s_k = sqrt(p_k), and standardized columns have s_k =
# sqrt(p_k (1 - p_k)). Both give a level of 0.5 % a squared distance of 200 to every other level,
# where a number adds 2: its rows become an island whatever else they have in common. Dividing by
# the inertia 1 - sum p_k^2 does the same for a category of two levels. With s_k = 1 any two
# different levels add 2, as a number does on average, whether they are rare or not, and the
# inertia of a category is at most 1, the variance of a standardized number.
#
# Measured on 2000 rows of 4 classes with 6 categories and 3 numbers, one level having 0.5 % of the
# rows: of the 10 nearest rows of such a row, in the data and in a map by t-SNE, 100 % had the same
# rare level with standardized columns and with sqrt(p_k), below 2 % with s_k = 1; the class of the
# rare rows was predicted by the 10 nearest for 0 %, 0 % and 83 to 100 % of them; of all rows for 91
# to 95 %, 93 to 96 % and 98 %. Without any numbers the order was the same.
#
# So 0/1 columns of levels stay as they are. A column of no and yes is one column instead of two
# and is multiplied by sqrt(2), and a cycle is a point on the circle of radius 1, whose squared
# distance to another is 2 on average if all phases are equally frequent.
#
# Gower's distance of two rows is the mean over their variables of |x - y| / range for numbers,
# and of 0 or 1 for equal and different categories. It is the Manhattan distance of columns that
# are divided by m range for a number, m for no and yes, and 2 m for levels, because two columns
# differ, where m is the number of variables. A cycle adds up to 1: its sine and cosine are
# divided by m 2 sqrt(2). Gower leaves a pair of values out if one of them is missing; no
# Manhattan distance does that, so missing numbers are filled as for other metrics, and a missing
# category is a category.


SWITCH = np.sqrt(0.5)  # 0 and 1, divided by it, are sqrt(2) apart
CIRCLE = np.sqrt(8.0)  # at most so far are two points of the unit circle in Manhattan distance


def beside_numbers(found: Scale, encoding: Encoding) -> Scale:
    """The scale of numbers, followed by the weights of cycles, switches and levels."""
    n, cycles = encoding._n_plain, 2 * len(encoding.cycle_columns_)
    switches = len(encoding.switch_columns_)
    center = np.zeros(encoding._n_features_out)
    spread = np.ones_like(center)
    if found.center is not None and found.spread is not None:
        center[:n], spread[:n] = found.center, found.spread
    spread[n + cycles : n + cycles + switches] = SWITCH
    return Scale(found.kind, found.reason, center, spread)


# What a table in chunks looks like, learned block by block: values of columns, and their sums.
#
# A column of text or dates is represented by few of its values, from which an encoding learns the
# same as from all of them. Columns of numbers are represented by their sums, which decide the
# scale.


ROWS_LOOKED_AT = 5000  # of a table in memory, for the choice of a scale
# The interquartile range of a normal distribution: "robust" and "standard" agree there.
QUARTILES_OF_NORMAL = 1.3489795
BUDGET = 1 << 25  # bytes of the rows whose sums are taken at a time
MOST_LEVELS = 100_000  # different values of a column of text


class Representatives(NamedTuple):
    """The values of a block that tell how its columns are encoded, by column."""

    ordered: frozenset[str]
    dates: frozenset[str]

    def __call__(self, block: Block) -> dict[str, pl.Series]:
        return {column.name: self._of(column) for column in block.X.get_columns()}

    def merged(self, a: dict[str, pl.Series], b: dict[str, pl.Series]) -> dict[str, pl.Series]:
        """The values that tell about the rows of both."""
        import polars as pl

        found = {}
        for name, column in a.items():
            other = b[name]
            numeric = column.dtype.is_numeric()
            if column.dtype != other.dtype and not numeric:
                kinds = f"is {column.dtype} in some rows and {other.dtype} in others"
                raise DataError(f"column {name!r} {kinds}; give it one type.")
            if not numeric or name in self.dates:
                column = self._of(pl.concat([column, other.cast(column.dtype)]))
            found[name] = column
        return found

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
            what = f"has more than {MOST_LEVELS} different values, one 0/1 column each"
            raise DataError(f"column {name!r} {what}; leave this column out.")
        return values


class Numbers(NamedTuple):
    """Sums of the columns of numbers, and facts about rows."""

    columns: ColumnSums
    binary: np.ndarray  # whether all known values are 0 or 1
    n_rows: int
    n_empty: int
    is_sparse: bool
    is_single: bool  # float32


def numbers_of(X: Any, n_empty: int = 0) -> Numbers:
    """The sums of some rows."""
    n, p = X.shape
    binary = np.zeros(p, bool)
    if not is_sparse(X):
        gaps = np.isnan(X)
        if gaps.any():
            check_finite(np.where(gaps, 0.0, X), None)
        binary = ((X == 0) | (X == 1) | gaps).all(axis=0)
    return Numbers(column_sums(X), binary, n, n_empty, is_sparse(X), X.dtype == np.float32)


def all_numbers(X: Any) -> Numbers:
    """The sums of rows in memory."""
    if is_sparse(X):
        return numbers_of(X)
    blocks = row_blocks(len(X), rows_within(8 * X.shape[1], BUDGET))
    return functools.reduce(merge_numbers, (numbers_of(X[rows]) for rows in blocks))


def numbers_in_block(block: Block, preparation: Preparation, *, ready: bool) -> Numbers:
    """The sums of one block, before its gaps are filled, or as it is before it is scaled."""
    numbers, n_empty = preparation._numbers(preparation._entered(block.X)), 0
    if ready:
        numbers, n_empty = preparation._normalized(preparation._filled(numbers))
    elif preparation.missing == "refuse":
        preparation._filled(numbers)
    return numbers_of(numbers, n_empty)


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


class Columns:
    """Columns of numbers as the choice of a scale sees them: by their sums, and the rows if known.

    Either ``X``, whose sums are taken when they are asked for, or ``found``, the sums of chunks.
    """

    def __init__(self, X: Any = None, found: Numbers | None = None) -> None:
        self.X, self._found = X, found
        self.is_sparse = is_sparse(X) if found is None else found.is_sparse

    @functools.cached_property
    def found(self) -> Numbers:
        return all_numbers(self.X) if self._found is None else self._found

    @property
    def n_columns(self) -> int:
        return len(self.found.binary)

    def plain(self, n: int) -> Columns:
        """The first n columns."""
        if self.X is not None:
            return Columns(self.X[:, :n])
        sums = ColumnSums(*(values[:n] for values in self.found.columns))
        return Columns(found=self.found._replace(columns=sums, binary=self.found.binary[:n]))

    def choose(self, names: Sequence[str] | None) -> Scale:
        """ "standard" for a table whose units seem to differ, else "none".

        Sparse data and arrays without column names are not scaled. Columns of one kind are not
        scaled either: columns whose deviations differ by at most a factor of 10, and many columns
        with the same minimum (pixels, counts). Of rows in memory, some are enough for the choice.
        """
        if self.is_sparse:
            return Scale("none", "the data are sparse")
        found = self.found if self.X is None else all_numbers(self.X[:: self._step])
        chosen = decided(deviations(found.columns), found.columns.low, names)
        return chosen if chosen.kind == "none" else self.standard(chosen.reason)

    @property
    def _step(self) -> int:
        return max(1, len(self.X) // ROWS_LOOKED_AT)

    def standard(self, reason: str) -> Scale:
        """Mean and deviation, with the divisor n, like scikit-learn's StandardScaler.

        Sparse data are not centered.
        """
        sums = self.found.columns
        spread = no_zeros(deviations(sums))
        if self.is_sparse:
            return Scale("standard", f"{reason}; not centered, to stay sparse", None, spread)
        return Scale("standard", reason, sums.mean, spread)

    def robust(self, reason: str) -> Scale:
        """Median, and the interquartile range in units of that of a normal distribution.

        If more than half of a column is one value, its deviation replaces the interquartile range.
        """
        if self.is_sparse:
            return self.standard(f"{reason} (sparse: deviations, not quartiles)")
        quantile = np.quantile if all_finite(self.X) else np.nanquantile
        low, middle, high = quantile(self.X, [0.25, 0.5, 0.75], axis=0)
        spread = (high - low).astype(np.float64) / QUARTILES_OF_NORMAL
        spread = np.where(spread > 0, spread, deviations(self.found.columns))
        return Scale("robust", reason, middle.astype(np.float64), no_zeros(spread))

    def keep_binary(self, found: Scale) -> Scale:
        """The scale of numbers, where columns of only 0 and 1 are switches."""
        sums = self.found.columns
        switch = self.found.binary & (sums.low == 0) & (sums.high == 1)
        center = np.where(switch, 0.0, found.center)
        return found._replace(center=center, spread=np.where(switch, SWITCH, found.spread))

    def gower(self, encoding: Encoding) -> Scale:
        """The divisors that make the Manhattan distance Gower's."""
        if self.is_sparse:
            what = "Gower's distance needs the range of each column, and the data are sparse"
            raise DataError(f"{what}; make them dense, by toarray(), if that fits in memory.")
        n, cycles = encoding._n_plain, len(encoding.cycle_columns_)
        switches, categories = len(encoding.switch_columns_), len({*encoding.level_columns_})
        variables = n + cycles + switches + categories
        ranges = (self.found.columns.high - self.found.columns.low)[:n]
        divisors = [
            np.where(ranges > 0, ranges, 1.0),
            np.full(2 * cycles, CIRCLE),
            np.ones(switches),
            np.full(len(encoding.levels_), 2.0),
        ]
        reason = f"Gower's distance of {variables} variables is the Manhattan distance"
        return Scale("gower", reason, None, variables * np.concatenate(divisors))


def deviations(sums: ColumnSums) -> np.ndarray:
    """Deviation of each column; exactly 0 for a constant one."""
    found = np.sqrt(sums.squares / np.maximum(sums.known, 1))
    return np.where(sums.constant, 0.0, found)


def fit_chunks(preparation: Preparation, rows: Rows) -> None:
    """Learn levels, fill values and scale from all rows."""
    for parameter, allowed in (("missing", ("median", "neighbors")), ("scale", ("robust",))):
        value = getattr(preparation, parameter)
        if value in allowed:
            other = "missing='mean'" if parameter == "missing" else "scale='standard'"
            sample = "fit(rows.sample(10_000)) and transform(rows)"
            raise ParameterError(
                f"Preparation: {parameter}={value!r} needs all rows in memory; use {other}, or "
                f"{sample}."
            )
    given, rows = rows, framed(preparation, rows)
    vars(preparation).pop("feature_names_in_", None)
    preparation.n_features_in_ = rows.shape[1]
    if rows.names is not None:
        preparation.feature_names_in_ = np.array(rows.names, dtype=object)
    values = {}
    if rows.dtype == object or rows is not given:
        named = (preparation.order or (), preparation.dates or ())
        work = Representatives(*map(frozenset, named))
        values = rows.total(work, work.merged, name="values")
    preparation._fit_encoding(values)
    refused = preparation.missing == "refuse"
    preparation.n_filled_ = preparation.n_empty_ = 0
    preparation.fill_ = preparation.donors_ = preparation.donor_spread_ = None
    if not refused or not preparation.normalize:
        found = _totals(preparation, rows, ready=False)
        if not refused and not found.is_sparse:
            found = _filled(preparation, found)
    if preparation.normalize:
        found = _totals(preparation, rows, ready=True)
        preparation.n_empty_ = found.n_empty
    preparation._keep_scale(preparation._scale(Columns(found=found)))


def _totals(preparation: Preparation, rows: Rows, *, ready: bool) -> Numbers:
    work = functools.partial(numbers_in_block, preparation=copy.copy(preparation), ready=ready)
    return rows.total(work, merge_numbers, name="columns")


def framed(preparation: Preparation, rows: Rows) -> Rows:
    """The rows as data frames, if parameters speak of columns by their names."""
    asked = preparation.order or preparation.cyclic or preparation.dates
    if rows.dtype == object or rows.names is None or not (asked or preparation.missing_values):
        return rows
    return rows.map(Framed(rows.names))


class Framed:
    """The step that gives the columns of an array their names."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)

    def __call__(self, X: Any) -> Any:
        import polars as pl

        if not isinstance(X, np.ndarray):
            return X
        return pl.from_numpy(X, schema=self.names, orient="row")


def _filled(preparation: Preparation, found: Numbers) -> Numbers:
    """Keep the fill values; the sums of the columns after they are filled."""
    preparation._learn_fill(found)
    columns = found.columns
    gaps = found.n_rows - columns.known
    if preparation.missing == "keep":
        return found
    values = columns.mean.astype(np.float32 if found.is_single else np.float64)
    return found._replace(
        columns=with_value(columns, gaps, values.astype(np.float64)),
        binary=found.binary & (gaps == 0),
    )


class Prepared:
    """The step that prepares rows by a fitted preparation, as it is now."""

    def __init__(self, preparation: Preparation) -> None:
        self.preparation = copy.copy(preparation)

    def __call__(self, X: Any) -> Any:
        return self.preparation._prepared(self.preparation._entered(X))


def prepared_chunks(preparation: Preparation, rows: Rows) -> Rows:
    """The table of all prepared rows."""
    rows = framed(preparation, rows)
    n, names = preparation._n_features_out, preparation.column_names_out()
    dtype = float_type(np.float64 if rows.dtype == object else rows.dtype)
    return rows.map(Prepared(preparation), n, names=names, dtype=dtype)
