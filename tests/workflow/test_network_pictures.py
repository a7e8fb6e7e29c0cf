"""Pictures of methods with a network: which rows and places they show, and of which tables."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse

import lowland.plot
from lowland import PCA, NonlinearPCA
from lowland._base import registry
from lowland._base.base import Invertible, Reducer
from lowland._base.constraints import OneOf
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate, Reading
from lowland.datasets import digits, iris
from lowland.plot._figure import new_figure
from lowland.tables import as_table
from lowland.tables.options import TableOptions
from lowland.tables.preparing import prepare, read
from lowland.workflow import make_map
from lowland.workflow.pictures import methods, networks
from lowland.workflow.pictures.methods import PICTURES, picture_names
from lowland.workflow.pictures.networks import extremes, one_per_class, spread_out
from lowland.workflow.summary import axis_shares, pixels_of, variance_shares
from support.cases import each

RNG = np.random.default_rng(0)


class Encoder(Reducer):
    """Scores on principal axes, with the attributes of a network that has no inverse."""

    activation: str = param(OneOf("tanh"), default="tanh")
    components_: np.ndarray = fitted("n_components", "n_features")
    mean_: np.ndarray = fitted("n_features")
    loss_history_: np.ndarray = fitted("n_losses")

    accepts_sparse = True
    allows_nan = True
    card = Card(keeps="variance", use="in tests", avoid="elsewhere", cost="O(n)")
    reading = Reading("a.", "b.", "c.", "d.", "e.")
    reference = "nobody"

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        return Estimate(0.01, 1000)

    def _fit(self, X, y, run):
        self.loss_history_ = np.array([3.0, 2.0, 1.0])
        X = dense(X)
        self.mean_ = X.mean(axis=0)
        _, _, axes = np.linalg.svd(X - self.mean_, full_matrices=False)
        self.components_ = axes[: self.n_components]
        return self._transform(X, run)

    def _transform(self, X, run):
        return (dense(X) - self.mean_) @ self.components_.T


class Both(Encoder, Invertible):
    """The same with a decoder and with losses of held-out rows."""

    held_out_loss_: np.ndarray = fitted("n_held_out", may_be_empty=True)

    def _fit(self, X, y, run):
        self.held_out_loss_ = np.array([3.0, 2.5, 2.7])
        return super()._fit(X, y, run)

    def _inverse_transform(self, Y, run):
        return Y @ self.components_ + self.mean_


def dense(X):
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return np.where(np.isnan(X), 0.0, X)


def images(n, side=9):
    """Smooth images, whose neighboring pixels are alike."""
    rng = np.random.default_rng(side)
    smooth = np.cumsum(np.cumsum(rng.standard_normal((5, side, side)), axis=1), axis=2)
    smooth -= smooth.mean(axis=(1, 2), keepdims=True)
    return rng.standard_normal((n, 5)) @ smooth.reshape(5, -1)


def drawn_with(monkeypatch, function, name):
    """Arguments of the calls of a function of lowland.plot, in place of the pictures."""
    calls: list[Any] = []

    def spy(*given, **named):
        calls.append((given, named))
        return new_figure(1.0, 1.0)

    monkeypatch.setattr(lowland.plot, function, spy)
    monkeypatch.setattr(methods, "PICTURES", tuple(k for k in PICTURES if k.name == name))
    return calls


def captions(result):
    return list(result.summary()["maps"][0]["pictures"])


# --- which methods, which files -------------------------------------------------------------------


def test_networks_have_losses_and_those_with_an_inverse_have_all_pictures():
    assert picture_names(Encoder) == ("losses",)
    assert picture_names(Both) == ("reconstructions", "decoded_places", "losses")
    modules = registry.modules()
    for cls in registry.all_methods():
        name = registry.snake_case(cls.__name__)
        is_network = ".neural." in modules[name]
        assert ("losses" in picture_names(cls)) == is_network, cls
        decodes = is_network or hasattr(cls, "uncertainty")
        invertible = decodes and issubclass(cls, Invertible)
        assert ("decoded_places" in picture_names(cls)) == invertible, cls


def test_images_have_three_pictures_and_other_tables_two(tmp_path):
    for source, wanted in [(images(60), 3), (iris(), 2)]:
        result = make_map(source, Both, measure=False)
        files = result.write(tmp_path / str(wanted))
        assert result.not_made == {}
        names = ["reconstructions", "decoded_places", "losses"][3 - wanted :]
        assert [path.stem for path in files.pictures] == names
        assert all((tmp_path / str(wanted) / f"{name}.png").exists() for name in names)
        page = (tmp_path / str(wanted) / "report.html").read_text()
        assert page.count("<figure><img") == wanted
        shown = page.split('id="pictures"')[1].split("</section>")[0]
        assert len(shown) < 700_000


def test_losses_of_held_out_rows_are_drawn_if_there_are_any(monkeypatch):
    calls = drawn_with(monkeypatch, "loss_plot", "losses")
    [caption] = captions(make_map("iris", Both, measure=False))
    assert "held-out" in caption
    [caption] = captions(make_map("iris", Encoder, measure=False))
    assert "held-out" not in caption
    [((losses, steps), named), ((_, _), without)] = calls
    assert (losses.tolist(), steps.tolist()) == ([3, 2, 1], [0, 1, 2])
    assert named["held_out"].tolist() == [3.0, 2.5, 2.7]
    assert without["held_out"] is None


# --- decoded places -------------------------------------------------------------------------------


@each("options", [{}, {"scale": "standard"}, {"scale": "robust", "pca": 3}])
def test_decoded_places_have_the_units_of_the_table(options, monkeypatch):
    calls = drawn_with(monkeypatch, "component_planes", "decoded_places")
    result = make_map("iris", Both, measure=False, **options)
    [caption] = captions(result)
    assert "in the units of the table" in caption
    [((places, values, names, _), named)] = calls
    assert list(names) == list(iris().feature_names)
    assert 50 < len(places) <= 24 * 24
    np.testing.assert_array_equal(named["rows"], result.coordinates)
    # decoded places lie where they were decoded from
    back = result.model.transform(pl.from_numpy(values, schema=list(names), orient="row"))
    np.testing.assert_allclose(back, places, atol=1e-8)


def test_places_of_a_turned_map_are_decoded_as_they_are_drawn(monkeypatch):
    calls = drawn_with(monkeypatch, "component_planes", "decoded_places")
    result = make_map("iris", Both, measure=False, orient={"north": "10", "west": "120"})
    assert len(captions(result)) == 1
    [((places, values, *_), _)] = calls
    rotation = result.model.steps[-1].rotation_
    assert np.abs(rotation - np.eye(2)).max() > 0.1
    back = result.model.transform(pl.from_numpy(values, schema=list(iris().feature_names)))
    np.testing.assert_allclose(back, places, atol=1e-8)


def test_columns_that_vary_most_relative_to_the_table_come_first(monkeypatch):
    calls = drawn_with(monkeypatch, "component_planes", "decoded_places")
    t = RNG.uniform(-1, 1, (200, 2))
    X = np.column_stack([t, 1000 * RNG.standard_normal(200), t @ [1e-3, 0]])
    make_map(X, Both, measure=False, scale="standard").summary()
    [(_, named)] = calls
    assert np.argmin(named["variation"]) != 3  # its small unit is not a reason to leave it out
    assert 0.3 < named["variation"][3] < 3


@each("n_components", [1, 3])
def test_maps_of_other_dimensions_have_decoded_places(n_components, monkeypatch):
    calls = drawn_with(monkeypatch, "component_planes", "decoded_places")
    result = make_map("iris", Both, measure=False, n_components=n_components)
    [caption] = captions(result)
    [((places, values, *_), named)] = calls
    assert places.shape[1] == named["rows"].shape[1] == min(n_components, 2)
    full = np.repeat(np.median(result.coordinates, axis=0)[None], len(places), axis=0)
    full[:, : places.shape[1]] = places
    np.testing.assert_allclose(values, result.estimator.inverse_transform(full), atol=1e-8)
    assert ("the others are at their medians" in caption) == (n_components == 3)


def test_decoded_images_are_those_of_the_places_in_the_brightness_of_the_table(monkeypatch):
    calls = drawn_with(monkeypatch, "decoded_images", "decoded_places")
    result = make_map("digits", Both, measure=False)
    [caption] = captions(result)
    assert "nearest class" in caption
    [((rows, places, drawn, shape, labels), named)] = calls
    assert shape == (8, 8)
    assert len(places) <= 13 * 13
    np.testing.assert_array_equal(rows, result.coordinates)
    np.testing.assert_allclose(drawn, result.estimator.inverse_transform(places), atol=1e-8)
    assert named["limits"] == (0.0, 16.0)
    assert len(labels) == len(rows)


def test_wide_tables_get_fewer_places_or_none(monkeypatch):
    calls = drawn_with(monkeypatch, "component_planes", "decoded_places")
    monkeypatch.setattr(networks, "MOST_VALUES", 30 * 25)
    X = RNG.standard_normal((40, 30))
    assert len(captions(make_map(X, Both, measure=False))) == 1
    assert 1 < len(calls[0][0][0]) <= 25
    monkeypatch.setattr(networks, "MOST_VALUES", 30 * 8)
    result = make_map(X, Both, measure=False)
    assert captions(result) == []
    assert result.not_made == {}


# --- reconstructions ------------------------------------------------------------------------------


@each("options", [{}, {"scale": "standard"}, {"pca": 20}])
def test_a_row_of_each_class_then_the_best_the_median_and_the_worst(options, monkeypatch):
    calls = drawn_with(monkeypatch, "reconstruction_pairs", "reconstructions")
    result = make_map("digits", Both, measure=False, **options)
    [caption] = captions(result)
    [((originals, rebuilt, shape), named)] = calls
    X, y = digits().X, digits().y
    assert shape == (8, 8)
    words = ["best"] * 3 + ["median"] * 3 + ["worst"] * 4
    assert named["names"] == [*"0123456789", *words]
    found = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in np.round(originals, 6)]
    assert y[found[:10]].tolist() == list(range(10))
    errors = np.array([float(note) for note in named["notes"]])
    np.testing.assert_allclose(
        errors, np.sqrt(((originals - rebuilt) ** 2).mean(axis=1)), rtol=0.006
    )
    assert errors[10:].tolist() == sorted(errors[10:])
    if options:
        return
    model = result.estimator
    whole = np.sqrt(((X - model.inverse_transform(result.coordinates)) ** 2).mean(axis=1))
    order = np.argsort(whole)
    assert found[10:13] == order[:3].tolist()
    assert found[-4:] == order[-4:].tolist()
    assert np.abs(whole[found[13:16]] - np.median(whole)).max() < 0.05
    for digit in range(10):
        assert whole[found[digit]] == pytest.approx(np.median(whole[y == digit]), rel=0.02)
    assert f"the worst is row {order[-1]}." in caption


def test_without_classes_rows_come_from_all_parts_of_the_map(monkeypatch):
    calls = drawn_with(monkeypatch, "reconstruction_pairs", "reconstructions")
    monkeypatch.setattr(networks, "MOST_ROWS", 150)
    [caption] = captions(make_map(images(200), Both, measure=False))
    assert "all parts of the map" in caption
    assert "a sample of 150 rows" in caption
    [((originals, *_), named)] = calls
    assert len(originals) == 20
    assert all(name.isdecimal() for name in named["names"][:10])


def test_few_images_are_all_shown_and_gaps_stay(monkeypatch):
    calls = drawn_with(monkeypatch, "reconstruction_pairs", "reconstructions")
    X = images(30)
    gaps = X.copy()
    gaps[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    assert len(captions(make_map(gaps, Both, measure=False, missing="keep"))) == 1
    [((originals, rebuilt, _), _)] = calls
    assert 0.05 < np.isnan(originals).mean() < 0.15
    assert np.isfinite(rebuilt).all()


def test_rows_in_all_parts_of_a_map():
    Y = RNG.uniform(0, 1, (2000, 2))
    rows = [shown.row for shown in spread_out(Y, 10)]
    assert len(set(rows)) == 10
    cells = {(int(5 * x), int(2 * y)) for x, y in Y[rows]}
    assert len(cells) == 10
    assert len(spread_out(Y[:3], 10)) <= 10
    line = np.sort([shown.row for shown in spread_out(np.arange(100.0)[:, None], 10)])
    np.testing.assert_allclose(line, np.arange(4.5, 100, 10), atol=0.5)
    assert len(spread_out(np.zeros((40, 2)), 10)) == 10


def test_rows_by_their_errors():
    errors = np.random.default_rng(3).permutation(101).astype(float)
    found = extremes(errors, (2, 3, 4))
    assert [errors[shown.row] for shown in found] == [0, 1, 49, 50, 51, 97, 98, 99, 100]
    assert [shown.word for shown in found] == ["best"] * 2 + ["median"] * 3 + ["worst"] * 4
    labels = np.array(["a", "b"])[np.arange(101) % 2]
    for shown in one_per_class(labels, errors, 10):
        assert errors[shown.row] == np.quantile(errors[labels == shown.word], 0.5, method="lower")
    assert one_per_class(None, errors, 10) == []
    assert one_per_class(np.arange(101) % 12, errors, 10) == []
    assert one_per_class(np.full(101, "a"), errors, 10) == []
    assert one_per_class(np.linspace(0, 1, 101), errors, 10) == []


# --- which tables are of images -------------------------------------------------------------------


def pixels(data, **options):
    table = TableOptions(**options)
    return pixels_of(prepare(read(data, table), table))


def frame(X, names):
    return pl.from_numpy(np.asarray(X, dtype=float), schema=list(names), orient="row")


def tables_of_other_things():
    """Tables whose number of columns is a square."""
    rng = np.random.default_rng(5)
    walk = np.cumsum(rng.standard_normal((200, 100)), axis=1)
    t = np.linspace(0, 1, 144)
    bumps = [np.exp(-(((t - m) / 0.05) ** 2)) for m in rng.random(6)]
    return {
        "noise": rng.standard_normal((300, 64)),
        "few rows": rng.standard_normal((20, 64)),
        "walk": walk,
        "spectra": rng.random((200, 6)) @ np.array(bumps),
        "one factor": rng.standard_normal((300, 1)) + rng.standard_normal((300, 64)),
        "blocks": np.repeat(rng.standard_normal((300, 8)), 8, axis=1)
        + rng.standard_normal((300, 64)),
        "units": images(100) * np.exp(3 * rng.standard_normal(81)),
        "not square": images(100)[:, :-1],
        "small": images(100, 7),
        "shuffled": images(100)[:, rng.permutation(81)],
        "constant": np.ones((50, 64)),
    }


@each("kind", [*tables_of_other_things()])
def test_other_tables_are_not_taken_for_images(kind):
    assert pixels(tables_of_other_things()[kind]) is None


def test_images_are_recognized():
    X = images(100)
    for data in (X, X.astype(np.float32), scipy.sparse.csr_matrix(np.maximum(X, 0)), X[:25]):
        found = pixels(data)
        assert found is not None
        assert found.shape == (9, 9)
        assert found.places.tolist() == list(range(81))
    assert pixels("digits").shape == (8, 8)
    assert pixels("digits", scale="standard").shape == (8, 8)
    assert pixels("iris") is None
    assert pixels(X[:15]) is None  # too few rows to tell


@each(
    ("names", "shape"),
    [
        ([f"pixel{i}" for i in range(81)], (9, 9)),
        ([f"{i + 1}" for i in range(81)], (9, 9)),
        ([f"{i // 9 + 1}x{i % 9 + 1}" for i in range(81)], (9, 9)),
        ([f"p_{i // 9}_{i % 9}" for i in range(81)], (9, 9)),
        ([f"p_{i // 9}_{i % 9}" for i in range(72)], (8, 9)),
    ],
)
def test_numbers_in_names_are_places_of_pixels(names, shape):
    X = images(100)[:, : len(names)]
    assert pixels(frame(X, names)).shape == shape
    order = np.random.default_rng(2).permutation(len(names))
    kept = order[: int(0.8 * len(order))]
    some = pixels(frame(X[:, kept], [names[i] for i in kept]))
    assert some.places.tolist() == kept.tolist()
    standing = some.images(X[:, kept], -7.0)
    np.testing.assert_array_equal(standing[:, kept], X[:, kept])
    assert (np.delete(standing, kept, axis=1) == -7.0).all()


@each(
    "names",
    [
        ["abc"[i % 3] + str(i) for i in range(81)],
        [f"measure {chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(81)],
        [f"p{i * 50}" for i in range(81)],  # most pixels would be missing
        [f"p_{i}_{i}" for i in range(81)],
    ],
)
def test_columns_with_other_names_are_no_pixels(names):
    assert pixels(frame(images(100), names)) is None


def test_a_known_shape_is_used_and_categories_are_no_pixels():
    X = RNG.standard_normal((12, 20))  # far too few and too irregular to be recognized
    table = dataclasses.replace(as_table(X), image_shape=(4, 5))
    found = pixels(table)
    assert found.shape == (4, 5)
    mixed = frame(images(60), [f"p{i}" for i in range(81)])
    mixed = mixed.with_columns(pl.Series("kind", ["x", "y", "z"] * 20))
    assert pixels(mixed, use=("kind",)) is None
    assert pixels(mixed).shape == (9, 9)


# --- odd tables -----------------------------------------------------------------------------------


@pytest.mark.slow
@each(
    ("data", "options"),
    [
        (RNG.standard_normal((2, 5)), {}),
        (RNG.standard_normal((9, 1)), {"n_components": 1}),
        (np.ones((20, 4)), {}),
        (np.repeat(RNG.standard_normal((2, 4)), 20, axis=0), {}),
        (RNG.standard_normal((40, 4)) * 1e70, {}),
        (RNG.standard_normal((40, 4)) * 1e-70, {}),
        (scipy.sparse.random(60, 5, 0.5, format="csr", random_state=0), {}),
        (scipy.sparse.csr_matrix(np.maximum(images(60), 0)), {}),
        (images(60), {"n_components": 1}),
        (images(60), {"normalize": ["l2"]}),
        (pl.DataFrame({"a": [1.0, 2, 4] * 9, "kind": ["x", "y", "z"] * 9}), {"use": ["kind"]}),
    ],
)
def test_odd_tables_are_no_obstacle(data, options, monkeypatch):
    monkeypatch.setattr(methods, "REPORT_DPI", 20)
    result = make_map(data, Both, measure=False, **options)
    assert captions(result)[-1].startswith("Loss")
    assert result.not_made == {}


def test_a_plain_method_with_an_inverse_has_no_such_pictures():
    assert picture_names(PCA) == ()


@each("hierarchical", [False, True])
def test_shares_stand_beside_the_axes_only_if_components_have_an_order(hierarchical):
    model = NonlinearPCA(2, hierarchical=hierarchical, max_iter=5, random_state=0).fit(iris().X)
    shares = axis_shares(model)
    assert (shares is not None) == hierarchical
    assert variance_shares(model) == pytest.approx(model.explained_variance_ratio_)
