"""A map that is a torus: what the page is told, and what it says."""

from __future__ import annotations

import numpy as np
import pytest

from lowland._base.errors import DataError
from lowland.report import write_report
from lowland.report.payload import pack
from lowland.workflow import make_map
from support.cases import each


@pytest.fixture
def torus(summary):
    rng = np.random.default_rng(1)
    entry = summary["maps"][0]
    entry["coordinates"] = rng.random((300, 2)) * [1.5, 1.0]
    entry["sides"] = [1.5, 1.0]
    return summary


def test_the_script_gets_the_frame_in_its_own_units(torus):
    packed = pack(torus)["maps"][0]
    Y = torus["maps"][0]["coordinates"]
    middle = (Y.min(axis=0) + Y.max(axis=0)) / 2
    reach = np.abs(Y - middle).max()
    np.testing.assert_allclose(packed["torus"]["low"], -middle / reach)
    np.testing.assert_allclose(packed["torus"]["sides"], np.array([1.5, 1.0]) / reach)


def test_other_maps_and_maps_in_space_have_no_copies(summary):
    assert pack(summary)["maps"][0]["torus"] is None
    entry = summary["maps"][0]
    entry["coordinates"] = np.random.default_rng(1).random((300, 3))
    entry["sides"] = [1.0, 1.0, 1.0]
    assert pack(summary)["maps"][0]["torus"] is None


def test_the_page_says_that_the_edges_meet(torus, tmp_path):
    write_report(torus, tmp_path / "torus.html")
    page = (tmp_path / "torus.html").read_text()
    assert "its left edge meets its right, and its bottom the top" in page
    assert "treat the torus as cut open" in page
    torus["maps"][0]["sides"] = None
    write_report(torus, tmp_path / "plane.html")
    plane = (tmp_path / "plane.html").read_text()
    assert "left edge meets" not in plane
    assert "cut open" not in plane


@each("sides", [[1.0], [1.0, 0.0], [1.0, np.inf], [1.0, 1.0, 1.0]])
def test_sides_that_do_not_fit_are_refused(torus, sides, tmp_path):
    torus["maps"][0]["sides"] = sides
    with pytest.raises(DataError, match="sides"):
        write_report(torus, tmp_path / "page.html")


def test_a_run_tells_its_sides_unless_the_map_was_turned():
    result = make_map("iris", "rpm", aspect=1.4, max_iter=5, measure=False)
    assert result.summary()["maps"][0]["sides"] == [1.4, 1.0]
    axes = result.picture().axes[0]  # the tiled picture has a frame
    np.testing.assert_allclose(axes.lines[0].get_xydata().max(axis=0), [1.4, 1.0])
    turned = make_map("iris", "rpm", max_iter=5, measure=False, orient="north=1")
    assert turned.summary()["maps"][0]["sides"] is None
    assert make_map("iris", "pca", measure=False).summary()["maps"][0]["sides"] is None


def test_a_method_that_may_be_closed_tells_its_sides_only_then():
    options = {"sides": [6, 4], "max_iter": 3, "measure": False}
    closed = make_map("iris", "som", toroidal=True, **options).summary()["maps"][0]["sides"]
    np.testing.assert_allclose(closed, [6, 4 * np.sqrt(0.75)])
    assert make_map("iris", "som", **options).summary()["maps"][0]["sides"] is None
