"""Principal variables: regressions done the long way, bounds, and exact cases."""

from __future__ import annotations

import numpy as np
import pytest

import lowland
from lowland.datasets import wine


def explained(X, columns, scale=False):
    """Share of the variance that least squares on the columns give back."""
    Y = (X - X.mean(axis=0)) / (X.std(axis=0) if scale else 1)
    chosen = Y[:, list(columns)]
    residual = Y - chosen @ np.linalg.lstsq(chosen, Y, rcond=None)[0]
    return 1 - (residual**2).sum() / (Y**2).sum()


@pytest.mark.parametrize("scale", [False, True])
def test_each_column_is_the_one_that_explains_most(irregular, scale):
    X = irregular(70, 8) * (1 + np.arange(8)) ** 0.5
    found = lowland.PrincipalVariables(4, scale=scale).fit(X)
    order = np.argsort(found.ranking_)
    for k in range(1, 5):
        before = order[: k - 1].tolist()
        shares = {j: explained(X, [*before, j], scale) for j in range(8) if j not in before}
        assert max(shares, key=shares.get) == order[k - 1]
        share = found.explained_variance_ratio_[:k].sum()
        assert share == pytest.approx(shares[order[k - 1]], abs=1e-10)


def test_rows_come_back_in_their_type_and_from_the_kept_columns_only(irregular):
    X = irregular(60, 6)
    found = lowland.PrincipalVariables(3).fit(X)
    assert found.inverse_transform(found.transform(X.astype(np.float32))).dtype == np.float32
    with pytest.raises(ValueError, match="X has 2 columns, but this PrincipalVariables keeps 3"):
        found.inverse_transform(X[:, :2])


def test_columns_that_are_sums_of_others_come_last(irregular):
    base = irregular(50, 3)
    X = np.column_stack([base, base @ [1, 2, 3], base @ [1, -1, 0.5], np.full(50, 4.0)])
    found = lowland.PrincipalVariables(3).fit(X)
    assert found.explained_variance_ratio_.sum() == pytest.approx(1.0)
    everything = lowland.PrincipalVariables(6).fit(X)
    assert everything.ranking_[5] == 6
    np.testing.assert_allclose(everything.scores_[everything.ranking_ > 3], 0.0, atol=1e-12)
    np.testing.assert_allclose(found.inverse_transform(found.transform(X)), X, atol=1e-9)


def test_as_few_as_explain_the_share_asked_for():
    X = wine().X
    for share in (0.5, 0.95, 1.0):
        found = lowland.PrincipalVariables(variance=share, scale=True).fit(X)
        ratios = found.explained_variance_ratio_
        assert ratios.sum() >= share * (1 - 1e-9)
        assert ratios[:-1].sum() < share


def test_loadings_are_jolliffes(irregular):
    X = irregular(80, 6)
    found = lowland.PrincipalVariables(6, rule="loadings").fit(X)
    _, _, axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    taken = []
    for axis in np.abs(axes):
        taken.append(max((j for j in range(6) if j not in taken), key=lambda j: axis[j]))
    np.testing.assert_array_equal(np.argsort(found.ranking_), taken)
    two = lowland.PrincipalVariables(2, rule="loadings").fit(X)
    share = explained(X, two.get_support(indices=True))
    assert two.explained_variance_ratio_.sum() == pytest.approx(share, abs=1e-10)
