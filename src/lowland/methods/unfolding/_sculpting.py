"""The passes of manifold sculpting, and the places of new rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from lowland import _native
from lowland._base.context import FitContext
from lowland._base.threads import limit_blas
from lowland._engines.graphs.components import connected_components
from lowland._engines.linalg.eigen import fix_signs, thin_svd
from lowland._engines.patches.patch_weights import PatchRows, barycentric, mixtures

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
    n_init: int,
    max_iter: int,
    run: FitContext,
) -> Sculpted:
    """The best of several starts; a good map, or a stop, needs no further one."""
    best: Sculpted | None = None
    for _ in range(n_init):
        done = 0 if best is None else len(best.losses) - 1
        found = _sculpt_once(keep, Y, fixed, scaling, done, max_iter, run)
        if best is None:
            best = found
        else:
            losses = np.concatenate([best.losses, found.losses[1:]])
            better = found if found.errors.mean() < best.errors.mean() else best
            best = better._replace(losses=losses)
        if best.errors.mean() <= GOOD or run.monitor.stopped or len(best.losses) > max_iter:
            break
    assert best is not None
    return best


def _sculpt_once(
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
        moves = _native.sculpt_pass(
            *keep, scale, *roles, seeds, held, steps, _weight(ended), SWEEPS, Y, local
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


def settle(keep: Relations, Y: np.ndarray, done: int, max_iter: int, run: FitContext) -> Sculpted:
    """Passes of falling weight without the extra axes, after ``done`` others."""
    free = np.zeros(len(Y), bool)
    return _sculpt_once(keep, Y, free, 0.5, done, max_iter, run, 0.0, HELD + COOLED // 2)


def _weight(ended: int) -> float:
    """The weight of adjusted neighbors, ``ended`` passes after the axes have vanished."""
    return float(ADJUSTED ** (1 - min(max(ended - HELD, 0) / COOLED, 1.0)))


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


def new_relations(
    Z: np.ndarray,
    ids: np.ndarray,
    C: np.ndarray,
    lists: tuple[np.ndarray, np.ndarray],
    width: float,
    threads: int,
) -> Relations:
    """The relations of new points Z with their neighbors ``ids`` (m, k) among the points C."""
    m, k = ids.shape
    starts, ends = np.arange(0, m * k + 1, k, dtype=np.int64), ids.astype(np.int32).ravel()
    partner, sums = np.empty(m * k, np.int32), np.empty((3, m * k))
    _native.angle_partners(Z, starts, ends, C, *lists, False, 0, partner, sums, threads)
    gap, arm, product = sums
    sides = np.sqrt(gap) * np.sqrt(arm)
    known = (partner >= 0) & (sides > 0)
    cosine = np.divide(product, sides, out=np.ones(m * k), where=known)
    kept = np.stack([np.sqrt(gap), np.arccos(np.clip(cosine, -1.0, 1.0))])
    return Relations(starts, ends, partner, np.zeros((3, m * k)), kept, width)


def places(keep: Relations, Y: np.ndarray, starts: np.ndarray, threads: int) -> np.ndarray:
    """The places of least error that descents from ``starts`` (m, s, q) lead to."""
    m, s, q = starts.shape
    found, errors = starts.reshape(m * s, q).copy(), np.empty((m, s))
    longest = keep.kept[0].reshape(m, -1).max(axis=1)
    unit = keep.width / WIDTH
    steps = np.maximum(longest, unit)
    _native.sculpt_places(*keep, Y, steps, LEAST_STEP * unit, found, errors, threads)
    errors = np.where(np.isnan(errors), np.inf, errors)
    return found.reshape(m, s, q)[np.arange(m), errors.argmin(axis=1)]


def searched(
    Z: np.ndarray,
    ids: np.ndarray,
    there: tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray], float],
    run: FitContext,
) -> np.ndarray:
    """Places of least error of rows Z with the neighbors ``ids``.

    ``there`` are the coordinates and places of the fitted rows, their neighbors, and the width.
    """
    C, Y, lists, width = there
    keep = new_relations(Z, ids, C, lists, width, run.threads)
    middle = mixtures(
        PatchRows(C),
        Z,
        Y,
        ids,
        lambda points, near, at: barycentric(points, near, at, 1e-3),
        run.threads,
        run.monitor,
    )
    starts = np.concatenate([middle[:, None], Y[ids[:, :NEAREST]]], axis=1)
    return places(keep, Y, starts, run.threads)
