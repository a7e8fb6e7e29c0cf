"""The page in a real browser: it opens, it can be moved, searched, selected from, and it is quiet.

Needs Chromium and its driver library; skips where there is none, unless LOWLAND_BROWSER=required.
"""

from __future__ import annotations

import copy
import csv
import io

import numpy as np
import pytest

from lowland.report import write_report

HOSTILE = "<script>document.title = 'hacked'</script>"
WITHOUT_WEBGL = """
    const original = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      return kind.startsWith("webgl") ? null : original.call(this, kind, ...rest);
    };
"""
# The pixels of a panel's picture (layer 0) or of its highlights (layer 1), read from a copy.
PIXELS = """
    const canvasOf = (panel, layer) =>
      document.querySelectorAll(".canvas")[panel].querySelectorAll("canvas")[layer];
    const pixelsOf = (canvas) => {
      const copy = new OffscreenCanvas(canvas.width, canvas.height);
      const context = copy.getContext("2d", { willReadFrequently: true });
      context.drawImage(canvas, 0, 0);
      return context.getImageData(0, 0, canvas.width, canvas.height).data;
    };
"""
# Middle (in the window) and color of what is painted in each quarter of a panel.
QUARTERS = """(panel) => {
    PIXELS
    const canvas = canvasOf(panel, 0);
    const [w, h] = [canvas.width, canvas.height];
    const pixels = pixelsOf(canvas);
    const box = canvas.getBoundingClientRect();
    const found = [0, 1, 2, 3].map(() => ({ n: 0, x: 0, y: 0, color: [0, 0, 0] }));
    for (let y = 0; y < h; y++) for (let x = 0; x < w; x++) {
      const at = 4 * (y * w + x);
      if (pixels[at + 3] < 128) continue;
      const quarter = found[2 * (y >= h / 2) + (x >= w / 2)];
      quarter.n++;
      quarter.x += box.left + (x * box.width) / w;
      quarter.y += box.top + (y * box.height) / h;
      for (let c = 0; c < 3; c++) quarter.color[c] += pixels[at + c];
    }
    for (const q of found) {
      [q.x, q.y] = [q.x / q.n, q.y / q.n];
      q.color = q.color.map((sum) => sum / q.n);
    }
    return found;
}""".replace("PIXELS", PIXELS)
HAS_RINGS = """() => {
    PIXELS
    return [0, 1].map((panel) => pixelsOf(canvasOf(panel, 1)).some((value) => value > 0));
}""".replace("PIXELS", PIXELS)
TWO_FRAMES = """() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(done)))"""
BLUE, ORANGE = (0x44, 0x77, 0xAA), (0xFF, 0xA9, 0x0E)


@pytest.fixture
def open_page(browser, tmp_path):
    """Open the report of a summary; at the end nothing may have been said or asked for."""
    pages = []
    complaints, requests = [], []

    def open_it(summary, webgl=True, script="", **options):
        path = tmp_path / "report.html"
        write_report(summary, path)
        options = {"viewport": {"width": 1200, "height": 900}, **options}
        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        if not webgl:
            page.add_init_script(WITHOUT_WEBGL)
        page.add_init_script(script)
        page.goto(path.as_uri())
        settle(page)
        return page

    yield open_it
    for page in pages:
        page.close()
    assert complaints == []
    local = ("file:", "data:", "blob:")
    assert [address for address in requests if not address.startswith(local)] == []


def settle(page):
    """Wait until what was asked for is painted."""
    page.evaluate(TWO_FRAMES)


def quarters(page, panel=0):
    settle(page)
    return page.evaluate(QUARTERS, panel)


def near(color, expected):
    return np.abs(np.subtract(color, expected)).max() < 24


@pytest.fixture
def corners(summary):
    """Four points in the corners of a square: a and b above, c and d below."""
    summary |= {
        "ids": ["a", "b", "c", "d"],
        "labels": {
            "side": ["left", "right", "left", "right"],
            "height": [5, 5, 1, 1],
            HOSTILE: [HOSTILE] * 4,
        },
    }
    summary["maps"][0] |= {
        "coordinates": np.array([[-1.0, 1], [1, 1], [-1, -1], [1, -1]]),
        "per_point": {"trustworthiness": np.array([0.5, 1.0, np.nan, 0.9])},
    }
    return summary


@pytest.mark.smoke
def test_the_page_opens_quietly_and_paints_with_webgl(open_page, summary):
    page = open_page(summary)
    assert page.locator("#message").is_hidden()
    for panel in range(3):  # the map, trustworthiness, continuity
        assert sum(quarter["n"] for quarter in quarters(page, panel)) > 1000
    assert page.locator("#legend .entry").all_inner_texts() == [
        "blue\n100",
        "green\n100",
        "red\n100",
    ]


