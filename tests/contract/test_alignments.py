"""The promises of methods that put several tables into one map; they run over the registry."""

from __future__ import annotations

import inspect
import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import lowland
from lowland._base import registry
from lowland._base.models.codec import _parts, _restored
from lowland._base.params import entries, short
from lowland.errors import DataError, LowlandError, ModelFileError, ParameterError
from support.cases import each
from support.states import assert_same_state, fitted_state

# Every way to make a map, on tables A, B and C below.
WAYS = [
    {},
    {"mu": "hard"},
    {"level": "feature"},
    {"method": "procrustes"},
    {"method": "procrustes", "level": "feature"},
    {"metric": "manhattan", "on_disconnected": "largest"},
]
every_way = each("way", WAYS, ids=str)
PAIRS = np.column_stack([np.arange(25), 39 - np.arange(25)])


@pytest.fixture(params=registry.all_alignments(), ids=list(registry.modules(registry.ALIGNMENT)))
def make(request):
    """An instance for small tables, seeded."""

    def make(**params):
        return request.param(**{"n_neighbors": 6, "random_state": 0, **params})

    return make


@pytest.fixture
def Xs(irregular):
    Z = irregular(50, 5, seed=3)
    return [Z, np.tanh(Z[:40, :3])[::-1] * 5]


# --- declarations ---------------------------------------------------------------------------------


def test_it_stands_in_the_package_but_is_no_map_of_one_table(make):
    cls = type(make())
    name = registry.snake_case(cls.__name__)
    assert getattr(lowland, cls.__name__) is cls
    assert cls.__name__ in dir(lowland)
    assert cls not in registry.all_methods()
    with pytest.raises(ParameterError, match="several tables"):
        registry.get(name)


def test_parameters_and_attributes_are_documented_once_and_truly(make):
    cls = type(make())
    assert len(cls.parameters()) <= 13
    for name, field in cls.parameters().items():
        entry = cls.documentation(name)
        assert 5 < len(short(entry)) <= 120, name
        assert eval(re.search(r"default=(.+)$", entry.kind)[1]) == field.default, name
    for section, names in (("Parameters", cls.parameters()), ("Attributes", cls.fitted_attributes)):
        assert set(names) <= set(entries(cls.__doc__, section))
        for name in names:
            assert len(re.findall(rf"^{name} : ", cls.__doc__, re.MULTILINE)) == 1, name
    for section in ("Notes\n---", "References\n---", "Examples\n---"):
        assert section in inspect.getdoc(cls)
    assert all(cls.card)
    assert all(cls.reading)
    assert 0 < cls.estimate(1000, 50).seconds < cls.estimate(20_000, 50).seconds < 60


def test_parameters_are_stored_cloned_and_checked(make, Xs):
    estimator = make(mu="hard", n_components=3)
    assert clone(estimator).get_params() == estimator.get_params()
    for name in estimator.parameters():
        with pytest.raises(ParameterError, match=rf"{name}=\(1\+7j\) is not allowed; expected"):
            make(**{name: complex(1, 7)}).fit(Xs, correspondence=PAIRS)
    for name, value in (("mu", 0.0), ("mu", "soft"), ("ridge", -1.0), ("metric", "gower")):
        with pytest.raises(ParameterError, match=rf"{name}="):
            make(**{name: value}).fit(Xs, correspondence=PAIRS)
    for name in ("n_components", "n_neighbors"):
        for huge in (10**6, 2**31, 2**62):
            with pytest.raises(ParameterError, match=f"{name}={huge}"):
                make(**{name: huge}).fit(Xs, correspondence=PAIRS)


def test_the_ends_of_the_range_give_a_map_or_an_error_by_name(make, Xs):
    for way in ({"mu": 5e-324}, {"mu": 1e308}, {"ridge": 1e308}, {"ridge": 5e-324}):
        for level in ("instance", "feature"):
            try:
                Y = make(level=level, **way).fit(Xs, correspondence=PAIRS).embedding_
            except LowlandError as error:
                assert len(str(error)) > 20  # noqa: PT017
            else:
                assert np.isfinite(Y).all()


# --- fitting --------------------------------------------------------------------------------------


