"""Nonlinear principal component analysis (Kramer 1991; Scholz et al. 2005)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lowland._base.base import Invertible
from lowland._base.constraints import Boolean, Integer, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import DataError, ParameterError
from lowland._base.memory import require_memory
from lowland._base.models.checks import Interval, at_least
from lowland._base.params import fitted, param
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense, check_finite
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.network.layers import RowSpace, apply, row_space, row_space_cost, seen_columns
from lowland.methods.neural import _nlpca_training as training
from lowland.methods.neural._base import MOST_HIDDEN, MOST_UNITS, NetworkReducer
from lowland.methods.neural._nlpca_places import Decoder, decode, nearest_places

LEARNED_ROWS, LEARNED_VALUES = 5000, 2_000_000  # the network is trained on so many at most
FEWEST_LEARNED = 1000
N_ANCHORS = 200  # places from which the search for a new row may start
RIDGE = 1e-2  # weight of squared places, in units of a squared standardized value


class NonlinearPCA(NetworkReducer, Invertible):
    """min sum_known (x_ij - Phi_j(z_i))^2 over a network Phi: z_i are curved principal components.

    Straight principal axes become curves: a network Phi of few hidden units draws them through the
    data, and the map is where on them a row is. "inverse" trains only this decoder, together with
    the places of all rows; it takes missing values, and ``impute`` fills them in. "symmetric" also
    trains an encoder, so that a new row is placed by one pass. ``hierarchical`` components are
    ordered like those of PCA: the first alone describes the data as well as one curve can. A
    component may be an angle, for data that go round: cycles, seasons, closed curves. Use it for
    bent or periodic trends, and to fill gaps. Do not use it to separate clusters, or for distances.
    Cost: O(n p h) per step for h hidden units, from up to 5 000 rows; q times that if hierarchical.

    Parameters
    ----------
    variant : {"inverse", "symmetric"}, default="inverse"
        "inverse" finds places by minimization. "symmetric" is Kramer's network with a bottleneck,
        which computes them.
    hierarchical : bool, default=False
        Whether components are ordered. The errors with only the first, the first two, ..., all
        components are then minimized together.
    circular : int, default=0
        The first so many components are angles, in radians from -pi to pi.
    hidden : "auto", int or list of int, default="auto"
        Numbers of units of the hidden layers between the rows and the map, from the rows to the
        map. "auto" is one layer of 4 + 8 q units, fewer if there are fewer than 8 rows for each.
    activation : {"tanh", "relu", "elu", "sigmoid", "linear"}, default="tanh"
        Function of the hidden units. "linear" gives straight components, those of PCA.
    weight_decay : float, default=0.0001
        Penalty on the squared weights. A larger one gives smoother curves.
    n_init : int, default=2
        Number of starts. The first ones are principal components, and the angle in their plane; the
        others are random. The one that is best after 100 steps is trained.
    max_iter : int, default=500
        Maximum number of steps of L-BFGS.
    tol : float, default=0.00000001
        Training ends when a step lowers the loss, whose unit is the variance of a column, by less.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Places of the fitted rows: of about unit variance, or angles.
    hidden_ : ndarray of shape (n_hidden,)
        Numbers of hidden units, from the rows to the map.
    decoder_weights_ : ndarray of shape (n_decoder_weights,)
        Weights from the map to standardized rows; of each layer W by rows, then b.
    encoder_weights_ : ndarray of shape (n_encoder_weights,) or None
        Weights from standardized rows to the map, of the symmetric variant.
    anchors_ : ndarray of shape (n_anchors, n_components) or None
        Places at which the search for the place of a row may start, of the inverse variant.
    ridge_ : ndarray of shape (n_components,)
        Weights of squared places in the search, in the order of the axes.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        How much of the variance of the standardized columns each component explains in addition to
        those before it, with the later ones at 0, in the order of the axes. If the network is not
        hierarchical, only the sum has a meaning.
    loss_history_ : ndarray of shape (n_losses,)
        Loss at the start, and after each step: the mean squared error of a standardized value,
        averaged over the sub-networks, and the penalties. It never rises.

    Notes
    -----
    The loss is that of the papers: squared errors of known values, a penalty on the weights, and a
    small one on the places, without which their scale has no limit. As there, later components are
    set to 0 in the errors of a hierarchical network; the small term for the later components alone,
    which is in the published code, is left out. Training is by L-BFGS with all rows at a time.
    Afterwards places are scaled to unit variance, which the first layer of the decoder undoes.

    A new row of the inverse variant is placed at the lowest of the minima that three starts lead
    to, by the method of Levenberg and Marquardt. The starts are places whose images are nearest to
    the row. What is minimized is the row's part of the loss, for fitted rows too. Standardized
    values beyond 1e8 are taken as 1e8.

    Beyond 5 000 rows, or 2 million values but 1 000 rows, the network is trained on random rows,
    and all are placed like new ones.

    The defaults were chosen by the errors of held-out rows and by trustworthiness, on iris, digits,
    oil flow, a rounded survey and a swiss roll. Without an order both were better on nearly
    all (trustworthiness on oil flow .99 against .98, on digits .97 against .95): the first
    of ordered components winds through the data. Starts at principal components and at the angle in
    their plane, the better of the two, found a noisy 3/4 circle, a parabola and a helix in every
    trial; random starts did not.

    References
    ----------
    Kramer (1991), Nonlinear principal component analysis using autoassociative neural networks,
    AIChE Journal 37, 233-243. Scholz & Vigario (2002), Nonlinear PCA: a new hierarchical approach,
    ESANN. Scholz, Kaplan, Guy, Kopka & Selbig (2005), Non-linear PCA: a missing data approach,
    Bioinformatics 21, 3887-3895. Kirby & Miranda (1996), Circular nodes in neural networks, Neural
    Computation 8, 390-402.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(-1, 1, 60)
    >>> helix = np.column_stack([np.sin(3 * t), np.cos(3 * t), t])
    >>> gaps = helix.copy()
    >>> gaps[::4, 1] = np.nan
    >>> curve = NonlinearPCA(1, random_state=0).fit(gaps)
    >>> bool(np.abs(curve.impute(gaps) - helix).max() < 0.2)
    True
    """

    variant: Literal["inverse", "symmetric"] = param(
        OneOf("inverse", "symmetric"), default="inverse"
    )
    hierarchical: bool = param(Boolean(), default=False)
    circular: int = param(Integer(0), default=0)
    weight_decay: float = param(Real(0, 1e6, closed="both"), default=1e-4)
    n_init: int = param(Integer(1, 1000), default=2)
    max_iter: int = param(Integer(0), default=500)
    tol: float = param(Real(0, closed="left"), default=1e-8)

    hidden_: np.ndarray = fitted("n_hidden", type=int, meaning=Interval(1, MOST_UNITS))
    decoder_weights_: np.ndarray = fitted("n_decoder_weights")
    encoder_weights_: np.ndarray | None = fitted("n_encoder_weights", optional=True)
    anchors_: np.ndarray | None = fitted("n_anchors", "n_components", optional=True)
    ridge_: np.ndarray = fitted("n_components", meaning=at_least(0))
    explained_variance_ratio_: np.ndarray = fitted("n_components")

    card = Card(
        keeps="as much variance as curved axes of few bends can",
        use="for bent or periodic trends, to fill gaps in tables, and for an inverse",
        avoid="to separate clusters, or for distances: curves are stretched along the data",
        cost="O(n p h) time per step for h hidden units and up to 5 000 rows, O(n p) memory",
    )
    reference = "Kramer (1991); Scholz et al. (2005)"
    aliases = ("nlpca",)
    accepts_sparse = True
    allows_nan = True
    components_limit = "rank"
    reading = Reading(
        axes="The axes are curves through the data; an angle goes round.",
        distances="Rows that are near in the map are near the same piece of a curved sheet. "
        "Distances are not those of the data, because the sheet is bent and stretched.",
        gaps="A gap is a part of the sheet that spans a region without rows; its width in the map "
        "has little meaning.",
        sizes="Sizes of groups are stretched, here more and there less.",
        scale="Each axis has about unit variance, or is an angle in radians.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 700 steps, and the search for the places of all rows."""
        r, h = _n_learned(n, p), _hidden_units(n, 2)
        seen = seen_columns(r, p)
        step = Estimate(r * (6e-7 + 4e-10 * seen * h) + 3e-4, 48 * r * p)
        places = Estimate(5e-5 * n, 8 * n * p + 2**25)
        start = principal_axes_cost(r, seen, 3) + row_space_cost(r, p)
        return Estimate(0.02, 0) + start + 700 * step + places

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: weights fit the layers, and the variant its parts."""
        if int(self.circular) > int(self.n_components):
            return f"circular={self.circular}, but n_components={self.n_components}"
        if len(self.hidden_) > MOST_HIDDEN:
            return f"{len(self.hidden_)} layers in 'hidden_'"
        settings, p = self._settings(), int(self.n_features_in_)
        wanted, found = settings.decoder(p).n_weights, len(self.decoder_weights_)
        if found != wanted:
            return f"{found} 'decoder_weights_' of {wanted}"
        symmetric = self.variant == "symmetric"
        for name, part in (("encoder_weights_", symmetric), ("anchors_", not symmetric)):
            if (getattr(self, name) is not None) != part:
                return f"{name!r} with variant={self.variant!r}"
        if symmetric and len(self.encoder_weights_) != settings.encoder(p).n_weights:
            return f"{len(self.encoder_weights_)} 'encoder_weights_'"
        return super().inconsistency()

    def _torus_sides(self) -> np.ndarray | None:
        q = int(self.n_components)
        return np.full(q, 2 * np.pi) if int(self.circular) == q else None

    # --- missing values -------------------------------------------------------------------------

    def _check_training_rows(self, X: Any) -> Any:
        return self._refused_if_missing(super()._check_training_rows(X))

    def _check_new_rows(self, X: Any) -> Any:
        return self._refused_if_missing(super()._check_new_rows(X))

    def _refused_if_missing(self, X: Any) -> Any:
        if self.variant == "symmetric":
            try:
                check_finite(X, getattr(self, "feature_names_in_", None))
            except DataError as error:
                raise DataError(
                    f"NonlinearPCA: {error} Or use variant='inverse', which takes missing values."
                ) from None
        return X

    def impute(self, X: Any) -> np.ndarray:
        """X with ``inverse_transform(transform(X))`` in place of NaN; known values are kept."""
        rows = as_dense(self._check_new_rows(X), type(self).__name__)
        with self._running() as run:
            Y = self._placed(rows, run, self._transform)
            images = self._placed(Y, run, self._inverse_transform)
        return np.where(np.isnan(rows), images, rows)

    # --- fit ------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, p = X.shape
        q = self._check_components(n, p)
        if self.circular > q:
            raise ParameterError(
                f"NonlinearPCA: circular={self.circular} is more than n_components={q}; ask for "
                f"at most {q} angles."
            )
        self.hidden_ = np.array(self._given_hidden() or [_hidden_units(n, q)])
        learned = _n_learned(n, p)
        self._require_room(learned, p)
        X = as_dense(X, type(self).__name__)
        self._learn_scales(X)
        found = self._trained(self._rows(X[run.some_rows(n, learned)]), run)
        self.decoder_weights_, self.encoder_weights_ = found.decoder, found.encoder
        self.ridge_, self.anchors_ = found.ridge, None
        self.loss_history_, self.n_iter_ = found.losses, found.n_iter
        if self.variant == "inverse":
            self.anchors_ = training.spread_places(found.Z, self._code(), N_ANCHORS)
        self.embedding_ = self._transform(X, run)
        self.explained_variance_ratio_ = self._explained(X, run)
        return self.embedding_.copy()

    def _trained(self, rows: training.Rows, run: FitContext) -> training.Trained:
        """A wide table without gaps is trained in the space of its rows."""
        settings = self._settings()
        space = row_space(rows.X) if rows.known is None else RowSpace()
        fewer, unit = rows._replace(X=space.coordinates(rows.X, run.threads)), space.size**2
        found = training.train(fewer, settings._replace(ridge=unit * RIDGE), run)
        encoder, r = found.encoder, fewer.X.shape[1]
        if encoder is not None:
            encoder = space.widened(settings.encoder(r), encoder, inputs=True)
        decoder = space.widened(settings.decoder(r), found.decoder, outputs=True)
        return found._replace(encoder=encoder, decoder=decoder, ridge=found.ridge / unit)

    def _require_room(self, n: int, p: int) -> None:
        settings = self._settings()
        n_weights = settings.decoder(p).n_weights + settings.encoder(p).n_weights
        units = 3 * int(self.hidden_.sum()) + 6 * p + 50 * int(self.n_components)
        sizes = ", ".join(map(str, self.hidden_))
        require_memory(
            8 * (n * units + 60 * n_weights),
            task=f"NonlinearPCA with {sizes} hidden units for {n} rows and {p} columns",
            alternative="fewer hidden units, or PCA first",
        )

    def _rows(self, X: np.ndarray) -> training.Rows:
        """Standardized in float64, 0 where unknown."""
        S = np.ascontiguousarray((X - self.mean_) / self.scale_)
        known = ~np.isnan(S)
        if known.all():
            return training.Rows(S, None)
        return training.Rows(np.where(known, S, 0.0), known)

    def _explained(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        """1 - error / variance with the first m components, minus that with the first m - 1."""
        q = int(self.n_components)
        errors, total = np.zeros(q), 0.0
        for at in row_blocks(len(X), rows_within(64 * X.shape[1])):
            rows, Z = self._rows(X[at]), self.embedding_[at].astype(np.float64)
            total += float(np.sum(rows.X**2))
            for m in range(1, q + 1):
                output = decode(self._decoder(), Z, m, run.threads)
                errors[m - 1] += float(np.sum(rows.error(output) ** 2))
        if total == 0:
            return np.zeros(q)
        return np.diff(1 - errors / total, prepend=0.0)

    # --- the network ----------------------------------------------------------------------------

    def _code(self) -> training.Code:
        return training.Code(int(self.n_components), int(self.circular), bool(self.hierarchical))

    def _settings(self) -> training.Settings:
        return training.Settings(
            symmetric=self.variant == "symmetric",
            code=self._code(),
            hidden=tuple(int(size) for size in self.hidden_),
            activation=self.activation,
            weight_decay=float(self.weight_decay),
            ridge=RIDGE,
            n_init=int(self.n_init),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
        )

    def _decoder(self) -> Decoder:
        network = self._settings().decoder(len(self.mean_))
        return Decoder(self._code(), network, self.decoder_weights_, self.ridge_)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X = as_dense(X, type(self).__name__)
        Y = np.empty((len(X), int(self.n_components)), dtype=X.dtype)
        for at in row_blocks(len(X), rows_within(64 * X.shape[1])):
            Y[at] = self._places(X[at], run)
        return Y

    def _places(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        S, known = self._rows(X)
        if self.encoder_weights_ is not None:
            encoder = self._settings().encoder(len(self.mean_))
            return self._code().places_of(apply(encoder, self.encoder_weights_, S, run.threads))
        if self.anchors_ is None or known is None:
            return nearest_places(self._decoder(), self.anchors_, S, None, run.threads)
        Z, whole = np.empty((len(S), int(self.n_components))), known.all(axis=1)
        for some, seen in ((whole, None), (~whole, known[~whole])):  # a row is placed as if alone
            Z[some] = nearest_places(self._decoder(), self.anchors_, S[some], seen, run.threads)
        return Z

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        X, q = np.empty((len(Y), len(self.mean_)), dtype=Y.dtype), int(self.n_components)
        for at in row_blocks(len(Y), rows_within(64 * X.shape[1])):
            S = decode(self._decoder(), Y[at].astype(np.float64), q, run.threads)
            X[at] = self._in_units_of_rows(S)
        return X


def _hidden_units(n: int, q: int) -> int:
    """ "auto": 4 + 8 q, with 8 rows for each; the authors' 2 + 2 q if these are too few."""
    return min(4 + 8 * q, max(2 + 2 * q, n // 8), MOST_UNITS)


def _n_learned(n: int, p: int) -> int:
    """Rows that the network is trained on."""
    return min(n, LEARNED_ROWS, max(FEWEST_LEARNED, LEARNED_VALUES // p))
