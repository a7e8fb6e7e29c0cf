"""probe_lists asked by rows that are not among the points, against all scores in numpy."""

import numpy as np
import pytest

from lowland import _native
from support.kernels import each_dtype, each_isa

CELL = 2  # panels


def packed(F):
    width = _native.PANEL_WIDTH_FLOAT32 if F.dtype == np.float32 else _native.PANEL_WIDTH_FLOAT64
    assert len(F) % (CELL * width) == 0
    panels = np.empty((len(F) // width, F.shape[1], width), F.dtype)
    _native.pack_points(F, panels, 1)
    return panels, (F.astype(float) ** 2).sum(axis=1).astype(F.dtype) / 2, width


def probe(F, G, cells, keep, threads=1, isa="auto", lead=None, **change):
    """The best candidates of each row of G among the cells (pairs of panels) it asks."""
    panels, halves, _ = packed(F)
    entry = np.dtype([("score", F.dtype), ("id", np.int32)], align=True)
    entries = np.zeros((len(G), 2 * keep * entry.itemsize), np.uint8)
    counts = np.zeros(len(G), np.int32)
    lists = [np.flatnonzero(cells[:, c]) for c in range(cells.shape[1])]
    ranges = [[CELL * c, CELL * c + CELL] for c in range(cells.shape[1])]
    looks = {}
    if lead is not None:
        tails = [np.sqrt((A[:, lead:].astype(float) ** 2).sum(axis=1)) * 1.00001 for A in (F, G)]
        looks = {"tails": tails[0].astype(F.dtype), "query_tails": tails[1].astype(F.dtype)}
        looks |= {"lead": lead, "rounding": 1e-5}
    arguments = {
        "panels": panels,
        "halves": halves,
        "rows": G,
        "tasks": np.array([0, len(lists)]),
        "ranges": np.array(ranges),
        "list_starts": np.cumsum([0, *map(len, lists)]),
        "queries": np.concatenate(lists).astype(np.int32),
        "entries": entries,
        "counts": counts,
        "thresholds": np.full(len(G), np.finfo(F.dtype).min, F.dtype),
        "query_halves": (G.astype(float) ** 2).sum(axis=1).astype(F.dtype) / 2,
    }
    _native.probe_lists(
        **(arguments | looks | {"keep": keep, "threads": threads, "isa": isa} | change)
    )
    found = []
    for row, count in zip(entries, counts, strict=True):
        own = row.view(entry)[:count]
        found.append(own["id"][np.lexsort((own["id"], -own["score"]))[:keep]])
    return found


def data(dtype, m=37, q=9):
    rng = np.random.default_rng(0)
    width = packed(np.zeros((96, 1), dtype))[2]
    scale = 0.7 ** np.arange(q)
    F = (rng.standard_normal((8 * CELL * width, q)) * scale).astype(dtype)
    G = (rng.standard_normal((m, q)) * scale).astype(dtype)
    return F, G, rng.random((m, 8)) < 0.5, CELL * width


@each_dtype
@each_isa
@pytest.mark.parametrize("lead", [None, 4])
def test_queries_find_the_best_of_the_cells_they_ask(dtype, isa, lead):
    F, G, cells, size = data(dtype)
    found = probe(F, G, cells, 10, isa=isa, lead=lead)
    scores = -((F.astype(float)[None] - G.astype(float)[:, None]) ** 2).sum(axis=2)
    seen = np.repeat(cells, size, axis=1)
    for row, ids in enumerate(found):
        best = np.argsort(np.where(seen[row], -scores[row], np.inf), kind="stable")
        assert ids.tolist() == best[: min(10, seen[row].sum())].tolist()


def test_a_query_may_have_the_number_of_a_point():
    F, _, _, _ = data(np.float32)
    found = probe(F, F[:20].copy(), np.ones((20, 8), bool), 5)
    assert [int(ids[0]) for ids in found] == list(range(20))


def test_what_does_not_fit_is_refused():
    F, G, cells, _ = data(np.float32)
    for change in (
        {"query_halves": np.zeros(len(G) - 1, np.float32)},
        {"query_tails": np.zeros(len(G), np.float32)},  # of the queries only
        {"query_halves": None, "query_tails": np.zeros(len(G), np.float32)},
        {"counts": np.zeros(len(G) - 1, np.int32)},
        {"queries": np.full(int(cells.sum()), len(G), np.int32)},
    ):
        with pytest.raises(ValueError, match=r"probe_lists|knn"):
            probe(F, G, cells, 10, **change)
