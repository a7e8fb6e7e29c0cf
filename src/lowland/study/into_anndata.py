"""A map in an AnnData: in a copy of the H5AD file that it was made of, or in the object itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.errors import DataError
from lowland.io.formats.h5ad_writing import map_key, plain, uns_params, write_h5ad
from lowland.study.tables.preparing import Prepared

if TYPE_CHECKING:
    from lowland.study.result import MapResult


def rows_of_source(prepared: Prepared, Y: np.ndarray) -> np.ndarray:
    """One row for each row that was read; NaN where a row was left out of the map."""
    places = prepared.table.source_rows
    if places is None:
        return Y
    everywhere = np.full((prepared.rows_read, Y.shape[1]), np.nan, Y.dtype)
    everywhere[places] = Y
    return everywhere


def write_copy(result: MapResult, prepared: Prepared, path: Path, *, force: bool) -> None:
    """Write the H5AD file that the map was made of, with the map, to a path that is free."""
    source = prepared.table.source
    if not Path(source).exists():
        raise DataError(
            f"{source}: the map was not made of a file, so there is none to copy; "
            "result.add_to(adata) adds it to an AnnData object."
        )
    found, Y = result.to_dict(), rows_of_source(prepared, result.coordinates)
    write_h5ad(source, path, found["method"], Y, _params(found, prepared), force=force)


def add_to_anndata(result: MapResult, prepared: Prepared, data: Any, *, force: bool) -> None:
    """Add the map to an AnnData object with the rows that the map was made of."""
    found, Y = result.to_dict(), rows_of_source(prepared, result.coordinates)
    if not (hasattr(data, "obsm") and hasattr(data, "uns")):
        raise DataError(f"{type(data).__name__} has no obsm and uns; give an AnnData object.")
    if len(data) != len(Y):
        raise DataError(f"the AnnData has {len(data)} rows, but the map was made of {len(Y)}.")
    name = found["method"]
    key = map_key(name)
    taken = [f"obsm[{key!r}]"] if key in data.obsm else []
    taken += [f"uns[{name!r}]"] if name in data.uns else []
    if taken and not force:
        raise DataError(
            f"the AnnData has {' and '.join(taken)} already; replace it with force=True."
        )
    data.obsm[key] = Y.copy() if Y is result.coordinates else Y
    data.uns[name] = {"params": plain(_params(found, prepared))}


def _params(found: dict[str, Any], prepared: Prepared) -> dict[str, Any]:
    from lowland import __version__

    return uns_params(found, __version__, prepared.table.part)
