"""Back-constrained Gaussian process latent variable model (Lawrence & Quinonero-Candela 2006)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lowland._base.constraints import Integer, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense
from lowland._engines.gaussian_processes.exact import exact_posterior
from lowland._engines.gaussian_processes.sparse import SparseProcess, sparse_posterior
from lowland._engines.kernels.kernel_operators import median_distance
from lowland._engines.linalg import products
from lowland._engines.linalg.principal_axes import leading_axes, principal_axes_cost
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.network.layers import RowSpace, apply, row_space, row_space_cost
from lowland.methods.latent._back_training import (
    Constraint,
    Perceptron,
    Problem,
    kernel_basis,
    kernel_places,
    linear_basis,
    network_of,
    train,
)
from lowland.methods.latent._base import GaussianProcessReducer

EXACT_ROWS = 200  # inference="auto" is exact for so many rows
LEARNED_ROWS, LEARNED_VALUES = 5000, 2_000_000  # the model is trained on so many at most
FEWEST_LEARNED = 1000
MOST_CENTERS = 500
MOST_HIDDEN = 10_000
MOST_NOISE, LEAST_NOISE = 0.5, 0.01  # s^2 at the start
FARTHEST = 1e8  # standardized values beyond are taken as this


class BackConstrainedGPLVM(GaussianProcessReducer):
    """max log p(Y | X), X = g(Y; A): a GPLVM whose places are a smooth function of the rows.

    The columns are Gaussian processes of the map, as in GPLVM: rows that are near in the map are
    alike. The function g, learned with the process, adds the converse: rows that are alike are near
    in the map. New rows are placed by one evaluation of g, without a search. Use it for smooth
    nonlinear maps that new rows, an inverse and its uncertainty are needed for. Not if the data
    jump: g cannot tear apart rows that are alike. Cost: O(n m^2 + n m p + n c) per step for m
    inducing points, p columns and c centers, from up to 5 000 rows; O(n^3) if exact.

    Parameters
    ----------
    mapping : {"kernel", "network", "linear"}, default="kernel"
        The function g: a sum of Gaussians around rows (centers), a network with one hidden layer of
        tanh, or a linear map.
    width : float, default=1.0
        Width of the Gaussians of mapping="kernel", in units of the median distance between rows. A
        large one gives nearly linear maps, a small one leaves places free.
    hidden : int, default=15
        Number of hidden units of mapping="network".
    inference : {"auto", "exact", "sparse"}, default="auto"
        How the likelihood is computed: exactly, or by a lower bound with inducing points. "auto" is
        exact for up to 200 rows.
    n_inducing : int, default=50
        Number of inducing points. A linear process has at most as many as it has axes, and one
        more for the bias.
    max_iter : int, default=200
        Maximum number of steps of L-BFGS.
    tol : float, default=0.0000001
        Training ends when a step raises the log-likelihood per value by less.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_coefficients,)
        Parameters A of g for rows minus ``mean_`` over ``scale_``: n_components numbers for each
        center or column, or the weights of the network.
    centers_ : ndarray of shape (n_centers, n_features) or None
        Rows at which the Gaussians of mapping="kernel" are centered.
    width_ : float
        Width of these Gaussians in the units of the rows.

    Notes
    -----
    The paper maximizes the likelihood over A and the parameters of the covariance by conjugate
    gradients; here it is L-BFGS. A starts at the least squares fit to principal components. For
    the kernel, A = T B with orthonormal functions T^T k(y), and the descent is in B. The norm of B
    is that of g, so \\|g(y) - g(y')\\| <= \\|B\\| \\|y - y'\\| / width: like rows stay near.
    At most 500 random rows are centers.

    The likelihood does not change if an axis and its length scale are multiplied by one number.
    The axes are in units of their length scales, and the most relevant one is the first. There is
    no prior of the places. Beyond 5 000 rows, or 2 million values but 1 000 rows, the model is
    trained on random rows, and g places all of them; the likelihood is that of the trained rows.
    Exact inference uses all rows. Standardized values of new rows beyond 1e8 are taken as 1e8,
    unless g is linear.

    The defaults were chosen by held-out rows of oil flow, digits, iris, a swiss roll and a rounded
    survey. In the map of oil flow (1 000 rows) no row has a nearest neighbor of another class, and
    of 2 000 held-out rows 13 have (network 38, linear 448; GTM 27). Widths from 0.5 to 2 differ
    little; 0.35 was worse on all. A swiss roll is not unrolled: its start is flat.

    References
    ----------
    Lawrence & Quinonero-Candela (2006), Local distance preservation in the GP-LVM through back
    constraints, ICML, 513-520. Titsias (2009), Variational learning of inducing variables in sparse
    Gaussian processes, AISTATS, 567-574.

    Examples
    --------
    >>> from lowland.datasets import iris
    >>> X = iris().X
    >>> model = BackConstrainedGPLVM(2, max_iter=20, random_state=0).fit(X)
    >>> model.transform(X[:3]).shape, model.inverse_transform(model.embedding_).shape
    ((3, 2), (150, 4))
    """

    mapping: Literal["kernel", "network", "linear"] = param(
        OneOf("kernel", "network", "linear"), default="kernel"
    )
    width: float = param(Real(1e-3, 1e3, closed="both"), default=1.0)
    hidden: int = param(Integer(1, MOST_HIDDEN), default=15)
    inference: Literal["auto", "exact", "sparse"] = param(
        OneOf("auto", "exact", "sparse"), default="auto"
    )

    coefficients_: np.ndarray = fitted("n_coefficients")
    centers_: np.ndarray | None = fitted("n_centers", "n_features", optional=True)
    width_: float = fitted(meaning=above(0))

    card = Card(
        keeps="rows that are alike near each other, and rows that are near alike",
        use="for smooth nonlinear maps with fast placement of new rows, an inverse and its "
        "uncertainty",
        avoid="to tear apart groups that touch, or to unroll a spiral",
        cost="O(n m^2 + n m p) time per step for m = 50 inducing points and up to 5 000 rows, "
        "O(n (m + p)) memory",
    )
    reference = "Lawrence & Quinonero-Candela (2006)"
    aliases = ("bc-gplvm", "bcgplvm")
    accepts_sparse = True
    components_limit = "rank"
    reading = Reading(
        axes="The axes have no meaning of their own; the first is the one that rows depend on "
        "most.",
        distances="Rows that are near in the map are alike, and rows that are alike are near. Long "
        "distances mean little.",
        gaps="A gap is a region in which the model expects no rows; its width says little.",
        sizes="Sizes of groups are stretched, here more and there less.",
        scale="One unit is one length scale: so far apart, rows have a correlation of about half.",
    )

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: 200 steps, and one evaluation of g for all rows."""
        r, m, c = _n_learned(n, p), 50, min(n, MOST_CENTERS)
        seen = min(r, p)
        if n <= EXACT_ROWS:
            step = Estimate(5e-4 + n * n * (7e-8 + 2e-11 * seen), 80 * n * n)
        else:
            row = 2.5e-6 + 2e-9 * c + 1.2e-8 * seen
            step = Estimate(8e-4 + r * row, 8 * r * (8 * m + 2 * p + 2 * c))
        start = principal_axes_cost(r, seen, 2) + row_space_cost(r, p)
        placing = Estimate(n * (3e-9 * c + 4e-9 * p), 16 * n * p)
        return Estimate(0.02, 0) + start + Estimate(2e-9 * c**3, 0) + 200 * step + placing

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: g has its parameters, and the process its parts."""
        if (self.centers_ is not None) != (self.mapping == "kernel"):
            return f"'centers_' with mapping={self.mapping!r}"
        q, p = int(self.n_components), int(self.n_features_in_)
        wanted = p * q
        if self.centers_ is not None:
            wanted = len(self.centers_) * q
        elif self.mapping == "network":
            wanted = network_of(p, int(self.hidden), q).n_weights
        if len(self.coefficients_) != wanted:
            return f"{len(self.coefficients_)} 'coefficients_' of {wanted}"
        return super().inconsistency()

    # --- fit ------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray:
        n, p = X.shape
        q = self._check_components(n, p)
        exact = self.inference == "exact" or (self.inference == "auto" and n <= EXACT_ROWS)
        learned = n if exact else _n_learned(n, p)
        self._require_room(learned, p, exact)
        X = as_dense(X, type(self).__name__)
        self._learn_scale(X)
        chosen = np.sort(run.rng.choice(n, learned, replace=False)) if learned < n else slice(None)
        S = self._standardized(X[chosen])
        space = row_space(S)
        Y = S if space is None else space.coordinates(S, run.threads) / space.size
        start, noise = _principal_start(Y, q, run)
        constraint = self._constraint(Y, space, X[chosen], run)
        m = 0 if exact else min(int(self.n_inducing), learned)
        if self.kernel == "linear":  # more are linear combinations of these
            m = min(m, q + int(self.bias))
        found = train(
            Problem(constraint, self._covariance(), Y, p, m, run.threads),
            start,
            noise,
            run,
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            show=lambda A: self._g(self._widened(A, space), X, run),
        )
        self.coefficients_ = self._widened(found.A, space)
        self.loss_history_, self.n_iter_ = found.losses, found.n_iter
        self.mean_log_likelihood_ = -float(found.losses[-1])
        self.embedding_ = self._g(self.coefficients_, X, run)
        places = self.embedding_[chosen].astype(np.float64)
        process = (self._covariance(), found.theta, found.log_noise, places)
        self.inducing_points_ = None if exact else found.Z
        with limit_blas(1):
            if exact:
                posterior = exact_posterior(*process, Y, run.threads)
            else:
                posterior = sparse_posterior(SparseProcess(*process, found.Z), Y, run.threads)
            if space is not None:
                posterior = posterior._replace(weights=posterior.weights @ space.axes)
        self._keep(posterior, places.var(axis=0))
        return self.embedding_.copy()

    def _require_room(self, n: int, p: int, exact: bool) -> None:
        q, m, h = int(self.n_components), min(n, int(self.n_inducing)), int(self.hidden)
        c = {"kernel": min(n, MOST_CENTERS), "network": 2 * h, "linear": p}[self.mapping]
        process = 10 * n if exact else 8 * m
        n_weights = (p + q) * h if self.mapping == "network" else c * q
        require_memory(
            8 * (n * (process + 3 * p + 2 * c + 8 * q) + 60 * n_weights + 4 * c * c),
            task=f"BackConstrainedGPLVM for {n} rows and {p} columns",
            alternative="inference='sparse', or PCA first" if exact else "PCA first",
        )

    def _constraint(
        self, Y: np.ndarray, space: RowSpace | None, rows: np.ndarray, run: FitContext
    ) -> Constraint:
        """g of the standardized rows Y; sets ``centers_`` and ``width_``."""
        q = int(self.n_components)
        relative = float(self.width) * median_distance(Y, "euclidean")
        self.width_, self.centers_ = relative * self.scale_, None
        if self.mapping == "linear":
            return linear_basis(Y, q, run.threads)
        if self.mapping == "network":
            inputs = Y if space is None else Y * space.size
            return Perceptron(network_of(Y.shape[1], int(self.hidden), q), inputs, run.threads)
        c = min(len(Y), MOST_CENTERS)
        at = np.sort(run.rng.choice(len(Y), c, replace=False)) if c < len(Y) else slice(None)
        self.centers_ = rows[at].astype(np.float64)
        return kernel_basis(Y, Y[at], relative, q, run.threads)

    def _widened(self, A: np.ndarray, space: RowSpace | None) -> np.ndarray:
        """A for all columns, from that for coordinates in the space of the rows."""
        if space is None or self.mapping == "kernel":
            return A
        q = int(self.n_components)
        if self.mapping == "linear":
            return np.einsum("rp,rq->pq", space.axes, A.reshape(-1, q)).ravel()
        network = network_of(len(space.axes), int(self.hidden), q)
        return space.widened(network, A, inputs=True)[1]

    # --- g --------------------------------------------------------------------------------------

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return self._g(self.coefficients_, as_dense(X, type(self).__name__), run)

    def _g(self, A: np.ndarray, X: np.ndarray, run: FitContext) -> np.ndarray:
        q = int(self.n_components)
        Y = np.empty((len(X), q), dtype=X.dtype)
        network = network_of(X.shape[1], int(self.hidden), q)
        centers = None if self.centers_ is None else self._standardized(self.centers_)
        for at in row_blocks(len(X), rows_within(32 * X.shape[1])):
            S = self._standardized(X[at])
            if self.mapping == "linear":
                Y[at] = products.times(S, np.zeros(S.shape[1]), A.reshape(-1, q), run.threads)
                continue
            S = np.clip(S, -FARTHEST, FARTHEST)
            if centers is None:
                Y[at] = apply(network, A, S, run.threads)
            else:
                width = float(self.width_ / self.scale_)
                Y[at] = kernel_places(S, centers, width, A.reshape(-1, q), run.threads)
        return Y


def _principal_start(Y: np.ndarray, q: int, run: FitContext) -> tuple[np.ndarray, float]:
    """Principal components, of which the first has unit variance, and the variance of the rest."""
    found = leading_axes(Y, q, run.threads, run.rng, run.monitor)
    X = products.times(Y, found.mean, found.axes.T, run.threads)
    share = float(found.variances.sum() / found.total_variance) if found.total_variance > 0 else 0.0
    size = X[:, 0].std()
    return X / (size if size > 0 else 1.0), float(np.clip(1 - share, LEAST_NOISE, MOST_NOISE))


def _n_learned(n: int, p: int) -> int:
    """Rows that a sparse model is trained on."""
    return min(n, LEARNED_ROWS, max(FEWEST_LEARNED, LEARNED_VALUES // p))
