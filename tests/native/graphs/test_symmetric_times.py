"""symmetric_times against numpy."""

import numpy as np
import pytest

from lowland import _native

SIDE = {np.float32: _native.TILE_SIDE_FLOAT32, np.float64: _native.TILE_SIDE_FLOAT64}


def tiles_of(A, side):
    """The upper half of A in tiles, row by row of tiles, with zeros beyond its edge."""
    groups = -(-len(A) // side)
    padded = np.zeros((groups * side, groups * side), A.dtype)
    padded[: len(A), : len(A)] = A
    blocks = padded.reshape(groups, side, groups, side).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(blocks[np.triu_indices(groups)])


def symmetric(n, dtype, seed=0):
    A = np.random.default_rng(seed).gamma(1.0, size=(n, n))
    return np.triu(A).astype(dtype) + np.triu(A, 1).T.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_the_product_of_the_whole_matrix(dtype, isa):
    side = SIDE[dtype]
    for n, q in ((1, 1), (side - 1, 3), (side, 8), (side + 1, 5), (3 * side + 17, 37)):
        A = symmetric(n, dtype)
        V = np.random.default_rng(1).standard_normal((n, q)).astype(dtype)
        out = np.empty((n, q))
        _native.symmetric_times(tiles_of(A, side), V, out, 2, isa)
        exact = A.astype(np.float64) @ V.astype(np.float64)
        # sums of one tile run in dtype: at most `side` roundings of partial sums
        bound = side * np.finfo(dtype).eps * (np.abs(A).astype(float) @ np.abs(V).astype(float))
        assert (np.abs(out - exact) <= bound).all()


def test_threads_change_no_bit(isa, same_for_threads):
    n = 5 * SIDE[np.float32] + 3
    tiles = tiles_of(symmetric(n, np.float32), SIDE[np.float32])
    V = np.random.default_rng(1).standard_normal((n, 6)).astype(np.float32)

    def product(threads):
        out = np.empty((n, 6))
        _native.symmetric_times(tiles, V, out, threads, isa)
        return out

    same_for_threads(product, (2, 5))


def test_both_halves_of_a_tile_on_the_diagonal_are_read():
    """A tile on the diagonal is stored whole, and both of its halves are read."""
    side = SIDE[np.float64]
    A = np.zeros((side, side))
    A[3, 1] = A[1, 3] = 2.0
    V = np.zeros((side, 1))
    V[1], V[3] = 1.0, 10.0
    out = np.empty((side, 1))
    _native.symmetric_times(tiles_of(A, side), V, out, 1)
    assert out[3, 0] == 2
    assert out[1, 0] == 20


def test_arrays_that_do_not_fit_together_are_refused():
    side = SIDE[np.float64]
    tiles, V, out = np.zeros((3, side, side)), np.zeros((side + 1, 2)), np.zeros((side + 1, 2))
    _native.symmetric_times(tiles, V, out, 1)
    with pytest.raises(ValueError, match="upper half"):
        _native.symmetric_times(tiles[:2].copy(), V, out, 1)
    with pytest.raises(ValueError, match="upper half"):
        _native.symmetric_times(np.zeros((3, side, side - 1)), V, out, 1)
    with pytest.raises(ValueError, match="as large as v"):
        _native.symmetric_times(tiles, V, out[:, :1].copy(), 1)
    with pytest.raises(ValueError, match="threads"):
        _native.symmetric_times(tiles, V, out, 0)
