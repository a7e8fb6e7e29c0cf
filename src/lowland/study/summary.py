"""What a run has to tell: the dictionary that the report is made of."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from lowland._core.base import Reducer
from lowland.io import Table
from lowland.report.measures import Measures
from lowland.study._pixels import pixels_of
from lowland.study._viewer import images_of, values_of
from lowland.study.fitting import Fit
from lowland.study.tables.preparing import Prepared
from lowland.trust import Trust

# Fitted values that help to read a map, where a method has them.
FACTS = (
    "kl_divergence_",
    "n_iter_",
    "n_neighbors_",
    "n_connected_components_",
    "eigenvalues_",
    "stress_",
    "reconstruction_error_",
    "violation_max_",
    "violation_mean_",
    "rank_",
    "kkt_residual_",
    "duality_gap_",
    "share_kept_",
    "loss_",
    "distortion_bound_",
    "quantization_error_",
    "topographic_error_",
    "log_likelihood_",
    "mean_log_likelihood_",
    "noise_",
    "length_",
    "mean_squared_distance_",
    "approximation_energy_",
    "stretching_energy_",
    "bending_energy_",
    "energy_",
    "surface_variance_ratio_",
    "plane_variance_ratio_",
    "explained_share_",
    "best_iter_",
    "free_kl_divergence_",
    "disparities_",
)


GIVEN = "the method was given the column {}"


def summarize(
    prepared: Prepared, maps: list[Any], log: list[str], command: str, color: str | None
) -> Any:
    """The summary of one run, as :func:`lowland.report.write_report` takes it."""
    from lowland import __version__

    table = prepared.table
    names = table.feature_names
    methods = ", ".join(entry["title"] for entry in maps)
    labels = {name: table.labels[name] for name in table.labels.columns}
    judged = next((each for each in maps if each.get("trust") is not None), None)
    if color is not None and color not in labels:
        labels[color] = table.column(color)
    pixels = pixels_of(prepared)
    return {
        "title": f"{Path(table.source).name}: {methods} of {table.shape[0]} rows",
        "version": __version__,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "input": {
            "source": table.source,
            "rows": prepared.rows_read,
            "columns": table.shape[1],
            "features": None if names is None else list(names),
            "dominant": [tuple(found) for found in prepared.dominant],
        },
        "preparation": [*table.notes, *prepared.log, *log],
        "dropped_rows": prepared.dropped,
        "ids": table.ids.to_list(),
        "labels": {name: values.to_list() for name, values in labels.items()},
        "color": color,
        "maps": maps,
        "values": values_of(prepared, pixels),
        "images": images_of(prepared, pixels),
        "neighbors": None if judged is None else judged["trust"].neighbors,
    }


def table_facts(table: Table) -> dict[str, Any]:
    """What the results of all commands say about their table, in plain values."""
    names = table.feature_names
    return {
        "input": table.source,
        "rows": table.shape[0],
        "columns": table.shape[1],
        "features": None if names is None else list(names),
        "labels": table.labels.columns,
        "id": table.ids.name,
    }


def fit_entry(fit: Fit) -> dict[str, Any]:
    """What the entry of a map tells of its method, before it is measured."""
    estimator = fit.estimator
    parameters = estimator.get_params()
    return {
        "name": fit.name,
        "title": type(estimator).__name__,
        "coordinates": fit.Y,
        "seconds": fit.seconds,
        "peak_bytes": fit.peak_bytes,
        "stopped_early": fit.stopped,
        "card": card_of(type(estimator), fit.learned_from),
        "learned_from": fit.learned_from,
        "parameters": {name: plain_value(value) for name, value in parameters.items()},
        "seed": parameters["random_state"],
        "facts": facts_of(estimator),
    }


def map_entry(fit: Fit, measures: Measures, trust: Trust | None = None) -> dict[str, Any]:
    """The entry of the summary for one map."""
    losses = getattr(fit.estimator, "loss_history_", None)
    return {
        **fit_entry(fit),
        "quality": {} if measures.table is None else measures.table.to_dict(),
        "per_point": measures.per_point,
        "loss_history": None if losses is None else [float(loss) for loss in losses],
        "pictures": {},
        "sides": sides_of(fit),
        "trust": trust,
    }


def sides_of(fit: Fit) -> list[float] | None:
    """The sides of a map that is a torus; None if it is none, or was turned off its axes."""
    sides = fit.estimator._torus_sides()
    return None if sides is None or fit.is_turned else [float(side) for side in sides]


def card_of(cls: type[Reducer], learned_from: str | None = None) -> dict[str, str]:
    """The description that the method gives of itself, and what a target changes in it."""
    card = {"summary": cls.summary(), **cls.card._asdict(), "reference": cls.reference}
    if cls.uses_target and learned_from is not None:
        card["avoid"] += f"; as evidence that groups exist: {GIVEN.format(learned_from)}"
    return card


def facts_of(estimator: Reducer) -> dict[str, Any]:
    """What the fit found, as plain values."""
    facts: dict[str, Any] = {}
    for name in FACTS:
        value = getattr(estimator, name, None)
        if value is not None:
            facts[name.rstrip("_")] = value.tolist() if hasattr(value, "tolist") else value
    hits = getattr(estimator, "hits_", None)
    if hits is not None and hasattr(estimator, "codebook_"):
        facts["units"] = len(hits)
        facts["empty_units"] = sum(int(count) == 0 for count in hits)
    shares = variance_shares(estimator)
    if shares is not None:
        facts["explained_variance_ratio"] = shares
    if hasattr(estimator, "perplexity"):
        facts["perplexity"] = plain_value(estimator.perplexity)
    return facts


def variance_shares(estimator: Reducer) -> list[float] | None:
    """The share of the variance along each axis, if the method knows it."""
    shares = getattr(estimator, "explained_variance_ratio_", None)
    return None if shares is None else [float(share) for share in shares]


def axis_shares(estimator: Reducer) -> list[float] | None:
    """:func:`variance_shares` that may be written beside the axes: components have an order."""
    return variance_shares(estimator) if getattr(estimator, "hierarchical", True) else None


def plain_value(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
