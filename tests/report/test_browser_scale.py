"""Contours, filters and many points, in a real browser."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from report import test_browser as pages

PIXELS, circle, quarters, settle = pages.PIXELS, pages.circle, pages.quarters, pages.settle
open_page = pages.open_page  # fixtures

# Pixels of the overlay of the first panel that are painted.
OVERLAID = """() => {
    PIXELS
    return pixelsOf(canvasOf(0, 1)).filter((value, at) => at % 4 === 3 && value > 60).length;
}""".replace("PIXELS", PIXELS)
# How dark the lines are: the mean of red where the overlay is nearly opaque.
LINE_COLOR = """() => {
    PIXELS
    const pixels = pixelsOf(canvasOf(0, 1));
    let [sum, count] = [0, 0];
    for (let at = 0; at < pixels.length; at += 4) {
      if (pixels[at + 3] > 200) [sum, count] = [sum + pixels[at], count + 1];
    }
    return sum / count;
}""".replace("PIXELS", PIXELS)

# The browser of the tests has no graphics card; with this the page believes that it has.
WITH_A_CARD = """
    const original = WebGLRenderingContext.prototype.getParameter;
    WebGLRenderingContext.prototype.getParameter = function (name) {
      const found = original.call(this, name);
      return typeof found === "string" && found.includes("SwiftShader") ? "a card" : found;
    };
