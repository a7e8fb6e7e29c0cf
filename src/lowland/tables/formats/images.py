"""A folder of images of equal size: one row per image, one column per pixel."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lowland._base.errors import DataError, listing
from lowland.tables.budget import refuse_bomb, require_for_table
from lowland.tables.contents import Contents, named_matrix, one_line
from lowland.tables.finite import as_floats

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = frozenset(
    (".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
)
GRAY_MODES = ("1", "L")
DEEP_MODES = ("I", "I;16", "I;16B", "I;16L", "F")  # gray of more than 8 bits


class Plan(NamedTuple):
    """What all images have in common, according to their headers."""

    width: int
    height: int
    mode: str | None  # to convert to; None leaves gray of more than 8 bits as it is
    dtype: type[np.number]
    notes: list[str]

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.height, self.width, 3) if self.mode == "RGB" else (self.height, self.width)


def read_images(folder: Path) -> Contents:
    """Pixels row by row, colors of a pixel side by side; subfolders become the label ``folder``.

    Images come in the natural order of their names (2 before 10), which are their ids. If any has
    colors, all are read as RGB; transparency is ignored.
    """
    import polars as pl

    # Not deeper: a folder named by mistake may be the root of a disk.
    inside = [*folder.glob("*"), *folder.glob("*/*"), *folder.glob("*/*/*")]
    files = {path.relative_to(folder): path for path in inside if path.is_file()}
    names = {
        name.as_posix(): path
        for name, path in files.items()
        if not any(part.startswith(".") for part in name.parts)
    }
    images = [name for name, path in names.items() if path.suffix.lower() in SUFFIXES]
    paths = {name: names[name] for name in sorted(images, key=natural_key)}
    if not paths:
        held = f"; it holds {listing(sorted(names), 3)}" if names else "; it is empty"
        raise DataError(f"{folder}: is a folder without images{held}.")
    plan = _plan(folder, paths)
    others = sorted(names.keys() - paths.keys(), key=natural_key)
    if others:
        plan.notes.append(f"files that are not images are not used: {listing(others)}")
    pixels = _pixels(folder, paths, plan)
    frame = pl.DataFrame({"file": list(paths)})
    parents = [Path(name).parent.as_posix() for name in paths]
    if set(parents) != {"."}:
        labels = [None if parent == "." else parent for parent in parents]
        frame = frame.with_columns(pl.Series("folder", labels, dtype=pl.String))
    contents = named_matrix(as_floats(pixels), None, frame, plan.notes, "file")
    return dataclasses.replace(contents, image_shape=plan.shape)


def natural_key(name: str) -> list[tuple[int, int | str]]:
    """Sort key that compares numbers inside names by value.

    >>> sorted(["img10", "img9", "Img1"], key=natural_key)
    ['Img1', 'img9', 'img10']
    """
    parts = re.split(r"([0-9]+)", name.casefold())
    return [(0, int(p)) if p.isdecimal() and p.isascii() else (1, p) for p in parts] + [(2, name)]


def _plan(folder: Path, paths: dict[str, Path]) -> Plan:
    """Read every header; refuse an image that does not fit the others, by name."""
    modes: dict[str, str] = {}
    first, size = next(iter(paths)), None
    transparent = 0
    for name, path in paths.items():
        with _opened(folder, name, path) as image:
            n_frames, (width, height) = getattr(image, "n_frames", 1), image.size
            if n_frames > 1:
                raise DataError(f"{folder}, {name}: holds {n_frames} images, expected one.")
            size = size or image.size
            if image.size != size:
                raise DataError(
                    f"{folder}, {name}: the image is {width} x {height} pixels, but {first} is "
                    f"{size[0]} x {size[1]}; all must have one size."
                )
            modes[name] = image.mode
            transparent += image.mode.endswith("A") or "transparency" in image.info
    deep = [name for name, mode in modes.items() if mode in DEEP_MODES]
    if deep and len(deep) < len(modes):
        other = next(name for name in modes if name not in deep)
        what = f"has gray of more than 8 bits (mode {modes[deep[0]]})"
        but = f"{other} has mode {modes[other]}; all must be of one kind"
        raise DataError(f"{folder}, {deep[0]}: {what}, but {but}.")
    grays = [name for name, mode in modes.items() if mode in (*GRAY_MODES, "LA")]
    notes = [f"transparency of {transparent} images is ignored"] if transparent else []
    if grays and len(grays) < len(modes):
        notes.append(f"{len(grays)} gray images are read as RGB like the others")
    all_gray = "L" if len(grays) == len(modes) else "RGB"
    assert size is not None
    if not deep:
        return Plan(*size, all_gray, np.uint8, notes)
    short = all(mode.startswith("I;16") for mode in modes.values())
    return Plan(*size, None, np.uint16 if short else np.float64, notes)


def _pixels(folder: Path, paths: dict[str, Path], plan: Plan) -> np.ndarray:
    columns = int(np.prod(plan.shape))
    height = columns * (np.dtype(plan.dtype).itemsize + 8)
    refuse_bomb(folder, len(paths) * columns, sum(path.stat().st_size for path in paths.values()))
    require_for_table(folder, len(paths), columns, height, advice="make the images smaller")
    pixels = np.empty((len(paths), columns), plan.dtype)
    for row, (name, path) in enumerate(paths.items()):
        with _opened(folder, name, path) as image:
            values = np.asarray(image.convert(plan.mode) if plan.mode else image)
        pixels[row] = values.reshape(-1)
    return pixels


@contextlib.contextmanager
def _opened(folder: Path, name: str, path: Path) -> Iterator[Image.Image]:
    """An image whose pixels are not decoded yet; every error of Pillow names the file."""
    from PIL import Image, UnidentifiedImageError

    log = logging.getLogger("PIL")
    if not log.handlers:  # else Python prints what Pillow logs of a damaged file before it raises
        log.addHandler(logging.NullHandler())
    try:
        with warnings.catch_warnings():
            # Warnings about metadata, and about large images, whose memory is checked here.
            warnings.simplefilter("ignore")
            with Image.open(path) as image:
                yield image
    except (DataError, MemoryError, PermissionError):
        raise
    except Exception as error:  # Pillow's plugins raise anything on damaged files
        unknown = isinstance(error, UnidentifiedImageError)
        reason = "it is not an image that Pillow can read" if unknown else one_line(error)
        raise DataError(f"{folder}, {name}: the image cannot be read: {reason}.") from error
