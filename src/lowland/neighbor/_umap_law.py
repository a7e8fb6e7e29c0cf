"""The forces of UMAP: how neighbors attract and all rows repel each other in the map.

With u the squared distance of two points and phi = 1 / (1 + a u^b) their membership,

    attraction   A(u) = 2 a b u^(b-1) / (1 + a u^b)             potential 2 log(1 + a u^b) (*)
    repulsion    R(u) = 2 b / ((s + u) (1 + a u^b))

are the factors of y_i - y_j in the forces. Both come from the fuzzy cross entropy, whose repulsion
is infinite at u = 0. The reference implementation takes s = 0.001 and cuts each coordinate of a
force at 4. Here s = (b / 4)^2, so that the force itself is never longer than 4: it is smooth, and
a map may be turned. The potential K of the repulsion, dK/du = -R, has no closed form and is
tabulated.

(*) of which, as for all potentials here, the force is half the gradient.

Reference: McInnes, Healy & Melville (2018), UMAP, arXiv:1802.03426.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lowland import _native
from lowland._core.errors import ParameterError
from lowland._engines.embedding.particle_mesh import RadialKernel

LONGEST = 4.0  # force between two points
STEEPEST = 3.0  # of b: the kernels compute powers of 1e12 in float32
PITCH = 0.6  # distance of grid nodes in units of sqrt(s): an error of the force below 1 %
FIRST, LAST, PER_OCTAVE = -32, 40, 32  # the table of K: powers of two of u
FINER = 32  # steps of the integration between two entries


def curve_parameters(spread: float, min_dist: float) -> tuple[float, float]:
    """The a and b for which 1 / (1 + a x^2b) is nearest to the wanted curve.

    That is 1 up to min_dist, and exp(-(x - min_dist) / spread) beyond. Least squares over 300
    distances up to 3 spreads, as in the reference implementation.
    """
    import scipy.optimize  # here: importing it takes longer than small maps take

    x = np.linspace(0, 3, 300)  # in units of the spread, for which a is a spread^2b
    target = np.where(x < min_dist / spread, 1.0, np.exp(-(x - min_dist / spread)))

    def curve(x: np.ndarray, a: float, b: float) -> np.ndarray:
        return 1 / (1 + a * x ** (2 * b))

    try:
        with np.errstate(all="ignore"):  # powers of 0 with exponents that are tried and left
            (a, b), _ = scipy.optimize.curve_fit(curve, x, target)
            a /= spread ** (2 * b)
    except RuntimeError:
        a = b = math.nan
    if not (a > 0 and 0 < b <= STEEPEST):
        raise ParameterError(
            f"min_dist={min_dist:g} with spread={spread:g} gives no curve 1 / (1 + a x^2b) with b "
            f"up to {STEEPEST:g}; take a smaller min_dist or a larger spread, or give a and b."
        )
    return float(a), float(b)


class UmapLaw(NamedTuple):
    """a, b, and the potential K of the repulsion at u = 2^(FIRST + e / PER_OCTAVE)."""

    a: float
    b: float
    heights: np.ndarray

    def repel(
        self,
        points: np.ndarray,
        Y: np.ndarray,
        forces: np.ndarray,
        threads: int,
        potential: np.ndarray | None = None,
        *,
        same: bool = True,
    ) -> None:
        """Sums over all pairs: R (z_i - y_j) into ``forces`` and K into ``potential``. O(m n d)."""
        _native.fuzzy_repel(points, Y, same, *self._kernel(), potential, forces, threads)

    def repel_drawn(
        self,
        Y: np.ndarray,
        seed: int,
        draws: int,
        forces: np.ndarray,
        threads: int,
        potential: np.ndarray | None = None,
    ) -> None:
        """As :meth:`repel` of Y itself, estimated from so many drawn points each. O(n draws d)."""
        _native.fuzzy_sample(Y, seed, draws, *self._kernel(), potential, forces, threads)

    def _kernel(self) -> tuple[Any, ...]:
        return self.a, self.b, softness(self.b), self.heights, FIRST, PER_OCTAVE

    def radial(self) -> RadialKernel:
        """K for the particle mesh."""
        logs, heights = _potential(self.a, self.b)

        def values(squares: np.ndarray) -> np.ndarray:
            places = np.log2(np.maximum(squares, 2.0**FIRST))
            return np.interp(places, logs, heights)

        return RadialKernel(values, lambda spans: PITCH * math.sqrt(softness(self.b)))


def softness(b: float) -> float:
    """The s with which r R(r^2) <= 2 b r / (s + r^2) <= b / sqrt(s) is at most LONGEST."""
    return (b / LONGEST) ** 2


def umap_law(a: float, b: float) -> UmapLaw:
    """The law with its table."""
    _, heights = _potential(a, b)
    return UmapLaw(float(a), float(b), heights[::FINER].astype(np.float32))


def _potential(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """K(u) = int_u^inf R(v) dv, at evenly spaced log2 u; by Simpson's rule in log v."""
    logs = np.linspace(FIRST, LAST, (LAST - FIRST) * PER_OCTAVE * FINER + 1)

    def density(logs: np.ndarray) -> np.ndarray:  # R v dlog2(v)
        v = 2.0**logs
        return 2 * b / ((softness(b) + v) * (1 + a * v**b)) * v * math.log(2)

    step = logs[1] - logs[0]
    ends, middles = density(logs), density(logs[:-1] + step / 2)
    parts = step / 6 * (ends[:-1] + 4 * middles + ends[1:])
    tail = 2 / a * 2.0 ** (-b * LAST)  # beyond, R is 2 b / (a v^(1+b))
    return logs, np.append(np.cumsum(parts[::-1])[::-1] + tail, tail)
