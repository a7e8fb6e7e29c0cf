"""What a run asks of a method before it fits it."""

from __future__ import annotations

from lowland._core.base import Reducer
from lowland._core.errors import ParameterError

__all__ = ["accepts_missing_distances", "takes_distances", "wants_pca"]


def takes_distances(cls: type[Reducer]) -> bool:
    """Whether the method can be fitted on a matrix of distances."""
    try:
        cls(metric="precomputed").check_params()
    except (TypeError, ParameterError):
        return False
    return True


def accepts_missing_distances(cls: type[Reducer]) -> bool:
    """Whether some of these distances may be unknown."""
    return getattr(cls, "may_miss", False)


def wants_pca(cls: type[Reducer]) -> bool:
    """Whether wide tables should be reduced by PCA first."""
    return cls.family() == "neighbor"
