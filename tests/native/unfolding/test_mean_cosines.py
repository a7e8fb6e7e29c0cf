"""mean_cosines against its definition: angles between the nearest vertices along a graph."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa
from support.oracles.basics import shortest_paths


def random_graph(n, density, seed, size=1.0):
    """A symmetric matrix of lengths, where inf is not an edge."""
    rng = np.random.default_rng(seed)
    W = size * (0.05 + rng.random((n, n)) ** 2)
    W[rng.random((n, n)) > density] = np.inf
    W = np.minimum(W, W.T)
    np.fill_diagonal(W, np.inf)
    return W


def naive(W, k):
    D, found = shortest_paths(W), []
    for v in range(len(W)):
        near = [j for j in np.lexsort((np.arange(len(W)), D[v])) if j != v and D[v, j] < np.inf][:k]
        among = shortest_paths(W[np.ix_([v, *near], [v, *near])])
        cosines = [
            (among[0, j] ** 2 + among[0, m] ** 2 - among[j, m] ** 2)
            / (2 * among[0, j] * among[0, m])
            for j in range(1, len(near) + 1)
            for m in range(1, len(near) + 1)
        ]
        found.append(np.mean(cosines) if near else 0.0)
    return np.array(found)


def kernel(W, k, threads=1, isa="auto"):
    i, j = np.nonzero(np.isfinite(W))
    starts = np.searchsorted(i, np.arange(len(W) + 1)).astype(np.int64)
    out = np.full(len(W), np.nan)
    _native.mean_cosines(starts, j.astype(np.int32), W[i, j], k, out, threads, isa)
    return out


@each("k", [1, 2, 5, 24])
@each(("n", "density"), [(1, 1), (2, 1), (5, 0.9), (40, 0.05), (40, 0.3), (60, 1)])
@each_isa
def test_the_mean_cosine_is_that_of_all_pairs_of_near_vertices(n, density, k, isa):
    W = random_graph(n, density, seed=n)
    np.testing.assert_allclose(kernel(W, k, isa=isa), naive(W, k), rtol=0, atol=1e-12)


@each("size", [1e-290, 1e-100, 1e280])
@each_isa
def test_the_unit_of_the_lengths_does_not_matter(size, isa):
    W = random_graph(30, 0.4, seed=7)
    scaled = random_graph(30, 0.4, seed=7, size=size)
    np.testing.assert_allclose(kernel(scaled, 6, isa=isa), kernel(W, 6, isa=isa), atol=1e-9)


@each_isa
def test_lengths_of_very_unlike_size_give_cosines(isa):
    W = random_graph(40, 0.5, seed=8) ** 200
    found = kernel(np.maximum(W, 1e-300), 10, isa=isa)
    assert (found >= -1).all()
    assert (found <= 1).all()


@each_isa
def test_threads_do_not_change_a_bit(isa, same_for_threads):
    W = random_graph(400, 0.02, seed=4)
    same_for_threads(lambda threads: kernel(W, 16, threads, isa), (2, 5))


def test_bad_arguments_are_refused_before_the_kernel_runs():
    starts, columns = np.array([0, 1, 2]), np.array([1, 0], np.int32)
    lengths, out = np.ones(2), np.empty(2)
    good = [starts, columns, lengths, 1, out, 1]
    _native.mean_cosines(*good)
    bad = [
        (0, np.array([0, 1])),
        (0, np.array([0, 3, 2])),
        (0, np.array([1, 1, 2])),
        (1, np.array([1, 2], np.int32)),
        (1, np.array([-1, 0], np.int32)),
        (2, np.array([1.0, 0.0])),
        (2, np.array([1.0, np.nan])),
        (2, np.array([1.0, np.inf])),
        (2, np.ones(3)),
        (3, 0),
        (3, 1001),
        (5, 0),
    ]
    for place, value in bad:
        arguments = [*good]
        arguments[place] = value
        with pytest.raises(ValueError, match=r"mean_cosines|threads"):
            _native.mean_cosines(*arguments)
