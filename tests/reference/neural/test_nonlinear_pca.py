"""Nonlinear PCA against its loss written out, PCA, and known curves."""

import functools
import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr

from lowland import PCA, NonlinearPCA
from lowland._engines.network.layers import Network, first_weights
from lowland.errors import DataError, MemoryLimitError, ParameterError
from lowland.methods.neural._nlpca_places import Decoder, nearest_places
from lowland.methods.neural._nlpca_training import BottleneckLoss, Code, InverseLoss, Rows
from reference.plain import slope_of
from support.bent_rows import rows, with_holes
from support.cases import each
from support.oracles.neural_network import network


def angle_between(A, B):
    """The largest angle between the spans of columns, in radians."""
    A, B = np.linalg.qr(A)[0], np.linalg.qr(B)[0]
    return float(np.arcsin(min(1.0, np.linalg.norm(B - A @ (A.T @ B), 2))))


# --- the loss -----------------------------------------------------------------------------------


def squared_weights(weights, sizes):
    total = 0.0
    for n_in, n_out in itertools.pairwise(sizes):
        total += np.sum(weights[: n_in * n_out] ** 2)
        weights = weights[n_in * n_out + n_out :]
    return total


def paper(X, Z, weights, sizes, activation, circular, hierarchical, decay, ridge):
    """The loss of the inverse network, value by value; X has NaN where it is unknown."""
    q, stages = Z.shape[1], range(1, Z.shape[1] + 1) if hierarchical else [Z.shape[1]]
    known, total = int(np.sum(X == X)), 0.0
    for m in stages:
        for x, z in zip(X, Z, strict=True):
            units = []
            for k in range(q):
                if k < circular:
                    units += [np.cos(z[k]), np.sin(z[k])] if k < m else [0.0, 0.0]
                else:
                    units += [z[k]] if k < m else [0.0]
            y = network(np.array(units), weights, sizes, activation)
            total += sum((a - b) ** 2 for a, b in zip(x, y, strict=True) if a == a)
    total /= known * len(stages)
    return (
        total
        + decay * squared_weights(weights, sizes)
        + ridge * np.sum(Z[:, circular:] ** 2) / known
    )


@each("hierarchical", [False, True])
@each("circular", [0, 2])
@each("holes", [False, True])
@each(
    ("hidden", "activation"), [((5,), "tanh"), ((4, 3), "sigmoid"), ((5,), "elu"), ((3,), "linear")]
)
def test_the_inverse_loss_is_that_of_the_paper_with_its_slope(
    hierarchical, circular, holes, hidden, activation
):
    rng, q = np.random.default_rng(1), 3
    X = with_holes(rows(7, 4)) if holes else rows(7, 4)
    known = ~np.isnan(X)
    decoder = Network((q + circular, *hidden, 4), (activation,) * len(hidden) + ("linear",))
    code, table = (
        Code(q, circular, hierarchical),
        Rows(np.where(known, X, 0.0), known if holes else None),
    )
    loss = InverseLoss(decoder, code, table, 0.03, 0.05, 1)
    weights, Z = first_weights(decoder, rng) + 0.1, rng.standard_normal((7, q))
    value, slope = loss(loss.joined(weights, Z))
    expected = paper(X, Z, weights, decoder.sizes, activation, circular, hierarchical, 0.03, 0.05)
    assert value == pytest.approx(expected, rel=1e-12)
    numerical = slope_of(lambda at: loss(at)[0], loss.joined(weights, Z))
    np.testing.assert_allclose(slope, numerical, atol=1e-6 * np.abs(numerical).max())


@each("hierarchical", [False, True])
@each("circular", [0, 1, 2])
def test_the_loss_of_a_bottleneck_is_that_of_its_own_places_with_its_slope(hierarchical, circular):
    rng, q = np.random.default_rng(2), 2
    X = rows(9, 4)
    encoder = Network((4, 5, q + circular), ("tanh", "linear"))
    decoder = Network((q + circular, 5, 4), ("tanh", "linear"))
    loss = BottleneckLoss(
        encoder, decoder, Code(q, circular, hierarchical), Rows(X, None), 0.03, 0.05, 1
    )
    into, out = first_weights(encoder, rng) + 0.1, first_weights(decoder, rng) + 0.1
    point = np.concatenate([into, out])
    value, slope = loss(point)
    A = network(X, into, encoder.sizes, "tanh")
    angles = [np.arctan2(A[:, 2 * k + 1], A[:, 2 * k]) for k in range(circular)]
    Z = np.column_stack([*angles, A[:, 2 * circular :]])
    np.testing.assert_allclose(loss.places(point), Z, atol=1e-12)
    expected = paper(X, Z, out, decoder.sizes, "tanh", circular, hierarchical, 0.03, 0.05)
    assert value == pytest.approx(expected + 0.03 * squared_weights(into, encoder.sizes), rel=1e-12)
    np.testing.assert_allclose(slope, slope_of(lambda at: loss(at)[0], point), atol=1e-7)


