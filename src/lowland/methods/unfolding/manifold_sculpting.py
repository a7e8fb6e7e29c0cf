"""Manifold sculpting (Gashler, Ventura & Martinez 2007)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._base.base import Reducer
from lowland._base.constraints import Array, Function, Integer, Null, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError
from lowland._base.memory import require_memory
from lowland._base.models.checks import Starts, above, index_of, some_of
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import dense_if_small, is_sparse
from lowland._engines.graphs.components import connected_components
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.linalg.eigen import fix_signs, rank_cutoff, thin_svd
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland._engines.linalg.procrustes import align
from lowland._engines.linalg.products import row_blocks, rows_within, times
from lowland._engines.neighbors.duplicates import EqualRows, equal_rows
from lowland._engines.neighbors.search import (
    neighbor_graph,
    neighbor_graph_cost,
    neighbor_query,
    query_fitted,
)
from lowland._engines.patches.patch_weights import PatchRows, barycentric, mixtures
from lowland._engines.stress.classical_scaling import of_rows
from lowland.methods._bases.graphs import map_dtype

# The passes of manifold sculpting, and the places of new rows.


# Chosen by measurement on rolls and s curves of 300 to 5 000 rows.
ADJUSTED = 1e4  # weight of neighbors adjusted before; 10 in the paper
WIDTH = 2.0  # a distance error is divided by so many mean neighbor distances, as in the paper
STEP = 0.15  # longest step, in mean neighbor distances
SHRINK, GROW = 0.87, 0.91  # the step shrinks if there are fewer successful sweeps than rows
SWEEPS = 30  # most sweeps over the axes for one point in one pass
NOTHING = 0.01  # scale below which the axes are set to 0
HELD, COOLED = 150, 150  # after that: passes with the full weight, and with a falling one
SETTLED, GAIN = 10, 0.01  # passes of weight 1 go on while so many lower the error by that share
GROWTHS = 100  # most times that the map grows in one pass
GOOD = 1e-4  # mean error that needs no further start and no further pass
NEAREST = 4  # neighbors of a new row at whose places a search starts
LEAST_STEP = 1e-9  # of new rows, in mean neighbor distances


class Relations(NamedTuple):
    """What points keep: distances to their neighbors and angles at them.

    Row i has the neighbors ``ends[starts[i]:starts[i + 1]]``, and at each of them the angle to its
    partner, -1 where there is none. ``sums`` are sums over the axes that are scaled away,
    ``kept`` the distances and angles, and ``width`` is what an error of a distance is divided by.
    """

    starts: np.ndarray
    ends: np.ndarray
    partner: np.ndarray
    sums: np.ndarray
    kept: np.ndarray
    width: float

    def terms(
        self, Z: np.ndarray, Y: np.ndarray, scale: float, threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distances and angles of points Z with neighbors in Y, (2, n_edges), and their errors."""
        terms, errors = np.empty(self.kept.shape), np.empty(len(Z))
        _native.sculpt_terms(*self, scale, Z, Y, terms, errors, threads)
        return terms, errors

    def parts(self) -> np.ndarray:
        """The number of the connected part of the graph that each row is in."""
        n = len(self.starts) - 1
        edges = scipy.sparse.csr_matrix((np.ones(len(self.ends)), self.ends, self.starts), (n, n))
        return connected_components(edges)[1]

    def roles(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """For each row the angles that it is the partner in, and those that it is the corner of."""
        rows = np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))
        known = np.flatnonzero(self.partner >= 0)
        return *_by_row(self.partner, known, rows), *_by_row(self.ends, known, rows), rows


class Sculpted(NamedTuple):
    """The map, its local errors, the mean error at the start and after each pass, the scale."""

    Y: np.ndarray
    errors: np.ndarray
    losses: np.ndarray
    scale: float


