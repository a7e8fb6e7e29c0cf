"""The 698 faces of Tenenbaum et al. (2000): a statue's light, pan and tilt, found by the pictures.

How well linear functions of a map of three dimensions explain these three, and scikit-learn's map
of as many neighbors, which shows what the definitions make of the data.
"""

import numpy as np
import pytest
from sklearn import manifold

from lowland import LLE, LTSA, HessianLLE, Isomap, ModifiedLLE
from lowland._core.threads import limit_blas
from support.cases import each
from support.data import stored

PEERS = {LLE: "standard", LTSA: "ltsa", ModifiedLLE: "modified", HessianLLE: "hessian"}


@pytest.fixture(scope="module")
def faces():
    """Pictures of 32 x 32, and light, pan, tilt."""
    archive = stored("isomap_faces_32")
    return archive["X"].astype(np.float64), archive["y"].astype(np.float64)


def explained(Y, truth):
    """The share of the variance of light, pan and tilt that linear functions of the map give."""
    A = np.column_stack([Y, np.ones(len(Y))])
    left = truth - A @ np.linalg.lstsq(A, truth, rcond=None)[0]
    return 1 - left.var(axis=0) / truth.var(axis=0)


def both(cls, n_neighbors, faces):
    """The mean share that our map explains, and that of scikit-learn's."""
    X, truth = faces
    ours = cls(3, n_neighbors=n_neighbors, random_state=0).fit_transform(X)
    if cls is Isomap:
        peer = manifold.Isomap(n_components=3, n_neighbors=n_neighbors)
    else:
        peer = manifold.LocallyLinearEmbedding(
            n_components=3, n_neighbors=n_neighbors, method=PEERS[cls], eigen_solver="dense"
        )
    with limit_blas(1):
        theirs = peer.fit_transform(X)
    return explained(ours, truth).mean(), explained(theirs, truth).mean()


@pytest.mark.parametrize("k", [6, 8, 12])
def test_isomap_is_as_good_as_scikit_learns(faces, k):
    ours, theirs = both(Isomap, k, faces)
    assert ours >= theirs - 1e-6
    assert k > 6 or ours > 0.85


@each(("cls", "k"), [(LLE, 6), (LLE, 12), (LLE, 18), (HessianLLE, 10)])
def test_where_definitions_agree_so_do_the_maps(faces, cls, k):
    """In patches of 10 the six products are all that is beside the tangent space of three."""
    ours, theirs = both(cls, k, faces)
    assert ours == pytest.approx(theirs, abs=1e-6)


# Elsewhere the definitions differ, as tests on the matrices themselves show, and neither is better
# for every number of neighbors. What follows are all numbers from 6 (10) to 20, tested in places.


@pytest.mark.parametrize("k", [11, 14, 17])
def test_true_hessians_explain_more(faces, k):
    """With 11 to 18 neighbors 0.006 to 0.043 more than scikit-learn's, which is LTSA.

    Patches of 19 and 20 neighbors are too large for a quadratic form: 0.007 and 0.20 less.
    """
    ours, theirs = both(HessianLLE, k, faces)
    assert ours > theirs + 0.005
    assert ours > 0.74


def test_tangent_spaces_with_the_row_itself_need_fewer_neighbors(faces):
    """With 6 to 8 neighbors 0.13 to 0.19 more than without the row, where scikit-learn loses rows
    that are nobody's neighbor; with 9 to 20 between 0.014 more and 0.018 less (11 neighbors)."""
    few = np.array([both(LTSA, k, faces) for k in (6, 8)])
    many = np.array([both(LTSA, k, faces) for k in (9, 11, 14)])
    assert (few[:, 0] > few[:, 1] + 0.1).all()
    assert (many[:, 0] > many[:, 1] - 0.019).all()


@each("k", [7, 8, 12, 17])
def test_several_weights_lose_little_by_the_bound_on_their_number(faces, k):
    """The paper allows k - 3 weights, scikit-learn more where a patch is flat in less than three
    dimensions: between 0.002 more and 0.013 less (7 neighbors) than that, 0.003 less in the mean.
    """
    ours, theirs = both(ModifiedLLE, k, faces)
    assert ours > theirs - 0.014


@pytest.mark.parametrize("cls", [LTSA, ModifiedLLE, HessianLLE])
def test_light_pan_and_tilt_are_all_found(faces, cls):
    X, truth = faces
    Y = cls(3, n_neighbors=12, random_state=0).fit_transform(X)
    light, pan, tilt = explained(Y, truth)
    assert light > 0.77
    assert pan > 0.94
    assert tilt > 0.42
