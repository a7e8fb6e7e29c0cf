"""Convolution of charges on a grid with an even kernel K, by Fourier transforms.

    field(x) = sum_g A(x - g) charges(g)

A is K divided by the squared spectrum of the sampled B-spline of order 6, which corrects the
interpolation from points to nodes and back. The grid is padded to twice its nodes, so that the
convolution does not reach around it. Planes have a native kernel, which never touches the padding;
other grids use scipy. O(g log g) for g nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lowland import _native

SPLINE = (66 / 120, 26 / 120, 1 / 120)  # of order 6, at 0, 1 and 2
LANES = 8  # frequencies of rows that the native kernel takes at a time


class GridConvolution:
    """The convolution on one grid of nodes ``pitch`` apart.

    ``values`` is K as a function of squared distances. The result does not depend on ``threads``.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        pitch: float,
        values: Callable[[np.ndarray], np.ndarray],
        threads: int,
    ) -> None:
        self.shape, self.padded, self.threads = shape, padded_nodes(shape), threads
        corner = corrected_spectrum(self.padded, pitch, values)
        arrange = _for_planes if len(shape) == 2 else _mirrored
        self.spectrum = arrange(corner)

    def __call__(self, charges: np.ndarray) -> np.ndarray:
        """The field of float32 charges on the nodes; a new array."""
        if len(self.shape) != 2:
            return self._transformed(charges)
        field = np.empty_like(charges)
        _native.convolve(charges, self.spectrum, self.padded[1] // 2, field, self.threads)
        return field

    def _transformed(self, charges: np.ndarray) -> np.ndarray:
        """The definition: transforms of the empty half of the padded grid are left out."""
        import scipy.fft  # here: it takes longer to import than small maps take to make

        shape, padded, axes = self.shape, self.padded, range(len(self.shape) - 1)
        waves = scipy.fft.rfft(charges, padded[-1], axis=-1, workers=self.threads)
        for axis in reversed(axes):
            waves = scipy.fft.fft(
                waves, padded[axis], axis=axis, overwrite_x=True, workers=self.threads
            )
        waves *= self.spectrum
        for axis in axes:
            waves = scipy.fft.ifft(waves, axis=axis, overwrite_x=True, workers=self.threads)
            waves = waves[(slice(None),) * axis + (slice(shape[axis]),)]
        values = scipy.fft.irfft(waves, padded[-1], axis=-1, workers=self.threads)
        return np.ascontiguousarray(values[..., : shape[-1]])


def padded_nodes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Twice the nodes, rounded up to a product of 2, 3 and 5, for which transforms are fast."""
    return tuple(2 * _smooth(size) for size in shape)


def corrected_spectrum(
    padded: tuple[int, ...], pitch: float, values: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """K's spectrum on a periodic grid, divided by the squared spectra of the sampled B-spline.

    K is even along each axis, so that a cosine transform of one corner of the grid gives one corner
    of the spectrum, frequencies 0 to half of ``padded``; the others are its mirror images.
    """
    d, halves = len(padded), [size // 2 + 1 for size in padded]
    squares = np.zeros(halves)
    for axis, half in enumerate(halves):
        squares += _along(axis, d, (pitch * np.arange(half)) ** 2)
    spectrum = values(squares)
    for axis, (half, size) in enumerate(zip(halves, padded, strict=True)):
        # a real sequence, taken as half of a spectrum, goes back to its cosine transform
        spectrum = np.fft.irfft(spectrum, size, axis=axis, norm="forward")
        spectrum = spectrum[(slice(None),) * axis + (slice(half),)]
        waves = 2 * np.pi * np.arange(half) / size
        spline = SPLINE[0] + 2 * SPLINE[1] * np.cos(waves) + 2 * SPLINE[2] * np.cos(2 * waves)
        spectrum *= _along(axis, d, spline**-2)
    return spectrum


def _mirrored(corner: np.ndarray) -> np.ndarray:
    """All frequencies of all axes but the last, in float32."""
    spectrum = corner.astype(np.float32)
    for axis in range(corner.ndim - 1):
        mirror = np.flip(spectrum, axis)[(slice(None),) * axis + (slice(1, -1),)]
        spectrum = np.concatenate([spectrum, mirror], axis=axis)
    return spectrum


def _for_planes(corner: np.ndarray) -> np.ndarray:
    """The spectrum in the order of ``_native.convolve``, with the scale of its transforms."""
    high, wide = corner.shape[0] - 1, corner.shape[1] - 1
    order = np.empty(high, np.int32)
    _native.fourier_order(order)
    down = np.stack([2 * order, 2 * order + 1])  # even frequencies of the columns, then odd ones
    down = np.minimum(down, 2 * high - down)
    n_blocks = wide // LANES + 1
    across = np.minimum(np.arange(n_blocks * LANES), wide).reshape(n_blocks, LANES)
    scaled = (corner * (0.5 / (4 * high * wide))).astype(np.float32)
    return scaled[down[:, :, None], across[:, None, None, :]]


def _along(axis: int, d: int, values: np.ndarray) -> np.ndarray:
    """Values along one of d axes, to be broadcast."""
    return values.reshape([-1 if k == axis else 1 for k in range(d)])


def _smooth(size: int) -> int:
    """The smallest product of 2, 3 and 5 that is not below ``size``."""
    best = 1 << max(0, (size - 1).bit_length())
    fives = 1
    while fives < best:
        threes = fives
        while threes < best:
            ratio = -(-size // threes)
            best = min(best, threes << max(0, (ratio - 1).bit_length()))
            threes *= 3
        fives *= 5
    return best
