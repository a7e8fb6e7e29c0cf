"""The areas, and how one case of an area is run."""

from __future__ import annotations

import importlib
import re
import traceback
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Area(NamedTuple):
    """Where a case is written, and its share of the time."""

    module: str
    function: str
    share: float


AREAS = {
    "api": Area("fuzz.api_cases", "api_case", 0.4),
    "graphs": Area("fuzz.graph_cases", "graph_case", 0.1),
    "models": Area("fuzz.model_cases", "model_case", 0.15),
    "files": Area("fuzz.file_cases", "file_case", 0.15),
    "commands": Area("fuzz.command_cases", "command_case", 0.12),
    "threads": Area("fuzz.thread_cases", "thread_case", 0.08),
}

# Areas whose cases have names instead of numbers.
NAMED = {"fixed": ("fuzz.fixed_cases", "FIXED"), "planted": ("fuzz.planted", "PLANTED")}


class Finding(NamedTuple):
    """A broken rule; findings with the same ``group`` have probably one cause."""

    case: str
    kind: str
    message: str
    where: str

    @property
    def group(self) -> tuple[str, str, str, str]:
        shape = re.sub(r"'[^']*'|\"[^\"]*\"|[-+]?\d[\d.e+-]*|\[.*\]|/\S+", "#", self.message)[:60]
        return self.case.split(":")[0], self.kind, shape, self.where


def run_case(case: str, *, debug: bool = False) -> Finding | None:
    """Run a case in this process: ``api:123``, or ``fixed:name``; ``debug`` lets errors through."""
    area, name = case.split(":", 1)
    try:
        if area in NAMED:
            module, table = NAMED[area]
            getattr(importlib.import_module(module), table)[name]()
        else:
            # the name of the area is part of the seed, so that areas do not draw the same numbers
            rng = np.random.default_rng([zlib.crc32(area.encode()), int(name)])
            place = AREAS[area]
            getattr(importlib.import_module(place.module), place.function)(rng)
    except BaseException as error:  # also a panic of Rust, which is no Exception
        if debug or isinstance(error, KeyboardInterrupt):
            raise
        return Finding(case, type(error).__name__, _one_line(error), _place(error))
    return None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def _place(error: BaseException) -> str:
    """The function of lowland, or else of the fuzzer, in which the error was raised."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).name != "rules.py"
    ]
    ours = [frame for frame in frames if "/lowland/" in frame.filename] or frames
    return f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else ""
