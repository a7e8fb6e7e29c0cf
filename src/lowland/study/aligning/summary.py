"""What an alignment has to tell: the dictionary that its report is made of."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowland.io import Table
from lowland.report.measures import Measures
from lowland.study.aligning.held_out import HeldOut
from lowland.study.aligning.pairs import Pairs
from lowland.study.aligning.sets import TableSet
from lowland.study.fitting import Fit
from lowland.study.summary import fit_entry


def summary_of(
    sets: Sequence[TableSet],
    joint: Table,
    pairs: Pairs,
    fit: Fit,
    measures: Sequence[Measures],
    *,
    held_out: HeldOut | None,
    reason: str,
    title: str,
    log: list[str],
    command: str,
    color: str,
    pictures: Mapping[str, bytes],
) -> Any:
    """The summary of one alignment, as :func:`lowland.report.write_report` takes it."""
    from lowland import __version__

    return {
        "title": title,
        "version": __version__,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "input": {
            "source": joint.source,
            "rows": sum(one.prepared.rows_read for one in sets),
            "columns": sum(one.table.shape[1] for one in sets),
            "features": None,
            "dominant": [tuple(found) for one in sets for found in one.prepared.dominant],
        },
        "preparation": log,
        "dropped_rows": [row for one in sets for row in one.prepared.dropped],
        "ids": joint.ids.to_list(),
        "labels": {name: joint.labels[name].to_list() for name in joint.labels.columns},
        "color": color,
        "maps": [_entry(fit, measures, pictures)],
        "alignment": {
            "sets": [
                {
                    "name": one.name,
                    "rows": one.table.shape[0],
                    "columns": one.numbers.shape[1],
                    "partners": pairs.partners(place),
                    "quality": joint_quality(measures[place]),
                }
                for place, one in enumerate(sets)
            ],
            "how": pairs.how,
            "objects": pairs.n_objects,
            "held_out": None if held_out is None else held_out.to_dict(),
            "reason": reason,
        },
    }


def joint_quality(measures: Measures) -> dict[str, Any]:
    """The quality table of one set as plain values; empty if it was not measured."""
    return {} if measures.table is None else measures.table.to_dict()


def _entry(fit: Fit, measures: Sequence[Measures], pictures: Mapping[str, bytes]) -> dict[str, Any]:
    """The entry of the one map; its quality is that of each set."""
    shared = [name for name in measures[0].per_point if all(name in m.per_point for m in measures)]
    return {
        **fit_entry(fit),
        "quality": {},
        "per_point": {
            name: np.concatenate([each.per_point[name] for each in measures]) for name in shared
        },
        "loss_history": None,
        "pictures": dict(pictures),
    }
