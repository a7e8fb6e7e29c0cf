"""The example runs on small data, and shows what it says."""

import re
import runpy
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/two_rings.py"


def test_kernel_pca_separates_what_pca_does_not(tmp_path, capsys):
    file = tmp_path / "rings.png"
    runpy.run_path(str(EXAMPLE))["main"](["--rows", "120", "--out", str(file)])
    shares = re.findall(r"^(.+?)\s+([\d.]+)% of the rows", capsys.readouterr().out, re.MULTILINE)
    right = {name: float(share) for name, share in shares}
    assert right["kernel PCA"] == 100
    assert right["PCA"] < 75
    assert file.read_bytes().startswith(b"\x89PNG")
