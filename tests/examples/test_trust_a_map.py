"""The example runs on small data, and judges two maps of another tool."""

import re

PICTURES = ("trust_pca.png", "trust_spectral.png")


def test_neighbors_keep_together_in_the_spectral_map_and_not_by_pca(example):
    printed = example("trust_a_map", "--rows", 300, pictures=PICTURES)
    parts = dict(re.findall(r"^(\w+):\n((?:  .*\n)+)", printed, re.MULTILINE))
    assert list(parts) == ["pca", "spectral"]
    kept, chance = {}, {}
    for name, text in parts.items():
        assert set(re.findall(r"^  (\w+) ", text, re.MULTILINE)) <= {"fine", "caution", "serious"}
        assert "Maps made again agree on" in text
        found = re.search(r"keeps (\d+)% of the neighbors, a map of .* structure (\d+)%", text)
        kept[name], chance[name] = map(int, found.groups())
    assert kept["spectral"] > kept["pca"] > chance["pca"]
