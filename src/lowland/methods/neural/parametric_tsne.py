"""Parametric t-SNE (van der Maaten 2009): the map is a function, computed by a network."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from lowland._base.constraints import Boolean, Integer, OneOf, Real, Several
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import count
from lowland._base.monitor import Monitor
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense
from lowland._engines.embedding import affinity
from lowland._engines.embedding.descent import Divergence, Stage, descend, entropy_of
from lowland._engines.embedding.initial_layout import principal_layout
from lowland._engines.embedding.repulsion import choose_repulsion
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.neighbors.duplicates import at_common_place, equal_in_graph
from lowland._engines.neighbors.graph import NeighborGraph
from lowland._engines.neighbors.search import neighbor_graph, neighbor_graph_cost
from lowland._engines.network.adam import Adam, Plan, train
from lowland._engines.network.layers import Network, apply, backward, first_weights, forward
from lowland.methods.neural._base import MOST_HIDDEN, NetworkReducer

HIDDEN = (256, 128)
MOST_ROWS = 100_000  # the network is trained on so many rows
BATCH = 128
TAIL = 0.2  # of the loss of the regression, in standard deviations of the map
REFINING, REFINING_RATE = 50, 0.1  # steps down the divergence; their rate, of learning_rate
FAR_OUT, CENTER_ROWS = 10.0, 1000
STEPS, EPOCHS = 4000, (40, 1000)  # "auto": about so many steps, in so many epochs


# Descent of a network's own divergence: dKL/dw = sum_i (dF(x_i)/dw)^T dKL/dy_i  at y = F(x).
#
# All rows enter each step, because each y_i feels the repulsion of all others. The rows pass
# through the network in blocks, once for y and once more for the gradient, so that the values of
# hidden units are never kept for all rows.


# The map of t-SNE whose points are free, and the divergence of any other map of the same rows.


# As TSNE has them.
EXAGGERATION, EXAGGERATED_STEPS = 12.0, 250
MOMENTUM, LATE_MOMENTUM = 0.8, 0.9
TOLERANCE = 1e-5
ANGLE = 0.5  # of the tree, where it is the fastest repulsion


class FreeMap:
    """KL(P || Q) of the rows of a neighbor graph, and the map that t-SNE finds for them.

    Attributes
    ----------
    Y : ndarray of shape (n, d), float32
        Positions; those of the start until :meth:`descend` is called. Equal rows share a place.
    """

    def __init__(
        self, rows: np.ndarray, graph: NeighborGraph, perplexity: Any, d: int, run: FitContext
    ) -> None:
        self._equal = equal_in_graph(graph)
        Y = principal_layout(rows, d, run).astype(np.float32)
        self.Y = np.ascontiguousarray(at_common_place(Y, self._equal))
        P = affinity.joint_affinities(graph, perplexity, threads=run.threads, dtype=np.float32)
        method = "auto", P.n, d, 1.0, ANGLE, run.threads
        repulsion = choose_repulsion(*method, owner="ParametricTSNE")
        self._divergence = Divergence(P, 1.0, repulsion, entropy_of(P.weights), run.threads)
        self._rows = np.arange(P.n)  # the row of each point of the divergence

    def descend(self, max_iter: int, monitor: Monitor) -> None:
        """Move the points as :class:`lowland.TSNE` does."""
        early = min(EXAGGERATED_STEPS, max_iter)
        stages = [
            Stage(early, EXAGGERATION, MOMENTUM, False),
            Stage(max_iter - early, 1.0, LATE_MOMENTUM, True),
        ]
        found = descend(
            self._divergence, self.Y, stages, learning_rate=None, tol=TOLERANCE, monitor=monitor
        )
        self.Y, self._rows = at_common_place(found.Y, self._equal), found.rows

    def divergence(self, Y: np.ndarray) -> float:
        """KL(P || Q) of the map Y."""
        return self._divergence.loss(self._arranged(Y))

    def slope(self, Y: np.ndarray) -> tuple[float, np.ndarray]:
        """KL(P || Q) of the map Y, and dKL/dY by the equation of the module ``divergence``."""
        forces = self._divergence(self._arranged(Y), with_loss=True)
        assert forces.loss is not None
        found = np.empty_like(forces.attraction)
        found[self._rows] = 4 * (forces.attraction - forces.repulsion / np.float32(forces.total))
        return forces.loss, found

    def _arranged(self, Y: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(Y[self._rows], dtype=np.float32)


class OneCount:
    """A monitor that counts the steps of several stages as one sequence."""

    def __init__(self, monitor: Monitor, total: int) -> None:
        self.monitor, self.total, self.done = monitor, total, 0

    def __getattr__(self, name: str) -> Any:
        """Everything but the count is that of the monitor."""
        return getattr(self.monitor, name)

    def iteration(self, i: int, embedding: Any, loss: Any = None, total: Any = None) -> bool:
        """See :meth:`Monitor.iteration`; the number of the step is that of the whole fit."""
        if self.monitor.stopped:
            return True
        self.done += 1
        return self.monitor.iteration(self.done, embedding, loss, total=self.total)

    def as_monitor(self) -> Monitor:
        """Itself, as what engines ask for."""
        return cast(Monitor, self)


# Noise on rows, as long as the way to their neighbors, which makes a network smooth.


LONGEST = 3.0  # of the noise of a row, in medians over the rows


class Noise(NamedTuple):
    """The length s_i of the noise of each row, and the share u of each column, |u| = 1."""

    lengths: np.ndarray
    shares: np.ndarray

    def added_to(
        self, rows: np.ndarray, numbers: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """The rows of these numbers with noise; a new array."""
        noise = rng.standard_normal(rows.shape, dtype=np.float32)
        noise *= self.shares
        noise *= self.lengths[numbers, None]
        noise += rows
        return noise


def neighbor_noise(inputs: np.ndarray, graph: NeighborGraph, size: float) -> Noise:
    """Noise as long as ``size`` times the distance to the nearest neighbor that is not equal.

    Columns share in it as they share in the differences of neighbors.
    """
    n = len(inputs)
    nearest = graph.indices[np.arange(n), np.argmax(graph.distances > 0, axis=1)]
    lengths, squares = np.zeros(n), np.zeros(inputs.shape[1])
    for rows in row_blocks(n, rows_within(16 * inputs.shape[1])):
        apart = inputs[rows].astype(np.float64) - inputs[nearest[rows]]
        lengths[rows] = np.sqrt(np.einsum("ij,ij->i", apart, apart))
        known = lengths[rows] > 0
        squares += np.square(apart[known] / lengths[rows][known, None]).sum(axis=0)
    if not squares.any():
        return Noise(np.zeros(n, np.float32), np.zeros(len(squares), np.float32))
    lengths = size * np.minimum(lengths, LONGEST * np.median(lengths[lengths > 0]))
    shares = np.sqrt(squares / squares.sum())
    return Noise(lengths.astype(np.float32), shares.astype(np.float32))


class OwnDivergence(NamedTuple):
    """KL(P || Q) of the places ``size`` * F(x) that a network F gives to rows."""

    network: Network
    inputs: np.ndarray
    free: FreeMap
    size: float
    threads: int

    def places(self, weights: np.ndarray) -> np.ndarray:
        """The map by these weights."""
        return np.float32(self.size) * apply(self.network, weights, self.inputs, self.threads)

    def slope(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The divergence, and its gradient with respect to the weights."""
        scale, network = np.float32(self.size), self.network
        loss, slope = self.free.slope(self.places(weights))
        gradient = np.zeros_like(weights)
        for rows in row_blocks(len(self.inputs), rows_within(8 * sum(network.sizes))):
            passed = forward(network, weights, self.inputs[rows], self.threads)
            slopes = scale * slope[rows]
            back = backward(network, weights, passed, slopes, self.threads, with_x=False)
            gradient += back.weights
        return loss, gradient

    def refined(
        self, weights: np.ndarray, plan: Plan, monitor: Monitor
    ) -> tuple[np.ndarray, list[float]]:
        """Weights of the least divergence on the way, and the divergences before and after steps.

        The steps are those of Adam, with a rate that falls to 0 along a cosine.
        """
        adam = Adam(weights.copy(), self.network.decays())
        loss, gradient = self.slope(adam.weights)
        best, losses = weights.copy(), [loss]
        for step in range(plan.n_epochs):
            if monitor.stopped:
                break
            rate = plan.learning_rate * 0.5 * (1 + np.cos(np.pi * step / plan.n_epochs))
            adam.step(gradient, rate, plan.weight_decay)
            loss, gradient = self.slope(adam.weights)
            if loss < min(losses):
                best[:] = adam.weights
            losses.append(loss)
            monitor.iteration(step + 1, lambda: self.places(adam.weights), loss)
        return best, losses


