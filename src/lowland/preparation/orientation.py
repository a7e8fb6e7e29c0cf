"""Orientation: a finished map turned or mirrored, as the last step of a model.

Most methods leave open how a map is turned: distances do not tell north from south. The turn is
learned from a reference and kept, so that new rows land in the turned map.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from lowland._base.errors import DataError
from lowland._base.models.checks import Interval
from lowland._base.params import Declared, fitted
from lowland._base.rows.fitting import as_rows
from lowland._base.validation import check_columns, check_matrix
from lowland._engines.linalg.eigen import thin_svd
from lowland._engines.linalg.procrustes import align

ONE = 1 + 1e-6  # the largest entry of a rotation, up to rounding


class Orientation(Declared):
    """y -> R^T y with R^T R = I: distances in the map stay as they are.

    Attributes
    ----------
    rotation_ : ndarray of shape (n_features, n_features)
        R, by which rows of coordinates are multiplied. Its determinant is -1 if it mirrors.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[0.0, 1.0], [0.0, -1.0], [2.0, 0.0]])
    >>> wanted = Y[:, ::-1] * 7 + 100
    >>> Orientation().fit(Y, wanted).transform(Y).round(12) + 0.0
    array([[ 1.,  0.], [-1.,  0.], [ 0.,  2.]])
    """

    rotation_: np.ndarray = fitted("n_features", "n_features", meaning=Interval(-ONE, ONE))

    follows_map = True  # see Chain.last

    def fit(self, Y: Any, reference: Any) -> Self:
        """Learn the turn that brings Y nearest to a reference of the same rows (Procrustes)."""
        Y = check_matrix(Y, owner="Orientation", min_rows=1)
        reference = check_matrix(reference, owner="Orientation", argument="reference", min_rows=1)
        if reference.shape != Y.shape:
            shapes = f"the reference has shape {reference.shape}, but the map {Y.shape}"
            raise DataError(f"Orientation: {shapes}.")
        return self._keep(align(reference, Y, scaling=False).rotation)

    def fit_directions(self, offsets: Any, directions: Any) -> Self:
        """Learn the turn R with the largest sum of (R^T offset) . direction.

        The map is not mirrored if all directions, or all offsets, lie on one line: then nothing
        distinguishes its two sides.
        """
        U, S, Vt = thin_svd(np.einsum("ni,nj->ij", offsets, directions))
        on_one_line = len(S) > 1 and S[-1] <= 1e-9 * S[0]
        if on_one_line and np.linalg.det(U) * np.linalg.det(Vt) < 0:
            U[:, -1] *= -1
        return self._keep(U @ Vt)

    def _keep(self, rotation: np.ndarray) -> Self:
        self.rotation_, self.n_features_in_ = rotation, len(rotation)
        return self

    def transform(self, Y: Any) -> Any:
        """The turned coordinates, each row as if it came alone."""
        rows = as_rows(Y)
        if rows is not None and "rotation_" in vars(self):
            check_columns(rows, self.n_features_in_, owner="Orientation")
            return rows.map(copy.copy(self).transform)
        return self._turned(Y, back=False)

    def inverse_transform(self, Y: Any) -> np.ndarray:
        """Coordinates of the turned map, as they were before it was turned."""
        return self._turned(Y, back=True)

    def _turned(self, Y: Any, *, back: bool) -> np.ndarray:
        if "rotation_" not in vars(self):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("This Orientation is not fitted yet; call 'fit' first.")
        Y = check_matrix(Y, owner="Orientation", min_rows=1)
        check_columns(Y, self.n_features_in_, owner="Orientation")
        rotation = (self.rotation_.T if back else self.rotation_).astype(Y.dtype)
        # Sums of columns: a product of matrices may round a row differently beside other rows.
        turned = Y[:, :1] * rotation[0]
        for axis in range(1, len(rotation)):
            turned += Y[:, axis : axis + 1] * rotation[axis]
        return turned

    @property
    def _n_features_out(self) -> int:
        return self.n_features_in_
