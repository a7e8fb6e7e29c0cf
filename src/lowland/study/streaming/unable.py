"""What cannot be read leaf by leaf, and why."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from lowland.distributed.files.columnar import is_address
from lowland.distributed.files.looking import STREAMED, may_be_streamed
from lowland.io import holds_distances
from lowland.io.in_memory import is_path
from lowland.io.several import listed_sources
from lowland.study.tables.options import TableOptions


def why_not_streamed(data: Any, table: TableOptions, orient: Any = None) -> str | None:
    """Why the rows cannot be read leaf by leaf, as the end of a sentence; None if they can."""
    say = table.spelling.option
    if not is_path(data):
        return "data in memory are not read leaf by leaf"
    paths = listed_sources(data)
    other = next((p for p in paths if not (is_address(p) or os.path.isfile(p))), None)
    if other is not None:
        return f"{other} is no file"
    if table.distances or holds_distances(data):
        return "a matrix of distances is needed as a whole"
    given = {
        "similarities": table.similarities,
        "transpose": table.transpose,
        "label_file": table.label_file,
        "vector": table.vector,
        "part": table.part,
        "labels": table.beside,
        "orient": orient,
    }
    for name, value in given.items():
        given_nothing = (
            value is None or value is False or (isinstance(value, Mapping) and not value)
        )
        if not given_nothing:
            return f"{say(name)} needs the whole table"
    if table.missing == "drop":
        return (
            f"{say('missing', 'drop')} needs the whole table; fill missing values, such as with "
            f"{say('missing', 'mean')}, or leave their rows out of the files"
        )
    other = next((path for path in paths if not may_be_streamed(path)), None)
    return None if other is None else f"{other} is none of {STREAMED}"