@pytest.mark.parametrize("webgl", [True, False])
def test_hovering_shows_the_id_and_all_labels(open_page, corners, webgl):
    page = open_page(corners, webgl=webgl)
    assert page.locator("#message").is_hidden() is webgl
    for corner, name, side, height in zip(
        quarters(page), "abcd", ["left", "right"] * 2, "5511", strict=True
    ):
        page.mouse.move(corner["x"] + 3, corner["y"] + 2)
        facts = page.locator("#tip .fact").all_inner_texts()
        assert facts[:4] == [
            f"id\n{name}",
            f"side\n{side}",
            f"height\n{height}",
            f"{HOSTILE}\n{HOSTILE}",
        ]
    page.mouse.move(5, 5)
    assert page.locator("#tip").is_hidden()


@pytest.mark.parametrize("webgl", [True, False])
def test_the_color_follows_the_choice(open_page, corners, webgl):
    page = open_page(corners | {"color": "height"}, webgl=webgl)
    above, below = (quarters(page)[k]["color"] for k in (0, 2))
    assert near(above, ORANGE)  # 1 comes before 5
    assert near(below, BLUE)
    page.select_option("#color", label="side")
    left, right = (quarters(page)[k]["color"] for k in (0, 1))
    assert near(left, BLUE)
    assert near(right, ORANGE)
    page.select_option("#color", label="trustworthiness")
    worst, best, unknown, _ = (quarter["color"] for quarter in quarters(page))
    assert near(worst, (0xA5, 0x0F, 0x26))
    assert near(best, (0xB3, 0xC3, 0xD6))
    assert near(unknown, (0xB9, 0xC0, 0xC8))
    options = page.locator("#color option").all_inner_texts()
    assert options == ["side", "height", HOSTILE, "island", "trustworthiness", "one color"]


@pytest.mark.smoke
def test_a_column_named_script_stays_text(open_page, corners):
    page = open_page(corners | {"title": HOSTILE, "command": HOSTILE, "ids": [HOSTILE] * 4})
    page.select_option("#color", label=HOSTILE)
    page.mouse.move(quarters(page)[0]["x"], quarters(page)[0]["y"])
    assert page.locator("#tip .value").first.inner_text() == HOSTILE
    assert page.locator("#legend .label").all_inner_texts() == [HOSTILE]
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.title() == HOSTILE
    assert page.locator("script").count() == 2


def circle(page, corners, tool):
    """Draw a lasso around some of the corners."""
    xs, ys = [corner["x"] for corner in corners], [corner["y"] for corner in corners]
    left, right, top, bottom = min(xs) - 12, max(xs) + 12, min(ys) - 12, max(ys) + 12
    if tool == "shift":
        page.keyboard.down("Shift")
    else:
        page.click("#tool-lasso")
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top)):
        page.mouse.move(x, y, steps=5)
    page.mouse.up()
    page.keyboard.up("Shift")


@pytest.mark.parametrize("tool", ["button", "shift"])
def test_the_lasso_selects_and_the_export_holds_what_was_selected(open_page, corners, tool):
    corners["ids"] = ['say "a"', "b", "c, or not", "d"]
    page = open_page(corners)
    found = quarters(page)
    circle(page, [found[0], found[2]], tool)
    assert page.locator("#selected").inner_text() == "2 of 4 points selected"
    with page.expect_download() as download:
        page.click("#export")
    rows = list(csv.reader(io.StringIO(download.value.path().read_text(), newline="")))
    assert rows[0][:6] == ["id", "x", "y", "side", "height", HOSTILE]
    assert [row[:5] for row in rows[1:]] == [
        ['say "a"', "-1", "1", "left", "5"],
        ["c, or not", "-1", "-1", "left", "1"],
    ]
    after = quarters(page)
    assert after[0]["n"] == found[0]["n"]
    assert after[1]["n"] == 0  # too pale to count
    page.click("#clear")
    assert page.locator("#selection").is_hidden()
    assert quarters(page)[1]["n"] == found[1]["n"]


def test_the_legend_hides_and_isolates(open_page, corners):
    page = open_page(corners)

    def painted():
        return [quarter["n"] > 0 for quarter in quarters(page)]

    entry = page.locator("#legend .entry")
    entry.nth(0).click()
    assert entry.nth(0).get_attribute("aria-pressed") == "false"
    assert painted() == [False, True, False, True]
    left = page.locator(".canvas").first.bounding_box()
    page.mouse.move(left["x"] + 0.5 * left["width"], left["y"] + 0.5 * left["height"])
    page.wait_for_timeout(450)  # the next click is a new one
    entry.nth(0).click()
    assert painted() == [True] * 4
    page.wait_for_timeout(450)
    entry.nth(0).dblclick()
    assert painted() == [True, False, True, False]


