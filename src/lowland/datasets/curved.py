"""A curve and two surfaces that no flat map can keep whole."""

from __future__ import annotations

import numpy as np

from lowland._core.random import generator
from lowland.datasets._base import XYZ, Dataset, check, with_noise


def helix(
    n_samples: int = 1000,
    *,
    turns: float = 3.0,
    pitch: float = 1.0,
    noise: float = 0.0,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
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
    check(
        "helix",
        n_samples=n_samples,
        turns=turns,
        pitch=pitch,
        noise=noise,
        random_state=random_state,
    )
    rng = generator(random_state)
    climb = pitch / (2.0 * np.pi)
    t = 2.0 * np.pi * turns * rng.random(n_samples)
    X = np.column_stack([np.cos(t), np.sin(t), climb * t])
    return Dataset(
        name="helix",
        X=with_noise(X, noise, rng),
        y=None,
        truth=t[:, None] * np.hypot(1.0, climb),
        feature_names=XYZ,
        label_names=None,
        description="A circular helix; truth is the arc length.",
    )


def sphere(
    n_samples: int = 1000,
    *,
    noise: float = 0.0,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Dataset:
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
    check("sphere", n_samples=n_samples, noise=noise, random_state=random_state)
    rng = generator(random_state)
    z = rng.uniform(-1.0, 1.0, size=n_samples)
    latitude = np.arcsin(z)
    longitude = rng.uniform(-np.pi, np.pi, size=n_samples)
    across = np.cos(latitude)
    X = np.column_stack([across * np.cos(longitude), across * np.sin(longitude), z])
    return Dataset(
        name="sphere",
        X=with_noise(X, noise, rng),
        y=None,
        truth=np.column_stack([latitude, longitude]),
        feature_names=XYZ,
        label_names=None,
        description="The surface of the unit sphere; truth is latitude and longitude.",
    )


def torus(
    n_samples: int = 1000,
    *,
    tube: float = 0.4,
    noise: float = 0.0,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
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
    check("torus", n_samples=n_samples, tube=tube, noise=noise, random_state=random_state)
    rng = generator(random_state)
    u, v = 2.0 * np.pi * rng.random((2, n_samples))
    # Rejection without waste: a v that would be refused, with probability (1 - tube cos v) / 2,
    # becomes pi - v, where that same probability is the one of being kept.
    refused = 2.0 * rng.random(n_samples) > 1.0 + tube * np.cos(v)
    v = np.where(refused, np.pi - v, v) % (2.0 * np.pi)
    across = 1.0 + tube * np.cos(v)
    X = np.column_stack([across * np.cos(u), across * np.sin(u), tube * np.sin(v)])
    return Dataset(
        name="torus",
        X=with_noise(X, noise, rng),
        y=None,
        truth=np.column_stack([u, v]),
        feature_names=XYZ,
        label_names=None,
        description="The surface of a torus; truth is the angles around the hole and the tube.",
    )