# --- linear networks are PCA --------------------------------------------------------------------


def cloud(seed=3):
    """Rows whose variances along the axes fall by a factor of 2 or 3."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    return rng.gamma(2.0, size=(70, 6)) * [4, 2.5, 1.5, 0.6, 0.4, 0.2] @ turn


STRAIGHT = {
    "activation": "linear",
    "standardize": False,
    "weight_decay": 1e-4,
    "tol": 1e-15,
    "max_iter": 1500,
    "n_init": 1,
    "random_state": 0,
}


@each("variant", ["inverse", "symmetric"])
@each("hidden", [4, [6, 4]])
def test_a_linear_network_finds_the_plane_of_the_principal_axes(variant, hidden):
    X = cloud()
    linear = PCA(3).fit(X)
    model = NonlinearPCA(3, variant=variant, hidden=hidden, **STRAIGHT).fit(X)
    at = model.inverse_transform(np.vstack([np.eye(3), np.zeros((1, 3))]))
    # A loss within 1e-4 of the discarded variance. Penalties shorten axes, but turn none, and to
    # turn the third axis by an angle a towards the fourth costs a^2 (v_3 - v_4).
    shares = PCA(6).fit(X).explained_variance_ratio_
    excess = 1e-4 * shares[3:].sum()
    assert abs(model.explained_variance_ratio_.sum() - shares[:3].sum()) < excess
    angle = angle_between(linear.components_.T, (at[:3] - at[3]).T)
    assert angle**2 * (shares[2] - shares[3]) < excess


@each("variant", ["inverse", "symmetric"])
def test_a_wide_table_is_no_exception(variant):
    """It is trained in the space of its rows, where columns are few."""
    rng = np.random.default_rng(0)
    X = cloud()[:30] @ rng.standard_normal((6, 90)) + 0.01 * rng.standard_normal((30, 90))
    X[:, 7] = 3.0
    model = NonlinearPCA(2, variant=variant, hidden=4, **STRAIGHT).fit(X)
    shares = PCA(6).fit(X).explained_variance_ratio_
    assert model.explained_variance_ratio_.sum() == pytest.approx(shares[:2].sum(), abs=1e-3)
    back = model.inverse_transform(model.embedding_)
    assert (back[:, 7] == 3.0).all()
    lost = np.sum((X - back) ** 2) / np.sum((X - X.mean(axis=0)) ** 2)
    assert lost == pytest.approx(1 - model.explained_variance_ratio_.sum(), abs=1e-9)


@each("variant", ["inverse", "symmetric"])
def test_a_linear_hierarchical_network_finds_each_principal_axis_in_order(variant):
    X = cloud()
    linear = PCA(3).fit(X)
    model = NonlinearPCA(3, variant=variant, hidden=4, hierarchical=True, **STRAIGHT).fit(X)
    for found, axis in zip(model.embedding_.T, linear.transform(X).T, strict=True):
        assert abs(np.corrcoef(found, axis)[0, 1]) > 1 - 1e-4
    np.testing.assert_allclose(
        model.explained_variance_ratio_, linear.explained_variance_ratio_, atol=1e-4
    )


# --- known curves -------------------------------------------------------------------------------


def arc(n=200, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 1.5 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t)]) + noise * rng.standard_normal((n, 2)), t


def parabola(n=200, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, n)
    return np.column_stack([t, t**2]) + noise * rng.standard_normal((n, 2)), t


@pytest.mark.slow
@each("variant", ["inverse", "symmetric"])
@each(("make", "noise"), [(arc, 0.1), (parabola, 0.05)])
def test_one_component_finds_a_bent_curve(variant, make, noise):
    X, t = make()
    model = NonlinearPCA(1, variant=variant, standardize=False, random_state=0).fit(X)
    # across a curve in the plane there is the noise of one direction
    error = np.mean(np.sum((model.inverse_transform(model.embedding_) - X) ** 2, axis=1))
    assert error < 1.2 * noise**2
    assert abs(spearmanr(model.embedding_[:, 0], t)[0]) > 0.99
    assert model.embedding_.std() == pytest.approx(1, abs=0.02)
    new, s = make(seed=1)
    places, clean = model.transform(new), make(noise=0, seed=1)[0]
    assert abs(spearmanr(places[:, 0], s)[0]) > 0.99
    # the noise along the curve moves a row by one deviation, and the fit is not exact
    off = np.sqrt(np.mean(np.sum((model.inverse_transform(places) - clean) ** 2, axis=1)))
    assert off < 2 * noise


@each("variant", ["inverse", "symmetric"])
def test_a_circular_unit_finds_a_closed_curve(variant):
    rng, noise = np.random.default_rng(0), 0.05
    t = rng.uniform(-np.pi, np.pi, 200)
    clean = np.column_stack([2 * np.cos(t), np.sin(t), 0.5 * np.cos(t + 1)])
    X = clean + noise * rng.standard_normal(clean.shape)
    model = NonlinearPCA(1, circular=1, variant=variant, random_state=0).fit(X)
    angle = model.embedding_[:, 0]
    together = max(abs(np.mean(np.exp(1j * (angle - t)))), abs(np.mean(np.exp(1j * (angle + t)))))
    assert together > 0.97
    assert np.abs(angle).max() <= np.pi
    # two of three directions are across the curve
    error = np.sqrt(np.mean((model.inverse_transform(model.embedding_) - X) ** 2))
    assert error < 1.2 * noise
    # a turn further is the same place
    np.testing.assert_allclose(
        model.inverse_transform(model.embedding_ + 2 * np.pi),
        model.inverse_transform(model.embedding_),
        atol=1e-12,
    )
    straight = NonlinearPCA(1, variant=variant, random_state=0).fit(X)
    assert model.loss_history_[-1] < straight.loss_history_[-1]


def test_angles_are_cut_where_there_is_no_row():
    rng = np.random.default_rng(0)
    t = rng.uniform(0.3, 1.7 * np.pi, 150)
    X = np.column_stack([np.cos(t), np.sin(t)]) + 0.02 * rng.standard_normal((150, 2))
    model = NonlinearPCA(1, circular=1, random_state=0).fit(X)
    assert abs(spearmanr(model.embedding_[:, 0], t)[0]) > 0.999
    assert model._torus_sides() == pytest.approx([2 * np.pi])


# --- order and explained variance ---------------------------------------------------------------


@functools.cache
def tube():
    """A bent sheet: long, then wide, then noise."""
    rng = np.random.default_rng(4)
    t, h = rng.uniform(-1, 1, 250), rng.uniform(-1, 1, 250)
    X = np.column_stack([np.sin(2 * t), np.cos(2 * t), t + 0.4 * h, 0.4 * h - t**2])
    return X + 0.03 * rng.standard_normal(X.shape)


@each("variant", ["inverse", "symmetric"])
def test_explained_variances_are_ordered_and_those_of_the_sub_networks(variant):
    X = tube()
    model = NonlinearPCA(3, variant=variant, hierarchical=True, random_state=0, max_iter=200).fit(X)
    shares = model.explained_variance_ratio_
    assert (np.diff(shares) < 0).all()
    assert (shares > -1e-3).all()
    S, total = (X - model.mean_) / model.scale_, 0.0
    for m in range(1, 4):
        places = model.embedding_.copy()
        places[:, m:] = 0
        left = S - (model.inverse_transform(places) - model.mean_) / model.scale_
        total += shares[m - 1]
        assert total == pytest.approx(1 - np.sum(left**2) / np.sum(S**2), abs=1e-9)
    assert shares[0] > PCA(1).fit(S).explained_variance_ratio_[0]


# --- missing values -----------------------------------------------------------------------------


def helix(n, noise, most, seed=0):
    """(sin pi t, cos pi t, t), |t| <= most, as in the published example; and a gap in each row."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-most, most, n)
    clean = np.column_stack([np.sin(np.pi * t), np.cos(np.pi * t), t])
    gaps = clean + noise * rng.standard_normal(clean.shape)
    gaps[np.arange(n), rng.integers(0, 3, n)] = np.nan
    return gaps, clean


