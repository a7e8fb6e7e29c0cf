"""The base of methods that lay a grid or a curve through the data."""

from __future__ import annotations

from lowland._base.base import Invertible
from lowland._engines.grids.lattice import Net


class TopographicReducer(Invertible):
    """A method writes :meth:`net`, which ``lowland map`` draws through the data."""

    def net(self) -> Net:
        """The fitted curve or grid in the columns of X: ``nodes``, ``edges`` and ``closed``."""
        raise NotImplementedError
