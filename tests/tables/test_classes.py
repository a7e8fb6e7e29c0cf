"""Classes that are written as numbers: labels by name, or a hint."""

from __future__ import annotations

import numpy as np
import polars as pl

from lowland.tables import as_table
from lowland.workflow import make_map, select_columns
from support.cases import each

ROWS = 90
CODES = np.arange(ROWS) % 3 + 1


def measured(n=ROWS):
    values = np.random.default_rng(0).normal(5.0, 1.0, (n, 3)).round(3)
    return pl.from_numpy(values, schema=["length", "width", "weight"], orient="row")


def beside(name, values):
    return measured(len(values)).with_columns(pl.Series(name, values))


NAMES = [
    "Type", "Region", "Area", "class", "target", "label", "y", "cluster", "group", "category",
    "species", "outcome", "diagnosis", "code", "gender", "SEX", "cell_type", "cluster_id",
    "cellType", "leiden", "leiden_0.5", "louvain", "RNA_snn_res.0.8", "seurat_clusters",
    "Class label", "region code", "blood.group",
]  # fmt: skip


@each("name", NAMES)
@each("kind", [np.int64, np.uint8, np.float64])
def test_few_whole_numbers_under_the_name_of_a_class_are_a_label(name, kind):
    table = as_table(beside(name, CODES.astype(kind)))
    assert table.feature_names == ("length", "width", "weight")
    assert table.labels.columns == [name]
    [note] = table.notes
    assert note.startswith(f"column {name!r} is taken as a label: its name is that of a class")
    assert note.endswith(f"; use=[{name!r}] maps it")
    assert as_table(beside(name, CODES), use=[name]).shape == (ROWS, 4)


def test_true_and_false_are_classes_under_such_a_name():
    table = as_table(beside("outcome", CODES == 2))
    assert table.labels.columns == ["outcome"]
    assert as_table(beside("smokes", CODES == 2)).shape == (ROWS, 4)


def test_classes_may_be_missing_in_some_rows():
    values = [None if i % 7 == 0 else float(i % 3) for i in range(ROWS)]
    assert as_table(beside("target", values), allow_missing=True).labels.columns == ["target"]


MEASURED = [
    ("area", np.linspace(10, 98, ROWS)),  # fractions
    ("Area", np.arange(ROWS) * 7 % 83),  # many values
    ("target", np.arange(ROWS) * 3 % 71),
    ("type", np.arange(ROWS) % 10),  # more values than sqrt(rows)
    ("species", np.arange(ROWS) * 5 % 61),  # how many species were found
    ("n_clusters", CODES),
    ("num_classes", CODES),
    ("class_weight", CODES),
    ("label_count", CODES),
    ("Type_1", CODES % 2),  # one-hot columns
    ("region_north", CODES % 2),
    ("classification_score", CODES),
]


@each(("name", "values"), MEASURED, ids=[name + str(i) for i, (name, _) in enumerate(MEASURED)])
def test_a_measurement_under_such_a_name_stays(name, values):
    table = as_table(beside(name, values))
    assert table.feature_names == ("length", "width", "weight", name)
    assert not table.guesses


def test_y_beside_x_is_a_coordinate():
    points = pl.DataFrame({"x": CODES, "y": CODES[::-1], "mass": np.linspace(0, 1, ROWS)})
    assert as_table(points).feature_names == ("x", "y", "mass")
    upper = points.rename({"x": "X", "y": "Y"})
    assert as_table(upper).feature_names == ("X", "Y", "mass")
    numbered = points.rename({"x": "x1"})
    assert as_table(numbered).labels.columns == ["y"]


@each("n", [1, 2, 3, 4, 10])
def test_small_tables(n):
    table = as_table(beside("type", np.arange(n) % 2))
    assert (table.labels.columns == ["type"]) == (n > 2)  # in fewer rows no value recurs
    assert as_table(beside("class", np.arange(n))).labels.columns == ["class"]


def test_more_such_names_than_a_table_has_classes_tell_nothing():
    wide = pl.DataFrame({f"f{i} type": CODES for i in range(40)})
    assert as_table(wide).shape == (ROWS, 40)


def test_a_class_colors_the_map_and_is_the_target():
    frame = beside("Type", CODES).with_columns(pl.Series("zip", CODES % 2 + 10_000))
    frame = frame.select("zip", "length", "width", "weight", "Type")
    assert make_map(frame, "pca").color == "Type"
    assert select_columns(frame, n_features=1).target == "Type"
    named = frame.with_columns(city=pl.Series(["a", "b"] * (ROWS // 2))).select(
        "city", *frame.columns
    )
    assert make_map(named, "pca").color == "Type"  # and not the first label
    assert make_map(frame.drop("Type"), "pca").color == "zip"  # better than nothing


def test_codes_under_another_name_get_one_hint():
    frame = beside("plot", CODES).with_columns(block=pl.Series(np.arange(ROWS) % 5))
    table = as_table(frame)
    assert table.shape == (ROWS, 5)
    [note] = table.notes
    assert note == (
        "'plot' (3 values), 'block' (5 values) are mapped as quantities; if these numbers are "
        "codes of classes, add labels=['plot', 'block']"
    )
    assert as_table(frame, labels=["plot", "block"]).notes == ()
    assert as_table(frame, use=["plot", "block"]).notes == ()
    assert as_table(frame, columns=["plot", "length"]).notes == ()


QUIET = {
    "0 and 1": beside("smokes", CODES % 2),
    "a scale": beside("rating", CODES),
    "a number of things": beside("n_rooms", CODES),
    "not codes from 0 or 1": beside("cylinders", CODES * 2 + 2),
    "a gap": beside("plot", np.where(CODES == 3, 5, CODES)),
    "rounded": beside("mass", np.r_[np.zeros(60), np.ones(28), [2, 3]].astype(int)),
    "few rows": beside("plot", CODES[:20]),
    "a survey": pl.DataFrame({f"q{i}": np.roll(CODES, i) for i in range(20)}),
    "pixels": pl.DataFrame({f"p{i}": np.roll(CODES, i) for i in range(784)}),
}


@each("name", list(QUIET))
def test_no_hint_where_it_would_be_wrong(name):
    table = as_table(QUIET[name])
    assert (table.notes, table.shape[1]) == ((), QUIET[name].width)
