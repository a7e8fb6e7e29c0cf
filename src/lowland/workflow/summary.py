"""What a run has to tell: the dictionary that the report is made of."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lowland._base.base import Reducer
from lowland.metrics.quality_table import Measures
from lowland.report.summary import Images, Values
from lowland.report.thumbnails import image_rows, shrunk
from lowland.report.viewer_data import MOST_COLUMNS, MOST_VALUE_BYTES
from lowland.tables import Table
from lowland.tables.preparing import Prepared
from lowland.trust import Trust
from lowland.workflow._own_units import table_rows
from lowland.workflow._stages import STAGES
from lowland.workflow.fitting import Fit

# Whether the rows of a table are images, and which pixel each column is.
#
# The reader of a folder of images gives their shape. Of other tables it is found out: the columns
# have numbers for names, or no names; there are pixels for whole rows and columns; values share one
# range; and neighboring pixels are correlated clearly more than distant ones, in both directions.


SMALLEST_SIDE = 8  # of images that are found out
FEWEST_ROWS, MOST_ROWS = 20, 500  # that correlations are computed of
MOST_VALUES = 10_000_000  # of these rows
LEAST_PRESENT = 0.5  # share of the pixels that have a column
# By how much the correlation of neighbors exceeds that of pixels half an image apart: at least .28
# for digits, MNIST, faces and objects; at most .02 for noise, spectra, random walks, factors.
CLEARLY = 0.15
# Median range of a column, as a share of the range of the table: at least .7 for these images.
SHARED_RANGE = 0.25
ONE_NUMBER = re.compile(r"(\D*)(\d{1,7})")
TWO_NUMBERS = re.compile(r"(\D*)(\d{1,4})(\D+)(\d{1,4})")


class Pixels(NamedTuple):
    """The shape of the images, and the pixel of each column."""

    shape: tuple[int, ...]
    places: np.ndarray

    def images(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Rows of all pixels; those without a column get one value."""
        found = np.full((len(values), math.prod(self.shape)), fill)
        found[:, self.places] = values
        return found


def pixels_of(prepared: Prepared) -> Pixels | None:
    """The pixels of a table of images; None if its rows are not images."""
    n, p = prepared.X.shape
    table, preparation = prepared.table, prepared.preparation
    if prepared.distances or p != table.shape[1]:  # categories became columns
        return None
    if table.image_shape is not None and math.prod(table.image_shape) == p:
        return Pixels(table.image_shape, np.arange(p))
    names = table.feature_names
    if preparation is not None:
        names = tuple(preparation.column_names_out() or names or ())  # in the order of the columns
    found = _by_number(p) if not names else _by_names(names)
    most = min(MOST_ROWS, MOST_VALUES // max(p, 1))
    if found is None or min(n, most) < FEWEST_ROWS:
        return None
    rows = np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))
    return found if _look_like_images(table_rows(prepared, rows), found) else None


def _by_number(p: int) -> Pixels | None:
    side = math.isqrt(p)
    if side * side != p or side < SMALLEST_SIDE:
        return None
    return Pixels((side, side), np.arange(p))


def _by_names(names: Sequence[str]) -> Pixels | None:
    """The pixels of columns such as pixel17 of a square image, or pixel_3_5 or 3x5 of any image."""
    for pattern, pixels in ((ONE_NUMBER, _in_a_square), (TWO_NUMBERS, _in_a_rectangle)):
        parts = [pattern.fullmatch(str(name).strip()) for name in names]
        if all(parts):
            groups = [part.groups() for part in parts if part is not None]
            if len({group[::2] for group in groups}) == 1:  # the words around the numbers
                numbers = np.array([[int(number) for number in group[1::2]] for group in groups])
                return pixels(numbers)
    return None


def _in_a_square(numbers: np.ndarray) -> Pixels | None:
    last = int(numbers.max())
    from_one = numbers.min() > 0 and math.isqrt(last) ** 2 == last
    side = math.isqrt(last - 1) + 1 if from_one else math.isqrt(last) + 1
    return _checked((side, side), numbers[:, 0] - from_one)


def _in_a_rectangle(numbers: np.ndarray) -> Pixels | None:
    numbers = numbers - (1 if numbers.min() > 0 else 0)
    height, width = (int(last) + 1 for last in numbers.max(axis=0))
    return _checked((height, width), numbers[:, 0] * width + numbers[:, 1])


def _checked(shape: tuple[int, int], places: np.ndarray) -> Pixels | None:
    whole = len(np.unique(places)) == len(places) >= LEAST_PRESENT * math.prod(shape)
    return Pixels(shape, places) if whole and min(shape) >= SMALLEST_SIDE else None