def _by_row(key: np.ndarray, known: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of edges in the order of their keys, and where those of each row start."""
    n = int(rows[-1]) + 1
    counts = np.bincount(key[known], minlength=n)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return starts, known[np.argsort(key[known], kind="stable")].astype(np.int64)


def relations_of(C: np.ndarray, graph: scipy.sparse.csr_matrix, q: int, threads: int) -> Relations:
    """The relations of points with coordinates C, whose axes from q on are to be scaled away."""
    starts, ends = graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
    partner, sums = np.empty(len(ends), np.int32), np.empty((3, len(ends)))
    _native.angle_partners(C, starts, ends, C, starts, ends, True, q, partner, sums, threads)
    nothing = Relations(starts, ends, partner, sums, np.zeros((2, len(ends))), 1.0)
    Y = np.ascontiguousarray(C[:, :q])
    kept = nothing.terms(Y, Y, 1.0, threads)[0]
    return nothing._replace(kept=kept, width=WIDTH * float(kept[0].mean()))


def sculpt(
    keep: Relations,
    Y: np.ndarray,
    fixed: np.ndarray,
    scaling: float,
    done: int,
    max_iter: int,
    run: FitContext,
    scale: float = 1.0,
    ended: int = 0,
) -> Sculpted:
    """Scale the axes away and adjust the map Y after each time; rows ``fixed`` stay."""
    n, unit = len(Y), keep.width / WIDTH
    labels = keep.parts()
    parts = [np.flatnonzero(labels == part) for part in range(labels.max() + 1)]
    roles, held, local = keep.roles(), fixed.astype(np.uint8), np.empty((2, n))
    Y, step = Y.copy(), STEP * unit
    losses = [float(keep.terms(Y, Y, scale, run.threads)[1].mean())]
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for number in range(done + 1, max_iter + 1):
        scale = scale * scaling if scale * scaling >= NOTHING else 0.0
        ended += scale == 0
        if not fixed.any():
            Y = _grown(keep, Y, labels, scale, max(scaling, 0.9), run.threads)
        seeds = np.array([part[run.rng.integers(len(part))] for part in parts], np.int32)
        steps = step * run.rng.uniform(0.6, 1.0, n)
        # adjusted neighbors count less and less after the axes have vanished
        weight = float(ADJUSTED ** (1 - min(max(ended - HELD, 0) / COOLED, 1.0)))
        moves = _native.sculpt_pass(
            *keep, scale, *roles, seeds, held, steps, weight, SWEEPS, Y, local
        )
        step = step * SHRINK if moves < n else min(step / GROW, STEP * unit)
        errors = keep.terms(Y, Y, scale, run.threads)[1]
        losses.append(float(errors.mean()))
        if scale == 0 and (best is None or losses[-1] < best[0]):
            best = losses[-1], Y.copy(), errors
        stopped = run.monitor.iteration(number, Y, losses[-1], total=max_iter)
        if stopped or _is_settled(losses, ended):
            break
    if best is not None:
        return Sculpted(best[1], best[2], np.array(losses), 0.0)
    return Sculpted(Y, keep.terms(Y, Y, 0.0, run.threads)[1], np.array(losses), scale)


def _is_settled(losses: list[float], ended: int) -> bool:
    """Whether passes of weight 1 no longer lower the mean error, or it is good enough."""
    since = ended - HELD - COOLED
    slow = since >= SETTLED and losses[-1] >= (1 - GAIN) * losses[-1 - SETTLED]
    return slow or (since >= SETTLED and losses[-1] <= GOOD)


def _grown(
    keep: Relations, Y: np.ndarray, labels: np.ndarray, scale: float, factor: float, threads: int
) -> np.ndarray:
    """Each part divided by ``factor`` until the mean neighbor distance is what it was."""
    for _ in range(GROWTHS):
        if keep.terms(Y, Y, scale, threads)[0][0].mean() >= keep.width / WIDTH:
            break
        centers = _centers(Y, labels)[labels]
        Y = centers + (Y - centers) / factor
    return Y


def _centers(Y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The mean of each part, (n_parts, q)."""
    sums = [np.bincount(labels, weights=column) for column in Y.T]
    return np.column_stack(sums) / np.bincount(labels)[:, None]


def arranged(Y: np.ndarray, start: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """The map turned to its principal axes, with the parts at the centers of the start.

    The centers are drawn apart by the factor that the parts have grown by.
    """
    before, after = _centers(start, parts), _centers(Y, parts)
    inside = Y - after[parts]
    size = np.linalg.norm(start - before[parts])
    growth = max(1.0, float(np.linalg.norm(inside) / size)) if size > 0 else 1.0
    Z = inside + growth * before[parts]
    Z = Z - Z.mean(axis=0)
    with limit_blas(1):
        return fix_signs(Z @ thin_svd(Z).right.T)


# --- new rows ---------------------------------------------------------------------------------


def searched(
    Z: np.ndarray,
    ids: np.ndarray,
    there: tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray], float],
    run: FitContext,
) -> np.ndarray:
    """Places of least error of rows Z with the neighbors ``ids`` (m, k).

    ``there`` are the coordinates and places of the fitted rows, their neighbors, and the width.
    """
    (C, Y, lists, width), (m, k), threads = there, ids.shape, run.threads
    starts, ends = np.arange(0, m * k + 1, k, dtype=np.int64), ids.astype(np.int32).ravel()
    partner, sums = np.empty(m * k, np.int32), np.empty((3, m * k))
    _native.angle_partners(Z, starts, ends, C, *lists, False, 0, partner, sums, threads)
    gap, arm, product = sums
    sides = np.sqrt(gap) * np.sqrt(arm)
    known = (partner >= 0) & (sides > 0)
    cosine = np.divide(product, sides, out=np.ones(m * k), where=known)
    kept = np.stack([np.sqrt(gap), np.arccos(np.clip(cosine, -1.0, 1.0))])
    keep = Relations(starts, ends, partner, np.zeros((3, m * k)), kept, width)
    weights = partial(barycentric, reg=1e-3)
    middle = mixtures(PatchRows(C), Z, Y, ids, weights, threads, run.monitor)
    tried = np.concatenate([middle[:, None], Y[ids[:, :NEAREST]]], axis=1)  # (m, s, q)
    found, errors = tried.reshape(-1, Y.shape[1]).copy(), np.empty(tried.shape[:2])
    unit = width / WIDTH
    steps = np.maximum(kept[0].reshape(m, -1).max(axis=1), unit)
    _native.sculpt_places(*keep, Y, steps, LEAST_STEP * unit, found, errors, threads)
    best = np.where(np.isnan(errors), np.inf, errors).argmin(axis=1)
    return found.reshape(tried.shape)[np.arange(m), best]


