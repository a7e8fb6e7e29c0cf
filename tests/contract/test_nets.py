"""Grids and curves through the data: what is drawn is where rows are projected."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError


def test_a_net_has_the_columns_of_the_data_and_lies_amidst_the_rows(method, make, X):
    if not hasattr(method, "net"):
        return
    with pytest.raises(NotFittedError):
        make().net()
    model = make().fit(X)
    net = model.net()
    assert net.nodes.shape[1] == X.shape[1]
    assert np.isfinite(net.nodes).all()
    span = np.ptp(X, axis=0)
    assert (net.nodes > X.min(axis=0) - span).all()
    assert (net.nodes < X.max(axis=0) + span).all()
    if net.edges is None:
        return
    assert net.edges.min() == 0
    assert net.edges.max() == len(net.nodes) - 1
    # neighbors on the grid are nearer to each other than nodes that are not
    steps = np.linalg.norm(net.nodes[net.edges[:, 0]] - net.nodes[net.edges[:, 1]], axis=1)
    others = np.linalg.norm(net.nodes[:, None] - net.nodes[None], axis=2)
    assert np.median(steps) < np.median(others[np.triu_indices(len(net.nodes), 1)])
