"""Columns of text, truth values, dates and cycles as numbers, in the same way for new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._base.constraints import PERIODS, Cycles, Names, Null, Orders
from lowland._base.errors import DataError, unknown_name
from lowland._base.models.checks import above
from lowland._base.params import Declared, fitted, param
from lowland._base.validation import is_sparse
from lowland.preparation._categories import levels_in, mark_levels, steps_in, switch_in, switched
from lowland.preparation._dates import FORMATS, TYPED, date_format, seconds_in, unit_of

if TYPE_CHECKING:
    import polars as pl


class Encoding(Declared):
    """Numbers of a table whose columns may be text, truth values or dates.

    The result has the columns of numbers first, with ordered values as 0, 1, 2, ... and dates as
    the time since the first one; then a pair (sin, cos) for each cycle; then one 0/1 column for
    each column of two values that mean no and yes; then one 0/1 column for each value of the
    other columns of text.

    Parameters
    ----------
    order : dict of str to sequence of str, or None, default=None
        Columns of text whose values are ordered, such as ``{"size": ["low", "high"]}``. They
        become equally spaced numbers.
    cyclic : dict of str to number or str, or None, default=None
        Columns that repeat, with their period: a number for a column of numbers, such as
        ``{"hour": 24}``; minute, hour, day, week or year for dates and times. Each becomes a point
        of the unit circle.
    dates : sequence of str or None, default=None
        Columns of text that hold dates or times. Columns of a date type are found without it.

    Attributes
    ----------
    level_columns_ : ndarray of shape (n_levels,)
        Name of the text column of each 0/1 column.
    levels_ : ndarray of shape (n_levels,)
        Text value of each 0/1 column.
    switch_columns_, switch_off_, switch_on_ : ndarray of shape (n_switches,)
        Names of the columns of no and yes, and these values in lower case.
    step_columns_, steps_ : ndarray of shape (n_steps,)
        Name of the column and value of each ordered value, in order.
    date_columns_, date_formats_ : ndarray of shape (n_dates,)
        Names of the columns of dates, and the format of the text; empty for a date type.
    date_origins_, date_units_ : ndarray of shape (n_dates,)
        The time that becomes 0, and the length of the unit, in seconds.
    cycle_columns_, cycle_lengths_ : ndarray of shape (n_cycles,)
        Names of the columns that repeat, and their periods; for dates in seconds.
    """

    order: dict[str, Sequence[str]] | None = param(Orders() | Null(), default=None)
    cyclic: dict[str, Any] | None = param(Cycles() | Null(), default=None)
    dates: Sequence[str] | None = param(Names() | Null(), default=None)

    level_columns_: np.ndarray = fitted("n_levels", type=str, may_be_empty=True)
    levels_: np.ndarray = fitted("n_levels", type=str, may_be_empty=True)
    switch_columns_: np.ndarray = fitted("n_switches", type=str, may_be_empty=True)
    switch_off_: np.ndarray = fitted("n_switches", type=str, may_be_empty=True)
    switch_on_: np.ndarray = fitted("n_switches", type=str, may_be_empty=True)
    step_columns_: np.ndarray = fitted("n_steps", type=str, may_be_empty=True)
    steps_: np.ndarray = fitted("n_steps", type=str, may_be_empty=True)
    date_columns_: np.ndarray = fitted("n_dates", type=str, may_be_empty=True)
    date_formats_: np.ndarray = fitted("n_dates", type=str, may_be_empty=True)
    date_origins_: np.ndarray = fitted("n_dates", may_be_empty=True)
    date_units_: np.ndarray = fitted("n_dates", may_be_empty=True, meaning=above(0))
    cycle_columns_: np.ndarray = fitted("n_cycles", type=str, may_be_empty=True)
    cycle_lengths_: np.ndarray = fitted("n_cycles", may_be_empty=True, meaning=above(0))

    # --- fitting ----------------------------------------------------------------------------

    def _fit_encoding(self, columns: Mapping[str, pl.Series]) -> None:
        """Learn how each column is encoded; without names there are none, and all are numbers."""
        order, cycles, named_dates = self.order or {}, self.cyclic or {}, self.dates or ()
        asked = {"order": order, "cyclic": cycles, "dates": named_dates}
        for parameter, names in asked.items():
            for name in names:
                if name not in columns:
                    message = unknown_name("column", name, list(columns))
                    raise DataError(f"{parameter}: {message}")
                if parameter == "order" and name in {*cycles, *named_dates}:
                    raise DataError(f"order: {name!r} is also a cycle or a date; choose one.")
        levels, switches, steps, dates = [], [], [], []
        for name, column in columns.items():
            if name in order:
                steps += [(name, value) for value in order[name]]
            elif column.dtype.is_temporal() or name in named_dates:
                dates.append((name, *self._fit_date(column)))
            elif column.dtype.is_numeric():
                continue
            elif (pair := switch_in(column)) is not None:
                switches.append((name, *pair))
            else:
                levels += [(name, level) for level in levels_in(column)]
        self.level_columns_, self.levels_ = _texts(levels, 2)
        self.switch_columns_, self.switch_off_, self.switch_on_ = _texts(switches, 3)
        self.step_columns_, self.steps_ = _texts(steps, 2)
        self.date_columns_, self.date_formats_ = _texts([date[:2] for date in dates], 2)
        self.date_origins_ = np.array([date[2] for date in dates], np.float64)
        self.date_units_ = np.array([date[3] for date in dates], np.float64)
        self.cycle_columns_ = np.array([*cycles], dtype=object)
        lengths = [self._cycle_length(columns[name], cycles[name]) for name in cycles]
        self.cycle_lengths_ = np.array(lengths, np.float64)

    def _fit_date(self, column: pl.Series) -> tuple[str, float, float]:
        """The form of its text, the origin and the unit."""
        form = date_format(column)
        seconds = seconds_in(column, form)
        known = seconds[~np.isnan(seconds)]
        if not len(known):
            raise DataError(f"all values are missing in {column.name!r}; leave this column out.")
        if column.name in (self.cyclic or {}):
            return form, 0.0, 1.0  # of the calendar, not of the first date
        origin = float(known.min())
        return form, origin, unit_of(float(known.max()) - origin)

    def _cycle_length(self, column: pl.Series, period: Any) -> float:
        """The period, in the unit of the column."""
        name = column.name
        if name in self.date_columns_:
            if isinstance(period, str):
                return PERIODS[period]
            what = f"{name!r} holds dates or times, and {period!r} is not one of their periods"
            raise DataError(f"cyclic: {what}: {', '.join(PERIODS)}.")
        if column.dtype.is_numeric() and not isinstance(period, str):
            return float(period)
        what = "numbers" if column.dtype.is_numeric() else "text"
        expected = f"expected a number > 0 for numbers, or {', '.join(PERIODS)} for dates"
        what = f"column {name!r} of {what} cannot have the period {period!r}"
        raise DataError(f"cyclic: {what}; {expected}.")

    # --- encoding ---------------------------------------------------------------------------

    def _numbers(self, X: Any) -> Any:
        """The columns of numbers and the cycles, as one C-ordered array; NaN where missing."""
        if not hasattr(X, "columns"):
            self._require_frame()
            return X if is_sparse(X) or X.dtype.kind == "f" else X.astype(np.float64)
        import polars as pl

        apart = self._apart
        names = [name for name in X.columns if name not in apart]
        if not {*self.step_columns_, *self.date_columns_, *self.cycle_columns_}:
            numbers = X.select(names).to_numpy(order="c") if names else np.empty((X.height, 0))
            return numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)
        numeric = [dtype for dtype in X.schema.values() if dtype.is_numeric()]
        single = numeric and all(dtype == pl.Float32 for dtype in numeric)
        parts = [self._as_number(X[name]) for name in names]
        for name, length in zip(self.cycle_columns_, self.cycle_lengths_, strict=True):
            angle = 2 * np.pi * np.mod(self._as_number(X[name]), length) / length
            parts += [np.sin(angle), np.cos(angle)]
        return np.stack(parts, axis=1).astype(np.float32 if single else np.float64, copy=False)

    def _as_number(self, column: pl.Series) -> np.ndarray:
        """One column as numbers in double precision."""
        name = column.name
        if name in self.step_columns_:
            return steps_in(column, self.steps_[self.step_columns_ == name].tolist())
        if name in self.date_columns_:
            place = self.date_columns_.tolist().index(name)
            seconds = seconds_in(column, self.date_formats_[place])
            return (seconds - self.date_origins_[place]) / self.date_units_[place]
        return column.cast(float).fill_null(np.nan).to_numpy()

    def _with_levels(self, numbers: Any, X: Any) -> Any:
        """The numbers, followed by the 0/1 columns."""
        if not len(self.levels_) and not len(self.switch_columns_):
            return numbers
        n, k = numbers.shape
        out = np.zeros((n, self._n_features_out), numbers.dtype if k else np.float64)
        out[:, :k] = numbers
        for name, no, yes in zip(
            self.switch_columns_, self.switch_off_, self.switch_on_, strict=True
        ):
            out[:, k] = switched(X[name], no, yes)
            k += 1
        for name in dict.fromkeys(self.level_columns_):
            levels = self.levels_[self.level_columns_ == name]
            mark_levels(X[name], levels, out[:, k : k + len(levels)])
            k += len(levels)
        return out

    def _require_frame(self) -> None:
        for name in self.encoded_columns:
            kind = "column" if name in self.cycle_columns_ else "text column"
            what = f"Preparation was fitted with the {kind} {name!r}"
            raise DataError(f"{what}, but X has no named columns; give a data frame.")

    # --- columns of the result --------------------------------------------------------------

    @property
    def encoded_columns(self) -> list[str]:
        """Columns that are text, truth values or dates, or repeat, in no order."""
        names = (*self.level_columns_, *self.switch_columns_, *self.step_columns_)
        return [*dict.fromkeys([*names, *self.date_columns_, *self.cycle_columns_])]

    @property
    def text_columns(self) -> list[str]:
        """The encoded columns that need not be numbers in a table of new rows."""
        numbers = {*self.cycle_columns_} - {*self.date_columns_}
        return [name for name in self.encoded_columns if name not in numbers]

    @property
    def _apart(self) -> set[str]:
        """Columns of the input that do not stay one column of numbers."""
        return {*self.level_columns_, *self.switch_columns_, *self.cycle_columns_}

    @property
    def _n_plain(self) -> int:
        """Columns of the input that stay one column of numbers; they come first."""
        return self.n_features_in_ - len(self._apart)

    @property
    def _n_numbers(self) -> int:
        return self._n_plain + 2 * len(self.cycle_columns_)

    @property
    def _n_features_out(self) -> int:
        return self._n_numbers + len(self.switch_columns_) + len(self.levels_)

    def column_names_out(self) -> list[str] | None:
        """Names of the columns of the result; None if X had no names."""
        if "feature_names_in_" not in vars(self):
            return None
        apart = self._apart
        numbers = [name for name in self.feature_names_in_ if name not in apart]
        cycles = [f"{wave}({name})" for name in self.cycle_columns_ for wave in ("sin", "cos")]
        switches = zip(self.switch_columns_, self.switch_on_, strict=True)
        levels = zip(self.level_columns_, self.levels_, strict=True)
        values = [f"{column}={value}" for column, value in (*switches, *levels)]
        return [*numbers, *cycles, *values]

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: each column is encoded in one way, by known means.

        The number of encoded columns follows from it.
        """
        known = set(vars(self).get("feature_names_in_", ()))
        seen: set[str] = set()
        for kind in ("level", "switch", "step", "date", "cycle"):
            names = getattr(self, f"{kind}_columns_").tolist()
            for name in dict.fromkeys(names):
                if name not in known:
                    return f"'{kind}_columns_' with {name[:80]!r}, which is not a column"
                if name in seen and not (kind == "cycle" and name in self.date_columns_):
                    return f"'{kind}_columns_' with {name[:80]!r}, which is encoded already"
            if kind not in ("level", "step") and len({*names}) < len(names):
                return f"'{kind}_columns_' with a column twice"
            seen |= {*names}
        if unknown := {*self.date_formats_} - {TYPED, *FORMATS}:
            return f"'date_formats_' with {unknown.pop()[:80]!r}, which is not a form of dates"
        return super().inconsistency()


def _texts(rows: list[tuple[str, ...]], width: int) -> list[np.ndarray]:
    """The columns of rows of text, each as an array."""
    columns = zip(*rows, strict=True) if rows else [()] * width
    return [np.array(column, dtype=object) for column in columns]
