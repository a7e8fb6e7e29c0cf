"""New rows in a t-SNE map of many rows: index and field are kept, and change no byte."""

import pickle

import numpy as np
import pytest

import lowland
from lowland import LLE, TSNE, LaplacianEigenmaps
from lowland._engines.embedding import placement
from lowland._engines.neighbors import cell_index, search
from lowland.datasets import digits
from lowland.metrics import trustworthiness

FIT, NEW = digits().X[:1400], digits().X[1400:]


@pytest.fixture(scope="module")
def fitted():
    return TSNE(perplexity=15, max_iter=150, random_state=0).fit(FIT)


@pytest.fixture(autouse=True)
def many_rows(monkeypatch):
    """Tables of a thousand rows count as large."""
    monkeypatch.setattr(search, "INDEX_ROWS", 1000)
    monkeypatch.setattr(placement, "GRID_POINTS", 1000)
    monkeypatch.setattr(cell_index, "CELL_ROWS", 50)


@pytest.fixture
def model(fitted):
    return pickle.loads(pickle.dumps(fitted))


@pytest.fixture
def builds(monkeypatch):
    """How often an index of cells and a field were computed."""
    counts = {"index": 0, "field": 0}
    build, field = cell_index.CellIndex.__init__, placement.ParticleMesh.field

    def counted_build(self, *rest):
        counts["index"] += 1
        build(self, *rest)

    def counted_field(self, *rest, **options):
        counts["field"] += 1
        return field(self, *rest, **options)

    monkeypatch.setattr(cell_index.CellIndex, "__init__", counted_build)
    monkeypatch.setattr(placement.ParticleMesh, "field", counted_field)
    return counts


def test_index_and_field_are_computed_once(model, builds):
    model.transform(NEW)
    model.transform(NEW[:3])
    assert builds == {"index": 1, "field": 1}


def test_a_row_alone_lands_where_it_lands_in_company(model):
    together = model.transform(NEW)
    for i in (0, 17, 200):
        assert model.transform(NEW[[i]]).tobytes() == together[i].tobytes()
    order = np.random.default_rng(0).permutation(len(NEW))
    assert model.transform(NEW[order]).tobytes() == together[order].tobytes()


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_change_no_byte(n_jobs, fitted):
    model = pickle.loads(pickle.dumps(fitted)).set_params(n_jobs=n_jobs)
    assert model.transform(NEW).tobytes() == fitted.transform(NEW).tobytes()


def test_rows_equal_to_fitted_rows_keep_their_places(model):
    assert model.transform(FIT).tobytes() == model.embedding_.tobytes()


def test_cells_place_rows_as_well_as_all_pairs_do(model, monkeypatch):
    by_cells = model.transform(NEW)
    monkeypatch.setattr(search, "INDEX_ROWS", 10**9)
    by_pairs = pickle.loads(pickle.dumps(model)).transform(NEW)
    assert by_cells.tobytes() != by_pairs.tobytes()
    cells, pairs = (float(trustworthiness(NEW, Z, n_neighbors=10)) for Z in (by_cells, by_pairs))
    assert cells > pairs - 0.002


def test_what_is_kept_is_no_part_of_the_model(model, tmp_path):
    before = pickle.dumps(model)
    placed = model.transform(NEW)
    assert pickle.dumps(model) == before
    model.save(tmp_path / "model.lowland")
    loaded = lowland.load(tmp_path / "model.lowland")
    assert loaded.transform(NEW).tobytes() == placed.tobytes()
    assert pickle.loads(before).transform(NEW).tobytes() == placed.tobytes()


def test_a_new_fit_and_a_changed_map_forget_what_was_kept(builds):
    model = TSNE(perplexity=15, max_iter=20, random_state=0).fit(FIT)
    first = model.transform(NEW)
    builds.update(index=0, field=0)
    model.fit(FIT[:1200])
    fields = builds["field"]  # of the fit itself
    second = model.transform(NEW)
    assert builds["index"] == 1
    assert builds["field"] == fields + 1
    assert second.tobytes() != first.tobytes()
    model.embedding_ += 1.0  # in place
    assert np.abs(model.transform(NEW) - second - 1.0).max() < 0.5
    assert builds["field"] == fields + 2


@pytest.mark.parametrize("make", [LaplacianEigenmaps, LLE])
def test_other_methods_keep_their_index_too(make, builds):
    model = make(n_neighbors=12, random_state=0).fit(FIT)
    together = model.transform(NEW)
    assert model.transform(NEW[[5]]).tobytes() == together[5].tobytes()
    assert builds["index"] == 1
