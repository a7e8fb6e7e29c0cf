"""Maps that are turned: by rows in a direction, or by known places."""

import numpy as np
import polars as pl
import pytest

import lowland
from lowland._base.chain import Chain
from lowland._base.errors import DataError, ParameterError
from lowland.cli import main
from lowland.datasets import eurodist
from lowland.workflow import make_map, place_rows
from lowland.workflow.orienting import Orientation
from support.cases import each

CITIES = list(eurodist().row_names)
# A star of four arms around the middle, one of them shorter: directions are easy to see.
STAR = """name,a,b
up,0,10
down,0,-10
left,-10,0
right,10,0
middle,0,0
"""
ARMS = ("up", "down", "left", "right", "middle")
PLACES = """city,latitude,longitude
Stockholm,59.3,18.1
Lisbon,38.7,-9.1
Athens,38.0,23.7
Rome,41.9,12.5
Hamburg,53.6,10.0
Nowhere,0,0
"""


def star(tmp_path, method="pca", **options):
    path = tmp_path / "star.csv"
    path.write_text(STAR)
    result = make_map(path, method, id_column="name", scale="none", measure=False, **options)
    return result, dict(zip(ARMS, result.coordinates, strict=True))


def places_of(result):
    return dict(zip(CITIES, result.coordinates, strict=True))


def test_a_row_goes_to_its_side_and_distances_stay(tmp_path):
    plain, _ = star(tmp_path)
    for direction, axis, sign in (
        ("north", 1, 1),
        ("south", 1, -1),
        ("east", 0, 1),
        ("left", 0, -1),
    ):
        result, places = star(tmp_path, orient=f"{direction}=up")
        assert places["up"][axis] == pytest.approx(sign * 10)
        assert places["up"][1 - axis] == pytest.approx(0, abs=1e-9)
        assert result.log[-1] == f"turned: up to the {direction}"
        for i in range(5):
            before = np.linalg.norm(plain.coordinates - plain.coordinates[i], axis=1)
            after = np.linalg.norm(result.coordinates - result.coordinates[i], axis=1)
            np.testing.assert_allclose(after, before, atol=1e-9)


def test_a_second_direction_decides_what_is_left_and_what_right(tmp_path):
    one, places = star(tmp_path, orient="north=up,east=right")
    other, mirrored = star(tmp_path, orient={"north": "up", "west": ["right"]})
    for found, sign in ((places, 1), (mirrored, -1)):
        np.testing.assert_allclose(found["up"], [0, 10], atol=1e-9)
        np.testing.assert_allclose(found["right"], [sign * 10, 0], atol=1e-9)
    assert [("mirrored" in result.log[-1]) for result in (one, other)].count(True) == 1