def _look_like_images(values: np.ndarray, pixels: Pixels) -> bool:
    known = np.isfinite(values)
    if not known.any():
        return False
    low = np.where(known, values, np.inf).min(axis=0)
    high = np.where(known, values, -np.inf).max(axis=0)
    varies = high > low
    with np.errstate(over="ignore"):
        ranges, whole = (high - low)[varies], float(high.max() - low.min())
    if not ranges.size or not np.isfinite(whole) or np.median(ranges) < SHARED_RANGE * whole:
        return False
    scaled = np.where(known & varies, (values - low.min()) / whole, 0.0)
    counts = np.maximum(known.sum(axis=0), 1)
    centered = np.where(known & varies, scaled - scaled.sum(axis=0) / counts, 0.0)
    length = np.sqrt((centered**2).sum(axis=0))
    standard = centered / np.where(length > 0, length, 1.0)
    standard = np.where(length > 0, standard, np.nan)  # a constant pixel has no correlation
    standing = pixels.images(standard, np.nan).reshape(len(values), *pixels.shape)
    height, width = pixels.shape
    near = [_correlation(standing, 0, 1), _correlation(standing, 1, 0)]
    far = [_correlation(standing, 0, width // 2), _correlation(standing, height // 2, 0)]
    return min(near) > max(far) + CLEARLY


def _correlation(images: np.ndarray, down: int, right: int) -> float:
    """The mean correlation of pixels and those so many steps below and to the right of them."""
    _, height, width = images.shape
    first = images[:, : height - down, : width - right]
    products = np.einsum("nij,nij->ij", first, images[:, down:, right:])
    known = products[np.isfinite(products)]
    return float(known.mean()) if known.size else 0.0


# What the viewer of the report shows of a table: its numbers, and its images.


BLOCK_VALUES = 4_000_000  # of images that are dense at a time
BYTE = 255


def values_of(prepared: Prepared, pixels: Pixels | None) -> Values | None:
    """The columns of numbers in the units of the input, before any scaling; they are not copied.

    Of images there are all pixels or none: a part of them would have no meaning.
    """
    table = prepared.table
    n, p = table.shape
    if prepared.distances or not p:
        return None
    if pixels is not None and (p > MOST_COLUMNS or n * p > MOST_VALUE_BYTES):
        return None
    names = table.feature_names or [f"column {number}" for number in range(p)]
    return {"names": names, "numbers": table.features}


def images_of(prepared: Prepared, pixels: Pixels | None) -> Images | None:
    """Thumbnails of the rows of a table of images, of so many rows as a page can hold."""
    if pixels is None:
        return None
    n = prepared.X.shape[0]
    rows = image_rows(n, *pixels.shape[:2])
    step = max(1, BLOCK_VALUES // int(np.prod(pixels.shape)))
    some = table_rows(prepared, np.unique(np.linspace(0, n - 1, min(n, step, 500)).astype(np.intp)))
    low, high = _range(some)
    found = []
    for start in range(0, len(rows), step):
        values = pixels.images(table_rows(prepared, rows[start : start + step]), low)
        shades = np.nan_to_num(BYTE * (values - low) / (high - low))
        images = np.clip(np.round(shades), 0, BYTE).astype(np.uint8)
        found.append(shrunk(images.reshape(len(images), *pixels.shape)))
    return {"pixels": np.concatenate(found), "rows": rows}


def _range(values: np.ndarray) -> tuple[float, float]:
    """The values of black and white: 0 and 255, or 0 and 1, if the numbers are such shades."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    for white in (1.0, float(BYTE)):
        if low >= 0 and white / 2 < high <= white:
            return 0.0, white
    return low, high if high > low else low + 1.0


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


def page_facts(title: str, command: str) -> dict[str, Any]:
    """What the summaries of all runs begin with."""
    from lowland import __version__

    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"title": title, "version": __version__, "created": created, "command": command}


def summarize(
    prepared: Prepared, maps: list[Any], log: list[str], command: str, color: str | None
) -> Any:
    """The summary of one run, as :func:`lowland.report.write_report` takes it."""
    table = prepared.table
    names = table.feature_names
    methods = ", ".join(entry["title"] for entry in maps)
    labels = {column.name: column for column in table.labels}
    judged = next((each for each in maps if each.get("trust") is not None), None)
    if color is not None and color not in labels:
        labels[color] = table.column(color)
    pixels = pixels_of(prepared)
    return {
        **page_facts(f"{Path(table.source).name}: {methods} of {table.shape[0]} rows", command),
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
    """What the results of all commands state about their table, in plain values."""
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
    """What the entry of a map states about its method, before it is measured."""
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


def fit_facts(fit: Fit, seconds: dict[str, float]) -> dict[str, Any]:
    """What the results of runs state about a fit, and the seconds of the stages of the run."""
    parameters = fit.estimator.get_params().items()
    return {
        "method": fit.name,
        "parameters": {name: plain_value(value) for name, value in parameters},
        "dimensions": fit.Y.shape[1],
        "stopped_early": fit.stopped,
        "seconds": fit.seconds,
        "stages": {stage: seconds.get(stage, 0.0) for stage in STAGES},
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
        "sides": fit.sides,
        "trust": trust,
    }


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
    """The share of the variance along each axis, if the method has it."""
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
