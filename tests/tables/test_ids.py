"""Ids of rows among the numbers of a table: set aside, said, and taken back."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland._base.errors import COMMAND_LINE, DataError
from lowland.tables import as_table, read_table
from lowland.workflow import make_map, place_rows
from support.cases import each

ROWS = 60


def measured(n=ROWS, seed=0, columns=("length", "width", "weight")):
    """Columns of numbers that mean something."""
    values = np.random.default_rng(seed).normal(5.0, 1.0, (n, len(columns)))
    return pl.from_numpy(values.round(3), schema=list(columns), orient="row")


def beside(name, values, **more):
    return measured().insert_column(0, pl.Series(name, values)).with_columns(**more)


def ids_of(table):
    return [guess.name for guess in table.guesses if guess.role != "class"]


COUNT = np.arange(1, ROWS + 1)
SPARSE = np.random.default_rng(1).permutation(90_000)[:ROWS]  # all different, in no sequence
CASES = [
    ("article_id", np.arange(100_000, 100_000 + 350 * ROWS, 350)),
    ("articleId", SPARSE),
    ("PassengerId", COUNT),
    ("ID", COUNT.astype(float)),
    ("id_patient", SPARSE),
    ("event", SPARSE),
    ("case", COUNT),
    ("oil_no", COUNT),
    ("sample", SPARSE),
    ("Nr", COUNT),
    ("row", COUNT - 1),
    ("index", COUNT - 1),
    ("case_number", SPARSE),
    ("Unnamed: 0", COUNT - 1),
    ("rownames", COUNT),
    ("barcode", SPARSE),
    ("phone", SPARSE + 5_550_000),
    ("isbn", SPARSE.astype(np.uint64) + 2**63),
    ("site", COUNT),  # only the values tell
    ("V1", COUNT[::-1].copy()),
    ("column_0", COUNT * 2 - 1 - (COUNT % 2)),  # with gaps
    ("seqno", np.random.default_rng(2).permutation(COUNT)),
]


@each(("name", "values"), CASES, ids=[name for name, _ in CASES])
def test_what_looks_like_an_id_names_the_rows(name, values):
    table = as_table(beside(name, values))
    assert table.feature_names == ("length", "width", "weight")
    assert (table.ids.name, table.has_ids) == (name, True)
    np.testing.assert_array_equal(table.ids.to_numpy(), values)
    [note] = table.notes
    assert note.startswith(f"column {name!r} is taken as the row id: its ")
    assert note.endswith(f"; use=[{name!r}] maps it")


@each(("name", "values"), CASES, ids=[name for name, _ in CASES])
def test_an_id_that_is_asked_for_is_mapped(name, values):
    frame = beside(name, values)
    for table in (as_table(frame, use=[name]), as_table(frame, guess=False)):
        assert table.feature_names == (name, "length", "width", "weight")
        assert (table.ids.name, table.has_ids, table.notes) == ("row", False, ())
    assert as_table(frame, columns=[name, "width"]).feature_names == (name, "width")


FEATURES = [
    ("time", COUNT),
    ("Year", 1960 + COUNT),
    ("age", COUNT),
    ("depth_m", COUNT),
    ("x", COUNT),
    ("wavelength", 400 + COUNT),
    ("atomic number", COUNT),
    ("Jahr", 1960 + COUNT),
    ("Tm", COUNT - 30),  # ids are never negative
    ("count", SPARSE),  # different whole numbers, but in no sequence
    ("reads", SPARSE),
    ("reynolds_number", SPARSE),
    ("body_mass_index", SPARSE),
    ("id_score", COUNT + 0.5),
    ("NO", COUNT % 40),  # nitric oxide
    ("key", COUNT % 12),  # of a piece of music
    ("row", COUNT % 8),
    ("sample", COUNT % 7),
    ("event", COUNT % 2),
    ("has_id", COUNT % 2),
    ("id_01", COUNT % 50),
    ("n_id", COUNT),
    ("acid", SPARSE),
]


@each(("name", "values"), FEATURES, ids=[f"{name} {i}" for i, (name, _) in enumerate(FEATURES)])
def test_what_is_measured_stays_a_feature(name, values):
    table = as_table(beside(name, values))
    assert table.feature_names == (name, "length", "width", "weight")
    assert not table.guesses


def test_ids_that_do_not_name_one_row_each_are_labels():
    frame = beside("customer_id", COUNT // 2, zip=SPARSE % 7 + 10_000)
    table = as_table(frame)
    assert ids_of(table) == ["customer_id", "zip"]
    assert not table.has_ids
    assert table.labels.columns == ["customer_id", "zip"]
    assert "'customer_id' is taken as a label: its name is that of an id;" in table.notes[0]


def test_the_name_that_says_most_names_the_rows():
    frame = beside("Unnamed: 0", COUNT - 1, index=pl.Series(COUNT), sample_id=pl.Series(SPARSE))
    table = as_table(frame)
    assert table.ids.name == "sample_id"
    assert set(table.labels.columns) == {"Unnamed: 0", "index"}


def test_text_called_id_names_the_rows_without_a_word():
    names = [f"c{i}" for i in COUNT]
    table = as_table(beside("barcode", names))
    assert table.ids.to_list() == names
    assert (table.notes, table.labels.columns) == ((), [])
    again = as_table(beside("barcode", ["a", "b"] * (ROWS // 2)))
    assert (again.has_ids, again.labels.columns) == (False, ["barcode"])


def test_several_columns_in_sequence_are_ranks():
    rng = np.random.default_rng(3)
    ranks = pl.DataFrame({f"judge {c}": rng.permutation(COUNT) for c in "abcd"})
    for frame in (ranks, ranks.sort("judge a")):
        assert as_table(frame).shape == (ROWS, 4)
        assert as_table(frame.hstack(measured())).shape == (ROWS, 7)


def test_a_count_that_starts_again_is_no_sequence():
    frame = measured(200).with_columns(turn=pl.Series([*range(100), *range(100)]))
    assert as_table(frame).shape == (200, 4)


def test_a_sequence_stays_where_hardly_anything_else_is_left():
    curve = pl.DataFrame({"setting": COUNT, "answer": np.sin(COUNT)})
    assert as_table(curve).feature_names == ("setting", "answer")


@each("n", [1, 2, 3, 5, 29])
def test_few_rows_in_sequence_tell_nothing(n):
    frame = measured(n).with_columns(a=pl.Series(range(n)))
    assert as_table(frame).shape == (n, 4)


def test_an_array_has_no_names_and_keeps_all_columns(tmp_path):
    values = np.column_stack([COUNT, measured().to_numpy()])
    assert as_table(values).shape == (ROWS, 4)
    np.save(tmp_path / "t.npy", values)
    assert read_table(tmp_path / "t.npy").shape == (ROWS, 4)


@each("suffix", ["csv", "parquet", "arrow", "ndjson"])
def test_every_format_tells_the_same(tmp_path, suffix):
    frame = beside("case", COUNT)
    path = tmp_path / f"t.{suffix}"
    getattr(frame, f"write_{'ipc' if suffix == 'arrow' else suffix}")(path)
    table = read_table(path, spelling=COMMAND_LINE)
    assert (table.shape, table.ids.name) == ((ROWS, 3), "case")
    assert table.notes[0].endswith("; --use case maps it")
    chosen = read_table(path, columns=["width"])
    assert (chosen.ids.name, chosen.notes) == ("case", ())
    assert chosen.unused == ("length", "weight")


def test_an_id_that_is_dropped_is_gone():
    table = as_table(beside("case", COUNT), drop=["case", "width"])
    assert (table.feature_names, table.has_ids, table.labels.columns) == (
        ("length", "weight"), False, [],
    )  # fmt: skip
    with pytest.raises(DataError, match="drop: unknown column 'cases'; did you mean 'case'"):
        as_table(beside("case", COUNT), drop=["cases"])


def test_what_the_user_says_comes_first():
    frame = beside("case", COUNT, patient_id=pl.Series(SPARSE))
    table = as_table(frame, id_column="case")
    assert (table.ids.name, table.labels.columns) == ("case", ["patient_id"])
    table = as_table(frame, labels=["case"], use=["patient_id"])
    assert (table.has_ids, table.labels.columns) == (False, ["case"])
    assert "patient_id" in table.feature_names
    for wrong in ({"labels": ["case"]}, {"id_column": "case"}):
        with pytest.raises(DataError, match="use: column 'case' cannot be mapped and be a label"):
            as_table(frame, use=["case"], **wrong)
    with pytest.raises(DataError, match="unknown column 'cse'"):
        as_table(frame, use=["cse"])


def test_what_the_file_itself_calls_an_id_or_a_label_can_be_mapped(tmp_path):
    (tmp_path / "t.csv").write_text(",a,b\n3,1.5,2\n1,2.5,1\n2,0.5,3\n")
    assert read_table(tmp_path / "t.csv").feature_names == ("a", "b")
    table = read_table(tmp_path / "t.csv", use=["row"])
    assert (table.feature_names, table.has_ids) == (("row", "a", "b"), False)
    assert read_table("swiss_roll", use=["truth_1"]).feature_names == ("x", "y", "z", "truth_1")
    with pytest.raises(DataError, match="'class' must hold numbers, but its type is String"):
        read_table("iris", use=["class"])


def test_a_table_of_ids_only_is_refused_with_the_way_back():
    frame = pl.DataFrame({"id": COUNT, "zip": SPARSE})
    with pytest.raises(DataError, match=r"no column is left to map .*use=\['id', 'zip'\] maps th"):
        as_table(frame)


def test_an_id_makes_no_worm_and_the_model_finds_its_columns():
    frame = beside("article_id", 100_000 + 350 * COUNT)
    made = make_map(frame, "pca")
    assert made.map.columns == ["article_id", "x", "y"]
    np.testing.assert_allclose(made.coordinates, make_map(measured(), "pca").coordinates)
    assert any("article_id" in line for line in made.log)
    again = place_rows(made.model, frame.reverse())
    assert again.map["article_id"].to_list() == frame["article_id"].reverse().to_list()
    np.testing.assert_allclose(again.coordinates[::-1], made.coordinates)
    worm = make_map(frame, "pca", use="article_id")
    assert worm.model.feature_names_in_[0] == "article_id"
    np.testing.assert_allclose(
        place_rows(worm.model, frame).coordinates, worm.coordinates, atol=1e-9
    )


def test_a_model_without_names_takes_the_columns_that_fit():
    frame = beside("case", COUNT)
    bare = make_map(measured().to_numpy(), "pca").model
    assert place_rows(bare, frame).table.ids.name == "case"
    whole = make_map(frame.to_numpy(), "pca").model
    assert place_rows(whole, frame).table.shape == (ROWS, 4)
