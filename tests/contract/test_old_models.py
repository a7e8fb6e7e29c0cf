"""Model files of every released format version stay loadable for ever."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import lowland

DATA = Path(__file__).parent.parent / "data"


def test_a_model_of_format_2_still_places_rows_where_it_did():
    model = lowland.load(DATA / "pca_format_2.lowland")
    assert repr(model) == "PCA(n_components=2, random_state=0, whiten=True)"
    assert list(model.feature_names_in_) == ["length", "width", "height"]
    rows = pd.DataFrame(np.load(DATA / "pca_format_2_rows.npy"), columns=model.feature_names_in_)
    placed = model.transform(rows)
    expected = np.load(DATA / "pca_format_2_map.npy")
    np.testing.assert_allclose(placed, expected, rtol=1e-12)
