"""What a user is told about columns, rows and distances before a method sees them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from support.cases import each


@pytest.fixture
def mixed(tmp_path):
    """60 rows: names and two columns in very different units."""
    rng = np.random.default_rng(0)
    n = 60
    frame = pl.DataFrame(
        {
            "name": [f"s{i}" for i in range(n)],
            "mass": rng.normal(5e4, 1e3, n),
            "size": rng.normal(0.1, 0.01, n),
        }
    )
    frame.write_csv(tmp_path / "mixed.csv")
    return frame


@each(
    ("options", "words"),
    [
        ([], "scaled: standard (units seem to differ: deviations range from 0.0"),
        (["--scale", "none"], "not scaled (as asked)"),
        (["--scale", "robust"], "scaled: robust (as asked)"),
    ],
)
def test_the_log_says_how_columns_were_scaled_and_why(run, mixed, options, words):
    command = ("map", "mixed.csv", "-m", "pca", "--id", "name", "--no-report", "--force")
    assert words in run(*command, *options).out


def test_a_small_table_gets_a_perplexity_that_suits_it(run, cells):
    outcome = run("map", cells)
    assert outcome.code == 0
    assert "perplexity 3.67, because there are only 12 rows" in outcome.out


def test_two_classes_have_one_discriminant_axis(run, tmp_path):
    outcome = run("map", "breast_cancer", "-m", "lda", "-o", "out")
    assert outcome.code == 0
    assert "one dimension, because LDA has no more for these data" in outcome.out
    assert pl.read_csv(tmp_path / "out" / "map.csv").columns == ["row", "x", "class"]


def test_distances_are_mapped_and_scored(run, refused, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    np.save(tmp_path / "d.npy", D)
    outcome = run("map", "d.npy", "--distances", "-o", "out")
    assert outcome.code == 0
    assert "distances between 40 rows, as they are" in outcome.out
    assert run("score", "d.npy", "out/map.csv", "--distances").code == 0
    message = refused("map", "d.npy", "--distances", "-m", "pca")
    assert "PCA works on columns, not on distances" in message
    assert "tsne" in message
    message = refused("map", "d.npy", "--distances", "-m", "linear-mds")
    assert "LinearMDS works on columns, not on distances" in message
    assert "linear_mds" not in message


def test_unknown_distances_are_for_methods_that_do_without(run, refused, tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3))
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    D[2, 5] = D[5, 2] = np.nan
    np.save(tmp_path / "d.npy", D)
    outcome = run("map", "d.npy", "--distances", "-m", "mds", "-o", "out")
    assert outcome.code == 1
    assert "distances between 40 rows, as they are; 1 of them not known" in outcome.out
    assert "the map was not measured" in outcome.err
    assert run("transform", "out/model.lowland", "d.npy", "-o", "again.csv").code == 0
    message = refused("map", "d.npy", "--distances", "-m", "classical-mds")
    assert "is not known; fill it in, or allow missing distances (mds, nonmetric_mds" in message
