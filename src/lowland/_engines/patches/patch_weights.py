"""Local problems, one per row: reconstruction weights, tangent planes, and Hessian estimators.

All are solved in batches of equal shape, independently of each other, and distributed over threads
in fixed chunks: neither the other rows nor the number of threads change a digit. Differences are
measured in units of the patch, so that the scale of the data does not matter.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from lowland._base.errors import DataError
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._base.traits import Estimate
from lowland._engines.linalg.eigen import all_eigenpairs
from lowland._engines.linalg.products import row_blocks
from lowland._engines.patches.patch_sums import Points

CHUNK_NUMBERS = 2**19
FARTHEST = 1e140  # beyond it, squares overflow
MOST_REG = 1e30  # from 1e16 on all weights are equal to the last digit
NEGLIGIBLE = 1e-12  # share of the variance below which a direction does not count


class Tangents(NamedTuple):
    """The tangent planes of patches.

    Attributes
    ----------
    bases : ndarray of shape (n, k, q)
        Left singular vectors of each centered patch, orthonormal; 0 where the patch has fewer
        dimensions.
    lengths : ndarray of shape (n, q)
        Their singular values: ``bases * lengths[:, None]`` are coordinates in the tangent plane.
    """

    bases: np.ndarray
    lengths: np.ndarray


def in_chunks(
    work: Callable[[slice], Any],
    n: int,
    numbers_per_row: int,
    threads: int,
    monitor: Monitor,
    name: str,
) -> list[Any]:
    """``work`` on all rows, in blocks of limited memory; results in order."""
    rows = max(1, min(CHUNK_NUMBERS // max(1, numbers_per_row), -(-n // 8)))
    pieces = list(row_blocks(n, rows))
    found = []
    with limit_blas(1), monitor.phase(name, total=len(pieces)) as phase:
        if threads == 1 or len(pieces) == 1:
            for piece in pieces:
                found.append(work(piece))
                phase.advance()
            return found
        # Each thread works in a copy of this context, which holds what numpy does about overflow.
        contexts = [contextvars.copy_context() for _ in pieces]
        with ThreadPoolExecutor(threads) as pool:
            for result in pool.map(
                lambda context, piece: context.run(work, piece), contexts, pieces
            ):
                found.append(result)
                phase.advance()
    return found


def barycentric(points: Points, ids: np.ndarray, X: np.ndarray, reg: float) -> np.ndarray:
    """Weights w with sum 1 that minimize |x - sum_j w_j x_j|^2 + reg tr(C) |w|^2 for each row of X.

    (C + reg tr(C) I) w = 1, scaled to sum 1, with C_jl = (x_j - x).(x_l - x); equal weights where
    all neighbors are x itself. O(k^2 p + k^3) each.
    """
    Z, _ = points.differences(ids, X)
    C = Z @ Z.transpose(0, 2, 1)
    k = C.shape[1]
    trace = np.einsum("njj->n", C)
    ridge = min(reg, MOST_REG) * trace
    C[:, np.arange(k), np.arange(k)] += np.where(trace > 0, ridge, 1.0)[:, None]
    w = np.linalg.solve(C, np.ones((len(C), k, 1)))[:, :, 0]
    return w / w.sum(axis=1, keepdims=True)


def tangents(points: Points, ids: np.ndarray, q: int) -> Tangents:
    """The q leading left singular vectors and singular values of each centered patch.

    From the smaller of the two Gram matrices, k x k or p x p.
    """
    Z, unit = points.differences(ids)
    Z -= Z.mean(axis=1, keepdims=True)
    n, k, p = Z.shape
    bases, lengths = np.zeros((n, k, q)), np.zeros((n, q))
    most = min(q, p, k)
    if p < k:
        squares, axes = all_eigenpairs(Z.transpose(0, 2, 1) @ Z)
    else:
        squares, axes = all_eigenpairs(Z @ Z.transpose(0, 2, 1))
    squares, axes = squares[:, :most], axes[:, :, :most]
    real = squares > NEGLIGIBLE * squares[:, :1]
    size = np.sqrt(np.where(real, squares, 1.0))
    U = Z @ axes / size[:, None] if p < k else axes
    bases[:, :, :most] = np.where(real[:, None], U, 0.0)
    lengths[:, :most] = np.where(real, size, 0.0) * unit[:, None]
    return Tangents(bases, lengths)


def all_tangents(
    points: Points, ids: np.ndarray, q: int, threads: int, monitor: Monitor
) -> Tangents:
    """:func:`tangents` of all patches (n, k), some at a time."""
    n, k = ids.shape
    p = points.width(k)
    parts = in_chunks(
        lambda rows: tangents(points, ids[rows], q),
        n,
        k * (p + min(k, p) + q),
        threads,
        monitor,
        "tangents",
    )
    return Tangents(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def tangents_cost(n: int, k: int, p: int, q: int) -> Estimate:
    """Of :func:`all_tangents`; :func:`barycentric` weights of all rows cost half of it."""
    seconds = n * k * k * (7e-10 * (k + p) + 8e-9)
    return Estimate(seconds, 8 * n * (k + 1) * q + 16 * CHUNK_NUMBERS)


def tangent_weights(points: Points, ids: np.ndarray, X: np.ndarray, q: int) -> np.ndarray:
    """Weights with sum 1 that apply the affine map of each row's patch to the row.

    With the patch's tangent coordinates Theta = U S and places Y the map of least squares is
    y = mean(Y) + (Theta^+ Y)^T V^T (x - mean), that is w = 1/k + U S^-2 U^T (Z (x - mean)).
    """
    Z, unit = points.differences(ids, X)  # x is the origin
    mean = Z.mean(axis=1, keepdims=True)
    found = tangents(points, ids, q)
    inverse = np.zeros_like(found.lengths)
    np.divide(unit[:, None], found.lengths, out=inverse, where=found.lengths > 0)
    if not inverse.max(initial=0.0) < FARTHEST:
        raise DataError(
            f"a new row is {inverse.max():.0e} times as far away as its nearest fitted rows are "
            "from each other, too far for their tangent plane; leave it out."
        )
    along = -(Z - mean) @ mean.transpose(0, 2, 1)
    scores = (found.bases.transpose(0, 2, 1) @ along) * (inverse**2)[:, :, None]
    return 1 / Z.shape[1] + (found.bases @ scores)[:, :, 0]


def hessian_estimators(bases: np.ndarray) -> np.ndarray:
    """H (n, k, q(q+1)/2): all products U_a U_b, a <= b, orthonormalized against [1, U].

    Gram-Schmidt on [1, U, products], each step twice; columns that depend on earlier ones, in
    patches of too few dimensions or directions, become 0.
    """
    n, k, q = bases.shape
    a, b = np.triu_indices(q)
    products = bases[:, :, a] * bases[:, :, b]
    columns = np.concatenate([np.ones((n, k, 1)), bases, products], axis=2)
    Q = np.zeros_like(columns)
    for j in range(columns.shape[2]):
        v = columns[:, :, j : j + 1].copy()
        before = np.sqrt((v**2).sum(axis=1, keepdims=True))
        for _ in range(2):
            v -= Q[:, :, :j] @ (Q[:, :, :j].transpose(0, 2, 1) @ v)
        left = np.sqrt((v**2).sum(axis=1, keepdims=True))
        new = left > np.sqrt(NEGLIGIBLE) * before
        Q[:, :, j : j + 1] = np.where(new, v / np.where(new, left, 1.0), 0.0)
    return Q[:, :, 1 + q :]


def spectra(points: Points, ids: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, largest first, and eigenvectors of each row's C_jl = (x_j - x).(x_l - x).

    In units of the largest difference of the patch.
    """
    Z, _ = points.differences(ids, X)
    squares, V = all_eigenpairs(Z @ Z.transpose(0, 2, 1))
    return np.maximum(squares, 0.0), V


def mixtures(
    points: Points,
    X: np.ndarray,
    values: np.ndarray,
    ids: np.ndarray,
    weights: Callable[[Points, np.ndarray, np.ndarray], np.ndarray],
    threads: int,
    monitor: Monitor,
) -> np.ndarray:
    """sum_j w_j values_j for each row of X, whose nearest points are ``ids``.

    ``values`` belong to the points. A row that equals a point gets the value of that point.
    """

    def mix(part: slice) -> np.ndarray:
        near, at = ids[part], X[part]
        w = weights(points, near, at)
        mixed = (w[:, None, :] @ values[near].astype(np.float64))[:, 0].astype(values.dtype)
        equal = points.equal_point(at, near)
        mixed[equal >= 0] = values[equal[equal >= 0]]
        return mixed

    k = ids.shape[1]
    size = k * (points.width(k) + values.shape[1] + k) + X.shape[1]
    return np.concatenate(in_chunks(mix, len(X), size, threads, monitor, "places"))
