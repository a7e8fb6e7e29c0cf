"""Autoencoders (Bourlard & Kamp 1988; Hinton & Salakhutdinov 2006)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from lowland._base.base import Invertible
from lowland._base.constraints import Boolean, Integer, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import count
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.network.adam import Plan, Trained, train
from lowland._engines.network.layers import (
    Network,
    RowSpace,
    apply,
    jacobian,
    row_space,
    row_space_cost,
)
from lowland.methods.neural import _autoencoder_training as training
from lowland.methods.neural._base import MOST_HIDDEN, MOST_UNITS, NetworkReducer

LIMIT = 5.0  # no standardized value of a fitted row is larger
LEAST_HELD_OUT = 5  # fewer rows do not tell which weights are best


class Autoencoder(NetworkReducer, Invertible):
    """Minimize mean |x - g(f(x))|^2: a network f to few numbers, the code, and g back to the row.

    The map is the code. The encoder f and the decoder g are networks of dense layers that are
    trained together, so new rows are placed by one pass, and each point of the map has a row. It is
    PCA with curved surfaces in place of planes. Use it for many rows, to compress, to reconstruct,
    to remove noise, and to find outliers by their reconstruction error. Do not use it for few
    rows, or to see neighborhoods as t-SNE shows them. Another seed gives another map. Cost:
    O(n w) per epoch for w weights.

    Parameters
    ----------
    n_components : int, default=2
        Number of code units, the dimension of the map.
    hidden : "auto", int or list of int, default="auto"
        Numbers of units of the hidden layers of the encoder, from the rows to the code; the decoder
        mirrors them. "auto" is two layers: as many units as columns, from 32 to 256, then half as
        many, at most 64; fewer if there are fewer than 4 rows per unit, but not fewer than code
        units. With "linear" units there is no hidden layer.
    activation : {"tanh", "relu", "elu", "sigmoid", "linear"}, default="tanh"
        Function of the hidden units. "linear" gives the axes of PCA. Code and output are always
        linear.
    standardize : bool, default=True
        Whether each column is divided by its standard deviation. If a fifth of its largest
        deviation from the mean is more, it is divided by that. If not, all columns are divided by
        one number, the root of their mean variance, which suits images and other columns of one
        unit.
    weight_decay : float or "auto", default="auto"
        Penalty on the squared weights. A larger one gives a smoother map. "auto" is 0.1 / n, at
        most 0.001: many rows need none.
    noise : float, default=0.0
        Denoising: the share of values that are replaced by the mean of their column in what the
        encoder sees during training. The decoder has to restore them.
    sparsity : float, default=0.0
        Penalty on the mean absolute code. Larger ones let fewer code units differ from 0 per row.
    tied : bool, default=False
        Whether the matrices of the decoder are those of the encoder, transposed, in training.
    solver : {"auto", "adam", "lbfgs"}, default="auto"
        "adam" takes small batches of rows in float32, "lbfgs" all rows at each step in float64.
        "auto" is "lbfgs" for small tables.
    max_iter : int or "auto", default="auto"
        Number of epochs of Adam, or of steps of L-BFGS. "auto" is 300 steps, or 10 600 / sqrt(n)
        epochs, from 10 to 500. 0 gives the random start.
    batch_size : int, default=128
        Number of rows per step of Adam.
    learning_rate : float, default=0.005
        Size of the first steps of Adam; it falls to 0 along half a cosine.
    validation : float, default=0.1
        Share of the rows that are held out of the training, from 0 to 0.9. The weights that
        reconstruct them best are kept. Without at least 5 such rows nothing is held out.
    patience : int, default=50
        Training stops after so many epochs or steps without a better reconstruction of the held-out
        rows. 0 never stops early.

    Attributes
    ----------
    layer_sizes_ : ndarray of shape (n_sizes,)
        Numbers of units from the row to the code.
    encoder_weights_ : ndarray of shape (n_encoder_weights,)
        For each layer of the encoder its matrix, by rows, then its offsets.
    decoder_weights_ : ndarray of shape (n_decoder_weights,)
        The same of the decoder.
    reconstruction_errors_ : ndarray of shape (n_samples,)
        Mean squared error of the standardized values of each fitted row.
    explained_share_ : float
        Share of the variance of the standardized table that the reconstruction keeps.
    loss_history_ : ndarray of shape (n_losses,)
        Mean squared error per standardized value of the rows that are trained on: at the start, and
        during each epoch or after each step.
    held_out_loss_ : ndarray of shape (n_held_out_losses,) or None
        The same of the held-out rows, after each epoch or step. None if there were none.
    best_iter_ : int
        The epoch or step whose weights were kept.

    Notes
    -----
    The code of a network is defined up to a linear map, which the neighboring layers undo. After
    training the code is brought to mean 0, variance 1 and uncorrelated axes, by changing these
    layers: the first axis explains the most variance of the standardized columns by a line, and so
    on. With "linear" units these are the principal axes, divided by their deviations. A code with
    ``sparsity`` keeps its axes and its zero.

    A column that does not vary has no influence, and its value is restored exactly.

    A column with rare large values, such as a pixel at the border of images, has a small deviation,
    and its standardized values would rule the loss. Hence the limit on them, which leaves other
    tables as they are. On digits the share of variance lost on held-out rows is .50 with it and .53
    without, on 10 000 rows of MNIST .73 and .75 (.71 with one scale for all columns), on a table
    with lognormal columns .28 and .27.

    The defaults were chosen by the same share on held-out rows of digits, MNIST, oil flow, iris,
    wine, breast cancer, a swiss roll and a rounded survey. Two hidden layers lose less than one
    (digits .50 against .55). A weight decay of 0.1 / n was better than a fixed one on wine (.40
    against .45) and MNIST (.66 against .68), and as good elsewhere. A start from the principal axes
    was better on digits and the roll, worse on iris and a sphere; the start is random.

    References
    ----------
    Bourlard & Kamp (1988), Biological Cybernetics 59, 291-294; Hinton & Salakhutdinov (2006),
    Reducing the dimensionality of data with neural networks, Science 313, 504-507; Vincent et al.
    (2008), Extracting and composing robust features with denoising autoencoders, ICML; Baldi &
    Hornik (1989), Neural Networks 2, 53-58.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> model = Autoencoder(random_state=0)
    >>> model.fit_transform(iris().X).shape
    (150, 2)
    >>> model.inverse_transform([[0.0, 0.5]]).shape
    (1, 4)
    """

    weight_decay: Any = param(Real(0, 1e6, closed="both") | OneOf("auto"), default="auto")
    noise: float = param(Real(0, 0.95, closed="both"), default=0.0)
    sparsity: float = param(Real(0, 1e6, closed="both"), default=0.0)
    tied: bool = param(Boolean(), default=False)
    solver: Literal["auto", "adam", "lbfgs"] = param(OneOf("auto", "adam", "lbfgs"), default="auto")
    max_iter: int | str = param(Integer(0) | OneOf("auto"), default="auto")
    batch_size: int = param(Integer(1), default=128)
    learning_rate: float = param(Real(0, 1e6, closed="right"), default=5e-3)
    validation: float = param(Real(0, 0.9, closed="both"), default=0.1)
    patience: int = param(Integer(0), default=50)

    layer_sizes_: np.ndarray = fitted("n_sizes", type=int, meaning=count(1, MOST_UNITS * 1000))
    encoder_weights_: np.ndarray = fitted("n_encoder_weights")
    decoder_weights_: np.ndarray = fitted("n_decoder_weights")
    reconstruction_errors_: np.ndarray = fitted("n_samples")
    explained_share_: float = fitted()
    held_out_loss_: np.ndarray | None = fitted("n_held_out_losses", optional=True)
    best_iter_: int = fitted(type=int)

    card = Card(
        keeps="what the rows can be reconstructed from, with a curved surface in place of a plane",
        use="for many rows, to reconstruct rows from the map, to remove noise, to find outliers",
        avoid="for few rows, or to show neighborhoods: distances are stretched as training likes",
        cost="O(n w) time per epoch for w weights, O(n p + w) memory",
    )
    reference = "Bourlard & Kamp (1988); Hinton & Salakhutdinov (2006)"
    aliases = ("ae",)
    accepts_sparse = True
    components_limit = "rows"
    reading = Reading(
        axes="The axes are coordinates on a curved surface through the data; the first one "
        "explains the most variance of the columns by a line.",
        distances="Rows that are near in the map have nearly the same reconstruction. Distances "
        "are not those of the data, because the surface is stretched, here more and there less.",
        gaps="A gap is a part of the surface without rows; its width in the map has little "
        "meaning.",
        sizes="Sizes of groups follow how the surface is stretched, not their spread in the data.",
        scale="Each axis has mean 0 and variance 1 over the fitted rows.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: passes forward and backward over all rows."""
        return training.training_estimate(n, p)

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: weights and sizes of the layers fit each other."""
        sizes = [int(size) for size in self.layer_sizes_]
        q = int(self.n_components)
        fits = sizes[0] == self.n_features_in_ and sizes[-1] == q
        if not (fits and 2 <= len(sizes) <= MOST_HIDDEN + 2):
            return f"'layer_sizes_' that do not lead from {self.n_features_in_} columns to {q}"
        for name, half in (("encoder", sizes), ("decoder", sizes[::-1])):
            found = len(getattr(self, f"{name}_weights_"))
            wanted = Network(tuple(half), ("linear",) * (len(half) - 1)).n_weights
            if found != wanted:
                return f"{found} '{name}_weights_' in place of {wanted}"
        return super().inconsistency()

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        q = self._check_components(*X.shape)
        X = as_dense(X, type(self).__name__)
        n, p = X.shape
        hidden = self._given_hidden() or []
        if isinstance(self.hidden, str) and self.activation != "linear":
            hidden = training.hidden_units(n, p, q)
        network = training.network_of(p, hidden, q, self.activation, bool(self.tied))
        small = self.solver == "lbfgs" or (self.solver == "auto" and training.is_small(n, network))
        self._require_room(n, network, small)
        self.layer_sizes_ = np.array([p, *hidden, q])
        self._learn_scales(X)
        rows = self._standardized(X).astype(np.float64 if small else np.float32, copy=False)
        # Of a wide table only the space of its rows matters, unless single values are noisy.
        space = row_space(rows) if self.noise == 0 else RowSpace()
        seen = space.coordinates(rows, run.threads)
        network = training.network_of(seen.shape[1], hidden, q, self.activation, bool(self.tied))
        trained = self._trained(network, seen, small, run)
        halves = self._with_defined_code(network, trained.weights, seen, run)
        encoder, decoder = training.halves_of(network)
        self.encoder_weights_ = space.widened(encoder, halves.encoder, inputs=True)
        self.decoder_weights_ = space.widened(decoder, halves.decoder, outputs=True)
        self.loss_history_ = trained.losses
        self.held_out_loss_ = trained.held_out if len(trained.held_out) else None
        self.n_iter_, self.best_iter_ = len(trained.losses) - 1, int(trained.best_epoch)
        self.embedding_ = self._transform(X, run)
        self.reconstruction_errors_ = self._errors(X, run)
        size = float(np.mean(np.square(rows, dtype=np.float64)))
        lost = float(np.mean(self.reconstruction_errors_))
        self.explained_share_ = 1 - lost / size if size > 0 else 1.0
        return self.embedding_.copy()

    def _require_room(self, n: int, network: Network, small: bool) -> None:
        p, w = network.sizes[0], network.n_weights
        rows = n * p * (16 if small else 8) + min(n, 4096) * sum(network.sizes) * 16
        require_memory(
            rows + w * (360 if small else 24) + int(row_space_cost(n, p).n_bytes),
            task=f"{type(self).__name__} with {w} weights for {n} rows and {p} columns",
            alternative="fewer hidden units" + (', or solver="adam"' if small else ""),
        )

    def _learn_scales(self, X: np.ndarray) -> None:
        """Set ``mean_`` and ``scale_``; no standardized value is beyond the limit."""
        super()._learn_scales(X)
        if self.standardize:
            farthest = np.maximum(X.max(axis=0) - self.mean_, self.mean_ - X.min(axis=0))
            self.scale_ = np.maximum(self.scale_, farthest / LIMIT)

    def _trained(self, network: Network, rows: np.ndarray, small: bool, run: FitContext) -> Trained:
        n, code = len(rows), network.n_layers // 2
        order, n_held = run.rng.permutation(n), int(float(self.validation) * n)
        held = rows[np.sort(order[:n_held])] if n_held >= LEAST_HELD_OUT else None
        learned = rows if held is None else rows[np.sort(order[n_held:])]
        steps = self.max_iter
        if isinstance(steps, str):
            steps = training.STEPS if small else training.epochs(n)
        # "auto": many rows outweigh it, as they do a prior
        decay = min(0.001, 0.1 / n) if isinstance(self.weight_decay, str) else self.weight_decay
        plan = Plan(
            n_epochs=int(steps),
            batch_size=min(int(self.batch_size), n),
            learning_rate=float(self.learning_rate),
            weight_decay=float(decay),
            sparsity=float(self.sparsity),
            code=code,
            patience=int(self.patience) if held is not None else 0,
            corrupt=training.corruption(float(self.noise)),
        )
        weights = training.start(network, rows, run.rng)

        def show(weights: np.ndarray) -> np.ndarray:
            halves = self._with_defined_code(network, weights, rows, run)
            return apply(training.halves_of(network)[0], halves.encoder, rows, run.threads)

        if small:
            return training.descend(network, weights, learned, plan, run, held_out=held, show=show)
        pairs = None if held is None else (held, held)
        owner = type(self).__name__
        return train(
            network, weights, learned, learned, plan, run, held_out=pairs, show=show, owner=owner
        )

    def _with_defined_code(
        self, network: Network, weights: np.ndarray, rows: np.ndarray, run: FitContext
    ) -> training.Halves:
        halves = training.untied(network, weights)
        code = apply(training.halves_of(network)[0], halves.encoder, rows, run.threads)
        return training.oriented(network, halves, rows, code, self.sparsity > 0, run)

    # --- the network ----------------------------------------------------------------------------

    def _networks(self) -> tuple[Network, Network]:
        """Encoder and decoder."""
        p, *hidden, q = (int(size) for size in self.layer_sizes_)
        return training.halves_of(training.network_of(p, hidden, q, self.activation, False))

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X, encoder = as_dense(X, type(self).__name__), self._networks()[0]
        Y = np.empty((len(X), int(self.n_components)), dtype=X.dtype)
        for rows in _blocks(len(X), encoder):
            Y[rows] = apply(
                encoder, self.encoder_weights_, self._standardized(X[rows]), run.threads
            )
        return Y

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        decoder = self._networks()[1]
        X = np.empty((len(Y), len(self.mean_)), dtype=Y.dtype)
        for rows in _blocks(len(Y), decoder):
            Z = apply(decoder, self.decoder_weights_, Y[rows], run.threads)
            X[rows] = self._in_units_of_rows(Z)
        return X

    def _errors(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        encoder, decoder = self._networks()
        errors = np.empty(len(X))
        for rows in _blocks(len(X), encoder):
            Z = self._standardized(X[rows].astype(np.float64))
            code = apply(encoder, self.encoder_weights_, Z, run.threads)
            off = apply(decoder, self.decoder_weights_, code, run.threads) - Z
            errors[rows] = np.mean(off**2, axis=1)
        return errors

    def reconstruction_error(self, X: Any) -> np.ndarray:
        """Mean squared error of the standardized values of each row: large for outliers."""
        rows = as_dense(self._check_new_rows(X), type(self).__name__)
        with self._running() as run, np.errstate(over="ignore", invalid="ignore"):
            return self._errors(rows, run)

    def encoder_slopes(self, X: Any) -> np.ndarray:
        """d z_j / d x_k for each row, (n, n_components, n_features): what moves it in the map."""
        rows = as_dense(self._check_new_rows(X), type(self).__name__)
        encoder = self._networks()[0]
        require_memory(
            2 * rows.itemsize * rows.size * int(self.n_components),
            task=f"{type(self).__name__}: slopes of {len(rows)} rows",
            alternative="some rows at a time",
        )
        slopes = np.empty((len(rows), int(self.n_components), rows.shape[1]), dtype=rows.dtype)
        with self._running() as run:
            for block in _blocks(len(rows), encoder):
                Z = self._standardized(rows[block])
                slopes[block] = jacobian(encoder, self.encoder_weights_, Z, run.threads)
        return slopes / self.scale_


def _blocks(n: int, network: Network) -> Iterator[slice]:
    """Of rows whose values in all layers fit into little memory."""
    return row_blocks(n, rows_within(8 * sum(network.sizes)))
