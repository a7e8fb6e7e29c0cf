"""Surfaces and curves with known coordinates: rolls, sheets, helix, sphere, torus.

Rolls and sheets are bent without stretching: geodesics on them are distances in ``truth``.
"""

from __future__ import annotations

import numpy as np

from lowland.datasets._base import XYZ, Dataset, SeedLike, checked, with_noise


def swiss_roll(
    n_samples: int = 1000, *, hole: bool = False, noise: float = 0.0, random_state: SeedLike = None
) -> Dataset:
    """A sheet rolled into a spiral: (t cos t, h, t sin t), t in [1.5 pi, 4.5 pi], h in [0, 21].

    Rows are uniform on the sheet, by the arc length s(t) = (t sqrt(1 + t^2) + asinh t) / 2 of the
    spiral, not by t. ``truth`` is (s(t) - s(1.5 pi), h), so that the shortest path within the sheet
    between two rows is as long as the straight line between their ``truth``; with a hole this holds
    where that line does not cross it.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    hole : bool, default=False
        Leave out the middle ninth of the sheet; the number of rows stays the same.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to ``X``.
    random_state : None, int, Generator or RandomState, default=None
        An integer gives the same rows every time.

    Returns
    -------
    Dataset
        ``X`` (n_samples, 3) and ``truth`` (n_samples, 2): arc length and height.

    Examples
    --------
    >>> from lowland.datasets import swiss_roll
    >>> swiss_roll(500, hole=True, random_state=0)
    Dataset('swiss_roll', 500 rows x 3 columns, 2-D truth)
    """
    rng = checked("swiss_roll", **locals())
    start, end = spiral_length(np.array([1.5 * np.pi, 4.5 * np.pi]))
    truth = sheet_points(n_samples, (end - start, 21.0), hole, rng)
    t = spiral_parameter(start + truth[:, 0])
    X = np.column_stack([t * np.cos(t), truth[:, 1], t * np.sin(t)])
    description = "A sheet rolled into a spiral; truth is arc length and height."
    return _in_space("swiss_roll", with_noise(X, noise, rng), truth, description)


def s_curve(
    n_samples: int = 1000, *, hole: bool = False, noise: float = 0.0, random_state: SeedLike = None
) -> Dataset:
    """A sheet bent to an S: (sin t, h, sign(t) (cos t - 1)), |t| <= 1.5 pi, h in [0, 2].

    Rows are uniform on the sheet. The curve has unit speed in t, so ``truth`` is (t + 1.5 pi, h):
    the shortest path within the sheet between two rows is as long as the straight line between
    their ``truth``; with a hole this holds where that line does not cross it.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    hole : bool, default=False
        Leave out the middle ninth of the sheet; the number of rows stays the same.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to ``X``.
    random_state : None, int, Generator or RandomState, default=None
        An integer gives the same rows every time.

    Returns
    -------
    Dataset
        ``X`` (n_samples, 3) and ``truth`` (n_samples, 2): arc length and height.

    Examples
    --------
    >>> from lowland.datasets import s_curve
    >>> s_curve(500, noise=0.05, random_state=0)
    Dataset('s_curve', 500 rows x 3 columns, 2-D truth)
    """
    rng = checked("s_curve", **locals())
    truth = sheet_points(n_samples, (3.0 * np.pi, 2.0), hole, rng)
    t = truth[:, 0] - 1.5 * np.pi
    X = np.column_stack([np.sin(t), truth[:, 1], np.sign(t) * (np.cos(t) - 1.0)])
    description = "A sheet bent to an S; truth is arc length and height."
    return _in_space("s_curve", with_noise(X, noise, rng), truth, description)


