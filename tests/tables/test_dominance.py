"""One column or one row that carries nearly all variance is named on screen and in the report."""

from __future__ import annotations

import html

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from lowland.cli import main
from lowland.tables.columns.missing import dominating
from lowland.workflow import make_map
from support.cases import each

RNG = np.random.default_rng(3)
TABLE = "salary,age,height,iq,weight\n" + "".join(
    f"{30000 + 4000 * a:.0f},{40 + 10 * b:.0f},{170 + 8 * c:.0f},{100 + 15 * d:.0f},{70 + e:.1f}\n"
    for a, b, c, d, e in RNG.standard_normal((50, 5))
)


def said(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(TABLE)
    return tmp_path


def test_who_asks_for_no_scale_is_told(table, capsys):
    assert main(["map", "people.csv", "-m", "pca", "-o", "out", "--scale", "none"]) == 0
    err = said(capsys.readouterr().err)
    assert "column 'salary' carries 100.0% of the variance: the map shows little else" in err
    assert "--scale standard gives all columns the same weight, --drop salary leaves" in err
    page = said(html.unescape((table / "out" / "report.html").read_text()))
    assert "Column 'salary' carries 100.0 % of the variance" in page
    assert main(["map", "people.csv", "-m", "pca", "-o", "scaled"]) == 0
    assert "carries" not in capsys.readouterr().err
    assert "carries" not in (table / "scaled" / "report.html").read_text()


def test_columns_of_bare_arrays_are_called_by_number():
    log = make_map(RNG.standard_normal((30, 4)) * [1, 1, 1, 50], "pca").log
    assert any("column 3 carries" in line and "scale='standard'" in line for line in log)
    assert not any("drop" in line for line in log)  # a bare array has no names


def test_the_share_is_that_of_the_definition():
    X = RNG.standard_normal((60, 5)) * [1, 2, 3, 60, 1] + 7
    [found] = dominating(X, list("abcde"), range(60))
    assert (found.kind, found.name) == ("column", "d")
    assert found.share == pytest.approx(X.var(axis=0)[3] / X.var(axis=0).sum(), rel=1e-12)
    [sparse] = dominating(scipy.sparse.csr_matrix(X), list("abcde"), range(60))
    assert sparse.share == pytest.approx(found.share, rel=1e-9)
    [large] = dominating(X * 1e70, list("abcde"), range(60))
    assert large.share == pytest.approx(found.share, rel=1e-9)


def test_one_row_far_from_all_others_is_named():
    X = RNG.standard_normal((80, 4))
    X[17] += 500
    found = make_map(
        pl.DataFrame(X, schema=list("abcd"), orient="row").with_columns(
            name=pl.Series([f"s{i}" for i in range(80)])
        ),
        "pca",
        id_column="name",
        measure=False,
    )._prepared.dominant
    assert [(each.kind, each.name) for each in found] == [("row", "s17")]
    squares = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    assert found[0].share == pytest.approx(squares[17] / squares.sum(), rel=1e-9)


@each(
    "X",
    [
        np.ones((30, 3)),
        np.zeros((30, 3)),
        RNG.standard_normal((30, 1)),
        RNG.standard_normal((1, 3)),
        RNG.standard_normal((40, 2)) * [1, 2],
        RNG.standard_normal((5, 3)),
        RNG.standard_t(3, (200, 5)),
    ],
    ids=["constant", "zero", "one column", "one row", "two alike", "few rows", "heavy tails"],
)
def test_ordinary_tables_have_no_such_column_or_row(X):
    assert dominating(X, None, range(len(X))) == []
