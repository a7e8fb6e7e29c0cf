"""Odd command lines and odd tables: a documented code, one line that says what is wrong."""

from __future__ import annotations

import functools
import itertools
import shutil

import numpy as np
import polars as pl
import pytest

from support.cases import Cases

DONE, BAD = 0, 2

# Arguments, and what the line must name; None if the command may also succeed.
LINES = [
    (["frobnicate"], "frobnicate"),
    (["transform", "m.lowland"], "INPUT"),
    (["score", "t.csv"], "MAP"),
    (["map", "t.csv", "extra"], "extra"),
    (["map", "--", "--help"], "--help"),
    (["map", "-"], "-"),
    (["map", ""], "empty"),
    (["map", " "], "empty"),
    (["map", "a" * 5000 + ".csv"], "aaa"),
    (["map", "x\ny.csv"], "x y.csv"),
    (["map", "näme☃.csv"], "näme"),
    (["map", "t.csv", "-m", ""], "method"),
    (["map", "t.csv", "-m", "pca,tsne"], "pca,tsne"),
    (["map", "t.csv", "-m"], "-m"),
    (["map", "t.csv", "--perplexity", "-5"], "--perplexity"),
    (["map", "t.csv", "--perplexity", "many"], "--perplexity"),
    (["map", "t.csv", "--perplexity", "nan"], "--perplexity"),
    (["map", "t.csv", "--perplexity", "1e400"], "--perplexity"),
    (["map", "t.csv", "--max-iter", "1.5"], "--max-iter"),
    (["map", "t.csv", "-m", "pca", "--n-components", "0"], "--n-components"),
    (["map", "t.csv", "-m", "pca", "--n-components", "99"], "n_components"),
    (["map", "t.csv", "-m", "pca", "--n-components", "9" * 400], "n"),
    (["map", "t.csv", "-m", "pca", "--perplexity", "5"], "--perplexity"),
    (["map", "t.csv", "-m", "isomap", "--n-neighbors", "1000000"], "n_neighbors"),
    (["map", "t.csv", "--metric", "no such"], "--metric"),
    (["map", "t.csv", "-m", "pca", "--seed", "9" * 30, "-o", "big"], None),
    (["map", "t.csv", "-m", "pca", "--jobs", "x"], "--jobs"),
    (["map", "t.csv", "-m", "pca", "--jobs", "9" * 30], "jobs"),
    (["map", "t.csv", "--scale", "loud"], "--scale"),
    (["map", "t.csv", "--impute", "zero"], "--missing"),
    (["map", "t.csv", "--pca", "-3"], "--pca"),
    (["map", "t.csv", "--pca", "9" * 30, "-m", "pca"], None),
    (["map", "t.csv", "--format", "xls"], "--format"),
    (["map", "t.csv", "--columns", "a,nope"], "nope"),
    (["map", "t.csv", "--columns", "kind", "-o", "by-kind"], None),
    (["map", "t.csv", "--columns", ","], None),
    (["map", "t.csv", "--columns", '"a'], None),
    (["map", "t.csv", "--columns", "a\nnope"], "nope"),
    (["map", "t.csv", "--columns", "a,a,b", "-m", "pca", "-o", "twice"], None),
    (["map", "t.csv", "--drop", "nope"], "nope"),
    (["map", "t.csv", "--drop", "a,b,c"], "leaves no column of numbers"),
    (["map", "t.csv", "--columns", "a", "--drop", "a"], "--drop"),
    (["map", "t.csv", "--label", "a,b,c"], "no column of numbers"),
    (["map", "t.csv", "--id", ""], None),
    (["map", "t.csv", "--color", "nope"], "nope"),
    (["map", "t.csv", "--color", "nope", "--color", "kind"], None),
    (["map", "t.csv", "--target", "nope", "-m", "lda"], "nope"),
    (["map", "t.csv", "--one-hot", "nope"], "nope"),
    (["map", "t.csv", "--one-hot", "a", "-o", "one-hot"], None),
    (["map", "t.csv", "--part", "X"], "part"),
    (["map", "t.csv", "--distances"], "t.csv"),
    (["map", "t.csv", "--distances", "--scale", "standard"], "--distances"),
    (["map", "eurodist", "-m", "pca"], "--distances"),
    (["map", "eurodist", "-m", "mds", "--columns", "a"], "--columns"),
    (["map", "t.csv", "-o", "t.csv"], "t.csv"),
    (["map", "t.csv", "-o", "t.csv/deeper"], "t.csv"),
    (["map", "t.csv", "-m", "pca", "-o", ""], None),
    (["map", "t.csv", "-m", "pca", "-o", "a" * 300], "a"),
    (["map", "t.csv", "-m", "pca", "-o", "/dev/null"], "/dev/null"),
    (["map", "t.csv", "-m", "pca", "-o", "/dev/full/x"], "/dev/full"),
    (["map", "t.csv", "-m", "pca", "-o", "/proc/nowhere"], "/proc"),
    (["map", "t.csv", "--quiet=yes"], "--quiet"),
    (["map", "t.csv", "--no-json"], "--no-json"),
    (["map", "folder"], "folder"),
    (["map", "/dev/zero"], "/dev/zero"),
    (["transform", "t.csv", "t.csv", "-o", "o.csv"], "t.csv"),
    (["transform", "folder", "t.csv", "-o", "o.csv"], "folder"),
    (["transform", "nope.lowland", "t.csv", "-o", "o.csv"], "nope.lowland"),
    (["transform", "m.lowland", "other.csv", "-o", "o.csv"], "missing"),
    (["transform", "m.lowland", "t.csv", "-o", "o.txt"], "o.txt"),
    (["transform", "m.lowland", "t.csv", "-o", "m.lowland", "--force"], "m.lowland"),
    (["transform", "/dev/zero", "t.csv", "-o", "o.csv"], "/dev/zero"),
    (["compare", "t.csv", "-m", ","], "--methods"),
    (["compare", "t.csv", "-m", "pca,,"], None),
    (["compare", "t.csv", "--method", "pca"], "--method"),
    (["score", "t.csv", "t.csv", "--coordinates", "nope"], "nope"),
    (["score", "t.csv", "t.csv", "--coordinates", "kind"], "kind"),
    (["score", "t.csv", "other.csv"], "rows"),
    (["score", "t.csv", "t.csv", "--id", "nope"], "nope"),
    (["score", "t.csv", "t.csv", "-o", "t.csv"], "t.csv"),
    (["select", "t.csv", "-k", "-1"], "n-features"),
    (["select", "t.csv", "-k", "1.5"], "n-features"),
    (["select", "eurodist"], "eurodist"),
    (["info", "t.csv", "--distances"], "t.csv"),
    (["info", "t.csv", "--scale", "none"], "--scale"),
    (["methods", "pca", "tsne"], "tsne"),
    (["methods", ""], None),
]