def imputed_by_pca(X, q):
    """Missing values are what q principal axes of the filled table say, until nothing changes."""
    holes, filled = np.isnan(X), np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    for _ in range(500):
        mean = filled.mean(axis=0)
        axes = np.linalg.svd(filled - mean, full_matrices=False)[2][:q]
        filled = np.where(holes, mean + (filled - mean) @ axes.T @ axes, filled)
    return filled


def rms(A, B, where):
    return float(np.sqrt(np.mean((A - B)[where] ** 2)))


def test_a_helix_with_a_gap_in_each_row_is_filled_far_better_than_by_pca():
    gaps, clean = helix(400, 0.05, 1.0)
    holes = np.isnan(gaps)
    model = NonlinearPCA(1, random_state=0).fit(gaps)
    filled = model.impute(gaps)
    np.testing.assert_array_equal(filled[~holes], gaps[~holes])
    np.testing.assert_array_equal(
        filled[holes], model.inverse_transform(model.transform(gaps))[holes]
    )
    # PCA, and the best that any linear rule can do, which knows the clean values: cos is unknown
    # (variance 1/2), sin and t have the correlation .78, which leaves .525 (rms) of the three.
    by_pca = [rms(imputed_by_pca(gaps, q), clean, holes) for q in (1, 2)]
    linear = min(*by_pca, rms(imputed_by_regression(gaps, clean), clean, holes))
    # New rows have gaps, too. Where t is missing, the curve is at one place for t = -1 and t = 1:
    # rows of one end may be taken for the other, and are wrong by 2. That happens to few rows, as
    # the ends differ by three deviations of the noise within .05 of the length. All others are
    # filled to the noise, as where each row has one place.
    other, truth = helix(1000, 0.05, 1.0, seed=1)
    for table, known, found in ((gaps, clean, filled), (other, truth, model.impute(other))):
        unknown = np.isnan(table)
        assert rms(found, known, unknown) < linear
        confused = np.abs(found - known)[:, 2] > 1
        ends = np.abs(known[:, 2]) > 1 - 3 * 0.05 / np.pi
        assert confused.sum() <= (ends & unknown[:, 2]).sum()
        assert rms(found, known, unknown & ~confused[:, None]) < 2 * 1.25 * 0.05


