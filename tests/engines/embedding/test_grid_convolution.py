"""Convolution on grids against its definition by transforms and against sums over nodes."""

import numpy as np
import scipy.fft

from lowland._engines.embedding import particle_mesh
from support.cases import each

PITCH = 0.45


def cauchy(squares):
    return 1 / (1 + squares)


def whole(corner):
    """All frequencies or nodes of an even array that is known in one corner."""
    for axis in range(corner.ndim):
        mirror = np.flip(corner, axis)[(slice(None),) * axis + (slice(1, -1),)]
        corner = np.concatenate([corner, mirror], axis=axis)
    return corner


def test_lengths_are_those_of_fast_transforms():
    expected = [2 * scipy.fft.next_fast_len(size, real=True) for size in range(1, 700)]
    assert list(particle_mesh.padded_nodes(tuple(range(1, 700)))) == expected


@each("padded", [(40,), (24, 36), (18, 20, 30)])
def test_the_spectrum_is_that_of_the_kernel_over_the_splines(padded):
    axes = [np.minimum(np.arange(size), size - np.arange(size)) for size in padded]
    squares = sum(x**2 for x in np.meshgrid(*axes, indexing="ij")) * PITCH**2
    spline = np.ones(())
    for size in padded:
        bump = np.zeros(size)
        bump[[0, 1, 2, -1, -2]] = np.array([66, 26, 1, 26, 1]) / 120
        spline = spline[..., None] * np.fft.fft(bump).real
    expected = np.fft.fftn(cauchy(squares)).real / spline**2
    found = particle_mesh.corrected_spectrum(padded, PITCH, cauchy)
    np.testing.assert_allclose(whole(found), expected, atol=1e-9 * expected.max())


@each("shape", [(41,), (16, 16), (23, 35), (70, 19), (12, 16, 17)])
def test_the_field_is_the_sum_over_all_nodes(shape):
    charges = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    field = particle_mesh.GridConvolution(shape, PITCH, cauchy, 2)(charges)
    padded = particle_mesh.padded_nodes(shape)
    spectrum = whole(particle_mesh.corrected_spectrum(padded, PITCH, cauchy))
    A = np.fft.ifftn(spectrum).real  # the corrected kernel as a function of nodes
    expected = np.zeros(shape)
    for place in np.ndindex(*shape):
        offsets = np.ix_(*[np.abs(np.arange(n) - at) for n, at in zip(shape, place, strict=True)])
        expected[place] = (A[offsets] * charges).sum()
    np.testing.assert_allclose(field, expected, atol=1e-5 * np.abs(expected).max())


def test_a_plane_has_the_field_of_its_definition_and_a_new_array():
    """The native kernel beside the transforms that it replaces."""
    shape = (150, 131)
    charges = np.random.default_rng(1).random(shape, dtype=np.float32)
    convolution = particle_mesh.GridConvolution(shape, PITCH, cauchy, 1)
    first = convolution(charges)
    again = convolution(charges)
    assert not np.shares_memory(first, again)
    convolution.spectrum = particle_mesh._mirrored(
        particle_mesh.corrected_spectrum(convolution.padded, PITCH, cauchy)
    )
    expected = convolution._transformed(charges)
    np.testing.assert_allclose(first, expected, atol=3e-6 * np.abs(expected).max())
