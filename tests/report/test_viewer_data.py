"""What the viewer reads is what the summary said, within the budgets of a page."""

from __future__ import annotations

import base64
import io
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image
from scipy import sparse

from lowland.errors import DataError
from lowland.report import make_report, render, thumbnails, viewer_data
from lowland.report.payload import display_rows, pack_numbers
from lowland.report.summary import check_summary
from lowland.report.viewer_data import (
    MOST_NEIGHBOR_POINTS,
    chosen_values,
    pack_neighbors,
    pack_page,
    pack_values,
)
from lowland.workflow import make_map
from support.cases import each

N = 300


def unpacked(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def column_values(column):
    if "levels" in column:
        return unpacked(column["levels"], "<f8")[unpacked(column["codes"], "<u1")]
    if "codes" in column:
        codes = unpacked(column["codes"], f"<u{column['bytes']}").astype(np.float64)
        return np.where(codes > 0, column["offset"] + (codes - 1) * column["step"], np.nan)
    return unpacked(column["values"], f"<f{column['bytes']}").astype(np.float64)


# --- neighbors ------------------------------------------------------------------------------------


def test_neighbors_are_shown_points_at_the_places_of_their_ranks(summary, monkeypatch):
    rng = np.random.default_rng(0)
    neighbors = rng.integers(0, N, size=(N, 20))
    neighbors[:, 3] = np.arange(N)  # a row is not its own neighbor
    neighbors[5, 1] = -1
    monkeypatch.setattr("lowland.report.payload.MOST_POINTS", 100)
    rows = display_rows(N)
    packed = pack_neighbors(summary | {"neighbors": neighbors}, rows)
    assert (packed["k"], packed["reach"], packed["bytes"]) == (15, 75, 2)
    lists = unpacked(packed["lists"], "<u2").reshape(100, 15)
    place = {row: point for point, row in enumerate(rows.tolist())}
    for point, row in enumerate(rows.tolist()):
        wanted = [place.get(other, 65535) for other in neighbors[row, :15].tolist()]
        wanted = [65535 if other == point else other for other in wanted]
        assert lists[point].tolist() == wanted


def test_beyond_the_limit_there_are_no_neighbors(summary):
    rows = np.arange(MOST_NEIGHBOR_POINTS + 1)
    many = summary | {"ids": rows, "neighbors": np.zeros((len(rows), 2), dtype=int)}
    assert pack_neighbors(many, rows) is None
    assert pack_neighbors(summary, np.arange(N)) is None
    few = pack_neighbors(many, rows[:MOST_NEIGHBOR_POINTS])
    assert unpacked(few["lists"], "<u2").size == 2 * MOST_NEIGHBOR_POINTS


# --- values ---------------------------------------------------------------------------------------


@each(
    ("column", "is_coded"),
    [
        (np.arange(N) % 256, True),
        (np.where(np.arange(N) % 7, np.arange(N) % 255, np.nan), True),
        (np.full(N, 3.25), True),
        (np.full(N, np.nan), True),
        (np.random.default_rng(0).normal(size=N).astype(np.float32), False),
        (1e300 * np.random.default_rng(0).normal(size=N), False),
        (np.where(np.arange(N) % 2, -1e308, 1e308), True),
        (np.arange(N) + 2.0**40, False),
    ],
)
def test_small_tables_keep_their_numbers(column, is_coded):
    packed = pack_values({"names": ["a"], "numbers": column.astype(float)[:, None]})
    assert packed["rounded"] is False
    [found] = packed["columns"]
    assert ("levels" in found) is is_coded
    np.testing.assert_array_equal(column_values(found), column)
    assert np.isfinite([found["low"], found["high"]]).all()


def test_large_tables_are_rounded_to_levels_that_outliers_do_not_spoil(monkeypatch):
    rng = np.random.default_rng(0)
    plain, tailed = rng.normal(size=(2, 5000))
    tailed[7] = 1e12
    pixels = rng.integers(0, 256, 5000).astype(float)
    gaps = np.where(rng.random(5000) < 0.1, np.nan, plain)
    monkeypatch.setattr(viewer_data, "MOST_VALUE_BYTES", 4 * 5000)
    table = np.column_stack([plain, tailed, pixels, gaps])
    packed = pack_values({"names": list("abcd"), "numbers": table})
    assert packed["rounded"] is True
    found = [column_values(column) for column in packed["columns"]]
    assert sum(len(base64.b64decode(column["codes"])) for column in packed["columns"]) == 4 * 5000
    # Half of the levels are at equal distances over the range.
    assert np.abs(found[0] - plain).max() <= np.ptp(plain) / 127 / 2 + 1e-12
    inner = np.abs(tailed) < 1
    assert np.abs(found[1] - tailed)[inner].max() < 0.02
    assert found[1][7] == 1e12
    np.testing.assert_array_equal(found[2], pixels)
    np.testing.assert_array_equal(np.isnan(found[3]), np.isnan(gaps))


def test_huge_labels_stay_finite_numbers():
    column = pack_numbers("a", 1e308 * np.linspace(-1, 1, 50))
    assert np.isfinite(column_values(column)).all()
    assert np.isfinite([column["low"], column["high"]]).all()


def planted_columns(rng, Y, p, wanted):
    """Columns in many units, of which some follow the map."""
    numbers = rng.normal(size=(len(Y), p)) * 10.0 ** rng.integers(-3, 6, size=p)
    numbers[:, wanted] += (np.sign(Y) @ [[1.0], [-2.0]]) * numbers[:, wanted].std(axis=0)
    return numbers


def test_the_columns_that_differ_most_over_the_map_are_kept(summary, monkeypatch):
    rng = np.random.default_rng(0)
    wanted = [3, 17, 40, 41]
    numbers = planted_columns(rng, summary["maps"][0]["coordinates"] - [0, 4], 60, wanted)
    names = [f"c{place}" for place in range(60)]
    summary |= {"values": {"names": names, "numbers": numbers}}
    monkeypatch.setattr(viewer_data, "MOST_COLUMNS", 4)
    packed = pack_page(summary)
    assert [column["name"] for column in packed["values"]["columns"]] == [f"c{j}" for j in wanted]
    assert packed["values"]["given"] == 60
    page = render(summary)
    assert "Of 60 columns the page has the 4 whose values differ most" in page
    assert "rounded" not in page.split("<script")[0]


@each("kind", ["array", "float32", "polars", "pandas", "csr", "csc"])
def test_tables_of_every_kind_give_the_same_columns(summary, monkeypatch, kind):
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 3, size=(N, 12)) * (rng.random((N, 12)) < 0.3) * 1.0
    numbers[:100, 5] += 4
    names = [f"c{place}" for place in range(12)]
    frames = {
        "array": lambda: numbers,
        "float32": lambda: np.asfortranarray(numbers.astype(np.float32)),
        "polars": lambda: pl.DataFrame(numbers, schema=names),
        "pandas": lambda: pd.DataFrame(numbers, columns=names),
        "csr": lambda: sparse.csr_array(numbers),
        "csc": lambda: sparse.csc_matrix(numbers),
    }
    table = frames[kind]()
    monkeypatch.setattr(viewer_data, "MOST_COLUMNS", 3)
    for rows in (np.arange(N), np.arange(5, 80)):
        found = chosen_values(summary | {"values": {"names": names, "numbers": table}}, rows)
        usual = chosen_values(summary | {"values": {"names": names, "numbers": numbers}}, rows)
        assert found.values["names"] == usual.values["names"]
        assert "c5" in found.values["names"]
        np.testing.assert_array_equal(found.values["numbers"], usual.values["numbers"])


