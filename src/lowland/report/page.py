"""From a summary to the page. Values are prepared here; the templates escape them."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from lowland._base import registry
from lowland.report import wording
from lowland.report.advice import TRUST_KINDS, advise
from lowland.report.payload import SHOWN_DIMENSIONS, separate, to_json
from lowland.report.summary import Alignment, Map, Measure, Summary, check_summary
from lowland.report.trust_view import pack_trust, plateau_view, trust_view
from lowland.report.viewer_data import pack_page, viewer_notes

# How to read a map: the sentences that its method declares, and what holds for every map.


EVERY_MAP = (
    "A map of few dimensions cannot keep everything. Trust what several measures, several seeds "
    "or several methods agree on.",
    "A rotation or a reflection of the map does not change what it shows. An axis has a meaning "
    "only where this list states one.",
)

GIVEN = (
    "The method was given the column {} and draws rows with equal or near values of it together. A "
    "gap between these values, or an order along them, is not evidence that the other columns "
    "differ between them. Look at held-out rows."
)


def how_to_read(method: str, learned_from: str | None = None) -> list[str]:
    """Sentences for one method; only the general ones if it is not a method of this library.

    ``learned_from`` is the column that the method was given in addition to the rows. A method that
    always needs such a column describes the consequences on its own card.
    """
    if method in registry.modules(registry.ALIGNMENT):
        return [*registry.get_alignment(method).reading, *EVERY_MAP]
    if method not in registry.modules():
        return [*EVERY_MAP]
    cls = registry.get(method)
    told = cls.uses_target and learned_from is not None
    return [*([GIVEN.format(learned_from)] if told else []), *cls.reading, *EVERY_MAP]


# One script in several files; each uses only those before it.
VIEWER = (
    "columns data colors view spatial painters raster easel panel sidebar contours ranges filter "
    "values thumbnails neighbors selection names"
)
SCRIPTS = (
    *(f"viewer/{name}.js" for name in VIEWER.split()),
    *(f"trust/{name}.js" for name in ("data", "colors", "layers", "part")),
    "viewer/app.js",
)
FILTERS = "along count decimals listing memory number percent seconds share"  # of the templates
MOST_LISTED = 200  # dropped rows and features


def write_report(summary: Summary, path: str | os.PathLike[str]) -> None:
    """Write the report as one HTML file that needs nothing else.

    Parameters
    ----------
    summary : dict
        See :class:`lowland.report.Summary`.
    path : path
        An existing file is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from lowland.workflow import make_map
    >>> summary = make_map("iris", "pca", color="class").summary()
    >>> summary["title"] = "Three species"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(summary, Path(folder, "report.html"))
    ...     "<title>Three species" in Path(folder, "report.html").read_text()
    True
    """
    Path(path).write_text(render(summary), encoding="utf-8", newline="\n")


def render(summary: Summary) -> str:
    """The page as text; :func:`write_report` writes it.

    Cost O(n); at most 1 000 000 points are embedded.
    """
    from markupsafe import Markup

    check_summary(summary)
    packed = pack_page(summary) | pack_trust(summary)
    data, arrays = separate(packed)
    # The template escapes all values except our own files and the JSON data.
    style = Markup(_template("style.css"))
    script = Markup("\n".join(_template(name) for name in SCRIPTS))
    # The verdict on top lists the doubts about a map.
    advice = [item for item in advise(summary) if item.kind not in TRUST_KINDS]
    maps = summary["maps"]
    context = {
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "data": Markup(to_json(data)),
        "arrays": arrays,
        "no_ids": "omitted" in data["ids"],
        "viewer_notes": viewer_notes(packed),
        "has_neighbors": packed["neighbors"] is not None,
        "summary": summary,
        "maps": [_map_view(entry, number) for number, entry in enumerate(maps)],
        "comparison": _comparison(maps),
        "n": len(summary["ids"]),
        "shown": packed["points"],
        "dropped": [str(row) for row in summary["dropped_rows"][:MOST_LISTED]],
        "features": [str(name) for name in (summary["input"]["features"] or ())[:MOST_LISTED]],
        "serious": [item for item in advice if item.serious],
        "notes": [item for item in advice if not item.serious],
        "readings": _readings(maps),
        "alignment": _alignment_view(summary.get("alignment")),
        "streamed": summary.get("streamed"),
    }
    return _environment().get_template("page.html").render(context)


@functools.cache  # the templates are compiled once
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({name: getattr(wording, name) for name in FILTERS.split()})
    return environment


def _template(name: str) -> str:
    return (resources.files("lowland.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Hash for the page's security policy, which allows only our own script and style."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _map_view(entry: Map, number: int) -> dict[str, Any]:
    d = np.asarray(entry["coordinates"]).shape[1]
    return {
        **entry,
        "number": number,
        "dimensions": d,
        "is_torus": entry.get("sides") is not None,
        "shown_dimensions": min(d, SHOWN_DIMENSIONS),
        "measures": [
            {"label": wording.words(name), "share": float(np.isfinite(values).mean())}
            for name, values in entry["per_point"].items()
        ],
        "quality": [_quality_view(name, measure) for name, measure in entry["quality"].items()],
        "trust": trust_view(entry),
        "plateau": plateau_view(entry),
        "facts": {wording.words(name): value for name, value in entry["facts"].items()},
        "loss": _curve(entry["loss_history"]),
        "pictures": {
            caption: base64.b64encode(image).decode("ascii")
            for caption, image in entry["pictures"].items()
        },
    }


def _quality_view(name: str, measure: Measure) -> dict[str, Any]:
    return {
        **measure,
        "label": wording.words(name),
        "reach": wording.Z95 * measure["standard_error"],
        "interval": wording.interval(measure),
        "sentence": wording.sentence(name, measure),
    }


def _alignment_view(alignment: Alignment | None) -> dict[str, Any] | None:
    """The sets, each with its measures, for the page."""
    if alignment is None:
        return None
    names = dict.fromkeys(name for one in alignment["sets"] for name in one["quality"])
    measures = []
    for name in names:
        found = [one["quality"].get(name) for one in alignment["sets"]]
        cells = [None if each is None else _quality_view(name, each) for each in found]
        measures.append({**next(filter(None, cells)), "cells": cells})
    return {**alignment, "measures": measures}


def _comparison(maps: Sequence[Map]) -> dict[str, Any]:
    """One table of all maps: every measure, and which maps are best in it."""
    columns = []
    for name in dict.fromkeys(name for entry in maps for name in entry["quality"]):
        given = [(number, entry["quality"].get(name)) for number, entry in enumerate(maps)]
        known = {number: measure for number, measure in given if measure is not None}
        found = {number: one for number, one in known.items() if np.isfinite(one["value"])}
        cells = {number: _quality_view(name, measure) for number, measure in found.items()}
        any_one = _quality_view(name, next(iter((found or known).values())))
        columns.append({**any_one, "cells": cells, "best": _best(found)})
    seconds = [entry["seconds"] or 0.0 for entry in maps]
    return {"columns": columns, "fastest": seconds.index(min(seconds))}


def _best(found: Mapping[int, Measure]) -> list[int]:
    """The best map, and those whose difference from it is within the sampling error."""
    if not found:
        return []
    sign = 1 if next(iter(found.values()))["better"] == "higher" else -1
    best = max(found.values(), key=lambda measure: sign * measure["value"])
    return [
        number
        for number, measure in found.items()
        if sign * (best["value"] - measure["value"])
        <= wording.Z95 * np.hypot(best["standard_error"], measure["standard_error"])
    ]


def _readings(maps: Sequence[Map]) -> list[dict[str, Any]]:
    """How to read the maps; maps with the same sentences share a block."""
    blocks: dict[tuple[str, ...], list[str]] = {}
    for entry in maps:
        sentences = how_to_read(entry["name"], entry.get("learned_from"))
        blocks.setdefault(tuple(sentences), []).append(entry["title"])
    return [{"titles": titles, "sentences": sentences} for sentences, titles in blocks.items()]


def _curve(history: Sequence[float] | None) -> dict[str, Any] | None:
    """The loss as the points of a line in a box of 100 x 40."""
    losses = np.asarray([] if history is None else history, dtype=float)
    losses = losses[np.isfinite(losses)]
    if losses.size < 2:
        return None
    low, high = float(losses.min()), float(losses.max())
    x = np.linspace(0, 100, losses.size)
    y = 40 - 40 * (losses - low) / (high - low if high > low else 1.0)
    points = " ".join(f"{a:.2f},{b:.2f}" for a, b in zip(x, y, strict=True))
    return {"points": points, "first": float(losses[0]), "last": float(losses[-1])}
