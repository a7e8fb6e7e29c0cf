"""Tables whose maps are known: animals, iris flowers, oil flow."""

import numpy as np
import pytest

from lowland import GTM, PCA, SOM, ElasticMap
from lowland.datasets import animals, iris
from support.cases import each
from support.data import stored


def nearest_others(Y):
    D = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
    np.fill_diagonal(D, np.inf)
    return D.argmin(axis=1)


@each("make", [SOM, lambda: SOM(grid="rectangle", sides=[5, 5]), GTM, ElasticMap])
def test_birds_and_mammals_live_apart(make):
    """As in figure 1 of Ritter & Kohonen: birds, and mammals of which hunters are apart."""
    data = animals()
    Y = make().fit_transform(data.X)
    assert (data.y[nearest_others(Y)] == data.y).all()
    place = dict(zip(data.row_names, Y, strict=True))

    def apart(one, other):
        return np.linalg.norm(place[one] - place[other])

    assert apart("owl", "hawk") == apart("horse", "zebra") == 0
    assert apart("lion", "tiger") < apart("lion", "duck")
    assert apart("duck", "goose") < apart("duck", "eagle") < apart("duck", "wolf")


def test_the_u_matrix_of_iris_has_one_border_beside_setosa():
    data = iris()
    som = SOM().fit(data.X)
    labels = som.label_units(data.X, data.y).labels
    setosa = som.unit_places_[labels == 0][:, 0]
    others = som.unit_places_[(labels == 1) | (labels == 2)][:, 0]
    left = setosa.mean() < others.mean()
    edges = (setosa.max(), others.min()) if left else (others.max(), setosa.min())
    x = som.unit_places_[:, 0]
    border = (x >= edges[0] - 0.6) & (x <= edges[1] + 0.6)
    assert som.u_matrix_[border].mean() > 2 * som.u_matrix_[~border].mean()


@each("make", [SOM, GTM, ElasticMap])
def test_grids_separate_the_regimes_of_oil_flow_better_than_a_plane(make):
    data = stored("oil_flow")
    train = data["split"] == 0
    X, y = data["X"][train], data["y"][train]

    def errors(method):
        return int((y[nearest_others(method.fit_transform(X))] != y).sum())

    plane = errors(PCA(2))
    assert plane == pytest.approx(162, abs=3)  # published
    assert errors(make()) < plane / 2
