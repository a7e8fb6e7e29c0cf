"""Bayesian Gaussian process latent variable model (Titsias & Lawrence 2010)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lowland._base.constraints import Integer, OneOf
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense
from lowland._engines.linalg import products
from lowland._engines.linalg.principal_axes import leading_axes, principal_axes_cost
from lowland._engines.network.layers import row_space, row_space_cost
from lowland.methods.latent._base import GaussianProcessReducer, Process, placed_rows
from lowland.methods.latent._bayesian_training import Problem, train

LEARNED_ROWS, LEARNED_VALUES = 2000, 2_000_000  # inference="auto" trains on so many at most
FEWEST_LEARNED = 500
MOST_INDUCING = 500  # the cost grows with its square
RELEVANT = 0.01  # share of the largest relevance
LONGEST = 100.0  # length scale at the start, beside that of the first axis
MOST_NOISE, LEAST_NOISE = 0.5, 0.01  # s^2 at the start


class BayesianGPLVM(GaussianProcessReducer):
    """max E_q log p(Y | X) - KL(q | N(0, I)), q(x_i) = N(u_i, S_i): it finds the dimension.

    The columns are Gaussian processes of the map, as in GPLVM, but each place is a distribution,
    and the map shows the most probable one. An axis that the rows do not need costs likelihood and
    is switched off: its relevance becomes 0. So ask for more axes than expected and read
    ``relevance_``; with two, it is a map that overfits less than that of GPLVM. Use it for some
    thousand rows, for the number of dimensions, and for an inverse with uncertainty. Not for
    distances. Cost: O(n m^2 q + n m p) per step for m inducing points, from up to 2 000 rows.

    Parameters
    ----------
    kernel : {"rbf", "linear"}, default="rbf"
        Covariance of the process: smooth or linear. Each axis has a length scale of its own.
    inference : {"auto", "sparse"}, default="auto"
        Which rows are trained on: "sparse" takes all, "auto" at most 2 000.
    n_inducing : int, default=50
        Number of inducing points. A linear process has at most as many as it has axes, and one
        more for the bias.
    max_iter : int, default=500
        Maximum number of steps of L-BFGS.
    tol : float, default=0.0000001
        Training ends when a step raises the bound per value by less.

    Attributes
    ----------
    means_ : ndarray of shape (n_trained, n_components)
        Means u of the distributions of the places of the rows that were trained on.
    variances_ : ndarray of shape (n_trained, n_components)
        Variances of these distributions; those of the prior along an axis that is switched off.
    prior_deviations_ : ndarray of shape (n_components,)
        Standard deviation of the prior of the places, in length scales, in the order of the axes.

    Notes
    -----
    The bound is that of the paper, with expectations of the covariance in closed form. S_i is
    diagonal. All unknowns start at principal components of unit variance, with variances of 0.1 and
    length scales in proportion to the share of each component; the paper starts there, too. L-BFGS
    takes the place of conjugate gradients. Axes are in units of their length scales, sorted by
    their relevance.

    A row is placed where its density times the prior of its place is highest, given the posterior
    of the process, fitted rows and new rows alike. The paper optimizes a distribution q(x) for new
    rows. Its mean is nearly the same place for most rows; those that have two good places may go to
    the other one (7 of 1 000 on oil flow). The search descends from several fitted places, and may
    miss the best place of a row that is unlike all others. A callback gets the means of the trained
    rows. Beyond 2 000 rows, or 2 million values but 500 rows, random rows are trained on.

    The bound has several maxima. Of rows on a gently bent sheet in 12 columns, six axes became the
    two true ones in all trials; of strongly folded sheets up to four remained. In the map of oil
    flow (1 000 rows) 2 rows have a nearest neighbor of another class, of 2 000 held-out rows 17;
    in two principal components 162 of 1 000.

    References
    ----------
    Titsias & Lawrence (2010), Bayesian Gaussian process latent variable model, AISTATS, 844-851.
    Damianou, Titsias & Lawrence (2016), Variational inference for latent variables and uncertain
    inputs in Gaussian processes, JMLR 17, 1-62.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> plane = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 9))
    >>> rows = plane + 0.1 * rng.standard_normal((80, 9))
    >>> BayesianGPLVM(5, kernel="linear", random_state=0).fit(rows).n_relevant_
    2
    """

    kernel: Literal["rbf", "linear"] = param(OneOf("rbf", "linear"), default="rbf")
    inference: Literal["auto", "sparse"] = param(OneOf("auto", "sparse"), default="auto")
    n_inducing: int = param(Integer(1, MOST_INDUCING), default=50)
    max_iter: int = param(Integer(0), default=500)

    means_: np.ndarray = fitted("n_trained", "n_components")
    variances_: np.ndarray = fitted("n_trained", "n_components")
    prior_deviations_: np.ndarray = fitted("n_components", meaning=above(0))

    card = Card(
        keeps="rows that differ apart, on a smooth sheet of as few dimensions as the rows need",
        use="for the number of dimensions, and a smooth map of some thousand rows with an "
        "uncertain inverse",
        avoid="for distances, or for tables of many thousand rows",
        cost="O(n m^2 q + n m p) time per step for m = 50 inducing points and up to 2 000 rows, "
        "O(n (m + p)) memory",
    )
    reference = "Titsias & Lawrence (2010)"
    aliases = ("bgplvm",)
    accepts_sparse = True
    components_limit = "rank"
    reading = Reading(
        axes="The first axis is the one that rows depend on most; axes without relevance are 0.",
        distances="Rows that are near in the map are similar. Similar rows may be far apart, "
        "because the function may come back to where it was.",
        gaps="A gap is a region where the function is uncertain; how wide it is drawn says little.",
        sizes="Sizes of groups follow how much their rows differ.",
        scale="One unit is one length scale: so far apart, rows have a correlation of about half.",
    )

    @property
    def n_relevant_(self) -> int:
        """Number of axes whose relevance is at least a hundredth of the largest."""
        self._require_fitted()
        return int(np.sum(self.relevance_ >= RELEVANT))

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 500 steps, and the search for all places."""
        r, m = _n_learned(n, p), min(n, 50)
        seen = min(r, p)
        step = Estimate(
            2.5e-3 + r * m * (2.5e-10 * seen + 8e-9 * m), 8 * r * (8 * m + 3 * p) + 2**24
        )
        start = principal_axes_cost(r, seen, 2) + row_space_cost(r, p)
        placing = Estimate(6e-4 * n, 16 * n * p)
        return Estimate(0.02, 0) + start + 500 * step + placing

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, p = X.shape
        q = self._check_components(n, p)
        learned = n if self.inference == "sparse" else _n_learned(n, p)
        m = min(int(self.n_inducing), learned)
        if self.kernel == "linear":  # more are linear combinations of these
            m = min(m, q + int(self.bias))
        require_memory(
            8 * (learned * (10 * m + 3 * p + 60 * q) + n * q + 8 * m * m * (1 + q)) + 2**24,
            task=f"BayesianGPLVM for {n} rows, {p} columns and {q} axes",
            alternative="inference='auto', or fewer axes",
        )
        X = as_dense(X, type(self).__name__)
        self._learn_scale(X)
        chosen = np.sort(run.rng.choice(n, learned, replace=False)) if learned < n else slice(None)
        S = self._standardized(X[chosen])
        space = row_space(S)
        Y = S if space is None else space.coordinates(S, run.threads) / space.size
        found = train(
            Problem(self._covariance(), Y, p, m),
            *_principal_start(Y, q, run),
            run,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            show=lambda places: places.U.astype(X.dtype),
        )
        factors = self._covariance().factors(found.places.theta)
        posterior, places = found.stretched(factors)
        if space is not None:
            with limit_blas(1):
                posterior = posterior._replace(weights=posterior.weights @ space.axes)
        self.inducing_points_, self.prior_deviations_ = places.Z, factors
        self.mean_log_likelihood_ = -float(found.losses[-1])
        self.loss_history_, self.n_iter_ = found.losses, found.n_iter
        self._keep(posterior, factors**2)
        self.means_, self.variances_ = places.U, np.exp(places.logs)
        self.embedding_ = self._transform(X, run)
        return self.embedding_.copy()

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        X = as_dense(X, type(self).__name__)
        process = Process(self._posterior(), self.prior_deviations_)
        Y = self._standardized(X)
        return placed_rows(process, self.means_, Y, run.threads).X.astype(X.dtype)


def _principal_start(
    Y: np.ndarray, q: int, run: FitContext
) -> tuple[np.ndarray, np.ndarray, float]:
    """Components of unit variance, length scales by their shares, and the variance of the rest."""
    found = leading_axes(Y, q, run.threads, run.rng, run.monitor)
    X = products.times(Y, found.mean, found.axes.T, run.threads)
    spread = X.std(axis=0)
    widest = float(spread.max())
    flat = spread <= widest / LONGEST
    lengths = np.where(flat, LONGEST, widest / np.where(flat, 1.0, spread))
    share = float(found.variances.sum() / found.total_variance) if found.total_variance > 0 else 0.0
    noise = float(np.clip(1 - share, LEAST_NOISE, MOST_NOISE))
    return np.where(flat, 0.0, X / np.where(flat, 1.0, spread)), lengths, noise


def _n_learned(n: int, p: int) -> int:
    """Rows that "auto" trains on."""
    return min(n, LEARNED_ROWS, max(FEWEST_LEARNED, LEARNED_VALUES // p))
