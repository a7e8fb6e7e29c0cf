"""Pictures of a method beside its map: which a method gets, in which files, and in the report."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest

from lowland import GTM, PCA, SOM, PrincipalCurve
from lowland._base import registry
from lowland.cli import main
from lowland.datasets import iris
from lowland.errors import DataError
from lowland.workflow import make_map
from lowland.workflow.pictures import methods
from lowland.workflow.pictures.methods import PICTURES, Kind, _Plane, picture_names
from support.cases import each

GRID = {"sides": [5, 4], "places": "units", "max_iter": 10, "measure": False}


def on_grid(data="iris", method="som", **options):
    """A run of a method with a grid of 20 units."""
    return make_map(data, method, **{**GRID, **options})


def named_rows():
    return pl.from_numpy(iris().X, schema=list(iris().feature_names), orient="row")


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def captions(summary):
    return list(summary["maps"][0]["pictures"])


def test_a_method_gets_the_pictures_of_the_attributes_it_declares():
    units = ("u_matrix", "labeled_units", "hits", "component_planes", "through_data")
    assert picture_names(SOM) == units
    assert picture_names(PrincipalCurve) == picture_names(GTM) == ("through_data",)
    assert picture_names(PCA) == ()


def test_methods_without_such_attributes_have_no_pictures():
    for cls in registry.all_methods():
        family = cls.family()
        if family not in ("topographic", "neural") and not hasattr(cls, "uncertainty"):
            assert picture_names(cls) == (), cls


def test_the_pictures_are_written_beside_the_map_and_shown_in_the_report(tmp_path):
    result = on_grid(measure=True)
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
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "hits.png").write_text("mine")
    command = ["map", "iris", "-m", "som", "--sides", "5,4", "--no-report", "-o"]
    assert main([*command, "out", "-q"]) == 2
    assert "hits.png" in capsys.readouterr().err
    assert names_in(tmp_path / "out") == ["hits.png"]
    assert main([*command, "other"]) == 0
    assert "\n  component_planes other/component_planes.png" in capsys.readouterr().out
    assert main([*command, "third", "--json"]) == 0
    outputs = json.loads(capsys.readouterr().out)["outputs"]
    assert outputs["labeled_units"] == "third/labeled_units.png"


def test_without_classes_no_units_are_labeled(tmp_path):
    result = on_grid(iris().X)
    files = result.write(tmp_path / "out")
    assert "labeled_units.png" not in names_in(tmp_path / "out")
    assert "labeled_units" not in files.named()
    assert result.not_made == {}
    assert not any(caption.startswith("Labels") for caption in captions(result.summary()))


def test_a_picture_that_fails_leaves_the_others(tmp_path, monkeypatch):
    def failing(scene):
        raise ValueError("no ink")

    broken = [Kind(k.name, k.needs, failing) if k.name == "hits" else k for k in PICTURES]
    monkeypatch.setattr(methods, "PICTURES", tuple(broken))
    result = on_grid()
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
    monkeypatch.setattr(methods, "PICTURES", only)
    return calls


@each("options", [{"scale": "standard"}, {"scale": "none"}, {"scale": "robust", "pca": 3}])
def test_component_planes_have_the_units_and_names_of_the_table(options, monkeypatch):
    data = iris()
    calls = drawn_with(monkeypatch, "component_planes")
    result = on_grid(**options)
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
    made = on_grid(table, use=["kind"])
    made.summary()
    [((_, values, names, _), _)] = calls
    assert list(names) == ["a", "b", "kind=x", "kind=y", "kind=z"]
    assert values.shape == (20, 5)
    made = on_grid(table.drop("kind"), normalize=["log1p"])
    [caption] = captions(made.summary())
    assert "after normalization (log1p)" in caption


def test_units_have_the_label_of_most_rows(monkeypatch):
    calls = drawn_with(monkeypatch, "labeled_units")
    result = on_grid()
    result.summary()
    [((places, labels, shares, _), _)] = calls
    units, y = result.estimator.predict(named_rows()), np.asarray(iris().labels)
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


@each("method", ["principal_curve", "gtm", "som"])
def test_the_net_and_the_projections_lie_in_the_plane_of_the_rows(method, monkeypatch):
    is_curve = method == "principal_curve"
    calls = drawn_with(monkeypatch, "curve_through_data" if is_curve else "grid_through_data")
    options = GRID if method == "som" else {"measure": False}
    result = make_map("iris", method, **{**options, "scale": "none"})
    [caption] = captions(result.summary())
    assert "first two principal axes (98\u202f% of the variance)" in caption
    assert "long ones are rows that it does not explain" in caption
    [(given, named)] = calls
    rows, nodes, projections = given if is_curve else (given[0], given[1], given[3])
    pca, model = PCA(2, random_state=0).fit(iris().X), result.estimator
    np.testing.assert_allclose(rows, pca.transform(iris().X), atol=1e-9)
    np.testing.assert_allclose(nodes, pca.transform(model.net().nodes), atol=1e-9)
    back = model.inverse_transform(model.transform(named_rows()))
    np.testing.assert_allclose(projections, pca.transform(back), atol=1e-9)
    assert named["labels"].tolist() == list(iris().labels)
    assert named["axis_names"][0].startswith("principal axis 1 (92.")


def test_many_rows_are_sampled(monkeypatch):
    calls = drawn_with(monkeypatch, "curve_through_data")
    monkeypatch.setattr(methods, "MOST_ROWS", 100)
    monkeypatch.setattr(methods, "LEAST_ROWS", 50)
    result = make_map("iris", "principal_curve", measure=False)
    result.summary()
    [((rows, *_), named)] = calls
    assert len(rows) == len(named["labels"]) == 100


def test_facts_of_grids_and_curves_are_told():
    result = on_grid()
    facts = result.summary()["maps"][0]["facts"]
    assert facts["topographic_error"] == result.estimator.topographic_error_
    assert facts["units"] == 20
    assert facts["empty_units"] == (result.estimator.hits_ == 0).sum()
    curve = make_map("iris", "principal_curve", measure=False)
    assert curve.summary()["maps"][0]["facts"]["length"] == curve.estimator.length_


def test_what_cannot_be_drawn_is_left_out():
    summary = on_grid(iris().X[:, :1], n_components=1, sides=[5]).summary()
    assert not any("through the data" in caption for caption in captions(summary))


@each(("n", "spread"), [(3, 1.0), (4, 0.0)])
def test_few_or_equal_rows_are_no_obstacle(n, spread):
    X = spread * np.random.default_rng(n).random((n, 3)) + 1.0
    result = on_grid(X, scale="none")
    found = captions(result.summary())
    assert result.not_made == {}
    assert found[0].startswith("U-matrix")


@each("scale", [1e-70, 1e70])
def test_the_plane_does_not_depend_on_extreme_units(scale):
    model = SOM(sides=[5, 4], places="units", max_iter=10).fit(iris().X)
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
    model = SOM(sides=[5, 4], places="units", max_iter=10).fit(X)
    projections = model.inverse_transform(model.transform(X))
    X[3, 1] = np.nan
    plane = _Plane.through(X, projections, model.net())
    X[3, 1] = projections[3, 1]
    np.testing.assert_allclose(plane.rows, PCA(2, random_state=0).fit(X).transform(X))
    X[3, 1] = np.nan
    assert _Plane.through(X, None, model.net()) is None


def test_uncertainty_is_the_background_of_the_map():
    result = make_map(iris().X[::3], "gplvm", max_iter=5, measure=False)
    assert any(caption.startswith("Uncertainty: ") for caption in captions(result.summary()))
    assert result.picture().axes[0].images
