"""Real data that are too large to be part of the repository.

Set ``LOWLAND_DATA`` to a folder that holds the files; without them, their tests are skipped. Small
published tables are in ``lowland.datasets`` and need no folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest


def stored(name: str) -> dict[str, np.ndarray]:
    """The arrays of ``<name>.npz`` in the folder of larger data, or a skipped test."""
    folder = os.environ.get("LOWLAND_DATA")
    if not folder:
        pytest.skip("LOWLAND_DATA names no folder with the larger data sets")
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"{path} does not exist (LOWLAND_DATA={folder})")
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)
