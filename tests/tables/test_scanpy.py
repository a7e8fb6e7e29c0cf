"""scanpy takes the neighbors of ``KNNTransformer`` and the maps of ``make_map``.

One test, because scanpy takes seconds to import and its neighbors compile code at first use.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer

from lowland.neighbors import KNNTransformer

PAGE = Path(__file__).resolve().parents[2] / "docs/python.md"


def example():
    """The code of the page that imports scanpy."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    [found] = [block for block in blocks if "import scanpy" in block]
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of other packages
def test_the_example_of_the_page_gives_what_scikit_learns_neighbors_give():
    sc = pytest.importorskip("scanpy", reason="its functions are called", exc_type=ImportError)
    names: dict = {}
    exec(compile(example(), str(PAGE), "exec"), names)
    adata, result = names["adata"], names["result"]
    np.testing.assert_array_equal(adata.obsm["X_tsne"], result.coordinates)
    assert adata.uns["tsne"]["params"]["part"] == "obsm/X_pca"
    other = adata.copy()
    sc.pp.neighbors(other, transformer=KNeighborsTransformer(n_neighbors=15))
    assert adata.uns["neighbors"]["params"]["n_neighbors"] == 15
    for key in ("connectivities", "distances"):
        assert adata.obsp[key].shape == (300, 300)
        assert abs(adata.obsp[key] - other.obsp[key]).max() < 1e-5
    assert adata.obsp["connectivities"].nnz > 300 * 15

    # its own neighbors, with many equal cells, and the other kind of weights
    equal = sc.AnnData(np.repeat(adata.obsm["X_pca"][:100], 3, axis=0))
    sc.pp.neighbors(equal, use_rep="X", transformer=KNNTransformer(n_neighbors=12), method="gauss")
    assert np.isfinite(equal.obsp["connectivities"].data).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sc.tl.diffmap(adata, n_comps=5)
    assert adata.obsm["X_diffmap"].shape == (300, 5)
