"""Principal curves against the paper, closed forms, scipy's splines and curves that are known."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import make_smoothing_spline
from scipy.optimize import brentq

from lowland.datasets import digits, iris
from lowland.errors import DataError, ParameterError
from lowland.methods.topographic._curve import as_curve, on_unit, tube
from lowland.methods.topographic._smoothers import (
    Kernel,
    Lowess,
    Spline,
    cells_of,
    control_with,
    gcv,
)
from lowland.methods.topographic.principal_curve import PrincipalCurve
from support.cases import each

SMOOTHERS = ("spline", "kernel", "lowess")


def paths(name, u):
    """Points of a known curve for u in 0 .. 1."""
    if name == "three quarters of a circle":
        return np.stack([np.cos(1.5 * np.pi * u), np.sin(1.5 * np.pi * u)], axis=1)
    if name == "helix":
        return np.stack([np.cos(6 * np.pi * u), np.sin(6 * np.pi * u), 5 * u], axis=1)
    if name == "cubic":
        return np.stack([2 * u - 1, 4 * (2 * u - 1) ** 3 - 2 * (2 * u - 1)], axis=1)
    if name == "parabola":
        return np.stack([2 * u - 1, (2 * u - 1) ** 2], axis=1)
    turns = {"spiral": 1.5, "long spiral": 2.0}[name]
    a = 2 * np.pi * turns * np.sqrt(u) + 0.5
    return np.stack([a * np.cos(a), a * np.sin(a)], axis=1) / 4


def along(name, n, noise, seed=0):
    """Noisy rows of a curve, and the arc lengths of the points they come from."""
    rng = np.random.default_rng(seed)
    u = rng.random(n)
    fine = np.linspace(0, 1, 20_001)
    arcs = np.interp(u, fine, as_curve(paths(name, fine)).arcs)
    X = paths(name, u)
    return X + noise * rng.standard_normal(X.shape), arcs


def ring(n, r, s, seed=0, p=2):
    rng = np.random.default_rng(seed)
    a = 2 * np.pi * rng.random(n)
    X = s * rng.standard_normal((n, p))
    X[:, 0] += r * np.cos(a)
    X[:, 1] += r * np.sin(a)
    return X


def correlation(model, arcs):
    return abs(np.corrcoef(model.embedding_[:, 0], arcs)[0, 1])


# --- curves that are known ----------------------------------------------------------------------

KNOWN = [
    ("three quarters of a circle", 0.15),
    ("helix", 0.1),
    ("spiral", 0.1),
    ("long spiral", 0.08),
    ("cubic", 0.1),
    ("parabola", 0.05),
]


@each(("name", "noise"), KNOWN)
@each("n", [200, 600])
def test_curves_are_recovered(name, noise, n):
    X, arcs = along(name, n, noise)
    model = PrincipalCurve(random_state=0).fit(X)
    assert correlation(model, arcs) >= 0.99
    # a curve that follows the noise is longer; noise prolongs the ends by about 2 deviations
    assert 0.9 * np.ptp(arcs) < model.length_ < 1.08 * np.ptp(arcs) + 6 * noise


@pytest.mark.slow
@each("smoother", SMOOTHERS)
@each("name", ["three quarters of a circle", "spiral"])
def test_curves_are_recovered_by_every_smoother(smoother, name):
    X, arcs = along(name, 300, 0.1, seed=1)
    assert correlation(PrincipalCurve(smoother=smoother, random_state=0).fit(X), arcs) >= 0.99


def test_a_start_along_the_graph_helps_where_the_principal_axis_fails():
    X, arcs = along("cubic", 1000, 0.1)
    axis, graph = (
        PrincipalCurve(init=init, random_state=0).fit(X) for init in ("principal_axis", "geodesic")
    )
    assert correlation(axis, arcs) < 0.9
    assert correlation(graph, arcs) >= 0.99
    assert graph.length_ < axis.length_


def test_many_rows_are_averaged_in_cells_without_a_trace():
    X, arcs = along("spiral", 20_000, 0.1)
    model = PrincipalCurve(random_state=0).fit(X)
    assert correlation(model, arcs) >= 0.99
    part = PrincipalCurve(random_state=0).fit(X[:1500])
    # both are within the error of a curve from 1500 rows: a few of noise / sqrt(rows per df)
    gap = 0.1 * np.sqrt(part.smoothness_ / 1500)
    inner = part.curve_[10:-10]
    places = model.transform(inner)
    np.testing.assert_allclose(model.inverse_transform(places), inner, atol=8 * gap)


# --- the paper's facts ----------------------------------------------------------------------------


def first_axis(X):
    mean = X.mean(axis=0)
    return mean, np.linalg.svd(X - mean, full_matrices=False)[2][0]


@each("smoother", SMOOTHERS)
def test_a_linear_smoother_converges_to_the_first_principal_axis(smoother):
    rng = np.random.default_rng(3)
    X = rng.gamma(2.0, size=(300, 4)) * [1.0, 3, 0.5, 1] @ rng.standard_normal((4, 4))
    # from one of the columns: the steps are those of the power method
    for init in ("auto", "principal_axis", X[:, :1]):
        model = PrincipalCurve(
            smoother=smoother, df=2.0, init=init, tol=0.0, max_iter=300, stretch=5.0
        ).fit(X)
        mean, axis = first_axis(X)
        direction = model.curve_[-1] - model.curve_[0]
        cosine = abs(direction @ axis) / np.linalg.norm(direction)
        gaps = model.curve_ - mean
        off = gaps - np.outer(gaps @ axis, axis)
        size = X.std()
        # local lines of a very wide kernel are almost straight
        close = 1e-6 if smoother == "spline" else 2e-2
        assert cosine > 1 - close
        assert np.abs(off).max() < 10 * close * size
        scores = (X - mean) @ axis
        assert abs(np.corrcoef(scores, model.embedding_[:, 0])[0, 1]) > 1 - close


@each("params", [{}, {"closed": True}, {"smoother": "lowess"}, {"df": 12.0, "n_knots": 37}])
def test_the_curve_has_unit_speed(params):
    X, _ = along("three quarters of a circle", 300, 0.1)
    model = PrincipalCurve(**params).fit(X)
    steps = np.sqrt(np.sum(np.diff(model.curve_, axis=0) ** 2, axis=1))
    np.testing.assert_allclose(np.diff(model.arc_lengths_), steps, rtol=1e-9)
    assert model.arc_lengths_[0] == 0
    assert model.arc_lengths_[-1] == model.length_
    assert steps.max() < 1.1 * steps.min()  # knots are about evenly spaced
    assert len(model.curve_) == params.get("n_knots", 200)
    inside = np.linspace(0, model.length_, 50)[:, None]
    on_curve = model.inverse_transform(inside)
    np.testing.assert_allclose(model.transform(on_curve)[1:-1], inside[1:-1], atol=1e-6)


def test_points_of_the_curve_are_means_of_the_rows_that_project_there():
    X, _ = along("three quarters of a circle", 20_000, 0.15, seed=2)
    model = PrincipalCurve(random_state=0).fit(X)
    places = model.embedding_[:, 0]
    for low, high in np.quantile(places, [[0.1, 0.12], [0.4, 0.42], [0.7, 0.72], [0.85, 0.87]]):
        inside = (places >= low) & (places < high)
        at = model.inverse_transform(places[inside].mean(keepdims=True)[:, None])[0]
        error = 0.15 / np.sqrt(inside.sum())
        assert np.linalg.norm(X[inside].mean(axis=0) - at) < 4 * error


def damping(smoother, df):
    """What a smoother with so many degrees of freedom leaves of one wave around a circle.

    Of local lines through points all around, only the weights w(h u) of a width h matter: the trace
    is 2 pi / (h integral of w), and the share is the mean of cos(h u). Of a spline it is
    1 / (1 + k^4 / c) for the wave k, and the trace is the sum over all waves.
    """
    if smoother == "spline":
        waves = np.arange(-1000.0, 1001.0)
        log_c = brentq(lambda log_c: np.sum(1 / (1 + waves**4 / np.exp(log_c))) - df, -5, 20)
        return 1 / (1 + np.exp(-log_c))

    def weight(u):
        return np.exp(-(u**2) / 2) if smoother == "kernel" else max(0, 1 - abs(u) ** 3) ** 3

    ends = (-9, 9) if smoother == "kernel" else (-1, 1)
    whole = quad(weight, *ends)[0]
    h = 2 * np.pi / (df * whole)
    return quad(lambda u: weight(u) * np.cos(h * u), *ends)[0] / whole


@each("p", [2, 5])
@each("smoother", SMOOTHERS)
def test_a_noisy_circle_is_wider_by_half_its_variance_and_the_correction_undoes_that(smoother, p):
    """Rows around a circle have the mean radius r + s^2 / (2 r), of which a smoother keeps a share.

    The correction smooths what is left, too, and then subtracts s^2 / 2 times the curvature. The
    next order of s is s^4 / (8 r^3).
    """
    n, r, s = 10_000, 1.0, 0.2
    X = ring(n, r, s, p=p)
    error = 4 * s / np.sqrt(n) + s**4 / (8 * r**3)
    radii = []
    for correct in (False, True):
        model = PrincipalCurve(
            smoother=smoother,
            closed=True,
            bias_correction=correct,
            df=9.0,
            init="principal_axis",
        ).fit(X)
        radii.append(np.hypot(*model.curve_[:-1, :2].T).mean())
        np.testing.assert_array_equal(model.curve_[0], model.curve_[-1])
        assert model.prolongation_ == 0
    wide, kept = r + s**2 / (2 * r), damping(smoother, 9.0)
    assert radii[0] == pytest.approx(kept * wide, abs=error)
    twice = (1 - (1 - kept) ** 2) * wide
    assert radii[1] == pytest.approx(twice - s**2 / (2 * twice), abs=error)
    assert abs(radii[1] - r) < abs(radii[0] - r)


def test_closed_curves_find_a_ring_that_no_plane_shows():
    rng = np.random.default_rng(5)
    u = np.sort(rng.random(600))
    a = 2 * np.pi * u  # a trefoil knot
    X = np.stack(
        [np.sin(a) + 2 * np.sin(2 * a), np.cos(a) - 2 * np.cos(2 * a), -np.sin(3 * a)], axis=1
    )
    model = PrincipalCurve(closed=True, random_state=0).fit(X + 0.1 * rng.standard_normal(X.shape))
    angles = np.unwrap(2 * np.pi * model.embedding_[:, 0] / model.length_)
    assert abs(np.ptp(angles) - 2 * np.pi) < 0.3  # once around, in the order of the rows
    assert abs(np.corrcoef(angles, u)[0, 1]) > 0.99
    assert model.mean_squared_distance_ < 2.5 * 0.1**2


# --- smoothers ------------------------------------------------------------------------------------


def scattered(n, seed=0):
    rng = np.random.default_rng(seed)
    t = on_unit(rng.gamma(3.0, size=n), False, 0.0)
    return t, np.stack([np.sin(6 * t), t**2], axis=1) + 0.1 * rng.standard_normal((n, 2))


@each("penalty", [1e-7, 1e-5, 1e-3, 1e-1])
def test_the_spline_is_the_smoothing_spline_of_scipy(penalty):
    _, X = scattered(60)
    t = on_unit((np.arange(60) + 0.8 * np.random.default_rng(1).random(60)) ** 1.5, False, 0.0)
    assert np.diff(t).min() > 1e-3  # closer rows share a knot
    order = np.argsort(t)
    found = Spline(cells_of(t, X), closed=False).curve(np.log10(penalty), np.linspace(0, 1, 41))
    for k in range(2):
        peer = make_smoothing_spline(t[order], X[order, k], lam=penalty * len(t))
        np.testing.assert_allclose(found[:, k], peer(np.linspace(0, 1, 41)), atol=1e-6)


def test_a_closed_spline_damps_waves_as_its_penalty_says():
    t = (np.arange(400) + 0.5) / 400
    for k, control in [(1, -3.0), (2, -4.0), (3, -5.0)]:
        wave = np.cos(2 * np.pi * k * t)[:, None]
        smoother = Spline(cells_of(t, wave), closed=True)
        damped = 1 / (1 + 10**control * (2 * np.pi * k) ** 4)
        np.testing.assert_allclose(smoother.curve(control, t), damped * wave, atol=1e-3)


def naive_line(t, X, w, at):
    """The value at a point of the line through weighted points."""
    A = np.sqrt(w)[:, None] * np.stack([np.ones_like(t), t - at], axis=1)
    return np.linalg.lstsq(A, np.sqrt(w)[:, None] * X, rcond=None)[0][0]


def test_a_kernel_is_a_line_through_weighted_neighbors():
    t, X = scattered(80, seed=1)
    for width in (0.03, 0.1, 0.7):
        found = Kernel(cells_of(t, X), closed=False).curve(np.log10(width), np.linspace(0, 1, 9))
        for at, value in zip(np.linspace(0, 1, 9), found, strict=True):
            w = np.exp(-((t - at) ** 2 - np.min((t - at) ** 2)) / (2 * width**2))
            np.testing.assert_allclose(value, naive_line(t, X, w, at), atol=1e-8)


def test_lowess_is_a_line_through_a_share_of_the_rows():
    t, X = scattered(80, seed=1)
    for share in (0.25, 0.5, 1.0):
        found = Lowess(cells_of(t, X), closed=False).curve(np.log10(share), np.linspace(0, 1, 9))
        for at, value in zip(np.linspace(0, 1, 9), found, strict=True):
            far = np.abs(t - at)
            h = 1.0001 * np.sort(far)[int(np.ceil(share * 80 - 1e-9)) - 1]
            w = np.maximum(0, 1 - (far / h) ** 3) ** 3
            np.testing.assert_allclose(value, naive_line(t, X, w, at), atol=1e-8)


@each("closed", [False, True])
@each("kind", [Spline, Kernel, Lowess])
def test_degrees_of_freedom_are_the_trace_and_gcv_is_as_defined(kind, closed):
    t, X = scattered(50, seed=2)
    order = np.argsort(t)
    smoother = kind(cells_of(t, X), closed)
    control = control_with(smoother, 7.0)
    columns = kind(cells_of(t, np.eye(50)), closed).curve(control, t)  # the whole matrix S
    assert np.trace(columns) == pytest.approx(7.0, abs=0.3 if kind is Lowess else 1e-2)
    rest = X - columns @ X
    assert smoother.residual(control) == pytest.approx(np.mean(np.sum(rest**2, axis=1)), rel=1e-6)
    expected = smoother.residual(control) / (1 - 1.4 * smoother.trace(control) / 50) ** 2
    assert gcv(smoother, control) == pytest.approx(expected)
    np.testing.assert_allclose(smoother.curve(control, t[order]), (columns @ X)[order], atol=1e-8)


@each("most", [7, 100])
def test_cells_are_means_of_neighbors(most):
    rng = np.random.default_rng(4)
    t = np.round(rng.random(60), 1)  # ties
    X = rng.standard_normal((60, 3))
    cells = cells_of(t, X, most)
    assert len(cells.t) == min(most, len(np.unique(t)))
    assert cells.w.sum() == pytest.approx(1.0)
    assert (np.diff(cells.t) > 0).all()
    np.testing.assert_allclose(cells.w @ cells.X, X.mean(axis=0))
    if most > 60:
        for at, mean, share in zip(cells.t, cells.X, cells.w, strict=True):
            same = np.isclose(t, at)
            np.testing.assert_allclose(mean, X[same].mean(axis=0))
            assert share == pytest.approx(same.mean())
    label = np.searchsorted(cells.t, t) if most > 60 else None
    if label is not None:
        near = np.abs(t[:, None] - cells.t).argmin(axis=1)
        within = np.mean(np.sum((X - cells.X[near]) ** 2, axis=1))
        assert cells.within == pytest.approx(within)


@each("smoother", SMOOTHERS)
def test_given_degrees_of_freedom_are_kept(smoother):
    X, _ = along("three quarters of a circle", 400, 0.1)
    for df in (3.0, 6.0, 11.0):
        model = PrincipalCurve(smoother=smoother, df=df, random_state=0).fit(X)
        assert model.smoothness_ == pytest.approx(df, abs=0.5 if smoother == "lowess" else 1e-2)


# --- rows and the map -----------------------------------------------------------------------------


def test_rows_come_back_to_their_projection():
    X = iris().X
    model = PrincipalCurve().fit(X)
    back = model.inverse_transform(model.embedding_)
    np.testing.assert_allclose(np.linalg.norm(X - back, axis=1), model.distances_, atol=1e-9)
    np.testing.assert_allclose(np.mean(model.distances_**2), model.mean_squared_distance_)
    np.testing.assert_allclose(model.transform(back), model.embedding_, atol=1e-6)


def test_new_rows_beyond_an_end_are_placed_on_its_prolongation():
    rng = np.random.default_rng(0)
    X = np.stack([np.linspace(0, 10, 200), 0.1 * rng.standard_normal(200)], axis=1)
    model = PrincipalCurve(df=2.0, stretch=3.0).fit(X)
    more = model.prolongation_
    assert more == pytest.approx(3 * np.sqrt(model.mean_squared_distance_), rel=0.01)
    end, direction = model.curve_[-1], (model.curve_[-1] - model.curve_[0]) / model.length_
    new = end + np.array([[0.5 * more], [0.9 * more], [1.1 * more], [100.0]]) * direction
    expected = model.length_ + np.array([0.5, 0.9, 1.0, 1.0]) * more
    np.testing.assert_allclose(model.transform(new)[:, 0], expected, rtol=1e-9)
    line = model.inverse_transform(np.array([[-1.0], [model.length_ + 1]]))
    np.testing.assert_allclose(line, [model.curve_[0] - direction, end + direction], rtol=1e-9)


def test_of_several_curves_the_narrowest_tube_for_its_length_wins():
    X = np.random.default_rng(0).standard_normal((500, 2)) * [2.0, 1.0]
    model = PrincipalCurve(random_state=0).fit(X)
    assert model.length_ < 3 * np.ptp(X[:, 0])  # not a curve that winds through the cloud
    assert model.mean_squared_distance_ > 0.3


def test_the_entropy_of_a_tube_is_that_of_a_uniform_line_with_normal_noise():
    from lowland.methods.topographic._curve import Projection, Traced

    n, length, s = 4000, 5.0, 0.3
    arcs = np.random.default_rng(0).random(n) * length
    places = Projection(np.zeros(n, int), arcs, np.zeros(n))
    traced = Traced(as_curve(np.array([[0.0, 0], [5, 0]])), 0.0, places, 2.0, s**2, [0.0])
    expected = np.log(length) + 0.5 * np.log(2 * np.pi * np.e * s**2)
    assert tube(traced, 1.0) == pytest.approx(expected, abs=0.05)


# --- poor data ------------------------------------------------------------------------------------

LINE = np.outer(np.arange(8.0), [1.0, 2.0, -1.0])
POOR = {
    "equal rows": np.ones((6, 3)),
    "two rows": LINE[:2],
    "three rows": np.array([[0.0, 0], [1, 0], [1, 1]]),
    "four rows": np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]]),
    "five rows of two places": np.repeat(LINE[:2], [2, 3], axis=0),
    "a line": LINE,
    "copies": np.repeat(np.random.default_rng(0).standard_normal((5, 3)), 12, axis=0),
    "rounded": np.round(ring(300, 1.0, 0.1), 1),
    "one column": np.random.default_rng(0).gamma(2.0, size=(40, 1)),
    "constant columns": np.column_stack([ring(60, 1.0, 0.1), np.ones(60), np.zeros(60)]),
    "an outlier": np.vstack([ring(60, 1.0, 0.1), [[1e6, 1e6]]]),
    "more columns than rows": np.random.default_rng(0).standard_normal((6, 50)),
}


TRIED = [{}, {"df": 2.0}, {"init": "geodesic", "n_knots": 2}]
TRIED += [{"smoother": smoother, "init": "principal_axis"} for smoother in ("kernel", "lowess")]


@each("name", POOR)
def test_poor_data_give_a_curve(name):
    X = POOR[name]
    for params in TRIED:
        model = PrincipalCurve(random_state=0, max_iter=6, **params).fit(X)
        assert np.isfinite(model.curve_).all()
        assert np.isfinite(model.transform(X)).all()
        total = np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1))
        assert model.mean_squared_distance_ <= total * (1 + 1e-9) + 1e-20


def test_rows_on_a_line_are_mapped_to_their_places():
    model = PrincipalCurve().fit(LINE)
    gaps = np.diff(model.embedding_[:, 0])
    np.testing.assert_allclose(np.abs(gaps), np.sqrt(6), rtol=1e-6)
    assert model.mean_squared_distance_ < 1e-10


def test_closed_curves_of_poor_data():
    for name in ("a line", "two rows", "equal rows", "one column"):
        with pytest.raises(DataError, match="closed=False"):
            PrincipalCurve(closed=True).fit(POOR[name])
    for name in ("three rows", "four rows", "copies", "rounded", "constant columns"):
        for smoother in SMOOTHERS:
            model = PrincipalCurve(closed=True, smoother=smoother, init="principal_axis")
            model.fit(POOR[name])
            assert np.isfinite(model.embedding_).all()
            assert (model.embedding_ >= 0).all()
            assert (model.embedding_ < model.length_).all()


def test_wrong_parameters_are_refused():
    X = iris().X
    wrong = [
        ({"n_components": 2}, "at most 1"),
        ({"df": 151.0}, "df=151"),
        ({"df": 2.5, "closed": True}, "from 3"),
        ({"df": 1.0}, "df=1.0"),
        ({"n_knots": 1}, "n_knots"),
    ]
    for params, message in wrong:
        with pytest.raises(ParameterError, match=message):
            PrincipalCurve(**params).fit(X)
    with pytest.raises(ParameterError, match="at most 2"):
        PrincipalCurve(3).fit(X[:, :2])
    with pytest.raises(DataError, match="init has shape"):
        PrincipalCurve(init=X[:, :2]).fit(X)
    with pytest.raises(DataError, match="one position for all rows"):
        PrincipalCurve(init=np.ones((150, 1))).fit(X)
    with pytest.raises(DataError, match="NaN"):
        PrincipalCurve().fit(np.where(X > 7, np.nan, X))


def test_real_data():
    flowers = iris()
    model = PrincipalCurve(random_state=0).fit(flowers.X)
    order = [np.median(model.embedding_[flowers.y == c]) for c in np.unique(flowers.y)]
    assert order == sorted(order) or order == sorted(order, reverse=True)
    pca = np.mean(np.sum((flowers.X - flowers.X.mean(axis=0)) ** 2, axis=1))
    mean, axis = first_axis(flowers.X)
    pca -= np.mean(((flowers.X - mean) @ axis) ** 2)
    assert model.mean_squared_distance_ < pca  # a line is one of the curves
    wide = PrincipalCurve(random_state=0, max_iter=6).fit(digits().X[:300].astype(np.float32))
    assert wide.embedding_.dtype == np.float32
    assert np.isfinite(wide.embedding_).all()
