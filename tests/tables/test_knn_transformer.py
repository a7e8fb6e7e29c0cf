"""``KNNTransformer`` in the place of scikit-learn's ``KNeighborsTransformer``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.exceptions import NotFittedError
from sklearn.manifold import TSNE, Isomap
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer
from sklearn.pipeline import make_pipeline

import lowland
from lowland._base.errors import DataError, ModelFileError, ParameterError
from lowland._engines.neighbors import search
from lowland.neighbors import KNNTransformer, knn_graph
from support.cases import each

RNG = np.random.default_rng(0)
IRREGULAR = RNG.gamma(0.7, size=(300, 6)) * [1, 30, 0.01, 5, 1, 2]
TIED = RNG.normal(size=(200, 3)).round(1)
REPEATED = np.vstack([TIED, TIED[:40], TIED[:5]])
SPARSE = scipy.sparse.random(150, 40, 0.2, format="csr", random_state=0)


def lists(graph, stored):
    """Indices and distances of each row; every row stores as many."""
    assert (np.diff(graph.indptr) == stored).all()
    return graph.indices.reshape(-1, stored), graph.data.reshape(-1, stored)


def check_same_neighbors(ours, theirs, X, queries):
    """Equal distances, rank by rank; equal indices where no tie leaves a choice."""
    k = len(theirs.indices) // theirs.shape[0]
    (our_ids, our_d), (their_ids, their_d) = lists(ours, k), lists(theirs, k)
    np.testing.assert_allclose(our_d, their_d, rtol=1e-9, atol=1e-7)
    assert (np.diff(our_d) >= 0).all()
    farthest = their_d[:, -1:]
    for i in range(len(our_ids)):
        inner = their_d[i] < farthest[i] - 1e-7
        assert {*their_ids[i][inner]} <= {*our_ids[i]}
        rows = X[our_ids[i]] - queries[i]
        np.testing.assert_allclose(np.sqrt((rows**2).sum(axis=1)), our_d[i], atol=1e-7)


@each("X", [IRREGULAR, TIED, REPEATED], ids=["irregular", "ties", "copies"])
@each("k", [1, 5, 60])
def test_the_neighbors_are_those_of_scikit_learn(X, k):
    ours, theirs = KNNTransformer(n_neighbors=k), KNeighborsTransformer(n_neighbors=k)
    check_same_neighbors(ours.fit_transform(X), theirs.fit_transform(X), X, X)
    new = X[:50] + 0.05
    check_same_neighbors(ours.transform(new), theirs.transform(new), X, new)


def test_sparse_rows_and_new_sparse_rows():
    ours, theirs = KNNTransformer(6), KNeighborsTransformer(n_neighbors=6)
    dense, new = SPARSE.toarray(), SPARSE[:20] * 1.1
    check_same_neighbors(ours.fit_transform(SPARSE), theirs.fit_transform(SPARSE), dense, dense)
    check_same_neighbors(ours.transform(new), theirs.transform(new), dense, new.toarray())


def test_a_row_is_its_own_first_neighbor_also_among_copies():
    copies = np.vstack([np.zeros((12, 2)), RNG.normal(size=(20, 2))])
    ids, distances = lists(KNNTransformer(4).fit_transform(copies), 5)
    np.testing.assert_array_equal(ids[:, 0], np.arange(32))
    assert (distances[:, 0] == 0).all()
    assert all(len({*row}) == 5 for row in ids)


def test_new_rows_have_no_neighbor_of_their_own():
    model = KNNTransformer(3).fit(IRREGULAR)
    graph = model.transform(IRREGULAR[:10] + 1.0)
    assert graph.shape == (10, 300)
    assert (graph.data > 0).all()
    again = KNNTransformer(3)
    assert abs(again.fit_transform(IRREGULAR) - again.transform(IRREGULAR)).max() == 0
    alone = model.transform(IRREGULAR[4:5] + 1.0)
    assert abs(alone - graph[4]).max() == 0


def test_connectivity_stores_ones_for_the_row_and_its_neighbors():
    ours = KNNTransformer(5, mode="connectivity").fit(IRREGULAR)
    theirs = KNeighborsTransformer(n_neighbors=5, mode="connectivity").fit(IRREGULAR)
    for graph in (ours.fit_transform(IRREGULAR), ours.transform(IRREGULAR)):
        assert abs(graph - theirs.transform(IRREGULAR)).max() == 0
        assert (np.diff(graph.indptr) == 5).all()
    itself = KNNTransformer(1, mode="connectivity").fit_transform(IRREGULAR)
    assert abs(itself - scipy.sparse.identity(300)).max() == 0


def test_given_distances():
    D = scipy.spatial.distance.cdist(IRREGULAR, IRREGULAR)
    model = KNNTransformer(4, metric="precomputed")
    assert abs(model.fit_transform(D) - KNNTransformer(4).fit_transform(IRREGULAR)).max() < 1e-9
    new = scipy.spatial.distance.cdist(IRREGULAR[:3] + 1, IRREGULAR)
    other = KNNTransformer(4).fit(IRREGULAR).transform(IRREGULAR[:3] + 1)
    assert abs(model.transform(new) - other).max() < 1e-9
    assert model.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(DataError, match="square"):
        model.fit(IRREGULAR)


@each(
    "last",
    [
        Isomap(n_neighbors=8, metric="precomputed"),
        TSNE(metric="precomputed", init="random", random_state=0, max_iter=250, perplexity=5),
        DBSCAN(metric="precomputed", eps=0.6, min_samples=4),
        KNeighborsClassifier(n_neighbors=5, metric="precomputed"),
    ],
    ids=lambda last: type(last).__name__,
)
def test_a_pipeline_gives_what_it_gives_with_scikit_learns_transformer(last):
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(60, 4)), rng.normal(size=(60, 4)) + 1.5])
    y = np.repeat([0, 1], 60)
    made = []
    for first in (KNNTransformer(n_neighbors=24), KNeighborsTransformer(n_neighbors=24)):
        model = make_pipeline(first, clone(last))
        if hasattr(last, "predict"):
            made.append(model.fit(X, y).predict_proba(X + 0.1))
        elif hasattr(last, "fit_predict"):
            made.append(model.fit_predict(X))
        else:
            made.append(model.fit_transform(X))
    # t-SNE is chaotic: rounding of a distance is seen after hundreds of steps
    if isinstance(last, TSNE):
        agree = [knn_graph(Y, 10).indices for Y in made]
        shared = [len({*a} & {*b}) for a, b in zip(*agree, strict=True)]
        assert np.mean(shared) > 9
    else:
        np.testing.assert_allclose(made[0], made[1], atol=1e-6)


def test_parameters_copies_and_names():
    model = KNNTransformer(7, metric="cosine", n_jobs=1)
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "KNNTransformer(n_neighbors=7, n_jobs=1, metric='cosine')"
    frame = pd.DataFrame(IRREGULAR, columns=list("abcdef"))
    model.fit(frame)
    assert list(model.feature_names_in_) == list("abcdef")
    assert model.n_samples_fit_ == 300
    assert list(model.get_feature_names_out()[:2]) == ["knntransformer0", "knntransformer1"]
    assert len(model.get_feature_names_out()) == 300
    changed = IRREGULAR.copy()
    model.fit(changed)
    changed[:] = 0.0
    assert model.fitted_rows_.all()


@each("dtype", [np.float32, np.float64])
def test_the_float_type_is_kept(dtype):
    model = KNNTransformer(4)
    assert model.fit_transform(IRREGULAR.astype(dtype)).dtype == dtype
    assert model.transform(IRREGULAR.astype(dtype)).dtype == dtype


def test_new_rows_are_searched_in_cells_where_fitted_rows_are(monkeypatch):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((2060, 12)) * 0.7 ** np.arange(12)
    X, new = table[:2000], table[2000:]
    exact = KNNTransformer(algorithm="exact").fit(X).transform(new)
    assert (KNNTransformer().fit(X).transform(new) != exact).nnz == 0
    by_cells = KNNTransformer(algorithm="cells").fit(X)
    found = by_cells.transform(new)
    true = lists(exact, 6)[1]
    spare = 3 * np.sqrt(0.985 * 0.015 / new.shape[0])
    assert (lists(found, 6)[1] <= true[:, -1:]).mean() >= 0.985 - spare
    assert (by_cells.transform(new[7:8]) != found[7:8]).nnz == 0
    by_cells.fit_transform(X)
    assert 0.8 < by_cells.recall_ <= 1
    monkeypatch.setattr(search, "CELLS_ROWS", 2000)
    monkeypatch.setattr(search, "INDEX_ROWS", 2000)
    assert (KNNTransformer().fit(X).transform(new) != found).nnz == 0
    assert (KNNTransformer(algorithm="exact").fit(X).transform(new) != exact).nnz == 0


def test_what_is_not_possible_is_refused_by_name():
    few = IRREGULAR[:5]
    with pytest.raises(ParameterError, match="n_neighbors=5 is not possible with 5 fitted rows"):
        KNNTransformer(5).fit(few)
    assert KNNTransformer(4).fit_transform(few).nnz == 25
    assert KNNTransformer(5, mode="connectivity").fit_transform(few).nnz == 25
    with pytest.raises(ParameterError, match="mode='both' is not allowed"):
        KNNTransformer(2, mode="both").fit(few)
    with pytest.raises(ParameterError, match="metric='nothing' is not allowed"):
        KNNTransformer(2, metric="nothing").fit(few)
    with pytest.raises(NotFittedError):
        KNNTransformer(2).transform(few)
    with pytest.raises(DataError, match="output does not support sparse data"):
        KNNTransformer(2).set_output(transform="pandas").fit_transform(few)
    with pytest.raises(ValueError, match="features"):
        KNNTransformer(2).fit(few).transform(few[:, :2])


@each("X", [IRREGULAR, SPARSE], ids=["dense", "sparse"])
def test_a_model_file_brings_it_back(X, tmp_path):
    model = KNNTransformer(6).fit(X)
    model.save(tmp_path / "graph.lowland")
    back = lowland.load(tmp_path / "graph.lowland")
    assert back.get_params() == model.get_params()
    assert abs(back.transform(X) - model.transform(X)).max() == 0


def test_a_model_file_that_contradicts_itself_is_refused(tmp_path):
    model = KNNTransformer(6).fit(IRREGULAR)
    model.n_samples_fit_ = 299
    model.save(tmp_path / "graph.lowland")
    with pytest.raises(ModelFileError, match="expected n_samples_fit = 299"):
        lowland.load(tmp_path / "graph.lowland")
    D = scipy.spatial.distance.cdist(IRREGULAR, IRREGULAR)
    given = KNNTransformer(6, metric="precomputed").fit(D)
    given.n_samples_fit_ = 299
    given.save(tmp_path / "graph.lowland")
    with pytest.raises(ModelFileError, match="299 fitted rows, but distances to 300"):
        lowland.load(tmp_path / "graph.lowland")
    model = KNNTransformer(6).fit(IRREGULAR)
    model.fitted_rows_ = None
    model.save(tmp_path / "graph.lowland")
    with pytest.raises(ModelFileError, match="fitted_rows_"):
        lowland.load(tmp_path / "graph.lowland")


@each("metric", ["manhattan", "cosine", "chebyshev", "correlation"])
def test_other_metrics(metric):
    ours = KNNTransformer(n_neighbors=7, metric=metric).fit_transform(IRREGULAR)
    brute = KNeighborsTransformer(n_neighbors=7, metric=metric, algorithm="brute")
    theirs = brute.fit_transform(IRREGULAR)
    np.testing.assert_allclose(lists(ours, 8)[1], lists(theirs, 8)[1], atol=1e-7)
