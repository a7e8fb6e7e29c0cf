"""A browser, and a summary of a small run, good enough that no caution applies to it."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

N = 300
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Without a graphics card the processor draws; and the browser itself stays off the network.
OPTIONS = [
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
]


def missing(reason):
    if os.environ.get("LOWLAND_BROWSER") == "required":
        pytest.fail(f"LOWLAND_BROWSER=required, but {reason}.")
    pytest.skip(f"{reason}; install the Debian package chromium to test the report in a browser")


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests that want one: starting it takes a second."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        missing("no Chromium was found")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def summary():
    """Three groups of 100 points in two dimensions, two labels, two measures at each point."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], N // 3)
    Y = np.array([[-10.0, 0.0], [10.0, 0.0], [0.0, 12.0]])[group] + rng.normal(size=(N, 2))
    return {
        "title": "cells: t-SNE of 300 rows",
        "version": "0.1.0",
        "created": "2026-11-16T12:00:00",
        "command": "lowland map cells.csv --seed 7",
        "input": {
            "source": "cells.csv",
            "rows": N,
            "columns": 12,
            "features": list("abcdefghijkl"),
        },
        "preparation": ["12 columns of numbers were used.", "They were standardized."],
        "dropped_rows": [],
        "ids": [f"cell-{i}" for i in range(N)],
        "labels": {"type": np.array(["red", "green", "blue"])[group], "size": rng.normal(size=N)},
        "maps": [make_map(Y, rng)],
    }


def make_map(Y, rng, name="tsne", title="t-SNE"):
    return {
        "name": name,
        "title": title,
        "coordinates": Y,
        "seconds": 1.5,
        "peak_bytes": 250_000_000,
        "stopped_early": False,
        "card": {
            "summary": "Neighbors stay neighbors.",
            "keeps": "neighborhoods",
            "use": "to look at clusters",
            "avoid": "outliers",
            "cost": "O(n k) per step",
            "reference": "van der Maaten & Hinton (2008)",
        },
        "parameters": {"perplexity": 30.0, "init": "pca"},
        "seed": 7,
        "quality": {
            "trustworthiness": make_measure(0.98, pca=0.83, random=0.5),
            "continuity": make_measure(0.97, pca=0.95, random=0.5),
            "neighbor_recall": make_measure(0.87, pca=0.45, random=0.001),
        },
        "per_point": {
            "trustworthiness": rng.uniform(0.8, 1.0, len(Y)),
            "continuity": rng.uniform(0.8, 1.0, len(Y)),
        },
        "loss_history": [3.0, 1.5, 1.0, 0.999],
        "facts": {"n_iter": 750},
        "pictures": {},
    }


def make_measure(value, pca=None, random=None, standard_error=0.0, sample_size=N, better="higher"):
    return {
        "value": value,
        "standard_error": standard_error,
        "sample_size": sample_size,
        "pca": pca,
        "random": random,
        "better": better,
        "meaning": "what it means.",
    }