@every_way
def test_fit_agrees_with_fit_transform_and_forgets(make, Xs, way):
    for X in Xs:
        X.setflags(write=False)
    first, second = make(**way), make(**way, n_jobs=1)
    assert first.fit(Xs, correspondence=PAIRS) is first
    maps = second.fit([Xs[1], Xs[0]], correspondence=PAIRS[:, ::-1]).fit_transform(
        tuple(Xs), correspondence=PAIRS
    )
    assert_same_state(fitted_state(first), fitted_state(second))
    assert set(fitted_state(first)) == {*first.fitted_attributes, "n_features_in_"}
    for d, (Y, X) in enumerate(zip(maps, Xs, strict=True)):
        assert Y.shape == (len(X), 2)
        np.testing.assert_array_equal(Y, first.embeddings_[d])
        np.testing.assert_allclose(first.transform(X, domain=d), Y, atol=1e-12)
    assert first.n_sets_ == 2
    assert first.n_features_in_ == 8


@every_way
def test_a_model_file_gives_the_same_places(make, Xs, way, tmp_path):
    model = make(**way).fit(Xs, correspondence=PAIRS)
    model.save(tmp_path / "model")
    for copy in (lowland.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        for d, X in enumerate(Xs):
            np.testing.assert_array_equal(copy.transform(X + 0.1, d), model.transform(X + 0.1, d))
        np.testing.assert_array_equal(copy.embedding_, model.embedding_)


@every_way
def test_a_new_row_has_one_place_alone_and_in_company(make, Xs, way):
    model = make(**way).fit(Xs, correspondence=PAIRS)
    for d, X in enumerate(Xs):
        new = X[:9] + 0.05
        together = model.transform(new, d)
        for i in range(9):
            np.testing.assert_array_equal(model.transform(new[i : i + 1], d)[0], together[i])
        extreme = np.vstack([new, np.full((1, X.shape[1]), 1e30)])
        np.testing.assert_array_equal(model.transform(extreme, d)[:9], together)
        with ThreadPoolExecutor(4) as pool:
            for result in pool.map(model.transform, [new] * 4, [d] * 4):
                np.testing.assert_array_equal(result, together)


@every_way
def test_float32_stays_and_gives_the_same_map(make, Xs, way):
    narrow = [X.astype(np.float32) for X in Xs]
    model = make(**way)
    maps = model.fit_transform(narrow, correspondence=PAIRS)
    assert {Y.dtype for Y in maps} == {np.dtype(np.float32)}
    assert model.transform(narrow[1], 1).dtype == np.float32
    wide = make(**way).fit([X.astype(np.float64) for X in narrow], correspondence=PAIRS)
    scale = np.abs(wide.embedding_).max()
    np.testing.assert_allclose(np.concatenate(maps), wide.embedding_, atol=2e-3 * scale)


@every_way
def test_units_of_a_table_do_not_matter(make, Xs, way):
    """The unit of the first table is that of the map of PCA."""
    plain = make(**way).fit(Xs, correspondence=PAIRS)
    turned = way.get("method") == "procrustes" and way.get("level") == "feature"
    for first, second in ((200, -200), (-200, 200), (0, 160)):
        moved = [np.ldexp(Xs[0], first), np.ldexp(Xs[1], second)]
        model = make(**way).fit(moved, correspondence=PAIRS)
        expected = np.ldexp(plain.embedding_, first if turned else 0)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(model.embedding_, expected, atol=1e-9 * scale)
        new = model.transform(moved[1] * 1.01, 1)
        expected = np.ldexp(plain.transform(Xs[1] * 1.01, 1), first if turned else 0)
        np.testing.assert_allclose(new, expected, atol=1e-9 * scale)


def test_neither_size_nor_order_of_the_tables_matters(make, Xs):
    both = make().fit(Xs, correspondence=PAIRS)
    swapped = make().fit(Xs[::-1], correspondence=PAIRS[:, ::-1])
    Y = np.concatenate(swapped.embeddings_[::-1])
    signs = np.sign((Y * both.embedding_).sum(axis=0))
    np.testing.assert_allclose(Y * signs, both.embedding_, atol=1e-7)


def test_sparse_tables_and_frames_are_as_good_as_arrays(make, Xs, monkeypatch):
    Xs = [np.where(np.median(X) < X, X, 0.0) for X in Xs]
    model = make().fit(Xs, correspondence=PAIRS)
    frames = [pd.DataFrame(Xs[0], columns=list("abcde")), pl.DataFrame(Xs[1], schema=list("xyz"))]
    named = make().fit(frames, correspondence=PAIRS)
    np.testing.assert_array_equal(named.embedding_, model.embedding_)
    assert list(named.feature_names_in_) == list("abcdexyz")
    with pytest.raises(DataError, match="must be in the same order"):
        named.transform(frames[0][list("edcba")], domain=0)
    mixed = make().fit([frames[0], Xs[1]], correspondence=PAIRS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixed.transform(Xs[1], domain=1)
        mixed.transform(frames[0], domain=0)
    tables = make().set_output(transform="pandas").fit_transform(frames, correspondence=PAIRS)
    assert [type(table) for table in tables] == [pd.DataFrame] * 2
    monkeypatch.setattr("lowland._base.validation.DENSE_NUMBERS", 0)  # nothing is small
    for given in (
        [sparse.csr_matrix(X) for X in Xs],
        [Xs[0], sparse.csc_array(Xs[1])],
        [sparse.csr_matrix(Xs[0]), Xs[1]],
    ):
        for level in ("instance", "feature"):
            dense = make(level=level).fit(Xs, correspondence=PAIRS)
            model = make(level=level).fit(given, correspondence=PAIRS)
            np.testing.assert_allclose(model.embedding_, dense.embedding_, atol=1e-7)
            new = Xs[1][:5] * 1.1
            for rows in (new, sparse.csr_matrix(new)):
                np.testing.assert_allclose(
                    model.transform(rows, 1), dense.transform(new, 1), atol=1e-7
                )


# --- bad input ------------------------------------------------------------------------------------


def test_bad_tables_are_refused_by_number(make, Xs):
    A, B = Xs
    hole = B.copy()
    hole[7, 2] = np.nan
    for tables, message in (
        (A, "expected a list of 2 or more tables"),
        ([A], "1 table"),
        ([], "0 table"),
        ([A, B[:1]], r"Xs\[1\] has shape \(1, 3\)"),
        ([A, B[:, :0]], "0 feature"),
        ([A, B[0]], r"Xs\[1\] has shape \(3,\)"),
        ([A, hole], r"column 2, first in row 7"),
        ([A, B.astype(str) + "x"], r"Xs\[1\], column 0, row 0"),
        ([A, B[:5]], r"n_neighbors=6 is not possible with the 5 rows of Xs\[1\]"),
    ):
        with pytest.raises(LowlandError, match=message):
            make().fit(tables, correspondence=PAIRS[:3] * 0)


def test_bad_correspondences_are_refused_by_place(make, Xs):
    far = PAIRS.copy()
    far[4, 1] = 40
    below = PAIRS.copy()
    below[2, 0] = -2
    lone = PAIRS.copy()
    lone[3] = [5, -1]
    for given, message in (
        (np.empty((0, 2), int), "correspondence is empty"),
        ([], "correspondence is empty"),
        (PAIRS.astype(float), "holds float64, expected integers"),
        (PAIRS > 3, "holds bool"),
        (PAIRS[:, :1], r"shape \(25, 1\), expected \(m, 2\)"),
        (PAIRS[0], r"shape \(2,\)"),
        (far, r"correspondence\[4, 1\] = 40 is not a row of Xs\[1\]; expected 0 to 39"),
        (below, r"correspondence\[2, 0\] = -2"),
        (lone, r"correspondence\[3\] names fewer than two tables"),
        (far.astype(np.uint64) + np.uint64(2**63), "is not a row"),
        ("text", "correspondence"),
    ):
        with pytest.raises(LowlandError, match=message):
            make().fit(Xs, correspondence=given)
    twice = np.vstack([PAIRS, [[0, 3]]])  # row 0 is row 39 and row 3
    assert np.isfinite(make().fit(Xs, correspondence=twice).embedding_).all()
    with pytest.raises(DataError, match=r"rows 3 and 39 of Xs\[1\]|rows 0 and 36 of Xs\[0\]"):
        make(mu="hard").fit(Xs, correspondence=twice)
    repeated = make().fit(Xs, correspondence=np.vstack([PAIRS, PAIRS[::2]]))
    np.testing.assert_array_equal(
        repeated.embedding_, make().fit(Xs, correspondence=PAIRS).embedding_
    )


def test_bad_coordinates_and_questions_without_meaning_are_refused(make, Xs):
    S = [np.zeros((50, 2)), None]
    half = S[0].copy()
    half[3, 1] = np.nan
    for params, given, message in (
        ({}, {"coordinates": S[:1]}, "list of 2 arrays"),
        ({}, {"coordinates": [S[0][:, :1], None]}, r"coordinates\[0\] has shape \(50, 1\)"),
        ({}, {"coordinates": [half, None]}, "row 3 is infinite or known in part"),
        ({}, {"coordinates": [None, None]}, "no known place"),
        ({}, {"coordinates": [np.full((50, 2), "a"), None]}, "expected numbers"),
        ({}, {"coordinates": S}, r"joins Xs\[1\] with Xs\[0\]"),
        ({"mu": "hard"}, {}, "needs correspondence"),
        ({"mu": "hard", "level": "feature"}, {"correspondence": PAIRS}, "projections cannot"),
        ({"level": "given"}, {"correspondence": PAIRS}, "use method='procrustes'"),
        ({"method": "procrustes"}, {}, "needs correspondence"),
        ({"method": "procrustes"}, {"correspondence": PAIRS, "coordinates": S}, "coordinates"),
        ({"method": "procrustes"}, {"correspondence": PAIRS[:2]}, "2 matches .* at least"),
        ({"method": "procrustes", "level": "given"}, {"correspondence": PAIRS}, "has 5"),
        ({"n_components": 89}, {"correspondence": PAIRS, "metric": None}, "unexpected keyword"),
        ({"n_components": 90}, {"correspondence": PAIRS}, "n_components=90"),
    ):
        model = make(**params)
        with pytest.raises((LowlandError, TypeError), match=message):
            model.fit(Xs, **given)
        assert not fitted_state(model)  # fitted as a whole or not at all


def test_new_rows_belong_to_a_table(make, Xs):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().transform(Xs[0])
    model = make().fit(Xs, correspondence=PAIRS)
    for domain in (2, -1, 0.0, True, "a", None, 2**70):
        with pytest.raises(ParameterError, match="expected the number of a table, 0 to 1"):
            model.transform(Xs[0], domain=domain)
    with pytest.raises(DataError, match=r"5 features, but ManifoldAlignment \(domain=1\)"):
        model.transform(Xs[0], domain=1)
    failed = make(n_neighbors=45)
    with pytest.raises(ParameterError):
        failed.fit(Xs, correspondence=PAIRS)
    with pytest.raises(NotFittedError):
        _ = failed.embeddings_


def test_a_disconnected_joint_graph_is_joined_cut_or_refused(make, Xs):
    A, B = Xs[0].copy(), Xs[1].copy()
    A[42:] += 100  # without a match
    with pytest.raises(DataError, match=r"2 components \(Xs\[0\] has rows in 2, Xs\[1\] has .* 1"):
        make(on_disconnected="raise").fit([A, B], correspondence=PAIRS)
    for level in ("instance", "feature"):
        model = make(level=level).fit([A, B], correspondence=PAIRS)
        assert model.n_connected_components_ == 2
        assert not model.excluded_.size
        cut = make(level=level, on_disconnected="largest").fit([A, B], correspondence=PAIRS)
        np.testing.assert_array_equal(cut.excluded_, np.arange(42, 50))
        kept = make(level=level).fit([A[:42], B], correspondence=PAIRS)
        np.testing.assert_allclose(
            np.delete(cut.embedding_, cut.excluded_, axis=0), kept.embedding_, atol=1e-8
        )
        np.testing.assert_allclose(
            cut.embedding_[42:50], kept.transform(A[42:], 0), rtol=1e-6, atol=1e-8
        )
    three = np.column_stack([PAIRS, np.full(25, -1)])
    with pytest.raises(DataError, match=r"no correspondence joins Xs\[2\] with Xs\[0\]"):
        make().fit([A, B, B + 1], correspondence=three)
    with pytest.raises(DataError, match=r"holds no row of Xs\[2\]"):
        make(on_disconnected="largest").fit([A, B, B + 1], correspondence=three)


def test_copies_constants_and_tiny_tables_give_a_map_or_an_error(make):
    rng = np.random.default_rng(0)
    copies = np.repeat(rng.standard_normal((12, 3)), 4, axis=0)
    pairs = np.column_stack([np.arange(48)] * 2)
    model = make(mu="hard").fit([copies, copies[:, :2] * 2], correspondence=pairs)
    for Y in model.embeddings_:
        np.testing.assert_array_equal(Y[::4], Y[1::4])
    for tables, k in (
        ([np.ones((9, 2)), np.ones((8, 3))], 3),
        ([np.zeros((9, 2)), rng.standard_normal((9, 2))], 3),
        ([rng.standard_normal((2, 2)), rng.standard_normal((2, 5))], 1),
        ([rng.standard_normal((3, 1)), rng.standard_normal((4, 1))], 2),
    ):
        for way in (*WAYS[:5], {"correspondence": None}):
            params = {"correspondence": np.array([[0, 0], [1, 1]])} | way
            given = params.pop("correspondence")
            try:
                model = make(**{"n_neighbors": k, **params}).fit(tables, correspondence=given)
            except LowlandError as error:
                assert len(str(error)) > 20  # noqa: PT017
                continue
            assert np.isfinite(model.embedding_).all()
            assert np.isfinite(model.transform(tables[1] + 1, 1)).all()


def test_memory_is_refused_before_it_is_allocated(make, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "1MB")
    X = np.random.default_rng(0).standard_normal((400, 300))
    with pytest.raises(MemoryError, match="LOWLAND_MEMORY_LIMIT"):
        make(level="feature").fit([X, X], correspondence=np.array([[0, 0], [1, 1]]))


# --- model files ----------------------------------------------------------------------------------


def test_contents_that_contradict_each_other_are_refused(make, Xs):
    near = _parts(make(on_disconnected="largest").fit(Xs, correspondence=PAIRS))
    linear = _parts(make(level="feature").fit(Xs, correspondence=PAIRS))
    turned = _parts(make(method="procrustes").fit(Xs, correspondence=PAIRS))
    for (name, params, state), wrong, others in (
        (near, {"dense_rows_": near[2]["dense_rows_"][:-1]}, {}),
        (near, {"dense_rows_": None}, {}),
        (near, {"scales_": None}, {}),
        (near, {"extensions_": None}, {}),
        (near, {"row_starts_": np.array([0, 90, 90])}, {}),
        (near, {"row_starts_": np.array([0, 45, 90])}, {}),
        (near, {"column_starts_": np.array([0, 8, 8])}, {}),
        (near, {"column_starts_": np.array([0, 4, 8])}, {}),
        (near, {"sparse_sets_": np.array([True, False])}, {}),
        (near, {"excluded_": np.arange(50)}, {}),
        (near, {"excluded_": np.array([3])}, {}),
        (near, {}, {"level": "feature"}),
        (linear, {"projections_": None}, {}),
        (linear, {"means_": None}, {}),
        (linear, {}, {"level": "instance"}),
    ):
        _restored(name, params, state)
        with pytest.raises(ModelFileError, match="fit the model again"):
            _restored(name, {**params, **others}, {**state, **wrong})
    for name, params, state in (linear, turned):
        for attribute, value in state.items():
            if np.asarray(value).dtype.kind != "f":
                continue
            for extreme in (0.0, -1e308, 1.7e308):
                try:
                    model = _restored(
                        name, params, {**state, attribute: np.full_like(value, extreme)}
                    )
                    assert model.transform(Xs[1], 1).shape == (40, 2)
                except LowlandError as error:
                    assert len(str(error)) > 20  # noqa: PT017