def bent_sheet(
    n_samples: int = 1000,
    *,
    bend: float = np.pi,
    hole: bool = False,
    noise: float = 0.0,
    random_state: SeedLike = None,
) -> Dataset:
    """A sheet around a cylinder: (r sin a, h, r (1 - cos a)), a = s/r - bend/2, r = 3/bend.

    The flat sheet is s in [0, 3], h in [0, 2]; rows are uniform on it and ``truth`` is (s, h), so
    that the shortest path within the sheet between two rows is as long as the straight line between
    their ``truth``; with a hole this holds where that line does not cross it. The gentlest of the
    three sheets: a small ``bend`` leaves it almost flat, one near 2 pi almost closes the cylinder.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    bend : float, default=pi
        Angle in (0, 2 pi) that the sheet covers on the cylinder, in radians.
    hole : bool, default=False
        Leave out the middle ninth of the sheet; the number of rows stays the same.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to ``X``.
    random_state : None, int, Generator or RandomState, default=None
        An integer gives the same rows every time.

    Returns
    -------
    Dataset
        ``X`` (n_samples, 3) and ``truth`` (n_samples, 2): the flat coordinates.

    Examples
    --------
    >>> from lowland.datasets import bent_sheet
    >>> bent_sheet(500, bend=1.0, random_state=0)
    Dataset('bent_sheet', 500 rows x 3 columns, 2-D truth)
    """
    rng = checked("bent_sheet", **locals())
    length = 3.0
    truth = sheet_points(n_samples, (length, 2.0), hole, rng)
    # r (1 - cos a) = 2 r sin^2(a/2) keeps its digits when the sheet is almost flat
    r = length / bend
    a = (truth[:, 0] / length - 0.5) * bend
    X = np.column_stack([r * np.sin(a), truth[:, 1], 2.0 * r * np.sin(a / 2.0) ** 2])
    description = "A sheet around part of a cylinder; truth is the flat coordinates."
    return _in_space("bent_sheet", with_noise(X, noise, rng), truth, description)


def _in_space(name: str, X: np.ndarray, truth: np.ndarray, description: str) -> Dataset:
    """Points in three dimensions without classes."""
    return Dataset(
        name=name,
        X=X,
        y=None,
        truth=truth,
        feature_names=XYZ,
        label_names=None,
        description=description,
    )


def sheet_points(
    n_samples: int, size: tuple[float, float], hole: bool, rng: np.random.Generator
) -> np.ndarray:
    """Uniform points on [0, size[0]] x [0, size[1]], without its middle ninth if ``hole``."""
    if not hole:
        return rng.random((n_samples, 2)) * size
    # nine equal cells, one of the eight outer ones per point: exact, nothing rejected
    cell = rng.integers(8, size=n_samples)
    cell += cell >= 4
    corner = np.column_stack(np.divmod(cell, 3))
    return (corner + rng.random((n_samples, 2))) / 3.0 * size


def spiral_length(t: np.ndarray) -> np.ndarray:
    """Arc length of (t cos t, t sin t) from 0: the integral of sqrt(1 + t^2)."""
    return 0.5 * (t * np.sqrt(1.0 + t**2) + np.arcsinh(t))


def spiral_parameter(s: np.ndarray) -> np.ndarray:
    """The inverse of :func:`spiral_length`, by Newton's method.

    The length is convex and exceeds t^2 / 2, so that t = sqrt(2 s) starts above the root and the
    steps fall towards it without overshooting; six reach the last digit for s >= 1.
    """
    t = np.sqrt(2.0 * s)
    for _ in range(6):
        t = t - (spiral_length(t) - s) / np.sqrt(1.0 + t**2)
    return t


# A curve and two surfaces that no flat map can keep whole.


