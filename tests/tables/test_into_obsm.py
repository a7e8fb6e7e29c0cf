"""``lowland map x.h5ad --into obsm``: the map in a copy of the file, where scanpy looks for it."""

from __future__ import annotations

import gzip
import json
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from lowland import __version__
from lowland._base.errors import DataError, ParameterError
from lowland.cli import main
from lowland.tables.formats import h5ad, h5ad_writing
from lowland.workflow import make_map
from support.cases import each

h5py = pytest.importorskip("h5py", reason="H5AD files are written by h5py")
anndata = pytest.importorskip("anndata", reason="the reader of the files")

N = 40
QUICK = ["--no-report"]


def an_anndata():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(N, 6)).astype(np.float32)
    data = anndata.AnnData(
        scipy.sparse.csr_matrix(np.maximum(values, 0)),
        obs=pd.DataFrame(
            {"kind": pd.Categorical(list("abcd") * 10), "depth": rng.normal(size=N)},
            index=[f"cell{i % 39}" for i in range(N)],  # one name twice
        ),
        var=pd.DataFrame(index=[f"gene{i}" for i in range(6)]),
    )
    data.layers["scaled"] = values
    data.obsm["holes"] = np.where(rng.random((N, 3)) < 0.1, np.nan, values[:, :3])
    data.uns["note"] = {"text": "as it was", "numbers": np.arange(4)}
    return data


@pytest.fixture
def cells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cells.h5ad"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not unique")
        an_anndata().write_h5ad(path)
    return path


@pytest.fixture
def quick(monkeypatch):
    """No processes of their own for looking and adding, which take longer than the rest."""
    monkeypatch.setattr(sys, "executable", "")


def read(path):
    with pytest.warns(UserWarning, match="not unique"):
        return anndata.read_h5ad(path)


