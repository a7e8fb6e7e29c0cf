"""The trust part of the page: what is said, in which order, and what the script gets."""

from __future__ import annotations

import base64
import copy
import dataclasses
import html
import math
import re

import numpy as np
import pytest

from lowland.errors import DataError
from lowland.report import advise, payload, render
from lowland.report.payload import pack
from lowland.report.trust_view import (
    MOST_IN_PART,
    NOT_MEASURED,
    other_maps,
    pack_trust,
    plateau_view,
    trust_view,
)
from lowland.report.wording import UNKNOWN
from lowland.trust import OtherMap, Sentence
from support.cases import each
from support.trust_case import make_coordinates, make_plateau, make_trust

N = 200
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def checked(summary):
    """The summary of a map with planted faults."""
    return check(summary, make_coordinates(N))


def check(summary, Y, **options):
    n = len(Y)
    summary |= {"ids": np.arange(n), "labels": {}}
    summary["maps"][0] |= {
        "coordinates": Y,
        "per_point": {},
        "trust": make_trust(Y, **options),
        "plateau": make_plateau(Y),
    }
    return summary


def change(summary, **fields):
    entry = summary["maps"][0]
    entry["trust"] = dataclasses.replace(entry["trust"], **fields)


def unpacked(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def section(page, name):
    found = re.search(rf'<section id="{name}".*?</section>', page, re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", found[0])) if found else None


def words(text):
    return re.sub(r"[ \n]+", " ", text).strip()


def test_a_map_that_was_not_checked_has_the_page_of_before(summary):
    page = render(summary)
    for name in ("verdict", "islands", "stability", "chance", "plateau"):
        assert f'id="{name}"' not in page
    assert "data-trust=" not in page.split("<script")[0]
    assert pack_trust(summary) == {}
    summary["maps"][0] |= {"trust": None, "plateau": None}
    assert render(summary) == page


def test_the_verdict_stands_above_the_map_with_marks_and_evidence(checked):
    page = render(checked)
    sentences = checked["maps"][0]["trust"].sentences
    top = page[page.index("<h1>") : page.index('<section id="map"')]
    places = [top.index(html.escape(sentence.text)) for sentence in sentences]
    assert places == sorted(places)
    assert re.findall(r'role="img" aria-label="(\w+)">(.)<', top) == [
        ("caution", "!"),
        ("serious", "✕"),
        ("caution", "!"),
        ("serious", "✕"),
        ("fine", "✓"),
        ("fine", "✓"),
    ]
    links = re.findall(r'href="#(\w+)">evidence', top)
    assert links == ["distortion", "islands", "islands", "stability", "chance", "islands"]
    assert all(f'<section id="{link}"' in page for link in links)


def test_the_verdict_has_at_most_six_sentences(checked):
    sentences = [Sentence("points", "fine", f"Sentence {number}.") for number in range(9)]
    change(checked, sentences=sentences)
    assert re.findall(r"Sentence (\d)\.", render(checked)) == list("012345")


def test_several_maps_have_a_verdict_each(checked):
    entry = checked["maps"][0]
    other = copy.deepcopy(entry) | {"title": "UMAP", "plateau": None}
    other["trust"] = make_trust(entry["coordinates"], refits=False)
    unchecked = copy.deepcopy(entry) | {"title": "PCA", "plateau": None, "trust": None}
    checked["maps"] = [unchecked, entry, other]
    page = render(checked)
    top = page[page.index('<section id="verdict"') : page.index('<section id="map"')]
    titles = re.findall(r"<summary.*?<strong>(.*?)\.</strong>(.*?)</summary>", top, re.DOTALL)
    assert [title for title, _ in titles] == ["t-SNE", "UMAP"]
    for _, rest in titles:
        assert "The gap between islands 1 and 2 is not in the data." in rest
        assert "2 serious, 2 cautions, 2 fine" in rest
    assert re.findall(r'data-map="(\d)" data-trust="square"', page) == ["1", "2"]
    assert re.findall(r'data-map="(\d)" data-part="null"', page) == ["1"]
    packed = pack_trust(checked)["trust"]
    assert packed[0] is None
    assert sorted(packed[2]["parts"]) == []


def test_gaps_are_listed_by_seriousness_and_in_words(checked):
    view = trust_view(checked["maps"][0])
    found = [(gap["one"], gap["other"], gap["cut"], gap["words"]) for gap in view["gaps"]]
    assert found == [
        (1, 2, 0.8, "Not in the data: the two belong together"),
        (2, 3, 0.4, "Unclear"),
        (1, 4, 0.08, "Connected through islands 2, 3"),
        (3, 4, 0.03, "The gap is in the data"),
    ]
    text = words(section(render(checked), "islands"))
    assert "1 and 2 20\u202f% 25\u202f% 0.80 Not in the data" in text
    assert "Island 3 (50 points) holds two groups: 4\u202f% of the neighbor edges cross" in text
    assert "Separation of the islands in the data" in text
    assert "Sizes and densities" not in text  # not measured


def test_a_long_table_ends_with_the_number_of_the_rest(checked):
    (gap,) = [gap for gap in checked["maps"][0]["trust"].gaps if gap.verdict == "real"]
    gaps = [gap._replace(one=number, cut=0.001 * number) for number in range(1, 44) if number != 4]
    change(checked, gaps=gaps)
    view = trust_view(checked["maps"][0])
    assert (len(view["gaps"]), view["more_gaps"]) == (40, 2)
    assert view["gaps"][0]["one"] == 43  # the largest cut first
    assert "and 2 less serious gaps" in section(render(checked), "islands")


def test_kinds_of_points_are_counted_among_the_measured(checked):
    points = trust_view(checked["maps"][0])["points"]
    assert {kind["name"]: kind["rows"] for kind in points["kinds"]} == {
        "fine": 171,
        "misplaced": 4,
        "torn": 12,
        "pressed": 12,
    }
    assert points["kinds"][1]["share"] == pytest.approx(4 / 199)
    text = words(section(render(checked), "distortion"))
    assert "elsewhere in the map 4 2\u202f%" in text
    assert "measured at 199 of 200 points" in words(section(render(checked), "distortion"))


def test_stability_and_chance_say_their_numbers(checked):
    page = render(checked)
    stability, chance = (words(section(page, name)) for name in ("stability", "chance"))
    assert "Two of them share 56\u202f% of the 15 nearest map neighbors" in stability
    assert re.findall(r"\d\.\d\d to \d\.\d\d \D+", stability) == [
        "0.20 to 0.62 Not found again: do not rely on it ",
        "0.60 to 0.80 Found again in part ",
        "0.85 to 0.95 Found again in other maps ",
        "0.88 to 0.97 Found again in other maps",
    ]
    assert "A refit of the data keeps 53\u202f% of the neighbors, shows 3 islands" in chance
    assert "Data without structure keeps 25\u202f% of the neighbors, shows 1 island" in chance
    assert "91\u202f% of the points keep more" in chance


def test_a_part_that_is_missing_has_its_reason_and_how_to_get_it(summary):
    page = render(check(summary, make_coordinates(N), refits=False))
    assert "Refits were not asked for. --check (check=True) adds it." in section(page, "stability")
    assert "No null. --check (check=True) adds it." in section(page, "chance")
    change(summary, reasons={"stability": "Too few rows; --check needs 100."})
    page = render(summary)
    assert words(section(page, "stability")).endswith("Too few rows; --check needs 100.")
    assert "This was not measured. --check" in section(page, "chance")


def test_cautions_come_from_the_verdict_but_the_page_says_them_once(checked):
    found = {(item.kind, item.serious) for item in advise(checked) if item.map == "t-SNE"}
    assert found >= {
        ("misplaced points", False),
        ("fake gap", True),
        ("merged groups", False),
        ("unstable islands", True),
    }
    assert not {kind for kind, _ in found} & {"no better than chance", "islands not separate"}
    page = render(checked)
    assert page.count("The gap between islands 1 and 2 is not in the data.") == 1
    assert "fake gap" not in page.lower().split("<script")[0]


@each("q", [1, 2, 3, 5])
def test_shares_arrows_and_islands_are_in_the_units_of_the_packed_map(summary, q):
    Y = 7.0 * np.hstack([make_coordinates(N, min(q, 3)), np.zeros((N, max(0, q - 3)))]) + 40.0
    check(summary, Y)
    trust = summary["maps"][0]["trust"]
    shown = min(q, 3)
    thirds = unpacked(pack(summary)["maps"][0]["coordinates"], "u1").reshape(-1, 3).astype(int)
    places = (thirds @ [1, 2**8, 2**16] * (2 / (2**24 - 1)) - 1).reshape(N, shown)
    packed = pack_trust(summary)["trust"][0]
    for name in ("missing", "strangers"):
        codes = unpacked(packed["points"][name], "<u1")
        values = getattr(trust.points, name)
        assert codes[N // 4] == NOT_MEASURED
        known = np.isfinite(values)
        np.testing.assert_allclose(codes[known] / 254, values[known], atol=0.5 / 254 + 1e-9)
    kinds = unpacked(packed["points"]["kind"]["codes"], "<u1")
    np.testing.assert_array_equal(kinds, trust.points.kind + 1)
    worst = trust.worst()
    assert packed["arrows"]["points"] == worst.tolist()
    assert len(worst) == 4
    np.testing.assert_allclose(packed["arrows"]["starts"], places[worst], atol=1e-5)
    # The homes are in island 2: where its rows are, in the packed map.
    middle = np.median(places[N // 4 : N // 2], axis=0)
    np.testing.assert_allclose(packed["arrows"]["homes"], np.tile(middle, (4, 1)), atol=1e-5)
    np.testing.assert_allclose(packed["islands"]["centers"][1], middle, atol=1e-5)
    assert packed["islands"]["double"] == [False, False, True, False]
    np.testing.assert_array_equal(unpacked(packed["islands"]["codes"], "<u2"), trust.island_of)


def test_small_maps_keep_their_shape_and_rows(checked):
    entry = checked["maps"][0]
    packed = pack_trust(checked)["trust"][0]["parts"]
    others = other_maps(entry["trust"], entry["plateau"])
    assert list(others) == ["refit-0", "refit-1", "null", "here"] + [
        f"plateau-{number}" for number in range(5)
    ]
    for name, other in others.items():
        part = packed[name]
        if name == "null":
            assert part["points"] is None
        else:
            np.testing.assert_array_equal(unpacked(part["points"], "<u4"), other.rows)
        back = unpacked(part["coordinates"], "<u2").reshape(-1, 2) / 65535.0 * 2 - 1
        assert np.abs(back).max() == pytest.approx(1.0)
        scale = np.ptp(other.coordinates[:, 0]) / np.ptp(back[:, 0])
        away = scale * (back - back[0]) - (other.coordinates - other.coordinates[0])
        assert np.abs(away).max() < 1e-4 * scale


def test_large_small_maps_are_thinned_and_hidden_rows_left_out(checked, monkeypatch):
    n = 4 * 5_000
    Y = make_coordinates(n)
    check(checked, Y)
    parts = pack_trust(checked)["trust"][0]["parts"]
    points = unpacked(parts["refit-0"]["points"], "<u4")
    assert len(points) == MOST_IN_PART
    assert (np.diff(points.astype(int)) > 0).all()
    assert (points % 2 == 0).all()
    assert parts["here"]["points"] == parts["refit-0"]["points"]
    monkeypatch.setattr(payload, "MOST_POINTS", 1_000)
    shown = payload.display_rows(n)
    packed = pack_trust(checked)["trust"][0]
    points = unpacked(packed["parts"]["refit-0"]["points"], "<u4")
    np.testing.assert_array_equal(shown[points], shown[shown % 2 == 0])
    worst = checked["maps"][0]["trust"].worst()
    for row, point in zip(worst, packed["arrows"]["points"], strict=True):
        assert (point == -1) == (row not in shown)
        assert point == -1 or shown[point] == row


def test_the_plateau_has_a_strip_of_maps_and_a_chart(checked):
    page = render(checked)
    text = words(section(page, "plateau"))
    assert "Which perplexity shows the data?" in text
    assert re.findall(r"perplexity (\d+) excess (\S+) overlap (\S+)", text) == [
        ("5", "0.05", "0.21"),
        ("15", "0.24", "0.50"),
        ("30", "0.28", "0.58"),
        ("50", "0.27", "0.57"),
        ("100", UNKNOWN, "0.41"),
    ]
    assert text.count("default recommended") == 1
    on = re.findall(r'<figure class="panel (\S*)" data-map="0" data-part="plateau-(\d)"', page)
    assert [number for marked, number in on if marked == "on-plateau"] == ["2", "3"]
    chart = plateau_view(checked["maps"][0])["chart"]
    assert len(chart["excess"]["marks"]) == 4  # one is not known
    heights = [y for _, y in chart["overlap"]["marks"]]
    assert heights.index(min(heights)) == 2  # up is more
    for line in (chart["excess"], chart["overlap"]):
        for x, y in line["marks"]:
            assert chart["left"] <= x <= chart["right"]
            assert chart["top"] <= y <= chart["bottom"]


def test_a_plateau_needs_no_check_and_no_maps(summary):
    plateau = make_plateau(summary["maps"][0]["coordinates"])
    summary["maps"][0]["plateau"] = plateau._replace(maps=[], excess=[math.nan] * 5)
    page = render(summary)
    text = words(section(page, "plateau"))
    assert f"30 {UNKNOWN} 0.58 yes" in text
    assert 'id="verdict"' not in page
    assert pack_trust(summary)["trust"][0] == {
        "points": None,
        "arrows": None,
        "islands": None,
        "parts": {},
    }


def test_a_map_without_islands_or_faults_is_shown(checked):
    trust = checked["maps"][0]["trust"]
    calm = trust.points._replace(kind=np.full(N, -1, dtype=np.int8), missing=np.full(N, np.nan))
    change(checked, islands=[], gaps=[], island_of=np.zeros(N, int), points=calm, sentences=[])
    page = render(checked)
    assert "There is no gap between two islands to test." in page
    assert 'id="verdict"' not in page
    assert "data-arrows" not in page.split("<script")[0]
    assert "measured at 0 of 200 points" in words(section(page, "distortion"))


def test_texts_of_a_check_stay_texts(checked):
    entry = checked["maps"][0]
    trust = entry["trust"]
    stability = trust.stability._replace(
        refits=[refit._replace(title=HOSTILE) for refit in trust.stability.refits]
    )
    change(
        checked,
        sentences=[Sentence(HOSTILE, "serious", HOSTILE)],
        gaps=[trust.gaps[0]._replace(verdict=HOSTILE)],
        stability=stability,
        chance=None,
        reasons={"chance": HOSTILE},
    )
    entry["plateau"] = entry["plateau"]._replace(parameter=HOSTILE, sentence=HOSTILE)
    page = render(checked)
    assert HOSTILE not in page
    assert page.count(html.escape(HOSTILE)) >= 10


def test_what_does_not_fit_is_named(checked):
    entry = checked["maps"][0]
    trust, plateau = entry["trust"], entry["plateau"]

    def refused(message, plateau=plateau, **fields):
        changed = {**entry, "trust": dataclasses.replace(trust, **fields), "plateau": plateau}
        with pytest.raises(DataError, match=message):
            render({**checked, "maps": [changed]})

    refused(
        r"maps\[0\]\['trust'\].points.missing has 3 values, but there are 200 ids",
        points=trust.points._replace(missing=np.zeros(3)),
    )
    refused("island_of has 1 values", island_of=np.ones(1))
    refused("coordinates differ from the coordinates", coordinates=trust.coordinates[:, ::-1])
    refused(
        "stability.points has 2 values",
        stability=trust.stability._replace(points=np.zeros(2)),
    )
    null = OtherMap("null", np.array([0, 200]), np.zeros((2, 2)))
    refused("'null' .* rows from 0 to 200, but", chance=trust.chance._replace(null=null))
    null = OtherMap("null", np.arange(3), np.zeros((2, 2)))
    refused("'null' .* has 3 rows, but coordinates of 2", chance=trust.chance._replace(null=null))
    refused("'plateau'].excess has 1 entries", plateau=plateau._replace(excess=[0.1]))
