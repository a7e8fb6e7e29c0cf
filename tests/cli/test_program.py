"""The program as a process: its start, its streams, its signals."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
import typer

from lowland.cli.app import app
from support.processes import cpu_seconds

HEAVY = ("numpy", "scipy", "sklearn", "polars", "matplotlib", "pandas")


def lowland(*arguments, **options):
    command = [sys.executable, "-m", "lowland.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], ["map", "--help"]])
def test_help_needs_no_heavy_import_and_answers_at_once(arguments):
    code = (
        "import sys; from lowland.cli import main; code = main(sys.argv[1:]); "
        f"sys.exit(code or ' '.join(m for m in {HEAVY} if m in sys.modules) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "lowland" in done.stdout
    assert cpu_seconds("-m", "lowland", *arguments, enough=0.5) <= 0.5


def test_help_of_map_points_to_the_options_of_methods():
    assert "lowland methods METHOD" in lowland("map", "--help").stdout


def test_the_version_is_the_packages():
    import lowland as package

    assert lowland("--version").stdout == f"lowland {package.__version__}\n"


def test_a_whole_run_from_a_file_to_a_map_to_new_rows(tmp_path):
    rows = "\n".join(f"{i},{i * i % 19},{'uv'[i % 2]}" for i in range(20))
    (tmp_path / "cells.csv").write_text(f"a,b,kind\n{rows}\n")
    done = lowland("map", "cells.csv", "--json", "-o", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    outputs = json.loads(done.stdout)["outputs"]
    assert all((tmp_path / path).stat().st_size > 0 for path in outputs.values())
    done = lowland("transform", outputs["model"], "cells.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "cells-map.csv").read_bytes() == (tmp_path / outputs["map"]).read_bytes()


def test_bad_input_ends_in_one_line_and_code_2(tmp_path):
    done = lowland("map", "absent.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "lowland: error: absent.csv: no such file.\n"


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    command = [sys.executable, "-m", "lowland", "methods"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


@pytest.mark.skipif(sys.platform == "win32", reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_an_error():
    run = f"{shlex.quote(sys.executable)} -m lowland"
    for redirected, code, message in (
        ("--version > /dev/full", 2, "lowland: error: standard output: No space left on device.\n"),
        ("--version >&-", 2, "lowland: error: standard output: Bad file descriptor.\n"),
        ("map absent.csv 2>&-", 2, ""),
        ("map absent.csv 2> /dev/full", 2, ""),
        ("--version <&-", 0, ""),
    ):
        done = subprocess.run(f"{run} {redirected}", shell=True, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (code, message), redirected


def test_a_table_can_come_from_a_pipe(tmp_path):
    text = "a,b\n" + "".join(f"{i},{i * i % 19}\n" for i in range(20))
    done = lowland("map", "-", "-m", "pca", "--no-report", cwd=tmp_path, input=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "lowland-out" / "stdin-pca" / "map.csv").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="limits differ")
def test_a_limit_of_the_process_is_respected(tmp_path):
    X = np.random.default_rng(0).standard_normal((20_000, 40), dtype=np.float32)
    np.save(tmp_path / "t.npy", X)
    np.save(tmp_path / "equal.npy", np.zeros_like(X))

    def limited(kind, n_bytes, source="t.npy"):
        command = ["map", source, "-m", "sne", "--engine", "memory", "--no-report", "-o", "out"]
        code = (
            f"import resource, sys; resource.setrlimit(resource.{kind}, ({n_bytes}, {n_bytes})); "
            f"from lowland.cli import main; sys.exit(main({command}))"
        )
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120
        )

    few = limited("RLIMIT_AS", 10**9)
    assert few.returncode == 2
    assert "to the process, and the libraries need" in few.stderr
    assert few.stderr.count("\n") == 1
    for kind in ("RLIMIT_AS", "RLIMIT_DATA"):
        done = limited(kind, 3 * 10**9)
        assert done.returncode == 2, done.stderr
        assert "but the process may use" in done.stderr
        assert done.stderr.count("\n") == 1
    # an allocation that fails in spite of all estimates is not a crash either
    done = limited("RLIMIT_DATA", 3 * 10**9, "equal.npy")
    assert done.returncode in (0, 2), done.stderr
    assert done.returncode == 0 or "memory" in done.stderr or "may use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_an_interrupt_ends_in_one_line_and_code_130(tmp_path):
    code = (
        "import os, signal, sys; from lowland._base import registry; from lowland.cli import main; "
        "registry.get('pca').fit_transform = lambda *_: os.kill(os.getpid(), signal.SIGINT); "
        "sys.exit(main(['map', 'iris', '-m', 'pca']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 130
    assert done.stderr == "lowland: error: interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == []


def test_names_that_the_terminal_cannot_show_are_escaped(tmp_path):
    (tmp_path / "t.csv").write_text("größe,b\n1,2\n3,4\n5,7\n", encoding="utf-8")
    import os

    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = lowland("map", "t.csv", cwd=tmp_path, env=environment)
    assert done.returncode == 0
    assert r"gr\xf6\xdfe" in done.stdout


LINES = 55  # of a screen


def listed(text):
    """The long options that a help lists."""
    return set(re.findall(r"(?<!\S)--[a-z-]+", text.replace(",", " ")))


@pytest.mark.parametrize("command", [*typer.main.get_command(app).commands])
def test_help_fits_on_a_screen_and_names_every_option(command):
    short = lowland(command, "--help").stdout
    assert short.count("\n") <= LINES
    params = typer.main.get_command(app).commands[command].params
    names = {name for param in params for name in param.opts if name.startswith("--")}
    if "--help-all" not in names:
        assert names <= listed(short)
        return
    every = lowland(command, "--help-all").stdout
    assert names <= listed(every)
    assert names - {"--impute"} <= listed(short)
    assert all(f"\n{group}:\n" in every for group in ("Options", "Input", "Columns", "Output"))
