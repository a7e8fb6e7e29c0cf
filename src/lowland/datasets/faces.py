"""Drawn faces: small grey pictures whose person, smile and light are known."""

from __future__ import annotations

import numpy as np

from lowland.datasets._base import Dataset, SeedLike, checked, with_noise

SIDE = 32  # pixels
SOFT = 0.05  # width of an edge, in units of half the picture
# What makes a person: mean and deviation of each measure, in units of half the picture.
PERSON = {
    "width": (0.62, 0.06),
    "height": (0.80, 0.05),
    "eye_height": (0.18, 0.05),
    "eye_distance": (0.29, 0.04),
    "eye_size": (0.085, 0.016),
    "brow": (0.16, 0.03),
    "nose": (0.17, 0.04),
    "mouth_height": (-0.43, 0.04),
    "mouth_width": (0.25, 0.05),
    "hair": (0.42, 0.10),
    "skin": (0.76, 0.06),
    "hair_tone": (0.30, 0.14),
    "beard": (0.0, 0.08),
}


def drawn_faces(
    n_persons: int = 20, n_pictures: int = 10, *, noise: float = 0.02, random_state: SeedLike = None
) -> Dataset:
    """Pictures of drawn faces, 32 x 32 pixels: each person smiles and is lit differently.

    A stand-in for photographs of faces, which are not part of the package. A person has 13 fixed
    measures, such as the distance of the eyes and the tone of the skin. The pictures of a person
    differ in the smile, in the side that the light comes from, and in its brightness.

    Parameters
    ----------
    n_persons : int, default=20
        Number of persons.
    n_pictures : int, default=10
        Number of pictures of each person.
    noise : float, default=0.02
        Standard deviation of the Gaussian noise added to the pixels, which go from 0 to 1.
    random_state : None, int, Generator or RandomState, default=None
        An integer gives the same rows every time.

    Returns
    -------
    Dataset
        ``X`` (n_persons * n_pictures, 1024): rows of pixels from the top, 0 is black. ``y`` is the
        person, and the pictures of a person follow one another. ``truth`` has a row of smile
        (-1 to 1), side of the light (-1 is left, 1 is right) and brightness for each picture.

    Examples
    --------
    >>> from lowland.datasets import drawn_faces
    >>> drawn_faces(5, 4, random_state=0)
    Dataset('drawn_faces', 20 rows x 1024 columns, 5 classes, 3-D truth)
    """
    rng = checked("drawn_faces", **locals())
    mean, deviation = np.array(list(PERSON.values())).T
    persons = mean + deviation * np.clip(rng.standard_normal((n_persons, len(mean))), -2.0, 2.0)
    n = n_persons * n_pictures
    smile, light = rng.uniform(-1.0, 1.0, (2, n))
    brightness = rng.uniform(0.8, 1.1, n)
    y = np.repeat(np.arange(n_persons), n_pictures)
    X = np.empty((n, SIDE * SIDE))
    for row in range(n):
        measures = dict(zip(PERSON, persons[y[row]].tolist(), strict=True))
        X[row] = _face(measures, smile[row], light[row], brightness[row]).ravel()
    return Dataset(
        name="drawn_faces",
        X=np.clip(with_noise(X, noise, rng), 0.0, 1.0),
        y=y,
        truth=np.column_stack([smile, light, brightness]),
        feature_names=tuple(f"pixel{pixel}" for pixel in range(SIDE * SIDE)),
        label_names=tuple(f"person {person + 1}" for person in range(n_persons)),
        description="Drawn faces of 32 x 32 pixels; truth is smile, side of the light, brightness.",
    )


def _face(person: dict[str, float], smile: float, light: float, brightness: float) -> np.ndarray:
    """One picture; x goes to the right and y upward, both from -1 to 1."""
    place = (np.arange(SIDE) + 0.5) / SIDE * 2.0 - 1.0
    x, y = np.meshgrid(place, -place)
    width, height = person["width"], person["height"]
    image = np.full(x.shape, 0.45)

    def paint(cover: np.ndarray, tone: float | np.ndarray) -> None:
        image[:] += cover * (tone - image)

    # Behind the face the hair, then the face with a shadow on the side away from the light.
    paint(_ellipse(x, (y - 0.12) / 1.05, width + 0.10, height + 0.02), person["hair_tone"])
    shade = person["skin"] * (1.0 + 0.30 * light * np.clip(x / width, -1.0, 1.0))
    face = _ellipse(x, y, width, height)
    paint(face, shade)
    paint(face * _step(y - person["hair"] - 0.15 * x**2), person["hair_tone"])
    paint(face * _step(-0.25 - y) * np.clip(person["beard"] * 4, 0.0, 0.6), person["hair_tone"])
    for side in (-1.0, 1.0):
        across, up = x - side * person["eye_distance"], y - person["eye_height"]
        paint(_ellipse(across, up, 1.6 * person["eye_size"], person["eye_size"]), 0.95)
        paint(_ellipse(across, up, 0.8 * person["eye_size"], 0.8 * person["eye_size"]), 0.1)
        line = up - person["brow"] + 1.5 * across**2
        paint(_bump(line, 0.035) * _step(0.15 - np.abs(across)), person["hair_tone"] * 0.8)
    nose = _bump(x - 0.05 * light, 0.04) * _step(y + person["nose"]) * _step(0.1 - y)
    paint(0.5 * nose, 0.5 * shade)
    across = x / person["mouth_width"]
    line = y - person["mouth_height"] - 0.14 * smile * (across**2 - 0.5)
    paint(_bump(line, 0.05) * _step(1.0 - np.abs(across)), 0.25)
    return np.clip(image * brightness, 0.0, 1.0)


def _step(value: np.ndarray) -> np.ndarray:
    """0 below 0 and 1 above it, with a soft edge."""
    return 1.0 / (1.0 + np.exp(np.clip(-value / (0.4 * SOFT), -60.0, 60.0)))


def _bump(value: np.ndarray, width: float) -> np.ndarray:
    """1 on a line and 0 away from it."""
    return np.exp(-((value / width) ** 2))


def _ellipse(x: np.ndarray, y: np.ndarray, width: float, height: float) -> np.ndarray:
    """1 inside of an ellipse around the origin and 0 outside, with a soft edge."""
    radius = np.sqrt((x / width) ** 2 + (y / height) ** 2)
    return _step((1.0 - radius) * min(width, height))
