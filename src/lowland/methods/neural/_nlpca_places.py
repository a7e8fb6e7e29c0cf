"""Nonlinear PCA: where rows belong in the map of a decoder, each row by itself.

    min over z of  f(z) = mean over m of sum_known (x_j - Phi_j(z; m))^2 + sum_k ridge_k z_k^2

by the method of Levenberg and Marquardt from several starts: places whose image is near the row.
All rows take their steps together, in products whose rows do not depend on each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._base.threads import limit_blas
from lowland._engines.linalg import products
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.network.layers import Layer, Network, apply, forward, slope_at
from lowland.methods.neural._nlpca_training import Code

N_STARTS = 3
APART = 0.5  # starts of one row are so far from each other, in deviations of the map
MOST_STEPS = 100  # few rows need more than 20: those far from all images
SETTLED = 1e-9  # a step that is smaller, relative to 1 + |z|, ends the search
NO_GAIN = 1e-12  # a step that lowers f by less than this share of it ends the search
DAMPING = (1e-3, 1e-9, 1e12)  # the first, the least and the largest, where the search ends
FARTHEST = 1e8  # standardized values beyond this are set to it: their squares hide all others
BLOCK_BYTES = 2**24


class Decoder(NamedTuple):
    """A network from units of the code to standardized rows, its weights, and the ridge (q,)."""

    code: Code
    network: Network
    weights: np.ndarray
    ridge: np.ndarray

    def last(self) -> Layer:
        """The layer that makes rows."""
        return self.network.layers(self.weights)[-1]

    def with_last(self, W: np.ndarray, b: np.ndarray) -> Decoder:
        """The decoder with another last layer."""
        network, old = self.network, self.last()
        kept = self.weights[: len(self.weights) - old.W.size - old.b.size]
        return self._replace(
            network=network._replace(sizes=(*network.sizes[:-1], len(b))),
            weights=np.concatenate([kept, W.ravel(), b]),
        )

    def in_its_span(self) -> tuple[Decoder, np.ndarray, np.ndarray]:
        """The decoder in an orthonormal basis (p, r) of what it can reach, the basis, its origin.

        Distances of a complete row to images differ from those in the basis by a constant.
        """
        last = self.last()
        with limit_blas(1):
            basis, R = np.linalg.qr(last.W.T)
        return self.with_last(R.T, np.zeros(len(R))), basis, last.b

    def varying(self) -> np.ndarray:
        """The columns that it does not hold constant; all if there is none."""
        varying = self.last().W.any(axis=0)
        return np.flatnonzero(varying if varying.any() else ~varying)

    def only(self, columns: np.ndarray) -> Decoder:
        """The decoder of some columns."""
        last = self.last()
        return self.with_last(last.W[:, columns], last.b[columns])


def decode(decoder: Decoder, Z: np.ndarray, m: int, threads: int) -> np.ndarray:
    """Phi(z; m) of places (n, q) in float64; no row depends on the others."""
    units = decoder.code.of_places(Z) * decoder.code.mask(m)
    return apply(decoder.network, decoder.weights, units, threads)


def nearest_places(
    decoder: Decoder, anchors: np.ndarray, X: np.ndarray, known: np.ndarray | None, threads: int
) -> np.ndarray:
    """Places (n, q) of standardized rows; ``known`` (n, p) is None if all values are known.

    ``anchors`` (a, q) are places among which the starts are chosen.
    """
    columns = decoder.varying()  # constant ones tell nothing, but may hide the others
    decoder, X = decoder.only(columns), np.clip(X[:, columns], -FARTHEST, FARTHEST)
    known = None if known is None else known[:, columns]
    if known is None and len(columns) > len(decoder.last().W):
        decoder, basis, origin = decoder.in_its_span()
        X = products.times(X, origin, basis, threads)
    images = decode(decoder, anchors, decoder.code.n_components, threads)
    search = Search(decoder, anchors, images, threads)
    Z = np.empty((len(X), decoder.code.n_components))
    per_row = 8 * (len(anchors) + X.shape[1] * (3 + 2 * Z.shape[1]))
    for rows in row_blocks(len(X), rows_within(per_row, BLOCK_BYTES)):
        seen = None if known is None else known[rows].astype(np.float64)
        Z[rows] = search.best(X[rows], seen)
    angles = Z[:, : decoder.code.circular]
    angles[...] = np.mod(angles + np.pi, 2 * np.pi) - np.pi
    return Z


class Search(NamedTuple):
    """The search for places; starts are among ``anchors`` (a, q), whose images are known."""

    decoder: Decoder
    anchors: np.ndarray
    images: np.ndarray
    threads: int

    def best(self, X: np.ndarray, known: np.ndarray | None) -> np.ndarray:
        """The best of the minima that the starts lead to; of equal ones the first."""
        starts = self.starts(X, known)
        best, lowest = self.anchors[starts[0]], np.full(len(X), np.inf)
        for start in starts:
            Z, heights = self.descended(self.anchors[start], X, known)
            better = heights < lowest
            best[better], lowest[better] = Z[better], heights[better]
        return best

    def starts(self, X: np.ndarray, known: np.ndarray | None) -> list[np.ndarray]:
        """Numbers of anchors (n,): the one with the nearest image, then the nearest ones apart."""
        images, threads = self.images, self.threads
        D = -2 * _times(X if known is None else X * known, images.T, threads)
        D += np.sum(images**2, axis=1) if known is None else _times(known, images.T**2, threads)
        D += np.sum(self.decoder.ridge * self.anchors**2, axis=1)
        units = self.decoder.code.of_places(self.anchors)
        gaps = np.sum((units[:, None] - units[None]) ** 2, axis=2)
        found = []
        for _ in range(N_STARTS):
            nearest = np.argmin(D, axis=1)
            found.append(nearest)
            D[gaps[nearest] < APART**2] = np.inf  # once all are, the first anchor is tried again
        return found

    def descended(
        self, Z: np.ndarray, X: np.ndarray, known: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Levenberg-Marquardt from Z: the places reached, and f there."""
        n, q = Z.shape
        Z, damping = Z.copy(), np.full(n, DAMPING[0])
        heights, slopes, H = self.expanded(Z, X, known)
        active = np.arange(n)
        for _ in range(MOST_STEPS):
            if not len(active):
                break
            A, g = H[active], slopes[active]
            diagonal = np.einsum("ikk->ik", A)
            floor = 1e-12 * diagonal.max(axis=1, initial=0.0, keepdims=True) + 1e-300
            A[:, np.arange(q), np.arange(q)] += damping[active, None] * np.maximum(diagonal, floor)
            steps = _solved(A, g)
            tried = Z[active] - steps
            seen = None if known is None else known[active]
            values, new_slopes, new_H = self.expanded(tried, X[active], seen)
            better = values < heights[active]
            still = better & (heights[active] - values <= NO_GAIN * heights[active])
            took = active[better]
            Z[took], heights[took] = tried[better], values[better]
            slopes[took], H[took] = new_slopes[better], new_H[better]
            damping[took] = np.maximum(damping[took] / 10, DAMPING[1])
            damping[active[~better]] *= 10
            size = np.sqrt(np.sum(steps**2, axis=1))
            small = size <= SETTLED * (1 + np.sqrt(np.sum(Z[active] ** 2, axis=1)))
            active = active[~(small | still | (damping[active] > DAMPING[2]))]
        return Z, heights

    def expanded(
        self, Z: np.ndarray, X: np.ndarray, known: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """f, half of its slope (n, q), and the Gauss-Newton half of its curvature (n, q, q)."""
        (n, q), ridge = Z.shape, self.decoder.ridge
        stages = self.decoder.code.stages()
        values = np.sum(ridge * Z**2, axis=1)
        slopes, H = ridge * Z, np.zeros((n, q, q))
        H[:, np.arange(q), np.arange(q)] = ridge
        for m in stages:
            output, tangents = _with_tangents(self.decoder, Z, m, self.threads)
            error = output - X
            if known is not None:
                error *= known
                tangents = [t * known for t in tangents]
            values += np.sum(error**2, axis=1) / len(stages)
            for k, t in enumerate(tangents):
                slopes[:, k] += np.sum(t * error, axis=1) / len(stages)
                for j in range(k + 1):
                    H[:, k, j] += np.sum(t * tangents[j], axis=1) / len(stages)
        upper = np.triu_indices(q, 1)
        H[:, upper[0], upper[1]] = H[:, upper[1], upper[0]]
        return values, slopes, H


def _solved(A: np.ndarray, g: np.ndarray) -> np.ndarray:
    """A_i^-1 g_i by Cholesky factors, all matrices at once; A is overwritten."""
    q = A.shape[1]
    for k in range(q):
        A[:, k, k] = np.sqrt(A[:, k, k])
        A[:, k + 1 :, k] /= A[:, k, k, None]
        A[:, k + 1 :, k + 1 :] -= A[:, k + 1 :, k, None] * A[:, None, k + 1 :, k]
    s = g.copy()
    for k in range(q):
        s[:, k] /= A[:, k, k]
        s[:, k + 1 :] -= s[:, k, None] * A[:, k + 1 :, k]
    for k in reversed(range(q)):
        s[:, k] /= A[:, k, k]
        s[:, :k] -= s[:, k, None] * A[:, k, :k]
    return s


def _with_tangents(
    decoder: Decoder, Z: np.ndarray, m: int, threads: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Phi(z; m) and its derivatives by the first m components."""
    code, layers = decoder.code, decoder.network.layers(decoder.weights)
    units = code.of_places(Z)
    values = forward(decoder.network, decoder.weights, units * code.mask(m), threads).values
    first = layers[0]
    tangents = []
    for k in range(m):
        at = code.units_of(k)
        if k < code.circular:
            cos, sin = units[:, at.start, None], units[:, at.start + 1, None]
            tangents.append(cos * first.W[at.start + 1] - sin * first.W[at.start])
        else:
            tangents.append(np.broadcast_to(first.W[at.start], values[0].shape))
    tangents = [t * slope_at(values[0], first.activation) for t in tangents]
    for h, layer in zip(values[1:], layers[1:], strict=True):
        slope = slope_at(h, layer.activation)
        tangents = [_times(t, layer.W, threads) * slope for t in tangents]
    return values[-1], tangents


def _times(h: np.ndarray, W: np.ndarray, threads: int) -> np.ndarray:
    return products.times(np.ascontiguousarray(h), np.zeros(len(W)), W, threads)
