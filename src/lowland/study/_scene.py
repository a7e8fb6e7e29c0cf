"""What pictures of a method are drawn of, what they are, and when a method has one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland.study.fitting import Fit
from lowland.study.tables.preparing import Prepared

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Scene(NamedTuple):
    """What a picture is drawn of."""

    prepared: Prepared
    fit: Fit
    color: str | None

    @property
    def source(self) -> str:
        return Path(self.prepared.table.source).name

    @property
    def maker(self) -> str:
        """What makes rows of places, for captions."""
        return "model" if hasattr(self.fit.estimator, "uncertainty") else "network"

    @property
    def grid(self) -> tuple[np.ndarray, str]:
        """Places of the units, and the shape of their cells."""
        estimator: Any = self.fit.estimator
        return np.asarray(estimator.unit_places_), getattr(estimator, "grid", "rectangle")

    def labels(self) -> np.ndarray | None:
        """The label of each row that colors the map."""
        return None if self.color is None else self.prepared.table.column(self.color).to_numpy()


class Drawn(NamedTuple):
    """A picture, and how to read it in one or two sentences."""

    figure: Figure
    caption: str


class Kind(NamedTuple):
    """A kind of picture: its name, what a method must have for it, and how it is drawn.

    ``needs`` are alternatives: all attributes of one of them are enough. ``draw`` may find that
    there is nothing to draw, such as labels of a table without labels. Without ``own_file`` it is
    in the report only.
    """

    name: str  # of the file, without its suffix
    needs: tuple[tuple[str, ...], ...]
    draw: Callable[[Scene], Drawn | None]
    own_file: bool = True
