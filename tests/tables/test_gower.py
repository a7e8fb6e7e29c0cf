"""Gower's distance: of mixed tables through their preparation, of numbers in every method."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import lowland
from lowland._base import registry
from lowland.cli import main
from lowland.errors import ModelFileError, ParameterError
from lowland.metrics import quality, trustworthiness
from lowland.neighbors import knn_graph, knn_query
from lowland.preparation.preparation import Preparation
from lowland.workflow import make_map, place_rows
from support.cases import Cases, each

RNG = np.random.default_rng(3)
X = RNG.gamma(1.0, size=(70, 4)) * [1, 100, 0.01, 0] + [0, -3, 0, 2]
NEW = RNG.gamma(1.5, size=(9, 4)) * [1, 100, 0.01, 0] + [0, -3, 0, 2]


def gower(A: np.ndarray, B: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """The mean over the columns of the difference in units of the range."""
    D = np.zeros((len(A), len(B)))
    for j, width in enumerate(ranges):
        if width > 0:
            D += np.abs(A[:, j, None] - B[None, :, j]) / width
    return D / len(ranges)


D = gower(X, X, np.ptp(X, axis=0))
D_NEW = gower(NEW, X, np.ptp(X, axis=0))


def mixed(n: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.gamma(4.0, 10.0, n),
            "income": rng.gamma(1.0, 3e4, n),
            "town": rng.choice(["A", "B", "C", "D"], n, p=[0.6, 0.3, 0.06, 0.04]),
            "owner": rng.choice(["yes", "no"], n),
            "size": rng.choice(["low", "medium", "high"], n),
        }
    )


def naive(rows: pl.DataFrame, fitted: pl.DataFrame) -> np.ndarray:
    """Pair by pair, column by column."""
    order = ["low", "medium", "high"]
    found = np.zeros((len(rows), len(fitted)))
    for i, a in enumerate(rows.iter_rows(named=True)):
        for j, b in enumerate(fitted.iter_rows(named=True)):
            parts = [
                abs(a[name] - b[name]) / (fitted[name].max() - fitted[name].min())
                for name in ("age", "income")
            ]
            parts += [float(a[name] != b[name]) for name in ("town", "owner")]
            parts.append(abs(order.index(a["size"]) - order.index(b["size"])) / 2)
            found[i, j] = sum(parts) / 5
    return found


OPTIONS = {"categories": "one-hot", "order": {"size": ["low", "medium", "high"]}}


def test_a_mixed_table_is_compared_by_gower_and_new_rows_too():
    table, new = mixed(50, 0), mixed(11, 1)
    made = make_map(table, "classical_mds", metric="gower", **OPTIONS)
    ready = made.model.steps[0]
    names = list(ready.feature_names_in_)
    rows, others = ready.transform(table.select(names)), ready.transform(new.select(names))
    between = np.abs(rows[:, None] - rows).sum(axis=2)
    np.testing.assert_allclose(between, naive(table, table), atol=1e-12)
    across = np.abs(others[:, None] - rows).sum(axis=2)
    np.testing.assert_allclose(across, naive(new, table), atol=1e-12)
    # the map is that of the distances, and so is its quality
    given = lowland.ClassicalMDS(2, metric="precomputed").fit(naive(table, table))
    np.testing.assert_allclose(made.coordinates, given.embedding_, atol=1e-9)
    placed = place_rows(made.model, new).coordinates
    np.testing.assert_allclose(placed, given.transform(naive(new, table)), atol=1e-9)
    expected = trustworthiness(naive(table, table), made.coordinates, 10, metric="precomputed")
    assert made.quality["trustworthiness"].value == pytest.approx(expected)


@each("method", ["mds", "tsne", "isomap", "laplacian_eigenmaps"])
def test_methods_map_mixed_tables_by_gower(method):
    table = mixed(60, 0)
    made = make_map(table, method, metric="gower", categories="one-hot")
    assert any("scaled: gower (Gower's distance of 5 variables" in line for line in made.log)
    assert type(made.model.steps[0]) is Preparation
    spread = made.coordinates.std(axis=0).max()
    placed = place_rows(made.model, table.head(7)).coordinates
    assert np.abs(placed - made.coordinates[:7]).max() < 0.3 * spread


def test_gower_does_not_go_with_another_scale(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mixed(30, 0).write_csv("mixed.csv")
    with pytest.raises(ParameterError, match=r"'gower' divides .*; leave scale='robust' out"):
        make_map("mixed.csv", "mds", metric="gower", scale="robust")
    assert main(["map", "mixed.csv", "-m", "mds", "--metric", "gower", "--scale", "standard"]) == 2
    assert "leave --scale standard out" in capsys.readouterr().err
    with pytest.raises(ParameterError, match="scale: 'gower' is not allowed"):
        make_map("mixed.csv", "pca", scale="gower")


def test_a_cycle_differs_by_at_most_one():
    frame = pl.DataFrame({"hour": np.linspace(0, 24, 49), "a": np.linspace(0, 1, 49)})
    ready = Preparation(scale="gower", cyclic={"hour": 24}).fit_transform(frame)
    between = np.abs(ready[:, None, 1:] - ready[None, :, 1:]).sum(axis=2) * 2
    assert between.max() == pytest.approx(1.0)
    assert between[0, 48] == pytest.approx(0.0, abs=1e-12)


# --- arrays of numbers ------------------------------------------------------------------------


def test_neighbors_and_measures_of_arrays_use_the_ranges_of_the_rows():
    far = D + np.diag(np.full(len(X), np.inf))
    graph, query = knn_graph(X, 6, metric="gower"), knn_query(X, NEW, 6, metric="gower")
    np.testing.assert_allclose(graph.distances, np.sort(far, axis=1)[:, :6], atol=1e-12)
    np.testing.assert_allclose(query.distances, np.sort(D_NEW, axis=1)[:, :6], atol=1e-12)
    Y = X[:, :2]
    found, given = (
        quality(data, Y, metric=metric).to_dict()
        for data, metric in ((X, "gower"), (D, "precomputed"))
    )
    for name in ("trustworthiness", "neighbor_recall", "scale_normalized_stress"):
        assert found[name]["value"] == pytest.approx(given[name]["value"])
    assert (
        found["trustworthiness"] != quality(X, Y, metric="manhattan").to_dict()["trustworthiness"]
    )


def test_new_rows_of_arrays_are_placed_by_the_ranges_of_the_fitted_rows():
    model = lowland.ClassicalMDS(2, metric="gower").fit(X)
    given = lowland.ClassicalMDS(2, metric="precomputed").fit(D)
    np.testing.assert_allclose(model.transform(NEW), given.transform(D_NEW), atol=1e-9)


@pytest.mark.slow
def test_every_method_that_sees_distances_sees_those_of_gower(tmp_path):
    cases = Cases()
    for cls in registry.all_methods():
        metric = cls.parameters().get("metric")
        if metric is None or not metric.metadata["constraint"].allows("gower"):
            continue

        def check(cls=cls):
            small = {"max_iter": 100} if "max_iter" in cls.parameters() else {}
            if ".embedding." in cls.__module__:  # few steps: many of them magnify rounding
                small |= {"init": "random", "max_iter": 12, "early_exaggeration_iter": 6}
            if cls.__name__ == "MVU":
                small = {"max_iter": 20}  # as there
            if cls.__name__ == "RankVisu":  # its forces jump where two ranks change places
                start = np.random.default_rng(0).standard_normal((len(X), 2))
                small = {"init": start, "max_iter": 0}
            small = {name: value for name, value in small.items() if name in cls.parameters()}
            model = cls(metric="gower", random_state=0, **small).fit(X)
            places = model.transform(NEW)
            model.save(tmp_path / "m.lowland")
            np.testing.assert_array_equal(
                lowland.load(tmp_path / "m.lowland").transform(NEW), places
            )
            np.testing.assert_allclose(model.transform(NEW[3:4])[0], places[3], atol=1e-9)
            # the units of the columns do not matter
            units = np.array([1e3, 1e-2, 7.0, 1.0])
            other = cls(metric="gower", random_state=0, **small).fit(X * units)
            np.testing.assert_allclose(
                np.abs(other.transform(NEW * units)), np.abs(places), rtol=1e-3, atol=1e-3
            )
            if "tangent" not in str(cls.documentation("metric")):  # others use rows, too
                given = cls(metric="precomputed", random_state=0, **small).fit(D)
                np.testing.assert_allclose(given.transform(D_NEW), places, atol=1e-5)

        cases.run(cls.__name__, check)
    cases.finish()


def test_a_model_without_its_ranges_is_refused(tmp_path):
    from lowland._base.models import codec
    from lowland._base.models.codec import _parts

    name, params, state = _parts(lowland.MDS(metric="gower").fit(X))
    ranges = state.pop("column_ranges_")
    for wrong in ({}, {"column_ranges_": ranges * 0}, {"column_ranges_": ranges[:2]}):
        codec.write_model(tmp_path / "m", name, params, {**state, **wrong})
        with pytest.raises(ModelFileError, match="column_ranges_"):
            lowland.load(tmp_path / "m")


def test_what_gower_cannot_compare_is_refused():
    import scipy.sparse

    with pytest.raises(ParameterError, match="not available for sparse data"):
        knn_graph(scipy.sparse.csr_matrix(np.eye(5)), 2, metric="gower")