def imputed_by_regression(X, clean):
    """Least squares of each column on the two others, learned from rows without gaps."""
    filled = X.copy()
    for j in range(3):
        others = np.delete(np.arange(3), j)
        A = np.column_stack([clean[:, others], np.ones(len(X))])
        weights = np.linalg.lstsq(A, clean[:, j], rcond=None)[0]
        holes = np.isnan(X[:, j])
        filled[holes, j] = X[np.ix_(holes, others)] @ weights[:2] + weights[2]
    return filled


def test_rows_with_one_known_value_and_columns_with_few_are_placed():
    gaps, _ = helix(150, 0.05, 0.85)
    gaps[::10, :2] = np.nan  # some rows lose a second value
    gaps[np.isnan(gaps).all(axis=1), 2] = 0.5
    model = NonlinearPCA(2, random_state=0, max_iter=60).fit(gaps)
    assert np.isfinite(model.embedding_).all()
    new = np.array([[np.nan, np.nan, 0.4], [np.nan, 1.0, np.nan], [0.1, 1.0, 0.0]])
    places = model.transform(new)
    assert np.isfinite(places).all()
    for row, place in zip(new, places, strict=True):
        np.testing.assert_array_equal(model.transform(row[None])[0], place)
    np.testing.assert_array_equal(model.impute(new)[~np.isnan(new)], new[~np.isnan(new)])


def test_the_symmetric_variant_refuses_missing_values_and_names_the_other():
    X = rows(40)
    model = NonlinearPCA(2, variant="symmetric", random_state=0, max_iter=5).fit(X)
    X[7, 2] = np.nan
    for act in (NonlinearPCA(2, variant="symmetric").fit, model.transform, model.impute):
        with pytest.raises(DataError, match=r"column 2, first in row 7.*variant='inverse'"):
            act(X)


# --- new rows -----------------------------------------------------------------------------------


