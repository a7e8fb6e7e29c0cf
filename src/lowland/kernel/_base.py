"""The base of kernel methods: the kernel and its scale, given kernel values, out-of-sample rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lowland._core.base import Reducer
from lowland._core.constraints import Function, Integer, Null, OneOf, Real
from lowland._core.context import FitContext
from lowland._core.errors import ParameterError
from lowland._core.meanings.contents import above, count
from lowland._core.params import fitted, param
from lowland._core.traits import Reading
from lowland._core.validation import dense_if_small, is_sparse
from lowland._engines.kernels.kernel_operators import KERNELS, Kernel, checked_values, kernel_matrix
from lowland._engines.kernels.kernel_scale import BY_COLUMNS, kernel_scale
from lowland.kernel._scale import check_scale

MOST_DEGREE = 10_000  # powers beyond it are 0 or infinite for all but values next to 1


class KernelReducer(Reducer):
    """The map y = A^T k(x, fitted rows) - c. A method writes ``_fit``, which calls ``_keep_map``.

    Parameters
    ----------
    kernel : str or function, default="rbf"
        Similarity of two rows: a name, a function of two rows, or "precomputed". "rbf" is
        exp(-gamma |x-y|^2), "laplacian" exp(-gamma sum |x-y|), "poly" (gamma x.y + coef0)^degree,
        "sigmoid" tanh(gamma x.y + coef0), "cosine" x.y / (|x| |y|) and "linear" x.y. With
        "precomputed", X holds the n x n kernel values of the fitted rows, and new rows are given
        by their kernel values with the fitted rows. A function is slow.
    gamma : float, "median", "1/p" or None, default=None
        Scale of the kernel; None takes it from the data. With s the median distance between rows
        (of a sample), None is 2 / s^2 for "rbf", a Gaussian of width s / 2, and 2 / s for
        "laplacian" with sums of absolute differences; it is 1 / m for "poly" and 1 / (4 m) for
        "sigmoid" with m the mean of |x|^2. "median" is 1 / (2 s^2) or 1 / s, twice as wide,
        "1/p" is 1 / n_features, which suits standardized columns only.
    coef0 : float, default=1.0
        Constant of "poly" and "sigmoid".
    degree : int, default=3
        Degree of "poly".

    Attributes
    ----------
    dual_vectors_ : ndarray of shape (n_fitted, n_components)
        A: each axis as a combination of the images of the fitted rows.
    offsets_ : ndarray of shape (n_components,)
        c, which centers the coordinates, in the order of the axes.
    fitted_rows_ : ndarray or sparse matrix of shape (n_fitted, n_features), or None
        Rows that new rows are compared with: all, or the landmarks. None if kernel values were
        given.
    gamma_ : float
        Scale of the kernel in use.
    """

    kernel: Any = param(OneOf(*KERNELS) | Function(), default="rbf")
    gamma: float | str | None = param(Null() | OneOf("median", BY_COLUMNS) | Real(0), default=None)
    coef0: float = param(Real(), default=1.0)
    degree: int = param(Integer(1, MOST_DEGREE), default=3)

    dual_vectors_: np.ndarray = fitted("n_fitted", "n_components")
    offsets_: np.ndarray = fitted("n_components")
    fitted_rows_: Any = fitted("n_fitted", "n_features", optional=True, sparse=True)
    gamma_: float = fitted(meaning=above(0))
    n_components_: int = fitted(type=int, meaning=count(1))

    accepts_sparse = True
    reading = Reading(
        axes="The axes belong to a curved transformation of the data. Positions along them order "
        "the rows, but have no unit of the original columns.",
        distances="Near means similar in the sense of the kernel. Distances beyond the width of "
        "the kernel all look alike.",
        gaps="Whether groups look separate depends on the kernel and its width. Try another width "
        "before you conclude.",
        sizes="The size of a group depends on the width of the kernel, not only on the data.",
        scale="The kernel sets the scale: the squared coordinates of an axis sum to its "
        "eigenvalue.",
    )
    transform_uses_blas = False

    @property
    def _has_kernel_values(self) -> bool:
        """Whether X holds kernel values."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, self.gamma_, float(self.coef0), int(self.degree))

    def _prepared(self, X: Any) -> Any:
        """X as the engines take it; also sets ``gamma_`` and checks it against the scale of X."""
        if self._has_kernel_values:
            values = X.toarray() if is_sparse(X) else X
            rows = checked_values(values, owner=type(self).__name__)
        else:
            rows = dense_if_small(X)
        self.gamma_ = kernel_scale(rows, self.kernel, self.gamma, type(self).__name__)
        check_scale(rows, self._kernel(), type(self).__name__)
        return rows

    def _keep_map(self, duals: np.ndarray, offsets: np.ndarray, rows: Any) -> None:
        """Set the fitted attributes that define the map; ``rows`` belong to the rows of A."""
        self.dual_vectors_, self.offsets_ = np.ascontiguousarray(duals), offsets
        self.fitted_rows_ = None if self._has_kernel_values else rows.copy()
        self.n_components_ = len(offsets)

    def inconsistency(self) -> str | None:
        """See :meth:`Declared.inconsistency`: given kernel values stand in place of rows."""
        if (self.fitted_rows_ is None) != self._has_kernel_values:
            has = "no 'fitted_rows_'" if self.fitted_rows_ is None else "'fitted_rows_'"
            return f"{has} with kernel={self.kernel!r}"
        n, p = len(self.dual_vectors_), self.n_features_in_
        if self._has_kernel_values and n != p:
            return f"'dual_vectors_' of {n} rows, but kernel values with {p} fitted rows"
        return super().inconsistency()

    def _transform(self, X: Any, run: FitContext) -> np.ndarray:
        return self._place(X, run).astype(X.dtype, copy=False)

    def _place(self, X: Any, run: FitContext) -> np.ndarray:
        """y = A^T k(x, fitted rows) - c, in float64."""
        points = self.fitted_rows_
        if points is None:  # the kernel values among fitted rows are not needed for new rows
            points = np.empty((0, len(self.dual_vectors_)))
        matrix = kernel_matrix(points, self._kernel(), run.threads)
        return matrix.rows_times(X, self.dual_vectors_) - self.offsets_

    def save(self, path: str | Path) -> None:
        """Write the fitted model to ``path``: a zip of JSON and plain arrays, without pickle.

        Everything that ``transform`` needs is saved. A generator given as ``random_state`` is not;
        it comes back as None. A kernel that is a function cannot be saved. Read the file with
        ``lowland.load``.
        """
        if callable(self.kernel):
            raise ParameterError(
                f"{type(self).__name__}: kernel={self.kernel!r} is a function, which a model file "
                "cannot hold; use a named kernel, or 'precomputed' with its values."
            )
        super().save(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._has_kernel_values
        return tags
