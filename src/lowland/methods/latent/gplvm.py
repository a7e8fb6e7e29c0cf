"""Gaussian process latent variable model (Lawrence 2004, 2005)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.constraints import Array, Integer, OneOf
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense
from lowland._engines.gaussian_processes.stochastic import training_cost
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland._engines.neighbors.search import query_fitted
from lowland.methods.latent._base import (
    MOST_INDUCING,
    GaussianProcessReducer,
    Placed,
    Process,
    placed_rows,
)
from lowland.methods.latent._gplvm_training import (
    FROM_LINEAR,
    FROM_MAP,
    Trained,
    first_state,
    in_length_scales,
    starting_places,
    train_exactly,
    train_sparsely,
)

INDUCING = 150  # as likely as exact inference at 2 000 rows, in half the time
EXACT_ROWS = 2000  # inference="auto" is exact up to so many
ALL_EXACT_ROWS, LEAST_EXACT = 500, 10  # steps: all are exact up to so many rows, and at least some


def _exact_steps(n: int, max_iter: int) -> int:
    """Steps cost n^3; so many of them cost no more than in proportion to n."""
    if n <= ALL_EXACT_ROWS:
        return max_iter
    return min(max_iter, max(LEAST_EXACT, int(max_iter * (ALL_EXACT_ROWS / n) ** 2)))


class GPLVM(GaussianProcessReducer):
    """max over X of log p(Y | X) + log p(X), p(Y | X) = prod_j N(y_j; 0, k(X, X) + noise I).

    Each column y_j of the table is a draw of one Gaussian process of the unknown places X of the
    rows, plus noise; the places are those under which the table is most probable. With a linear
    covariance they are the principal components; the smooth ones bend the sheet. The map has a
    likelihood, a smooth way back to rows, and says where it is uncertain. Use it for some hundred
    to some thousand rows of noisy, smoothly varying data. Do not use it for distances: only rows
    that are near in the map are known to be similar. Cost: O(n^3) per step, or O(n m^2 + n m p)
    with m inducing points.

    Parameters
    ----------
    init : {"ppca", "isomap"} or array of shape (n, n_components), default="ppca"
        Where the rows start: principal components, Isomap, or given places. Isomap is classical
        scaling of distances along the graph of 10 neighbors. Of given places only the shape
        matters, not the scale.
    inference : {"auto", "exact", "sparse", "stochastic"}, default="auto"
        How the likelihood is computed: exactly, by a bound, or by a bound on parts of the rows. The
        lower bound has inducing points; random parts of the rows grow to the whole table. "auto"
        is exact up to 2 000 rows and stochastic beyond.
    n_inducing : int, default=150
        Number of inducing points. More are a finer sheet. Exact inference of more than 500 rows
        uses them in its first steps.
    max_iter : int, default=200
        Maximum number of steps. 0 gives the start.
    tol : float, default=0.0000001
        The fit ends when a step lowers the loss by less than this share of it. The loss is in nats
        per value of the table, and counts as 1 if it is less.

    Attributes
    ----------
    fitted_rows_ : ndarray of shape (n_samples, n_features)
        The rows of the fit, which keep their places.
    prior_deviations_ : ndarray of shape (n_components,)
        Standard deviation of the prior of the places, in length scales, in the order of the axes.

    Notes
    -----
    As in the paper: standard normal prior of the places, start at the principal components,
    places and parameters optimized together. Deviations: L-BFGS instead of scaled conjugate
    gradients. One number, not one per column, scales the table. The prior cannot tell the scale of
    the places, since shorter lengths give the same likelihood; they shrink slowly as a fit goes on.

    In units of the table's variance, parameters are bounded: noise variance 1e-5 to 10, variance
    1e-3 to 1e3, weights and bias 1e-6 to 100; length scales from 0.01 to 1 000.

    From principal components, the first process is almost linear: places of unit variance, lengths
    of 10, and half of the variance as noise; and places take ten times longer steps than the
    logarithms of the parameters, so that the map unfolds before the lengths shrink. On 500 rows of
    digits this gave a trustworthiness of .97 and on 500 of oil flow of .99, against .94 and .96
    from lengths of 3 with equal steps. From Isomap or given places, which may be unrolled already,
    lengths are 1, a tenth of the variance is noise, and all steps are equal: so 600 rows of a swiss
    roll and of an s curve stay flat (a quadratic function of the map explains .95 and 1.00 of the
    true coordinates; from an almost linear process .49 and .81). Principal components tear them.
    Use Isomap for bent sheets; on digits, iris, a circle, a survey and clusters principal
    components were better, or as good.

    Of more than 500 rows, (500 / n)^2 of the steps are exact, at least 10, after others on the
    bound with inducing points. On 600 rows, half of the steps on the bound gave per value -.793 on
    digits and .495 on oil flow, exact steps only -.791 and .405.

    Afterwards the axes are brought to the units of their length scales, the most relevant first:
    then the covariance of two rows depends on their distance in the map alone. This raised the
    trustworthiness on iris from .91 to .98 and on wine from .93 to .95.

    A new row goes where the density of row and place is highest, as far as eight starts and Newton
    steps from the best three find it. Rows of the fit keep their places; searched like new ones,
    nine of ten land within 0.02 of these, and up to one in twenty elsewhere. With more than 500
    inputs there are fewer starts. Standardized values beyond 1e8 are taken as 1e8.

    In the map of oil flow (1 000 rows) 2 rows have a nearest neighbor of another class, in that of
    PCA 162, of GTM 7, of t-SNE 2; of 2 000 held-out rows 15 (GTM 27).

    References
    ----------
    Lawrence (2005), Probabilistic non-linear principal component analysis with Gaussian process
    latent variable models, Journal of Machine Learning Research 6, 1783-1816. Titsias (2009),
    Variational learning of inducing variables in sparse Gaussian processes, AISTATS.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> gplvm = GPLVM(random_state=0)
    >>> gplvm.fit_transform(iris().X).shape
    (150, 2)
    >>> rows, deviation = gplvm.inverse_transform([[0.0, 0.5]], return_std=True)
    >>> rows.shape, deviation.shape
    ((1, 4), (1,))
    """

    n_inducing: int = param(Integer(1, MOST_INDUCING), default=INDUCING)
    init: Any = param(OneOf("ppca", "isomap") | Array(), default="ppca")

    fitted_rows_: np.ndarray = fitted("n_samples", "n_features")
    prior_deviations_: np.ndarray = fitted("n_components", meaning=above(0))

    card = Card(
        keeps="rows that differ are apart in the map, on a smooth sheet with a likelihood",
        use="for a few hundred rows to some thousands: a smooth inverse that knows its uncertainty",
        avoid="for distances, or to see every neighborhood: near rows may be torn apart",
        cost="O(n^3) time per step up to 2 000 rows, then O(n m^2) with m inducing points",
    )
    reference = "Lawrence (2005)"
    aliases = ("gaussian_process_latent_variable_model",)
    accepts_sparse = True
    components_limit = "rank"
    reading = Reading(
        axes="The axes are the unknown coordinates of a smooth function that makes the rows; they "
        "began as the principal axes.",
        distances="Rows that are near in the map are similar. Similar rows may be far apart, "
        "because the function may come back to where it was.",
        gaps="A gap is a region where the function is uncertain; how wide it is drawn says little.",
        sizes="Sizes of groups follow how much their rows differ.",
        scale="One unit is one length scale: so far apart, rows have a correlation of about half.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 200 steps."""
        seen, held = min(n, p), Estimate(0.05, 16 * n * p)
        start = principal_axes_cost(n, p, 2)
        if n > EXACT_ROWS:
            return held + start + training_cost(n, seen, 2, INDUCING, 200).holding(24 * n * p)
        n_exact = _exact_steps(n, 200)
        step = 3.2e-11 * n**3 + 1.2e-8 * n * n + 1e-10 * n * n * seen + 5e-4
        exact = n_exact * Estimate(step, 8 * n * n)
        step = n * INDUCING * (3e-8 + 4e-10 * seen) + 2e-3
        sparse = (200 - n_exact) * Estimate(step, 16 * INDUCING * n)
        return held + start + sparse + exact

    # --- fit ------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, p = X.shape
        q = self._check_components(n, p)
        inference = self._inference(n)
        self._require_room(n, p, inference)
        X = as_dense(X, type(self).__name__)
        self._learn_scale(X)
        Y = self._standardized(X)
        with limit_blas(1):  # the map must not depend on the number of threads
            start = starting_places(self.init, Y, q, run)
            found = self._trained(start, Y, inference, run)
            state, self.prior_deviations_ = in_length_scales(self._covariance(), found.state)
            posterior = state.posterior(self._covariance(), Y, run.threads)
        self.embedding_, self.fitted_rows_ = state.X.astype(X.dtype), X.copy()
        self.inducing_points_ = state.Z
        self.mean_log_likelihood_ = found.mean_log_likelihood
        self.loss_history_, self.n_iter_ = found.losses, found.n_iter
        self._keep(posterior, self.prior_deviations_**2)
        return self.embedding_.copy()

    def _inference(self, n: int) -> str:
        if self.inference != "auto":
            return self.inference
        return "exact" if n <= EXACT_ROWS else "stochastic"

    def _require_room(self, n: int, p: int, inference: str) -> None:
        m = min(n, int(self.n_inducing))
        each = n if inference == "exact" else 3 * m
        require_memory(
            8 * (10 * n * each + 3 * n * p + 50 * n * int(self.n_components) + m * m),
            task=f"GPLVM with {inference} inference for {n} rows and {p} columns",
            alternative="inference='sparse'" if inference == "exact" else "fewer inducing points",
        )

    def _trained(self, X: np.ndarray, Y: np.ndarray, inference: str, run: FitContext) -> Trained:
        """Beyond some rows, exact steps come last: they cost n^3 each, and the others n."""
        covariance, (n, max_iter) = self._covariance(), (len(X), int(self.max_iter))
        first = FROM_LINEAR if isinstance(self.init, str) and self.init == "ppca" else FROM_MAP
        options = {"tol": float(self.tol), "step": first.step}
        n_exact = _exact_steps(n, max_iter) if inference == "exact" else 0
        if inference == "exact" and n_exact == max_iter:
            start = first_state(covariance, first, X, None)
            return train_exactly(covariance, start, Y, run, max_iter=max_iter, **options)
        start, n_sparse = (
            first_state(covariance, first, X, self._inducing(X, run)),
            max_iter - n_exact,
        )
        in_parts = inference == "stochastic"
        found = train_sparsely(
            covariance, start, Y, run, max_iter=n_sparse, in_parts=in_parts, **options
        )
        if inference != "exact":
            return found
        start, done = found.state._replace(Z=None), found.n_iter
        last = train_exactly(covariance, start, Y, run, max_iter=n_exact, done=done, **options)
        losses = np.concatenate([found.losses, last.losses[1:]])
        return last._replace(losses=losses, n_iter=len(losses) - 1)

    def _inducing(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        """Places of random rows; a linear process has no more than it has axes."""
        m = min(len(X), int(self.n_inducing))
        if self.kernel == "linear":
            m = min(m, int(self.n_components) + int(self.bias))
        return X[np.sort(run.rng.choice(len(X), m, replace=False))]

    # --- new rows -------------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X = as_dense(X, type(self).__name__)
        Z = np.empty((len(X), int(self.n_components)), dtype=X.dtype)
        near = query_fitted(
            self.fitted_rows_,
            X,
            1,
            metric="euclidean",
            metric_params=None,
            run=run,
            approximate=False,
        )
        known = near.distances[:, 0] == 0  # a row of the fit keeps its place
        Z[known] = self.embedding_[near.indices[known, 0]]
        Z[~known] = self._placed_rows(X[~known], run).X
        return Z

    def _placed_rows(self, X: np.ndarray, run: FitContext) -> Placed:
        process = Process(self._posterior(), self.prior_deviations_)
        anchors = self.embedding_.astype(np.float64)
        return placed_rows(process, anchors, self._standardized(X), run.threads)

    def score_samples(self, X: Any) -> np.ndarray:
        """log p(row | place) of each row at its place in the map, without the prior."""
        rows = as_dense(self._check_new_rows(X), type(self).__name__)
        with self._running() as run:
            found = self._placed_rows(rows, run).log_densities
        return found - rows.shape[1] * np.log(self.scale_)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of :meth:`score_samples` over the rows."""
        return float(np.mean(self.score_samples(X)))
