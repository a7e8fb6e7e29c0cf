"""Which rows and columns of a map that any tool made are scored."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland._base.errors import DataError
from lowland.metrics import trustworthiness
from lowland.workflow import make_map, score_map
from lowland.workflow.foreign.maps import coordinate_sets
from support.cases import each

ROWS = 50
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 4)).round(4)
Y = np.ascontiguousarray(X[:, :2])
NAMES = [f"s{i:02d}" for i in range(ROWS)]
SHUFFLED = RNG.permutation(ROWS)
NUMBERS = pl.from_numpy(X, schema=["a", "b", "c", "d"], orient="row")


def data(ids=None, name="id"):
    return NUMBERS if ids is None else NUMBERS.clone().insert_column(0, pl.Series(name, ids))


def a_map(ids=None, name="id", names=("x", "y"), **more):
    frame = pl.from_numpy(Y, schema=list(names), orient="row")
    frame = frame if ids is None else frame.insert_column(0, pl.Series(name, ids))
    return frame.with_columns(**{key: pl.Series(key, values) for key, values in more.items()})


def shuffled(frame):
    return frame[SHUFFLED.tolist()]


def scored(table, mapped, **options):
    """The score of a map whose rows must have been found."""
    score = score_map(table, mapped, **options)
    np.testing.assert_array_equal(score.coordinates, Y)
    return score


def test_rows_are_matched_by_the_id_that_both_have():
    score = scored(data(NAMES), shuffled(a_map(NAMES)))
    assert "rows are matched by their ids in column 'id'" in score.notes
    assert score.quality["trustworthiness"].value == pytest.approx(trustworthiness(X, Y))


def test_ids_need_not_have_one_name_or_type():
    numbers = list(range(1000, 1000 + ROWS))
    texts = [str(i) for i in numbers]
    floats = [float(i) for i in numbers]
    for there in (numbers, texts, floats):
        scored(data(numbers, "article_id"), shuffled(a_map(there, "id")))
        scored(data(there, "id"), shuffled(a_map(numbers, "article_id")))
    scored(data(numbers, "article_id"), shuffled(a_map(numbers, "who")), id_column=None)


def test_a_map_of_ours_is_matched_in_any_order(tmp_path):
    for table in (data(), data(NAMES), data(list(range(7, 7 + 2 * ROWS, 2)), "x_id")):
        made = make_map(table, "pca", measure=False)
        made.map[SHUFFLED.tolist()].write_csv(tmp_path / "map.csv")
        score = score_map(table, tmp_path / "map.csv")
        np.testing.assert_allclose(score.coordinates, made.coordinates)
        assert score.columns == ["x", "y"]
        assert any("are matched by their" in note for note in score.notes)


def test_the_index_that_pandas_writes_is_the_id(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, index=NAMES, columns=list("abcd"))
    other = pandas.DataFrame(Y, index=NAMES, columns=["UMAP 1", "UMAP 2"]).iloc[SHUFFLED]
    frame.to_csv(tmp_path / "t.csv")
    other.to_csv(tmp_path / "m.csv")
    scored(tmp_path / "t.csv", tmp_path / "m.csv")
    scored(frame, other)


def test_other_ids_are_refused_with_counts_and_examples():
    with pytest.raises(DataError, match=r"50 of 50 rows are missing.* 's00'.*50 are not.* 't0'"):
        score_map(data(NAMES), a_map([f"t{i}" for i in range(ROWS)]))
    half = [*NAMES[:25], *(f"t{i}" for i in range(25))]
    with pytest.raises(DataError, match=r"25 of 50 rows are missing there, such as 's25'"):
        score_map(data(NAMES), a_map(half))
    with pytest.raises(DataError, match=r"1 of 50 rows are missing there, such as 's49'"):
        score_map(data(NAMES), a_map(NAMES)[:49])
    with pytest.raises(DataError, match=r"names rows twice, such as 's00'"):
        score_map(data(NAMES), a_map(["s00", *NAMES[:-1]]))


def test_rows_of_the_map_that_the_data_lack_are_said():
    score = score_map(data(NAMES)[:40], shuffled(a_map(NAMES)))
    np.testing.assert_array_equal(score.coordinates, Y[:40])
    [caution] = [note for note in score.notes if "caution" in note]
    assert "has 10 rows that data lacks, such as 's4" in caution


def test_the_order_counts_only_without_ids_and_is_said():
    score = scored(data(), a_map())
    assert "rows are matched by their order, because neither table has ids" in score.notes
    score = scored(data(), Y)
    assert "rows are matched by their order, because neither table has ids" in score.notes
    score = scored(data(NAMES), a_map())
    assert "caution: map has no column of ids" in score.notes[-1]
    score = scored(data(), a_map(NAMES))
    assert "caution: data has no ids" in score.notes[-1]


def test_numbers_of_rows_are_no_ids_of_something_else():
    count = list(range(ROWS))
    score = scored(data(NAMES), a_map(count, "row"))
    assert "caution: column 'row' of map only numbers its rows" in score.notes[-1]
    scored(data(), shuffled(a_map(count, "row")))
    scored(data(), a_map([i + 1 for i in count], "row"))
    with pytest.raises(DataError, match="'case' is in another order than a count of rows"):
        score_map(data(), shuffled(a_map([i + 1 for i in count], "case")))


def test_dropped_rows_do_not_shift_the_others():
    holed = data().with_columns(a=pl.Series([None, *X[1:, 0]]))
    score = score_map(holed, Y, missing="drop")
    np.testing.assert_array_equal(score.coordinates, Y[1:])
    named = data(NAMES).with_columns(a=pl.Series([None, *X[1:, 0]]))
    score = score_map(named, shuffled(a_map(NAMES)), missing="drop")
    np.testing.assert_array_equal(score.coordinates, Y[1:])
    assert not any("caution" in note for note in score.notes)
    with pytest.raises(DataError, match=r"1 row of the data were dropped.*id_column"):
        score_map(named, Y, missing="drop")


COORDINATES = [
    ["x", "y"],
    ["x1", "x2"],
    ["tsne_1", "tsne_2"],
    ["t-SNE 1", "t-SNE 2"],
    ["UMAP_1", "UMAP_2"],
    ["X_umap-0", "X_umap-1"],
    ["PC1", "PC2"],
    ["Dim.1", "Dim.2"],
    ["umap_x", "umap_y"],
    ["C1", "C2"],
]


@each("names", COORDINATES, ids=["-".join(names) for names in COORDINATES])
def test_coordinates_are_known_by_their_names(names):
    more = {
        "cluster": np.arange(ROWS) % 4,
        "leiden": np.arange(ROWS) % 3,
        "total": np.linspace(0, 9, ROWS),
        "kind": ["u", "v"] * (ROWS // 2),
        "seen": np.arange(ROWS) % 2 == 0,
    }
    score = scored(data(NAMES), shuffled(a_map(NAMES, names=names, **more)))
    assert score.columns == names
    assert score.notes[0] == f"coordinates: {names[0]}, {names[1]} (by their names)"


def test_other_names_are_coordinates_unless_they_are_ids_or_classes():
    more = {"cluster": np.arange(ROWS) % 4, "seen": np.arange(ROWS) % 2 == 0}
    score = scored(data(NAMES), a_map(NAMES, names=["east", "north"], **more))
    assert score.columns == ["east", "north"]
    assert "not ids or classes" in score.notes[0]
    both = a_map(NAMES, names=["east", "north"])
    assert scored(data(NAMES), both, coordinate_names=["east", "north"]).columns == [
        "east",
        "north",
    ]
    with pytest.raises(DataError, match="no column looks like a coordinate; found 'id'"):
        score_map(data(NAMES), a_map(NAMES, **more).drop("x", "y"))


def test_several_sets_of_coordinates_are_refused():
    both = a_map(NAMES, names=["umap_1", "umap_2"], tsne_1=Y[:, 0], tsne_2=Y[:, 1])
    message = r"umap_1, umap_2; tsne_1, tsne_2; choose one.*coordinate_names=\['umap_1', 'umap_2'\]"
    with pytest.raises(DataError, match=message):
        score_map(data(NAMES), both)
    assert scored(data(NAMES), both, coordinate_names=["tsne_1", "tsne_2"])


@each(
    ("names", "found"),
    [
        (["x"], [["x"]]),
        (["x", "y", "z", "mass"], [["x", "y", "z"]]),
        (["x4", "x3", "x2", "x1"], [["x1", "x2", "x3", "x4"]]),
        (["PC1", "PC2", "PC4"], [["PC1", "PC2"]]),  # up to the gap
        (["PC2", "PC3"], []),
        (["x", "y", "factor_1"], [["x", "y"]]),
        (["id", "cluster", "row"], []),
        (["a", "b"], []),
        (["leiden_0_5", "y"], []),
        (["gene_17", "gene_18"], []),
        (["p1", "p2", "q1", "q2"], [["p1", "p2"], ["q1", "q2"]]),
        (["", "_", "1", "²"], []),
        (["x999999999999999999999"], []),
    ],
)
def test_sets_of_names(names, found):
    assert coordinate_sets(names) == found


def test_the_report_says_how_rows_were_found(tmp_path):
    score = scored(data(NAMES), shuffled(a_map(NAMES)))
    score.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "rows are matched by their ids in column" in page
    assert "coordinates: x, y (by their names)" in page
