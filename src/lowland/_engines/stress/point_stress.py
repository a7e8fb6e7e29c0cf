"""Relative error of the distances of each point, for maps that do not minimize a stress."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lowland import _native
from lowland._engines.linalg.blocks import row_blocks, rows_within

PARTNERS = 1000  # of each point, enough for a mean


def chosen_partners(n: int) -> np.ndarray:
    """Rows whose distances to all others are measured: all, or evenly spread ones."""
    return np.arange(n) if n <= 2 * PARTNERS else np.linspace(0, n - 1, PARTNERS).astype(np.int64)


def relative_stress(
    Y: np.ndarray,
    partners: np.ndarray,
    distances: Callable[[slice], np.ndarray],
    threads: int,
) -> np.ndarray:
    """sqrt( sum_j (delta_ij - d_ij)^2 / sum_j delta_ij^2 ) over the partners j of each row i.

    ``distances(rows)`` are those of some rows to the partners.
    """
    out, some = np.zeros(len(Y)), np.ascontiguousarray(Y[partners], np.float64)
    none = np.empty((0, 0))
    for rows in row_blocks(len(Y), rows_within(8 * len(partners), 2**24)):
        delta = np.ascontiguousarray(distances(rows), np.float64)
        at = np.ascontiguousarray(Y[rows], np.float64)
        stress, forces = np.empty(len(at)), np.empty(at.shape)
        _native.stress_rows(at, some, delta, none, 0, stress, forces, threads)
        size = np.einsum("ij,ij->i", delta, delta)
        out[rows] = np.sqrt(stress / np.where(size > 0, size, 1.0))
    return out