class ParametricTSNE(NetworkReducer):
    """minimize KL(P || Q) over functions y = F(x): t-SNE whose map is a network, not a table.

    P and Q are those of t-SNE, and F is a network of dense layers, so a new row is placed by one
    pass through it, at the same speed for any number of fitted rows, and rows that are alike get
    places that are alike. Use it to keep a map and place many new rows in it. Do not use it for a
    picture of one table only: :class:`lowland.TSNE` is faster and shows finer detail. Cost: that of
    t-SNE, and O(n p h) per epoch for h units in the first layer. Of more than 100 000 rows, so
    many are drawn at random to train the network, which then places all rows.

    Parameters
    ----------
    perplexity : float or list of float, default=30.0
        Effective number of neighbors of each row, between 1 and n - 1. Larger values show coarser
        structure. The affinities of several values are averaged.
    max_iter : int, default=750
        Largest number of steps of t-SNE, which finds the places that the network learns.
    n_epochs : int or "auto", default="auto"
        How often the network sees all rows. "auto" gives about 4000 batches, in 40 to 1000 epochs.
    hidden : "auto", int or list of int, default="auto"
        Numbers of units of the hidden layers, from the rows to the map. "auto" is 256 and 128.
    standardize : bool, default=False
        Whether each column is divided by its standard deviation before it enters the network. If
        not, all columns are divided by one number. Neighbors are those of the rows as they are
        either way.
    noise : float, default=1.0
        Length of the noise that is added to rows in training, in distances to the nearest neighbor.
        More noise gives a smoother map, and better places for new rows as long as the fitted ones
        stay good.
    weight_decay : float, default=0.0
        Penalty on the squared weights. Noise serves better, by experience.
    learning_rate : float, default=0.01
        Step length of the training.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Places of the fitted rows, as the network computes them.
    layer_sizes_ : ndarray of shape (n_layers,)
        Number of columns, units of the hidden layers, dimension of the map.
    weights_ : ndarray of shape (n_weights,)
        For each layer its matrix, by rows, and its offsets.
    kl_divergence_ : float
        KL(P || Q) of the places that the network gives to the rows it was trained on.
    free_kl_divergence_ : float
        KL(P || Q) of the map of t-SNE that it learned from. The difference is what a function of
        this kind cannot follow, or what the noise forbids.
    loss_history_ : ndarray of shape (n_losses,)
        KL(P || Q) of the places by the first weights, by the network after the regression, and
        after each step of the refinement.
    n_iter_ : int
        Steps of t-SNE, epochs and steps of the refinement together, as a callback counts them.

    Notes
    -----
    Training has three parts. (1) t-SNE moves free points as :class:`lowland.TSNE` does. (2) The
    network learns their places from rows with noise, on mini-batches. (3) The network descends the
    divergence itself for 50 steps over all rows, without noise; the weights of the least divergence
    are kept. The paper has no first two parts: it starts from stacked Boltzmann machines and takes
    the divergence within batches. The second reference alternates (1), with a pull toward the
    network, and (2); four such rounds, with two strengths of the pull, raised the divergence on
    digits, and (3) lowered it.

    In (2) the loss is log(1 + |y - F(x)|^2 / c^2), with c a fifth of the standard deviation of
    the map. With squared errors the network places rows between two clusters that could belong to
    both. A callback gets this loss during (2), and the divergence during (1) and (3).

    The defaults were chosen on one split of digits, by the trustworthiness of held-out rows. On
    three other splits a held-out fifth had .961, .971 and .970 among itself (:class:`lowland.TSNE`
    .967, .976 and .976), .976, .982 and .980 among all rows (.990, .991 and .992), and the fitted
    rows .990, .992 and .992 (.991, .992 and .992). Where columns are many for the rows, less is
    learned: with 6000 rows of MNIST fitted rows had .955 (.981) and new ones .896 (.942).

    Rows farther from the medians of the columns than ten times the median distance have no part in
    ``mean_`` and ``scale_``.

    References
    ----------
    van der Maaten (2009), Learning a parametric embedding by preserving local structure, AISTATS 5,
    384-391; Carreira-Perpinan & Vladymyrov (2015), A fast, universal algorithm to learn parametric
    nonlinear embeddings, NIPS 28.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> model = ParametricTSNE(perplexity=20, n_epochs=50, random_state=0)
    >>> model.fit_transform(iris().X).shape
    (150, 2)
    >>> model.transform([[5.0, 3.5, 1.5, 0.2]]).shape
    (1, 2)
    """

    perplexity: float | Sequence[float] = param(Real(0) | Several(Real(0)), default=30.0)
    max_iter: int = param(Integer(0), default=750)
    n_epochs: int | str = param(OneOf("auto") | Integer(1, 100_000), default="auto")
    standardize: bool = param(Boolean(), default=False)
    noise: float = param(Real(0, 1e6, closed="both"), default=1.0)
    weight_decay: float = param(Real(0, 1e6, closed="both"), default=0.0)
    learning_rate: float = param(Real(0, 1e12, closed="right"), default=0.01)

    layer_sizes_: np.ndarray = fitted("n_layers", type=int, meaning=count(1))
    weights_: np.ndarray = fitted("n_weights")
    kl_divergence_: float = fitted()
    free_kl_divergence_: float = fitted()

    card = Card(
        keeps="who is whose neighbor, by a function that also places new rows",
        use="to keep a map of clusters and place many new rows in it, fast and one by one",
        avoid="for a picture of one table only: TSNE shows finer detail in less time",
        cost="that of TSNE for at most 100 000 rows, and O(n p h) time per epoch",
    )
    reference = "van der Maaten (2009)"
    aliases = ("ptsne",)
    accepts_sparse = True
    wants_pca = True
    reading = Reading(
        axes="The axes have no meaning. Only who is near whom can be read.",
        distances="Rows that are neighbors in the map are mostly neighbors in the data. Distances "
        "between groups mean little, and so does their arrangement.",
        gaps="Separate groups are groups of mutual neighbors. A new row between two groups is one "
        "that the network could not assign to either.",
        sizes="Sizes and densities mean nothing: the method spreads dense groups and packs sparse "
        "ones until they look alike.",
        scale="The scale of the axes has no meaning.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        m = min(n, MOST_ROWS)
        search = neighbor_graph_cost(m, p, 90)
        products = sum(a * b for a, b in itertools.pairwise((p, *HIDDEN, 2)))
        training = m * _epochs(m) * (1.5e-10 * products + 1e-8 * p)
        seconds = 0.5 + search.seconds + 1.5e-4 * m + training + 5e-11 * n * products
        return Estimate(seconds, m * (24 * p + 4000) + n * (8 * p + 16))

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: weights for layers from the columns to the map."""
        sizes = [int(size) for size in self.layer_sizes_]
        p, d = int(self.n_features_in_), int(self.n_components)
        if not 2 <= len(sizes) <= MOST_HIDDEN + 2 or sizes[0] != p or sizes[-1] != d:
            return f"'layer_sizes_' that do not lead from {p} columns to {d} dimensions"
        wanted = self._network().n_weights
        if len(self.weights_) != wanted:
            return f"{len(self.weights_)} 'weights_' for layers with {wanted}"
        return super().inconsistency()

    def _check_training_rows(self, X: Any) -> Any:
        X = super()._check_training_rows(X)
        self._check_not_beyond_rows(X.shape[0])
        return X

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        X = as_dense(X, type(self).__name__)
        n, d = len(X), int(self.n_components)
        affinity.check_perplexity(self.perplexity, min(n, MOST_ROWS))
        self.layer_sizes_ = np.array([X.shape[1], *(self._given_hidden() or HIDDEN), d])
        rows = X[run.some_rows(n, MOST_ROWS)]
        self._require_room(X, len(rows))
        self._learn_scales(rows)
        k = affinity.default_neighbors(self.perplexity, len(rows))
        graph = neighbor_graph(rows, k, threads=run.threads, rng=run.rng, monitor=run.monitor)
        graph = graph.in_distances()
        if run.shared is not None and len(rows) == n:
            run.shared.graph = graph
        epochs = _epochs(len(rows)) if isinstance(self.n_epochs, str) else int(self.n_epochs)
        steps = OneCount(run.monitor, int(self.max_iter) + epochs + REFINING)
        free = FreeMap(rows, graph, self.perplexity, d, run)
        free.descend(int(self.max_iter), steps.as_monitor())
        inputs = self._standardized(rows).astype(np.float32)
        noise = neighbor_noise(inputs, graph, float(self.noise))
        rate, decay = float(self.learning_rate), float(self.weight_decay)
        corrupt = noise.added_to
        plan = Plan(epochs, BATCH, rate, weight_decay=decay, corrupt=corrupt, tail=TAIL)
        self._learn(free, inputs, plan, run._replace(monitor=steps.as_monitor()))
        self.n_iter_ = steps.done
        self.embedding_ = self._transform(X, run)
        return self.embedding_.copy()

    def _learn(self, free: FreeMap, inputs: np.ndarray, plan: Plan, run: FitContext) -> None:
        """Train the network on the free map, and compare their divergences."""
        network, owner = self._network(), type(self).__name__
        center = free.Y.mean(axis=0, dtype=np.float64)
        size = float(np.sqrt(np.mean(np.square(free.Y - center)))) or 1.0
        targets = ((free.Y - center) / size).astype(np.float32)
        own = OwnDivergence(network, inputs, free, size, run.threads)
        weights = _first_weights(network, run.rng)
        before = free.divergence(own.places(weights))
        found = train(network, weights, inputs, targets, plan, run, show=own.places, owner=owner)
        plan = plan._replace(n_epochs=REFINING, learning_rate=REFINING_RATE * plan.learning_rate)
        weights, losses = own.refined(found.weights, plan, run.monitor)
        self.loss_history_, self.kl_divergence_ = np.array([before, *losses]), min(losses)
        self.free_kl_divergence_ = free.divergence(free.Y)
        last = network.layers(weights)[-1]  # linear: the size of the map belongs to it
        last.W[...] *= np.float32(size)
        last.b[...] *= np.float32(size)
        self.weights_ = weights.astype(np.float64)

    def _network(self) -> Network:
        sizes = tuple(int(size) for size in self.layer_sizes_)
        return Network(sizes, (*[self.activation] * (len(sizes) - 2), "linear"))

    def _require_room(self, X: np.ndarray, n_trained: int) -> None:
        network = self._network()
        units = sum(network.sizes[1:])
        require_memory(
            28 * network.n_weights
            + 8 * 4096 * units
            + n_trained * (8 * X.shape[1] + 40 * int(self.n_components)),
            task=f"{type(self).__name__} with {network.n_weights} weights for {X.shape[1]} columns",
            alternative="fewer hidden units, or PCA first",
        )

    def _learn_scales(self, X: np.ndarray) -> None:
        """Set ``mean_`` and ``scale_``; rows far out, beside which others would look equal, rest.

        Far out is beyond ten times the median distance from the medians of the columns.
        """
        center = np.median(X[:: max(1, len(X) // CENTER_ROWS)], axis=0)
        squares = np.empty(len(X))
        for rows in row_blocks(len(X), rows_within(8 * X.shape[1])):
            apart = X[rows] - center
            squares[rows] = np.einsum("ij,ij->i", apart, apart)
        most = FAR_OUT**2 * np.median(squares)
        far = squares > most if most > 0 else np.zeros(len(X), bool)
        super()._learn_scales(X[~far] if far.any() else X)

    # --- new rows -----------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X, network = as_dense(X, type(self).__name__), self._network()
        Y = np.empty((len(X), int(self.n_components)), dtype=X.dtype)
        for rows in row_blocks(len(X), rows_within(8 * X.shape[1])):
            Y[rows] = apply(network, self.weights_, self._standardized(X[rows]), run.threads)
        return Y


def _first_weights(network: Network, rng: np.random.Generator) -> np.ndarray:
    """Random weights; units of the first layer see rows of unit size with unit variance.

    The usual weights are smaller, and so few columns that they vary little bend nothing.
    """
    weights = first_weights(network, rng)
    first = network.layers(weights)[0]
    first.W[...] *= np.sqrt(1 / network.sizes[0] / max(np.mean(np.square(first.W)), 1e-300))
    return weights.astype(np.float32)


def _epochs(n: int) -> int:
    """The "auto" number of epochs for n rows."""
    return int(np.clip(STEPS * BATCH / n, *EPOCHS))
