"""The main job from end to end, on files in a temporary folder: `make demo`.

python examples/demo.py
python examples/demo.py --folder results
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from lowland.datasets import digits

COMMANDS = {
    "What is in the table?": "info digits.csv --label digit",
    "A map, a picture, a report and a model.": "map digits.csv --label digit -o out",
    "Place new rows in the same map.": (
        "transform out/model.lowland later.csv --label digit -o later-map.csv"
    ),
    "Compare several methods.": ("compare digits.csv --label digit -m pca,tsne,lda -o comparison"),
    "Measure a map made by any tool.": "score later.csv later-map.csv --label digit",
}


def write_tables(folder: Path, n_rows: int | None) -> None:
    """The digits as two CSV files: five sixths for the map, one sixth as new rows."""
    data = digits()
    header = ",".join([*data.feature_names, "digit"])
    rows = np.column_stack([data.X, data.y]).astype(int)[:n_rows]
    first = len(rows) - len(rows) // 6
    for name, part in (("digits", rows[:first]), ("later", rows[first:])):
        path = folder / f"{name}.csv"
        np.savetxt(path, part, fmt="%d", delimiter=",", header=header, comments="")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where to work; default a temporary folder")
    parser.add_argument("--rows", type=int, help="use only the first so many digits")
    options = parser.parse_args(arguments)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="lowland-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    write_tables(folder, options.rows)
    print(f"$ cd {folder}")
    for question, command in COMMANDS.items():
        print(f"\n# {question}\n$ lowland {command}", flush=True)
        call = [sys.executable, "-m", "lowland.cli", *command.split()]
        code = subprocess.run(call, cwd=folder, check=False).returncode
        if code:
            return code
    print(f"\nNow open {folder / 'out' / 'report.html'} in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
