"""Kernel principal component analysis (Schoelkopf, Smola & Mueller 1998)."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from lowland._core.base import Invertible
from lowland._core.card import Card, Estimate
from lowland._core.constraints import Function, Integer, Null, OneOf, Real
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.memory import require_memory
from lowland._core.params import fitted, param
from lowland._core.traits import Reading
from lowland._core.validation import dense_if_small, is_sparse
from lowland._engines.kernels.kernel_operators import KERNELS, Kernel, checked_values, kernel_matrix
from lowland._engines.kernels.kernel_values import median_distance
from lowland.kernel import _axes, _preimage
from lowland.kernel._scale import check_scale

__all__ = ["KernelPCA"]

DENSE_ROWS = 1000  # up to so many the matrix is cheaper than any iteration
DEFAULT_LANDMARKS = 500


class KernelPCA(Invertible):
    """PCA of the images phi(x), phi(x).phi(y) = k(x, y): H K H v = lambda v, H = I - 11^T/n.

    Finds curved gradients and unfolds groups that no plane separates, if the kernel suits them: the
    width of an rbf kernel matters more than all else. Use it for structure that PCA misses, for
    data that come as similarities ("precomputed", or a function), and to remove noise by going to
    the map and back. Not for groups of very different widths: one kernel cannot suit them all.
    Cost: O(n^2 p) time for each of some ten products with n x n values that need not be stored;
    O(n m p + n m^2) with m landmarks.

    Parameters
    ----------
    n_components : int or None, default=2
        How many axes to keep; None: all that have a positive eigenvalue.
    kernel : str or function, default="rbf"
        "rbf" exp(-gamma |x-y|^2), "laplacian" exp(-gamma sum |x-y|), "poly" (gamma x.y +
        coef0)^degree, "sigmoid" tanh(gamma x.y + coef0), "cosine", "linear" x.y; "precomputed": X
        is the n x n matrix of values, and new rows are their values with the fitted rows; or a
        function of two rows, which is slow.
    gamma : float, "median" or None, default=None
        Scale of the kernel. None: 1/p. "median", for rbf and laplacian: 1/(2 s^2) or 1/s with s the
        median distance of pairs of rows.
    coef0 : float, default=1.0
        Constant of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly".
    solver : {"auto", "dense", "krylov", "nystroem"}, default="auto"
        "dense": the n x n matrix and exact eigenvectors. "krylov": block Lanczos on tiles of the
        matrix that are made as they are needed. "nystroem": an approximation that sees all rows
        through a few of them. "auto" is "dense" up to 1000 rows and for many components, else
        "krylov".
    n_landmarks : int or None, default=None
        Rows that stand for all with "nystroem"; None: 500, or all if there are fewer.
    tol : float, default=1e-6
        Residual that "krylov" reaches, relative to the largest eigenvalue. It works in single
        precision where that is good enough, which is measured first.
    alpha : float, default=0.001
        Ridge of the regression behind ``inverse_transform`` (kernels other than rbf and linear).

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centered kernel matrix: the sum of squares of each coordinate. 0 where there is no
        positive one left; that coordinate is 0 for all rows.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Their share of the trace of the centered matrix.
    dual_vectors_ : ndarray of shape (n_kept, n_components)
        The axes as combinations of the images of the kept rows: V lambda^(-1/2).
    lowest_eigenvalue_ : float
        The smallest eigenvalue seen. Clearly negative: the kernel is indefinite, and part of the
        similarities cannot be shown as inner products.
    residual_ : float or None
        The largest |H K H v - lambda v| / lambda_1; None with landmarks.
    gamma_, rows_, offsets_, mean_weights_, n_components_
        The scale in use and what new rows are placed with.

    Notes
    -----
    The signs are fixed by the entry of each eigenvector that is largest. ``inverse_transform`` is a
    fixed-point iteration for rbf, started at the fitted row nearest in the map; linear regression
    for the linear kernel, which is then PCA; and else kernel ridge regression from the map to the
    rows. For indefinite kernels only positive eigenvalues make axes.

    References
    ----------
    Schoelkopf, Smola & Mueller (1998), Nonlinear component analysis as a kernel eigenvalue problem,
    Neural Computation 10; Mika et al. (1999), NIPS 11, and Bakir, Weston & Schoelkopf (2004),
    NIPS 16, on the way back; Williams & Seeger (2001), NIPS 13, on landmarks.

    Examples
    --------
    >>> from lowland.datasets import two_rings
    >>> rings = two_rings(300, random_state=0)
    >>> KernelPCA(2, gamma=2.0).fit_transform(rings.X).shape
    (300, 2)
    """

    n_components: int | None = param(
        Integer(1) | Null(), default=2, doc="axes to keep; None keeps all", kw_only=False
    )
    kernel: Any = param(
        OneOf(*KERNELS) | Function(), default="rbf", doc="similarity of two rows, or a function"
    )
    gamma: float | str | None = param(
        Null() | OneOf("median") | Real(0), default=None, doc="scale of the kernel; None is 1/p"
    )
    coef0: float = param(Real(), default=1.0, doc="constant of poly and sigmoid")
    degree: int = param(Integer(1), default=3, doc="degree of poly")
    solver: str = param(
        OneOf("auto", "dense", "krylov", "nystroem"),
        default="auto",
        doc="how the axes are computed; nystroem is an approximation",
    )
    n_landmarks: int | None = param(
        Null() | Integer(1), default=None, doc="rows that stand for all with nystroem"
    )
    tol: float = param(Real(0, 1), default=1e-6, doc="relative residual that krylov reaches")
    alpha: float = param(Real(0), default=1e-3, doc="ridge of the inverse for most kernels")

    eigenvalues_: np.ndarray = fitted("n_components", doc="of the centered kernel matrix")
    explained_variance_ratio_: np.ndarray = fitted("n_components", doc="their share of the trace")
    dual_vectors_: np.ndarray = fitted(
        "n_kept", "n_components", doc="axes as combinations of the kept rows' images"
    )
    offsets_: np.ndarray = fitted("n_components", doc="what centers the coordinates of new rows")
    mean_weights_: np.ndarray = fitted("n_kept", doc="the mean image as such a combination")
    rows_: Any = fitted(
        "n_kept",
        "n_features",
        doc="the kept rows, all or landmarks; None if kernel values were given",
        optional=True,
    )
    gamma_: float = fitted(doc="scale of the kernel in use")
    lowest_eigenvalue_: float = fitted(doc="the smallest eigenvalue seen")
    residual_: float | None = fitted(doc="largest residual of the eigenpairs", optional=True)
    n_components_: int = fitted(type=int, doc="dimension of the map")

    card = Card(
        keeps="similarities, as inner products after a curved change of coordinates",
        use="for curved gradients and rings, for similarities that are no table, to denoise",
        avoid="when the kernel's scale is a guess: look at several; for clusters take t-SNE",
        cost="O(n^2 p) time; O(n^2) memory up to what there is, else O(n p)",
    )
    reference = "Schoelkopf, Smola & Mueller (1998)"
    accepts_sparse = True
    aliases = ("kpca",)
    reading = Reading(
        axes="The axes belong to a curved transformation of the data. Positions along them order "
        "the rows, but have no unit of the original columns.",
        distances="Near means similar in the sense of the kernel. Distances beyond the width of "
        "the "
        "kernel all look alike.",
        gaps="Whether groups look separate depends on the kernel and its width. Try another width "
        "before you conclude.",
        sizes="The size of a group depends on the width of the kernel, not only on the data.",
        scale="The kernel sets the scale: the squared coordinates of an axis sum to its "
        "eigenvalue.",
    )
    transform_uses_blas = False

    @classmethod
    def estimate(cls, n: int, p: int) -> Estimate:
        """See :meth:`Reducer.estimate`."""
        return Estimate(
            0.05 + 6e-9 * n * n * (1 + p / 100), 8 * n * (p + 100) + min(2 * n * n, 2e9)
        )

    def _fit(self, X: Any, y: Any, run: FitContext) -> np.ndarray | None:
        rows = self._as_computed_with(X)
        n = rows.shape[0]
        n_axes = n if self.n_components is None else int(self.n_components)
        if n_axes > n:
            raise ParameterError(
                f"KernelPCA: n_components={n_axes} is more than the {n} rows of X; ask for at most "
                f"{n}."
            )
        self.gamma_ = self._scale(rows)
        check_scale(rows, self._kernel(), "KernelPCA")
        solver = self._choose_solver(n, n_axes)
        shared = (run.threads, run.rng, run.monitor)
        if solver == "dense":
            self._require(8 * 3 * n * n, f"the kernel matrix of {n} rows", "solver='krylov'")
            found = _axes.by_matrix(rows, self._kernel(), n_axes, *shared)
        elif solver == "krylov":
            basis = min(n, 10 * n_axes + 25 * _axes.BLOCK_WIDTH)
            self._require(8 * 2 * n * basis, f"a basis of {basis} vectors", "solver='nystroem'")
            found = _axes.by_krylov(rows, self._kernel(), n_axes, self.tol, *shared)
        else:
            m = self._number_of_landmarks(n, n_axes)
            self._require(8 * 5 * m * m, f"{m} landmarks", "a smaller n_landmarks")
            found = _axes.by_landmarks(rows, self._kernel(), min(n_axes, m), m, *shared)
        return self._keep(found, rows, X.dtype)

    def _as_computed_with(self, X: Any) -> Any:
        """X as the engines take it: small sparse data dense, a matrix of kernel values checked."""
        if self.kernel == "precomputed":
            return checked_values(X.toarray() if is_sparse(X) else X, owner="KernelPCA")
        return dense_if_small(X)

    def _scale(self, rows: Any) -> float:
        if self.gamma is None or self.kernel == "precomputed" or callable(self.kernel):
            return 1.0 / rows.shape[1]
        if self.gamma != "median":
            return float(self.gamma)
        if self.kernel == "rbf":
            return 0.5 / median_distance(rows, "euclidean") ** 2
        if self.kernel == "laplacian":
            return 1.0 / median_distance(rows, "cityblock")
        raise ParameterError(
            f"KernelPCA: gamma='median' is for kernel='rbf' and 'laplacian', not {self.kernel!r}; "
            "give a number or None."
        )

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, self.gamma_, float(self.coef0), int(self.degree))

    def _choose_solver(self, n: int, n_axes: int) -> str:
        if self.solver != "auto":
            return self.solver
        return "dense" if n <= DENSE_ROWS or n_axes > n // 10 else "krylov"

    def _number_of_landmarks(self, n: int, n_axes: int) -> int:
        if self.n_landmarks is None:
            return min(n, max(DEFAULT_LANDMARKS, int(self.n_components or 1)))
        m = int(self.n_landmarks)
        if m > n or (self.n_components is not None and m < n_axes):
            raise ParameterError(
                f"KernelPCA: n_landmarks={m} must be between n_components={n_axes} and the {n} "
                "rows of X."
            )
        return m

    def _require(self, n_bytes: int, what: str, other: str) -> None:
        require_memory(n_bytes, task=f"KernelPCA with {what}", alternative=f"use {other}")

    def _keep(self, found: _axes.KernelAxes, rows: Any, dtype: Any) -> np.ndarray | None:
        """Set the fitted attributes; returns the map where it is known already."""
        positive = int((found.eigenvalues > 0).sum())
        k = max(1, positive) if self.n_components is None else len(found.eigenvalues)
        largest = float(found.eigenvalues[0])
        if positive < k and found.lowest < -1e-6 * max(largest, -found.lowest):
            warnings.warn(
                f"only {positive} of {k} components have a positive eigenvalue, the others are 0: "
                f"the kernel is indefinite (eigenvalues from {found.lowest:.3g} to {largest:.3g}).",
                stacklevel=4,
            )
        given = self.kernel == "precomputed"
        duals, weights = found.duals[:, :k], found.mean_weights
        if given and found.kept is not None:  # new rows come with their values for all fitted ones
            duals, weights = np.zeros((len(rows), k)), np.zeros(len(rows))
            duals[found.kept], weights[found.kept] = found.duals[:, :k], found.mean_weights
        kept = rows if found.kept is None else rows[found.kept]
        self.eigenvalues_, self.offsets_ = found.eigenvalues[:k], found.offsets[:k]
        self.explained_variance_ratio_ = self.eigenvalues_ / (found.total if found.total > 0 else 1)
        self.dual_vectors_, self.mean_weights_ = np.ascontiguousarray(duals), weights
        self.rows_ = None if given else kept.copy()
        self.lowest_eigenvalue_, self.residual_ = found.lowest, found.residual
        self.n_components_ = k
        return None if found.scores is None else found.scores[:, :k].astype(dtype)

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return self._place(X, run).astype(X.dtype, copy=False)

    def _place(self, X: Any, run: FitContext) -> np.ndarray:
        """y = A^T k(x, kept rows) - c, in double."""
        points = self.rows_
        if points is None:
            points = np.broadcast_to(np.float64(0), (1, len(self.dual_vectors_)))
        matrix = kernel_matrix(points, self._kernel(), run.threads)
        return matrix.rows_times(X, self.dual_vectors_) - self.offsets_

    def _inverse_transform(self, Y: np.ndarray, run: FitContext) -> np.ndarray:
        if self.rows_ is None:
            raise ParameterError(
                "KernelPCA: inverse_transform needs the fitted rows, and kernel='precomputed' has "
                "only their kernel values; give the rows and the kernel instead."
            )
        at, rows = Y.astype(np.float64), self.rows_
        exact = self.residual_ is not None  # then the places of the fitted rows are V lambda^(1/2)
        places = self.dual_vectors_ * self.eigenvalues_ if exact else self._place(rows, run)
        if self.kernel == "linear":
            X = _preimage.by_least_squares(at, places, rows, run.threads)
        elif self.kernel != "rbf":
            X = _preimage.by_ridge(at, places, rows, self.alpha, run.threads)
        else:
            axes = _preimage.Axes(rows, places, self.dual_vectors_, self.mean_weights_)
            X = _preimage.by_fixed_point(at, axes, self._kernel(), run.threads)
        return X.astype(Y.dtype, copy=False)

    def save(self, path: str | Path) -> None:
        if callable(self.kernel):
            raise ParameterError(
                f"KernelPCA: kernel={self.kernel!r} is a function, which a model file cannot hold; "
                "use a named kernel, or 'precomputed' with its values."
            )
        super().save(path)

    save.__doc__ = Invertible.save.__doc__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
