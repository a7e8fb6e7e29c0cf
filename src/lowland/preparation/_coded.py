"""Values that mean "missing", such as -999, as the user lists them: ``-999``, ``?``, ``age=-1``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lowland._core.errors import ParameterError, unknown_name


class Code(NamedTuple):
    """A value that means "missing", in one column or in all of them (None)."""

    column: str | None
    text: str
    number: float | None  # None if the text is no finite number

    def applies(self, column: str) -> bool:
        """Whether it means the values of this column."""
        return self.column is None or self.column == column


def parse_codes(texts: Sequence[str] | None) -> list[Code]:
    """The codes of a list of ``value`` or ``column=value``; the last "=" separates."""
    found = []
    for text in texts or ():
        column, equals, value = text.rpartition("=")
        if not value.strip() or (equals and not column.strip()):
            raise ParameterError(
                f"missing_values: {text!r} is not allowed; expected a value such as -999, or "
                "column=value."
            )
        found.append(Code(column.strip() if equals else None, value.strip(), _number(value)))
    return found


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def codes_for(codes: Sequence[Code], column: str) -> list[Code]:
    """The codes that apply to a column."""
    return [code for code in codes if code.applies(column)]


def check_columns_of_codes(codes: Sequence[Code], names: Sequence[str]) -> None:
    """Refuse a code for a column that does not exist."""
    known = set(names)
    for code in codes:
        if code.column is not None and code.column not in known:
            message = unknown_name("column", code.column, list(names))
            raise ParameterError(f"missing_values: {message}")


def without_codes(
    X: np.ndarray, names: Sequence[str] | None, codes: Sequence[Code]
) -> tuple[np.ndarray, int]:
    """X with NaN in place of the codes, and how many there were; X itself if there were none.

    A column without a name is called by its number, from 0.
    """
    wanted = [code for code in codes if code.number is not None]
    if not wanted:
        return X, 0
    places = names if names is not None else [str(i) for i in range(X.shape[1])]
    check_columns_of_codes(wanted, places)
    is_code = np.zeros(X.shape, bool)
    for code in wanted:
        # 0.1 of float32 is not 0.1
        number = X.dtype.type(code.number) if X.dtype.kind == "f" else code.number
        if code.column is None:
            is_code |= number == X
        else:
            place = list(places).index(code.column)
            is_code[:, place] |= X[:, place] == number
    n_found = int(is_code.sum())
    if not n_found:
        return X, 0
    dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
    return np.where(is_code, dtype.type(np.nan), X).astype(dtype, copy=False), n_found