"""


@pytest.fixture
def ring(summary):
    """300 points: 200 in the left half, 100 in the right; numbers, days, times and groups."""
    rng = np.random.default_rng(1)
    side = np.repeat([0, 1], [200, 100])
    Y = np.column_stack([10.0 * side, np.zeros(300)]) + rng.normal(size=(300, 2))
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=k) for k in range(300)]
    size = np.arange(300) / 10
    size[250:] = np.nan
    clock = [f"2024-05-01T10:{k // 60:02}:{k % 60:02}" for k in range(300)]
    summary["labels"] = {
        "half": np.array(["left", "right"])[side],
        "size": size,
        "day": days,
        "clock": clock,
        "third": list("abc") * 100,
    }
    summary["maps"][0]["coordinates"] = Y
    return summary


def shown(page):
    settle(page)
    state = page.locator("#filter-count")
    return state.inner_text() if state.is_visible() else "all"


def legend(page):
    return dict(text.split("\n") for text in page.locator("#legend .entry").all_inner_texts())


def brush(page, start, end, number=0):
    """Drag over a histogram, from one share of its width to another."""
    histogram = page.locator(".histogram").nth(number)
    histogram.scroll_into_view_if_needed()
    box = histogram.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], y, steps=4)
    page.mouse.up()
    settle(page)


def bounds(page, name):
    return [page.get_by_label(f"{name}, {side}").input_value() for side in ("from", "to")]


def test_contours_appear_follow_the_filter_and_go(open_page, ring):
    page = open_page(ring)
    page.click("#names")  # names of islands lie over the points, too
    settle(page)
    assert page.evaluate(OVERLAID) == 0
    page.click("#contours")
    settle(page)
    both = page.evaluate(OVERLAID)
    assert both > 500
    assert "10, 25, 50, 75 and 95 %" in page.locator("#contours-note").inner_text()
    page.locator("#legend .entry").nth(1).click()  # without the right half
    settle(page)
    left = page.evaluate(OVERLAID)
    assert 100 < left < both
    page.click("#contours")
    settle(page)
    assert page.evaluate(OVERLAID) == 0
    assert page.locator("#contours-note").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contours_are_drawn_in_the_ink_of_the_page(open_page, ring, scheme):
    page = open_page(ring, color_scheme=scheme)
    page.click("#contours")
    settle(page)
    assert (page.evaluate(LINE_COLOR) > 128) is (scheme == "dark")


def test_contours_enclose_their_share_of_the_points(open_page, ring):
    """Points of one round cloud: 95 % lie within 2.45 standard deviations, 50 % within 1.18."""
    Y = np.random.default_rng(0).normal(size=(40_000, 2))
    n = len(Y)
    ring |= {"ids": np.arange(n), "labels": {}}
    ring["maps"][0] |= {"coordinates": Y, "per_point": {}}
    page = open_page(ring)
    page.click("#contours")
    settle(page)
    radii = page.evaluate(
        """() => {
        PIXELS
        const canvas = canvasOf(0, 1);
        const pixels = pixelsOf(canvas);
        const [w, middle] = [canvas.width, Math.round(canvas.height / 2)];
        const dark = [];
        for (let x = 0; x < w; x++) {
          const at = 4 * (middle * w + x);
          if (pixels[at + 3] * (255 - pixels[at]) > 255 * 50) dark.push(x);
        }
        return dark;
    }""".replace("PIXELS", PIXELS)
    )
    lines = [
        group.mean() for group in np.split(np.array(radii), np.flatnonzero(np.diff(radii) > 2) + 1)
    ]
    assert len(lines) == 10  # five lines, left and right of the middle
    half_widths = (np.array(lines[5:]) - np.array(lines[4::-1])) / 2
    expected = np.sqrt(-2 * np.log(1 - np.array([0.1, 0.25, 0.5, 0.75, 0.95])))
    # Smoothing widens all lines a little; only ratios are independent of the zoom.
    np.testing.assert_allclose(half_widths / half_widths[2], expected / expected[2], rtol=0.12)


def test_a_map_of_three_dimensions_has_no_contours(open_page, ring):
    ring["maps"][0]["coordinates"] = np.random.default_rng(0).normal(size=(300, 3))
    assert open_page(ring).locator("#contours").is_hidden()


@pytest.mark.smoke
def test_a_brush_hides_what_is_outside(open_page, ring):
    page = open_page(ring)
    before = quarters(page)
    page.select_option("#filter-column", label="day")
    brush(page, 0.0, 0.5)
    assert bounds(page, "day")[0] == "2024-01-01"
    last = datetime.date.fromisoformat(bounds(page, "day")[1])
    count = (last - datetime.date(2024, 1, 1)).days + 1
    assert 140 < count < 160
    assert shown(page) == f"{count} of 300 points shown"
    assert legend(page) == {"left": str(count), "right": "0"}
    after = quarters(page)
    assert before[1]["n"] + before[3]["n"] > 0
    assert after[1]["n"] + after[3]["n"] == 0  # the right half is of later days
    # What is hidden can be neither hovered nor found nor selected.
    page.mouse.move(before[1]["x"], before[1]["y"])
    assert page.locator("#tip").is_hidden()
    box = page.locator(".canvas").first.bounding_box()
    edges = {"x": box["x"] + 14, "y": box["y"] + 14}
    far = {"x": box["x"] + box["width"] - 14, "y": box["y"] + box["height"] - 14}
    circle(page, [edges, far], "shift")
    assert page.locator("#selected").inner_text() == f"{count} of 300 points selected"
    page.locator("#find").fill("cell-299")
    page.keyboard.press("Enter")
    assert page.locator("#selected").inner_text() == "0 of 300 points selected, 1 more hidden"
    assert page.locator("#details .fact").count() == 0
    page.click("#clear")
    page.locator(".filter .head button").first.click()
    assert shown(page) == "all"
    assert legend(page) == {"left": "200", "right": "100"}
    assert [q["n"] for q in quarters(page)] == [q["n"] for q in before]


def test_typed_bounds_and_missing_values(open_page, ring):
    page = open_page(ring)
    page.select_option("#filter-column", label="size")
    page.get_by_label("size, from").fill("5")
    page.keyboard.press("Tab")
    assert shown(page) == "200 of 300 points shown"  # 5.0 to 24.9, and no missing ones
    page.get_by_label("size, to").fill("9.9")
    page.keyboard.press("Tab")
    assert shown(page) == "50 of 300 points shown"
    page.get_by_label("and 50 missing").check()
    assert shown(page) == "100 of 300 points shown"
    page.get_by_label("size, to").fill("")
    page.keyboard.press("Tab")
    assert shown(page) == "250 of 300 points shown"
    page.click("#filter-clear")
    assert shown(page) == "all"
    assert bounds(page, "size") == ["0", "24.9"]


def test_several_filters_are_joined_by_and(open_page, ring):
    page = open_page(ring)
    for name in ("third", "size", "island"):
        page.select_option("#filter-column", label=name)
    rows = page.locator(".filter .bar")
    rows.nth(0).click()
    settle(page)
    assert rows.nth(0).get_attribute("aria-pressed") == "false"
    assert shown(page) == "200 of 300 points shown"
    page.get_by_label("size, to").fill("2.9")
    page.keyboard.press("Tab")
    assert shown(page) == "20 of 300 points shown"
    assert rows.nth(1).locator(".count").inner_text() == "10"
    # Dragging from one bar to another chooses them, and brings the first back.
    rows.nth(0).hover()
    page.mouse.down()
    rows.nth(1).hover()
    page.mouse.up()
    settle(page)
    assert [rows.nth(k).get_attribute("aria-pressed") for k in range(3)] == [
        "true",
        "true",
        "false",
    ]
    assert shown(page) == "20 of 300 points shown"
    page.select_option("#filter-column", label="third")  # a second filter would be the same
    assert page.locator(".filter").count() == 3
    page.get_by_label("Remove the filter by size").click()
    assert shown(page) == "200 of 300 points shown"
    assert page.locator(".filter").count() == 2


def test_times_have_an_axis_and_colors(open_page, ring):
    page = open_page(ring | {"color": "day"})
    assert page.locator("#legend .ends").inner_text().split("\n") == [
        "2024-01",
        "2024-05",
        "2024-10",
    ]
    colors = [q["color"] for q in quarters(page)]
    assert colors[1][0] > colors[0][0] + 60  # later days are yellow, earlier ones blue
    page.select_option("#filter-column", label="day")
    assert page.locator(".filter .ends").first.inner_text().split("\n") == [
        "2024-01",
        "2024-05",
        "2024-10",
    ]
    page.select_option("#filter-column", label="clock")
    ends = page.locator(".filter .ends").nth(1).inner_text().split("\n")
    assert ends == ["10:00:00", "10:02:29", "10:04:59"]
    page.get_by_label("clock, from").fill("2024-05-01T10:04:00")
    page.keyboard.press("Tab")
    assert shown(page) == "60 of 300 points shown"
    found = quarters(page)[1]
    page.mouse.move(found["x"], found["y"])
    facts = dict(fact.split("\n") for fact in page.locator("#tip .fact").all_inner_texts())
    row = int(facts["id"].split("-")[1])
    assert facts["day"] == str(ring["labels"]["day"][row])
    assert facts["clock"] == ring["labels"]["clock"][row].replace("T", " ")


def test_the_columns_that_can_be_filtered_are_all_that_the_page_knows(open_page, ring):
    page = open_page(ring)
    options = page.locator("#filter-column option").all_inner_texts()[1:]
    assert options == [
        *("half", "size", "day", "clock", "third"),
        *("island", "trustworthiness", "continuity"),
    ]


@pytest.mark.parametrize("painter", ["emulated", "card", "no WebGL"])
def test_two_hundred_thousand_points_are_painted_hovered_and_selected(open_page, ring, painter):
    n = 200_000
    rng = np.random.default_rng(0)
    group = np.arange(n) % 2
    ring |= {"ids": np.arange(n) + 5, "labels": {"group": group, "row": np.arange(n)}}
    ring["maps"][0] |= {
        "coordinates": rng.normal(size=(n, 2)) + [20, 0] * group[:, None],
        "per_point": {"trustworthiness": rng.uniform(0.8, 1, n)},
    }
    script = {"card": WITH_A_CARD, "no WebGL": "delete Uint8Array.fromBase64"}.get(painter, "")
    page = open_page(ring, webgl=painter != "no WebGL", script=script)
    page.locator(".canvas[aria-busy=false]").first.wait_for()
    assert page.locator("#message").is_visible() is (painter == "no WebGL")
    found = quarters(page)
    assert all(quarter["n"] > 1000 for quarter in found)
    assert legend(page) == {"0": "100000", "1": "100000"}
    left = {axis: (found[0][axis] + found[2][axis]) / 2 for axis in "xy"}
    page.mouse.move(left["x"], left["y"])
    facts = dict(fact.split("\n") for fact in page.locator("#tip .fact").all_inner_texts())
    assert int(facts["id"]) == int(facts["row"]) + 5
    assert facts["group"] == "0"
    box = page.locator(".canvas").first.bounding_box()
    corner = {"x": box["x"] + 20, "y": box["y"] + 20}
    opposite = {"x": box["x"] + box["width"] / 2 - 12, "y": box["y"] + box["height"] - 20}
    circle(page, [corner, opposite], "shift")
    assert page.locator("#selected").inner_text() == f"100000 of {n} points selected"
    page.click("#clear")
    page.select_option("#filter-column", label="group")
    page.locator(".filter .bar").nth(0).click()
    assert shown(page) == f"100000 of {n} points shown"
    page.locator(".canvas[aria-busy=false]").first.wait_for()
    assert [quarter["n"] > 0 for quarter in quarters(page)] == [False, True, False, True]
    page.mouse.move(left["x"], left["y"])
    assert page.locator("#tip").is_hidden()
    # A panel below the window is painted when one comes to it, or for paper.
    assert sum(quarter["n"] for quarter in quarters(page, 1)) == 0
    if painter == "card":
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
    else:
        page.locator(".canvas").nth(1).scroll_into_view_if_needed()
        page.locator(".canvas[aria-busy=false]").nth(1).wait_for()
    assert sum(quarter["n"] for quarter in quarters(page, 1)) > 1000


def test_both_painters_paint_the_same_picture(open_page, ring):
    """Flat and deep, at the edge of the panel too; the second without WebGL."""
    for dimensions in (2, 3):
        Y = np.random.default_rng(0).normal(size=(300, dimensions))
        ring["maps"][0]["coordinates"] = Y
        pictures = []
        for webgl in (True, False):
            page = open_page(ring, webgl=webgl)
            page.locator(".canvas").first.focus()
            for _ in range(4):
                page.keyboard.press("+")
            box = page.locator(".canvas").first.bounding_box()  # below a message without WebGL
            found = quarters(page)
            for quarter in found:
                quarter["y"] -= box["y"]
            pictures.append(found)
        for one, other in zip(*pictures, strict=True):
            assert other["n"] == pytest.approx(one["n"], rel=0.12)
            assert abs(one["x"] - other["x"]) < 3
            assert abs(one["y"] - other["y"]) < 3
            assert np.abs(np.subtract(one["color"], other["color"])).max() < 12
