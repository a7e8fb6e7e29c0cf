"""Several tables in one map, from Python: pairs, held-out pairs, the model and its file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import lowland
from lowland._base.models.codec import read_model, write_model
from lowland.errors import DataError, LowlandError, ModelFileError, ParameterError
from lowland.plot import alignment_map
from lowland.report import render
from lowland.report.advice import advise
from lowland.tables.several import same_objects
from lowland.workflow import align_tables, place_rows
from lowland.workflow.aligning.pairs import chance_of, held_out_rows, match_of
from support.cases import each

N = 50
rng = np.random.default_rng(0)
HIDDEN = rng.uniform(-1, 1, (N, 2))
ONE = np.column_stack([HIDDEN, HIDDEN[:, 0] ** 2]) + 0.01 * rng.standard_normal((N, 3))
TWO = HIDDEN @ [[1.0, 2.0, -1.0, 0.5], [0.3, -1.0, 2.0, 1.0]]
FEW = {"n_neighbors": 8}


def frames():
    """A pandas and a polars frame whose rows are in different orders."""
    order = np.random.default_rng(1).permutation(N)
    one = pd.DataFrame(ONE.copy(), columns=["a", "b", "c"])
    one["who"] = [f"p{i}" for i in range(N)]
    one["side"] = np.where(HIDDEN[:, 0] > 0, "right", "left")
    two = pl.DataFrame(TWO[order], schema=["p", "q", "r", "s"], orient="row")
    return one, two.with_columns(who=pl.Series([f"p{i}" for i in order])), order


def test_data_frames_are_matched_by_ids():
    one, two, order = frames()
    found = align_tables([one, two], match="who", names=["first", "second"], **FEW)
    assert found.map.columns == ["set", "who", "x", "y", "side"]
    assert repr(found) == "AlignedTables(first 50 rows, second 50 rows; 50 objects in several)"
    place = np.argsort(order)
    np.testing.assert_array_equal(found.correspondence, np.column_stack([np.arange(N), place]))
    expected = lowland.ManifoldAlignment(2, random_state=0, **FEW).fit_transform(
        [ONE, TWO[order]], correspondence=found.correspondence
    )
    for ours, theirs in zip(found.coordinates, expected, strict=True):
        np.testing.assert_allclose(ours, theirs)
    assert found.held_out.objects == 10
    assert found.held_out.found.rank < 0.1
    assert found.held_out.simple.rank < found.held_out.chance.rank
    assert set(found.quality) == {"first", "second"}
    assert "50 objects in several tables: rows with the same who" in found.log


def test_arrays_in_the_same_order_and_a_model_that_places_rows(tmp_path):
    found = align_tables([ONE, scipy.sparse.csr_matrix(TWO)], same_order=True, measure=False, **FEW)
    assert (found.held_out, found.quality) == (None, {})
    assert found.map["set"].unique(maintain_order=True).to_list() == ["set0", "set1"]
    found.save(tmp_path / "model.lowland")
    model = lowland.load(tmp_path / "model.lowland")
    for domain, X in enumerate((ONE, TWO)):
        np.testing.assert_array_equal(
            model.transform(X[:7], domain), found.model.transform(X[:7], domain)
        )
        placed = place_rows(model, X, domain=f"set{domain}").coordinates
        np.testing.assert_allclose(placed, found.coordinates[domain], atol=1e-9)
    with pytest.raises(ParameterError, match="name the one that the rows belong to: set0, set1"):
        place_rows(model, ONE)


def test_a_bare_estimator_places_rows_by_number():
    pairs = np.column_stack([np.arange(N), np.arange(N)])
    model = lowland.ManifoldAlignment(2, random_state=0, **FEW).fit(
        [ONE, TWO], correspondence=pairs
    )
    placed = place_rows(model, TWO[:4], domain=1)
    np.testing.assert_array_equal(placed.coordinates, model.transform(TWO[:4], 1))
    assert placed.method == "ManifoldAlignment"
    with pytest.raises(ParameterError, match="unknown set '5'"):
        place_rows(model, TWO[:4], domain=5)


def test_labels_that_only_one_table_has():
    one, two, _ = frames()
    two = two.with_columns(dose=pl.Series(np.arange(N) % 3))
    found = align_tables(
        [one, two], match="who", labels=["dose"], names=["f", "s"], measure=False, **FEW
    )
    assert found.map.columns == ["set", "who", "x", "y", "side", "dose"]
    assert found.map["dose"][:N].null_count() == N
    assert found.label_picture() is not None


def test_preparation_belongs_to_its_table():
    one, two, _ = frames()
    one.loc[3, "b"] = np.nan
    one["a"] *= 1e4
    found = align_tables([one, two], match="who", missing="mean", names=["f", "s"], measure=False)
    first, second = found.model.preparations
    assert (first.chosen_, second.chosen_) == ("standard", "none")
    assert found.correspondence.shape == (N, 2)


# --- rows that are the same object ----------------------------------------------------------


def test_ids_are_matched_as_text_and_numbers():
    found = same_objects(
        [
            pl.Series("a", ["1", " 2", "x", None, "x", "9"]),
            pl.Series("b", [2.0, 1.0, 7.0]),
            pl.Series("c", [9, 2]),
        ]
    )
    assert found.rows.tolist() == [[0, 1, -1], [1, 0, 1], [5, -1, 0]]
    assert found.twice == [["x"], [], []]
    assert found.unnamed == [1, 0, 0]
    assert found.alone == [0, 1, 0]


@each("seed", range(5))
def test_matched_rows_are_those_of_a_loop(seed):
    own = np.random.default_rng(seed)
    columns = [own.integers(0, 12, size).tolist() for size in (9, 7, 11)]
    found = same_objects([pl.Series(str(i), values) for i, values in enumerate(columns)])
    expected = set()
    for value in range(12):
        rows = [c.index(value) if c.count(value) == 1 else -1 for c in columns]
        if sum(row >= 0 for row in rows) >= 2:
            expected.add(tuple(rows))
    assert {tuple(rows) for rows in found.rows.tolist()} == expected


# --- held-out pairs ---------------------------------------------------------------------------


@each("seed", range(3))
def test_nearest_partners_and_ranks_are_those_of_a_loop(seed):
    own = np.random.default_rng(seed)
    maps = [own.integers(0, 4, (n, 2)).astype(float) for n in (12, 9, 15)]  # many ties
    rows = np.array([[0, 1, 2], [3, -1, 5], [4, 8, -1], [-1, 0, 7]])
    nearest, ranks = [], []
    for one in range(3):
        for other in range(3):
            for found in rows if one != other else ():
                if found[one] < 0 or found[other] < 0:
                    continue
                d = ((maps[other] - maps[one][found[one]]) ** 2).sum(axis=1)
                mine = d[found[other]]
                nearer, tied = (d < mine).sum(), (d == mine).sum()
                nearest.append(1 / tied if nearer == 0 else 0)
                ranks.append((nearer + (tied - 1) / 2) / (len(d) - 1))
    assert match_of(maps, rows) == pytest.approx((np.mean(nearest), np.mean(ranks)))


def test_chance_is_what_random_maps_give():
    own = np.random.default_rng(0)
    rows = np.column_stack([np.arange(20), np.arange(20)])
    found = np.mean(
        [match_of([own.random((20, 2)), own.random((30, 2))], rows) for _ in range(400)], axis=0
    )
    chance = chance_of([np.zeros((20, 2)), np.zeros((30, 2))], rows)
    np.testing.assert_allclose(found, chance, atol=0.01)
    assert match_of([np.zeros((20, 2)), np.zeros((20, 2))], rows) == pytest.approx((1 / 20, 0.5))


def test_the_same_pairs_are_held_out_every_time():
    chosen = held_out_rows(40, 0.2, 3)
    assert chosen.sum() == 8
    np.testing.assert_array_equal(chosen, held_out_rows(40, 0.2, 3))
    assert not held_out_rows(9, 0.2, 0).any()
    assert not held_out_rows(40, 0.0, 0).any()


def test_a_map_outlives_a_trial_that_fails_or_is_stopped(monkeypatch):
    for error, reason in (
        (KeyboardInterrupt(), "it was stopped by Ctrl-C"),
        (DataError("too few."), "too few."),
    ):

        def fails(*_, error=error):
            raise error

        monkeypatch.setattr("lowland.workflow.aligning.running.measure_held_out", fails)
        with pytest.warns(UserWarning, match="not tried on held-out pairs: .*; the map is kept"):
            found = align_tables([ONE, TWO], same_order=True, **FEW)
        assert found.held_out is None
        assert found.not_made == {"held_out": reason}
        assert found.map.height == 2 * N


def test_unrelated_tables_are_told_from_related_ones():
    noise = np.random.default_rng(5).standard_normal((N, 3))
    kinds = [
        [caution.kind for caution in advise(found.summary())]
        for found in (
            align_tables([ONE, TWO], same_order=True, **FEW),
            align_tables([ONE, noise], same_order=True, hold_out=0.5, **FEW),
            align_tables([ONE, TWO], same_order=True, hold_out=0, **FEW),
        )
    ]
    assert "partners are not found" not in kinds[0]
    assert "partners are not found" in kinds[1]
    assert "not tried on held-out pairs" in kinds[2]


# --- bad input -------------------------------------------------------------------------------


@each(
    "data, given, message",
    [
        ([ONE], {}, "1 table was given; give two or more"),
        ("iris", {}, "1 table was given"),
        ([ONE, TWO], {"hold_out": -0.1}, "hold_out: -0.1 is not allowed"),
        ([ONE, TWO], {"hold_out": True}, "hold_out: True is not allowed"),
        ([ONE, TWO], {"names": ["a"]}, "expected 2 different names"),
        ([ONE, TWO], {"names": ["a", "a"]}, "expected 2 different names"),
        ([ONE, TWO], {"match": ["a", "b", "c"]}, "one name for each of the 2 tables"),
        ([ONE, TWO[:9]], {"same_order": True}, "set0 has 50 rows, set1 has 9 rows"),
        ([ONE, TWO], {"same_order": True, "algorithm": "laplacian"}, "unknown parameter"),
        ([ONE, TWO], {"same_order": True, "n_neighbours": 3}, "did you mean 'n_neighbors'?"),
        ([ONE, TWO], {"same_order": True, "method": "magic"}, "method='magic' is not allowed"),
        ([ONE, TWO], {"same_order": True, "color": "kind"}, "unknown column 'kind'"),
        ([ONE, "uscities"], {"same_order": True}, "is a matrix of distances"),
    ],
)
def test_bad_input_is_refused(data, given, message):
    with pytest.raises(LowlandError) as caught:
        align_tables(data, **given)
    assert message in str(caught.value)


# --- the model file --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("joint") / "model.lowland"
    align_tables([ONE, TWO], same_order=True, measure=False, **FEW).save(path)
    return path


DAMAGE = {
    "names": lambda names, steps: {"names": ["one", "one"]},
    "kind of names": lambda names, steps: {"names": [1, 2]},
    "no names": lambda names, steps: {"names": None},
    "too few": lambda names, steps: {"names": names[:1], "steps": [steps[0], steps[2]]},
    "order": lambda names, steps: {"steps": [steps[1], steps[0], steps[2]]},
    "no alignment": lambda names, steps: {"steps": [steps[0], steps[1], steps[1]]},
    "no preparation": lambda names, steps: {"steps": [steps[0], steps[2], steps[2]]},
    "more": lambda names, steps: {"extra": 1},
    "no steps": lambda names, steps: {"steps": 7},
}


@each("how", list(DAMAGE))
def test_a_damaged_model_is_refused(saved, tmp_path, how):
    model = read_model(saved)
    state = {**model.state, **DAMAGE[how](model.state["names"], model.state["steps"])}
    state = {name: value for name, value in state.items() if value is not None}
    write_model(tmp_path / "bad.lowland", model.class_name, model.params, state)
    with pytest.raises(ModelFileError):
        lowland.load(tmp_path / "bad.lowland")


# --- the picture and the page ----------------------------------------------------------------


def test_lines_join_partners_if_there_are_few():
    maps = [HIDDEN, HIDDEN + 1, HIDDEN[:5]]
    rows = np.array([[0, 1, 2], [3, -1, 4], [-1, 7, -1]])
    axes = alignment_map(maps, ["a", "b", "c"], correspondence=rows).axes[0]
    [lines] = [c for c in axes.collections if hasattr(c, "get_segments")]
    expected = [(HIDDEN[0], HIDDEN[1] + 1), (HIDDEN[1] + 1, HIDDEN[2]), (HIDDEN[3], HIDDEN[4])]
    np.testing.assert_allclose(np.array(lines.get_segments()), np.array(expected))
    many = np.repeat([[0, 1, 2]], 600, axis=0)
    axes = alignment_map(maps, correspondence=many).axes[0]
    assert not [c for c in axes.collections if hasattr(c, "get_segments")]


@each("n", [N, 300])
def test_every_row_is_drawn_once_as_dots_and_rings_or_as_dots(n):
    own = np.random.default_rng(0)
    maps = [own.random((n, 2)), own.random((n, 2))]
    figure = alignment_map(maps, ["a", "b"])
    drawn = np.vstack([points.get_offsets() for points in figure.axes[0].collections])
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, np.vstack(maps)))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert len(alignment_map([own.random((n, 3))] * 2).axes) == 3
    assert alignment_map([own.random((n, 1))] * 2).axes


def test_a_picture_of_what_does_not_fit_is_refused():
    for maps, given, message in (
        ([], {}, "no maps"),
        ([HIDDEN, ONE], {}, "columns"),
        ([HIDDEN], {"names": ["a", "b"]}, "2 names for 1 maps"),
        ([HIDDEN, HIDDEN], {"correspondence": np.array([[0, N]])}, "does not have"),
        ([HIDDEN, HIDDEN], {"correspondence": np.array([[0.5, 1]])}, "expected whole numbers"),
    ):
        with pytest.raises(DataError, match=message):
            alignment_map(maps, **given)


def test_names_of_sets_are_escaped_on_the_page():
    found = align_tables([ONE, TWO], same_order=True, names=["<b>", "</script>"], hold_out=0, **FEW)
    page = render(found.summary())
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    summary = found.summary()
    summary["alignment"]["sets"] = summary["alignment"]["sets"][:1]
    with pytest.raises(DataError, match="sets of 50 rows together, but there are 100 ids"):
        render(summary)
