"""A map made true to scale: the linear change of coordinates that lets patches keep their shape.

Each patch has coordinates Theta_i in its own tangent plane, in the units of the data, and places
Y_i in the map: Y_i = Theta_i B_i + 1 b_i^T by least squares. If the map is an affine image of an
isometric one, all B_i^T B_i are one matrix G, and Y G^{-1/2} is isometric. Where it is not quite, G
is their mean.
"""

from __future__ import annotations

import numpy as np

from lowland._engines.linalg.eigen import all_eigenpairs, fix_signs
from lowland._engines.patches.patch_weights import Tangents

__all__ = ["isometric"]

ROUND = 0.1  # patches at least so wide, compared with their length, tell how the map is stretched


def isometric(Y: np.ndarray, tangents: Tangents, ids: np.ndarray) -> np.ndarray | None:
    """Y G^{-1/2}, turned to its principal axes; None if no patch has as many dimensions as Y.

    ``tangents`` are those of the patches ``ids``. O(n k q^2). Donoho & Grimes (2003) take G from
    one patch, supposed to be round; the mean over all does without that and averages noise.
    """
    q = Y.shape[1]
    shortest, longest = tangents.lengths[:, -1], tangents.lengths[:, 0]
    full = shortest > 0
    if not full.any():
        return None
    usual = float(np.median(shortest[full] / longest[full]))
    broad = full & (shortest >= min(ROUND, usual) * longest)
    unit = 2.0 ** np.round(np.log2(longest.max()))  # squares of extreme lengths would not do
    U, S = tangents.bases[broad], tangents.lengths[broad] / unit
    B = (U.transpose(0, 2, 1) @ Y[ids[broad]]) / S[:, :, None]
    G = np.einsum("nai,naj->ij", B, B) / len(B)
    values, axes = all_eigenpairs(G)
    values = np.maximum(values, 1e-15 * values[0])
    flat = Y @ (axes / np.sqrt(values)) @ axes.T
    flat = flat - flat.mean(axis=0)
    turn = all_eigenpairs(np.einsum("ni,nj->ij", flat, flat)).vectors
    return fix_signs(flat @ turn).reshape(-1, q) * unit
