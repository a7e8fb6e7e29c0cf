"""``lowland trust`` and ``lowland map --check``: what a person reads, and what a program does."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

MARKS = {"ok", "caution", "serious", "-"}


@pytest.fixture
def island(tmp_path):
    """One cloud with ids; a map that cuts it in two, in another order; and two usual maps."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    ids = [f"s{i}" for i in range(300)]
    frame = pl.DataFrame({"sample": ids, **{f"g{j}": X[:, j] for j in range(4)}})
    frame.write_csv(tmp_path / "cells.csv")
    for name, gap in (("cut", 8.0), ("whole", 0.0), ("again", 0.0)):
        Y = X[:, :2] + np.outer(X[:, 0] > 0, [gap, 0]) + (name == "again")
        order = rng.permutation(300)
        made = pl.DataFrame({"sample": ids, "umap_1": Y[:, 0], "umap_2": Y[:, 1]})
        made[order.tolist()].write_csv(tmp_path / f"{name}.csv")
    return X


def marked(out):
    """The marks and the sentences of a printed result."""
    lines = [line.split(maxsplit=1) for line in out.splitlines() if line.startswith("  ")]
    return [(line[0], line[1]) for line in lines if line[0] in MARKS]


def test_a_gap_that_is_not_in_the_data_is_serious(run, island):
    outcome = run("trust", "cells.csv", "cut.csv")
    assert outcome.code == 0
    assert outcome.err == ""
    found = marked(outcome.out)
    assert ("serious", "The gap between the two islands is not in the data.") in found
    assert found[-1] == (
        "-", "Stability and chance are not known: a map that is given cannot be made again."
    )  # fmt: skip
    assert "cut.csv: coordinates: umap_1, umap_2 (by their names)" in outcome.out
    assert "rows are matched by their ids in column 'sample'" in outcome.out
    assert "not in the data" not in run("trust", "cells.csv", "whole.csv").out


def test_other_maps_tell_what_is_stable(run, island):
    both = "again.csv,cut.csv"
    outcome = run("trust", "cells.csv", "whole.csv", "--others", both, "--json", "--seed", 3)
    found = json.loads(outcome.out)
    assert found["others"] == ["again.csv", "cut.csv"]
    assert found["coordinates"] == ["umap_1", "umap_2"]
    assert set(found["trust"]["reasons"]) == {"chance"}
    maps = found["trust"]["stability"]["maps"]
    assert [each["rows"] for each in maps] == [300, 300]
    # the shifted map is the same, the cut one is not
    one = json.loads(run("trust", "cells.csv", "whole.csv", "--others", "again.csv", "--json").out)
    assert one["trust"]["stability"]["agreement"] == 1.0
    assert found["trust"]["stability"]["agreement"] < 0.999
    assert "compared with 2 other maps: again.csv, cut.csv" in found["notes"]


def test_report_and_points_are_written(run, refused, island, tmp_path):
    call = ("trust", "cells.csv", "cut.csv", "-o", "r.html", "--csv", "points.parquet")
    outcome = run(*call)
    assert outcome.code == 0
    assert outcome.out.endswith("  report   r.html\n  points   points.parquet\n")
    points = pl.read_parquet("points.parquet")
    assert points["sample"].to_list() == [f"s{i}" for i in range(300)]
    assert {"missing", "strangers", "kind", "home_x", "home_y", "island"} < set(points.columns)
    # rows near the cut have lost neighbors, and they are named by their ids
    X = island
    near = np.abs(X[:, 0]) < 0.15
    lost = points["missing"].to_numpy()
    assert lost[near].mean() > 2 * lost[np.abs(X[:, 0]) > 1].mean()
    assert "lowland trust cells.csv cut.csv" in (tmp_path / "r.html").read_text()
    assert "r.html: exists already" in refused(*call)
    assert run(*call, "--force").code == 0
    assert "points.txt: maps are written to files ending in" in refused(
        *call[:3], "--csv", "points.txt"
    )
    assert "ending in .html" in refused(*call[:3], "-o", "r.pdf")
    assert "is also the input" in refused(*call[:3], "--csv", "cut.csv", "--force")


def test_bad_input_ends_in_one_line(refused, island, tmp_path):
    assert "nope.csv: no such file" in refused("trust", "cells.csv", "nope.csv")
    assert "nope.csv: no such file" in refused(
        "trust", "cells.csv", "cut.csv", "--others", "nope.csv"
    )
    pl.read_csv("cut.csv").head(200).write_csv("part.csv")
    assert "part.csv" in refused("trust", "cells.csv", "part.csv")
    pl.read_csv("cells.csv").head(6).write_csv("six.csv")
    message = refused("trust", "six.csv", "cut.csv")
    assert "six.csv: the map cannot be judged: 6 rows are too few (at least 10" in message


def test_a_map_is_judged_and_on_request_checked(run, refused, island, tmp_path):
    plain = run("map", "cells.csv", "-m", "pca", "-o", "a")
    asked = run("map", "cells.csv", "-m", "pca", "-o", "b", "--check")
    short, long = marked(plain.out), marked(asked.out)
    assert short == [each for each in long if each in short]
    assert 3 <= len(short) < len(long) <= 6
    assert any("Maps made again agree on" in text for _, text in long)
    assert "-" not in {mark for mark, _ in short}  # nobody asked for what is not known
    assert (tmp_path / "a" / "map.csv").read_bytes() == (tmp_path / "b" / "map.csv").read_bytes()
    assert "stability" in pl.read_csv("b/trust.csv").columns
    assert "stability" not in pl.read_csv("a/trust.csv").columns
    found = json.loads(run("map", "cells.csv", "-m", "pca", "-o", "c", "--json").out)
    assert found["trust"]["stability"] is None
    assert found["stages"]["judging"] > 0 == found["stages"]["checking"]
    assert found["outputs"]["trust"] == "c/trust.csv"
    pl.read_csv("cells.csv").head(20).write_csv("few.csv")
    few = run("map", "few.csv", "-m", "pca", "-o", "d", "--check")
    assert few.code == 0
    assert marked(few.out)[-1] == (
        "-", "Stability and chance are not known: 20 rows are too few to make maps of parts of "
        "them."
    )  # fmt: skip
    assert not (tmp_path / "e").exists()
    assert run("map", "cells.csv", "-m", "pca", "-o", "e", "--no-report").code == 0
    assert not (tmp_path / "e" / "trust.csv").exists()
    assert "--check" in refused("map", "cells.csv", "-o", "f", "--no-report", "--check")


def test_a_comparison_shows_gaps_that_are_not_in_the_data(run, island):
    outcome = run("compare", "cells.csv", "-m", "pca,classical_mds", "-o", "out")
    heads, first, second = (line.split() for line in outcome.out.splitlines()[2:5])
    assert heads[-4:] == ["gaps", "not", "in", "data"]
    assert first[-3:] == second[-3:] == ["0", "of", "0"]
    table = pl.read_csv("out/comparison.csv")
    assert table["gaps_not_in_data"].to_list() == [0, 0]
