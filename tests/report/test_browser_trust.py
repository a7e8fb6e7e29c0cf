"""The trust part of the page in a real browser: arrows, square legend, islands, small maps."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from report import test_browser as pages
from support.trust_case import make_coordinates, make_plateau, make_trust

open_page = pages.open_page
N = 200
# The panels of the page by what they show, and the pixels of their two canvases.
PANEL = """
    const frameOf = (figure) => document.querySelector(figure).querySelector(".canvas");
    const pixelsOf = (figure, layer) => {
      const canvas = frameOf(figure).querySelectorAll("canvas")[layer];
      const copy = new OffscreenCanvas(canvas.width, canvas.height);
      const context = copy.getContext("2d", { willReadFrequently: true });
      context.drawImage(canvas, 0, 0);
      return context.getImageData(0, 0, canvas.width, canvas.height);
    };
"""
# Share of the way between two places (shares of the panel) that is painted over, with an opacity
# above the least; a thin line may be one pixel beside the way.
PAINTED = """([figure, from, to, least]) => {
    PANEL
    const { data, width, height } = pixelsOf(figure, 1);
    let [painted, steps] = [0, 400];
    for (let step = 0; step <= steps; step++) {
      const [x, y] = [0, 1].map((axis) => from[axis] + ((to[axis] - from[axis]) * step) / steps);
      const [left, top] = [Math.floor(x * width), Math.floor(y * height)];
      const at = (right, down) => data[4 * ((top + down) * width + left + right) + 3] > least;
      painted += at(0, 0) || at(-1, 0) || at(1, 0) || at(0, -1) || at(0, 1) ? 1 : 0;
    }
    return painted / (steps + 1);
}""".replace("PANEL", PANEL)
# Number of clearly visible points' pixels, and their mean color.
POINTS = """(figure) => {
    PANEL
    const { data } = pixelsOf(figure, 0);
    let [n, color] = [0, [0, 0, 0]];
    for (let at = 0; at < data.length; at += 4) {
      if (data[at + 3] < 128) continue;
      n++;
      for (let c = 0; c < 3; c++) color[c] += data[at + c];
    }
    return { n, color: color.map((sum) => sum / n) };
}""".replace("PANEL", PANEL)
SQUARE, GRAPH, MAP = "[data-trust=square]", "[data-trust=islands]", "#map .panel"


@pytest.fixture
def checked(summary):
    return check(summary, make_coordinates(N))


def check(summary, Y, misplaced=4):
    summary |= {
        "ids": [f"row {i}" for i in range(N)],
        "labels": {"half": np.array(["left", "right"])[(np.arange(N) // 50 > 1).astype(int)]},
        "color": "half",
    }
    summary["maps"][0] |= {
        "coordinates": Y,
        "per_point": {},
        "trust": make_trust(Y, misplaced=misplaced),
        "plateau": make_plateau(Y),
    }
    return summary


def on_panel(places, of, box=None):
    """Places of a map as shares of its panel: x from the left, y from the top."""
    size = np.array([1.0, 1.0] if box is None else [box["width"], box["height"]])
    middle = (of.min(axis=0) + of.max(axis=0)) / 2
    extent = np.abs(of - middle).max(axis=0)
    pixels = 0.92 * (size / (2 * extent)).min()  # of one unit
    return (0.5 + pixels * (np.atleast_2d(places) - middle) / size * [1, -1]).tolist()


def painted(page, figure, start, end, least=128):
    pages.settle(page)
    return page.evaluate(PAINTED, [figure, start, end, least])


def points(page, figure):
    pages.settle(page)
    return page.evaluate(POINTS, figure)


def selected(page):
    return page.locator("#selected").inner_text()


def screen(page, figure, place):
    page.locator(figure).scroll_into_view_if_needed()
    box = page.locator(f"{figure} .canvas").bounding_box()
    return box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"]


@pytest.mark.smoke
def test_arrows_lead_home_and_can_be_switched(open_page, summary):
    Y = make_coordinates(N, misplaced=1)
    page = open_page(check(summary, Y, misplaced=1))
    trust = summary["maps"][0]["trust"]
    (row,) = trust.worst()
    (start,), (home,) = on_panel(Y[row], Y), on_panel(trust.points.home[row], Y)
    middle = [(a + b) / 2 for a, b in zip(start, home, strict=True)]
    assert painted(page, SQUARE, start, home) > 0.9
    assert painted(page, SQUARE, on_panel([0, -5], Y)[0], on_panel([0, 5], Y)[0]) == 0
    # The head is at home: there the arrow is broader than at its middle.
    across = [[p[0] + d, p[1]] for p in (home, middle) for d in (-0.02, 0.02)]
    shift = [0, -0.012]  # within the head, from its tip towards the start
    at_head = painted(page, SQUARE, *([p[0], p[1] + shift[1]] for p in across[:2]))
    assert at_head > 1.4 * painted(page, SQUARE, *across[2:])
    button = page.locator(f"{SQUARE} [data-arrows]")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert painted(page, SQUARE, start, home) == 0
    # On the map itself they are off at first.
    page.click("#names")  # names of islands lie over the points, too
    button = page.locator("#map [data-arrows]")
    box = page.locator(f"{MAP} .canvas").bounding_box()
    start, home = on_panel([Y[row], trust.points.home[row]], Y, box)
    assert painted(page, MAP, start, home) == 0
    button.click()
    assert painted(page, MAP, start, home) > 0.9
    # An arrow goes with its point when that is hidden.
    page.locator("#legend .entry").first.click()
    assert painted(page, MAP, start, home) == 0


def test_the_square_legend_selects_the_points_of_a_cell(open_page, checked):
    page = open_page(checked)
    cells = page.locator(f"{SQUARE} .cell")
    assert cells.count() == 25
    counts = {
        title: int(title.split(": ")[1].split()[0])
        for title in cells.evaluate_all("(cells) => cells.map((cell) => cell.title)")
    }
    assert sum(counts.values()) == N - 1  # one is not measured
    both = page.locator(f"{SQUARE} .cell").nth(4)  # above, at the right
    title = both.get_attribute("title")
    assert title == "80 to 100 % missing, 80 to 100 % strangers: 4 points"
    before = points(page, MAP)["n"]
    both.click()
    assert selected(page) == "4 of 200 points selected"
    assert page.evaluate("document.activeElement.title") == title
    assert both.get_attribute("aria-pressed") == "true"
    assert 0 < points(page, MAP)["n"] < 0.2 * before
    assert pages.near(points(page, SQUARE)["color"], (0x1C, 0x0F, 0x24))
    page.keyboard.press("Enter")  # once more: all points again
    assert page.locator("#selection").is_hidden()
    assert points(page, MAP)["n"] == before
    page.locator("[data-pick=kind]", has_text="torn").click()
    assert selected(page) == "12 of 200 points selected"
    # Missing .7, strangers .1: 3/4 of the way from the color of fine to that of torn.
    expected = 0.25 * np.array([0xCD, 0xD5, 0xDD]) + 0.75 * np.array([0x1A, 0x66, 0xC9])
    assert pages.near(points(page, SQUARE)["color"], expected)


def test_the_color_menu_offers_missing_and_kinds(open_page, checked):
    page = open_page(checked)
    options = page.locator("#color option").all_inner_texts()
    both = "missing \u00d7 strangers"
    assert options == ["half", "island", both, "kind", "stability", "one color"]
    page.select_option("#color", label=both)
    assert page.locator("#legend .cell").count() == 25
    page.locator("#legend .cell").nth(20).click()  # nothing missing, no strangers
    assert selected(page) == "171 of 200 points selected"
    assert page.evaluate("document.activeElement.closest('#legend') !== null")
    page.click("#clear")
    page.select_option("#color", label="kind")
    assert page.locator("#legend .entry").all_inner_texts() == [
        *("fine\n171", "misplaced\n4", "torn\n12", "pressed\n12", "not measured\n1")
    ]
    for entry in range(1, 5):
        page.wait_for_timeout(450)  # not a double click
        page.locator("#legend .entry").nth(entry).click()
    assert pages.near(points(page, MAP)["color"], (0xCD, 0xD5, 0xDD))


def test_the_graph_of_islands_shows_what_the_data_say_of_gaps(open_page, checked):
    page = open_page(checked)
    Y, trust = checked["maps"][0]["coordinates"], checked["maps"][0]["trust"]
    one, two, three, four = on_panel(np.array([island.center for island in trust.islands]), Y)

    def edge(start, end):
        """Without the nodes at both ends."""
        start, end = np.array(start), np.array(end)
        way = (end - start) * 0.15
        return painted(page, GRAPH, (start + way).tolist(), (end - way).tolist())

    solid, dashed, dotted, none = (
        edge(one, two),
        edge(two, three),
        edge(one, four),
        edge(three, four),
    )
    assert solid > 0.99
    assert 0.5 < dashed < 0.85  # 8 of 14 pixels, and one at each end
    assert 0.25 < dotted < 0.75  # 1.5 of 5.5
    assert none == 0
    page.locator("[data-real]").click()
    assert page.locator("[data-real]").get_attribute("aria-pressed") == "true"
    assert painted(page, GRAPH, three, four, least=20) > 0.9
    # A row of the table selects both islands; an island that holds two groups is listed.
    page.locator(".gaps [data-pick]", has_text="1 and 2").click()
    assert selected(page) == "100 of 200 points selected"
    page.locator(".merged [data-pick]", has_text="Island 3").click()
    assert selected(page) == "50 of 200 points selected"
    page.locator(".islands [data-pick]").first.click()  # the least stable one: 2
    assert selected(page) == "50 of 200 points selected"
    assert page.locator(".islands [data-pick]").first.inner_text() == "2"


def test_small_maps_share_color_hover_and_selection(open_page, checked):
    page = open_page(checked)
    other, null = "[data-part=refit-1]", "[data-part=null]"
    refit = "#stability [data-part=refit-0]"
    stability = checked["maps"][0]["trust"].stability
    assert points(page, refit)["n"] > 500
    assert pages.near(points(page, null)["color"], (0x2F, 0x6D, 0xB3))  # one color
    # Of the rows that it has, a small map shows the color, and the tip of the row.
    at = np.flatnonzero(stability.refits[0].rows == 150)[0]
    Y = stability.refits[0].coordinates
    page.mouse.move(*screen(page, refit, on_panel(Y[at], Y)[0]))
    assert page.locator("#tip .value").first.inner_text() == "row 150"
    facts = page.locator("#tip .fact").all_inner_texts()
    assert "missing\n10 %" in facts
    assert "kind\nfine" in facts
    ring = """(figure) => { PANEL return pixelsOf(figure, 1).data.some((value) => value > 0); }"""
    ring = ring.replace("PANEL", PANEL)
    assert page.evaluate(ring, refit)
    assert not page.evaluate(ring, other)  # it has only odd rows
    # No row of the data is in the map of data without structure.
    page.mouse.move(*screen(page, null, [0.5, 0.5]))
    assert page.locator("#tip").is_hidden()
    page.select_option("#color", label="kind")
    grey = (0xCD, 0xD5, 0xDD)
    assert np.abs(np.subtract(points(page, refit)["color"], grey)).max() < 40
    # A lasso around the left half of a small map selects its rows in all maps.
    page.click("#reset")
    left = screen(page, refit, [0.02, 0.02]), screen(page, refit, [0.5, 0.98])
    page.keyboard.down("Shift")
    page.mouse.move(*left[0])
    page.mouse.down()
    for x, y in ((1, 0), (1, 1), (0, 1), (0, 0)):
        page.mouse.move(left[x][0], left[y][1], steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    expected = int((Y[:, 0] < (Y[:, 0].min() + Y[:, 0].max()) / 2).sum())
    assert selected(page) == f"{expected} of 200 points selected"
    page.focus(f"{refit} .canvas")
    page.keyboard.press("Escape")
    assert page.locator("#selection").is_hidden()


@pytest.mark.parametrize("webgl", [True, False])
def test_arrows_and_graph_turn_with_a_map_of_three_dimensions(open_page, summary, webgl):
    page = open_page(check(summary, make_coordinates(N, 3)), webgl=webgl)
    overlay = """(figure) => {
        PANEL
        const { data, width } = pixelsOf(figure, 1);
        const places = [];
        for (let at = 3; at < data.length; at += 4) if (data[at] > 128) places.push(at >> 2);
        return places;
    }""".replace("PANEL", PANEL)
    for figure in (SQUARE, GRAPH):
        page.focus(f"{figure} .canvas")  # into the window: panels out of sight are painted later
        pages.settle(page)
        before = page.evaluate(overlay, figure)
        assert len(before) > 200
        for _ in range(8):
            page.keyboard.press("ArrowLeft")
        pages.settle(page)
        after = page.evaluate(overlay, figure)
        # arrows, edges and texts have moved: hardly any of them covers what it covered before
        assert len(set(before) & set(after)) < 0.5 * len(before)
        page.keyboard.press("0")
        pages.settle(page)
        assert page.evaluate(overlay, figure) == before
    assert points(page, "[data-part=plateau-2]")["n"] > 300


def test_a_map_of_one_dimension_has_level_arrows_and_arched_edges(open_page, summary):
    Y = make_coordinates(N, 1)
    page = open_page(check(summary, Y))
    ink = """(figure) => {
        PANEL
        const { data, width, height } = pixelsOf(figure, 1);
        const rows = new Set();
        for (let at = 3; at < data.length; at += 4) {
          if (data[at] > 128) rows.add(Math.floor((at >> 2) / width));
        }
        return [Math.min(...rows) / height, Math.max(...rows) / height];
    }""".replace("PANEL", PANEL)
    top, bottom = page.evaluate(ink, GRAPH)
    assert top < 0.15  # the arch of the longest edge
    assert 0.5 < bottom < 0.7  # the nodes stand in the middle
    top, bottom = page.evaluate(ink, SQUARE)
    assert 0.2 < top < bottom < 0.8


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_verdict_and_needs_no_sideways_scrolling(open_page, checked, scheme):
    second = copy.deepcopy(checked["maps"][0]) | {"title": "again"}
    checked["maps"].append(second)
    page = open_page(checked, viewport={"width": 400, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    verdict = page.locator("#verdict")
    assert verdict.bounding_box()["y"] < 200
    assert verdict.locator("summary").count() == 2
    assert not verdict.locator("li").first.is_visible()
    verdict.locator("summary").first.click()
    assert verdict.locator("li").first.is_visible()
    # Paper shows everything.
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert all(item.is_visible() for item in verdict.locator("li").all())
    assert page.locator(".gaps").first.is_visible()
    assert not page.locator("[data-arrows]").first.is_visible()