AXES, AXES_PER_COMPONENT = 100, 6  # principal axes that are kept at most
PART = 1000  # rows that are sculpted first, if there are more
LARGEST = 1e300  # width of an error: a number, whatever a model file claims
FARTHEST = 1e30  # distance of a new row, in mean neighbor distances


class ManifoldSculpting(Reducer):
    """Scale extra axes away: eps_i = sum_j w_j [(d - d0)^2 / (2 dm)^2 + (theta - theta0)^2 / pi^2].

    Rows are turned to their principal axes. In each pass all axes but the first q shrink a little,
    and each point moves along the first q until the distances d to its neighbors j, and the angles
    theta at them to a neighbor on their far side, are again what they were; dm is the mean neighbor
    distance. Use it for bent and rolled sheets, with holes or boundaries of any shape, since no
    path across the sheet is needed, and where the places of some rows are known. Not for closed
    surfaces and clusters. It depends on the seed: compare several ``loss_``, or raise ``n_init``.
    Cost: O(n k (k p + q)) for each of some 600 passes of a run, on one thread.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number k of neighbors. Two rows keep their distance if either is a neighbor of the other.
    scaling : float, default=0.98
        Factor of the extra axes in each pass, between 0 and 1. Nearer to 1 is slower, and follows
        strong curvature better.
    fixed : array of shape (n_samples, n_components) or None, default=None
        Known places of some rows, in the unit of the data, with NaN in the other rows. Known rows
        stay at their places, and the map is not centered.
    n_init : int, default=2
        Number of runs with other random numbers; that with the least ``loss_`` is kept. A run
        that ends with a mean error of 1e-4 or less is the last.
    max_iter : int, default=3000
        Maximum number of passes of all runs together. If the axes have not vanished by then, they
        are dropped as they are. 0 gives the principal components.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Map of the fitted rows, in the unit of the data, centered and turned to its principal axes
        unless some rows are fixed.
    local_errors_ : ndarray of shape (n_samples,)
        Error eps of each row in the map, with weights 1.
    loss_ : float
        Mean local error of the map.
    loss_history_ : ndarray of shape (n_steps,)
        Mean local error at the start and after each pass of all runs, with the axes as far as they
        are left.
    scale_ : float
        Factor of the extra axes at the end; 0 unless ``max_iter`` came first.
    mean_neighbor_distance_ : float
        Mean distance of neighbors in the data.
    n_connected_components_ : int
        Connected components of the neighbor graph. Each is sculpted by itself. Their centers are
        where they are in the principal components, farther apart if the components have grown.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows.
    components_ : ndarray of shape (n_axes, n_features)
        Principal axes that were kept, in rows.
    distinct_ : ndarray of shape (n_distinct,)
        Indices of the rows that make the map: the first of each group of equal rows.
    coordinates_ : ndarray of shape (n_distinct, n_axes)
        Those rows along the principal axes; new rows are compared with them.
    edge_starts_ : ndarray of shape (n_distinct + 1,)
        Where the neighbors of each distinct row begin in ``edge_ends_``.
    edge_ends_ : ndarray of shape (n_edges,)
        Neighbors, by their numbers among the distinct rows.

    Notes
    -----
    Distances between rows are not accepted: what is scaled are axes of the data space. For given
    distances, sculpt the coordinates of ``ClassicalMDS(30)``. Of wide data the first
    max(100, 6 q) principal axes are kept. Data in a q-plane have no axis to be scaled, and the map
    is their principal components.

    Each pass begins at a random row, which stays, and goes on breadth-first; a point is adjusted to
    neighbors that were adjusted before it. This order makes it sequential, and so the same for any
    ``n_jobs``. Deviations from the paper, each chosen by measurement: an angle counts only if it
    has become sharper, as in the authors' program. A point that moves changes angles that belong
    to others, as their corner or as the far neighbor. With the paper's errors, which leave
    these out, passes amplify small errors: from an exact map with a little noise they lead
    away. Here a point counts all terms that it has a part in, and a move is accepted only if their
    sum falls. Before it climbs, a point tries the place where its adjusted neighbors expect it, the
    mean of the straight continuations. Adjusted neighbors weigh 10^4 instead of 10 while the
    axes shrink, which carries a change across the whole sheet in one pass. When the axes have
    vanished, 150 passes keep that weight, and in 150 more it falls to 1. Passes of weight 1, in
    which the mean error cannot rise, end the fit. The best map on the way is kept. The paper
    scales by 0.99 or 0.999; with these passes 0.98 was as good.

    Beyond 1000 rows, 1000 random rows are sculpted first, which the callback sees; the others are
    placed like new rows, and all settle in passes of falling weight. With 5000 rows at once, s
    curves stayed crumpled. With ``fixed`` rows all are sculpted at once.

    A new row is placed where its own error is least, among descents from its barycentric place and
    from its nearest neighbors; the fitted rows stay.

    References
    ----------
    Gashler, Ventura & Martinez (2007), Iterative non-linear dimensionality reduction with manifold
    sculpting, NIPS 20; Gashler, Ventura & Martinez (2011), Manifold learning by graduated
    optimization, IEEE Trans. Systems, Man and Cybernetics B 41, 1458-1470.

    Examples
    --------
    >>> from lowland.datasets import s_curve
    >>> X = s_curve(300, random_state=0).X
    >>> ManifoldSculpting(random_state=0).fit_transform(X).shape
    (300, 2)
    """

    n_neighbors: int = param(Integer(1), default=10)
    scaling: float = param(Real(0, 1), default=0.98)
    fixed: Any = param(Null() | Array(), default=None)
    n_init: int = param(Integer(1), default=2)
    max_iter: int = param(Integer(0), default=3000)
    callback: Callable[..., Any] | None = param(Null() | Function(), default=None)

    embedding_: np.ndarray = fitted("n_samples", "n_components")
    local_errors_: np.ndarray = fitted("n_samples")
    loss_: float = fitted()
    loss_history_: np.ndarray = fitted("n_steps")
    scale_: float = fitted()
    mean_neighbor_distance_: float = fitted(meaning=above(0))
    n_iter_: int = fitted(type=int)
    n_connected_components_: int = fitted(type=int)
    mean_: np.ndarray = fitted("n_features")
    components_: np.ndarray = fitted("n_axes", "n_features")
    distinct_: np.ndarray = fitted("n_distinct", type=int, meaning=some_of("n_samples"))
    coordinates_: np.ndarray = fitted("n_distinct", "n_axes")
    edge_starts_: np.ndarray = fitted("n_distinct + 1", type=int, meaning=Starts("n_edges"))
    edge_ends_: np.ndarray = fitted(
        "n_edges", type=int, may_be_empty=True, meaning=index_of("n_distinct")
    )

    card = Card(
        keeps="distances to neighbors, and straight lines through them",
        use="to flatten bent and rolled sheets, also with holes; if the places of some rows are "
        "known",
        avoid="for clusters, closed surfaces, and where the result must not depend on a seed",
        cost="O(n k^2 p) time once and O(n k q) in each of 600 passes or more, O(n (k + p)) memory",
    )
    reference = "Gashler, Ventura & Martinez (2007)"
    aliases = ("sculpting",)
    accepts_sparse = True
    reading = Reading(
        axes="The axes are near the first principal axes, bent as the sheet was flattened.",
        distances="Short distances are those of the data. Long ones are lengths along the "
        "flattened sheet, as far as the local errors are small.",
        gaps="A gap separates rows that are not neighbors, or it is a tear. Look at the local "
        "errors along it, and compare another seed.",
        sizes="The size of a group is its size along the sheet.",
        scale="The axes have the unit of the columns.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        d = min(n, p, AXES)
        setup = principal_axes_cost(n, p, d) + neighbor_graph_cost(n, d, 10)
        passes = 2.5e-3 * min(n, PART) + 1.3e-3 * max(0, n - PART)
        return Estimate(setup.seconds + 0.02 + passes, setup.n_bytes + n * (8 * d + 2000))

    def _check_training_rows(self, X: Any) -> Any:
        return dense_if_small(super()._check_training_rows(X))

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, q = X.shape[0], int(self.n_components)
        self._check_not_beyond_rows(n)
        C = self._turned(X, run)
        equal = equal_rows(C, run.threads) or EqualRows(np.arange(n), np.arange(n))
        self.distinct_ = equal.first
        self.coordinates_ = C = C[equal.first]
        places_, fixed = self._given_places(n, equal)
        graph = self._graph(C, run)
        self.n_connected_components_ = connected_components(graph)[0]
        self.edge_starts_ = graph.indptr.astype(np.int64)
        self.edge_ends_ = graph.indices.astype(np.int32)
        Y = np.ascontiguousarray(C[:, :q])
        if fixed.any():
            found = align(places_[fixed], Y[fixed], scaling=False)
            Y = np.einsum("ij,jk->ik", Y, found.rotation) + found.translation
            Y[fixed] = places_[fixed]
        losses, errors, self.scale_ = np.zeros(1), np.zeros(len(Y)), 0.0
        self.mean_neighbor_distance_ = float(graph.data.mean()) if graph.nnz else 1.0
        if graph.nnz and (fixed.any() or C[:, q:].any()):
            keep = relations_of(C, graph, q, run.threads)
            self.mean_neighbor_distance_ = float(keep.kept[0].mean())
            whole, start = len(C) <= PART or fixed.any(), Y
            Y, errors, losses, self.scale_ = (
                self._sculpted(keep, Y, fixed, run) if whole else self._in_two(keep, C, run)
            )
            if not fixed.any() and len(losses) > 1:
                Y = arranged(Y, start, keep.parts())
        self.n_iter_, self.loss_history_ = len(losses) - 1, losses
        self.local_errors_ = errors[equal.group]
        self.loss_ = float(self.local_errors_.mean())
        self.embedding_ = Y[equal.group].astype(map_dtype(X))
        return self.embedding_.copy()

    def _sculpted(
        self, keep: Relations, Y: np.ndarray, fixed: np.ndarray, run: FitContext
    ) -> Sculpted:
        """The best of several starts; a good map, or a stop, needs no further one."""
        scaling, most = float(self.scaling), int(self.max_iter)
        best = sculpt(keep, Y, fixed, scaling, 0, most, run)
        for _ in range(int(self.n_init) - 1):
            if best.errors.mean() <= GOOD or run.monitor.stopped or len(best.losses) > most:
                break
            found = sculpt(keep, Y, fixed, scaling, len(best.losses) - 1, most, run)
            losses = np.concatenate([best.losses, found.losses[1:]])
            better = found if found.errors.mean() < best.errors.mean() else best
            best = better._replace(losses=losses)
        return best

    def _in_two(self, keep: Relations, C: np.ndarray, run: FitContext) -> Sculpted:
        """A part of the rows is sculpted, the others are placed like new rows, and all settle."""
        q = int(self.n_components)
        some = np.sort(run.rng.choice(len(C), PART, replace=False))
        part, rest = C[some], np.setdiff1d(np.arange(len(C)), some)
        graph = self._graph(part, run)
        relations = relations_of(part, graph, q, run.threads)
        free = np.zeros(PART, bool)
        first = self._sculpted(relations, np.ascontiguousarray(part[:, :q]), free, run)
        k = min(int(self.n_neighbors), PART)
        near = neighbor_query(part, C[rest], k, threads=run.threads, monitor=run.monitor)
        Y, width = np.empty((len(C), q)), relations.width
        Y[some] = first.Y
        lists = relations.starts, relations.ends
        Y[rest] = searched(C[rest], near.indices, (part, first.Y, lists, width), run)
        # passes of falling weight without the extra axes
        passes, free = len(first.losses) - 1, np.zeros(len(Y), bool)
        ended, most = HELD + COOLED // 2, int(self.max_iter)
        last = sculpt(keep, Y, free, 0.5, passes, most, run, scale=0.0, ended=ended)
        losses = np.concatenate([first.losses, last.losses[1:]])
        return last._replace(losses=losses, scale=first.scale)

    def _turned(self, X: Any, run: FitContext) -> np.ndarray:
        """Coordinates along the principal axes, at least q; axes of mere rounding are 0."""
        (n, p), q = X.shape, int(self.n_components)
        d = max(q, min(n, p, max(AXES, AXES_PER_COMPONENT * q)))
        require_memory(
            8 * (2 * n * d + n * 30 * min(n, int(self.n_neighbors)) + d * p),
            task=f"ManifoldSculpting of {n} rows",
            alternative="fewer rows or fewer neighbors",
        )
        found = of_rows(X, d, run)
        cutoff = rank_cutoff(max(n, p), map_dtype(X)) * max(float(found.eigenvalues[0]), 0.0)
        real = found.eigenvalues > cutoff
        assert found.axes is not None
        self.mean_ = np.asarray(found.mean, np.float64)
        self.components_ = np.where(real[:, None], found.axes, 0.0)
        return self._along_axes(X, run)

    def _along_axes(self, X: Any, run: FitContext) -> np.ndarray:
        """Rows along the principal axes: the same bytes for sparse rows and for dense ones."""
        C = np.empty((X.shape[0], len(self.components_)))
        for rows in row_blocks(len(C), rows_within(8 * X.shape[1])):
            block = X[rows].toarray() if is_sparse(X) else X[rows]
            C[rows] = times(block, self.mean_, self.components_.T, run.threads)
        return C + 0.0

    def _graph(self, C: np.ndarray, run: FitContext) -> Any:
        """Distances of neighbors among distinct rows, in both directions."""
        k = min(int(self.n_neighbors), len(C) - 1)
        if k == 0:
            import scipy.sparse

            return scipy.sparse.csr_matrix((1, 1))
        shared: dict[str, Any] = {"threads": run.threads, "monitor": run.monitor}
        return symmetrize(neighbor_graph(C, k, rng=run.rng, **shared))

    def _given_places(self, n: int, equal: EqualRows) -> tuple[np.ndarray, np.ndarray]:
        """Given places of the distinct rows, and which rows have one."""
        q = int(self.n_components)
        if self.fixed is None:
            return np.zeros((len(equal.first), q)), np.zeros(len(equal.first), bool)
        given = np.array(self.fixed, dtype=np.float64)
        if given.shape != (n, q):
            raise DataError(
                f"ManifoldSculpting: fixed has shape {given.shape}, but the map is {n} rows x {q} "
                "columns; give NaN for rows whose places are not known."
            )
        known = ~np.isnan(given)
        bad = (known.all(axis=1) != known.any(axis=1)) | np.isinf(given).any(axis=1)
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"ManifoldSculpting: row {row} of fixed is {given[row].tolist()}; give a whole "
                "place, or NaN in all columns."
            )
        rows = np.flatnonzero(known[:, 0])
        of_group = np.full(len(equal.first), -1)
        of_group[equal.group[rows[::-1]]] = rows[::-1]  # the first of several equal rows
        return given[of_group], of_group >= 0

    # --- new rows -----------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        C, Z = self.coordinates_.astype(np.float64, copy=False), self._along_axes(X, run)
        Y = np.ascontiguousarray(self.embedding_[self.distinct_], np.float64)
        k = min(int(self.n_neighbors), len(C))
        options = {"metric": "euclidean", "metric_params": None, "approximate": False}
        near = query_fitted(C, Z, k, run=run, **options)
        if near.distances.max(initial=0.0) > FARTHEST * self.mean_neighbor_distance_:
            raise DataError(
                f"{type(self).__name__}: X has a new row at distance {near.distances.max():.0e} "
                "from the fitted rows, which is too far to compute its place; leave it out."
            )
        equal = near.distances[:, 0] == 0
        found = np.empty((len(Z), Y.shape[1]))
        found[equal] = Y[near.indices[equal, 0]]
        new = np.flatnonzero(~equal)
        if new.size:
            lists = self.edge_starts_.astype(np.int64), self.edge_ends_.astype(np.int32)
            there = C, Y, lists, min(2 * self.mean_neighbor_distance_, LARGEST)
            found[new] = searched(Z[new], near.indices[new], there, run)
        return found.astype(map_dtype(X))