def test_the_wheel_zooms_about_the_cursor_and_dragging_moves(open_page, corners):
    page = open_page(corners)
    before = quarters(page)
    page.mouse.move(before[0]["x"], before[0]["y"])
    page.mouse.wheel(0, -600)
    zoomed = quarters(page)
    assert zoomed[0]["x"] == pytest.approx(before[0]["x"], abs=1.5)
    assert zoomed[0]["y"] == pytest.approx(before[0]["y"], abs=1.5)
    assert zoomed[0]["n"] > before[0]["n"]
    assert [quarter["n"] for quarter in zoomed[1:]] == [0, 0, 0]
    page.click("#reset")
    page.mouse.move(before[0]["x"], before[0]["y"])
    page.mouse.down()
    page.mouse.move(before[0]["x"] + 30, before[0]["y"] + 20, steps=4)
    page.mouse.up()
    moved = quarters(page)
    assert moved[0]["x"] == pytest.approx(before[0]["x"] + 30, abs=1.5)
    assert moved[0]["y"] == pytest.approx(before[0]["y"] + 20, abs=1.5)


def test_keys_alone_are_enough(open_page, corners):
    page = open_page(corners)
    before = quarters(page)
    page.locator(".canvas").first.focus()
    page.keyboard.press("ArrowLeft")
    assert quarters(page)[0]["x"] == pytest.approx(before[0]["x"] + 40, abs=1.5)
    page.keyboard.press("0")
    page.keyboard.press("-")
    assert quarters(page)[0]["x"] > before[0]["x"] + 20
    page.locator("#find").focus()
    page.keyboard.type("RIGHT")
    page.keyboard.press("Enter")
    assert page.locator("#selected").inner_text() == "2 of 4 points selected"
    assert page.locator("#details .value").first.inner_text() == "b"
    page.locator("#find").fill("d")
    page.keyboard.press("Enter")
    assert page.locator("#selected").inner_text() == "1 of 4 points selected"


@pytest.mark.parametrize("webgl", [True, False])
def test_a_map_of_three_dimensions_turns(open_page, corners, webgl):
    Y = np.array([[-1.0, 1, 1], [1, 1, -1], [-1, -1, -1], [1, -1, 1]])
    corners["maps"][0]["coordinates"] = Y
    page = open_page(corners, webgl=webgl)
    before = quarters(page)
    box = page.locator(".canvas").first.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + 60, middle[1], steps=4)
    page.mouse.up()
    after = quarters(page)
    assert any(
        abs(a["x"] - b["x"]) > 5 or a["n"] != b["n"] for a, b in zip(before, after, strict=True)
    )
    page.click("#reset")
    assert quarters(page)[0]["x"] == pytest.approx(before[0]["x"], abs=0.5)


def test_a_map_of_one_dimension_is_a_strip(open_page, corners):
    corners["maps"][0]["coordinates"] = np.array([[-1.0], [1.0], [-0.99], [0.99]])
    page = open_page(corners)
    found = quarters(page)
    assert sum(quarter["n"] for quarter in found) > 100
    box = page.locator(".canvas").first.bounding_box()
    assert box["height"] < box["width"] / 3


def test_maps_side_by_side_share_color_hover_and_selection(open_page, corners):
    mirrored = copy.deepcopy(corners["maps"][0]) | {"name": "pca", "title": "mirrored"}
    mirrored["coordinates"] = mirrored["coordinates"] * [-1, 1]
    corners["maps"].append(mirrored)
    page = open_page(corners)
    one, other = quarters(page, 0), quarters(page, 1)
    assert near(one[0]["color"], BLUE)
    assert near(other[1]["color"], BLUE)
    assert page.evaluate(HAS_RINGS) == [False, False]
    page.mouse.move(one[0]["x"], one[0]["y"])
    assert page.locator("#tip .value").first.inner_text() == "a"
    assert page.evaluate(HAS_RINGS) == [True, True]
    circle(page, [one[0], one[2]], "shift")
    assert [quarter["n"] > 0 for quarter in quarters(page, 1)] == [False, True, False, True]
    assert "islands of mirrored" in page.locator("#color option").all_inner_texts()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(open_page, summary, scheme):
    page = open_page(
        summary, viewport={"width": 400, "height": 800}, device_scale_factor=2, color_scheme=scheme
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    canvas = page.locator(".canvas canvas").first
    assert canvas.evaluate("(c) => c.width / c.clientWidth") == pytest.approx(2, abs=0.01)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 30)"}[scheme]


def test_losing_the_graphics_card_changes_the_painter_only(open_page, corners):
    page = open_page(corners)
    before = quarters(page)
    page.add_init_script(
        """const original = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (...rest) {
          const context = original.apply(this, rest);
          if (rest[0] === "webgl") window.graphics = context;
          return context;
        };"""
    )
    page.reload()
    settle(page)
    page.evaluate("window.graphics.getExtension('WEBGL_lose_context').loseContext()")
    page.locator("#message").wait_for(state="visible")
    after = quarters(page)
    for one, other in zip(before, after, strict=True):
        assert near(one["color"], other["color"])
        assert one["x"] == pytest.approx(other["x"], abs=1.5)
