"""ClassicalMDS, LandmarkMDS and KernelPCA of tables that are read in chunks."""

from __future__ import annotations

import numpy as np
import pytest

import lowland
from lowland import PCA, ClassicalMDS, KernelPCA, LandmarkMDS
from lowland.errors import DataError, ModelFileError, ParameterError
from support.cases import each
from support.chunks import assert_same_bytes_everywhere, chunks, irregular, relative_gap
from support.states import assert_same_state, fitted_state

CLASSICAL = (ClassicalMDS, {"n_components": 3})
LANDMARK = (LandmarkMDS, {"n_landmarks": 40, "random_state": 3})
KERNEL = (KernelPCA, {"solver": "nystroem", "n_landmarks": 40, "random_state": 3})
METHODS = [CLASSICAL, LANDMARK, KERNEL]
KINDS = ["float64", "float32", "offset", "wide", "sparse", "huge"]

each_method = each("method, params", METHODS, ids=lambda value: getattr(value, "__name__", ""))


def tolerance(X):
    """What is asked for is 1e-6; but a sum of n rows in float32 is right to n 2^-24 only."""
    return X.shape[0] * 2.0**-24 if X.dtype == np.float32 else 1e-6


@each("kind", KINDS)
@each_method
def test_the_model_is_that_of_memory_and_places_rows_alike(method, params, kind):
    X = irregular(kind)
    here, there = method(**params).fit(X), method(**params).fit(chunks(X))
    near = tolerance(X)
    assert relative_gap(there.transform(X), here.transform(X)) < near
    assert relative_gap(there.eigenvalues_, here.eigenvalues_) < near
    new = X[50:60] * 1.1
    assert relative_gap(there.transform(new), here.transform(new)) < near
    placed = there.transform(chunks(X)).to_numpy()
    assert np.array_equal(placed, there.transform(X))


@each_method
def test_threads_engines_and_cuts_of_the_same_chunks_change_no_byte(method, params):
    assert_same_bytes_everywhere(method, params, irregular("float64"))


@each_method
def test_a_model_of_chunks_is_saved_and_loaded(method, params, tmp_path):
    X = irregular("float64")
    model = method(**params).fit(chunks(X))
    model.save(tmp_path / "model")
    again = lowland.load(tmp_path / "model")
    assert_same_state(fitted_state(model), fitted_state(again))
    assert np.array_equal(again.transform(X), model.transform(X))


# --- ClassicalMDS -------------------------------------------------------------------------------


def test_classical_scaling_of_chunks_is_pca_with_the_signs_of_the_map():
    X = irregular("float64")
    model, pca = ClassicalMDS(3).fit(chunks(X)), PCA(3).fit(X)
    np.testing.assert_allclose(
        model.eigenvalues_, pca.explained_variance_ * (len(X) - 1), rtol=1e-10
    )
    Y = model.transform(X)
    assert relative_gap(np.abs(Y), np.abs(pca.transform(X))) < 1e-10
    farthest = Y[np.abs(Y).argmax(axis=0), np.arange(3)]
    assert (farthest > 0).all()
    assert model.embedding_ is None
    assert model.stress_per_point_ is None


@each("spectrum", ["auto", "all"])
@each("columns", [2, 5])
def test_eigenvalues_and_goodness_of_fit(spectrum, columns):
    X = irregular("float64")[:, :columns]
    here = ClassicalMDS(4, spectrum=spectrum).fit(X)
    there = ClassicalMDS(4, spectrum=spectrum).fit(chunks(X))
    values = there.eigenvalues_
    assert len(values) == (columns if spectrum == "all" else 4)
    assert relative_gap(values, here.eigenvalues_[: len(values)]) < 1e-10
    assert np.abs(here.eigenvalues_[len(values) :]).max(initial=0.0) == 0
    np.testing.assert_allclose(there.goodness_of_fit_, here.goodness_of_fit_, rtol=1e-10)
    assert relative_gap(there.transform(X), here.transform(X)) < 1e-10


@each(
    "params, name",
    [
        ({"metric": "cityblock"}, "metric='cityblock' .*use LandmarkMDS, or fit"),
        ({"metric": "precomputed"}, "metric='precomputed'"),
        ({"additive_constant": True}, "additive_constant=True"),
    ],
)
def test_what_classical_scaling_cannot_do_in_chunks_names_the_sample(params, name):
    with pytest.raises(ParameterError, match=rf"ClassicalMDS: {name} .*rows\.sample"):
        ClassicalMDS(**params).fit(chunks(irregular("float64")))


def test_more_components_than_rows_are_refused_as_in_memory():
    X = irregular("float64")[:9]
    with pytest.raises(ParameterError, match="n_components=10 is more than n_samples=9"):
        ClassicalMDS(10).fit(chunks(X))


def test_values_whose_squares_overflow_are_refused():
    with pytest.raises(DataError, match="divide X by"):
        ClassicalMDS().fit(chunks(irregular("float64") * 1e160))


def test_a_file_without_axes_and_without_a_map_is_refused(tmp_path):
    model = ClassicalMDS(metric="cityblock").fit(irregular("float64"))
    model.embedding_ = model.stress_per_point_ = None
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="no 'embedding_'"):
        lowland.load(tmp_path / "model")


