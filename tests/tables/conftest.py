"""Shared by the tests of files."""

from __future__ import annotations

import numpy as np
import pytest

from lowland._base.errors import DataError
from lowland.tables import read_table


@pytest.fixture
def little_memory(monkeypatch):
    """A process that may use 2 MB."""
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "2MB")


@pytest.fixture
def read(tmp_path):
    """Write text (or bytes) to a file and read it back as a table."""

    def write_and_read(content, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, **options)

    return write_and_read


@pytest.fixture
def damage():
    """Damage a file in many ways; every failure to read must be one line that names the file."""

    def attempt(path, read, trials=150, flips=4):
        whole, rng = path.read_bytes(), np.random.default_rng(0)
        messages = []
        for trial in range(trials):
            cut = trial % 3 == 0 or not flips
            damaged = bytearray(whole[: rng.integers(len(whole))] if cut else whole)
            for place in rng.integers(max(len(damaged), 1), size=flips):
                if damaged:
                    damaged[place] = rng.integers(256)
            path.write_bytes(damaged)
            try:
                read(path)
            except DataError as error:
                messages.append(str(error))
        path.write_bytes(whole)
        assert all(path.name in message and "\n" not in message for message in messages)
        return len(messages)

    return attempt
