"""Two scores of each point of a t-SNE map: how far it moves, and how loosely it lies.

Liu, Ma & Zhong (2025): a point may lie elsewhere after a small change of its row (*perturbation*),
or at a place where its loss is flat in some direction, so that a group may be torn there
(*singularity*). Both look at one row while all others stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland import _native
from lowland._base.constraints import Integer, Real, Several, check_argument
from lowland._base.context import FitContext, generator
from lowland._base.errors import DataError, ParameterError
from lowland._base.monitor import Monitor
from lowland._base.threads import resolve_n_jobs
from lowland._base.validation import is_sparse
from lowland._engines.embedding import affinity
from lowland._engines.embedding.placement import FrozenMap, MapField, map_field, place_rows
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import eigenvalues
from lowland._engines.linalg.principal_axes import leading_axes
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.graph import NeighborGraph, check_fitted_rows
from lowland._engines.neighbors.search import neighbor_graph, query_fitted, stored_graph
from lowland.metrics._comparison import of_all

ALL_PAIRS = 5_000  # rows of a map up to which all are measured by default
EXACT_Z = 100_000  # rows up to which Z is summed over all pairs
SOME_ROWS = 1_000  # of larger maps
MOVED_ROWS = 2_000  # that are moved by default
AXES = 3
NEIGHBORS = 15
PAIR_BYTES = 48  # of one pair in a block
BLOCK_BYTES = 1 << 25


def singularity_score(
    model: Any, X: Any = None, *, rows: Any = None, seed: int = 0, n_jobs: int | None = None
) -> np.ndarray:
    """1 / (smallest eigenvalue of H_i), H_i the second derivatives of the loss in point i alone.

    Large where the loss is flat in some direction: the point can slide at no cost, and a small
    change of the data moves it far. Such points lie at the edges of groups that may be torn from
    one another. With u = y_i - y_j, w = 1 / (1 + |u|^2 / v), K = w^v, v the degrees of freedom
    (1 by default: K = w), e the final exaggeration and s = sum_j K w u,

        H_i = 4 e sum_j p_ij (w I - (2/v) w^2 u u^T)
              - (4/Z) sum_j (K w I - 2 (1 + 1/v) K w^2 u u^T) - (16/Z^2) s s^T.

    The sums over all points are exact, O(m n) for m rows; Z is that of the fit beyond 100 000 rows.

    Parameters
    ----------
    model : TSNE
        A fitted map.
    X : NeighborGraph, matrix of distances or None, default=None
        What the model was fitted on, if that was not a table; None: the rows that the model keeps.
    rows : int, array of row numbers or None, default=None
        How many rows to measure, drawn at random, or which. None: all of up to 5 000, else 1 000.
    seed : int, default=0
        Of the sample of rows.
    n_jobs : int or None, default=None
        Threads; the result does not depend on their number.

    Returns
    -------
    ndarray of shape (n,)
        Infinity where H_i is not positive definite: point i lies at no minimum of its loss. NaN
        for rows that are not measured.

    Notes
    -----
    The score has its meaning only where the gradient is about 0, that is, for a map that has
    converged: its descent was not stopped early. It scales with the number of rows: compare points
    of one map, not maps.

    References
    ----------
    Liu, Ma & Zhong (2025), Assessing and improving reliability of neighbor embedding methods: a
    map-continuity perspective, Nature Communications 16, arXiv:2410.16608.

    Examples
    --------
    >>> from lowland import TSNE
    >>> from lowland.datasets import iris
    >>> model = TSNE(random_state=0).fit(iris().X)
    >>> singularity_score(model).shape
    (150,)
    """
    _require_tsne(model, "singularity_score")
    threads = resolve_n_jobs(n_jobs)
    Y = np.ascontiguousarray(model.embedding_, np.float64)
    measured = _some_rows(rows, len(Y), ALL_PAIRS, SOME_ROWS, seed)
    graph = _graph(model, X, threads)
    P = affinity.joint_affinities(graph, model.perplexity, threads=threads, dtype=np.float64)
    Z = _normalization(model, Y, threads)
    H = _curvature(Y, P, measured, model._dof(), model._final_exaggeration(), Z)
    least = _smallest(H)
    with np.errstate(divide="ignore"):
        score = np.where(least > 0, 1 / least, np.inf)
    return of_all(score, measured, len(Y))


def perturbation_score(
    model: Any, *, rows: Any = None, length: float = 1.0, seed: int = 0
) -> np.ndarray:
    """How far a point moves in the map when its row is moved a little in the data.

    Each row is moved along the first three principal axes of the data, to both sides, as far as
    its 15 nearest rows differ from a row along this axis (root mean square over all rows), times
    ``length``. The moved row is placed as ``transform`` does, alone in the fixed map, but without
    the row itself as a neighbor; the largest displacement from its place in the map, divided by the
    width of the map, is the score. Points that look certain, but lie between groups, have large
    scores. Six placements per row.

    Parameters
    ----------
    model : TSNE
        A map that was fitted on a table.
    rows : int, array of row numbers or None, default=None
        How many rows to measure, drawn at random, or which. None: at most 2 000.
    length : float, default=1.0
        Length of the moves, in differences of neighbors along the axis.
    seed : int, default=0
        Of the sample of rows.

    Returns
    -------
    ndarray of shape (n,)
        Shares of the larger side of the map; NaN for rows that are not measured.

    Notes
    -----
    With the row itself among its neighbors, its old place would hold the moved row, the more the
    more columns there are. Its repulsion, one of n, remains. The work is done by as many threads as
    the ``n_jobs`` of the model allows; the result does not depend on it.

    References
    ----------
    Liu, Ma & Zhong (2025), Assessing and improving reliability of neighbor embedding methods: a
    map-continuity perspective, Nature Communications 16, arXiv:2410.16608.

    Examples
    --------
    >>> from lowland import TSNE
    >>> from lowland.datasets import iris
    >>> model = TSNE(random_state=0).fit(iris().X)
    >>> moved = perturbation_score(model)
    >>> bool((moved >= 0).all()), bool(np.median(moved) < 0.1)
    (True, True)
    """
    _require_tsne(model, "perturbation_score")
    check_argument("length", length, Real(0))
    X = model.fitted_rows_
    if X is None or "column_ranges_" in vars(model):
        kind = f"metric={model.metric!r}" if X is not None else "a graph or distances"
        raise ParameterError(
            f"perturbation_score moves rows of numbers, and this TSNE was fitted on {kind}; fit "
            "the model on a table, in Euclidean distances."
        )
    n = X.shape[0]
    measured = _some_rows(rows, n, MOVED_ROWS, MOVED_ROWS, seed)
    Y = np.asarray(model.embedding_, np.float64)
    farthest = np.zeros(len(measured))
    with model._running() as run:
        field = map_field(model.embedding_, model._dof(), run.threads)
        moves = _moves(model, float(length), run)
        for block in row_blocks(len(measured), rows_within(8 * X.shape[1], BLOCK_BYTES)):
            some = measured[block]
            base = X[some].toarray() if is_sparse(X) else X[some]
            for move in moves:
                Z = _placed(model, (base + move).astype(X.dtype), some, field, run)
                away = np.sqrt(((Z - Y[some]) ** 2).sum(axis=1))
                farthest[block] = np.maximum(farthest[block], away)
    width = float(np.ptp(Y, axis=0).max())
    return of_all(farthest / width if width > 0 else 0.0 * farthest, measured, n)


# --- the loss around a point ------------------------------------------------------------------


def _nearest(model: Any, k: int, threads: int) -> NeighborGraph:
    """The nearest neighbors of the fitted rows."""
    metric = {"metric": model.metric, "metric_params": model.metric_params}
    rng = np.random.default_rng(0)
    return neighbor_graph(model.fitted_rows_, k, threads=threads, rng=rng, **metric)


def _graph(model: Any, X: Any, threads: int) -> NeighborGraph:
    """The neighbors that the affinities of the model were made of."""
    k = int(model.n_neighbors_)
    if model.fitted_rows_ is not None:
        if X is not None:
            raise ParameterError("X: the model keeps the rows it was fitted on; leave X out.")
        graph = _nearest(model, k, threads)
    elif X is None:
        raise ParameterError(
            "X=None: this TSNE was fitted on a graph or on distances, which it does not keep; "
            "give them as X."
        )
    elif isinstance(X, NeighborGraph):
        graph = X
        check_fitted_rows(graph, "singularity_score")
    else:
        X = model._check_training_rows(X)
        graph = stored_graph(X, k) if is_sparse(X) else neighbor_graph(X, k, metric="precomputed")
    if len(graph) != len(model.embedding_):
        raise DataError(
            f"X has {len(graph)} rows, but the map has {len(model.embedding_)}; give what the "
            "model was fitted on."
        )
    return graph.in_distances()


def _normalization(model: Any, Y: np.ndarray, threads: int) -> float:
    """Z, the sum of the similarities of all pairs; of very many points as the fit has found it."""
    if len(Y) > EXACT_Z:
        return float(model.mean_potential_) * len(Y)
    potential, forces = np.empty(len(Y)), np.empty_like(Y)
    none = np.empty(0, Y.dtype)
    _native.repel_pairs(Y, False, model._dof(), none, potential, forces, threads)
    return float(potential.sum())


def _curvature(
    Y: np.ndarray, P: affinity.JointAffinities, rows: np.ndarray, dof: float, pull: float, Z: float
) -> np.ndarray:
    """H_i of some points, (m, d, d)."""
    n, d = Y.shape
    Z = max(Z, float(np.finfo(np.float64).tiny))  # 0 in a map whose points are all too far apart
    H = np.empty((len(rows), d, d))
    for block in row_blocks(len(rows), rows_within(PAIR_BYTES * n, BLOCK_BYTES)):
        H[block] = _repelling(Y, rows[block], dof, Z)
    for place, i in enumerate(rows):
        edges = slice(P.indptr[i], P.indptr[i + 1])
        U = Y[i] - Y[P.indices[edges]]
        w, p = 1 / (1 + (U**2).sum(axis=1) / dof), P.weights[edges]
        outer = np.einsum("j,ja,jb->ab", (2 / dof) * p * w**2, U, U)
        H[place] += 4 * pull * ((p * w).sum() * np.eye(d) - outer)
    return H


def _repelling(Y: np.ndarray, rows: np.ndarray, dof: float, Z: float) -> np.ndarray:
    """The terms of H_i with 1/Z, of some points; sums over all others."""
    d = Y.shape[1]
    U = [Y[rows, axis, None] - Y[None, :, axis] for axis in range(d)]
    w = 1 / (1 + sum(u**2 for u in U) / dof)
    Kw = w ** (dof + 1)
    Kw[np.arange(len(rows)), rows] = 0.0  # the point itself
    s = np.stack([(Kw * u).sum(axis=1) for u in U], axis=1)
    outer = 2 * (1 + 1 / dof) * Kw * w
    H = (-4 / Z) * Kw.sum(axis=1)[:, None, None] * np.eye(d)
    for a in range(d):
        for b in range(a + 1):
            both = (4 / Z) * (outer * U[a] * U[b]).sum(axis=1) - (16 / Z**2) * s[:, a] * s[:, b]
            H[:, a, b] += both
            if a != b:
                H[:, b, a] += both
    return H


def _smallest(H: np.ndarray) -> np.ndarray:
    """The smallest eigenvalue of each symmetric matrix; of 2 x 2 in closed form."""
    if H.shape[1] != 2:
        return eigenvalues(H)[:, -1]
    mean = (H[:, 0, 0] + H[:, 1, 1]) / 2
    return mean - np.hypot((H[:, 0, 0] - H[:, 1, 1]) / 2, H[:, 0, 1])


# --- moved rows -------------------------------------------------------------------------------


def _moves(model: Any, length: float, run: FitContext) -> list[np.ndarray]:
    """The changes of a row: along each principal axis, forth and back."""
    X = model.fitted_rows_
    n, p = X.shape
    graph = _nearest(model, min(NEIGHBORS, n - 1), run.threads)
    found = leading_axes(X, min(AXES, p, n - 1), run.threads, np.random.default_rng(0), Monitor())
    scores = products.times(X, found.mean, found.axes.T, run.threads).astype(np.float64)
    steps = []
    for axis, score in zip(found.axes, scores.T, strict=True):
        apart = score[graph.indices] - score[:, None]
        step = length * float(np.sqrt((apart**2).mean()))
        steps += [step * axis, -step * axis]
    return steps


def _placed(
    model: Any, rows: np.ndarray, own: np.ndarray, field: MapField, run: FitContext
) -> np.ndarray:
    """Places of moved rows in the map without their own old rows, whose numbers are ``own``."""
    X: Any = model.fitted_rows_
    k = min(int(model.n_neighbors_), X.shape[0] - 1)
    moved: Any = type(X)(rows) if is_sparse(X) else rows
    near = query_fitted(
        X, moved, k + 1, metric=model.metric, metric_params=model.metric_params, run=run
    ).in_distances()
    itself = near.indices == own[:, None]
    itself[~itself.any(axis=1), -1] = True  # it has moved beyond its neighbors
    ids = near.indices[~itself].reshape(len(rows), k)
    distances = near.distances[~itself].reshape(len(rows), k)
    wanted = model._perplexity_of_new_rows(k)
    p, _ = affinity.conditional_affinities(distances, wanted, threads=run.threads)
    frozen = FrozenMap(model.embedding_, model._dof(), model.mean_potential_)
    return place_rows(frozen, ids, p, run.threads, field).astype(np.float64)


# --- checks -----------------------------------------------------------------------------------


def _require_tsne(model: Any, what: str) -> None:
    from lowland.methods.embedding.tsne import TSNE  # here: methods are imported on first use

    if not isinstance(model, TSNE):
        raise ParameterError(
            f"{what} is a score of t-SNE maps, not of {type(model).__name__}; give a fitted TSNE."
        )
    model._require_fitted()


def _some_rows(rows: Any, n: int, all_up_to: int, else_: int, seed: int) -> np.ndarray:
    """The numbers of the rows to measure, ascending."""
    if rows is None:
        rows = n if n <= all_up_to else else_
    if Integer(1).allows(rows):
        m = min(int(rows), n)
        return np.arange(n) if m == n else np.sort(generator(seed).choice(n, m, replace=False))
    rows = list(rows) if isinstance(rows, range) else rows
    check_argument("rows", rows, Integer(1) | Several(Integer(0, n - 1)))
    return np.unique(rows)