@each("hierarchical", [False, True])
@each("holes", [False, True])
def test_no_place_of_a_grid_is_better_than_that_of_a_row(hierarchical, holes):
    """Also with gaps, whose search does not use the span of the last layer."""
    X = tube()[:60]
    X = with_holes(X, 0.3) if holes else X
    model = NonlinearPCA(2, hierarchical=hierarchical, random_state=0, max_iter=150).fit(X)
    S = (X - model.mean_) / model.scale_
    axis = np.linspace(-2.5, 2.5, 41)
    grid = np.array(list(itertools.product(axis, axis)))
    sizes = (2, *model.hidden_[::-1], 4)

    def heights(Z, x):
        stages = (1, 2) if hierarchical else (2,)
        found = np.sum(model.ridge_ * Z**2, axis=1)
        for m in stages:
            units = Z * (np.arange(2) < m)
            y = network(units, model.decoder_weights_, sizes, "tanh")
            found = found + np.nansum((x - y) ** 2, axis=1) / len(stages)
        return found

    for x, z in zip(S[:25], model.embedding_[:25], strict=True):
        assert heights(z[None], x)[0] <= heights(grid, x).min() * (1 + 1e-9)


def test_rows_with_and_without_gaps_are_placed_by_the_same_rule():
    """All values known, once as a complete row, once through the search with a mask."""
    X = tube()[:80]
    model = NonlinearPCA(2, random_state=0, max_iter=100).fit(X)
    S = (X - model.mean_) / model.scale_
    decoder, known = model._decoder(), np.ones(X.shape, dtype=bool)
    masked = nearest_places(decoder, model.anchors_, S, known, 1)
    assert isinstance(decoder, Decoder)
    np.testing.assert_allclose(masked, model.embedding_, atol=1e-6)


def test_far_rows_do_not_move_others():
    X = tube()[:60]
    model = NonlinearPCA(2, random_state=0, max_iter=50).fit(X)
    alone = model.transform(X[:5])
    for far in (1e6, 1e70):
        company = model.transform(np.vstack([X[:5], np.full((1, 4), far)]))
        assert np.isfinite(company).all()
        assert company[:5].tobytes() == alone.tobytes()


# --- bad input ----------------------------------------------------------------------------------


@each("variant", ["inverse", "symmetric"])
def test_constant_columns_are_kept_and_have_no_say(variant):
    X = tube()[:60]
    wide = np.insert(X, 2, 7.0, axis=1)
    model = NonlinearPCA(2, variant=variant, random_state=0, max_iter=40).fit(wide)
    np.testing.assert_array_equal(model.inverse_transform(model.embedding_)[:, 2], 7.0)
    moved = wide.copy()
    moved[:, 2] = 1e5
    if variant == "inverse":
        np.testing.assert_allclose(model.transform(moved), model.embedding_, atol=1e-6)
    constant = NonlinearPCA(2, variant=variant, random_state=0).fit(np.ones((9, 3)))
    assert np.isfinite(constant.embedding_).all()
    np.testing.assert_array_equal(constant.explained_variance_ratio_, 0)


def test_a_constant_column_with_gaps_stays_constant():
    X = with_holes(np.insert(tube()[:60], 2, 0.1, axis=1))
    model = NonlinearPCA(2, random_state=0, max_iter=40).fit(X)
    assert model.scale_[2] == 1.0
    assert np.unique(model.impute(X)[:, 2]).tolist() == [0.1]


def test_parameters_that_cannot_be_are_refused_by_name():
    with pytest.raises(ParameterError, match=r"circular=3 is more than n_components=2"):
        NonlinearPCA(2, circular=3).fit(rows(20))
    with pytest.raises(ParameterError, match="circular="):
        NonlinearPCA(2, circular=2**63).fit(rows(20))
    with pytest.raises(MemoryLimitError, match="hidden units"):
        NonlinearPCA(2, hidden=[100_000, 100_000]).fit(rows(20))


def test_many_rows_are_placed_by_a_network_of_some(monkeypatch):
    monkeypatch.setattr("lowland.methods.neural.nonlinear_pca.LEARNED_ROWS", 120)
    X, t = arc(n=400)
    model = NonlinearPCA(1, random_state=0).fit(X)
    assert abs(spearmanr(model.embedding_[:, 0], t)[0]) > 0.99
    np.testing.assert_array_equal(model.transform(X), model.embedding_)
