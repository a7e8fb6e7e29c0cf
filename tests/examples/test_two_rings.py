"""The example runs on small data, and shows what it says."""

import re
import runpy
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/two_rings.py"


def test_kernel_pca_separates_what_pca_does_not(tmp_path, capsys):
    runpy.run_path(str(EXAMPLE))["main"](["--rows", "120", "--out", str(tmp_path)])
    shares = re.findall(r"^(.+?)\s+([\d.]+)% of the rows", capsys.readouterr().out, re.MULTILINE)
    right = {name: float(share) for name, share in shares}
    assert right["kernel PCA"] == 100
    assert right["PCA"] < 75
    assert (tmp_path / "two_rings.png").read_bytes().startswith(b"\x89PNG")
