"""The chapter on planted errors: the program finds them, and says what the page quotes."""

import functools
import importlib.util
import re
from pathlib import Path

import numpy as np

from lowland.metrics.home import KINDS
from support.cases import each

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("trust_pictures", ROOT / "docs/trust_pictures.py")
trust_pictures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(trust_pictures)
PAGE = (ROOT / "docs/reading.md").read_text(encoding="utf-8")
# Maps of t-SNE differ in details between processors; of these only claims are tested.
EXACT = [name for name in trust_pictures.PLANTS if name not in ("noise", "good")]
MOST_BYTES = 60_000


@functools.cache
def planted(name):
    """A plant, and what the program finds."""
    plant = trust_pictures.PLANTS[name]()
    return plant, plant.judged()


def of_kind(found, kind):
    return set(np.flatnonzero(found.points.kind == KINDS.index(kind)).tolist())


def said(found, question):
    return next(sentence for sentence in found.sentences if sentence.question == question)


def test_the_page_shows_every_plant_with_its_sentences_and_small_pictures():
    shown = re.findall(
        r"\(pictures/trust/([\w-]+)\.png\)\n\n<!-- made: planted\.([\w-]+) -->", PAGE
    )
    assert shown == [(name, name) for name in trust_pictures.PLANTS]
    files = {path.stem: path for path in trust_pictures.FOLDER.glob("*.png")}
    assert set(files) == set(trust_pictures.PLANTS), "run 'python docs/make_pictures.py trust'"
    assert all(path.stat().st_size < MOST_BYTES for path in files.values())


@each("name", EXACT)
def test_the_page_quotes_what_the_program_says(name):
    _, found = planted(name)
    told = [[sentence.level, sentence.text] for sentence in found.sentences]
    assert told == trust_pictures.recorded_sentences(name), (
        "run 'python docs/make_pictures.py trust'"
    )
    for _, text in told:
        assert f"| {text} |" in PAGE


def test_the_gap_through_one_cluster_is_the_only_one_that_is_not_in_the_data():
    plant, found = planted("fake-gap")
    (fake,) = [gap for gap in found.gaps if gap.verdict != "real"]
    halves = found.island_of[800:1200]
    assert fake.verdict == "not in the data"
    assert {fake.one, fake.other} == set(halves[halves > 0].tolist())
    seam = found.points.missing[plant.wrong].mean()
    assert seam > 0.25 > 0.02 > found.points.missing[:800].mean()


def test_the_points_of_the_torn_cluster_are_torn_and_no_others():
    plant, found = planted("torn")
    bad = of_kind(found, "torn") | of_kind(found, "misplaced")
    dealt = set(plant.wrong.tolist())
    assert len(bad & dealt) > 0.95 * len(dealt)
    assert not bad - dealt
    fake = {gap.verdict for gap in found.gaps if gap.verdict != "real"}
    assert fake == {"not in the data"}


def test_the_sphere_is_torn_at_the_edges_of_its_map():
    _, found = planted("sphere")
    longitude, latitude = np.abs(found.coordinates[sorted(of_kind(found, "torn"))]).T
    assert longitude.size > 10
    assert ((longitude > 2.9) | (latitude > 1.3)).all()
    middle = (np.abs(found.coordinates) < [2.0, 1.0]).all(axis=1)
    assert found.points.missing[middle].max() < 0.1


def test_all_swapped_points_and_no_others_have_arrows_to_their_clusters():
    plant, found = planted("misplaced")
    assert of_kind(found, "misplaced") == set(plant.wrong.tolist()) == set(found.worst().tolist())
    own = plant.X[plant.wrong, :2]
    assert np.linalg.norm(found.points.home[plant.wrong] - own, axis=1).max() < 3.0
    moved = np.linalg.norm(plant.Y[plant.wrong] - own, axis=1)
    assert moved.min() > 5.0


def test_the_island_of_two_clusters_is_found_and_only_its_points_are_pressed():
    plant, found = planted("overlaid")
    double = [island.number for island in found.islands if island.inner.verdict == "real"]
    assert double == [found.island_of[0]] == [1]
    assert of_kind(found, "pressed") < set(plant.wrong.tolist())
    assert found.islands[0].inner.severed == 0
    strangers = found.points.strangers
    assert 0.4 < strangers[:600].mean() < 0.6
    assert max(strangers[600:].mean(), found.points.missing.mean()) < 0.05


def test_no_gap_of_the_noise_is_in_the_data_and_its_neighbors_are_chance():
    _, found = planted("noise")
    assert len(found.islands) > 1
    assert not [gap for gap in found.gaps if gap.verdict == "real"]
    assert abs(found.chance.recall - found.chance.null_recall) < 0.05
    assert said(found, "gaps").level == "serious"


def test_the_good_map_is_mostly_fine():
    _, found = planted("good")
    assert said(found, "points").level == said(found, "chance").level == "fine"
    real = [gap.verdict == "real" for gap in found.gaps]
    assert np.mean(real) > 0.8
    assert found.stability.agreement > 0.6
