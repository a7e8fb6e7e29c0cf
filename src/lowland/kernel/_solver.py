"""How KernelPCA computes its axes: how many, by which solver, and whether that fits in memory."""

from __future__ import annotations

import warnings
from typing import Any

from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.memory import require_memory
from lowland._engines.kernels.kernel_operators import Kernel
from lowland.kernel._axes import BLOCK_WIDTH, KernelAxes, by_krylov, by_landmarks, by_matrix

DENSE_ROWS = 1000  # up to so many rows the matrix is cheaper than any iteration
DEFAULT_LANDMARKS = 500


def compute_axes(
    rows: Any,
    kernel: Kernel,
    n_components: int | None,
    solver: str,
    n_landmarks: int | None,
    tol: float,
    run: FitContext,
) -> KernelAxes:
    """The axes that KernelPCA asks for by these parameters; None as ``n_components`` is all."""
    n = rows.shape[0]
    n_axes = axis_count(n, n_components)
    if solver == "auto":
        solver = "dense" if n <= DENSE_ROWS or n_axes > n // 10 else "krylov"
    if solver == "dense":
        _require(8 * 3 * n * n, f"the kernel matrix of {n} rows", "solver='krylov'")
        return by_matrix(rows, kernel, n_axes, run)
    if solver == "krylov":
        basis = min(n, 10 * n_axes + 25 * BLOCK_WIDTH)
        _require(8 * 2 * n * basis, f"a basis of {basis} vectors", "solver='nystroem'")
        return by_krylov(rows, kernel, n_axes, tol, run)
    m = landmark_count(n, n_components, n_landmarks)
    _require(8 * 5 * m * m, f"{m} landmarks", "a smaller n_landmarks")
    return by_landmarks(rows, kernel, min(n_axes, m), m, run)


def axis_count(n: int, n_components: int | None) -> int:
    """The number of axes that ``n_components`` asks for, of n rows."""
    n_axes = n if n_components is None else int(n_components)
    if n_axes > n:
        raise ParameterError(
            f"KernelPCA: n_components={n_axes} is more than the {n} rows of X; ask for at most {n}."
        )
    return n_axes


def _require(n_bytes: int, what: str, other: str) -> None:
    require_memory(n_bytes, task=f"KernelPCA with {what}", alternative=f"use {other}")


def landmark_count(n: int, n_components: int | None, n_landmarks: int | None) -> int:
    """The number of landmarks that the parameters ask for."""
    least = int(n_components or 1)
    if n_landmarks is None:
        return min(n, max(DEFAULT_LANDMARKS, least))
    m = int(n_landmarks)
    if m > n or m < least:
        raise ParameterError(
            f"KernelPCA: n_landmarks={m} must be between n_components={least} and the {n} "
            "rows of X."
        )
    return m


def warn_if_indefinite(found: KernelAxes, n_components: int) -> None:
    """Warn if components are 0 because the kernel has too few positive eigenvalues."""
    positive = int((found.eigenvalues > 0).sum())
    largest = float(found.eigenvalues[0])
    if positive < n_components and found.lowest < -1e-6 * max(largest, -found.lowest):
        warnings.warn(
            f"only {positive} of {n_components} components have a positive eigenvalue, and the "
            f"others are 0: the kernel is indefinite (eigenvalues from {found.lowest:.3g} to "
            f"{largest:.3g}).",
            stacklevel=5,
        )
