"""Random command lines, in this process and in one of their own, and Ctrl-C at any moment."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.damage import damage
from fuzz.data import chance, pick
from fuzz.model_cases import saved_model
from fuzz.rules import Broken, require
from fuzz.whole_files import names, whole_file
from lowland._base import registry

DONE, PARTIAL, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
OWN_PROCESS = 60.0  # seconds, for a process that shares the machine with others


def command_case(rng: np.random.Generator) -> None:
    kind = rng.random()
    if kind < 0.04:
        interrupt(rng)
    else:
        (run_apart if kind < 0.07 else run_here)(random_command(rng))


# --- running a command and its rules --------------------------------------------------------------


def run_here(arguments: list[str]) -> None:
    """Run a command in this process, in the current folder."""
    from lowland.cli import main

    out, err = io.StringIO(), io.StringIO()
    before = _listing()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    _check(arguments, code, out.getvalue(), err.getvalue(), before)


def run_apart(arguments: list[str]) -> None:
    """Run a command in a process of its own."""
    before = _listing()
    done = subprocess.run(
        [sys.executable, "-m", "lowland.cli", *[text.replace("\x00", "") for text in arguments]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=OWN_PROCESS,
        check=False,
    )
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    _check(arguments, done.returncode, out, err, before)


def _check(
    arguments: list[str], code: int, out: str, err: str, before: dict[str, tuple[int, int]]
) -> None:
    shown = " ".join(map(repr, arguments))
    last = err.strip().splitlines()[-1:] or [""]
    require(code >= 0, f"a signal ended it: {-code}; {shown}")
    require(code in (DONE, PARTIAL, BAD_INPUT), f"exit code {code}: {last[0]}")
    for word in ("Traceback", "panicked", "RuntimeWarning", "DeprecationWarning"):
        require(word not in err, f"{word} on stderr: {last[0]}")
    for line in err.splitlines():
        require(line.startswith("lowland: "), f"a strange line on stderr: {line}")
    after = _listing()
    require(not [name for name in after if ".part" in name], f"half a result is left: {shown}")
    if code == BAD_INPUT:
        require("lowland: error: " in err, f"no message: {shown}")
        require(len(last[0].removeprefix("lowland: error: ").strip()) > 8, f"no message: {last[0]}")
        require(after == before, f"files after a failure: {sorted(after.items() ^ before.items())}")
        require(not out.strip(), f"output of a failure: {out[:80]!r}")
    elif "--json" in arguments and "--help" not in arguments:
        try:
            json.loads(out, parse_constant=_not_json)
        except ValueError as error:
            raise Broken(f"--json is not JSON: {error}; {arguments[0]}") from error


def _not_json(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _listing() -> dict[str, tuple[int, int]]:
    """Files and folders below the current one, with sizes and dates."""
    found = {}
    for path in Path().rglob("*"):
        with contextlib.suppress(OSError):
            state = path.lstat()
            changed = 0 if path.is_dir() else state.st_mtime_ns
            found[str(path)] = (state.st_size * (not path.is_dir()), changed)
    return found


def _wait_for_handlers(process: subprocess.Popen) -> None:
    """Until the program handles signals: before, the interpreter is not under its control.

    Python handles SIGINT by itself, but SIGTERM only if a program asks for it.
    """
    end = time.monotonic() + 10
    while process.poll() is None and time.monotonic() < end:
        caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text())
        if caught is not None and int(caught[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.01)


def interrupt(rng: np.random.Generator) -> None:
    """Ctrl-C at a random moment: a message, and nothing is half-written."""
    rows = rng.standard_normal((int(pick(rng, [30, 1500])), 8))
    np.save("rows.npy", rows)
    command = pick(rng, [["map", "rows.npy", "-m", pick(rng, registry.names()), "-o", "out"],
                         ["info", "rows.npy"], ["compare", "rows.npy", "-o", "out"],
                         ["map", "rows.npy", "--max-iter", "100000", "--tol", "0", "-o", "out"],
                         ["select", "rows.npy", "-o", "out.csv"], ["methods"]])  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "lowland.cli", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _wait_for_handlers(process)
        time.sleep(4 * float(rng.random()))
        finished = process.poll() is not None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=OWN_PROCESS)
    finally:
        process.kill()
        process.wait()
    shown = " ".join(command)
    code, files = process.returncode, [name for name in _listing() if name != "rows.npy"]
    if finished or code == DONE:
        return
    require("Traceback" not in err, f"a traceback after Ctrl-C: {err[-200:]}")
    require(code in (PARTIAL, BAD_INPUT, INTERRUPTED), f"Ctrl-C gives {code}: {shown}")
    require(err.strip(), f"Ctrl-C gives no message: {shown}")
    require(not [name for name in files if ".part" in name], f"half a result is left: {shown}")
    if code == INTERRUPTED:
        require(not files, f"files after Ctrl-C: {files}")


# --- random command lines -------------------------------------------------------------------------

TEXTS = [
    "",
    " ",
    "x",
    "-1",
    "0",
    "1",
    "2",
    "1e400",
    "nan",
    "inf",
    "9" * 30,
    "none",
    "auto",
    "height",
]
TEXTS += ["kind", "id", "height,width", ",", '"', "a\nb", "\x00", "../x", "/dev/null", "--", "é"]
SHARED: dict[str, list[str]] = {
    "--columns": ["height,width", "height", "kind", "nothing", "", "0,1"],
    "--use": ["id", "count", "kind", "nothing", "id,count"],
    "--labels": ["table.csv", "array.npy", "nothing.csv", "m.lowland", ".", "iris"],
    "--drop": ["height", "id", "nothing", "height,width,depth,w,count,flag"],
    "--label": ["count", "kind", "nothing", "height,width,depth,w,count,flag"],
    "--one-hot": ["kind", "height", "id", "nothing"],
    "--categories": ["auto", "one-hot", "one-hot", "label", "drop", "x"],
    "--order": ["kind=a,b,c", "count=0,1,2,3,4", "kind", "=", "nothing=a,b", "kind=a,a"],
    "--cyclic": ["height=24", "kind=day", "height=0", "id=week", "height=x", "nothing=1", "w"],
    "--id": ["id", "kind", "height", "nothing"],
    "--target": ["kind", "count", "height", "nothing"],
    "--color": ["kind", "height", "nothing"],
    "--scale": ["auto", "none", "standard", "robust", "x"],
    "--impute": ["mean", "median", "drop-rows", "x"],
    "--missing": ["refuse", "drop", "mean", "median", "neighbors", "x"],
    "--missing-values": ["-999", "?,-1", "a=1", "=", "a=", "nan"],
    "--normalize": ["cpm", "log1p", "l2", "cpm,log1p,l2", "none", "none,l2", "x", ","],
    "--pca": ["2", "none", "auto", "0", "-3", "1000", "x"],
    "--part": ["X", "y", "obs", "layers/x", "x"],
    "--vector": ["height", "kind", "nothing", ""],
    "--format": ["csv", "parquet", "x"],
    "--into": ["obsm", "obsm", "x"],
    "--seed": ["0", "1", "-1", "4294967296", "18446744073709551616", "x"],
    "--jobs": ["1", "2", "-1", "0", "x", "1000000"],
    "--coordinates": ["height,width", "x,y", "nothing"],
    "-k": ["1", "2", "0.5", "0", "100", "x"],
}
FLAGS = [
    *("--distances", "--transpose", "--similarities", "--force", "--quiet", "--json", "--json"),
    *("--help", "--no-such-option"),
]
OF_COMMAND: dict[str, tuple[str, ...]] = {
    "map": ("--columns", "--use", "--drop", "--label", "--labels", "--one-hot", "--id", "--target",
            "--color", "--scale", "--impute", "--missing", "--missing-values", "--normalize",
            "--pca", "--part", "--vector", "--format", "--into", "--seed", "--jobs",
            "--categories", "--order", "--cyclic"),
    "compare": ("--columns", "--use", "--label", "--labels", "--id", "--scale", "--missing",
                "--missing-values", "--normalize", "--pca", "--color", "--categories"),
    "info": ("--columns", "--use", "--drop", "--label", "--labels", "--id", "--part", "--seed",
             "--jobs", "--categories"),
    "score": ("--coordinates", "--columns", "--use", "--drop", "--id", "--scale", "--missing",
              "--one-hot", "--labels"),
    "select": ("--target", "-k", "--use", "--label", "--id", "--seed", "--jobs"),
    "transform": ("--label", "--labels", "--id", "--part", "--jobs"),
    "methods": (),
}  # fmt: skip


ORIENTATIONS = ["north=3", "west=0,north=5", "up=1", "north=", "rows.csv", "=", ""]


def random_command(rng: np.random.Generator) -> list[str]:
    """A command with its files, options that fit it mostly, and some values that do not."""
    command = pick(rng, ["map"] * 5 + [*OF_COMMAND, "select", "score", "transform"])
    words = [command, *_inputs(rng, command)]
    if command in ("map", "select", "compare"):
        words += _method(rng, command)
    for option in OF_COMMAND[command]:
        if chance(rng, 0.12):
            words += [option, pick(rng, TEXTS if chance(rng, 0.15) else SHARED[option])]
    words += [flag for flag in FLAGS if chance(rng, 0.06)]
    if command not in ("info", "methods") and chance(rng, 0.8):
        words += ["-o", _output(rng, command)]
    if command == "map" and chance(rng, 0.1):
        words += ["--orient", pick(rng, ORIENTATIONS)]
    if command == "map" and chance(rng, 0.85):
        words += ["--no-report"]
    if chance(rng, 0.03):
        words.insert(int(rng.integers(len(words) + 1)), pick(rng, TEXTS))
    if chance(rng, 0.03):
        del words[int(rng.integers(len(words)))]
    return words


def _inputs(rng: np.random.Generator, command: str) -> list[str]:
    if command == "methods":
        return pick(rng, [[], ["pca"], ["nonsense"], [pick(rng, registry.names())]])
    source = _input(rng)
    if command == "transform":
        Path("m.lowland").write_bytes(_model(rng))
        return ["m.lowland" if chance(rng, 0.95) else source, source]
    return [source, _input(rng)] if command == "score" else [source]


def _model(rng: np.random.Generator) -> bytes:
    variant = pick(rng, [("PCA", "rows"), ("PCA", "named"), ("LDA", "rows"), ("Chain", "rows")])
    content = saved_model(variant).content
    return damage(rng, content) if chance(rng, 0.1) else content


def _input(rng: np.random.Generator) -> str:
    kind = rng.random()
    if kind < 0.1:
        return pick(rng, ["iris", "eurodist", "wine", "swiss", "nonsense", "no.csv", "", ".", "/"])
    name = pick(rng, [name for name in names() if not name.startswith("images.")])
    content = damage(rng, whole_file(name)) if kind < 0.2 else whole_file(name)
    if kind > 0.97:
        name = pick(
            rng, ["a b.csv", "[x].csv", "ü.csv", "-x.csv", "t.xyz", "x.csv", "CSV", "a.CSV"]
        )
    Path(name).write_bytes(content)
    return name


def _method(rng: np.random.Generator, command: str) -> list[str]:
    if command == "compare":
        chosen = pick(rng, ["pca,isomap", "pca", "pca,pca", "pca,x", "", "lle,mds", "lda,pca"])
        return ["-m", chosen]
    known = registry.names() if command == "map" else registry.selector_names()
    name = pick(rng, known) if chance(rng, 0.95) else pick(rng, TEXTS)
    words = ["-m", name]
    if name in known:
        get = registry.get if command == "map" else registry.get_selector
        words += _parameters(rng, get(name))
    return words


def _parameters(rng: np.random.Generator, cls: Any) -> list[str]:
    """Parameters of the method as options."""
    values = ["1", "2", "3", "5", "0", "-1", "0.5", "1e-9", "1e300", "none", "auto", "x", "1,2"]
    values += ["cosine", "precomputed", "random", "99999999999"]
    words = []
    if "max_iter" in cls.parameters():
        words += ["--max-iter", str(int(rng.integers(0, 40)))]
    skipped = ("max_iter", "n_init", "random_state", "n_jobs", "verbose", "n_features")
    for name in cls.parameters():
        if name not in skipped and chance(rng, 0.1):
            words += [f"--{name.replace('_', '-')}", pick(rng, values)]
    return words


def _output(rng: np.random.Generator, command: str) -> str:
    if chance(rng, 0.1):
        Path("file").write_text("x")
        os.makedirs("folder.csv", exist_ok=True)
        return pick(
            rng, ["file", "folder.csv", "file/x", "", "no/such/out.csv", "out.txt", "t.csv"]
        )
    ending = {"map": "", "compare": "", "score": ".html"}.get(
        command, pick(rng, [".csv", ".parquet"])
    )
    return f"out{ending}"
