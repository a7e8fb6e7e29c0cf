"""Floats with a standard error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowland._core.units import exponent_for, in_unit, largest

STEP = 1e-30  # of complex-step derivatives, which have no cancellation at any step length


class Measured(float):
    """A float with the standard error due to sampling.

    It prints, compares and computes like a float.

    Attributes
    ----------
    standard_error : float
        0.0 when every row was measured.
    sample_size : int
        Number of rows that were measured.

    Examples
    --------
    >>> value = Measured(0.9, standard_error=0.01, sample_size=500)
    >>> value, value > 0.8
    (0.9, True)
    >>> low, high = value.interval()
    >>> round(low, 3), round(high, 3)
    (0.88, 0.92)
    """

    standard_error: float
    sample_size: int

    def __new__(cls, value: float, standard_error: float = 0.0, sample_size: int = 0) -> Measured:
        self = super().__new__(cls, value)
        self.standard_error = float(standard_error)
        self.sample_size = int(sample_size)
        return self

    def __getnewargs__(self) -> tuple[float, float, int]:  # type: ignore[override]
        return float(self), self.standard_error, self.sample_size

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The confidence interval: value -+ z times the standard error."""
        from scipy.special import ndtri

        reach = float(ndtri(0.5 + level / 2)) * self.standard_error
        return float(self) - reach, float(self) + reach


def from_rows(values: np.ndarray, n: int) -> Measured:
    """The mean over all n rows, from the values of all or of a sample drawn without replacement."""
    m = len(values)
    return Measured(float(values.mean()), _error(values, n), m)


def linearized(f: Callable[[Any], Any], rows: np.ndarray, n: int) -> Measured:
    """f(mean of the rows' vectors) for a smooth f, its error to first order (delta method).

    f is called with complex numbers too: its derivative is taken by a complex step.
    """
    mean = rows.mean(axis=0)
    size = np.where(mean == 0, 1.0, np.abs(mean))  # a step is small compared with its value
    directions = mean + 1j * STEP * np.diag(size)
    gradient = np.array([np.imag(f(at)) / STEP for at in directions])
    influence = (rows / size * gradient).sum(axis=1)
    return Measured(float(np.real(f(mean))), _error(influence, n), len(rows))


def from_pairs(value: float, influence: np.ndarray, n: int) -> Measured:
    """A mean over the pairs of m sampled rows; ``influence`` has each row's mean over its pairs.

    A row is a member of pairs on either side, so that to first order (Hoeffding 1948) a deviation
    of a row's own mean changes the mean over pairs twice.
    """
    return Measured(value, 2 * _error(influence, n), len(influence))


def _error(values: np.ndarray, n: int) -> float:
    """Standard error of a mean of values drawn without replacement from n; 0 if those are all."""
    m = len(values)
    if m >= n or m < 2:
        return 0.0
    e = exponent_for(largest(values))  # squares must not overflow
    deviation = float(np.std(in_unit(values, e), ddof=1) * np.sqrt((1 - m / n) / m))
    return float(in_unit(deviation, -e))
