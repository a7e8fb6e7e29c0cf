"""Nonlinear PCA: where a network starts, its training, and the scale and signs of its map."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lowland._base.context import FitContext
from lowland._base.monitor import Monitor
from lowland._base.threads import limit_blas
from lowland._engines.linalg import products
from lowland._engines.linalg.principal_axes import leading_axes
from lowland._engines.network.layers import Network, backward, forward
from lowland._engines.network.quasi_newton import minimize

# Nonlinear PCA: the code layer with its angles, and the two losses that train a network.
#
#     E = mean over m of sum_known (x_ij - Phi_j(z_i; m))^2 / N + decay sum W^2 + ridge sum z^2 / N
#
# Phi(z; m) is the decoder with the components after the m-th set to 0. A hierarchical network has
# m = 1 ... q, any other only m = q. N is the number of known values.


TINY = 1e-30  # squared length of a pair that has no direction


class Code(NamedTuple):
    """The units between map and decoder: a pair (cos, sin) for each of the first components.

    ``n_components`` components, the first ``circular`` of which are angles.
    """

    n_components: int
    circular: int
    hierarchical: bool

    @property
    def width(self) -> int:
        """Number of units."""
        return self.n_components + self.circular

    def units_of(self, component: int) -> slice:
        """Which units belong to a component."""
        if component < self.circular:
            return slice(2 * component, 2 * component + 2)
        return slice(component + self.circular, component + self.circular + 1)

    def stages(self) -> list[int]:
        """The numbers m of components of the sub-networks."""
        q = self.n_components
        return list(range(1, q + 1)) if self.hierarchical else [q]

    def mask(self, m: int) -> np.ndarray:
        """1 for the units of the first m components, 0 for the others."""
        return (np.arange(self.width) < m + min(m, self.circular)).astype(float)

    def of_places(self, Z: np.ndarray) -> np.ndarray:
        """Units (n, width) of places (n, q)."""
        c = self.circular
        units = np.empty((len(Z), self.width))
        units[:, 0 : 2 * c : 2], units[:, 1 : 2 * c : 2] = np.cos(Z[:, :c]), np.sin(Z[:, :c])
        units[:, 2 * c :] = Z[:, c:]
        return units

    def slope_of_places(self, units: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """dE/dZ from dE/dunits."""
        c = self.circular
        down = np.empty((len(units), self.n_components))
        cos, sin = units[:, 0 : 2 * c : 2], units[:, 1 : 2 * c : 2]
        down[:, :c] = cos * slope[:, 1 : 2 * c : 2] - sin * slope[:, 0 : 2 * c : 2]
        down[:, c:] = slope[:, 2 * c :]
        return down

    def of_outputs(self, A: np.ndarray) -> np.ndarray:
        """Units of outputs (n, width) of an encoder: pairs are divided by their length."""
        units, c = A.copy(), self.circular
        pairs = A[:, : 2 * c].reshape(len(A), c, 2)
        lengths = np.sqrt(np.sum(pairs**2, axis=2, keepdims=True) + TINY)
        units[:, : 2 * c] = (pairs / lengths).reshape(len(A), 2 * c)
        return units

    def slope_of_outputs(self, A: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """dE/dA from dE/dunits."""
        down, c, k = slope.copy(), self.circular, 2 * self.circular
        pairs, given = (values[:, :k].reshape(len(A), c, 2) for values in (A, slope))
        squares = np.sum(pairs**2, axis=2, keepdims=True) + TINY
        along = np.sum(pairs * given, axis=2, keepdims=True) / squares
        down[:, :k] = ((given - along * pairs) / np.sqrt(squares)).reshape(len(A), k)
        return down

    def places_of(self, units: np.ndarray) -> np.ndarray:
        """Places (n, q) of units, or of the outputs of an encoder."""
        c = self.circular
        Z = np.empty((len(units), self.n_components))
        Z[:, :c] = np.arctan2(units[:, 1 : 2 * c : 2], units[:, 0 : 2 * c : 2])
        Z[:, c:] = units[:, 2 * c :]
        return Z


class Rows(NamedTuple):
    """Standardized rows in float64, 0 where a value is unknown; None: all are known."""

    X: np.ndarray
    known: np.ndarray | None

    @property
    def n_known(self) -> int:
        return self.X.size if self.known is None else int(self.known.sum())

    def error(self, output: np.ndarray) -> np.ndarray:
        """What the network adds to the known values."""
        error = output - self.X
        return error if self.known is None else error * self.known


def _decoding(
    decoder: Network, weights: np.ndarray, code: Code, units: np.ndarray, rows: Rows, threads: int
) -> tuple[float, np.ndarray, np.ndarray]:
    """The mean of the mean squared errors of the sub-networks, its slopes by weights and units."""
    stages = code.stages()
    share = 1.0 / (rows.n_known * len(stages))
    loss, slopes, down = 0.0, np.zeros_like(weights), np.zeros_like(units)
    for m in stages:
        mask = code.mask(m)
        passed = forward(decoder, weights, units * mask, threads)
        error = rows.error(passed.output)
        loss += share * float(np.sum(np.square(error)))
        back = backward(decoder, weights, passed, 2 * share * error, threads)
        slopes += back.weights
        down += back.X * mask
    return loss, slopes, down


class InverseLoss(NamedTuple):
    """E of the weights of a decoder and the places of the rows, which are one vector."""

    decoder: Network
    code: Code
    rows: Rows
    weight_decay: float
    ridge: float
    threads: int

    def joined(self, weights: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return np.concatenate([weights, Z.ravel()])

    def parts(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights and places."""
        k = self.decoder.n_weights
        return point[:k], point[k:].reshape(-1, self.code.n_components)

    def places(self, point: np.ndarray) -> np.ndarray:
        return self.parts(point)[1]

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        weights, Z = self.parts(point)
        units = self.code.of_places(Z)
        E, by_weights, by_units = _decoding(
            self.decoder, weights, self.code, units, self.rows, self.threads
        )
        decays = self.weight_decay * self.decoder.decays()
        straight = Z.copy()
        straight[:, : self.code.circular] = 0  # an angle has no size
        ridge = self.ridge / self.rows.n_known
        loss = E + float(np.sum(decays * weights**2) + ridge * np.sum(straight**2))
        by_Z = self.code.slope_of_places(units, by_units) + 2 * ridge * straight
        return loss, self.joined(by_weights + 2 * decays * weights, by_Z)


