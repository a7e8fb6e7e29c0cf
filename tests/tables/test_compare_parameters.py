"""``compare`` over parameters: entries, their names, files and titles, and what is refused."""

from __future__ import annotations

import html
import json

import numpy as np
import polars as pl
import pytest

import lowland
from lowland._base.constraints import listed
from lowland.cli import main
from lowland.errors import ParameterError
from lowland.workflow import compare_methods, make_map
from lowland.workflow.comparing.entries import comparison_entries, split_along
from support.cases import each

TABLE = "a,b,c,d\n" + "".join(
    f"{i % 7 + i / 50:.2f},{i * i % 13},{i * 5 % 11},{i % 3}.5\n" for i in range(60)
)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    return tmp_path


def test_one_method_with_several_parameters(table, capsys):
    entries = "pca,tsne:perplexity=5:max_iter=300,tsne:perplexity=15,isomap:n-neighbors=8"
    assert main(["compare", "t.csv", "-m", entries, "-o", "out", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = [
        "pca", "tsne:perplexity=5:max_iter=300", "tsne:perplexity=15", "isomap:n_neighbors=8",
    ]  # fmt: skip
    assert [row["method"] for row in found["methods"]] == names
    assert found["methods"][1]["parameters"] == {"perplexity": 5.0, "max_iter": 300}
    files = sorted(path.name for path in (table / "out").iterdir())
    assert files == [
        "comparison.csv", "map-isomap-n_neighbors-8.csv", "map-pca.csv",
        "map-tsne-perplexity-15.csv", "map-tsne-perplexity-5-max_iter-300.csv", "maps.png",
        "report.html",
    ]  # fmt: skip
    assert pl.read_csv("out/comparison.csv")["method"].to_list() == names
    page = html.unescape((table / "out" / "report.html").read_text())
    for title in ("PCA", "TSNE, perplexity 5, max_iter 300", "TSNE, perplexity 15"):
        assert title in page
    assert "rotated, reflected and scaled to resemble the first; the files" in page
    # each file holds the map of the method with these parameters, as the method made it
    made = make_map("t.csv", "tsne", perplexity=5, max_iter=300, measure=False)
    held = pl.read_csv("out/map-tsne-perplexity-5-max_iter-300.csv").select("x", "y").to_numpy()
    np.testing.assert_allclose(held, made.coordinates, rtol=1e-6, atol=1e-6)


def test_entries_from_python(table):
    given = ["pca", ("pca", {"whiten": True}), (lowland.Isomap, {"n_neighbors": 7}), lowland.LLE]
    found = compare_methods("t.csv", given)
    names = ["pca", "pca:whiten=True", "isomap:n_neighbors=7", "lle"]
    assert list(found.maps) == names
    assert found.table["method"].to_list() == names
    assert found.models["isomap:n_neighbors=7"] is not None
    plain, whitened = (found.maps[name]["x"].to_numpy() for name in names[:2])
    assert np.std(plain) != pytest.approx(np.std(whitened), rel=0.01)
    files = found.write("out")
    assert files.maps["pca:whiten=True"].name == "map-pca-whiten-True.csv"


@each(
    ("entries", "message"),
    [
        ("pca,pca", "'pca' is given twice; compare values of a parameter as name:parameter=value"),
        ("tsna", "unknown method 'tsna'; did you mean 'tsne'?"),
        ("tsne:perplexity=many", "tsne: perplexity: 'many' is not allowed; expected a number"),
        ("tsne:perplexity", "tsne: 'perplexity' is not a setting; write name:parameter=value"),
        ("tsne:perplexity=5:perplexity=6", "perplexity is given twice in one entry"),
        ("tsne:random_state=5", "random_state is the same for all maps; it is the option seed"),
        ("tsne:callback=x", "unknown parameter 'callback'"),
        (":", "unknown method ''"),
        (",", "names no method"),
        ('"tsne', "unknown method"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_entries_are_refused_before_anything_is_read(entries, message, tmp_path, capsys):
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path)
        assert main(["compare", "absent.csv", "-m", entries]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    if '"' not in entries:
        assert message in err


@each(
    ("methods", "message"),
    [
        ([5], "methods: 5 is not allowed; expected the name or the class of a method"),
        ([("tsne", 5)], "is not allowed"),
        ([("tsne", {"perplexty": 5})], "did you mean 'perplexity'?"),
        ([("tsne", {"perplexity": -5})], "TSNE: perplexity=-5 is not allowed"),
        (["pca", lowland.PCA], "'pca' is given twice"),
        ([("tsne", {"perplexity": 5}), "tsne:perplexity=5"], "is given twice"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_wrong_entries_are_refused_in_python(methods, message):
    with pytest.raises(ParameterError) as caught:
        compare_methods("iris", methods)
    assert message in str(caught.value)


def test_each_method_with_the_parameter_goes_along_it(table, capsys):
    command = ["compare", "t.csv", "-m", "pca,isomap,lle:reg=0.01", "--along", "n-neighbors=6,9"]
    assert main([*command, "-o", "out", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["methods"]
    names = [
        "pca", "isomap:n_neighbors=6", "isomap:n_neighbors=9",
        "lle:reg=0.01:n_neighbors=6", "lle:reg=0.01:n_neighbors=9",
    ]  # fmt: skip
    assert [row["method"] for row in found] == names
    assert (table / "out" / "map-isomap-n_neighbors-9.csv").exists()
    assert "Isomap, n_neighbors 9" in html.unescape((table / "out" / "report.html").read_text())
    values = {"n_neighbors": np.array([6, 9])}
    made = compare_methods("t.csv", ["isomap"], along=values)
    assert list(made.maps) == names[1:3]
    alone = make_map("t.csv", "isomap", n_neighbors=9, measure=False)
    np.testing.assert_array_equal(
        made.maps[names[2]].select("x", "y").to_numpy(), alone.map.select("x", "y").to_numpy()
    )


def test_several_parameters_are_combined():
    entries = comparison_entries(
        ["pca", "tsne"], along={"dof": [0.5, 1], "init": ["pca", "random"]}
    )
    assert [entry.name for entry in entries] == [
        "pca", "tsne:dof=0.5:init=pca", "tsne:dof=0.5:init=random", "tsne:dof=1:init=pca",
        "tsne:dof=1:init=random",
    ]  # fmt: skip
    starts = {"init": [np.zeros((60, 2)), np.ones((60, 2))]}
    one, other = comparison_entries(["tsne"], along=starts)
    assert one.name != other.name
    assert split_along(["perplexity=5,'x"]) == {"perplexity": ["5", "'x"]}
    assert split_along(['perplexity=30,"5,50"']) == {"perplexity": ["30", "5,50"]}


@each(
    ("methods", "along", "message"),
    [
        (
            "pca,lda",
            ["exaggeration=1,4"],
            "pca, lda have no parameter 'exaggeration'; these methods have it: tsne.",
        ),
        (
            "tsne",
            ["exaggeration=0.5,4"],
            "tsne: exaggeration: '0.5' is not allowed; expected a number in [1, 1e+06].",
        ),
        ("tsne", ["exaggeration"], "'exaggeration' is not allowed; expected a parameter and its"),
        ("tsne", ["=1,4"], "'=1,4' is not allowed"),
        ("tsne", ["exaggeration=1,1.0"], "exaggeration has the value 1 twice"),
        ("tsne", ["dof=1", "dof=2"], "dof is given twice; list all of its values once."),
        ("tsne:exaggeration=3", ["exaggeration=1,4"], "tsne:exaggeration=3 has a value of"),
        (
            "tsne",
            [f"exaggeration={','.join(map(str, range(1, 26)))}"],
            "25 values of exaggeration would make 25 maps; give values for at most 24 maps.",
        ),
        ("tsne,umap", ["metric=euclidean,cosine", "n_neighbors=3,4,5,6,7,8,9"], "would make 28"),
    ],
    ids=str,
)
def test_what_a_comparison_cannot_go_along_is_refused(methods, along, message, capsys):
    typed = [part for text in along for part in ("--along", text)]
    assert main(["compare", "absent.csv", "-m", methods, *typed]) == 2
    err = capsys.readouterr().err
    assert err.startswith("lowland: error: --along: ")
    assert err.count("\n") == 1
    assert message in err


@each(
    ("along", "message"),
    [
        ([1, 4], "along: [1, 4] is not allowed; expected a dictionary of parameters and lists of"),
        ({"exaggeration": 4}, "along: exaggeration: 4 is not allowed; expected a list of values."),
        ({"exaggeration": "1,4"}, "along: exaggeration: '1,4' is not allowed"),
        ({"exaggeration": []}, "along: exaggeration has no values"),
        ({"exaggeration": [1, float("nan")]}, "nan is not allowed"),
        ({"exaggeration": [1, "much"]}, "'much' is not allowed"),
        ({"random_state": [1, 2]}, "random_state is the same for all maps; it is the option seed"),
        ({"method": ["exact"]}, "unknown parameter 'method'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_a_comparison_cannot_go_along_is_refused_in_python(along, message):
    with pytest.raises(ParameterError) as caught:
        compare_methods("iris", ["tsne"], along=along)
    assert message in str(caught.value)


def test_values_that_look_alike_are_numbered_and_lists_are_quoted():
    one, other = np.zeros((60, 2)), np.ones((60, 2))
    entries = comparison_entries([("tsne", {"init": one}), ("tsne", {"init": other})])
    assert [entry.name for entry in entries] == [
        "tsne:init=arrayx60x2", "tsne:init=arrayx60x2:number=2",
    ]  # fmt: skip
    assert len({entry.stem for entry in entries}) == 2
    assert listed(['pca,"tsne:perplexity=5,50",']) == ["pca", "tsne:perplexity=5,50"]
    [entry] = comparison_entries(listed(['"tsne:perplexity=5,50"']))
    assert entry.parameters == {"perplexity": [5.0, 50.0]}
    assert entry.stem == "tsne-perplexity-5+50"
