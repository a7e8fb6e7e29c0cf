"""Maps with planted errors, their pictures, and what the program says of them.

``make_pictures.py trust`` draws the pictures and writes the sentences into one file beside them, in
the same run; ``make_pages.py`` puts the sentences into the page. Neither can be changed alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland import PCA, TSNE, datasets
from lowland.plot import trust_map
from lowland.trust import Trust, trust

__all__ = ["FOLDER", "PLANTS", "SENTENCES", "Plant", "are_drawn", "draw", "recorded_sentences"]

FOLDER = Path(__file__).resolve().parent / "pictures" / "trust"
SENTENCES = FOLDER / "sentences.json"
NOISE_PERPLEXITY = 3.0


class Plant(NamedTuple):
    """Data, a map of them, and the rows whose places are known to be wrong."""

    X: np.ndarray
    Y: np.ndarray
    wrong: np.ndarray
    make_map: Callable[[Any, int], np.ndarray] | None = None

    def judged(self) -> Trust:
        """What the program finds."""
        return trust(self.X, self.Y, make_map=self.make_map)


def clusters(centers: list[tuple[float, float, float]], rows: int, seed: int) -> np.ndarray:
    """Rows around each center; nearly flat, so that two columns make a good map."""
    noise = np.random.default_rng(seed).normal(size=(len(centers) * rows, 3))
    return np.repeat(np.array(centers), rows, axis=0) + noise * [1.0, 1.0, 0.3]


def fake_gap() -> Plant:
    """One of three clusters is cut, and its halves are moved apart."""
    X = clusters([(0, 0, 0), (9, 0, 0), (4.5, 8, 0)], 400, seed=0)
    Y = X[:, :2].copy()
    cut = np.arange(800, 1200)
    Y[cut, 0] += np.where(X[cut, 0] > 4.5, 1.5, -1.5)
    return Plant(X, Y, cut[np.abs(X[cut, 0] - 4.5) < 0.1])


def torn() -> Plant:
    """The rows of one of three clusters are dealt out to three places, as cards are."""
    X = clusters([(0, 0, 0), (9, 0, 0), (18, 0, 0)], 300, seed=0)
    Y = X[:, :2].copy()
    dealt = np.arange(300, 600)
    Y[dealt] += np.array([(0, 0), (-3.5, 7), (5, 7)])[dealt % 3]
    return Plant(X, Y, dealt)


def sphere() -> Plant:
    """A sphere as a map of the world: cut open along the meridian at its left and right edge."""
    X = np.random.default_rng(0).normal(size=(800, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    longitude, latitude = np.arctan2(X[:, 1], X[:, 0]), np.arcsin(X[:, 2])
    Y = np.column_stack([longitude, latitude])
    return Plant(X, Y, np.flatnonzero(np.abs(longitude) > 3.1))


def misplaced() -> Plant:
    """One point in a hundred has the place of another."""
    X = clusters([(0, 0, 0), (9, 2, 0), (4, 8, 0), (-5, 7, 0), (12, 10, 0)], 200, seed=1)
    Y = X[:, :2].copy()
    one, other = 200 * np.arange(5), 200 * np.arange(5) + 100
    Y[one], Y[other] = Y[np.roll(one, 1)], Y[np.roll(other, 2)]
    return Plant(X, Y, np.concatenate([one, other]))


def overlaid() -> Plant:
    """Four clusters by PCA, two of which differ in the third dimension only."""
    X = clusters([(0, 0, -3), (0, 0, 3), (14, 0, 0), (0, 14, 0)], 300, seed=2)
    return Plant(X, PCA(2).fit_transform(X), np.arange(600))


def noise() -> Plant:
    """One Gaussian cloud in five dimensions, by t-SNE with a perplexity that is too small."""
    X = np.random.default_rng(0).normal(size=(600, 5))

    def make_map(X: Any, seed: int) -> np.ndarray:
        return TSNE(perplexity=NOISE_PERPLEXITY, random_state=seed).fit_transform(X)

    return Plant(X, make_map(X, 0), np.arange(600), make_map)


def good() -> Plant:
    """1797 handwritten digits by t-SNE."""

    def make_map(X: Any, seed: int) -> np.ndarray:
        return TSNE(random_state=seed).fit_transform(X)

    X = datasets.digits().X
    return Plant(X, make_map(X, 0), np.arange(0), make_map)


PLANTS: dict[str, Callable[[], Plant]] = {
    "fake-gap": fake_gap,
    "torn": torn,
    "sphere": sphere,
    "misplaced": misplaced,
    "overlaid": overlaid,
    "noise": noise,
    "good": good,
}


def draw(name: str) -> tuple[Any, list[list[str]]]:
    """The picture of a plant, and the level and text of each sentence."""
    found = PLANTS[name]().judged()
    figure = beside_null(found) if name == "noise" else trust_map(found)
    return figure, [[sentence.level, sentence.text] for sentence in found.sentences]


def beside_null(found: Trust) -> Any:
    """The map, and the map of data without structure to compare it with."""
    from lowland.plot._figure import new_figure
    from lowland.plot._points import frame, point_style
    from lowland.plot._style import DARK_GREY
    from lowland.plot.trust import BESIDE, draw_trust, draw_trust_legend

    inches = 4.0
    figure = new_figure(2 * inches + BESIDE, inches + 0.2)
    left, right, beside = figure.subplots(1, 3, width_ratios=[inches, inches, BESIDE])
    assert found.chance is not None
    null = found.chance.null.coordinates
    frame(left, null)
    left.scatter(*null.T, c=DARK_GREY, **point_style(len(null), inches))  # no color has a meaning
    draw_trust(right, found, (0, 1), inches)
    left.set_title("data without structure", fontsize=10)
    right.set_title("the map", fontsize=10)
    draw_trust_legend(beside, found, BESIDE, inches)
    return figure


def are_drawn() -> bool:
    """Whether all pictures and the sentences are there."""
    pictures = [FOLDER / f"{name}.png" for name in PLANTS]
    return all(path.exists() for path in [SENTENCES, *pictures])


def recorded_sentences(name: str) -> list[list[str]]:
    """The level and the text of each sentence, as they were when the picture was drawn."""
    return json.loads(SENTENCES.read_text(encoding="utf-8"))[name]
