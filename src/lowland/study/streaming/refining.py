"""Steps that move all rows of a map after they are placed."""

from __future__ import annotations

from typing import Any

from lowland._core.errors import ParameterError
from lowland._core.rows.table import Rows
from lowland._core.wording import PYTHON, Spelling

__all__ = ["check_refinable", "refine"]

REFINABLE = ("TSNE",)


def check_refinable(method: type, spelling: Spelling = PYTHON) -> None:
    """Refuse methods whose maps cannot be refined, before the fit, which may take long."""
    if method.__name__ not in REFINABLE:
        raise ParameterError(
            f"{spelling.option('refine')}: not available for {method.__name__}; it is for "
            f"{', '.join(REFINABLE)}."
        )


def refine(estimator: Any, rows: Rows, Y: Rows, steps: int, *, spelling: Spelling = PYTHON) -> Rows:
    """The places of all rows after some steps on all of them.

    ``rows`` are what the estimator was fitted on, ``Y`` the places of all rows, in the same order.
    """
    check_refinable(type(estimator), spelling)
    try:
        from lowland.distributed.graph import refined  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ParameterError(
            f"{spelling.option('refine')}: steps on all rows are not part of this version; leave "
            "it out."
        ) from error
    return refined(estimator, rows, Y, steps)