def refusal(capsys, *arguments):
    """The one line that a refused command prints."""
    assert main(list(map(str, arguments))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def objects(path):
    """Everything in an HDF5 file: attributes, and values of data sets, by name."""
    found = {}

    def visit(name, item):
        attributes = {key: np.asarray(value).tolist() for key, value in item.attrs.items()}
        values = item[()] if isinstance(item, h5py.Dataset) else None
        found[name] = attributes, repr(values if values is None else np.asarray(values).tolist())

    with h5py.File(path) as store:
        visit("", store)
        store.visititems(visit)
    return found


def is_new(name, method):
    return name.startswith((f"obsm/X_{method}", f"uns/{method}"))


def test_the_copy_has_the_map_and_nothing_else_is_changed(cells, capsys):
    before = cells.read_bytes()
    assert main(["map", str(cells), "-m", "pca", "--into", "obsm", *QUICK, "--json"]) == 0
    outputs = json.loads(capsys.readouterr().out)["outputs"]
    assert cells.read_bytes() == before
    assert outputs["h5ad"].endswith("cells-pca/cells.h5ad")
    old, new = objects(cells), objects(outputs["h5ad"])
    assert {name: held for name, held in new.items() if not is_new(name, "pca")} == old
    there = pd.read_csv(outputs["map"])
    data = read(outputs["h5ad"])
    np.testing.assert_allclose(data.obsm["X_pca"], there[["x", "y"]], rtol=1e-6)
    assert list(data.obs_names) == list(there["row"])


@pytest.mark.usefixtures("quick")
def test_uns_tells_how_the_map_was_made(cells):
    result = make_map(cells, "tsne", part="layers/scaled", perplexity=4, max_iter=30, seed=5)
    result.write_h5ad("copy.h5ad")
    params = read("copy.h5ad").uns["tsne"]["params"]
    assert params["method"] == "tsne"
    assert params["parameters"]["perplexity"] == 4
    assert params["parameters"]["max_iter"] == 30
    assert params["seed"] == 5
    assert params["part"] == "layers/scaled"
    assert (params["software"], params["version"]) == ("lowland", __version__)
    assert list(params["preparation"]) == result.log
    measured = result.quality["trustworthiness"]
    assert params["quality"]["trustworthiness"]["value"] == float(measured.value)
    assert params["quality"]["trustworthiness"]["pca"] == float(measured.pca)
    assert not params["stopped_early"]


@pytest.mark.usefixtures("quick")
def test_dropped_rows_are_nan_in_their_places(cells):
    result = make_map(cells, "pca", part="obsm/holes", missing="drop")
    result.write_h5ad("copy.h5ad")
    data = read("copy.h5ad")
    missing = np.isnan(data.obsm["holes"]).any(axis=1)
    assert 0 < missing.sum() < N
    assert np.isnan(data.obsm["X_pca"][missing]).all()
    np.testing.assert_array_equal(data.obsm["X_pca"][~missing], result.coordinates)


@pytest.mark.usefixtures("quick")
def test_an_older_map_is_replaced_only_by_force(cells, capsys):
    assert main(["map", str(cells), "-m", "pca", "--into", "obsm", "-o", "first", *QUICK]) == 0
    again = ["map", "first/cells.h5ad", "-m", "pca", "--into", "obsm", "-o", "second", *QUICK]
    capsys.readouterr()
    line = refusal(capsys, *again)
    assert "obsm['X_pca'] and uns['pca'] already" in line
    assert "--force" in line
    assert main([*again, "--part", "layers/scaled", "--force"]) == 0
    first, second = read("first/cells.h5ad"), read("second/cells.h5ad")
    assert np.abs(first.obsm["X_pca"] - second.obsm["X_pca"]).max() > 0.1
    assert second.uns["pca"]["params"]["part"] == "layers/scaled"
    held = {name for name in objects("second/cells.h5ad") if not is_new(name, "pca")}
    assert held == set(objects(cells))


def test_a_refused_target_is_found_before_the_map_is_made(cells, capsys, monkeypatch):
    monkeypatch.setattr("lowland.workflow.run.run_map", lambda *_: pytest.fail("the map was made"))
    line = refusal(capsys, "map", "iris", "--into", "obsm")
    assert "H5AD" in line
    assert "--into obsm" in line
    assert "read only once" in refusal(capsys, "map", "-", "--into", "obsm")
    line = refusal(capsys, "map", cells, "--into", "obsm", "-o", ".")
    assert "is also the input" in line
    with h5py.File(cells, "r+") as store:
        store["obsm/X_tsne"] = np.zeros((N, 2))
    assert "obsm['X_tsne'] already" in refusal(capsys, "map", cells, "--into", "obsm")


@pytest.mark.usefixtures("quick")
def test_a_map_that_came_meanwhile_is_not_replaced(cells, tmp_path):
    result = make_map(cells, "pca")
    with h5py.File(cells, "r+") as store:
        store["obsm/X_pca"] = np.ones((N, 2))
    with pytest.raises(DataError, match=r"obsm\['X_pca'\] already; replace it .* force=True"):
        result.write_h5ad("copy.h5ad")
    assert [path.name for path in tmp_path.iterdir()] == ["cells.h5ad"]
    result.write_h5ad("copy.h5ad", force=True)
    np.testing.assert_array_equal(read("copy.h5ad").obsm["X_pca"], result.coordinates)


@pytest.mark.usefixtures("quick")
def test_a_compressed_file_gives_a_plain_copy(cells, tmp_path):
    packed = tmp_path / "packed.h5ad.gz"
    packed.write_bytes(gzip.compress(cells.read_bytes()))
    files = make_map(packed, "pca").write("out", into="obsm", report=False)
    assert files.h5ad.name == "packed.h5ad"
    assert read(files.h5ad).obsm["X_pca"].shape == (N, 2)


@pytest.mark.usefixtures("quick")
def test_results_that_are_not_of_a_file_are_added_to_the_object(cells):
    data = read(cells)
    result = make_map(data, "pca", part="obsm/holes", missing="drop")
    with pytest.raises(DataError, match=r"add_to\(adata\)"):
        result.write_h5ad("copy.h5ad")
    result.add_to(data)
    assert np.isnan(data.obsm["X_pca"]).any(axis=1).sum() == len(result.dropped_rows)
    assert data.uns["pca"]["params"]["part"] == "obsm/holes"
    with pytest.raises(DataError, match=r"obsm\['X_pca'\] and uns\['pca'\] already"):
        result.add_to(data)
    result.add_to(data, force=True)
    data.write_h5ad("copy.h5ad")
    assert read("copy.h5ad").uns["pca"]["params"]["version"] == __version__
    with pytest.raises(DataError, match="has 39 rows, but the map was made of 40"):
        result.add_to(data[1:])
    with pytest.raises(DataError, match="give an AnnData"):
        result.add_to({})
    with pytest.raises(ParameterError, match="into='uns'"):
        result.write("out", into="uns")


def link_elsewhere(store):
    del store["uns"]
    store["uns"] = h5py.ExternalLink("other.h5ad", "/uns")


def old_layout(store):
    del store["obsm"]
    store["obsm"] = np.zeros(N, dtype=[("X_pca", float)])


def nameless(store):
    del store["obs"].attrs["_index"]


def no_rows(store):
    del store["obs"]


@each(
    ("change", "said"),
    [
        (link_elsewhere, "'uns' refers to another place"),
        (old_layout, "anndata before 0.7"),
        (nameless, "does not name the rows"),
        (no_rows, "no 'obs'"),
    ],
)
def test_files_of_another_layout_are_refused(change, said, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "")  # in this process, which is faster
    path, other = tmp_path / "odd.h5ad", tmp_path / "other.h5ad"
    with h5py.File(path, "w") as store, h5py.File(other, "w") as elsewhere:
        elsewhere.create_group("uns")
        for folder in ("obs", "obsm", "uns"):
            store.create_group(folder)
        store["obs"].attrs["_index"] = "_index"
        store["obs"].create_dataset("_index", data=["c"] * N, dtype=h5py.string_dtype())
        change(store)
    before = other.read_bytes()
    with pytest.raises(DataError, match=said):
        h5ad_writing.check_h5ad_target(path, "pca")
    with pytest.raises(DataError, match=said):
        h5ad_writing.write_h5ad(path, tmp_path / "copy.h5ad", "pca", np.zeros((N, 2)), {})
    assert other.read_bytes() == before
    assert not (tmp_path / "copy.h5ad").exists()


def test_a_library_that_crashes_or_hangs_is_an_error(cells, tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    monkeypatch.setattr(h5ad.h5_program, "__file__", str(program))
    program.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    with pytest.raises(DataError, match="crashes \\(signal 11\\)"):
        h5ad_writing.check_h5ad_target(cells, "pca")
    program.write_text("raise SystemError('of the library')\n")
    with pytest.raises(DataError, match="SystemError: of the library"):
        h5ad_writing.check_h5ad_target(cells, "pca")
    program.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(h5ad_writing, "PATIENCE", 0.2)
    with pytest.raises(DataError, match="did not come to an end"):
        h5ad_writing.write_h5ad(cells, tmp_path / "copy.h5ad", "pca", np.zeros((N, 1)), {})
    assert not (tmp_path / "copy.h5ad").exists()


def test_damaged_files_end_in_an_error_or_in_a_copy(cells, tmp_path):
    whole, rng = cells.read_bytes(), np.random.default_rng(0)
    for _ in range(4):
        damaged = bytearray(whole)
        for place in rng.integers(0, 4000, size=3):
            damaged[place] ^= 1 << int(rng.integers(8))
        path, copy = tmp_path / "damaged.h5ad", tmp_path / "copy.h5ad"
        path.write_bytes(damaged)
        try:
            h5ad_writing.write_h5ad(path, copy, "pca", np.zeros((N, 2)), {"seed": 0})
        except DataError as error:
            assert str(path) in str(error)  # noqa: PT017
            assert not copy.exists()
        copy.unlink(missing_ok=True)
        assert path.read_bytes() == damaged


@pytest.mark.usefixtures("quick")
def test_every_kind_of_value_is_read_back(tmp_path):
    given = {
        "text": "a\0b\ud800",
        "texts": ["x", "é"],
        "numbers": [1, 2.5],
        "mixed": [1, "x"],
        "none": [],
        "nothing": None,
        "flag": True,
        "whole": 7,
        "huge": 2**80,
        "real": float("nan"),
        "inner": {"deep": {"value": 1e-300}},
    }
    path = tmp_path / "t.h5ad"
    anndata.AnnData(np.eye(3)).write_h5ad(path)
    h5ad_writing.write_h5ad(path, tmp_path / "copy.h5ad", "m", np.zeros((3, 1)), given)
    found = anndata.read_h5ad(tmp_path / "copy.h5ad").uns["m"]["params"]
    assert found["text"] == "a\ufffdb?"
    assert list(found["texts"]) == ["x", "é"]
    assert list(found["numbers"]) == [1, 2.5]
    assert list(found["mixed"]) == ["1", "x"]
    assert len(found["none"]) == 0
    assert "nothing" not in found
    assert found["flag"] is True or found["flag"] == np.True_
    assert found["whole"] == 7
    assert found["huge"] == str(2**80)
    assert np.isnan(found["real"])
    assert found["inner"]["deep"]["value"] == 1e-300


def test_an_interpreter_without_a_program_writes_by_itself(cells, monkeypatch):
    result = make_map(cells, "pca")
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: pytest.fail("started a program"))
    result.write_h5ad("copy.h5ad")
    np.testing.assert_array_equal(read("copy.h5ad").obsm["X_pca"], result.coordinates)


@pytest.mark.usefixtures("quick")
def test_a_file_that_changed_its_rows_meanwhile_is_refused(cells, tmp_path):
    result = make_map(cells, "pca")
    read(cells)[3:].copy().write_h5ad(cells)
    with pytest.raises(DataError, match="'obs' has 37 rows now, but the map has 40"):
        result.write_h5ad("copy.h5ad")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells.h5ad"]
