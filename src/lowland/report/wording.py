"""Numbers and measures in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowland.report.summary import Measure

UNKNOWN = "\u2013"
Z95 = 1.96  # standard errors to each side of a 95 % interval

# The meaning of a measure, by its value: near 1, good, poor, and no better than a random map.
VERDICTS: Mapping[str, tuple[str, str, str, str]] = {
    "trustworthiness": (
        "Points that are neighbors in the map are almost always near in the data",
        "Points that are neighbors in the map are mostly near in the data",
        "Many points that are neighbors in the map are not near in the data",
        "Neighbors in the map are almost unrelated to neighbors in the data",
    ),
    "continuity": (
        "Points that are near in the data are almost always together in the map",
        "Points that are near in the data are mostly together in the map",
        "Many points that are near in the data are far apart in the map",
        "The map separates neighbors as much as a random map does",
    ),
    "shepard_correlation": (
        "Far in the map means far in the data",
        "Far in the map mostly means far in the data",
        "Large distances in the map are a poor guide to distances in the data",
        "Large distances in the map mean almost nothing",
    ),
}
# Other measures, whose values are shares.
SENTENCES: Mapping[str, str] = {
    "rnx_auc": "Over neighborhoods of all sizes, the map is {} of the way from chance to perfect.",
    "scale_normalized_stress": "At the map's best scale, distances are off by {} (root mean "
    "square).",
    "false_rank_error": "Ranks of each point's neighbors in the map moved by {} of the most they "
    "could.",
    "missing_rank_error": "Ranks of each point's neighbors in the data moved by {} of the most "
    "they could.",
    "knn_accuracy": "{} of the labels can be guessed from the neighbors in the map; this does not "
    "prove that the map is faithful.",
}
# Lower ends of the ranges of the verdicts, as shares of the way from a random to a perfect map.
STEPS = (0.9, 0.7, 0.2)


# Names of measures and facts that are not plain words already.
WORDS: Mapping[str, str] = {
    "rnx_auc": "R_NX area",
    "knn_accuracy": "k-NN accuracy",
    "kl_divergence": "KL divergence",
    "kkt_residual": "KKT residual",
    "log_likelihood": "log-likelihood",
    "mean_log_likelihood": "mean log-likelihood of a row",
    "energy": "energies (approximation, stretching, bending)",
    "surface_variance_ratio": "share of the variance on the surface",
    "plane_variance_ratio": "share of the variance on the principal plane",
    "explained_share": "share of the variance that the reconstruction keeps",
    "best_iter": "epoch or step whose weights were kept",
    "free_kl_divergence": "KL divergence of free points (the map that the network learned)",
    "length": "length of the curve",
    "disparities": "disparity of each table from the first after turning (0: the same map)",
    "quantization_error": "quantization error (mean distance of a row to its unit)",
    "topographic_error": "topographic error (rows whose two nearest units do not touch)",
    "mean_squared_distance": "mean squared distance of a row to its projection",
}


def words(name: str) -> str:
    """The name of a measure or a fact in words."""
    return WORDS.get(name, name.replace("_", " "))


def sentence(name: str, measure: Measure) -> str:
    """What one measure means for this map, compared with PCA and a random map."""
    value, chance = measure["value"], measure["random"]
    if not math.isfinite(value):
        return "This could not be measured here."
    if name in VERDICTS:
        floor = chance if chance is not None and math.isfinite(chance) and chance < 1 else 0.0
        way = (value - floor) / (1 - floor)
        step = next((step for step, least in enumerate(STEPS) if way >= least), len(STEPS))
        return VERDICTS[name][step] + "."
    if name != "neighbor_recall":
        meaning = measure["meaning"][:1].upper() + measure["meaning"][1:]
        return SENTENCES[name].format(percent(value)) if name in SENTENCES else meaning
    others = [
        f"{who} {percent(other)}"
        for who, other in (("PCA keeps", measure["pca"]), ("chance", chance))
        if other is not None and math.isfinite(other)
    ]
    kept = f"The map keeps {percent(value)} of each point's nearest neighbors"
    return "; ".join([kept, ", ".join(others)] if others else [kept]) + "."


def interval(measure: Measure) -> str:
    """Half of the 95 % interval; empty if every row was measured."""
    error = Z95 * measure["standard_error"]
    return f"± {max(error, 0.001):.3f}" if error > 0 else ""


def percent(value: float) -> str:
    """``87 %`` without a line break, with one digit more below 1 % and above 99 %."""
    value = 100 * value
    near_end = 0 < abs(value) < 1 or 99 < value < 100
    return f"{value:.1f}\u202f%" if near_end else f"{value:.0f}\u202f%"


def share(value: float) -> str:
    """The value in percent, if it is known."""
    return percent(value) if math.isfinite(value) else UNKNOWN


def decimals(value: float | None, digits: int = 2) -> str:
    """The value with so many digits after the point, if it is known."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def count(value: int) -> str:
    """``70 000``, with narrow spaces that do not break."""
    return f"{value:,}".replace(",", "\u202f") if abs(value) >= 10_000 else str(value)


def seconds(value: float) -> str:
    """A time with two to four significant digits."""
    if value < 0.01:
        return f"{1000 * value:.1f} ms"
    if value < 1:
        return f"{1000 * value:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def memory(value: int | None) -> str:
    """Bytes in the unit that fits."""
    if value is None:
        return UNKNOWN
    amount = float(value)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def number(value: Any) -> str:
    """A parameter or a fact, short."""
    if isinstance(value, np.ndarray | list | tuple):
        return listing([number(entry) for entry in value])
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return count(int(value))
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return UNKNOWN if value is None else str(value)


def listing(values: Sequence[Any], most: int = 12) -> str:
    """The first values, and how many more there are."""
    shown = ", ".join(str(value) for value in values[:most])
    return f"{shown} and {count(len(values) - most)} more" if len(values) > most else shown


def along(value: float | None) -> float | None:
    """Position of a value on a strip of length 100 that shows values from 0 to 1."""
    if value is None or not math.isfinite(value):
        return None
    return round(100 * min(max(value, 0.0), 1.0), 1)
