"""Back-constrained Gaussian process latent variable model (Lawrence & Quinonero-Candela 2006)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from lowland._base.constraints import Integer, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.memory import require_memory
from lowland._base.models.checks import above
from lowland._base.monitor import Monitor
from lowland._base.params import fitted, param
from lowland._base.threads import limit_blas
from lowland._base.traits import Card, Estimate, Reading
from lowland._base.validation import as_dense
from lowland._engines.gaussian_processes.covariance import Covariance
from lowland._engines.gaussian_processes.exact import exact_posterior, log_likelihood
from lowland._engines.gaussian_processes.sparse import SparseProcess, sparse_bound, sparse_posterior
from lowland._engines.kernels.kernel_operators import Kernel, kernel_matrix, median_distance
from lowland._engines.linalg import products
from lowland._engines.linalg.eigen import all_eigenpairs
from lowland._engines.linalg.principal_axes import principal_axes_cost
from lowland._engines.linalg.products import row_blocks, rows_within
from lowland._engines.network.layers import (
    Network,
    RowSpace,
    apply,
    backward,
    first_weights,
    forward,
    row_space_cost,
)
from lowland._engines.network.quasi_newton import minimize
from lowland.methods.latent._base import GaussianProcessReducer, loss_per_value, principal_start

EXACT_ROWS = 200  # inference="auto" is exact for so many rows
LEARNED_ROWS, LEARNED_VALUES = 5000, 2_000_000  # the model is trained on so many at most
FEWEST_LEARNED = 1000
MOST_CENTERS = 500
MOST_HIDDEN = 10_000
FARTHEST = 1e8  # standardized values beyond are taken as this


# Training of a back-constrained model: parameters of g and of the process are one vector.
#
#     L(A, theta, s^2, Z) = log p(Y | X = g(Y; A)), or its bound by inducing points Z
#
# The likelihood stays the same if an axis of the map and its length scale are multiplied by one
# number. Therefore the axes are brought to the units of their length scales afterwards, and sorted
# by their relevance.


# The functions g that place rows: x = g(y; A), with slopes by A.
#
#     kernel    g(y) = sum_j a_j k(y, c_j),  k(y, c) = exp(-|y - c|^2 / (2 w^2)),  c_j centers
#     linear    g(y) = sum_j a_j y_j
#     network   g(y) = W_2^T tanh(W_1^T y + b_1) + b_2
#
# The first two are linear in A. They are learned as g(y) = B^T T^T k(y), where T makes the
# functions T^T k orthonormal: the norm of B is then that of g in the space of the kernel, and a
# descent changes smooth functions first.


RIDGE = 1e-3  # of the least squares fit to the start, relative to the mean square of a function
NO_FUNCTION = 1e-10  # share of the largest eigenvalue
START_STEPS = 200  # of the network's least squares fit to the start


class LinearBasis(NamedTuple):
    """X = F B; A = T B. F (n, r) are the values of the functions for the rows, T (m, r).

    Like :class:`Perceptron`, g on the rows that it is learned from, as a function of its
    parameters, one vector.
    """

    F: np.ndarray
    T: np.ndarray
    q: int

    def start(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        """Parameters of the least squares fit to places X."""
        with limit_blas(1):
            FF = self.F.T @ self.F
            FF.flat[:: len(FF) + 1] += RIDGE * (np.trace(FF) / max(1, len(FF)) or 1.0)
            return np.linalg.solve(FF, self.F.T @ X).ravel()

    def places(self, parameters: np.ndarray) -> np.ndarray:
        """g of all rows, (n, q)."""
        return self.F @ parameters.reshape(-1, self.q)

    def slope(self, parameters: np.ndarray, by_X: np.ndarray) -> np.ndarray:
        """The slope by the parameters of a function of the places, whose slope is given."""
        return (self.F.T @ by_X).ravel()

    def scaled(self, parameters: np.ndarray, order: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """A, for axes in another order, each divided by its scale, as one vector."""
        with limit_blas(1):
            return (self.T @ (parameters.reshape(-1, self.q)[:, order] / scale)).ravel()


def kernel_places(
    S: np.ndarray, centers: np.ndarray, width: float, A: np.ndarray, threads: int
) -> np.ndarray:
    """sum_j a_j k(y, c_j) of each row y of S, independent of the other rows."""
    return kernel_matrix(centers, _rbf(width), threads).rows_times(S, A)


def kernel_basis(
    S: np.ndarray, centers: np.ndarray, width: float, q: int, threads: int
) -> LinearBasis:
    """T = U L^-1/2 from k(C, C) = U L U^T, without functions that rounding alone has made."""
    operator = kernel_matrix(centers, _rbf(width), threads)
    values, U = all_eigenpairs(operator.matrix())
    kept = values > NO_FUNCTION * values[0]
    T = U[:, kept] / np.sqrt(values[kept])
    return LinearBasis(products.times(operator.rows(S), np.zeros(len(centers)), T, threads), T, q)


def linear_basis(S: np.ndarray, q: int, threads: int) -> LinearBasis:
    """T = U L^-1/2 from S^T S / n = U L U^T: principal components of unit variance."""
    scatter = products.transpose_times(S, np.zeros(S.shape[1]), S, threads)
    values, U = all_eigenpairs(scatter / len(S))
    kept = values > NO_FUNCTION * values[0] if values[0] > 0 else np.zeros(len(values), dtype=bool)
    T = U[:, kept] / np.sqrt(values[kept])
    return LinearBasis(products.times(S, np.zeros(len(T)), T, threads), T, q)


def _rbf(width: float) -> Kernel:
    with np.errstate(over="ignore", divide="ignore"):  # widths of a hostile model file
        return Kernel("rbf", gamma=float(0.5 / np.square(np.float64(width))))


def network_of(p: int, hidden: int, q: int) -> Network:
    """The layers of g."""
    return Network((p, hidden, q), ("tanh", "linear"))


class Perceptron(NamedTuple):
    """A network with one hidden layer on the rows S."""

    network: Network
    S: np.ndarray
    threads: int

    def start(self, X: np.ndarray, run: FitContext) -> np.ndarray:
        def error(weights: np.ndarray) -> tuple[float, np.ndarray]:
            passed = forward(self.network, weights, self.S, self.threads)
            rest = passed.output - X
            slope = 2 / rest.size * rest
            found = backward(self.network, weights, passed, slope, self.threads, with_x=False)
            return float(np.mean(rest**2)), found.weights

        silent = Monitor()
        first = first_weights(self.network, run.rng)
        return minimize(error, first, max_iter=START_STEPS, tol=1e-7, monitor=silent).point

    def places(self, parameters: np.ndarray) -> np.ndarray:
        return apply(self.network, parameters, self.S, self.threads)

    def slope(self, parameters: np.ndarray, by_X: np.ndarray) -> np.ndarray:
        passed = forward(self.network, parameters, self.S, self.threads)
        return backward(self.network, parameters, passed, by_X, self.threads, with_x=False).weights

    def scaled(self, parameters: np.ndarray, order: np.ndarray, scale: np.ndarray) -> np.ndarray:
        weights = parameters.copy()
        last = self.network.layers(weights)[-1]
        last.W[...], last.b[...] = last.W[:, order] / scale, last.b[order] / scale
        return weights


Constraint = LinearBasis | Perceptron

# The least and the largest values for columns of mean variance 1: of s^2, and of the variance,
# length scales, weights and bias of the covariance. Without them the variance of data without noise
# grows until the uncertainty is rounding.
NOISES = (1e-5, 10.0)
LEAST, MOST = (1e-3, 1e-3, 1e-6, 1e-6), (1e2, 1e3, 1e6, 1e2)
FIRST_BIAS = 0.1


class Parameters(NamedTuple):
    """Of g, of the covariance (logarithms), log s^2, and inducing points, none if exact."""

    g: np.ndarray
    theta: np.ndarray
    log_noise: float
    Z: np.ndarray

    def packed(self) -> np.ndarray:
        """All of them as one vector."""
        return np.concatenate([self.g, self.theta, [self.log_noise], self.Z.ravel()])


class Problem(NamedTuple):
    """Rows Y (n, r) whose products are those of a table of ``n_columns``, and m inducing points."""

    constraint: Constraint
    covariance: Covariance
    Y: np.ndarray
    n_columns: int
    n_inducing: int
    threads: int = 1

    def unpacked(self, vector: np.ndarray) -> Parameters:
        """The inverse of :meth:`Parameters.packed`."""
        k, m, q = self.covariance.n_parameters, self.n_inducing, self.covariance.q
        at = len(vector) - m * q
        g, theta = vector[: at - 1 - k], vector[at - 1 - k : at - 1]
        return Parameters(g, theta, float(vector[at - 1]), vector[at:].reshape(m, q))

    def start(self, X: np.ndarray, noise: float, run: FitContext) -> Parameters:
        """The g nearest to places X, a process with this s^2, and the places of random rows."""
        with limit_blas(1):
            g = self.constraint.start(X, run)
            chosen = np.sort(run.rng.choice(len(X), self.n_inducing, replace=False))
            theta = self.covariance.vector(bias=FIRST_BIAS)
            return Parameters(g, theta, float(np.log(noise)), self.constraint.places(g)[chosen])

    def bound(self, now: Parameters) -> tuple[float, Parameters]:
        """L, and its slopes."""
        X, process = self.constraint.places(now.g), (self.covariance, now.theta, now.log_noise)
        if self.n_inducing:
            at = SparseProcess(*process, X, now.Z)
            L = sparse_bound(at, self.Y, self.n_columns, self.threads)
            by_Z = L.Z
        else:
            L = log_likelihood(*process, X, self.Y, self.n_columns, self.threads)
            by_Z = now.Z
        return L.value, Parameters(self.constraint.slope(now.g, L.X), L.theta, L.noise, by_Z)

    def loss(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """-L per value of the table, and its slope."""
        return loss_per_value(self, vector)

    def bounds(self, first: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest values of all parameters."""
        free, points = np.full(first.g.shape, np.inf), np.full(first.Z.shape, np.inf)
        logs, vector = np.log(NOISES), self.covariance.vector
        least = Parameters(-free, vector(*LEAST), logs[0], -points)
        return least.packed(), Parameters(free, vector(*MOST), logs[1], points).packed()

    def standard(self, found: Parameters) -> Parameters:
        """The model in units of its length scales, the most relevant axis first; A in place of B.

        Relevance is that of axes of equal variance.
        """
        covariance = self.covariance
        spread = self.constraint.places(found.g).std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        factors = covariance.factors(covariance.stretched(found.theta, 1 / spread))
        order = np.argsort(-factors, kind="stable")
        scale = (spread / factors)[order]
        g, Z = self.constraint.scaled(found.g, order, scale), found.Z[:, order] / scale
        theta = covariance.stretched(covariance.permuted(found.theta, order), 1 / scale)
        return Parameters(g, theta, found.log_noise, Z)


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
    reading = Reading(
        axes="The axes have no meaning, but the rows depend most on the first one.",
        distances="Rows that are near in the map are alike, and rows that are alike are near. Long "
        "distances mean little.",
        gaps="A gap is a region in which the model expects no rows; its width has little meaning.",
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
        chosen, space, Y = self._learned(X, learned, run)
        scores, noise = principal_start(Y, q, run)
        constraint = self._constraint(Y, space, X[chosen], run)
        m = 0 if exact else self._count_inducing(learned)
        problem = Problem(constraint, self._covariance(), Y, p, m, run.threads)
        first = problem.start(scores / (float(scores[:, 0].std()) or 1.0), noise, run)

        def show(now: Parameters) -> np.ndarray:
            return self._g(self._widened(now.g, space), X, run)

        found = self._trained(problem, first, show, run)
        self.coefficients_ = self._widened(found.g, space)
        self.embedding_ = self._g(self.coefficients_, X, run)
        places = self.embedding_[chosen].astype(np.float64)
        process = (self._covariance(), found.theta, found.log_noise, places)
        self.inducing_points_ = None if exact else found.Z
        with limit_blas(1):
            if exact:
                posterior = exact_posterior(*process, Y, run.threads)
            else:
                posterior = sparse_posterior(SparseProcess(*process, found.Z), Y, run.threads)
        posterior = posterior._replace(weights=space.restored(posterior.weights))
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
        self, Y: np.ndarray, space: RowSpace, rows: np.ndarray, run: FitContext
    ) -> Constraint:
        """g of the standardized rows Y; sets ``centers_`` and ``width_``."""
        q = int(self.n_components)
        relative = float(self.width) * median_distance(Y, "euclidean")
        self.width_, self.centers_ = relative * self.scale_, None
        if self.mapping == "linear":
            return linear_basis(Y, q, run.threads)
        if self.mapping == "network":
            network = network_of(Y.shape[1], int(self.hidden), q)
            return Perceptron(network, Y * space.size, run.threads)
        at = run.some_rows(len(Y), MOST_CENTERS)
        self.centers_ = rows[at].astype(np.float64)
        return kernel_basis(Y, Y[at], relative, q, run.threads)

    def _widened(self, A: np.ndarray, space: RowSpace) -> np.ndarray:
        """A for all columns, from that for coordinates in the space of the rows."""
        if space.axes is None or self.mapping == "kernel":
            return A
        q = int(self.n_components)
        if self.mapping == "linear":
            return np.einsum("rp,rq->pq", space.axes, A.reshape(-1, q)).ravel()
        network = network_of(len(space.axes), int(self.hidden), q)
        return space.widened(network, A, inputs=True)

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


def _n_learned(n: int, p: int) -> int:
    """Rows that a sparse model is trained on."""
    return min(n, LEARNED_ROWS, max(FEWEST_LEARNED, LEARNED_VALUES // p))
