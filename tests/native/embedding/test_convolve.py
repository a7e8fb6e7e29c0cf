"""convolve against sums over all pairs of nodes, and fourier_order against what a transform is."""

import numpy as np
import pytest

from lowland import _native
from support.cases import each
from support.kernels import each_isa

LANES = 8
# (rows, columns), and the half sizes (high, wide) of the periodic plane: all radices, odd lengths,
# planes that fill it and planes that do not, a part of a vector, more rows than a group has.
PLANES = [
    ((1, 1), (1, 1)),
    ((3, 2), (3, 2)),
    ((7, 9), (8, 9)),
    ((9, 13), (10, 15)),
    ((16, 8), (16, 8)),
    ((17, 24), (25, 24)),
    ((33, 5), (36, 5)),
    ((20, 45), (30, 48)),
]


def frequencies(n):
    order = np.full(n, -1, np.int32)
    _native.fourier_order(order)
    return order


def spectrum_of(kernel):
    """The spectrum of an even periodic kernel, given by its corner, as the kernel wants it."""
    high, wide = (size - 1 for size in kernel.shape)
    whole = kernel
    for axis in (0, 1):
        mirror = np.flip(whole, axis)[(slice(None),) * axis + (slice(1, -1),)]
        whole = np.concatenate([whole, mirror], axis=axis)
    waves = np.fft.fft2(whole).real * (0.5 / whole.size)
    blocks = np.zeros((wide // LANES + 1, 2, high, LANES), np.float32)
    order = frequencies(high)
    for f in range(wide + 1):
        for odd in (0, 1):
            blocks[f // LANES, odd, :, f % LANES] = waves[2 * order + odd, f]
    return blocks


def convolved(charges, kernel, threads=1, isa="auto"):
    field = np.full_like(charges, np.nan)
    spectrum = spectrum_of(kernel)
    _native.convolve(charges, spectrum, kernel.shape[1] - 1, field, threads, isa)
    return field


def problem(shape, half, seed=0):
    rng = np.random.default_rng(seed)
    charges = rng.standard_normal(shape).astype(np.float32)
    return charges, rng.standard_normal((half[0] + 1, half[1] + 1))


@each("n", [1, 2, 3, 4, 5, 6, 8, 9, 12, 25, 30, 48, 360, 1000])
def test_every_frequency_has_one_place(n):
    np.testing.assert_array_equal(np.sort(frequencies(n)), np.arange(n))


@each("plane", PLANES)
@each_isa
def test_the_field_is_the_sum_over_all_nodes(plane, isa):
    """sum_{k,l} K(|i - k|, |j - l|) charges(k, l): nothing reaches around the periodic plane."""
    charges, kernel = problem(*plane)
    rows, columns = (np.arange(size) for size in charges.shape)
    down = np.abs(rows[:, None] - rows)
    across = np.abs(columns[:, None] - columns)
    pairs = kernel[down[:, None, :, None], across[None, :, None, :]]
    expected = np.einsum("ijkl,kl->ij", pairs, charges.astype(np.float64))
    # rounding of float32 in about ten steps of transforms
    atol = 1e-5 * np.abs(kernel).max() * np.linalg.norm(charges)
    np.testing.assert_allclose(convolved(charges, kernel, isa=isa), expected, atol=atol)


@each_isa
def test_threads_do_not_change_a_bit(isa, same_for_threads):
    given = problem((90, 70), (90, 72))
    same_for_threads(lambda threads: convolved(*given, threads, isa))


def test_charges_are_only_read():
    charges, kernel = problem((9, 13), (10, 15))
    before = charges.copy()
    convolved(charges, kernel)
    np.testing.assert_array_equal(charges, before)


@each("n", [0, 7, 22, 49])
def test_lengths_with_other_factors_are_refused(n):
    with pytest.raises(ValueError, match="product of 2, 3 and 5"):
        _native.fourier_order(np.empty(n, np.int32))


@each(
    ("shape", "spectrum", "wide"),
    [
        ((9, 9), (2, 2, 8, 8), 9),  # more rows than nodes
        ((9, 9), (2, 2, 9, 8), 8),  # more columns than nodes
        ((9, 9), (1, 2, 9, 8), 9),  # a block is missing
        ((9, 9), (2, 1, 9, 8), 9),
        ((9, 9), (2, 2, 9, 4), 9),
        ((9, 9), (2, 2, 11, 8), 9),  # a length with another factor
        ((9, 9), (2, 2, 9, 8), 11),
        ((0, 9), (2, 2, 9, 8), 9),
    ],
)
def test_arrays_that_do_not_fit_are_refused(shape, spectrum, wide):
    charges = np.zeros(shape, np.float32)
    with pytest.raises(ValueError, match="convolve"):
        _native.convolve(charges, np.zeros(spectrum, np.float32), wide, charges.copy(), 1)


def test_a_field_of_another_shape_is_refused():
    charges, spectrum = np.zeros((9, 9), np.float32), np.zeros((2, 2, 9, 8), np.float32)
    with pytest.raises(ValueError, match="field must be as charges"):
        _native.convolve(charges, spectrum, 9, np.zeros((9, 8), np.float32), 1)
