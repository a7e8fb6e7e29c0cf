"""Touching the map in a real browser: neighbors, selection, names and pictures.

One page of three groups in three maps serves most tests; each leaves it as it found it.
"""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from lowland.report import write_report
from lowland.tables import read_table
from report import test_browser as pages
from report.conftest import make_map

open_page = pages.open_page
HOSTILE = pages.HOSTILE
FORMULA = "=1+cmd|' /C calc'!A0"
N, GROUP = 180, 60  # all points of the own group are among the 75 nearest
MINUS = "\u2212"
GREEN, RED = (0x14, 0x80, 0x3C), (0xC8, 0x20, 0x1F)
# The number of pixels of the highlights of a panel that are near a color.
NEAR_COLOR = """([panel, color]) => {
    PIXELS
    const pixels = pixelsOf(canvasOf(panel, 1));
    let count = 0;
    for (let at = 0; at < pixels.length; at += 4) {
      const far = color.some((value, channel) => Math.abs(value - pixels[at + channel]) > 30);
      if (pixels[at + 3] > 120 && !far) count++;
    }
    return count;
}""".replace("PIXELS", pages.PIXELS)
SHADE = """(canvas) => canvas.getContext("2d").getImageData(3, 3, 1, 1).data[0]"""


def make_summary():
    """Three groups of 60 points, far from each other, with columns of all kinds of numbers."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], GROUP)
    Y = np.array([[-10.0, 0.0], [10.0, 0.0], [0.0, 14.0]])[group] + 1.5 * rng.normal(size=(N, 2))
    start = GROUP * group + np.arange(N) % GROUP
    # The next rows of the same group; the first five rows have one in the second group.
    neighbors = GROUP * group[:, None] + (start[:, None] + 1 + np.arange(6)) % GROUP
    neighbors[:5, 2] = 80
    neighbors[7, 5] = -1
    numbers = rng.normal(size=(N, 40)) * 0.01 + np.arange(40)
    numbers[group == 1, 3] += 7.0
    numbers[group == 1, 8] -= 0.05
    numbers[:, 5] = 1e300 * rng.normal(size=N)
    numbers[:, 6] = np.nan
    numbers[:, 7] = 3.0
    numbers[::4, 9] = np.nan
    names = [f"column {j}" for j in range(40)]
    names[3], names[10], names[11] = HOSTILE, "=SUM(A1)", "x"
    pixels = np.empty((N, 8, 8), dtype=np.uint8)
    pixels[:] = (np.arange(N) % 250)[:, None, None]
    maps = [
        make_map(Y + 100, rng),
        make_map(Y @ [[0.0, 1.0], [-1.0, 0.0]], rng, title="turned"),
        make_map(np.column_stack([Y, rng.normal(size=N)]), rng, title="space"),
    ]
    for entry in maps:
        entry["per_point"] = {}
    return {
        "title": "three groups",
        "version": "0.1.0",
        "created": "2026-11-16T12:00:00",
        "command": "lowland map",
        "input": {"source": "groups", "rows": N, "columns": 40, "features": None},
        "preparation": [],
        "dropped_rows": [],
        "ids": [*(f"row {i}" for i in range(N - 1)), FORMULA],
        "labels": {
            "group": np.array(["left", HOSTILE, "top"])[group],
            "size": np.arange(N) / 7,
            "code": [f"code {i}" for i in range(N)],
            "note": [None, "-1.5", 'say "no", twice', *["=A1"] * (N - 3)],
        },
        "maps": maps,
        "color": "group",
        "values": {"names": names, "numbers": numbers},
        "neighbors": neighbors,
        "images": {"pixels": pixels},
    }


@pytest.fixture(scope="module")
def summary():
    return make_summary()


@pytest.fixture(scope="module")
def opened(browser, summary, tmp_path_factory):
    path = tmp_path_factory.mktemp("touch") / "report.html"
    write_report(summary, path)
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    pages.settle(page)
    yield page
    page.close()
    assert complaints == []


@pytest.fixture
def page(opened):
    """The page with nothing selected, pinned or hidden; a test may leave it in any state."""
    find(opened, "nowhere at all")  # an empty field that is emptied tells the page nothing
    find(opened, "")
    opened.click("#reset")
    opened.select_option("#color", label="group")
    opened.mouse.move(5, 5)
    return opened


def find(page, text):
    page.locator("#find").fill(text)
    page.locator("#find").press("Enter")
    pages.settle(page)


def colored(page, color, panel=0):
    pages.settle(page)
    return page.evaluate(NEAR_COLOR, [panel, list(color)])


def texts_of(rows):
    return [[cell.strip() for cell in row.locator("td").all_inner_texts()] for row in rows.all()]


def neighbor_rows(page):
    return texts_of(page.locator("#neighbors tbody tr"))


def chosen_rows(page):
    return texts_of(page.locator("#rows tbody tr"))


def bars(page):
    """Name, side, number and means of each bar."""
    return [
        (
            bar.locator(".name").inner_text(),
            bar.locator("i").get_attribute("class"),
            bar.locator(".value").inner_text(),
            bar.locator(".means").inner_text(),
        )
        for bar in page.locator("#apart .bar").all()
    ]


# --- neighbors ------------------------------------------------------------------------------------


def test_a_clicked_point_has_lines_to_its_neighbors_in_every_map(page):
    for panel in range(3):
        assert [colored(page, color, panel) for color in (GREEN, RED)] == [0, 0]
    assert page.locator("#neighbors").inner_text() == ""
    find(page, "row 2")
    page.click("#clear")
    for panel in range(3):
        assert colored(page, GREEN, panel) > 20
        assert colored(page, RED, panel) > 60  # across the map
    find(page, "row 10")
    for panel in range(3):
        assert colored(page, GREEN, panel) > 20
        assert colored(page, RED, panel) == 0
    box = page.locator(".canvas").first.bounding_box()
    page.mouse.click(box["x"] + 4, box["y"] + 4)  # no point is there
    assert colored(page, GREEN) == 0
    assert page.locator("#neighbors").inner_text() == ""
    group = pages.quarters(page)[2]
    page.mouse.click(group["x"], group["y"])
    assert colored(page, GREEN) > 20
    assert page.locator("#details .value").nth(1).inner_text() == "left"


def test_no_line_leads_to_a_hidden_point(page):
    find(page, "row 2")
    entry = page.locator("#legend .entry", has_text="script")
    entry.click()
    assert colored(page, RED) == 0
    assert colored(page, GREEN) > 20
    page.wait_for_timeout(450)
    entry.click()
    assert colored(page, RED) > 60


def test_the_table_of_neighbors_has_the_ranks_in_the_data_and_in_the_maps(page, summary):
    find(page, "row 2")
    head = page.locator("#neighbors thead th").all_inner_texts()
    assert head[2:] == ["id", "t-SNE", "turned", "space", "group", "size", "code", "note"]
    rows = neighbor_rows(page)
    assert [row[0] for row in rows] == list("123456")
    assert [row[2] for row in rows] == ["row 3", "row 4", "row 80", "row 6", "row 7", "row 8"]
    assert rows[2][6] == HOSTILE
    listed = [3, 4, 80, 6, 7, 8]
    for number, entry in enumerate(summary["maps"]):
        far = np.linalg.norm(entry["coordinates"] - entry["coordinates"][2], axis=1)
        ranks = [int((far < far[other]).sum()) for other in listed]  # the point itself is nearer
        assert [int(row[3 + number]) for row in rows] == ranks
        marks = [
            cell.get_attribute("class")
            for cell in page.locator(f"#neighbors td:nth-child({4 + number})").all()
        ]
        assert marks == [f"number {'near' if rank <= 75 else 'torn'}" for rank in ranks]
        assert marks[2] == "number torn"
        torn = sum(rank > 75 for rank in ranks)
        said = page.locator("#neighbors .said").nth(number).inner_text()
        assert said == f"{entry['title']}: {6 - torn} near in the map, {torn} torn away"
    find(page, "row 7")
    assert len(neighbor_rows(page)) == 5  # the sixth is none


def test_a_row_of_the_table_pins_that_neighbor(page):
    find(page, "row 2")
    page.locator("#neighbors tbody tr").nth(1).click()
    assert page.locator("#details .value").first.inner_text() == "row 4"
    assert neighbor_rows(page)[0][2] == "row 5"
    page.locator("#neighbors tbody button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#details .value").first.inner_text() == "row 5"


# --- pictures -------------------------------------------------------------------------------------


def test_pictures_are_in_the_tip_the_details_and_the_tables(page):
    find(page, "row 2")
    page.wait_for_timeout(200)  # the sheet is decoded
    assert page.locator("#details canvas").evaluate(SHADE) == 2
    shades = [canvas.evaluate(SHADE) for canvas in page.locator("#neighbors td canvas").all()]
    assert shades == [3, 4, 80, 6, 7, 8]
    assert [canvas.evaluate(SHADE) for canvas in page.locator("#rows td canvas").all()] == [2]
    group = pages.quarters(page)[2]
    page.mouse.move(group["x"], group["y"])
    number = int(page.locator("#tip .value").first.inner_text().removeprefix("row "))
    assert page.locator("#tip canvas").evaluate(SHADE) == number % 250
    style = page.locator("#tip canvas").evaluate(
        "(c) => [getComputedStyle(c).imageRendering, c.clientHeight, c.getAttribute('aria-label')]"
    )
    assert style == ["pixelated", 64, f"picture of row {number}"]


# --- selection ------------------------------------------------------------------------------------


def test_what_sets_a_selection_apart_is_computed_from_the_columns(page, summary):
    find(page, "document.title")  # the second group
    found = bars(page)
    assert len(found) == 12
    numbers = summary["values"]["numbers"]
    inside, outside = numbers[GROUP : 2 * GROUP], np.delete(numbers, np.s_[GROUP : 2 * GROUP], 0)

    def standardized(j):
        within = [((len(part) - 1) * part[:, j].var(ddof=1)) for part in (inside, outside)]
        return (inside[:, j].mean() - outside[:, j].mean()) / np.sqrt(sum(within) / (N - 2))

    assert found[0] == (f"group: {HOSTILE}", "higher", "+∞", "100 % against 0 %")
    assert found[1][:3] == (HOSTILE, "higher", f"+{standardized(3):.0f}")
    means = f"{inside[:, 3].mean():.4g} against {outside[:, 3].mean():.4g}"
    assert found[1][3] == means
    assert found[2][:3] == ("column 8", "lower", f"{MINUS}{-standardized(8):.2f}")
    names = [name for name, *_ in found]
    assert not {"column 6", "column 7", "code"} & set(names)  # no values, one value, an id
    assert page.locator("#apart .bar").nth(1).get_attribute("title").startswith(HOSTILE)
    widths = [bar.bounding_box()["width"] for bar in page.locator("#apart i").all()]
    assert widths[0] == pytest.approx(widths[2], abs=1)  # 4 deviations and more fill a side
    assert widths[3] == pytest.approx(widths[0] * 0.5 / np.sqrt(30 / (N - 2)) / 4, abs=1.5)
    pale = page.locator("#apart .pale .name").all_inner_texts()
    assert pale == names[5:]  # nothing was planted in these
    assert page.locator("script").count() == 2


def test_one_point_and_all_points_can_be_selected(page):
    find(page, "row 2")
    assert page.locator("#selected").inner_text() == "1 of 180 points selected"
    assert "Pale" in page.locator("#apart-note").inner_text()
    assert len(bars(page)) == 12
    assert not any("NaN" in text for bar in bars(page) for text in bar)
    assert len(chosen_rows(page)) == 1
    find(page, "code")  # every row has it
    assert page.locator("#selected").inner_text() == "180 of 180 points selected"
    assert "no rest to compare with" in page.locator("#apart-note").inner_text()
    assert bars(page) == []
    assert [row[1] for row in chosen_rows(page)] == [f"row {i}" for i in range(60)]
    page.locator("#rows").evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    page.wait_for_timeout(100)
    assert [row[1] for row in chosen_rows(page)] == [f"row {i}" for i in range(120)]
    page.click("#clear")
    assert page.locator("#chosen").is_hidden()
    find(page, "nowhere at all")
    assert page.locator("#chosen").is_hidden()
    assert page.locator("#selected").inner_text() == "0 of 180 points selected"


def test_the_table_of_selected_rows_is_sorted_and_grows(page, summary):
    find(page, "document.title")
    head = page.locator("#rows thead th").all_inner_texts()
    assert head[1:7] == ["id", "group", "size", "code", "note", HOSTILE]
    assert head[7] == "column 8"  # what differs most comes first
    assert len(head) == 1 + 5 + 30
    assert page.locator("#rows-note").inner_text() == "30 of 40 columns; the exported file has all."
    assert [row[1] for row in chosen_rows(page)] == [f"row {i}" for i in range(60, 120)]
    heading = page.locator("#rows thead button", has_text="size")
    for order in ("ascending", "descending"):
        heading.click()
        cell = page.locator("#rows thead th").nth(3)
        assert cell.get_attribute("aria-sort") == order
        first = chosen_rows(page)[0][1]
        assert first == {"ascending": "row 60", "descending": "row 119"}[order]
    page.locator("#rows tbody tr").nth(3).click()
    pinned = page.locator("#details .value").first.inner_text()
    assert pinned == chosen_rows(page)[3][1]


def test_ids_are_sorted_by_their_numbers_and_missing_labels_come_last(page):
    find(page, "row 1")  # exactly this one
    find(page, "code 1")  # 1, 10 to 19, 100 to 179
    page.locator("#rows thead button", has_text="id").first.click()
    assert [row[1] for row in chosen_rows(page)][:3] == [FORMULA, "row 1", "row 10"]
    find(page, "code")
    for _ in range(2):
        page.locator("#rows thead button", has_text="note").click()
        assert chosen_rows(page)[0][5] != "missing"


@pytest.mark.smoke
def test_the_exported_file_has_all_columns_and_runs_nothing(page, summary, tmp_path):
    find(page, "code")
    with page.expect_download() as download:
        page.click("#export")
    path = tmp_path / "selection.csv"
    download.value.save_as(path)
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
    head = rows[0]
    places = [
        f"{title} {axis}"
        for title, axes in zip(["t-SNE", "turned", "space"], ["xy", "xy", "xyz"], strict=True)
        for axis in axes
    ]
    assert head[:1] == ["id"]
    assert head[1:8] == places
    assert head[8:12] == ["group", "size", "code", "note"]
    assert head[12:52] == [
        f"'{name}" if name[0] == "=" else name for name in summary["values"]["names"]
    ]
    assert head[52:54] == ["t-SNE island", "t-SNE island name"]
    assert len(rows) == 1 + N
    assert rows[-1][0] == f"'{FORMULA}"
    assert rows[1][11] == ""  # missing
    assert rows[2][11] == "-1.5"  # a number in a text is harmless
    assert rows[3][11] == 'say "no", twice'
    assert rows[4][11] == "'=A1"
    for place, entry in ((1, summary["maps"][0]), (5, summary["maps"][2])):
        exported = np.array([row[place : place + 2] for row in rows[1:]], dtype=float)
        np.testing.assert_allclose(exported, entry["coordinates"][:, :2], rtol=2e-6, atol=2e-6)
    values = np.array([[cell or "nan" for cell in row[12:52]] for row in rows[1:]], dtype=float)
    wanted = summary["values"]["numbers"]
    np.testing.assert_allclose(values, wanted, rtol=2**-23)  # of 4 bytes
    assert [row[53] for row in rows[1:4]] == ["left"] * 3
    again = read_table(path, id_column="id", columns=["size"])  # reading undoes the apostrophes
    assert again.ids[-1] == FORMULA
    assert again.labels["note"][5] == "=A1"


def test_what_the_legend_shows_can_be_selected(page):
    button = page.locator("#select-shown")
    assert button.is_hidden()
    page.locator("#legend .entry").first.dblclick()
    assert button.is_visible()
    button.click()
    assert page.locator("#selected").inner_text() == "60 of 180 points selected"
    assert bars(page)[0][3] == "100 % against 0 %"


def test_the_map_can_be_colored_by_a_column(page):
    names = page.locator("#color optgroup option").all_inner_texts()
    assert len(names) == 40
    page.select_option("#color", label="column 8")
    ends = [float(text) for text in page.locator("#legend .ends span").all_inner_texts()]
    assert 7.9 < ends[0] < ends[2] < 8.1
    page.select_option("#color", label="column 6")  # no value at all
    assert pages.near(pages.quarters(page)[2]["color"], (0xB9, 0xC0, 0xC8))


def test_values_of_a_point_unfold_in_its_details(page):
    find(page, "row 4")
    page.locator("#details summary").click()
    facts = page.locator("#details details .fact").all_inner_texts()
    assert len(facts) == 40
    assert facts[6] == "column 6\nmissing"
    assert facts[7] == "column 7\n3"


# --- names ----------------------------------------------------------------------------------------


def written(page, panel=0):
    pages.settle(page)
    return page.locator(".canvas").nth(panel).get_attribute("data-names").split("|")


def test_islands_have_names_that_can_be_put_away(page):
    for panel in range(3):
        assert sorted(written(page, panel)) == sorted(["left", HOSTILE[:19] + "…", "top"])
    before = page.evaluate(NEAR_COLOR, [0, [0x1D, 0x24, 0x30]])
    assert before > 100  # ink
    page.click("#names")
    pages.settle(page)
    assert page.locator("#names").get_attribute("aria-pressed") == "false"
    assert page.evaluate(NEAR_COLOR, [0, [0x1D, 0x24, 0x30]]) == 0
    page.click("#names")
    pages.settle(page)
    assert page.evaluate(NEAR_COLOR, [0, [0x1D, 0x24, 0x30]]) == before
    group = pages.quarters(page)[2]
    page.mouse.move(group["x"] - 15, group["y"] - 15)
    page.mouse.wheel(0, -1000)
    assert written(page) == ["left"]  # although its middle is out of sight
    page.click("#reset")
    page.locator("#legend .entry", has_text="left").click()
    assert "left" not in written(page)  # nothing of it is shown
    page.wait_for_timeout(450)
    page.locator("#legend .entry", has_text="left").click()
    assert "left" in written(page)


def test_more_names_appear_by_zoom(open_page, summary):
    rng = np.random.default_rng(1)
    places = np.array([(x, y) for x in range(7) for y in range(7)], dtype=float)
    group = np.repeat(np.arange(49), 80)
    Y = places[group] + 0.06 * rng.normal(size=(len(group), 2))
    label = [f"a rather long name {number}" for number in group]
    crowd = make_map(Y, rng) | {"per_point": {}}
    page = open_page(
        summary
        | {"ids": np.arange(len(group)), "labels": {"name": label}, "maps": [crowd], "color": None}
        | {"values": None, "neighbors": None, "images": None},
        viewport={"width": 700, "height": 800},
    )
    at_first = written(page)
    assert 5 < len(at_first) < 30
    box = page.locator(".canvas").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, -800)
    zoomed = written(page)
    assert set(zoomed) - set(at_first)
    near = np.abs(places - 3).max(axis=1) <= 0.5  # the middle of the map is in view
    assert {f"a rather long name {number}" for number in np.flatnonzero(near)} <= set(zoomed)


def test_one_island_needs_no_name(open_page, summary):
    rng = np.random.default_rng(1)
    one = make_map(rng.normal(size=(N, 2)), rng) | {"per_point": {}}
    page = open_page(summary | {"maps": [one], "images": None, "neighbors": None, "values": None})
    assert page.locator("#names").is_hidden()
    assert page.locator("#color optgroup").count() == 0


def test_lines_go_around_a_torus(open_page, summary):
    rng = np.random.default_rng(0)
    Y = rng.uniform(0.0, 1.0, size=(N, 2))
    Y[0], Y[1] = (0.01, 0.5), (0.99, 0.5)
    neighbors = np.full((N, 1), -1)
    neighbors[0] = 1
    torus = make_map(Y, rng) | {"per_point": {}, "sides": [1.0, 1.0]}
    page = open_page(summary | {"maps": [torus], "neighbors": neighbors, "images": None})
    find(page, "row 0")
    assert page.locator("#neighbors .said").inner_text() == "1 near in the map"
    assert colored(page, RED) == 0
    assert 0 < colored(page, GREEN) < 150  # a short line, not one across the map


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_it_without_sideways_scrolling(open_page, summary, scheme):
    page = open_page(summary, viewport={"width": 400, "height": 800}, color_scheme=scheme)
    find(page, "row 2")
    assert page.locator("#neighbors").is_visible()
    assert page.locator("#rows").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
