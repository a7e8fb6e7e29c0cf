"""Diffusion for PHATE: the operator on rows or landmarks, its entropy, and its potential.

P = D^-1 K is similar to the symmetric S = D^-1/2 K D^-1/2, so one symmetric eigenproblem gives the
entropies of all powers and the power P^t = D^-1/2 V L^t V^T D^1/2.

Many rows diffuse through landmarks, which are clusters C_j of rows. With the kernel summed over
clusters, K_nm = K C, a walk goes from a cluster to a row and on to a cluster:

    P_nm = D^-1 K_nm     P_mn = D_m^-1 K_nm^T     P_mm = P_mn P_nm     D = diag(K 1), D_m = C^T D C

P_mm is similar to D_m^-1/2 K_nm^T D^-1 K_nm D_m^-1/2, which has no negative eigenvalue.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from lowland._core.context import FitContext
from lowland._core.memory import require_memory
from lowland._engines.graphs.components import connected_components
from lowland._engines.grids.nearest_units import nearest_units, unit_sums
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs, largest_eigenpairs

N_AXES = 100  # eigenvectors that rows are clustered by
AXES_TOLERANCE = 0.1  # for clusters; 0.01 takes ten times as long, and the map is no better
KMEANS_STEPS = 10
T_MAX = 100  # the entropy is computed for this many powers
FLOOR = 1e-7  # added to probabilities, which have no logarithm at 0
NEGLIGIBLE = 1e-15  # powers of eigenvalues that have no part in P^t
CERTAIN = 1e-13  # eigenvalues this near to 1 are 1
DENSE_WORK = 1e9  # products of stored entries, from which on a dense product is faster


class Diffusion(NamedTuple):
    """The operator P = D^-1/2 S D^1/2 on m points, the roots of D, and the eigenpairs of S.

    The eigenvalues are largest first.
    """

    S: np.ndarray
    roots: np.ndarray
    values: np.ndarray
    vectors: np.ndarray


def diffusion(
    K: scipy.sparse.csr_matrix, landmark: np.ndarray | None, run: FitContext
) -> Diffusion:
    """The operator on the rows of the kernel K, or on landmarks (the cluster of each row)."""
    degrees = _row_sums(K)
    if landmark is None:
        scale = 1 / np.sqrt(degrees)
        S = (scipy.sparse.diags(scale) @ K @ scipy.sparse.diags(scale)).toarray()
        return _solved(S, np.sqrt(degrees), run)
    m = int(landmark.max()) + 1
    C = _indicator(landmark, m)
    masses = np.bincount(landmark, degrees, minlength=m)
    B = scipy.sparse.diags(1 / np.sqrt(degrees)) @ (K @ C) @ scipy.sparse.diags(1 / np.sqrt(masses))
    return _solved(_gram_of_columns(B.tocsr(), run), np.sqrt(masses), run)


def _solved(S: np.ndarray, roots: np.ndarray, run: FitContext) -> Diffusion:
    with run.monitor.phase("spectrum of the diffusion"):
        pairs = all_eigenpairs(S)
    return Diffusion(S, roots, pairs.values, pairs.vectors)


def _gram_of_columns(B: scipy.sparse.csr_matrix, run: FitContext) -> np.ndarray:
    """B^T B; of a matrix with many entries by the dense kernel."""
    if float((np.diff(B.indptr).astype(np.float64) ** 2).sum()) < DENSE_WORK:
        return (B.T @ B).toarray()
    require_memory(
        8 * B.shape[0] * B.shape[1],
        task=f"the kernel of {B.shape[0]} rows and {B.shape[1]} landmarks",
        alternative="take fewer n_landmarks, or a larger decay",
    )
    turned = np.ascontiguousarray(B.toarray().T)
    return products.sample_gram(turned, np.zeros(turned.shape[1]), run.threads)


def _row_sums(K: scipy.sparse.csr_matrix) -> np.ndarray:
    return np.asarray(K.sum(axis=1), np.float64).ravel()


def _indicator(landmark: np.ndarray, m: int) -> scipy.sparse.csr_matrix:
    n = len(landmark)
    return scipy.sparse.csr_matrix((np.ones(n), landmark, np.arange(n + 1)), shape=(n, m))


# --- landmarks --------------------------------------------------------------------------------


def landmarks_of(K: scipy.sparse.csr_matrix, m: int, run: FitContext) -> np.ndarray:
    """The landmark of each row: about m clusters of the leading diffusion coordinates.

    A cluster is split where it joins parts of the graph that are not connected, unless there are
    so many parts that this makes more than 2 m clusters.
    """
    degrees = _row_sums(K)
    scale = scipy.sparse.diags(1 / np.sqrt(degrees))
    S = products.matrix_times((scale @ K @ scale).tocsr(), run.threads)
    n, q = K.shape[0], min(N_AXES, K.shape[0] - 1)
    axes = largest_eigenpairs(
        S, q, order=n, tol=AXES_TOLERANCE, rng=run.rng, monitor=run.monitor, rough=True
    )
    Z = axes.vectors * axes.values / np.sqrt(degrees)[:, None]
    cluster = _clusters(np.ascontiguousarray(Z, np.float32), m, run)
    n_parts, part = connected_components(K)
    split = np.unique(cluster * n_parts + part, return_inverse=True)[1]
    return split if split.max() < 2 * m else cluster


def _clusters(Z: np.ndarray, m: int, run: FitContext) -> np.ndarray:
    """Lloyd's k-means from random rows; a cluster that loses its rows is left out."""
    centers = Z[np.sort(run.rng.choice(len(Z), m, replace=False))]
    with run.monitor.phase("landmarks", KMEANS_STEPS) as phase:
        for _ in range(KMEANS_STEPS):
            nearest = nearest_units(Z, centers, run.threads)[:, 0]
            found = unit_sums(Z, nearest, len(centers), run.threads)
            kept = found.counts > 0
            moved = (found.sums[kept] / found.counts[kept, None]).astype(Z.dtype)
            still = kept.all() and np.array_equal(moved, centers)
            centers = moved
            phase.advance()
            if still:
                break
    nearest = nearest_units(Z, centers, run.threads)[:, 0]
    return np.unique(nearest, return_inverse=True)[1].astype(np.int64)


