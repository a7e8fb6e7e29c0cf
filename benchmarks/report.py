"""The page of a report in a browser without a graphics card: size, loading, moving, choosing.

Python writes the page of n points, headless Chromium draws it with its software renderer (or
without WebGL: ``--no-webgl``), and the script prints milliseconds. A graphics card is faster.
Needs playwright and Chromium. Measure on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _harness import current_memory, peak_so_far, reset_peak

from lowland.report import write_report

SIZES = (10_000, 100_000, 1_000_000)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = [
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
]
WITHOUT_WEBGL = """
    const original = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      return kind.startsWith("webgl") ? null : original.call(this, kind, ...rest);
    };
"""
# Times of a page, all in milliseconds. A frame counts as shown when the next one begins.
TOOLS = """
    const frame = document.querySelector(".canvas");
    const next = () => new Promise(requestAnimationFrame);
    const whole = async () => {
      do await next(); while (frame.ariaBusy !== "false");
      await next();
    };
    const timed = async (action, end = whole) => {
      await next();
      const start = performance.now();
      action();
      const handled = performance.now() - start;
      await end();
      return { handled, shown: performance.now() - start };
    };
    const box = frame.getBoundingClientRect();
    const at = (x, y) => ({
      clientX: box.left + x * box.width, clientY: box.top + y * box.height, pointerId: 1,
      bubbles: true, cancelable: true, button: 0,
    });
    const send = (kind, x, y) => frame.dispatchEvent(new PointerEvent(kind, at(x, y)));
    const moving = async (action, frames = 60) => {
      const times = [];
      let before = await next();
      for (let k = 0; k < frames; k++) {
        action(k);
        const now = await next();
        times.push(now - before);
        before = now;
      }
      return times.slice(10);
    };
