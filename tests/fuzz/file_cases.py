"""Damaged files of every readable kind, read from Python and by the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fuzz.command_cases import run_here
from fuzz.damage import damage
from fuzz.data import chance, pick
from fuzz.rules import REFUSED, attempt, require
from fuzz.whole_files import names, whole_file
from lowland.tables import read_distances, read_table


def file_case(rng: np.random.Generator) -> None:
    name = pick(rng, names())
    content = whole_file(name) if chance(rng, 0.03) else damage(rng, whole_file(name))
    if chance(rng, 0.03):  # not what its name says
        name = pick(rng, names())
    if name.startswith("images."):
        path = Path("pictures")
        path.mkdir()
        for i in range(3):
            (path / f"{i}.{name.split('.')[1]}").write_bytes(whole_file(name))
        (path / f"3.{name.split('.')[1]}").write_bytes(content)
    else:
        path = Path(name)
        path.write_bytes(content)
    use_file(rng, path)


def use_file(rng: np.random.Generator, path: Path) -> None:
    """Read a file in one of the ways there are; it is read or refused with its name."""
    way = pick(rng, ["table", "table", "missing", "distances", "info", "map", "select"])
    if way in ("table", "missing"):
        table = attempt(read_table, path, allow_missing=way == "missing")
        if table is not REFUSED and way == "table" and isinstance(table.features, np.ndarray):
            require(np.isfinite(table.features).all(), "a table with numbers that are not finite")
    elif way == "distances":
        attempt(read_distances, path, allow_missing=chance(rng, 0.5))
    elif way == "info":
        run_here(["info", str(path), *pick(rng, [[], ["--json"]])])
    elif way == "select":
        run_here(["select", str(path), "-m", pick(rng, ["variance", "principal", "mutual"])])
    else:
        options = pick(rng, [[], ["--distances"], ["--impute", "mean"], ["--impute", "drop-rows"]])
        method = pick(rng, ["pca", "classical_mds", "isomap"])
        run_here(["map", str(path), "-m", method, "--no-report", "-o", "out", *options])