# --- how long to diffuse ----------------------------------------------------------------------


def entropies_of(values: np.ndarray) -> np.ndarray:
    """Von Neumann entropies of P^t, t = 1 .. T_MAX: -sum h log h, h = |lambda|^t / its sum.

    Eigenvalues of a few rows may be negative; their absolute values are the singular values of S.
    """
    with np.errstate(under="ignore", divide="ignore"):
        logs = np.log(np.abs(values) / np.abs(values).max())
        found = np.empty(T_MAX)
        for t in range(1, T_MAX + 1):
            shares = np.exp(t * logs)
            shares /= shares.sum()
            some = shares[shares > 0]
            found[t - 1] = max(0.0, -float((some * np.log(some)).sum()))
    return found


def knee(curve: np.ndarray) -> int:
    """The number of the entry, from 1, at which two straight lines fit a curve best.

    One line fits the entries up to the knee and one those from it on; the knee minimizes the sum
    of absolute errors of both.
    """
    errors = [
        _line_error(curve[: split + 1]) + _line_error(curve[split:])
        for split in range(1, len(curve) - 1)
    ]
    return int(np.argmin(errors)) + 2


def _line_error(y: np.ndarray) -> float:
    """Sum of absolute errors of the least-squares line through evenly spaced values."""
    x = np.arange(len(y)) - (len(y) - 1) / 2
    deviation = y - y.mean()
    slope = (x * deviation).sum() / (x * x).sum()
    return float(np.abs(deviation - slope * x).sum())


# --- potential --------------------------------------------------------------------------------


def potential(P: Diffusion, t: int, gamma: float, run: FitContext) -> np.ndarray:
    """U of P^t: -log(P^t + 1e-7) for gamma = 1, else 2 / (1 - gamma) (P^t)^((1 - gamma) / 2)."""
    if gamma == 1:
        U = _power_by_pairs(P, t, run)
        U += FLOOR
        np.log(U, out=U)
        return np.negative(U, out=U)
    U = _power_by_squares(P, t, run)
    U **= (1 - gamma) / 2
    U *= 2 / (1 - gamma)
    return U


def _power_by_pairs(P: Diffusion, t: int, run: FitContext) -> np.ndarray:
    """P^t with errors of 1e-15: one product."""
    # An eigenvalue of 1 has a rounding error, which a power of some 1e16 would turn into 0 or more.
    values = np.where(P.values > 1 - CERTAIN, 1.0, P.values)
    with np.errstate(under="ignore"):
        powers = values**t
    kept = np.abs(powers) > NEGLIGIBLE * np.abs(powers).max()
    left = P.vectors[:, kept] * powers[kept] / P.roots[:, None]
    U = _product(left, (P.vectors[:, kept] * P.roots[:, None]).T, run)
    return np.clip(U, 0.0, 1.0, out=U)  # rounding


def _power_by_squares(P: Diffusion, t: int, run: FitContext) -> np.ndarray:
    """P^t with small relative errors of every entry, because no term of a sum is negative.

    A power below 1 makes an error of 1e-15 in place of a zero large.
    """
    square = P.S * (P.roots / P.roots[:, None])
    found = None
    while t > 0:
        if t % 2:
            found = square if found is None else _product(found, square, run)
        t //= 2
        if t:
            square = _product(square, square, run)
    assert found is not None
    return found


def _product(A: np.ndarray, B: np.ndarray, run: FitContext) -> np.ndarray:
    A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
    return products.times(A, np.zeros(len(B)), B, run.threads)
