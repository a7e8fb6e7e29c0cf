"""The particle-mesh method: repulsion of all points of a map by a potential on a grid.

With K a function of the distance of two points of the map, such as their similarity, and

    phi(x) = sum_j K(x - y_j),        sum_{i != j} K_ij = sum_i (phi(y_i) - K(0)),

the repulsive force on point i is -1/2 grad phi(y_i), so that one scalar field is enough. Unit
charges at the points are spread onto a grid with B-splines of order 6 and convolved with K by one
forward and one inverse FFT. The field and its analytic gradient are
interpolated at the points with the same splines. K's spectrum is divided by the squared spectrum of
the sampled B-spline, which corrects both interpolations. The contribution of a point to the field
at its own place is known and subtracted.

Cost O(n + g log g) for g grid nodes, which do not grow with n: for a similarity, whose width is
fixed, with the area of the map; for K = r, which has no width, not at all. The relative error of
the force (2-norm) is about 0.5 % for the node distance of similarities used here in one and two
dimensions, and about 1 % in three. For K = r it is the share of points within a few nodes: those
are pushed by unit vectors, whatever their distance.

References: Linderman et al. (2019), Fast interpolation-based t-SNE, Nature Methods 16,
doi:10.1038/s41592-018-0308-4; Hockney & Eastwood (1988), Computer simulation using particles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lowland import _native
from lowland._base.memory import require_memory

# Convolution of charges on a grid with an even kernel K, by Fourier transforms.
#
#     field(x) = sum_g A(x - g) charges(g)
#
# A is K divided by the squared spectrum of the sampled B-spline of order 6, which corrects the
# interpolation from points to nodes and back. The grid is padded to twice its nodes, so that the
# convolution does not reach around it. Planes have a native kernel, which never touches the
# padding; other grids use scipy. O(g log g) for g nodes.


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


# Distance of grid nodes in units of the kernel's width. The error of the forces falls with it, and
# errors make the descent end higher. In three dimensions nodes are expensive, so that only maps
# narrower than NARROW have the finer grid there.
FINE, COARSE = 0.4, 0.45
NARROW = 16  # in the same units
MARGIN = 8  # nodes beyond the outermost points
TURN = np.array([0.8191725134, 0.6710436067, 0.5497004779])  # fills a cell evenly (Roberts 2018)
STEPS_PER_OCTAVE = 10  # grid sizes are rounded up, so that spectra are seldom recomputed
WIDTH = {1: 4096, 2: 256, 3: 48}  # nodes along the map for K = r, by its dimension


class RadialKernel(NamedTuple):
    """K as a function of the squared distance, and the distance of nodes for the spans of a map."""

    values: Callable[[np.ndarray], np.ndarray]
    pitch: Callable[[np.ndarray], float]


def similarity(dof: float) -> RadialKernel:
    """K = (1 + r^2/v)^-v with v = ``dof``; infinity is the Gaussian exp(-r^2)."""

    def values(squares: np.ndarray) -> np.ndarray:
        if math.isinf(dof):
            return np.exp(-squares)
        return 1 / (1 + squares) if dof == 1 else (1 + squares / dof) ** -dof

    def pitch(spans: np.ndarray) -> float:
        width = min(1.0, math.sqrt(dof))
        fine = len(spans) < 3 or max(spans) < NARROW * width
        return (FINE if fine else COARSE) * width

    return RadialKernel(values, pitch)


def _even_pitch(spans: np.ndarray) -> float:
    """One of four sizes per factor of two, so that spectra are seldom recomputed."""
    least = max(float(max(spans)), 1e-30) / WIDTH[len(spans)]
    return 2.0 ** (math.ceil(4 * math.log2(least)) / 4)


DISTANCE = RadialKernel(np.sqrt, _even_pitch)  # K = r


class Field(NamedTuple):
    """A potential on a grid: values at the nodes, the first node, the distance of nodes.

    ``own`` is the contribution of a charge at its own place, see :func:`_own_share`.
    """

    values: np.ndarray
    low: np.ndarray
    pitch: float
    own: tuple[float, float]

    def at(self, Y: np.ndarray, potential: np.ndarray, forces: np.ndarray, threads: int) -> None:
        """phi and -1/2 grad phi at points Y, both without the contribution of the point itself."""
        mean, wave = self.own
        _native.gather(Y, self.low, self.pitch, mean, wave, self.values, potential, forces, threads)

    def without_charge(self) -> Field:
        """The field for points that are not part of it."""
        return self._replace(own=(0.0, 0.0))


class ParticleMesh:
    """Fields of maps of 1, 2 or 3 dimensions; keeps the spectrum of the last grid.

    Parameters
    ----------
    kernel : RadialKernel
        K: a :func:`similarity`, or the ``DISTANCE``.
    threads : int
        The result does not depend on it.
    alternative : str
        What to do if there is too little memory for the grid.
    """

    def __init__(
        self, kernel: RadialKernel, threads: int, alternative: str = "use method='barnes_hut'"
    ) -> None:
        self.kernel, self.threads, self.alternative = kernel, threads, alternative
        self.pitch = math.nan
        self._convolution: GridConvolution | None = None
        self._shape: tuple[int, ...] = ()
        self._charges = np.empty(0, np.float32)
        self._own = (1.0, 0.0)

    def field(self, Y: np.ndarray, margin: int = MARGIN, turn: int | None = 0) -> Field:
        """The potential of the points Y on a grid that reaches ``margin`` nodes beyond them.

        Each ``turn`` shifts the nodes by another fraction of their distance. The interpolation
        error then averages out over the steps of a descent, which ends nearer to the optimum. With
        None the nodes are at multiples of their distance: maps of about one size then have one
        potential, as a function of Y, whose values can be compared.
        """
        low, high = _extent(Y)
        pitch = self.kernel.pitch(high - low)
        shape = _shape(high - low, pitch, margin)
        if (shape, pitch) != (self._shape, self.pitch):
            self._prepare(shape, pitch)
        slack = (np.array(shape) - 1) * self.pitch - (high - low)
        low -= slack / 2
        if turn is None:
            low = np.floor(low / pitch) * pitch
        else:
            low -= pitch * (turn * TURN[: len(shape)] % 1.0)
        _native.spread(Y, low, self.pitch, self._charges, self.threads)
        assert self._convolution is not None
        return Field(self._convolution(self._charges), low, self.pitch, self._own)

    def _prepare(self, shape: tuple[int, ...], pitch: float) -> None:
        padded = padded_nodes(shape)
        n_bytes = 4 * (6 * math.prod(padded))
        require_memory(
            n_bytes,
            task=f"the grid of {' x '.join(map(str, padded))} nodes under the map",
            alternative=self.alternative,
        )
        if (len(shape), pitch) != (len(self._shape), self.pitch):
            self._own = _own_share(pitch, self.kernel, len(shape))
        self._shape, self.pitch = shape, pitch
        self._charges = np.empty(shape, np.float32)
        self._convolution = GridConvolution(shape, pitch, self.kernel.values, self.threads)


def _rung(n_nodes: int) -> int:
    """The grid size rounded up to one of about ten sizes per factor of two."""
    step = math.ceil(STEPS_PER_OCTAVE * math.log2(max(n_nodes, 16)) - 1e-9)
    return math.ceil(2 ** (step / STEPS_PER_OCTAVE))


def _own_share(pitch: float, kernel: RadialKernel, d: int) -> tuple[float, float]:
    """Mean and first wave of a charge's own potential over its places t in a cell of the grid.

    S(t) = sum_{g,h} M(t - g) A(g - h) M(t - h), with A the corrected kernel on the nodes, is close
    to mean + wave * sum_k cos(2 pi t_k); the gradient of the field at the charge is half that of S.
    """
    size, places = 64 if d == 3 else 128, np.arange(8) / 8
    weights = _spline(places - np.arange(-2, 4)[:, None])  # (nodes, places)
    A = corrected_spectrum((size,) * d, pitch, kernel.values)
    for axis in range(d):  # back to nodes; both are even
        A = np.fft.irfft(A, size, axis=axis)[(slice(None),) * axis + (slice(size // 2 + 1),)]
    steps = np.arange(-5, 6)
    overlap = np.stack(  # sum_g M(t - g) M(t - g - step)
        [
            sum(weights[g] * weights[g + step] for g in range(6) if 0 <= g + step < 6)
            for step in steps
        ]
    )
    S = A[np.ix_(*[np.abs(steps)] * d)]
    for _ in range(d):  # contract one axis of offsets after the other
        S = np.tensordot(S, overlap, axes=(0, 0))
    waves = np.fft.fftn(S) / S.size
    return float(waves.flat[0].real), float(2 * waves[(1,) + (0,) * (d - 1)].real)


def _spline(x: np.ndarray) -> np.ndarray:
    """The B-spline of order 6 at distances x from its middle, by truncated powers."""
    terms = [(-1) ** k * math.comb(6, k) * np.maximum(x + 3 - k, 0) ** 5 for k in range(7)]
    return sum(terms[1:], terms[0]) / 120


def grid_nodes(Y: np.ndarray, kernel: RadialKernel, margin: int = MARGIN) -> int:
    """About how many nodes the padded grid under a map has."""
    low, high = _extent(Y)
    pitch = kernel.pitch(high - low)
    return math.prod(2 * size for size in _shape(high - low, pitch, margin))


def _extent(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest coordinates; numpy is fast along rows as wide as many points."""
    wide = Y[: len(Y) // 64 * 64].reshape(-1, 64 * Y.shape[1])
    rest = Y[len(Y) // 64 * 64 :]

    def over_points(f: np.ufunc) -> np.ndarray:
        parts = [f.reduce(wide, axis=0).reshape(64, -1)] if len(wide) else []
        return f.reduce(np.concatenate([*parts, rest]), axis=0).astype(np.float64)

    return over_points(np.minimum), over_points(np.maximum)


def _shape(spans: np.ndarray, pitch: float, margin: int) -> tuple[int, ...]:
    return tuple(_rung(math.ceil(span / pitch) + 2 * margin) for span in spans)
