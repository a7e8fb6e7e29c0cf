"""Pictures of many points beside matplotlib's scatter and datashader: drawn and saved as PNG."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _harness import Case, main

from lowland.plot import save_figure, scatter_map

HAS_DATASHADER = importlib.util.find_spec("datashader") is not None  # else it is left out


def clusters(n: int) -> np.ndarray:
    """Two coordinates and the number of one of 30 groups."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 30, n)
    middle = rng.uniform(-20, 20, (30, 2))
    return np.column_stack([middle[group] + rng.standard_normal((n, 2)), group])


def saved(save: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "map.png")
        save(path)
        return path.read_bytes()


def names(data: np.ndarray) -> np.ndarray:
    return np.array([f"group {i}" for i in range(30)], dtype=object)[data[:, 2].astype(int)]


def ours_names(data: np.ndarray) -> bytes:
    figure = scatter_map(data[:, :2], names(data))
    return saved(lambda path: save_figure(figure, path))


def ours_values(data: np.ndarray) -> bytes:
    figure = scatter_map(data[:, :2], data[:, 0] * data[:, 1])
    return saved(lambda path: save_figure(figure, path))


def scatter(data: np.ndarray, colors: np.ndarray, **options: Any) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 5))
    FigureCanvasAgg(figure)
    figure.subplots().scatter(*data[:, :2].T, c=colors, s=1, linewidths=0, **options)
    return saved(lambda path: figure.savefig(path, dpi=150))


def theirs_names(data: np.ndarray) -> bytes:
    codes = np.unique(names(data), return_inverse=True)[1]
    return scatter(data, codes, cmap="tab20")


def theirs_values(data: np.ndarray) -> bytes:
    return scatter(data, data[:, 0] * data[:, 1])


def datashader_names(data: np.ndarray) -> bytes:
    import datashader
    import pandas as pd
    from datashader import transfer_functions

    table = pd.DataFrame({"x": data[:, 0], "y": data[:, 1], "g": pd.Categorical(names(data))})
    counts = datashader.Canvas(750, 750).points(table, "x", "y", datashader.count_cat("g"))
    image = transfer_functions.shade(counts).to_pil()
    return saved(lambda path: image.save(path))


def kilobytes(_: np.ndarray, result: bytes) -> float:
    return len(result) / 1e3


def cases(n: int) -> list[Case]:
    by_name = {"lowland": ours_names, "matplotlib scatter": theirs_names}
    if HAS_DATASHADER:
        by_name["datashader"] = datashader_names
    by_value = {"lowland": ours_values, "matplotlib scatter": theirs_values}
    return [
        Case(f"{n} points, 30 names", lambda: clusters(n), by_name, kilobytes, "kB"),
        Case(f"{n} points, numbers", lambda: clusters(n), by_value, kilobytes, "kB"),
    ]


CASES = [*cases(100_000), *cases(1_000_000)]

if __name__ == "__main__":
    main(CASES)
