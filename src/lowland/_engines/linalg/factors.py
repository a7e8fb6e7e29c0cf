"""Factors of a sparse positive semidefinite matrix with a small shift, by the faster of two.

SuperLU           in an order with little fill-in; faster where a row couples with few others
SkylineCholesky   in the order along the graph, by dense algebra; faster where it couples with many
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from lowland._engines.linalg.block_lanczos import Operator
from lowland._engines.linalg.skyline import Skyline, SkylineCholesky

FIRST_SHIFT, LAST_SHIFT = 1e-13, 1e-6  # relative to the norm
FEW_ENTRIES, LOW = 24, 400  # entries and mean height of a row up to which SuperLU is faster


class Inverse(NamedTuple):
    """``solve(V)`` = (M + shift I)^-1 V."""

    solve: Operator
    shift: float


def inverse_of(M: Any, norm: float, plan: Skyline, threads: int) -> Inverse | None:
    """(M + s I)^-1 with the smallest shift s for which factors exist; None: M is indefinite."""
    n, shift = M.shape[0], FIRST_SHIFT * norm
    thin = M.nnz <= FEW_ENTRIES * n and plan.n_bytes <= 8 * LOW * n
    while shift < LAST_SHIFT * norm:
        try:
            if thin:
                return Inverse(_superlu(M, shift), shift)
            return Inverse(SkylineCholesky(M, plan, shift, threads).solve, shift)
        except np.linalg.LinAlgError:
            shift *= 30.0
    return None


def _superlu(M: Any, shift: float) -> Operator:
    shifted = scipy.sparse.csc_matrix(M + shift * scipy.sparse.identity(M.shape[0]))
    try:
        factors = scipy.sparse.linalg.splu(
            shifted,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError as error:  # "Factor is exactly singular"
        raise np.linalg.LinAlgError(str(error)) from error
    return factors.solve
