"""Recognition by eigen-images (Turk & Pentland 1991): the nearest known picture of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland.neighbors import knn_query
from lowland.plot._figure import TEXT, check_table, clean, new_figure, write_title
from lowland.plot.images import TILE, check_axes, close_up, show_image
from lowland.plot.palettes import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = ("picture", "rebuilt", "nearest known")
RIGHT, WRONG = "#117733", "#cc3311"


def recognition_strip(
    X: np.ndarray,
    known: np.ndarray,
    mean: np.ndarray,
    components: np.ndarray,
    image_shape: Sequence[int],
    *,
    labels: Sequence[Any] | np.ndarray | None = None,
    known_labels: Sequence[Any] | np.ndarray | None = None,
    title: str | None = None,
) -> Figure:
    """Draw pictures, their reconstructions, and the nearest known picture of each.

    A column per picture: x itself; its reconstruction m + C^T C (x - m), with its error, the root
    of the mean squared difference of the pixels in percent of the range of the known pictures; and
    the known picture whose scores C (x - m) are nearest. A picture of another kind than the known
    ones has a large error, although some known picture is nearest to it, too.

    Parameters
    ----------
    X : array of shape (n_images, n_pixels)
        The pictures to recognize, a handful.
    known : array of shape (n_known, n_pixels)
        The pictures to choose from.
    mean, components, image_shape, title
        See :func:`reconstruction_strip`.
    labels, known_labels : arrays of shape (n_images,) and (n_known,), optional
        Who is in the pictures; None or NaN: nobody that is known. If both are given, the name
        below is green where the nearest picture shows the same and red where it does not.

    Returns
    -------
    matplotlib.figure.Figure

    References
    ----------
    Turk & Pentland (1991), Eigenfaces for recognition, J. Cognitive Neuroscience 3.

    Examples
    --------
    >>> from lowland import PCA
    >>> from lowland.datasets import drawn_faces
    >>> faces = drawn_faces(5, 6, random_state=0)
    >>> pca = PCA(8).fit(faces.X[6:])
    >>> figure = recognition_strip(
    ...     faces.X[:2], faces.X[6:], pca.mean_, pca.components_, (32, 32)
    ... )
    >>> len(figure.axes)
    6
    """
    mean, components, shape = check_axes(mean, components, image_shape)
    X, known = _pictures(X, "X", mean), _pictures(known, "known", mean)
    names, known_names = _names(labels, len(X), "labels"), _names(known_labels, len(known), "known")
    scores = (X - mean) @ components.T
    rebuilt = mean + scores @ components
    errors = np.sqrt(((X - rebuilt) ** 2).mean(axis=1)) / (float(np.ptp(known)) or 1.0)
    nearest = knn_query((known - mean) @ components.T, scores, 1).indices[:, 0]
    tall = TILE * shape[0] / shape[1]
    figure = new_figure(TILE * len(X) + 0.4, (tall + 0.25) * len(ROWS) + 0.3 * bool(title))
    close_up(figure)
    grid = figure.subplots(len(ROWS), len(X), squeeze=False)
    for column in range(len(X)):
        own, found = names[column], known_names[nearest[column]]
        limits = float(X[column].min()), float(X[column].max())
        show_image(grid[0, column], X[column], shape, own, limits)
        error = f"error {errors[column]:.1%}"
        show_image(grid[1, column], rebuilt[column], shape, error, limits)
        other = known[nearest[column]]
        show_image(grid[2, column], other, shape, found, (float(other.min()), float(other.max())))
        if labels is not None and known_labels is not None:
            grid[2, column].title.set_color(RIGHT if own == found else WRONG)
    for axes, row in zip(grid[:, 0], ROWS, strict=True):
        axes.set_ylabel(row, color=INK, fontsize=9, **TEXT)
    write_title(figure, title)
    return figure


def _pictures(X: Any, name: str, mean: np.ndarray) -> np.ndarray:
    X = check_table(X, name)
    if X.shape[1] != mean.size:
        raise DataError(f"{name} has {X.shape[1]} columns, but the mean has {mean.size} pixels.")
    return X


def _names(labels: Any, n: int, name: str) -> list[str]:
    if labels is None:
        return [""] * n
    labels = list(labels)
    if len(labels) != n:
        raise DataError(f"{name}: there are {len(labels)} labels for {n} pictures.")
    return ["nobody" if _is_missing(label) else clean(str(label), 16) for label in labels]


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and np.isnan(label))
