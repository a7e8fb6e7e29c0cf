"""Model files of every released format version stay loadable for ever."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

import lowland
from support.cases import each

DATA = Path(__file__).parent.parent / "data"
ARCHIVE = zipfile.ZipFile(DATA / "models_of_the_first_tree.zip")
MODELS = sorted(name for name in ARCHIVE.namelist() if name.endswith(".lowland"))
PLACES = np.load(io.BytesIO(ARCHIVE.read("places.npz")))
TABLE = pl.read_csv(ARCHIVE.read("table.csv"))


def test_a_model_of_format_2_still_places_rows_where_it_did():
    model = lowland.load(DATA / "pca_format_2.lowland")
    assert repr(model) == "PCA(n_components=2, random_state=0, whiten=True)"
    assert list(model.feature_names_in_) == ["length", "width", "height"]
    rows = pd.DataFrame(np.load(DATA / "pca_format_2_rows.npy"), columns=model.feature_names_in_)
    placed = model.transform(rows)
    expected = np.load(DATA / "pca_format_2_map.npy")
    np.testing.assert_allclose(placed, expected, rtol=1e-12)


@each("name", MODELS)
def test_a_model_of_the_first_tree_still_places_rows_where_it_did(name, tmp_path):
    """Written before the modules got their present rooms: no file holds the path of a class."""
    model = lowland.load(ARCHIVE.extract(name, tmp_path))
    expected = PLACES[Path(name).stem]
    if name.startswith("table"):
        placed = model.transform(TABLE.head(4).select(list(model.feature_names_in_)))
    elif hasattr(model, "embeddings_"):
        placed = model.embeddings_[0]
    else:
        placed = (
            model.transform(PLACES["rows"]) if hasattr(model, "transform") else model.embedding_
        )
    # A thousandth of the map is less than a dot of its picture; descents end within it.
    np.testing.assert_allclose(placed, expected, rtol=0, atol=1e-3 * np.abs(expected).max())
