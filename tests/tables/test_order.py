"""Ordered values of text: asked for with their order, or pointed out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from lowland.cli import main
from lowland.errors import DataError, ParameterError
from lowland.tables.columns.categories import known_order
from lowland.workflow import make_map, place_rows
from support.cases import each

SIZES = ["low", "medium", "high"]
ROWS = """a,b,size,rank
1.0,3.5,low,1
2.5,1.0,high,10
0.5,2.0,medium,3
3.0,0.5,high,1
1.5,2.5,low,10
2.0,3.0,medium,3
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.csv").write_text(ROWS)
    return pl.read_csv("sizes.csv")


def test_ordered_values_are_equal_steps_also_in_new_rows(table):
    made = make_map("sizes.csv", "pca", order={"size": SIZES}, scale="none", labels=["rank"])
    assert any("size in order: low < medium < high" in line for line in made.log)
    steps = [SIZES.index(size) for size in table["size"]]
    X = np.column_stack([table["a"], table["b"], steps])
    D, E = (np.linalg.norm(Z[:, None] - Z, axis=2) for Z in (made.coordinates, X))
    assert (D <= E + 1e-9).all()  # PCA of these columns
    placed = place_rows(made.model, table.head(2)).coordinates
    np.testing.assert_allclose(placed, made.coordinates[:2], atol=1e-12)


def test_several_columns_have_orders_and_codes_may_be_numbers(table):
    order = {"size": SIZES, "rank": ["1", "3", "10"]}
    made = make_map("sizes.csv", "pca", order=order, scale="none", measure=False)
    ready = made.model.steps[0].transform(
        table.select(pl.col(made.model.feature_names_in_.tolist()))
    )
    names = made.model.steps[0].column_names_out()
    np.testing.assert_array_equal(ready[:, names.index("rank")], [0, 2, 1, 0, 2, 1])
    np.testing.assert_array_equal(ready[:, names.index("size")], [0, 2, 1, 2, 0, 1])


def test_a_value_outside_the_order_is_refused_by_name(table, capsys):
    with pytest.raises(DataError, match="'size': values that its order does not name: 'low'"):
        make_map("sizes.csv", "pca", order={"size": ["medium", "high"]})
    made = make_map("sizes.csv", "pca", order={"size": SIZES}, measure=False)
    with pytest.raises(DataError, match="'enormous'; the order is 'low', 'medium', 'high'"):
        place_rows(made.model, table.with_columns(size=pl.lit("enormous")))
    assert main(["map", "sizes.csv", "--order", "size"]) == 2
    assert "expected a column and its values in their order" in capsys.readouterr().err
    with pytest.raises(DataError, match="unknown column 'sizes'"):
        make_map("sizes.csv", "pca", order={"sizes": SIZES})
    for wrong in ({"size": "low"}, {"size": ["low"]}, {"size": ["low", "low"]}, {"size": [1, 2]}):
        with pytest.raises(ParameterError, match=r"order: .* is not allowed"):
            make_map("sizes.csv", "pca", order=wrong)


def test_a_missing_ordered_value_is_a_missing_number(table):
    table.with_columns(
        size=pl.when(pl.col("a") < 1).then(None).otherwise(pl.col("size"))
    ).write_csv("gaps.csv")
    options = {"order": {"size": SIZES}, "labels": ["rank"], "measure": False}
    with pytest.raises(DataError, match=r"missing value in 1 column: 'size' \(1\)"):
        make_map("gaps.csv", "pca", **options)
    assert make_map("gaps.csv", "pca", missing="drop", **options).dropped_rows == [2]
    filled = make_map("gaps.csv", "pca", missing="median", **options)
    assert filled.model.steps[0].fill_[-1] == 1.0


def test_an_order_that_everybody_knows_is_pointed_out(table, capsys):
    assert main(["map", "sizes.csv", "-m", "pca"]) == 0
    said = capsys.readouterr().out
    assert "size looks ordered; --order 'size=low,medium,high' maps it as equal steps" in said
    log = make_map("sizes.csv", "pca", measure=False).log
    assert any("order={'size': ['low', 'medium', 'high']}" in line for line in log)
    log = make_map("sizes.csv", "pca", order={"size": SIZES}, measure=False).log
    assert not any("looks ordered" in line for line in log)


@each(
    ("values", "order"),
    [
        (["agree", "disagree", "neutral", "strongly agree", "strongly disagree"],
         ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"]),
        (["Large", "Medium", "Small"], ["Small", "Medium", "Large"]),
        (["always", "never", "often", "rarely", "sometimes"],
         ["never", "rarely", "sometimes", "often", "always"]),
        (["excellent", "fair", "good", "poor"], ["poor", "fair", "good", "excellent"]),
        (["Fair", "Good", "Ideal", "Premium", "Very Good"],
         ["Fair", "Good", "Very Good", "Premium", "Ideal"]),
        (["L", "M", "S", "XL"], ["S", "M", "L", "XL"]),
        (["high", "low"], None),
        (["red", "green", "blue"], None),
        (["low", "medium", "high", "blue"], None),
        (["medium", "moderate", "low"], None),
    ],
)  # fmt: skip
def test_known_orders(values, order):
    assert known_order(values) == order
