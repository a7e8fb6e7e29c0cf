"""Three ways to the same sums, and the choice among them."""

import numpy as np
import pytest

from lowland import _native
from lowland._base.errors import ParameterError
from lowland._engines.embedding.repulsion import choose_repulsion


def choose(method, n=1797, d=2, dof=1.0, angle=0.2, threads=1):
    return choose_repulsion(method, n, d, dof, angle, threads, owner="TSNE")


def sums(repel, Y):
    potential, forces = np.full(len(Y), np.nan), np.full_like(Y, np.nan)
    repel(Y, potential, forces)
    return potential, forces


def test_auto_takes_the_way_that_costs_least(monkeypatch, half_done):
    taken = []
    for name in ("repel_pairs", "repel_tree", "gather"):
        real = getattr(_native, name)
        record = lambda *args, name=name, real=real: (taken.append(name), real(*args))  # noqa: E731
        monkeypatch.setattr(_native, name, record)
    late, early = half_done(2, 1.0), half_done(2, 1.0, 100)
    late, early = np.tile(late, (6, 1)), np.tile(early, (6, 1))
    late += 0.1 * early
    crowd = np.concatenate([late + np.float32(shift) for shift in np.linspace(0, 9, 15)])
    for Y, way in [
        (late[:300], "repel_pairs"),  # few points
        (early, "gather"),  # a small grid
        (5 * late, "repel_tree"),  # wide and sparse
        (crowd, "gather"),  # so many points that the grid is cheap
        (np.concatenate([crowd, [[1e7, 1e7]]]), "repel_tree"),  # a grid that would not fit
    ]:
        sums(choose("auto", len(Y)), np.ascontiguousarray(Y, dtype=np.float32))
        assert taken[-1] == way
    sums(choose("auto", 10_000, 7), np.zeros((4, 7), np.float32))
    assert taken[-1] == "repel_pairs"


@pytest.mark.parametrize("method", ["barnes_hut", "mesh"])
def test_more_dimensions_than_a_way_knows_are_refused(method):
    with pytest.raises(ParameterError, match=rf"{method}.* n_components=4; use method='exact'"):
        choose(method, d=4)
    assert choose("exact", d=4) is not None
