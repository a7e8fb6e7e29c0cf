"""The check that kernel values differ: at extreme scales all are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland._core.units import exponent_for, in_unit, largest
from lowland._core.validation import is_sparse
from lowland._engines.kernels.kernel_scale import sample_distances
from lowland._engines.linalg.magnitude import EXTREME, check_magnitude, unit_for

if TYPE_CHECKING:
    from lowland._engines.kernels.kernel_operators import Kernel

# Up to rounding, exp(-x) is 1 below the first and 0 above the second, and tanh(x) is x and 1.
NONE, ALL = 1e-14, 745.0


def check_scale(X: Any, kernel: Kernel, owner: str, greatest: float | None = None) -> None:
    """Refuse rows of extreme values whose kernel values are all equal or overflow.

    X may be a sample of the rows; then ``greatest`` is the largest absolute value of all.
    """
    name = kernel.name
    if callable(name) or name in ("cosine", "precomputed"):
        return
    if greatest is None:
        greatest = largest(X.data if is_sparse(X) else X)
    if unit_for(greatest) == 1.0:
        return
    if name != "laplacian":
        check_magnitude(greatest, owner, "value")
    if name in ("rbf", "laplacian"):
        nearest, farthest = _arguments(X, kernel, greatest)
        if farthest > NONE and nearest < ALL:
            return
        reason = "0" if nearest >= ALL else "1"
    else:
        s = greatest * greatest * X.shape[1] * (1.0 if name == "linear" else kernel.gamma)
        least = {"linear": 1 / EXTREME, "sigmoid": NONE}.get(name, NONE * abs(kernel.coef0))
        most = {"linear": EXTREME, "sigmoid": 1 / NONE}.get(name, EXTREME ** (1 / kernel.degree))
        if least < s < most:
            return
        reason = "the same" if s <= least else "so large that their squares overflow"
        if name in ("linear", "sigmoid"):
            reason = "-1 or 1" if name == "sigmoid" else "so large that their squares overflow"
    hint = ", or leave gamma at None" if name in ("rbf", "laplacian") else ""
    raise DataError(
        f"{owner}: the largest value of X is {greatest:g}, and all values of kernel={name!r} with "
        f"gamma={kernel.gamma:g} are {reason}; divide X by {greatest:.0e}{hint}."
    )


def _arguments(X: Any, kernel: Kernel, greatest: float) -> tuple[float, float]:
    """The exponent, such as gamma |x - y|^2, of the nearest and the farthest pair of a sample."""
    squared = kernel.name == "rbf"
    moved = in_unit(X, exponent_for(greatest))
    distances = sample_distances(moved, "euclidean" if squared else "cityblock")
    distances = distances[distances > 0]
    if not len(distances):  # all rows are equal, at any scale
        return 1.0, 1.0
    ends = np.array([distances.min(), distances.max()]) / unit_for(greatest)
    with np.errstate(over="ignore"):
        least, most = kernel.gamma * (ends**2 if squared else ends)
    return float(least), float(most)