# Tables, and what the line must name; None if the table is fine.
TABLES = {
    "empty.csv": (b"", "empty"),
    "header.csv": (b"a,b,c\n", "no rows"),
    "one_row.csv": (b"a,b\n1,2\n", "1 sample"),
    "one_column.csv": (b"a\n" + b"\n".join(b"%d" % (i * i) for i in range(12)), None),
    "utf16.csv": ("a,b\n1,2\n3,4\n".encode("utf-16"), None),
    "ragged.csv": (b"a,b\n1,2\n3\n4,5,6\n", "line"),
    "hole.csv": (b"a,b\n1,1\n2,\n3,4\n4,\n", "missing values"),
    "all_missing.csv": (b"a,b\nNA,NA\nNA,NA\n", "all_missing.csv"),
    "inf.csv": (b"a,b\n1,inf\n2,3\n3,4\n", "infinite"),
    "huge.csv": (b"a,b\n1e308,1\n-1e308,2\n1e308,3\n" * 1 + b"1e307,7\n" * 9, "divide"),
    "overflow.csv": (b"a,b\n1e400,1\n2,2\n3,3\n4,4\n5,6\n6,1\n7,8\n", "infinite"),
    "text.csv": (b"a,b\nx,y\nz,w\nu,v\n", "no column of numbers"),
    "binary.csv": (bytes(range(256)) * 20, "binary.csv"),
    "names.csv": (b"=1+1,\xe2\x98\x83\n" + b"1,2\n3,5\n4,4\n" * 5, None),
    "constant.csv": (b"a,b\n" + b"1,2\n" * 12, None),
    "wrong.parquet": (b"no table\n", "Parquet"),
    "called.parquet": (b"a,b\n1,2\n3,5\n4,1\n", None),
    "wrong.csv.gz": (b"a,b\n1,2\n", "gzip"),
    "no_suffix_file": (b"a,b\n1,2\n", "suffix"),
}


