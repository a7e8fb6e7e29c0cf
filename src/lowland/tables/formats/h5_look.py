"""A program that looks at all objects of an HDF5 file, and has no other result than to end.

libhdf5 loops for ever, or crashes, on some damaged files, and nothing in Python can stop it. So a
process of its own looks first (``h5ad.py``). It imports nothing of this package, to start fast.
"""

import contextlib
import sys
import time
from typing import Any

LOOKING = 10.0  # seconds; so many objects have been seen by then that the file is no trap


def look(path: str) -> None:
    """Read all attributes, and the first and the last value of every data set."""
    import h5py

    start = time.monotonic()

    def visit(name: str, item: Any) -> bool | None:
        with contextlib.suppress(Exception):  # errors are reported by the one who reads
            for key in item.attrs:
                with contextlib.suppress(Exception):
                    item.attrs[key]
        with contextlib.suppress(Exception):
            if isinstance(item, h5py.Dataset) and item.size:
                item[(0,) * item.ndim]
                item[tuple(n - 1 for n in item.shape)]
        return True if time.monotonic() - start > LOOKING else None

    with contextlib.suppress(Exception), h5py.File(path, "r") as store:
        visit("/", store)
        store.visititems(visit)


if __name__ == "__main__":
    look(sys.argv[1])
