"""What every data set promises, whatever it is: sizes, seeds, errors, names."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

from lowland import datasets
from lowland._base.errors import ParameterError
from lowland.datasets import load_dataset, names
from lowland.datasets.catalog import DISTANCES
from support.cases import each

GENERATORS = [
    name for name in names() if "n_samples" in inspect.signature(getattr(datasets, name)).parameters
]
TABLES = [name for name in names() if name not in GENERATORS]
NOISY = [
    name for name in GENERATORS if "noise" in inspect.signature(getattr(datasets, name)).parameters
]
every_generator = each("make", [getattr(datasets, name) for name in GENERATORS])
every_noisy = each("make", [getattr(datasets, name) for name in NOISY])


def test_tables_and_generators_are_the_expected_ones():
    assert set(TABLES) - DISTANCES == {
        "animals",
        "breakfast_preferences",
        "breast_cancer",
        "coffee",
        "digits",
        "drawn_faces",  # two numbers make its rows; tested in test_faces.py
        "iris",
        "swiss",
        "usarrests",
        "wine",
    }
    assert set(TABLES) >= DISTANCES
    assert len(GENERATORS) == 9
    assert len(NOISY) == 8


def test_names_are_the_public_functions():
    helpers = {"Dataset", "load_dataset", "names"}
    assert names() == sorted(set(datasets.__all__) - helpers)
    assert list(datasets.__all__) == sorted(datasets.__all__)


@each("name", names())
def test_parts_fit_together(name):
    data = load_dataset(name)
    rows, columns = data.X.shape
    assert data.name == name
    assert data.X.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert len(data.feature_names) == len(set(data.feature_names)) == columns
    assert all(type(feature) is str for feature in data.feature_names)
    assert data.description.endswith(".")
    assert "\n" not in data.description
    assert (data.y is None) == (data.label_names is None) == (data.labels is None)
    if data.y is not None:
        assert data.y.shape == (rows,)
        assert data.y.dtype == np.int64
        np.testing.assert_array_equal(np.unique(data.y), np.arange(len(data.label_names)))
        assert data.labels[-1] == data.label_names[data.y[-1]]
    if data.truth is not None:
        assert data.truth.shape[0] == rows
        assert data.truth.ndim == 2
        assert data.truth.dtype == np.float64
    assert name in repr(data)
    assert f"{rows} rows" in repr(data)
    assert (f"{columns} columns" in repr(data)) != data.distances
    assert data.row_names is None or len(set(data.row_names)) == rows
    assert data.distances == (name in DISTANCES)
    if data.distances:
        assert data.row_names == data.feature_names
        np.testing.assert_array_equal(data.X, data.X.T)
        assert not np.diag(data.X).any()
        assert data.X.min() >= 0


def test_dataset_cannot_be_changed_by_accident():
    with pytest.raises(AttributeError):
        load_dataset("iris").X = np.zeros((1, 1))


@every_generator
@each("n_samples", [1, 2, 3, 257, np.int64(10)])
def test_row_count_is_exact(make, n_samples):
    data = make(n_samples, random_state=0)
    assert len(data.X) == len(data.truth) == n_samples
    if data.y is not None:
        assert len(data.y) == n_samples


@every_generator
def test_seed_reproduces_and_another_seed_differs(make):
    first, again, other = (make(50, random_state=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.truth, again.truth)
    assert not np.any(first.X == other.X)


@every_generator
def test_without_seed_two_calls_differ(make):
    assert not np.array_equal(make(50).X, make(50).X)


@every_generator
def test_a_generator_is_used_and_advanced(make):
    rng = np.random.default_rng(3)
    first, second = make(50, random_state=rng), make(50, random_state=rng)
    again = make(50, random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, second.X)


@every_generator
def test_global_random_state_is_neither_read_nor_written(make):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make(20)
    make(20, random_state=0)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@every_noisy
def test_noise_is_gaussian_and_added_to_the_data_only(make):
    clean = make(3000, noise=0.0, random_state=9)
    noisy = make(3000, noise=0.25, random_state=9)
    np.testing.assert_array_equal(noisy.truth, clean.truth)
    z = (noisy.X - clean.X) / 0.25
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=0.1)  # 5 / sqrt(3000)
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.07)
    np.testing.assert_allclose((z**4).mean(), 3.0, atol=0.6)  # a uniform has 1.8


@every_generator
@each("value", [0, -3, 2.5, True, "10", None])
def test_bad_number_of_rows_is_refused_with_its_range(make, value):
    with pytest.raises(ParameterError, match=r"n_samples=.* expected an integer >= 1") as error:
        make(value)
    assert f"{make.__name__}: n_samples={value!r}" in str(error.value)


@every_noisy
@each("value", [-0.1, float("nan"), float("inf"), "1", None])
def test_bad_noise_is_refused_with_its_range(make, value):
    with pytest.raises(ParameterError, match=rf"noise={value!r} .* expected a number in \[0, "):
        make(10, noise=value)


@every_generator
@each("value", [-1, "seed", 0.5])
def test_bad_seed_is_refused(make, value):
    with pytest.raises(ParameterError, match="random_state="):
        make(10, random_state=value)


@each(
    ("name", "argument", "value", "expected"),
    [
        ("bent_sheet", "bend", 0.0, "a number in (0, 6.28319)"),
        ("bent_sheet", "bend", 7.0, "a number in (0, 6.28319)"),
        ("blobs", "n_clusters", 0, "an integer >= 1"),
        ("blobs", "n_features", 0, "an integer >= 1"),
        ("blobs", "spread", -1.0, "a number in [0, 1e+100)"),
        ("branching_tree", "n_branches", 0, "an integer >= 1"),
        ("helix", "pitch", 0.0, "a number in (0, 1e+100)"),
        ("helix", "turns", -1, "a number in (0, 1e+100)"),
        ("helix", "turns", 1e308, "a number in (0, 1e+100)"),
        ("s_curve", "hole", 1, "True or False"),
        ("swiss_roll", "hole", "yes", "True or False"),
        ("torus", "tube", 1.0, "a number in (0, 1)"),
    ],
)
def test_bad_shape_argument_is_refused_with_its_range(name, argument, value, expected):
    message = f"{name}: {argument}={value!r} is not allowed; expected {expected}."
    with pytest.raises(ParameterError) as error:
        load_dataset(name, **{argument: value})
    assert str(error.value) == message


@each("name", ["swiss_roll", "swiss-roll", "Swiss-Roll", " swiss_roll "])
def test_names_are_read_leniently(name):
    assert load_dataset(name, n_samples=5).name == "swiss_roll"


def test_load_dataset_generates_the_same_rows_every_time():
    np.testing.assert_array_equal(
        load_dataset("torus").X, datasets.torus(1000, random_state=0).X, strict=True
    )
    other = load_dataset("torus", random_state=1)
    assert not np.array_equal(load_dataset("torus").X, other.X)


def test_unknown_name_gets_the_nearest_one():
    with pytest.raises(ParameterError, match=r"unknown data set 'swis-rol'.*'swiss_roll'"):
        load_dataset("swis-rol")
    with pytest.raises(
        ParameterError, match="unknown data set '12'; there are animals, australia, "
    ):
        load_dataset(12)


def test_unknown_argument_is_refused():
    with pytest.raises(ParameterError, match=r"argument of helix 'turn'.*'turns'"):
        load_dataset("helix", turn=2)
    with pytest.raises(ParameterError, match=r"iris is a table and takes no arguments; drop noise"):
        load_dataset("iris", noise=1.0)


@each(
    ("name", "shape", "sizes", "mean"),
    [
        ("breast_cancer", (569, 30), [212, 357], 61.890712),
        ("digits", (1797, 64), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180], 4.884165),
        ("iris", (150, 4), [50, 50, 50], 3.4645),
        ("wine", (178, 13), [59, 71, 48], 69.133663),
    ],
)
def test_tables_are_the_published_ones(name, shape, sizes, mean):
    data = load_dataset(name)
    assert data.X.shape == shape
    np.testing.assert_array_equal(np.bincount(data.y), sizes)
    np.testing.assert_allclose(data.X.mean(), mean, rtol=1e-6)


def test_first_rows_and_names_of_the_tables():
    iris = load_dataset("iris")
    np.testing.assert_array_equal(iris.X[0], [5.1, 3.5, 1.4, 0.2])
    assert iris.feature_names[0] == "sepal length (cm)"
    assert iris.labels[0] == "setosa"
    digits = load_dataset("digits")
    assert digits.labels[0] == "0"
    assert (digits.X.min(), digits.X.max()) == (0.0, 16.0)
    np.testing.assert_array_equal(digits.X[0, :8], [0, 0, 5, 13, 9, 1, 0, 0])
    assert load_dataset("breast_cancer").label_names == ("malignant", "benign")
    assert load_dataset("wine").X[0, 0] == 14.23


@each(
    ("name", "shape", "first"),
    [
        ("animals", (16, 13), 1.0),
        ("australia", (10, 10), 1690.0),
        ("breakfast", (15, 15), 17.75),
        ("breakfast_preferences", (42, 15), 13.0),
        ("ekman", (14, 14), 0.14),
        ("eurodist", (21, 21), 3313.0),
        ("morse", (36, 36), 0.95),
        ("swiss", (47, 6), 80.2),
        ("usarrests", (50, 4), 13.2),
        ("uscities", (10, 10), 587.0),
    ],
)
def test_bundled_tables_are_the_published_ones(name, shape, first):
    data = load_dataset(name)
    assert data.X.shape == shape
    assert data.X[0, int(data.distances)] == pytest.approx(first, rel=1e-12)


def test_animals_have_a_size_legs_and_a_coat():
    """As in the paper: one size each; birds have feathers and 2 legs, mammals hair and 4 legs."""
    data = load_dataset("animals")
    has = dict(zip(data.feature_names, data.X.T, strict=True))
    assert (has["small"] + has["medium"] + has["big"] == 1).all()
    bird = np.array([data.label_names[y] == "bird" for y in data.y])
    for name, there in {"feathers": bird, "2 legs": bird, "hair": ~bird, "4 legs": ~bird}.items():
        np.testing.assert_array_equal(has[name] == 1, there)
    twins = [{"owl", "hawk"}, {"horse", "zebra"}]
    same = [
        {a, b}
        for i, a in enumerate(data.row_names)
        for j, b in enumerate(data.row_names)
        if i < j and (data.X[i] == data.X[j]).all()
    ]
    assert same == twins


def test_facts_that_are_published_about_the_bundled_tables():
    """R's summary() and help pages: means, and the largest distance of eurodist."""
    swiss, arrests, cities = (load_dataset(name) for name in ("swiss", "usarrests", "eurodist"))
    means = [70.14255, 50.65957, 16.48936, 10.97872, 41.14383, 19.94255]
    np.testing.assert_allclose(swiss.X.mean(axis=0), means, atol=5e-6)
    np.testing.assert_allclose(arrests.X.mean(axis=0), [7.788, 170.76, 65.54, 21.232], atol=5e-4)
    assert cities.X.max() == 4532  # Athens to Lisbon
    coffee = load_dataset("coffee")
    np.testing.assert_array_equal(np.bincount(coffee.y), [36, 7])
    assert coffee.row_names[0] == "1 Mexico"
    ranks = load_dataset("breakfast_preferences").X
    np.testing.assert_array_equal(np.sort(ranks, axis=1), np.tile(np.arange(1.0, 16), (42, 1)))


def test_a_judge_of_the_breakfast_is_one_of_four():
    each_judge = [datasets.breakfast(judge).X for judge in (42, 71, 101, 112)]
    np.testing.assert_array_equal(datasets.breakfast().X, np.mean(each_judge, axis=0))
    with pytest.raises(ParameterError, match=r"judge=7 is not allowed; expected 42, 71, 101, 112"):
        datasets.breakfast(7)
    with pytest.raises(ParameterError, match="judge=array"):
        datasets.breakfast(judge=np.array([42, 71]))


def test_changing_a_table_does_not_change_the_next_copy():
    load_dataset("iris").X[:] = 0.0
    assert load_dataset("iris").X[0, 0] == 5.1


def test_generators_do_not_import_scikit_learn_or_scipy():
    code = (
        "import sys, lowland.datasets as d; d.swiss_roll(5); d.names()\n"
        "heavy = {'sklearn', 'scipy', 'pandas', 'polars'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