def helix(
    n_samples: int = 1000,
    *,
    turns: float = 3.0,
    pitch: float = 1.0,
    noise: float = 0.0,
    random_state: SeedLike = None,
) -> Dataset:
    """A circular helix: (cos t, sin t, pitch t / (2 pi)), t in [0, 2 pi turns].

    Its speed is constant, so the arc length is s = t sqrt(1 + (pitch / (2 pi))^2). Rows are uniform
    along the curve, and the path along it between two rows is the difference of their ``truth``.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    turns : float, default=3.0
        How often the curve winds around its axis.
    pitch : float, default=1.0
        Distance between neighboring turns; the radius is 1.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to ``X``.
    random_state : None, int, Generator or RandomState, default=None
        An integer gives the same rows every time.

    Returns
    -------
    Dataset
        ``X`` (n_samples, 3) and ``truth`` (n_samples, 1): the arc length s.

    Examples
    --------
    >>> from lowland.datasets import helix
    >>> helix(500, turns=2, random_state=0)
    Dataset('helix', 500 rows x 3 columns, 1-D truth)
    """
    rng = checked("helix", **locals())
    climb = pitch / (2.0 * np.pi)
    t = 2.0 * np.pi * turns * rng.random(n_samples)
    X = np.column_stack([np.cos(t), np.sin(t), climb * t])
    truth = t[:, None] * np.hypot(1.0, climb)
    description = "A circular helix; truth is the arc length."
    return _in_space("helix", with_noise(X, noise, rng), truth, description)


def sphere(n_samples: int = 1000, *, noise: float = 0.0, random_state: SeedLike = None) -> Dataset:
    """The unit sphere: (cos a cos b, cos a sin b, sin a), latitude a, longitude b.

    Rows are uniform by area: sin a is uniform on [-1, 1] (Archimedes), b on [-pi, pi). Every flat
    map of a sphere distorts or tears it; the example of what a map cannot keep.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to ``X``.
    random_state : None, int, Generator or RandomState, default=None
        An integer gives the same rows every time.

    Returns
    -------
    Dataset
        ``X`` (n_samples, 3) and ``truth`` (n_samples, 2): latitude and longitude in radians.

    Examples
    --------
    >>> from lowland.datasets import sphere
    >>> sphere(500, random_state=0)
    Dataset('sphere', 500 rows x 3 columns, 2-D truth)
    """
    rng = checked("sphere", **locals())
    z = rng.uniform(-1.0, 1.0, size=n_samples)
    latitude = np.arcsin(z)
    longitude = rng.uniform(-np.pi, np.pi, size=n_samples)
    across = np.cos(latitude)
    X = np.column_stack([across * np.cos(longitude), across * np.sin(longitude), z])
    truth = np.column_stack([latitude, longitude])
    description = "The surface of the unit sphere; truth is latitude and longitude."
    return _in_space("sphere", with_noise(X, noise, rng), truth, description)


def torus(
    n_samples: int = 1000, *, tube: float = 0.4, noise: float = 0.0, random_state: SeedLike = None
) -> Dataset:
    """A torus: ((1 + tube cos v) cos u, (1 + tube cos v) sin u, tube sin v).

    Rows are uniform by area, so the angle v has the density (1 + tube cos v) / (2 pi): the outer
    half of the surface is larger than the inner one.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    tube : float, default=0.4
        Radius of the tube, in (0, 1); the circle at its heart has radius 1.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to ``X``.
    random_state : None, int, Generator or RandomState, default=None
        An integer gives the same rows every time.

    Returns
    -------
    Dataset
        ``X`` (n_samples, 3) and ``truth`` (n_samples, 2): the angles u (around the hole) and v
        (around the tube), both in [0, 2 pi].

    Examples
    --------
    >>> from lowland.datasets import torus
    >>> torus(500, tube=0.3, random_state=0)
    Dataset('torus', 500 rows x 3 columns, 2-D truth)
    """
    rng = checked("torus", **locals())
    u, v = 2.0 * np.pi * rng.random((2, n_samples))
    # Rejection without waste: a v that would be refused, with probability (1 - tube cos v) / 2,
    # becomes pi - v, where that same probability is the one of being kept.
    refused = 2.0 * rng.random(n_samples) > 1.0 + tube * np.cos(v)
    v = np.where(refused, np.pi - v, v) % (2.0 * np.pi)
    across = 1.0 + tube * np.cos(v)
    X = np.column_stack([across * np.cos(u), across * np.sin(u), tube * np.sin(v)])
    truth = np.column_stack([u, v])
    description = "The surface of a torus; truth is the angles around the hole and the tube."
    return _in_space("torus", with_noise(X, noise, rng), truth, description)
