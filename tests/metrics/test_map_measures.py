"""What a run measures at each point, against the definitions."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest

from lowland.metrics.quality_table import NEIGHBORHOOD, measure_map
from lowland.workflow import make_map
from support.cases import each


def naive_share(far, near, k):
    """1 - 2 / (k (2n - 3k - 1)) sum of the ranks past k in ``far`` of the k nearest in ``near``."""
    n = len(far)

    def order(rows):
        squares = ((rows[:, None] - rows) ** 2).sum(axis=2)
        np.fill_diagonal(squares, -1.0)
        return np.argsort(squares, axis=1, kind="stable")

    nearest = order(near)[:, 1 : k + 1]
    ranks = np.argsort(order(far), axis=1)  # 0 for the row itself
    excess = np.maximum(np.take_along_axis(ranks, nearest, axis=1) - k, 0).sum(axis=1)
    return 1 - 2 * excess / (k * (2 * n - 3 * k - 1))


@pytest.fixture
def torn():
    """A map that tears some rows from their neighbors and lays others over strangers."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5)) ** 3
    Y = X[:, :2].copy()
    Y[::7] += 4.0
    return X, Y


def test_trust_and_continuity_of_each_point_are_not_mixed_up(torn):
    X, Y = torn
    k = NEIGHBORHOOD
    trust, continuity = naive_share(X, Y, k), naive_share(Y, X, k)
    assert np.abs(trust - continuity).max() > 0.1  # else this test could not tell them apart
    found = measure_map(X, Y).per_point
    assert list(found) == ["trustworthiness", "continuity"]
    np.testing.assert_allclose(found["trustworthiness"], trust, atol=1e-12)
    np.testing.assert_allclose(found["continuity"], continuity, atol=1e-12)


def test_the_page_has_each_measure_under_its_name(torn, tmp_path):
    X, _ = torn
    made = make_map(X, "pca", scale="none")
    made.report(tmp_path / "r.html")
    data = re.search(
        r'<script type="application/json"[^>]*>(.*?)</script>',
        (tmp_path / "r.html").read_text(),
        re.S,
    )
    measures = json.loads(data.group(1))["maps"][0]["measures"]
    Y = made.coordinates
    expected = {
        "trustworthiness": naive_share(X, Y, NEIGHBORHOOD),
        "continuity": naive_share(Y, X, NEIGHBORHOOD),
    }
    assert [measure["name"] for measure in measures] == list(expected)
    for measure in measures:
        values = np.frombuffer(base64.b64decode(measure["values"]), "<f4")
        np.testing.assert_allclose(values, expected[measure["name"]], atol=1e-6)


@each("dimensions", [1, 2, 3])
def test_a_run_is_compared_with_pca_of_as_many_dimensions(torn, dimensions):
    X, _ = torn
    pca = make_map(X, "pca", n_components=dimensions, scale="none")
    other = make_map(X, "mds", n_components=dimensions, scale="none")
    for row in pca.quality:
        assert row.pca == pytest.approx(row.value, abs=1e-9), row.name
        assert other.quality[row.name].pca == pytest.approx(row.value, abs=1e-9), row.name
