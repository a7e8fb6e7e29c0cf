"""Arrays, frames and delayed partitions of Dask, given directly to estimators."""

from __future__ import annotations

import numpy as np
import pytest

from lowland import LDA, PCA
from lowland._base.rows.arrays import array_rows
from lowland.chunks import Dask
from lowland.errors import DataError, DataTypeError, ParameterError
from support.cases import each

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(5)
    return rng.standard_normal((700, 5)) @ rng.standard_normal((5, 5)) + 2


@pytest.fixture(scope="module")
def frame(X):
    return pd.DataFrame(X, columns=list("abcde"), index=np.arange(700) * 3)


def chunked(X):
    return da.from_array(X, chunks=((100, 250, 50, 300), X.shape[1]))


def same(model, other):
    return model.components_.tobytes() == other.components_.tobytes()


def test_an_array_of_dask_is_fitted_and_placed(X):
    given = chunked(X)
    model = PCA(3).fit(given)
    np.testing.assert_allclose(model.components_, PCA(3).fit(X).components_, atol=1e-12)
    placed = model.transform(given)
    assert isinstance(placed, da.Array)
    assert placed.chunks == ((100, 250, 50, 300), (3,))
    assert placed.dtype == X.dtype
    assert np.array_equal(placed.compute(), model.transform(X))
    assert np.array_equal(PCA(3).fit_transform(given).compute(), placed.compute())


def test_workers_give_the_same_bytes_as_threads(cluster, X, frame):
    given = chunked(X)
    here = PCA(3).fit(given)
    with Dask(cluster):
        assert same(PCA(3).fit(given), here)
        assert np.array_equal(here.transform(given).compute(), here.transform(X))
    with cluster.as_current():  # the scheduler of the user, without a block of ours
        assert same(PCA(3).fit(given), here)
    with Dask(cluster):
        kept = given.persist()
        assert same(PCA(3).fit(kept), here)
        del kept


def test_single_precision_stays(X):
    given = chunked(X.astype(np.float32))
    model = PCA(2).fit(given)
    placed = model.transform(given)
    assert placed.dtype == np.float32
    assert np.array_equal(placed.compute(), model.transform(X.astype(np.float32)))


def test_a_frame_of_dask_is_fitted_and_placed(frame):
    given = dd.from_pandas(frame, npartitions=4)
    model = PCA(2).fit(given)
    assert list(model.feature_names_in_) == list("abcde")
    np.testing.assert_allclose(model.components_, PCA(2).fit(frame).components_, atol=1e-12)
    placed = model.transform(given)
    assert isinstance(placed, da.Array)
    assert np.array_equal(placed.compute(), model.transform(frame))
    model.set_output(transform="pandas")
    pd.testing.assert_frame_equal(model.transform(given).compute(), model.transform(frame))
    with pytest.raises(ParameterError, match="polars"):
        model.set_output(transform="polars").transform(given)


def test_partitions_without_rows_are_passed_over(frame):
    given = dd.from_pandas(frame, npartitions=4)
    few = given.map_partitions(_early)  # the last partitions are empty
    model = PCA(2).fit(few)
    assert model.n_samples_seen_ == 200
    assert np.array_equal(model.transform(few).compute(), model.transform(frame[:200]))


def _early(part):
    return part[part.index < 600]


def test_delayed_partitions_are_a_table(X):
    given = [dask.delayed(X[i : i + 100]) for i in range(0, 700, 100)]
    model = PCA(3).fit(given)
    assert same(model, PCA(3).fit(da.from_array(X, chunks=(100, -1))))
    assert np.array_equal(model.transform(given).compute(), model.transform(X))


def test_partitions_of_a_task_are_computed_together(X):
    """What several of them are made of is computed once, not once for each."""
    made = []

    def whole():
        made.append(1)
        return X

    source = dask.delayed(whole)()
    given = [source[i : i + 100] for i in range(0, 700, 100)]
    PCA(3).fit(given)
    assert len(made) == 1 + 1 + 1  # to see the columns, to count the rows, and in the only task


def test_labels_may_come_in_any_container(X, frame):
    labels = np.array(["low", "mid", "high"])[np.digitize(X[:, 0], [1.0, 3.0])]
    memory = LDA().fit(X, labels)
    given, named = chunked(X), frame.assign(kind=labels)
    collected = dd.from_pandas(named, npartitions=3)
    numbers = collected[list("abcde")]
    fits = [
        LDA().fit(given, da.from_array(labels, chunks=(given.chunks[0],))),
        LDA().fit(given, labels),
        LDA().fit(collected, "kind"),
        LDA().fit(numbers, collected["kind"]),
    ]
    for model in fits:
        assert list(model.classes_) == list(memory.classes_)
        np.testing.assert_allclose(model.components_, memory.components_, rtol=1e-9, atol=1e-12)
    assert np.array_equal(fits[2].transform(numbers).compute(), fits[2].transform(frame))


def test_batches_may_be_collections(X):
    once = PCA(3).fit(X)
    model = PCA(3).partial_fit(chunked(X[:400].repeat(2, axis=0)[:700])).fit(chunked(X))
    model = PCA(3)
    model.partial_fit(da.from_array(X[:300], chunks=(100, -1)))
    model.partial_fit(da.from_array(X[300:], chunks=(150, -1)))
    assert model.n_samples_seen_ == 700
    np.testing.assert_allclose(model.components_, once.components_, atol=1e-10)


def test_columns_in_chunks_are_refused(X):
    with pytest.raises(DataError, match=r"rechunk\(\{1: -1\}\)"):
        PCA().fit(da.from_array(X, chunks=(100, 2)))


def test_labels_in_other_partitions_are_refused(X):
    labels = np.arange(700) % 2
    with pytest.raises(DataError, match="same partitions"):
        LDA().fit(chunked(X), da.from_array(labels, chunks=(350,)))
    with pytest.raises(DataError, match="partition 0: y has shape"):
        LDA().fit(chunked(X), da.from_array(labels, chunks=(175,)))
    with pytest.raises(DataError, match="inconsistent numbers of samples"):
        LDA().fit(chunked(X), labels[:10])


def test_bad_values_are_named_with_their_partition(X):
    bad = X.copy()
    bad[360, 2] = np.nan
    with pytest.raises(DataError, match=r"partition 2: .*NaN"):
        PCA().fit(chunked(bad))


def test_other_columns_are_refused(X, frame):
    model = PCA(2).fit(X)
    with pytest.raises(DataError, match="features"):
        model.transform(chunked(X[:, :3]))
    with pytest.raises(DataError, match="feature names"):
        PCA(2).fit(frame).transform(dd.from_pandas(frame[list("edcba")], npartitions=2))


@each("kind", ["text", "one column", "partition"])
def test_what_is_no_table_of_numbers_is_refused(frame, kind):
    if kind == "text":
        given = dd.from_pandas(frame.assign(a="x"), npartitions=2)
    elif kind == "one column":
        given = dd.from_pandas(frame, npartitions=2)["a"]
    else:
        given = [dask.delayed(3)]
    with pytest.raises((DataError, DataTypeError)):
        PCA().fit(given)


def test_the_bytes_are_those_of_the_same_chunks_in_a_stream(X):
    given = da.from_array(X, chunks=(100, -1))
    assert same(PCA(3).fit(given), PCA(3).fit(array_rows(X, task_rows=100)))
