"""Finished maps of several tables, each rotated, scaled and shifted onto those before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._core.errors import DataError
from lowland._engines.linalg.procrustes import align
from lowland.alignment._matches import Matches, set_of


class Turn(NamedTuple):
    """z = scale * (y R) + shift, and the share of the partners' variance that it does not reach."""

    R: np.ndarray
    scale: float
    shift: np.ndarray
    disparity: float

    def of(self, Y: np.ndarray) -> np.ndarray:
        return self.scale * np.einsum("nq,qr->nr", Y, self.R) + self.shift


def turns_onto_first(
    maps: list[np.ndarray], matches: Matches, starts: np.ndarray, owner: str
) -> list[Turn]:
    """For each map the similarity that brings its matched rows nearest to their partners.

    The first map stays. Then comes the map with the most matches with those already turned, and
    so on. A row with several partners counts once for each.
    """
    q, n_sets = maps[0].shape[1], len(maps)
    turns: list[Turn | None] = [None] * n_sets
    turns[0] = Turn(np.eye(q), 1.0, np.zeros(q), 0.0)
    whole = np.full((int(starts[-1]), q), np.nan)
    whole[: starts[1]] = maps[0]
    both = np.concatenate([matches.rows, matches.columns])
    partners = np.concatenate([matches.columns, matches.rows])
    tables = set_of(both, starts)
    while None in turns:
        ready = ~np.isnan(whole[partners, 0])
        counts = np.bincount(tables[ready], minlength=n_sets)
        counts[[turn is not None for turn in turns]] = -1
        d = int(counts.argmax())
        if counts[d] < q + 1:
            raise DataError(
                f"{owner}: Xs[{d}] has {counts[d]} matches with the tables before it, but "
                f"method='procrustes' needs at least n_components + 1 = {q + 1}; give more "
                "correspondences."
            )
        some = ready & (tables == d)
        found = align(whole[partners[some]], maps[d][both[some] - starts[d]])
        turns[d] = Turn(found.rotation, found.scale, found.translation, found.disparity)
        whole[starts[d] : starts[d + 1]] = turns[d].of(maps[d])  # type: ignore[union-attr]
    return [turn for turn in turns if turn is not None]