@pytest.fixture
def place(run, tmp_path):
    """A folder with a table, a model and an empty folder."""
    rng = np.random.default_rng(0)
    frame = pl.from_numpy(rng.normal(size=(12, 3)), schema=list("abc"))
    frame.with_columns(kind=pl.Series(["u", "v"] * 6)).write_csv(tmp_path / "t.csv")
    (tmp_path / "other.csv").write_text("p,q\n1,2\n3,4\n5,1\n")
    (tmp_path / "folder").mkdir()
    assert run("map", "t.csv", "-m", "pca", "--no-report", "-o", "made").code == 0
    (tmp_path / "made" / "model.lowland").rename(tmp_path / "m.lowland")
    return tmp_path


def contents(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def check(outcome, named, before, folder):
    assert outcome.code in ((BAD,) if named is not None else (DONE, BAD)), outcome
    assert "Traceback" not in outcome.err
    lines = outcome.err.splitlines()
    assert all(line.startswith("lowland: ") for line in lines), outcome.err
    assert sum(line.startswith("lowland: error: ") for line in lines) == (outcome.code == BAD)
    assert not list(folder.rglob(".lowland*"))
    if outcome.code == BAD:
        assert outcome.out == ""
        assert named is None or named in outcome.err
        assert contents(folder) == before
        assert len(outcome.err) < 2000


def test_odd_command_lines(run, place):
    cases = Cases()
    before = contents(place)
    for arguments, named in LINES:
        outcome = run(*arguments)
        label = " ".join(arguments)[:80]
        cases.run(label, functools.partial(check, outcome, named, before, place))
        shutil.rmtree(place / "lowland-out", ignore_errors=True)
        before = contents(place)
    cases.finish()


def test_odd_tables(run, place):
    for name, (content, _) in TABLES.items():
        (place / name).write_bytes(content)
    cases = Cases()
    for name, (_, named) in TABLES.items():
        before = contents(place)
        outcome = run("map", name, "-m", "pca", "--no-report", "-o", f"out-{name}")
        cases.run(name, functools.partial(check, outcome, named, before, place))
    cases.finish()


@pytest.mark.slow
def test_every_command_on_every_odd_table(run, place):
    """Only that all ends well; what the line says is tested above, by one command."""
    for name, (content, _) in TABLES.items():
        (place / name).write_bytes(content)
    cases = Cases()
    commands = {
        "info": lambda name: ["info", name],
        "select": lambda name: ["select", name, "-k", "1", "-o", f"s-{name}.csv"],
        "transform": lambda name: ["transform", "m.lowland", name, "-o", f"p-{name}.csv"],
        "score": lambda name: ["score", name, name],
    }
    for (command, arguments), name in itertools.product(commands.items(), TABLES):
        if name == "huge.csv":
            continue
        before = contents(place)
        outcome = run(*arguments(name))
        cases.run(f"{command} {name}", functools.partial(check, outcome, None, before, place))
    cases.finish()