"""


def make_summary(n: int) -> dict[str, Any]:
    """Forty groups of different sizes; a category, a number, a time, and two measures."""
    rng = np.random.default_rng(0)
    middles = rng.normal(scale=9.0, size=(40, 2))
    group = rng.choice(40, n, p=rng.dirichlet(np.ones(40)))
    Y = middles[group] + rng.normal(size=(n, 2)) * rng.uniform(0.3, 2.0, (40, 1))[group]
    days = np.datetime64("2020-01-01") + rng.integers(0, 1500, n)
    card = dict.fromkeys(("summary", "keeps", "use", "avoid", "cost", "reference"), "")
    return {
        "title": f"{n} points",
        "version": "0",
        "created": "2026-01-01T00:00:00",
        "command": "lowland map",
        "input": {"source": "made", "rows": n, "columns": 2, "features": None},
        "preparation": [],
        "dropped_rows": [],
        "ids": np.arange(n),
        "labels": {
            "group": np.array([f"group {k}" for k in range(40)])[group],
            "number": rng.normal(size=n),
            "day": days,
        },
        "maps": [
            {
                "name": "tsne",
                "title": "t-SNE",
                "coordinates": Y,
                "seconds": 1.0,
                "peak_bytes": None,
                "stopped_early": False,
                "card": card,
                "parameters": {},
                "seed": 0,
                "quality": {},
                "per_point": {
                    "trustworthiness": rng.uniform(0.8, 1, n),
                    "continuity": rng.uniform(0.8, 1, n),
                },
                "loss_history": None,
                "facts": {},
                "pictures": {},
            }
        ],
    }


def write(n: int, path: Path) -> dict[str, float]:
    """Write the page; seconds, megabytes above the summary, megabytes of the file."""
    summary = make_summary(n)
    before = current_memory()
    reset_peak()
    start = time.perf_counter()
    write_report(summary, path)
    seconds = time.perf_counter() - start
    return {
        "write, s": seconds,
        "write, peak MB": (peak_so_far() - before) / 1e6,
        "file, MB": path.stat().st_size / 1e6,
    }


def measure(browser: Any, path: Path, webgl: bool) -> dict[str, float]:
    """Open the page and do what a person does."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.set_default_timeout(120_000)
    if not webgl:
        page.add_init_script(WITHOUT_WEBGL)
    start = time.perf_counter()
    page.goto(path.as_uri())
    ready = time.perf_counter() - start
    whole = page.locator(".canvas[aria-busy=false]").first
    whole.wait_for()
    complete = time.perf_counter() - start

    def run(script: str) -> Any:
        return page.evaluate(f"async () => {{ {TOOLS} {script} }}")

    found = {"load, first picture, s": ready, "load, whole picture, s": complete}
    hover = run("""
        const first = await timed(() => send("pointermove", .5, .5), next);
        const later = [];
        for (let k = 0; k < 20; k++)
          later.push((await timed(() => send("pointermove", .3 + .02 * k, .5), next)).handled);
        return [first.handled, later];""")
    found["hover, first"], found["hover, later"] = hover[0], statistics.median(hover[1])
    box = page.locator(".canvas").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    frames = run("return moving((k) => send('pointermove', .5 + .1 * Math.sin(k / 8), .5))")
    page.mouse.up()
    found["frame while moving, median"] = statistics.median(frames)
    found["frame while moving, worst of 20"] = sorted(frames)[-len(frames) // 20]
    whole.wait_for()
    found["whole picture"] = run(
        "return (await timed(() => document.getElementById('reset').click())).shown"
    )
    page.wait_for_timeout(500)
    for label in ("number", "one color", "group"):
        recolor = f"""
            const select = document.getElementById("color");
            const option = [...select.options].find((entry) => entry.text === "{label}");
            select.value = option.value;
            return timed(() => select.dispatchEvent(new Event("change")), next);"""
        found[f"color by {label}, first frame"] = run(recolor)["shown"]
        page.wait_for_timeout(1500)
    page.click("#tool-lasso")
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    page.mouse.down()
    lasso = run("""
        for (let k = 0; k < 300; k++) {
          const angle = k * Math.PI / 150;
          send("pointermove", .5 + .4 * Math.cos(angle), .5 + .4 * Math.sin(angle));
        }
        return timed(() => send("pointerup", .9, .5), next);""")
    found["lasso, handled"], found["lasso, first frame"] = lasso["handled"], lasso["shown"]
    page.mouse.up()
    page.click("#clear")
    whole.wait_for()
    found["contours, shown"] = run(
        """
        const note = document.getElementById("contours-note");
        const drawn = async () => { do await next(); while (note.hidden); };
        return (await timed(() => document.getElementById("contours").click(), drawn)).shown;"""
    )
    page.click("#contours")
    page.wait_for_timeout(500)
    page.select_option("#filter-column", label="number")
    histogram = page.locator(".histogram").first
    histogram.scroll_into_view_if_needed()
    box = histogram.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 20)
    page.mouse.down()
    frames = run("""
        const canvas = document.querySelector(".histogram");
        const { left, width } = canvas.getBoundingClientRect();
        return moving((k) => canvas.dispatchEvent(new PointerEvent("pointermove", {
          clientX: left + width * (.6 + .2 * Math.sin(k / 8)), pointerId: 1 })));""")
    page.mouse.up()
    found["frame while brushing, median"] = statistics.median(frames)
    page.close()
    return found


def main() -> None:
    """Print one row for each figure, one column for each number of points."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--no-webgl", action="store_true", help="draw on a plain canvas")
    options = parser.parse_args()
    executable = next(filter(None, map(shutil.which, BROWSERS)))
    columns = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=OPTIONS)
        for n in options.sizes:
            path = Path(folder, f"{n}.html")
            columns[n] = write(n, path) | measure(browser, path, not options.no_webgl)
            print(json.dumps({"points": n, **columns[n]}), file=sys.stderr)
        browser.close()
    print(f"{'milliseconds, unless said':36}" + "".join(f"{n:>12,}" for n in columns))
    for name in next(iter(columns.values())):
        print(f"{name:36}" + "".join(f"{column[name]:12.2f}" for column in columns.values()))


if __name__ == "__main__":
    main()
