"""Instant start: ``import lowland`` below numpy + 0.2 s, ``lowland --help`` below 0.5 s."""

from __future__ import annotations

import subprocess
import sys

from support.processes import cpu_seconds

HELP = 0.5  # seconds, as the design promises
IMPORT = 0.2  # seconds beyond the import of numpy
MODULES = 120  # of lowland that make a map of a small table, at most


def loaded_by(code: str) -> set[str]:
    code += "\nimport sys; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(out.stdout.split())


def test_importing_lowland_costs_next_to_nothing():
    bound = cpu_seconds("-c", "import numpy", tries=3) + IMPORT
    assert cpu_seconds("-c", "import lowland", enough=bound) <= bound


def test_help_answers_at_once():
    assert cpu_seconds("-m", "lowland", "--help", enough=HELP) <= HELP


def test_importing_lowland_imports_nothing_else():
    assert not loaded_by("import lowland") & {"numpy", "scipy", "sklearn", "polars", "matplotlib"}


def test_a_method_does_without_scikit_learn_polars_and_matplotlib():
    code = "import numpy as np, lowland; lowland.PCA(2).fit_transform(np.eye(5))"
    assert not loaded_by(code) & {"sklearn", "pandas", "polars", "matplotlib", "rich", "typer"}


def test_measures_do_without_scikit_learn_pandas_and_matplotlib():
    code = """
import numpy as np
from lowland.metrics import quality, trustworthiness
X = np.random.default_rng(0).normal(size=(40, 3))
str(quality(X, X[:, :2], np.arange(40) % 2))
"""
    assert not loaded_by(code) & {"sklearn", "pandas", "polars", "matplotlib", "rich", "typer"}


def test_a_small_map_needs_no_scipy():
    """It takes longer to import than the map takes to make."""
    code = """
import numpy as np
from lowland import TSNE
X = np.random.default_rng(0).standard_normal((300, 10))
TSNE(max_iter=5, random_state=0).fit(X)
"""
    assert not loaded_by(code) & {"scipy", "sklearn", "polars", "matplotlib"}


def test_a_map_of_a_table_in_memory_needs_nothing_of_chunks_or_dask(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,b,c\n" + "".join(f"{i},{i * i % 7},{i % 5}\n" for i in range(20)))
    code = f"""
from lowland.cli import main
assert main(["map", {str(table)!r}, "-m", "pca", "-q", "-o", {str(tmp_path / "out")!r}]) == 0
"""
    unwanted = ("lowland.chunks", "lowland.workflow.streaming", "dask", "distributed")
    assert not [name for name in loaded_by(code) if name.startswith(unwanted)]


def test_a_map_of_a_table_in_memory_runs_few_modules_of_lowland(tmp_path):
    """Those with a function that is called, not counting what importing a module calls."""
    table = tmp_path / "t.csv"
    rows = [f"{i},{i * i % 7},{i % 5},{'ab'[i % 2]}\n" for i in range(100)]
    table.write_text("a,b,c,kind\n" + "".join(rows))
    code = f"""
import sys

called = set()

def is_import(frame):
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" and name.startswith("lowland."):
            return True
        frame = frame.f_back
    return False

def note(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    is_function = frame.f_code.co_flags & 1  # not the body of a module or of a class
    if event == "call" and name.startswith("lowland.") and is_function and name not in called:
        if not is_import(frame):
            called.add(name)

from lowland.cli import main
sys.setprofile(note)
assert main(["map", {str(table)!r}, "-q", "-o", {str(tmp_path / "out")!r}]) == 0
sys.setprofile(None)
print(*sorted(called))
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    called = out.stdout.split()
    assert "lowland.methods.embedding.tsne" in called
    assert len(called) <= MODULES, called
