"""The linear change of coordinates that gives a map the scale of the data.

Each patch has coordinates Theta_i in its own tangent plane, in the units of the data, and places
Y_i in the map. Least squares give Y_i = Theta_i B_i + 1 b_i^T. If the map is an affine image of an
isometric map, all B_i^T B_i equal one matrix G, and Y G^{-1/2} is isometric. Otherwise G is the
mean of B_i^T B_i.
"""

from __future__ import annotations

import numpy as np

from lowland._core.context import FitContext
from lowland._core.errors import DataError
from lowland._engines.linalg.eigen import all_eigenpairs, fix_signs
from lowland._engines.patches.patch_weights import Tangents, all_tangents
from lowland.spectral._neighborhoods import Neighborhoods

ROUND = 0.1  # least ratio of width to length of the patches that G is computed from


def isometric_map(
    Y: np.ndarray, neighborhoods: Neighborhoods, owner: str, run: FitContext
) -> np.ndarray:
    """The map Y of these neighborhoods in the scale of the data."""
    patches, q = neighborhoods.with_self, Y.shape[1]
    found = all_tangents(neighborhoods.points, patches, q, run.threads, run.monitor)
    flat = isometric(Y, found, patches)
    if flat is None:
        raise DataError(
            f"{owner}: no neighborhood of the data has n_components={q} dimensions; ask for "
            "fewer, or set normalize='orthonormal'."
        )
    return flat


def isometric(Y: np.ndarray, tangents: Tangents, ids: np.ndarray) -> np.ndarray | None:
    """Y G^{-1/2}, rotated to its principal axes; None if no patch has as many dimensions as Y.

    ``tangents`` are those of the patches ``ids``. O(n k q^2). Donoho & Grimes (2003) take G from
    one patch, which they suppose to be round. The mean over all patches needs no such assumption
    and averages out noise.
    """
    q = Y.shape[1]
    shortest, longest = tangents.lengths[:, -1], tangents.lengths[:, 0]
    full = shortest > 0
    if not full.any():
        return None
    usual = float(np.median(shortest[full] / longest[full]))
    broad = full & (shortest >= min(ROUND, usual) * longest)
    unit = 2.0 ** np.round(np.log2(longest.max()))  # squares of extreme lengths overflow
    U, S = tangents.bases[broad], tangents.lengths[broad] / unit
    B = (U.transpose(0, 2, 1) @ Y[ids[broad]]) / S[:, :, None]
    G = np.einsum("nai,naj->ij", B, B) / len(B)
    values, axes = all_eigenpairs(G)
    values = np.maximum(values, 1e-15 * values[0])
    flat = Y @ (axes / np.sqrt(values)) @ axes.T
    flat = flat - flat.mean(axis=0)
    turn = all_eigenpairs(np.einsum("ni,nj->ij", flat, flat)).vectors
    return fix_signs(flat @ turn).reshape(-1, q) * unit