def test_frames_give_their_columns_of_numbers_only(summary):
    frame = pd.DataFrame(
        {
            "a": np.arange(N),
            "text": ["x"] * N,
            "b": pd.array([None, *range(N - 1)], dtype="Int64"),
            "flag": [True, False] * (N // 2),
            "type": np.arange(N),  # is a label, too
        }
    )
    for table in (frame, pl.from_pandas(frame)):
        found = chosen_values(
            summary | {"values": {"names": list(frame), "numbers": table}}, np.arange(N)
        )
        assert found.values["names"] == ["a", "b", "flag"]
        assert np.isnan(found.values["numbers"][0, 1])
        assert found.values["numbers"][3].tolist() == [3, 2, 0]


def test_a_million_rows_are_not_copied(summary):
    n, p = 1_000_000, 784
    rng = np.random.default_rng(0)
    table = np.broadcast_to(rng.normal(size=p).astype(np.float32), (n, p))
    entry = summary["maps"][0] | {"coordinates": rng.normal(size=(n, 2))}
    many = summary | {"ids": range(n), "maps": [entry], "labels": {}}
    many["values"] = {"names": [f"pixel{j}" for j in range(p)], "numbers": table}
    rows = np.sort(rng.choice(n, 100_000, replace=False))
    tracemalloc.start()
    found = chosen_values(many, rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.values["numbers"].shape == (100_000, 80)  # 8 MB of one byte each
    assert peak < 200e6  # the table would be 3.1 GB


# --- images ---------------------------------------------------------------------------------------


def cut_out(packed, place):
    """The thumbnail at a place of the list of points."""
    sheet = base64.b64decode(packed["sheets"][place // packed["in_sheet"]])
    pixels = np.asarray(Image.open(io.BytesIO(sheet)))
    down, right = divmod(place % packed["in_sheet"], packed["across"])
    top, left = down * packed["down"], right * packed["right"]
    return pixels[top : top + packed["height"], left : left + packed["width"]]


@each("shape", [(8, 8), (28, 20), (12, 15, 3)])
def test_small_images_come_back_pixel_by_pixel(summary, shape):
    n = 3000  # several sheets of the larger ones
    pixels = np.random.default_rng(0).integers(0, 256, size=(n, *shape), dtype=np.uint8)
    packed = thumbnails.pack_images({"pixels": pixels}, np.arange(n), n)
    assert packed["kind"] == "png"
    assert packed["pixelated"] is True
    assert unpacked(packed["points"], "<u4").tolist() == list(range(n))
    assert len(packed["sheets"]) == -(-n // packed["in_sheet"])
    for place in (0, 1, 127, n // 2, n - 1):
        np.testing.assert_array_equal(cut_out(packed, place), pixels[place])


@each("shape", [(20, 20), (20, 20, 3)])
def test_too_many_bytes_become_jpeg_of_a_sample(summary, monkeypatch, shape):
    rng = np.random.default_rng(0)
    n = 8000
    shade = rng.integers(0, 256, size=n)
    pixels = np.empty((n, *shape), dtype=np.uint8)
    pixels[:] = shade.reshape(-1, *[1] * len(shape))
    pixels[:] += rng.integers(0, 12, size=pixels.shape, dtype=np.uint8)
    monkeypatch.setattr(thumbnails, "MOST_BYTES", 300_000)
    packed = thumbnails.pack_images({"pixels": pixels}, np.arange(n), n)
    points = unpacked(packed["points"], "<u4")
    assert packed["kind"] == "jpeg"
    assert packed["pictured"] == len(points) == len(set(points.tolist())) < n
    assert sum(len(base64.b64decode(sheet)) for sheet in packed["sheets"]) <= 300_000
    assert points.tolist() != sorted(points.tolist())  # a random part, not the first rows
    for place in (0, 55, len(points) - 1):  # neighbors of other shades do not bleed in
        wanted = pixels[points[place]].astype(float)
        if shade[points[place]] < 240:  # else the noise overflows
            assert np.abs(cut_out(packed, place) - wanted).max() < 40


def test_large_images_are_reduced_and_only_given_rows_have_one(summary):
    pixels = np.zeros((3, 100, 300, 3), dtype=np.uint8)
    pixels[1, :, :, 0] = 200
    images = {"pixels": pixels, "rows": np.array([4, 7, 250])}
    packed = thumbnails.pack_images(images, np.arange(5, N), N)
    assert (packed["height"], packed["width"]) == (21, 64)
    assert packed["pixelated"] is False
    assert unpacked(packed["points"], "<u4").tolist() == [2, 245]  # row 4 is not shown
    assert cut_out(packed, 0)[10, 30].tolist() == [200, 0, 0]
    page = render(summary | {"images": images})
    assert "3 points have a picture" in page
    assert thumbnails.pack_images(images, np.arange(5), N)["pictured"] == 1
    assert thumbnails.pack_images(images, np.arange(4), N) is None


def test_only_so_many_images_are_prepared_as_fit():
    rows = thumbnails.image_rows(100_000, 28, 28)
    assert 0 < len(rows) * 28 * 28 <= thumbnails.MOST_PIXELS
    assert (np.diff(rows) > 0).all()
    assert rows[-1] > 90_000
    assert thumbnails.image_rows(500, 1000, 1000).tolist() == list(range(500))


# --- the keys of the summary ----------------------------------------------------------------------

GOOD_PIXELS = np.zeros((N, 4, 4), dtype=np.uint8)


@each(
    ("part", "message"),
    [
        ({"values": {"names": ["a"]}}, "'values' lacks 'numbers'"),
        ({"values": {"names": ["a"], "numbers": np.ones((N, 2))}}, r"shape \(300, 2\).* 1 names"),
        ({"values": {"names": ["a"], "numbers": np.ones((9, 1))}}, "300 ids"),
        ({"values": {"names": ["a"], "numbers": np.full((N, 1), "x")}}, "type <U1: give numbers"),
        ({"neighbors": np.zeros(N, dtype=int)}, r"'neighbors' has shape \(300,\)"),
        ({"neighbors": np.zeros((N, 2))}, "type float64"),
        ({"neighbors": np.zeros((9, 2), dtype=int)}, "300 ids"),
        ({"neighbors": np.full((N, 2), N)}, "names row 300 in row 0, but rows are from 0 to 299"),
        ({"neighbors": np.full((N, 2), -2)}, "names row -2"),
        ({"images": {"pixels": GOOD_PIXELS.astype(float)}}, "type float64: give uint8"),
        ({"images": {"pixels": GOOD_PIXELS[:, 0]}}, r"shape \(300, 4\)"),
        ({"images": {"pixels": np.zeros((N, 4, 4, 2), np.uint8)}}, r"shape \(300, 4, 4, 2\)"),
        ({"images": {"pixels": GOOD_PIXELS[:5]}}, "5 values, but there are 300 ids"),
        ({"images": {"pixels": GOOD_PIXELS[:2], "rows": np.array([1])}}, "2 images: give the row"),
        ({"images": {"pixels": GOOD_PIXELS[:2], "rows": np.array([5, 5])}}, "ascending"),
        ({"images": {"pixels": GOOD_PIXELS[:2], "rows": np.array([5, N])}}, "from 0 to 299"),
    ],
)
def test_wrong_parts_are_named(summary, part, message):
    with pytest.raises(DataError, match=message):
        check_summary(summary | part)


def test_a_page_without_these_parts_has_nothing_of_them(summary):
    for given in (summary, summary | {"values": None, "neighbors": None, "images": None}):
        packed = pack_page(given)
        assert (packed["values"], packed["neighbors"], packed["images"]) == (None, None, None)
        assert 'id="neighbors"' not in render(given)


def test_clusters_have_the_names_of_what_they_hold(summary):
    packed = pack_page(summary)["maps"][0]
    kinds = {names[0] for names in packed["names"]}
    assert kinds == {"red", "green", "blue"}
    for number, names in enumerate(packed["names"], start=1):
        assert packed["clusters"]["names"][number - 1] == f"island {number}: {names[0]}"
        assert names[-1] == f"island {number}"


# --- where they come from -------------------------------------------------------------------------


def test_a_run_gives_the_numbers_of_its_table_before_scaling():
    from lowland.datasets import wine

    result = make_map("wine", "pca", scale="standard")
    values = result.summary()["values"]
    np.testing.assert_allclose(np.asarray(values["numbers"]), wine().X)
    assert list(values["names"])[:2] == ["alcohol", "malic_acid"]
    assert result.summary()["images"] is None
    assert values["numbers"] is result._prepared.table.features  # not copied
    assert make_map("eurodist", "classical_mds", distances=True).summary()["values"] is None


def test_a_table_of_images_gives_pictures():
    from lowland.datasets import digits

    data = digits()
    summary = make_map("digits", "pca", scale="standard", missing="mean").summary()
    images = summary["images"]
    assert images["rows"].tolist() == list(range(1797))
    wanted = np.round(data.X.reshape(-1, 8, 8) * 255 / 16).astype(np.uint8)
    assert np.abs(images["pixels"].astype(int) - wanted).max() <= 1
    packed = pack_page(summary)
    assert len(packed["values"]["columns"]) == 64
    # "This pixel is high" does not describe an island for a reader.
    texts = [name for names in packed["maps"][0]["names"] for name in names]
    assert not any("pixel" in text for text in texts)


def test_colors_of_a_folder_of_images_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, size=(30, 9, 7, 3), dtype=np.uint8)
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
    images = make_map(tmp_path, "pca").summary()["images"]
    np.testing.assert_array_equal(images["pixels"], pixels)


@each("kind", ["array", "frame", "sparse", "distances", "text"])
def test_a_report_about_any_map_has_the_numbers_of_its_data(monkeypatch, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    given = {
        "array": X,
        "frame": pd.DataFrame(X, columns=["one", "two", "three"]),
        "sparse": sparse.csr_array(X),
        "distances": np.abs(X[:, :1] - X[:, :1].T),
        "text": X.astype(object),
    }[kind]
    seen = []
    monkeypatch.setattr(
        "lowland.report.foreign.render", lambda summary: seen.append(summary) or "page"
    )
    make_report(given, X[:, :2], metric="precomputed" if kind == "distances" else "euclidean")
    values = seen[0]["values"]
    if kind in ("distances", "text"):
        assert values is None
        return
    check_summary(seen[0])
    names = {"frame": ["one", "two", "three"]}.get(kind, ["column 0", "column 1", "column 2"])
    assert values["names"] == names
    np.testing.assert_array_equal(chosen_values(seen[0], np.arange(40)).values["numbers"], X)