def test_a_file_of_given_distances_without_a_map_is_refused(tmp_path):
    X = irregular("float64")[:30]
    D = np.linalg.norm(X[:, None] - X, axis=2)
    model = LandmarkMDS(metric="precomputed", n_landmarks=9).fit(D)
    model.embedding_ = model.stress_per_point_ = None
    model.landmarks_ = model.landmarks_ + 1000
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="0 fitted rows, but distances to 30"):
        lowland.load(tmp_path / "model")


# --- LandmarkMDS --------------------------------------------------------------------------------


@each("metric", ["euclidean", "cityblock", "gower", "cosine", "chebyshev"])
def test_landmarks_are_those_of_memory_for_any_metric(metric):
    X = irregular("float64")
    params = {**LANDMARK[1], "metric": metric}
    here, there = LandmarkMDS(**params).fit(X), LandmarkMDS(**params).fit(chunks(X))
    assert np.array_equal(there.landmarks_, here.landmarks_)
    assert np.array_equal(there.fitted_rows_, here.fitted_rows_)
    assert relative_gap(there.transform(X), here.transform(X)) < 1e-12


def test_all_rows_may_be_landmarks():
    X = irregular("float64")[:50]
    model = LandmarkMDS(n_landmarks=50).fit(chunks(X, 16))
    assert relative_gap(model.transform(X), ClassicalMDS().fit_transform(X)) < 1e-9


@each(
    "params, reason",
    [
        ({"selection": "maxmin"}, "selection='maxmin' .*set selection='random', or "),
        ({"metric": "precomputed"}, "metric='precomputed'"),
    ],
)
def test_what_landmarks_cannot_do_in_chunks_names_the_sample(params, reason):
    with pytest.raises(ParameterError, match=rf"LandmarkMDS: {reason}.*rows\.sample"):
        LandmarkMDS(**params).fit(chunks(irregular("float64")))


def test_more_landmarks_than_rows_are_refused():
    with pytest.raises(ParameterError, match="n_landmarks=500 is more than the 403 rows"):
        LandmarkMDS(n_landmarks=500).fit(chunks(irregular("float64")))


# --- KernelPCA ----------------------------------------------------------------------------------


@each("kernel", ["rbf", "laplacian", "poly", "sigmoid", "cosine", "linear"])
@each("kind", ["float64", "sparse"])
def test_kernels_and_their_scales_are_those_of_memory(kernel, kind):
    X = irregular(kind)
    params = {**KERNEL[1], "kernel": kernel, "n_components": 4}
    here, there = KernelPCA(**params).fit(X), KernelPCA(**params).fit(chunks(X))
    np.testing.assert_allclose(there.gamma_, here.gamma_, rtol=1e-13)
    ratio = here.explained_variance_ratio_
    np.testing.assert_allclose(there.explained_variance_ratio_, ratio, atol=1e-9)
    assert relative_gap(there.transform(X), here.transform(X)) < 1e-6
    assert relative_gap(there.mean_weights_, here.mean_weights_) < 1e-6


def test_gamma_of_many_rows_is_from_the_same_sample():
    X = np.random.default_rng(0).standard_normal((3000, 3))
    params = {"solver": "nystroem", "n_landmarks": 20, "random_state": 0}
    assert KernelPCA(**params).fit(X).gamma_ == KernelPCA(**params).fit(chunks(X, 512)).gamma_


def test_shares_of_variance_of_a_linear_kernel_are_those_of_pca():
    """Landmarks that span the columns leave nothing out, wherever their mean is."""
    X = irregular("float64")
    ratio = PCA(3).fit(X).explained_variance_ratio_
    for table in (X, chunks(X)):
        model = KernelPCA(3, kernel="linear", solver="nystroem", n_landmarks=9, random_state=0)
        np.testing.assert_allclose(model.fit(table).explained_variance_ratio_, ratio, rtol=1e-9)


def test_all_positive_components_are_kept_without_a_number():
    X = irregular("float64")
    params = {**KERNEL[1], "n_components": None, "kernel": "linear"}
    here, there = KernelPCA(**params).fit(X), KernelPCA(**params).fit(chunks(X))
    assert there.n_components_ == here.n_components_ == 5  # one column is constant


def test_inverse_transform_is_that_of_memory():
    X = irregular("float64")
    here, there = KernelPCA(**KERNEL[1]).fit(X), KernelPCA(**KERNEL[1]).fit(chunks(X))
    Y = here.transform(X[:20])
    assert relative_gap(there.inverse_transform(Y), here.inverse_transform(Y)) < 1e-6


@each("params", [{}, {"solver": "dense"}, {"solver": "krylov"}])
def test_other_solvers_name_nystroem_and_the_sample(params):
    with pytest.raises(ParameterError, match=r"solver=.*solver='nystroem'.*rows\.sample"):
        KernelPCA(**params).fit(chunks(irregular("float64")))


@each("scale", [1e-60, 1e60])
def test_kernel_values_that_are_all_equal_are_refused_as_in_memory(scale):
    X = irregular("float64") * scale
    messages = []
    for table in (X, chunks(X)):
        with pytest.raises(DataError) as error:
            KernelPCA(gamma=1.0, **KERNEL[1]).fit(table)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