def test_degrees_of_longitude_count_as_long_as_they_are(tmp_path):
    (tmp_path / "degrees.csv").write_text(PLACES)
    known = pl.read_csv(tmp_path / "degrees.csv")
    east = known["longitude"] * np.cos(np.radians(known["latitude"].mean()))
    known.select("city", x=east, y="latitude").write_csv(tmp_path / "plane.csv")
    one, other = (
        make_map("eurodist", "classical_mds", orient=tmp_path / name).coordinates
        for name in ("degrees.csv", "plane.csv")
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_a_map_is_turned_toward_known_places_joined_by_id(tmp_path):
    (tmp_path / "places.csv").write_text(PLACES)
    result = make_map("eurodist", "classical_mds", orient=tmp_path / "places.csv")
    assert result.log[-1].endswith(f"toward the places of 5 rows in {tmp_path / 'places.csv'}")
    known = pl.read_csv(tmp_path / "places.csv").head(5)
    latitude = np.radians(known["latitude"].to_numpy())
    east = known["longitude"].to_numpy() * np.cos(np.radians(known["latitude"].mean()))
    wanted = np.column_stack([east, np.degrees(latitude)])
    rows = [CITIES.index(name) for name in known["city"]]
    plain = make_map("eurodist", "classical_mds").coordinates[rows]
    found = result.coordinates[rows]

    def apart(Y):
        Y, T = Y - Y.mean(axis=0), wanted - wanted.mean(axis=0)
        return np.linalg.norm(T / np.linalg.norm(T) - Y / np.linalg.norm(Y))

    # no other turn is nearer, mirrored or not
    for angle in np.linspace(0, 2 * np.pi, 73):
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        for side in (1, -1):
            assert apart(found) <= apart(plain * [1, side] @ turn) + 1e-9
    assert apart(found) < 0.35
    frame = known.rename({"latitude": "y", "longitude": "x"})
    other = make_map("eurodist", "classical_mds", orient=frame)
    assert "5 rows" in other.log[-1]
    assert places_of(other)["Stockholm"][1] > places_of(other)["Rome"][1]


def test_new_rows_land_in_the_turned_map(tmp_path):
    result, places = star(tmp_path, orient="south=up,east=left")
    assert isinstance(result.model, Chain)
    result.save(tmp_path / "model.lowland")
    again = lowland.load(tmp_path / "model.lowland")
    assert type(again.last).__name__ == "PCA"
    placed = place_rows(tmp_path / "model.lowland", tmp_path / "star.csv", id_column="name")
    np.testing.assert_array_equal(placed.coordinates, result.coordinates)
    assert placed.method == "PCA"
    new = pl.DataFrame({"a": [0.0, 1.0, -3.0], "b": [10.0, 2.0, 0.1]})
    np.testing.assert_allclose(again.transform(new)[0], places["up"], atol=1e-12)
    alone = np.vstack([again.transform(new[[row]]) for row in range(3)])
    np.testing.assert_array_equal(alone, again.transform(new))


def test_the_kept_map_of_a_chain_is_the_turned_one(tmp_path):
    result, _ = star(tmp_path, "classical_mds", orient="south=up,east=left")
    np.testing.assert_array_equal(result.model.embedding_, result.coordinates)


def test_axes_of_a_turned_map_have_no_share_of_the_variance(tmp_path):
    plain, _ = star(tmp_path)
    turned, _ = star(tmp_path, orient="north=up")
    assert "%" in plain.picture().axes[0].get_xlabel()
    assert turned.picture().axes[0].get_xlabel() == "x"


def test_one_dimension_has_two_directions(tmp_path):
    for side, sign in (("east", 1), ("west", -1)):
        _, places = star(tmp_path, orient=f"{side}=up", n_components=1)
        if abs(places["up"][0]) > 1:  # the first axis is one of two of equal variance
            assert np.sign(places["up"][0]) == sign
        _, places = star(tmp_path, orient=f"{side}=left", n_components=1)
        if abs(places["left"][0]) > 1:
            assert np.sign(places["left"][0]) == sign


@each(
    ("orient", "error", "message"),
    [
        ("north=upp", DataError, "unknown row 'upp'; did you mean 'up'"),
        ("above=up", ParameterError, "unknown direction 'above'"),
        ("nort=up", ParameterError, "did you mean 'north'"),
        ("north=", ParameterError, "north= names no row"),
        ("nothing.csv", DataError, "nothing.csv"),
        ({}, ParameterError, "it is empty"),
        ({"north": None}, ParameterError, "'north' has None; expected the name of a row"),
        (np.zeros((3, 2)), DataError, "the array has 3 rows, but the map has 5 rows"),
        (np.zeros((5, 4)), DataError, "4 columns of numbers"),
        (np.zeros((5, 3)), DataError, "3 coordinates, but the map has 2 dimensions"),
        (pl.DataFrame({"n": ["p", "q"], "x": [1.0, 2], "y": [1.0, 2]}), DataError, "the ids of"),
        (pl.DataFrame({"n": ["up", "q"], "x": [1.0, 2], "y": [1.0, 2]}), DataError, "of 1 row of"),
    ],
)
def test_what_cannot_turn_a_map_is_refused_before_the_fit(orient, error, message, tmp_path):
    with pytest.raises(error, match=f"orient.*{message}|{message}"):
        star(tmp_path, orient=orient, n_components=2)


def test_directions_do_not_turn_a_map_in_space(tmp_path):
    with pytest.raises(ParameterError, match="one or two dimensions, not of 3"):
        make_map("iris", "pca", n_components=3, orient="north=1", measure=False)
    with pytest.raises(ParameterError, match="only an east and a west"):
        make_map("iris", "pca", n_components=1, orient="north=1", measure=False)


def test_a_finished_map_that_cannot_be_turned_is_kept_and_the_reason_is_said(tmp_path, capsys):
    result, _ = star(tmp_path, orient="north=middle")
    assert result.log[-1].startswith("not turned: orient: 'middle' lies in the middle of the map")
    plain, _ = star(tmp_path)
    np.testing.assert_array_equal(result.coordinates, plain.coordinates)
    # the number of dimensions is known after the fit only: two classes give one
    command = ["map", "breast_cancer", "-m", "lda", "--orient", "north=3", "--no-report"]
    assert main([*command, "-o", str(tmp_path / "out")]) == 0
    assert "not turned: --orient: a map of one dimension" in capsys.readouterr().err
    assert (tmp_path / "out/map.csv").exists()


def test_a_name_may_hold_a_comma_and_a_number_is_a_name():
    names = ["Washington, DC", "Rome", "Oslo", "Bern"]
    table = pl.DataFrame({"city": names, "a": [0.0, 0, 5, -5], "b": [9.0, -9, 0, 0]})
    result = make_map(
        table, "pca", id_column="city", measure=False, orient="north=Washington, DC,west=Oslo"
    )
    assert result.coordinates[0, 1] == result.coordinates[:, 1].max()
    assert result.coordinates[2, 0] == result.coordinates[:, 0].min()
    numbered = make_map("iris", "pca", measure=False, orient={"east": 0})
    assert numbered.coordinates[0, 1] == pytest.approx(0, abs=1e-9)
    assert numbered.coordinates[0, 0] > 0


def test_a_row_is_found_by_a_label_if_rows_are_only_numbered(tmp_path):
    (tmp_path / "star.csv").write_text(STAR)
    result = make_map(tmp_path / "star.csv", "pca", scale="none", measure=False, orient="west=up")
    assert result.coordinates[0] == pytest.approx([-10, 0], abs=1e-9)
    with pytest.raises(DataError, match="did you mean 'middle'"):
        make_map(tmp_path / "star.csv", "pca", measure=False, orient="west=midle")


def test_a_name_that_two_rows_have_is_refused():
    table = pl.DataFrame({"city": ["A", "A", "B"], "a": [0.0, 0, 5], "b": [9.0, -9, 0]})
    with pytest.raises(DataError, match="2 rows have 'A' in 'city'"):
        make_map(table, "pca", id_column="city", orient="north=A", measure=False)


def test_a_matrix_that_would_stretch_a_map_without_bounds_is_refused(tmp_path):
    good = Orientation().fit(np.eye(3), np.eye(3)[::-1])
    pca = lowland.PCA(3).fit(np.random.default_rng(0).normal(size=(9, 3)))
    Chain([pca, good]).save(tmp_path / "good")
    lowland.load(tmp_path / "good")
    for wrong in (np.eye(3) * 1.01, np.eye(3) * -1e300, np.full((3, 3), np.inf)):
        good.rotation_ = wrong
        Chain([pca, good]).save(tmp_path / "bad")
        with pytest.raises(lowland.errors.ModelFileError, match="rotation_"):
            lowland.load(tmp_path / "bad")
