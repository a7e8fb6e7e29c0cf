"""Kernel principal component analysis (Schoelkopf, Smola & Mueller 1998)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowland._base.base import Invertible
from lowland._base.constraints import Integer, Null, OneOf, Real
from lowland._base.context import FitContext
from lowland._base.errors import ParameterError
from lowland._base.models.checks import at_least
from lowland._base.params import fitted, param
from lowland._base.rows.fitting import needs_memory
from lowland._base.rows.table import Rows
from lowland._base.traits import Card, Estimate
from lowland._base.validation import check_size
from lowland._engines.kernels.kernel_operators import (
    kernel_matrix_cost,
    kernel_product_cost,
    kernel_scale,
)
from lowland._engines.linalg.eigen import largest_pairs_cost, operator_pairs_cost
from lowland.methods.kernel._axes import (
    DENSE_ROWS,
    KernelAxes,
    axes_of_chunks,
    axis_count,
    compute_axes,
    landmark_count,
    mean_square_of,
    read_rows,
    sums_of_chunks,
    warn_if_indefinite,
)
from lowland.methods.kernel._base import Axes, KernelReducer, check_scale, preimages


class KernelPCA(KernelReducer, Invertible):
    """PCA of the images phi(x), phi(x).phi(y) = k(x, y): H K H v = lambda v, H = I - 11^T/n.

    Shows curved gradients and separates groups that no plane separates, if the kernel suits them.
    The width of an rbf kernel matters most. Use it for structure that PCA misses, for data that
    are given as similarities, and to remove noise by ``transform`` and ``inverse_transform``. Do
    not use it for groups of very different widths, because one kernel cannot suit them all. Cost:
    O(n^2 p) for each of about ten products with the n x n kernel matrix, which need not be stored;
    O(n m p + n m^2) with m landmarks, for which rows may be read in chunks, in two passes or
    three.

    Parameters
    ----------
    n_components : int or None, default=2
        Number of axes; None keeps all that have a positive eigenvalue.
    solver : {"auto", "dense", "krylov", "nystroem"}, default="auto"
        How the axes are computed; "nystroem" is an approximation. "dense" computes the n x n
        matrix and exact eigenvectors. "krylov" is block Lanczos on tiles of the matrix, which are
        computed when they are needed. "nystroem" represents all rows by a few landmarks. "auto" is
        "dense" for up to 1000 rows and for many components, else "krylov".
    n_landmarks : int or None, default=None
        Number of landmarks of "nystroem"; None is 500, or all rows if there are fewer.
    tol : float, default=1e-6
        Relative residual that "krylov" reaches. It is relative to the largest eigenvalue. The
        solver works in float32 if a measurement on a sample shows that this is accurate enough.
    alpha : float, default=0.001
        Ridge of the regression in ``inverse_transform``, for kernels other than rbf and linear.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centered kernel matrix, largest first: the sum of squares of each
        coordinate. If there are too few positive eigenvalues, the others are 0, and so are their
        coordinates.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each eigenvalue in the trace of the centered kernel matrix, largest first.
    dual_vectors_ : ndarray of shape (n_fitted, n_components)
        Axes as combinations of the images of the fitted rows: V lambda^(-1/2).
    mean_weights_ : ndarray of shape (n_fitted,)
        The mean image as such a combination.
    lowest_eigenvalue_ : float
        The smallest eigenvalue computed. If it is clearly negative, the kernel is indefinite, and
        some of the similarities cannot be shown as inner products.
    residual_ : float or None
        The largest |H K H v - lambda v| / lambda_1; None with landmarks.

    Notes
    -----
    The largest entry of each eigenvector is positive. ``inverse_transform`` is a fixed-point
    iteration for the rbf kernel, started at the fitted row nearest in the map. For the linear
    kernel it is linear regression, which makes it the inverse of PCA. For other kernels it is
    kernel ridge regression from the map to the rows. Axes of indefinite kernels belong to positive
    eigenvalues only.

    References
    ----------
    Schoelkopf, Smola & Mueller (1998), Nonlinear component analysis as a kernel eigenvalue problem,
    Neural Computation 10; Mika et al. (1999), NIPS 11, and Bakir, Weston & Schoelkopf (2004),
    NIPS 16, on pre-images; Williams & Seeger (2001), NIPS 13, on landmarks.

    Examples
    --------
    >>> from lowland.datasets import two_rings
    >>> rings = two_rings(300, random_state=0)
    >>> KernelPCA(2).fit_transform(rings.X).shape
    (300, 2)
    """

    n_components: int | None = param(Integer(1) | Null(), default=2, kw_only=False)
    solver: str = param(OneOf("auto", "dense", "krylov", "nystroem"), default="auto")
    n_landmarks: int | None = param(Null() | Integer(1), default=None)
    tol: float = param(Real(0, 1), default=1e-6)
    alpha: float = param(Real(0), default=1e-3)

    eigenvalues_: np.ndarray = fitted("n_components", meaning=at_least(0))
    explained_variance_ratio_: np.ndarray = fitted("n_components")
    mean_weights_: np.ndarray = fitted("n_fitted")
    lowest_eigenvalue_: float = fitted()
    residual_: float | None = fitted(optional=True)

    card = Card(
        keeps="similarities, as inner products after a curved change of coordinates",
        use="for curved gradients and rings, for data given as similarities, to remove noise",
        avoid="when the scale of the kernel is a guess: look at several; for clusters use t-SNE",
        cost="O(n^2 p) time; O(n^2) memory, or O(n p) if the kernel matrix does not fit",
    )
    reference = "Schoelkopf, Smola & Mueller (1998)"
    aliases = ("kpca",)
    fits_rows = True

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`: a dense eigenproblem, or ten products with K."""
        if n <= DENSE_ROWS:
            work = kernel_matrix_cost(n, p) + largest_pairs_cost(n, 2).holding(8 * n * n)
        else:
            solver = operator_pairs_cost(n, 2, Estimate(0, 0))
            work = kernel_product_cost(n, p, 10) + solver.holding(8 * n * p)
        return (Estimate(0.05, 0) + work).holding(8 * n * p)

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray | None:
        rows = self._prepared(X)
        found = compute_axes(
            rows,
            self._kernel(),
            self.n_components,
            self.solver,
            self.n_landmarks,
            self.tol,
            run,
        )
        return self._keep(found, rows, X.dtype)

    def _fit_rows(self, rows: Rows, run: FitContext) -> None:
        """The landmarks of "nystroem" are read, then all rows once, for their sums."""
        if self._has_kernel_values or self.solver != "nystroem":
            name = "kernel" if self._has_kernel_values else "solver"
            setting = f"{name}={getattr(self, name)!r}"
            raise needs_memory("KernelPCA", setting, "set solver='nystroem', or ")
        n, owner = rows.shape[0], type(self).__name__
        n_axes = axis_count(n, self.n_components)
        m = landmark_count(n, self.n_components, self.n_landmarks)
        read = read_rows(rows, m, run)
        by_size = self.gamma is None and self.kernel in ("poly", "sigmoid")
        size = mean_square_of(rows, run) if by_size else None
        self.gamma_ = kernel_scale(read.sample, self.kernel, self.gamma, owner, size)
        kernel = self._kernel()
        sums = sums_of_chunks(rows, read, kernel, self.n_jobs, run)
        check_size(sums.greatest)
        check_scale(read.sample, kernel, owner, sums.greatest)
        found = axes_of_chunks(read, sums, kernel, min(n_axes, m), run)
        self._keep(found, read.landmarks, rows.dtype)

    def _keep(self, found: KernelAxes, rows: Any, dtype: Any) -> np.ndarray | None:
        """Set the fitted attributes; returns the map if it is known already."""
        positive = int((found.eigenvalues > 0).sum())
        k = max(1, positive) if self.n_components is None else len(found.eigenvalues)
        warn_if_indefinite(found, k)
        if self._has_kernel_values:  # new rows are given by their values with all fitted rows
            found = found.over_all_rows(len(rows))
        kept = rows if found.kept is None else rows[found.kept]
        self._keep_map(found.duals[:, :k], found.offsets[:k], kept)
        self.mean_weights_, self.eigenvalues_ = found.mean_weights, found.eigenvalues[:k]
        self.explained_variance_ratio_ = self.eigenvalues_ / (found.total if found.total > 0 else 1)
        self.lowest_eigenvalue_, self.residual_ = found.lowest, found.residual
        return None if found.scores is None else found.scores[:, :k].astype(dtype)

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        rows, A = self.fitted_rows_, self.dual_vectors_
        if rows is None:
            raise ParameterError(
                "KernelPCA: inverse_transform needs the fitted rows, and kernel='precomputed' has "
                "only their kernel values; give the rows and the kernel instead."
            )
        # without landmarks the coordinates of the fitted rows are V lambda^(1/2) = A lambda
        exact = self.residual_ is not None
        places = A * self.eigenvalues_ if exact else self._place(rows, run)
        axes = Axes(rows, places, A, self.mean_weights_)
        X = preimages(Y.astype(np.float64), axes, self._kernel(), self.alpha, run.threads)
        return X.astype(Y.dtype, copy=False)