class BottleneckLoss(NamedTuple):
    """E of the weights of an encoder and a decoder, which are one vector; z is what is encoded."""

    encoder: Network
    decoder: Network
    code: Code
    rows: Rows
    weight_decay: float
    ridge: float
    threads: int

    def parts(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the encoder and of the decoder."""
        k = self.encoder.n_weights
        return point[:k], point[k:]

    def places(self, point: np.ndarray) -> np.ndarray:
        outputs = forward(self.encoder, self.parts(point)[0], self.rows.X, self.threads).output
        return self.code.places_of(outputs)

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        into, out = self.parts(point)
        passed = forward(self.encoder, into, self.rows.X, self.threads)
        units = self.code.of_outputs(passed.output)
        E, by_out, by_units = _decoding(
            self.decoder, out, self.code, units, self.rows, self.threads
        )
        straight = passed.output.copy()
        straight[:, : 2 * self.code.circular] = 0
        ridge = self.ridge / self.rows.n_known
        down = self.code.slope_of_outputs(passed.output, by_units) + 2 * ridge * straight
        back = backward(self.encoder, into, passed, down, self.threads, with_x=False)
        decays = self.weight_decay * np.concatenate([self.encoder.decays(), self.decoder.decays()])
        loss = E + float(np.sum(decays * point**2) + ridge * np.sum(straight**2))
        return loss, np.concatenate([back.weights, by_out]) + 2 * decays * point


RACE_STEPS = 100  # of each start; the best one goes on
LEAST_SQUARES_RIDGE = 1e-3  # of the first weights of the last layer, per row
NO_VARIANCE = 1e-9  # share of the first axis' deviation below which an axis is rounding
NOISE = 0.1  # of first places on axes without variance


class Settings(NamedTuple):
    """Numbers of hidden units from the rows to the map, and the parameters of the loss."""

    symmetric: bool
    code: Code
    hidden: tuple[int, ...]
    activation: str
    weight_decay: float
    ridge: float
    n_init: int
    max_iter: int
    tol: float

    def decoder(self, p: int) -> Network:
        encoder = self.encoder(p)
        return encoder._replace(sizes=encoder.sizes[::-1])

    def encoder(self, p: int) -> Network:
        sizes = (p, *self.hidden, self.code.width)
        return Network(sizes, (self.activation,) * len(self.hidden) + ("linear",))


class Trained(NamedTuple):
    """Weights, places (n, q) of the rows, ridge (q,), losses, and the number of steps."""

    encoder: np.ndarray | None
    decoder: np.ndarray
    Z: np.ndarray
    ridge: np.ndarray
    losses: np.ndarray
    n_iter: int


def train(rows: Rows, settings: Settings, run: FitContext) -> Trained:
    """The best of several starts, trained to the end, in a map of unit variance."""
    code, p = settings.code, rows.X.shape[1]
    encoder, decoder = settings.encoder(p), settings.decoder(p)
    options = code, rows, settings.weight_decay, settings.ridge, run.threads
    inverse = InverseLoss(decoder, *options)
    loss = BottleneckLoss(encoder, decoder, *options) if settings.symmetric else inverse
    starts: list[np.ndarray] = []
    for Z in first_places(rows.X, code, settings.n_init, run):
        out = _fitting_weights(decoder, code.of_places(Z), rows.X, run)
        if settings.symmetric:
            into = _fitting_weights(encoder, rows.X, code.of_places(Z), run)
            starts.append(np.concatenate([into, out]))
        else:
            starts.append(inverse.joined(out, Z))
    best, steps, tol = starts[0], min(RACE_STEPS, settings.max_iter), settings.tol
    if len(starts) > 1 and steps > 0:  # the best after a few steps; of equal ones the first
        reached = []
        with run.monitor.phase("starts", len(starts)) as phase:
            for start in starts:
                found = minimize(loss, start, max_iter=steps, tol=tol, monitor=Monitor())
                reached.append(found.losses[-1])
                phase.advance()
        best = starts[int(np.argmin(reached))]
    most, show = settings.max_iter, loss.places
    done = minimize(loss, best, max_iter=most, tol=tol, monitor=run.monitor, show=show)
    into, out = loss.parts(done.point) if settings.symmetric else (None, loss.parts(done.point)[0])
    trained = Trained(into, out, loss.places(done.point), np.zeros(0), done.losses, done.n_iter)
    return _in_standard_form(trained, rows, settings)


# --- starts -------------------------------------------------------------------------------------


def first_places(X: np.ndarray, code: Code, n_init: int, run: FitContext) -> list[np.ndarray]:
    """Principal components; the angle in their plane, and the next ones; then random places."""
    (n, p), q, c = X.shape, code.n_components, code.circular
    P = _components(X, min(n, p, max(2, q + max(1, c))), run)

    def filled(columns: list[np.ndarray]) -> np.ndarray:
        """q columns, small random ones where there is no variance."""
        Z = NOISE * run.rng.standard_normal((n, q))
        for k, column in enumerate(columns[:q]):
            Z[:, k] = column
        return Z

    angles = [_angle(P[:, 2 * k : 2 * k + 2]) for k in range(c) if P.shape[1] >= 2 * k + 2]
    places = []
    if c:
        places.append(filled([*angles, *P[:, 2 * len(angles) :].T]))
    else:
        places.append(filled(list(P.T)))
        if P.shape[1] > 1:
            places.append(filled([_unrolled(_angle(P[:, :2])), *P[:, 2:].T]))
    while len(places) < n_init:
        Z = run.rng.standard_normal((n, q))
        Z[:, :c] = run.rng.uniform(-np.pi, np.pi, (n, c))
        places.append(Z)
    return places[:n_init]


def _components(X: np.ndarray, wanted: int, run: FitContext) -> np.ndarray:
    """Principal components of unit variance, as many as have any."""
    found = leading_axes(X, wanted, run.threads, run.rng, run.monitor)
    deviations = np.sqrt(np.maximum(found.variances, 0))
    varies = deviations > NO_VARIANCE * max(float(deviations.max(initial=0.0)), 1e-150)
    P = products.times(X, found.mean, found.axes[varies].T, run.threads)
    return P / deviations[varies]


def _angle(P: np.ndarray) -> np.ndarray:
    return np.arctan2(P[:, 1], P[:, 0])


def _cut(angles: np.ndarray) -> float:
    """The middle of the widest gap between angles."""
    ordered = np.sort(angles)
    gaps = np.diff(np.append(ordered, ordered[0] + 2 * np.pi))
    widest = int(np.argmax(gaps))
    return float(ordered[widest] + gaps[widest] / 2)


def _unrolled(angles: np.ndarray) -> np.ndarray:
    """Angles counted from their widest gap, with mean 0 and unit variance."""
    t = np.mod(angles - _cut(angles), 2 * np.pi)
    return (t - t.mean()) / (t.std() or 1.0)


def _fitting_weights(
    network: Network, inputs: np.ndarray, wanted: np.ndarray, run: FitContext
) -> np.ndarray:
    """Random hidden layers; the last one by least squares. A constant column gets zeros."""
    weights = np.zeros(network.n_weights)
    layers = network.layers(weights)
    for W, b, _ in layers[:-1]:  # bound of W by Glorot & Bengio (2010)
        W[...] = np.sqrt(6 / sum(W.shape)) * run.rng.uniform(-1, 1, W.shape)
        b[...] = run.rng.uniform(-1, 1, b.shape)
    below, weights_below = network.part(weights, 0, network.n_layers - 1)
    with limit_blas(1):
        H = forward(below, weights_below, inputs, run.threads).output if len(layers) > 1 else inputs
        center, mean = H.mean(axis=0), wanted.mean(axis=0)
        ridge = LEAST_SQUARES_RIDGE * len(H) * np.eye(H.shape[1])
        W = np.linalg.solve((H - center).T @ (H - center) + ridge, (H - center).T @ wanted)
        layers[-1].W[...], layers[-1].b[...] = W, mean - center @ W
    layers[-1].W[:, ~wanted.any(axis=0)] = 0
    return weights


# --- the standard form --------------------------------------------------------------------------


def _in_standard_form(found: Trained, rows: Rows, settings: Settings) -> Trained:
    """The same network with components of unit variance and fixed signs; angles cut in a gap.

    A linear change of the units, units = units' M, is absorbed in the neighboring layers.
    """
    code, p = settings.code, rows.X.shape[1]
    q, M, Z = code.n_components, np.eye(code.width), found.Z.copy()
    ridge = np.full(q, settings.ridge)
    for k in range(q):
        at = code.units_of(k).start
        if k < code.circular:
            turn = _cut(Z[:, k]) + np.pi
            Z[:, k] = np.mod(Z[:, k] - turn + np.pi, 2 * np.pi) - np.pi
            cos, sin = np.cos(turn), np.sin(turn)
            M[at : at + 2, at : at + 2] = [[cos, sin], [-sin, cos]]
            ridge[k] = 0
        else:
            deviation = float(Z[:, k].std()) or 1.0
            Z[:, k] /= deviation
            M[at, at] = deviation
            ridge[k] *= deviation**2
        if _points_backward(Z[:, k], rows.X):
            Z[:, k] *= -1
            last = at + (k < code.circular)
            M[last] *= -1
    with limit_blas(1):
        decoder = found.decoder.copy()
        first = settings.decoder(p).layers(decoder)[0]
        first.W[...] = M @ first.W
        encoder = found.encoder
        if encoder is not None:
            encoder, back = encoder.copy(), np.linalg.inv(M)
            last_layer = settings.encoder(p).layers(encoder)[-1]
            last_layer.W[...], last_layer.b[...] = last_layer.W @ back, last_layer.b @ back
    return found._replace(encoder=encoder, decoder=decoder, Z=Z, ridge=ridge)


def _points_backward(z: np.ndarray, X: np.ndarray) -> bool:
    """Whether the column that a component goes with most falls along it."""
    together = np.einsum("i,ij->j", z - z.mean(), X)
    return bool(together[np.argmax(np.abs(together))] < 0)


def spread_places(Z: np.ndarray, code: Code, most: int) -> np.ndarray:
    """Up to ``most`` of the places, each the farthest from those before it; the first is median."""
    units = code.of_places(Z)
    middle = np.median(units, axis=0)
    nearest = np.sum((units - middle) ** 2, axis=1)
    chosen = [int(np.argmin(nearest))]
    nearest = np.sum((units - units[chosen[0]]) ** 2, axis=1)
    while len(chosen) < min(most, len(Z)):
        far = int(np.argmax(nearest))
        if nearest[far] == 0:
            break
        chosen.append(far)
        nearest = np.minimum(nearest, np.sum((units - units[far]) ** 2, axis=1))
    return Z[chosen]
