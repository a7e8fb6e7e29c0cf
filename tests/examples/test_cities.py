"""The example runs, and its map of Australia is the atlas's."""

import re
import runpy
from pathlib import Path

import numpy as np

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/cities.py"


def test_the_map_of_four_cities_is_the_known_one(tmp_path, capsys):
    file = tmp_path / "cities.png"
    example = runpy.run_path(str(EXAMPLE))
    example["main"](["--out", str(file)])
    printed = capsys.readouterr().out
    pairs = re.findall(r"^(\w+) - (\w+)\s+(\d+) km by road,\s+(\d+) km", printed, re.MULTILINE)
    assert len(pairs) == 5
    for _, _, road, drawn in pairs:  # roads are crooked, but not by much
        assert abs(float(road) - float(drawn)) < 0.03 * float(road)
    unknown = re.search(r"Brisbane - Perth\s+unknown by road,\s+(\d+) km", printed)
    assert 3300 < float(unknown[1]) < 4000
    places = dict(zip(example["CITIES"], example["map_of"](example["KILOMETERS"]), strict=True))
    # from west to east Perth, Adelaide, Sydney; Brisbane north of Sydney; Perth farthest from all
    east = [places[name][0] for name in ("Perth", "Adelaide", "Sydney")]
    assert east == sorted(east)
    assert places["Brisbane"][1] > places["Sydney"][1] > places["Adelaide"][1] - 500
    assert file.read_bytes().startswith(b"\x89PNG")
    assert np.isfinite(list(places.values())).all()
