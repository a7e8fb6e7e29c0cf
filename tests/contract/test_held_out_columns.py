"""Held-out rows of selectors and of Preparation, against naive formulas."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import lowland
from lowland._base import registry
from lowland.preparation.preparation import Preparation
from support.cases import each
from support.methods import every_selector

RNG = np.random.default_rng(11)
MIXED = RNG.gamma(2.0, size=(70, 6)) @ RNG.random((6, 6)) * [1, 3, 0.5, 1, 2, 1]
X, NEW = MIXED[:60], 1.7 * MIXED[60:] + 0.3
Y = (X[:, 1] + X[:, 4] > np.median(X[:, 1] + X[:, 4])).astype(int)

# How the kept columns follow from what the fit found: the best scores, or the order of choice.
KEPT_BY = {
    "AnovaF": "high scores",
    "ChiSquare": "high scores",
    "CorrelationScore": "high scores",
    "FisherScore": "high scores",
    "LaplacianScore": "low scores",
    "MRMR": "ranks",
    "MutualInformation": "high scores",
    "PrincipalVariables": "ranks",
    "RecursiveElimination": "ranks",
    "ReliefF": "high scores",
    "SequentialSelection": "ranks",
    "VarianceScore": "high scores",
}


def kept_columns(model):
    name, k = type(model).__name__, model.n_features
    assert name in KEPT_BY, f"{name} has no oracle for new rows; say in KEPT_BY what it keeps."
    if KEPT_BY[name] == "ranks":
        best = sorted(range(X.shape[1]), key=lambda j: model.ranking_[j])
    else:
        sign = -1 if KEPT_BY[name] == "high scores" else 1
        best = sorted(range(X.shape[1]), key=lambda j: (sign * model.scores_[j], j))
    return sorted(best[:k])


@every_selector
def test_new_rows_keep_the_chosen_columns(selector):
    quick = {"cv": 2} if "cv" in selector.parameters() else {}
    for k in (2,) if quick else (1, 2, 5):  # wrappers fit a model for each set of columns
        model = selector(n_features=k, random_state=0, **quick).fit(X, Y)
        columns = kept_columns(model)
        found = model.transform(NEW)
        assert found.shape == (len(NEW), k)
        for i, row in enumerate(NEW):
            assert found[i].tolist() == [row[j] for j in columns]


def test_no_oracle_is_left_without_a_selector():
    assert set(KEPT_BY) == {selector.__name__ for selector in registry.all_selectors()}


@each("scale", [False, True])
@each("rule", ["reconstruction", "loadings"])
@each("k", [1, 3])
def test_principal_variables_give_the_other_columns_back_by_regression(scale, rule, k):
    model = lowland.PrincipalVariables(k, scale=scale, rule=rule).fit(X)
    kept = np.flatnonzero(model.support_)
    design = np.column_stack([np.ones(len(X)), X[:, kept]])
    coefficients = np.linalg.lstsq(design, X, rcond=None)[0]
    given = NEW[:, kept]
    expected = np.column_stack([np.ones(len(NEW)), given]) @ coefficients
    np.testing.assert_allclose(model.inverse_transform(given), expected, atol=1e-8)
    np.testing.assert_array_equal(model.inverse_transform(given)[:, kept], given)


# --- Preparation ------------------------------------------------------------------------------


def prepared(X, new, levels_of_new, levels_of_X, scale, missing):
    """Column by column, from the known values of the fitted rows."""
    names = sorted(set(levels_of_X)) if levels_of_X is not None else []
    done = []
    for j in range(X.shape[1] + len(names)):
        if j < X.shape[1]:
            known = [v for v in X[:, j] if not np.isnan(v)]
            fill = np.mean(known) if missing == "mean" else np.median(known)
            fitted = np.array([fill if np.isnan(v) else v for v in X[:, j]])
            column = np.array([fill if np.isnan(v) else v for v in new[:, j]])
        else:
            name = names[j - X.shape[1]]
            fitted = np.array([float(level == name) for level in levels_of_X])
            column = np.array([float(level == name) for level in levels_of_new])
        middle, spread = 0.0, 1.0
        if scale == "standard" and j < X.shape[1]:  # categories are not scaled
            middle = sum(fitted) / len(fitted)
            spread = np.sqrt(sum((fitted - middle) ** 2) / len(fitted))
        if scale == "robust" and j < X.shape[1]:
            low, middle, high = np.quantile(fitted, [0.25, 0.5, 0.75])
            spread = (high - low) / 1.3489795003921634
            spread = spread if spread > 0 else fitted.std()
        done.append((column - middle) / (spread if spread > 0 else 1.0))
    return np.column_stack(done)


@each("scale", ["none", "standard", "robust"])
@each("missing", ["mean", "median"])
def test_new_rows_are_filled_encoded_and_scaled_by_what_was_fitted(scale, missing):
    numbers = X[:, :3] * [1, 100, 1]
    fitted, new = numbers.copy(), NEW[:, :3] * [1, 100, 1]
    fitted[::4, 1] = fitted[::7, 0] = new[::3, 1] = new[1, 2] = np.nan
    fitted[3, 2] = np.nan
    colors = RNG.choice(["red", "green", "blue"], len(fitted)).tolist()
    others = RNG.choice(["red", "green"], len(new)).tolist()
    model = Preparation(scale=scale, missing=missing).fit(fitted)
    expected = prepared(fitted, new, None, None, scale, missing)
    np.testing.assert_allclose(model.transform(new), expected, atol=1e-6)
    model = Preparation(scale=scale, missing=missing)
    with_text = model.fit(pl_table(fitted, colors)).transform(pl_table(new, others))
    expected = prepared(fitted, new, others, colors, scale, missing)
    np.testing.assert_allclose(with_text, expected, atol=1e-6)
    others[2] = "violet"
    with pytest.warns(UserWarning, match="violet"):
        unknown = model.transform(pl_table(new, others))
    np.testing.assert_allclose(
        unknown, prepared(fitted, new, others, colors, scale, missing), atol=1e-6
    )


def pl_table(numbers, colors):
    columns = {name: numbers[:, j] for j, name in enumerate("abc")}
    return pl.DataFrame({**columns, "color": colors})


@each(
    ("factor", "named", "chosen"),
    [(1, True, "none"), (100, True, "standard"), (100, False, "none")],
)
def test_auto_scales_new_rows_only_where_the_units_of_a_table_differ(factor, named, chosen):
    fitted, new = (A[:, :3] / X[:, :3].std(axis=0) * [1, factor, 2] for A in (X, NEW))
    given = [pl.DataFrame(A, schema=list("abc")) if named else A for A in (fitted, new)]
    model = Preparation(scale="auto").fit(given[0])
    assert model.chosen_ == chosen
    expected = prepared(fitted, new, None, None, chosen, "mean")
    np.testing.assert_allclose(model.transform(given[1]), expected, atol=1e-9)
