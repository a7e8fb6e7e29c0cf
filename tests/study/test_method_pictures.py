"""Pictures of a method beside its map: which a method gets, in which files, and in the report."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest

from lowland import PCA
from lowland._core import registry
from lowland._core.base import Invertible
from lowland._core.card import Card, Estimate
from lowland._core.constraints import Boolean, OneOf
from lowland._core.meanings.contents import count
from lowland._core.params import fitted, param
from lowland._core.traits import Reading
from lowland._engines.grids.lattice import Lattice
from lowland._engines.grids.net import Net
from lowland.cli import main
from lowland.datasets import iris
from lowland.errors import DataError
from lowland.report import advise
from lowland.study import make_map, method_pictures
from lowland.study.method_pictures import PICTURES, Kind, _Plane, picture_names
from lowland.topographic._som_places import majority
from support.cases import each

SIDES = (5, 4)


class OnGrid(Invertible):
    """Rows on the nodes of a grid in the plane of the first two principal axes."""

    grid: str = param(OneOf("hexagon", "rectangle"), default="hexagon")
    toroidal: bool = param(Boolean(), default=False)

    card = Card(keeps="order", use="in tests", avoid="elsewhere", cost="O(n)")
    reading = Reading("a.", "b.", "c.", "d.", "e.")
    reference = "nobody"

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        return Estimate(0.01, 1000)

    def net(self):
        edges = Lattice(self.grid, SIDES, (self.toroidal,) * 2).edges()
        return Net(self.inverse_transform(self.unit_places_), edges)

    def lay(self, X):
        lattice = Lattice(self.grid, SIDES, (False, False))
        places = lattice.places()
        spread = places - places.mean(axis=0)
        pca = PCA(2).fit(X)
        scale = np.abs(pca.transform(X)).max(axis=0) / np.abs(spread).max(axis=0)
        return lattice, pca.inverse_transform(spread * scale)


def nearest(X, nodes):
    X = X.toarray() if hasattr(X, "toarray") else X
    return ((np.asarray(X)[:, None] - nodes) ** 2).sum(axis=2).argmin(axis=1)


class Units(OnGrid):
    """A grid with the attributes of a self-organizing map."""

    codebook_: np.ndarray = fitted("n_units", "n_features")
    unit_places_: np.ndarray = fitted("n_units", "n_components")
    unit_sides_: np.ndarray = fitted("n_components", type=int, meaning=count(1))
    hits_: np.ndarray = fitted("n_units", type=int, meaning=count(0))
    u_matrix_: np.ndarray = fitted("n_units")
    quantization_error_: float = fitted()
    topographic_error_: float = fitted()

    def _fit(self, X, y, run):
        lattice, self.codebook_ = self.lay(X)
        self.unit_places_, self.unit_sides_ = lattice.places(), np.array(SIDES)
        self.hits_ = np.bincount(self.predict(X), minlength=lattice.n_units)
        self.u_matrix_ = np.arange(lattice.n_units) / 10
        self.quantization_error_, self.topographic_error_ = 0.25, 0.3
        return self.unit_places_[self.predict(X)]

    def predict(self, X):
        return nearest(X, self.codebook_)

    def label_units(self, X, y):
        codes = np.unique(np.asarray(y), return_inverse=True)
        return majority(self.predict(X), *codes, len(self.codebook_))

    def _transform(self, X, run):
        return self.unit_places_[self.predict(X)]

    def _inverse_transform(self, Y, run):
        return self.codebook_[nearest(Y, self.unit_places_)]


class Latent(OnGrid):
    """A grid without counts and distances of its nodes."""

    nodes_: np.ndarray = fitted("n_nodes", "n_components")
    images_: np.ndarray = fitted("n_nodes", "n_features")

    def net(self):
        return Net(self.images_, Lattice(self.grid, SIDES, (False, False)).edges())

    def _fit(self, X, y, run):
        lattice, self.images_ = self.lay(X)
        self.nodes_ = lattice.places()
        return self.nodes_[nearest(X, self.images_)]

    def _transform(self, X, run):
        return self.nodes_[nearest(X, self.images_)]

    def _inverse_transform(self, Y, run):
        return self.images_[nearest(Y, self.nodes_)]


class Line(OnGrid):
    """A curve: the first principal axis."""

    curve_: np.ndarray = fitted("n_knots", "n_features")
    length_: float = fitted()

    def net(self):
        return Net(self.curve_, None)

    def _fit(self, X, y, run):
        _, nodes = self.lay(X)
        self.curve_, self.length_ = nodes[2::4], 7.5
        return self._transform(X, run)

    def _transform(self, X, run):
        return np.repeat(nearest(X, self.curve_)[:, None].astype(float), 2, axis=1)

    def _inverse_transform(self, Y, run):
        return self.curve_[Y[:, 0].astype(int)]


class Chain(Line):
    """A curve in one column."""

    def _fit(self, X, y, run):
        self.curve_, self.length_ = X[:3], 1.0
        return np.array(X)

    def _transform(self, X, run):
        return np.array(X)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def captions(summary):
    return list(summary["maps"][0]["pictures"])


def test_a_method_gets_the_pictures_of_the_attributes_it_declares():
    units = ("u_matrix", "labeled_units", "hits", "component_planes", "through_data")
    assert picture_names(Units) == units
    assert picture_names(Line) == picture_names(Latent) == ("through_data",)
    assert picture_names(PCA) == ()


def test_methods_without_such_attributes_have_no_pictures():
    modules = registry.modules()
    for cls in registry.all_methods():
        family = modules[registry.snake_case(cls.__name__)].split(".")[1]
        if family not in ("topographic", "neural") and not hasattr(cls, "uncertainty"):
            assert picture_names(cls) == (), cls


def test_the_pictures_are_written_beside_the_map_and_shown_in_the_report(tmp_path):
    result = make_map("iris", Units)
    files = result.write(tmp_path / "out")
    assert names_in(tmp_path / "out") == [
        "component_planes.png", "hits.png", "labeled_units.png", "map.csv", "map.png",
        "model.lowland", "report.html", "through_data.png", "trust.csv", "u_matrix.png",
    ]  # fmt: skip
    assert sorted(path.name for path in files.paths()) == names_in(tmp_path / "out")
    assert files.named()["u_matrix"] == str(tmp_path / "out" / "u_matrix.png")
    assert result.not_made == {}
    page = (tmp_path / "out" / "report.html").read_text()
    shown = re.findall(r'<figure><img src="data:image/png;base64,(\S+)" alt="([^"]+)">', page)
    assert [caption.split(":")[0].split(",")[0] for _, caption in shown] == [
        "U-matrix", "Labels", "Hits", "Component planes", "The grid through the data",
    ]  # fmt: skip
    assert sum(len(image) for image, _ in shown) < 1_000_000
    assert html.escape("Quantization error (mean distance of a row to its unit)") in page
    with pytest.raises(DataError, match="exists already"):
        result.write(tmp_path / "out")


def test_the_command_line_lists_and_guards_the_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "get", lambda name: Units)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "hits.png").write_text("mine")
    assert main(["map", "iris", "-m", "units", "-o", "out", "-q"]) == 2
    assert "hits.png" in capsys.readouterr().err
    assert names_in(tmp_path / "out") == ["hits.png"]
    assert main(["map", "iris", "-m", "units", "-o", "other", "--json"]) == 0
    outputs = json.loads(capsys.readouterr().out)["outputs"]
    assert outputs["labeled_units"] == "other/labeled_units.png"
    assert main(["map", "iris", "-m", "units", "-o", "third", "--no-report"]) == 0
    out = capsys.readouterr().out
    assert "\n  u_matrix         third/u_matrix.png" in out
    assert "\n  component_planes third/component_planes.png" in out


def test_without_classes_no_units_are_labeled(tmp_path):
    result = make_map(iris().X, Units, measure=False)
    files = result.write(tmp_path / "out")
    assert "labeled_units.png" not in names_in(tmp_path / "out")
    assert "labeled_units" not in files.named()
    assert result.not_made == {}
    assert not any(caption.startswith("Labels") for caption in captions(result.summary()))


def test_a_picture_that_fails_leaves_the_others(tmp_path, monkeypatch):
    def failing(scene):
        raise ValueError("no ink")

    broken = [Kind(k.name, k.needs, failing) if k.name == "hits" else k for k in PICTURES]
    monkeypatch.setattr(method_pictures, "PICTURES", tuple(broken))
    result = make_map("iris", Units, measure=False)
    with pytest.warns(UserWarning, match=r"picture hits.png was not drawn: ValueError: no ink"):
        files = result.write(tmp_path / "out")
    assert "hits" not in files.named()
    assert "hits.png" not in names_in(tmp_path / "out")
    assert "u_matrix.png" in names_in(tmp_path / "out")
    assert result.not_made == {"the picture hits.png was not drawn": "ValueError: no ink"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "U-matrix: each cell" in page
    assert "Hits: " not in page
    assert "no ink" in page


def drawn_with(monkeypatch, function):
    """Calls of a function of lowland.plot, which draws the only picture: all its arguments."""
    import lowland.plot

    calls: list[Any] = []
    real = getattr(lowland.plot, function)

    def spy(*given, **named):
        calls.append((given, named))
        return real(*given, **named)

    monkeypatch.setattr(lowland.plot, function, spy)
    name = "through_data" if function.endswith("through_data") else function
    only = tuple(kind for kind in PICTURES if kind.name == name)
    monkeypatch.setattr(method_pictures, "PICTURES", only)
    return calls


@each("options", [{"scale": "standard"}, {"scale": "none"}, {"scale": "robust", "pca": 3}])
def test_component_planes_have_the_units_and_names_of_the_table(options, monkeypatch):
    data = iris()
    calls = drawn_with(monkeypatch, "component_planes")
    result = make_map("iris", Units, measure=False, **options)
    [caption] = captions(result.summary())
    assert "in the units of the table" in caption
    [((_, values, names, kind), _)] = calls
    assert (list(names), kind) == (list(data.feature_names), "hexagon")
    # rows on the units and back in the table are the rows nearest to them
    model = result.model
    steps = getattr(model, "steps", (model,))
    ready = pl.from_numpy(values, schema=list(names), orient="row")
    for step in steps[:-1]:
        ready = step.transform(ready)
    np.testing.assert_allclose(np.asarray(ready), result.estimator.codebook_, atol=1e-8)
    if "pca" not in options:
        middle = np.average(values, axis=0, weights=result.estimator.hits_)
        assert (np.abs(middle - data.X.mean(axis=0)) < data.X.std(axis=0)).all()


def test_normalized_and_encoded_columns_are_said_to_be_so(monkeypatch):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"a": rng.random(60), "b": rng.random(60), "kind": ["x", "y", "z"] * 20})
    calls = drawn_with(monkeypatch, "component_planes")
    made = make_map(table, Units, measure=False, use=["kind"])
    made.summary()
    [((_, values, names, _), _)] = calls
    assert list(names) == ["a", "b", "kind=x", "kind=y", "kind=z"]
    assert values.shape == (20, 5)
    made = make_map(table.drop("kind"), Units, measure=False, normalize=["log1p"])
    [caption] = captions(made.summary())
    assert "after normalization (log1p)" in caption


def test_units_have_the_label_of_most_rows(monkeypatch):
    calls = drawn_with(monkeypatch, "labeled_units")
    result = make_map("iris", Units, measure=False)
    result.summary()
    [((places, labels, shares, _), _)] = calls
    units, y = result.estimator.predict(iris().X), np.asarray(iris().labels)
    assert result.color == "class"
    for unit in range(len(places)):
        mine = y[units == unit]
        if not len(mine):
            assert labels[unit] is None
            assert shares[unit] == 0
        else:
            same = (mine == labels[unit]).mean()
            assert same == shares[unit]
            assert same == max((mine == name).mean() for name in set(mine))


@each("cls", [Line, Latent, Units])
def test_the_net_and_the_projections_lie_in_the_plane_of_the_rows(cls, monkeypatch):
    function = "curve_through_data" if cls is Line else "grid_through_data"
    calls = drawn_with(monkeypatch, function)
    result = make_map("iris", cls, measure=False, scale="none")
    [caption] = captions(result.summary())
    assert "first two principal axes (98\u202f% of the variance)" in caption
    assert "long ones are rows that it does not explain" in caption
    [(given, named)] = calls
    rows, nodes, projections = given if cls is Line else (given[0], given[1], given[3])
    pca = PCA(2, random_state=0).fit(iris().X)
    np.testing.assert_allclose(rows, pca.transform(iris().X), atol=1e-9)
    np.testing.assert_allclose(nodes, pca.transform(result.estimator.net().nodes), atol=1e-9)
    gaps = np.abs(projections[:, None] - nodes).sum(axis=2).min(axis=1)
    assert gaps.max() < 1e-9
    assert named["labels"].tolist() == list(iris().labels)
    assert named["axis_names"][0].startswith("principal axis 1 (92.")


def test_many_rows_are_sampled(monkeypatch):
    calls = drawn_with(monkeypatch, "curve_through_data")
    monkeypatch.setattr(method_pictures, "MOST_ROWS", 100)
    monkeypatch.setattr(method_pictures, "LEAST_ROWS", 50)
    result = make_map("iris", Line, measure=False)
    result.summary()
    [((rows, *_), named)] = calls
    assert len(rows) == len(named["labels"]) == 100


def test_facts_of_grids_and_curves_are_told_and_a_fold_is_a_caution():
    summary = make_map("iris", Units, measure=False).summary()
    facts = summary["maps"][0]["facts"]
    assert facts["topographic_error"] == 0.3
    assert "folded grid" in [advice.kind for advice in advise(summary) if advice.serious]
    assert facts["units"] == 20
    assert 0 < facts["empty_units"] < 20
    assert make_map("iris", Line, measure=False).summary()["maps"][0]["facts"]["length"] == 7.5


def test_what_cannot_be_drawn_is_left_out():
    model = Line().fit(iris().X)
    model.curve_ = model.curve_[:, :1]  # one column has no plane
    assert model.net().nodes.shape[1] == 1
    summary = make_map(iris().X[:, :1], Chain, measure=False, n_components=1).summary()
    assert captions(summary) == []


@each(("n", "spread"), [(3, 1.0), (4, 0.0)])
def test_few_or_equal_rows_are_no_obstacle(n, spread):
    X = spread * np.random.default_rng(n).random((n, 3)) + 1.0
    result = make_map(X, Units, measure=False, scale="none")
    found = captions(result.summary())
    assert result.not_made == {}
    assert found[0].startswith("U-matrix")


@each("scale", [1e-200, 1e200])
def test_the_plane_does_not_depend_on_extreme_units(scale):
    model = Units().fit(iris().X)
    nodes = model.net()
    projections = model.inverse_transform(model.transform(iris().X))
    plain = _Plane.through(iris().X, projections, nodes)
    scaled = nodes._replace(nodes=scale * nodes.nodes)
    plane = _Plane.through(scale * iris().X, scale * projections, scaled)
    ratio = np.ptp(plain.rows) / np.ptp(plane.rows)
    for one, other in zip(plane[:3], plain[:3], strict=True):
        np.testing.assert_allclose(one * ratio, other, atol=1e-9)
    assert plane.what == plain.what


def test_missing_values_are_taken_from_the_projection():
    X = iris().X.copy()
    model = Units().fit(X)
    projections = model.inverse_transform(model.transform(X))
    X[3, 1] = np.nan
    plane = _Plane.through(X, projections, model.net())
    X[3, 1] = projections[3, 1]
    np.testing.assert_allclose(plane.rows, PCA(2, random_state=0).fit(X).transform(X))
    X[3, 1] = np.nan
    assert _Plane.through(X, None, model.net()) is None
