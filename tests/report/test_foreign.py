"""A report about a map that any tool has made."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from lowland.datasets import iris
from lowland.errors import DataError
from lowland.metrics import quality
from lowland.report import make_report


def points(page: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_has_the_map_its_labels_and_its_quality(tmp_path):
    data = iris()
    Y = data.X[:, 2:]
    page = make_report(data.X, Y, data.labels, tmp_path / "r.html", "petals <of> irises")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == page
    assert "petals &lt;of&gt; irises" in page
    found = points(page)
    assert found["points"] == 150
    assert [column["name"] for column in found["columns"]] == ["label"]
    assert found["color"] == "label"
    table = quality(data.X, Y, data.labels)
    for row in table:
        assert f"<strong>{row.value:.3f}</strong>" in page, row.name
    assert "A map that was made elsewhere." in page


@pytest.mark.parametrize(
    "convert",
    [np.asarray, np.float32, scipy.sparse.csr_array, lambda X: pl.from_numpy(X, orient="row")],
)
def test_data_of_any_kind_are_measured(convert):
    data = iris()
    page = make_report(convert(data.X), data.X[:, 2:].astype(np.float32))
    assert "trustworthiness" in page


def test_several_labels_and_names_of_rows():
    data = iris()
    labels = {"kind": data.labels, "width": data.X[:, 1]}
    ids = [f"flower {i}" for i in range(150)]
    found = points(make_report(data.X, data.X[:, :3], labels, ids=ids, color="width"))
    assert [column["kind"] for column in found["columns"]] == ["category", "number"]
    assert found["color"] == "width"
    assert found["ids"]["texts"][:2] == ["flower 0", "flower 1"]
    framed = points(make_report(data.X, data.X[:, :3], pl.DataFrame(labels)))
    assert framed["columns"] == found["columns"]


def test_distances_are_measured_too():
    X = iris().X
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    page = make_report(D, X[:, :2], metric="precomputed")
    expected = quality(D, X[:, :2], metric="precomputed")["continuity"].value
    assert f"<strong>{expected:.3f}</strong>" in page


def test_a_map_too_small_to_measure_still_gets_a_page():
    page = make_report(np.eye(3), np.eye(3)[:, :2])
    assert "The quality was not measured." in page


def test_what_does_not_fit_is_refused():
    X = iris().X
    with pytest.raises(DataError, match=r"Y has shape \(10, 2\), but X has 150 rows"):
        make_report(X, X[:10, :2])
    with pytest.raises(DataError, match=r"labels: 'label' has shape \(3,\), but the map has 150"):
        make_report(X, X[:, :2], np.arange(3))
    with pytest.raises(DataError, match="color"):
        make_report(X, X[:, :2], color="kind")
    Y = X[:, :2].copy()
    Y[3, 1] = np.nan
    with pytest.raises(DataError, match="NaN"):
        make_report(X, Y)
