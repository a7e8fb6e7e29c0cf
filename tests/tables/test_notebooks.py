"""What a notebook shows of results, tables and pictures; text from files stays text."""

from __future__ import annotations

import inspect
import pickle
import struct

import numpy as np
import polars as pl
import pytest
import scipy.sparse

import lowland
from lowland import plot
from lowland._base.html import html_table
from lowland.datasets import iris
from lowland.tables import as_table, read_table
from lowland.workflow import compare_methods, make_map, place_rows, score_map, select_columns
from support.pages import Page

HOSTILE = "<script>alert(1)</script>"
QUOTED = '"><img src=x onerror=alert(2)>'
TAGS = {"br", "caption", "img", "p", "table", "tbody", "td", "th", "thead", "tr"}
ATTRIBUTES = {"alt", "colspan", "src"}
PNG = b"\x89PNG\r\n\x1a\n"


def checked(text):
    """The page, if it holds our elements only."""
    page = Page(text)
    assert set(page.tags) <= TAGS
    assert {name for name, _ in page.attributes} <= ATTRIBUTES
    return page


@pytest.fixture(scope="module")
def hostile():
    rng = np.random.default_rng(0)
    columns = {HOSTILE: rng.normal(size=24), QUOTED: rng.normal(size=24), "z": rng.normal(size=24)}
    return pl.DataFrame({**columns, "kind & <b>": [HOSTILE, QUOTED] * 12})


@pytest.fixture(scope="module")
def made(hostile):
    return make_map(hostile, "pca")


def results(hostile, made):
    """One of each kind of result, all of a table with hostile text."""
    return {
        "map": made,
        "comparison": compare_methods(hostile, ["pca", "lda"]),
        "score": score_map(hostile, made.coordinates),
        "placed": place_rows(made.model, hostile),
        "selection": select_columns(hostile, n_features=2),
        "table": as_table(hostile, name=HOSTILE),
        "quality": made.quality,
    }


def test_everything_from_the_data_is_text(hostile, made):
    texts = {kind: checked(held._repr_html_()) for kind, held in results(hostile, made).items()}
    for kind in ("placed", "table"):
        assert HOSTILE in texts[kind].texts
        assert QUOTED in texts[kind].texts
        assert "kind & <b>" in "".join(texts[kind].texts)
    assert {HOSTILE, QUOTED, "z"} <= {*texts["selection"].texts}
    for kind in ("map", "comparison", "score"):
        [source] = [value for name, value in texts[kind].attributes if name == "src"]
        assert source.startswith("data:image/png;base64,iVBOR")
        assert "trustworthiness" in texts[kind].texts


def test_a_result_is_one_short_line_of_text(hostile, made):
    for kind, held in results(hostile, made).items():
        if kind != "quality":  # which prints as a table
            assert "\n" not in repr(held)
            assert len(repr(held)) < 200
    assert repr(compare_methods("iris", ["pca", "lda"])) == "MapComparison(pca, lda of 150 rows)"
    assert repr(read_table("iris")) == "Table('iris': 150 rows, 4 columns; labels: class)"
    model = make_map("iris", "pca").model
    placed = place_rows(model, iris().X[:1])
    assert repr(placed) == "PlacedRows(1 row in a map of PCA with 2 dimensions)"


def test_the_picture_of_a_score_is_the_map():
    score = score_map("iris", iris().X[:, 2:])
    assert repr(score).startswith("MapScore('map', 150 rows, trustworthiness 0.9")
    drawn = score.picture().axes[0].collections[0].get_offsets()
    assert {*map(tuple, np.asarray(drawn))} == {*map(tuple, iris().X[:, 2:])}


def test_a_method_that_failed_is_named_with_its_reason():
    compared = compare_methods(np.random.default_rng(0).normal(size=(30, 3)), ["pca", "lda"])
    [(name, why)] = compared.failures.items()
    assert f"{name}: {why}" in checked(compared._repr_html_()).texts


def test_long_tables_are_cut_and_say_so():
    wide = as_table(np.arange(60.0).reshape(3, 20))
    assert "…" in checked(wide._repr_html_()).texts
    assert "column 8" not in checked(wide._repr_html_()).texts
    long = checked(read_table("iris")._repr_html_())
    assert "and 140 more" in long.texts
    assert long.tags.count("tr") == 1 + 10 + 1
    sparse = checked(as_table(scipy.sparse.csr_matrix(np.eye(4)))._repr_html_())
    assert sparse.texts.count("0") == 12 + 1  # and the number of the first row
    bare = as_table(np.eye(2))
    assert checked(bare._repr_html_()).tags.count("td") == 2 * 3
    cell = checked(html_table(["a"], [["x" * 1000]])).texts[1]
    assert len(cell) == 200


def size_of(png):
    assert png[:8] == PNG
    return struct.unpack(">II", png[16:24])


def test_a_picture_draws_itself_in_its_size_on_the_page():
    figure = plot.scatter_map(iris().X[:, 2:], iris().labels)
    assert isinstance(figure, plot.MapFigure)
    inches = figure.get_size_inches()
    assert size_of(figure._repr_png_()) == tuple((inches * 100).astype(int))
    assert figure._repr_png_() == figure._repr_png_()
    again = pickle.loads(pickle.dumps(figure))
    assert size_of(again._repr_png_()) == size_of(figure._repr_png_())


def test_every_picture_is_made_by_the_function_that_they_share():
    for name in plot.__all__:
        function = getattr(plot, name)
        if inspect.isfunction(function) and name != "save_figure":
            assert inspect.signature(function).return_annotation.endswith("Figure"), name
    assert "Figure(" not in inspect.getsource(plot._figure).replace("MapFigure(", "")


def test_unknown_names_of_the_lazy_modules():
    for module in (plot, lowland.selection):
        with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
            _ = module.Nothing
    assert lowland.selection.MRMR is lowland.MRMR
    assert "MRMR" in dir(lowland.selection)
    assert "MRMR" in lowland.selection.__all__
    assert "exports" not in dir(plot)
    assert "scatter_map" in dir(plot)


def test_estimators_and_models_have_the_diagram_of_scikit_learn():
    model = make_map("iris", "pca", scale="standard").model
    for shown, names in (
        (lowland.TSNE(perplexity=7), ["TSNE"]),
        (lowland.MRMR(3), ["MRMR"]),
        (lowland.neighbors.KNNTransformer(4), ["KNNTransformer"]),
        (model, ["Preparation", "PCA"]),
    ):
        text = shown._repr_html_()
        assert all(name in text for name in names)
        assert "sk-" in text
    assert HOSTILE not in lowland.TSNE(metric=HOSTILE)._repr_html_()


def test_a_real_notebook_shows_everything(hostile, made):
    """The formatter that IPython uses, without a shell."""
    formatters = pytest.importorskip("IPython.core.formatters", reason="shows what it would show")
    shown = formatters.DisplayFormatter()
    for held in (*results(hostile, made).values(), made.model, lowland.PCA(3)):
        data, _ = shown.format(held)
        assert "<" in data["text/html"]
        assert "text/plain" in data
    data, _ = shown.format(made.picture())
    assert size_of(data["image/png"])[0] > 300
