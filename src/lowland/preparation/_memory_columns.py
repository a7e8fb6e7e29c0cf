"""Columns of rows that are in memory, as the choice of a scale sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lowland.preparation._scales import Scale, choose_scale, robust_scale, standard_scale
from lowland.preparation._weights import gower_scale, keep_binary

if TYPE_CHECKING:
    from lowland.preparation.encoding import Encoding


class InMemory:
    """Columns of an array or a sparse matrix; tables in leaves have ``SummedColumns`` instead."""

    def __init__(self, X: Any) -> None:
        self.X = X

    @property
    def n_columns(self) -> int:
        return self.X.shape[1]

    def plain(self, n: int) -> InMemory:
        """The first n columns."""
        return InMemory(self.X[:, :n])

    def choose(self, names: Sequence[str] | None) -> Scale:
        return choose_scale(self.X, names)

    def standard(self, reason: str) -> Scale:
        return standard_scale(self.X, reason)

    def robust(self, reason: str) -> Scale:
        return robust_scale(self.X, reason)

    def keep_binary(self, found: Scale) -> Scale:
        return keep_binary(found, self.X)

    def gower(self, encoding: Encoding) -> Scale:
        return gower_scale(self.X, encoding)
