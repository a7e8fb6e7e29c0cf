"""The model file: a zip of ``manifest.json`` and plain ``.npy`` arrays, versioned, without pickle.

The manifest names the class, its parameters and its fitted state, and declares dtype and shape of
every array. Members are stored uncompressed with fixed dates, so that equal models are equal
files. Reading executes nothing and believes nothing: names, sizes, checksums and references are
checked before an array is allocated, and every failure is one ``ModelFileError``.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from lowland._core.errors import LowlandError, ModelFileError

if TYPE_CHECKING:
    import numpy as np

FORMAT = "lowland-model"
FORMAT_VERSION = 2
OLDEST_VERSION = 2  # format 1 was never released
KEYS = {"format", "format_version", "lowland_version", "class", "params", "state", "arrays"}


class Model(NamedTuple):
    """What a model file holds."""

    class_name: str
    params: dict[str, Any]
    state: dict[str, Any]
    lowland_version: str


def write_model(
    path: str | os.PathLike[str], class_name: str, params: dict[str, Any], state: dict[str, Any]
) -> None:
    """Write a model file; an old one stays whole until the new one is complete.

    ``ModelFileError`` names the parameter or attribute that cannot be stored (a function, a
    generator), or the folder that does not exist.
    """
    from lowland._core.persistence.archive import MAX_MANIFEST, write_archive
    from lowland._core.persistence.encoding import Encoder
    from lowland._core.persistence.npy import Declaration

    path = os.fspath(path)
    encoder = Encoder()
    try:
        manifest = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "lowland_version": _own_version(),
            "class": class_name,
            "params": {name: encoder.encode(params[name], name) for name in sorted(params)},
            "state": {name: encoder.encode(state[name], name) for name in sorted(state)},
            "arrays": {
                member: Declaration(array.dtype, array.shape).to_json()
                for member, array in encoder.arrays.items()
            },
        }
        text = json.dumps(manifest, allow_nan=False, indent=1).encode("ascii")
        if len(text) > MAX_MANIFEST:
            raise ModelFileError("its lists and texts are too long; keep them in numeric arrays")
        write_archive(path, text, encoder.arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: cannot be saved: {error}.") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path, a giant integer
        raise ModelFileError(f"{path}: cannot be saved: {_reason(error)}.") from error


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file; ``ModelFileError`` when it is damaged, altered or not one of ours."""
    from lowland._core.persistence.archive import FAILURES, Archive
    from lowland._core.persistence.decoding import MALFORMED

    path = os.fspath(path)
    try:
        with Archive(path) as archive:
            manifest = _parse(archive.read_manifest())
            arrays = archive.read_arrays(_declarations(manifest["arrays"]))
        params, state = _decode(manifest, arrays)
        return Model(manifest["class"], params, state, manifest["lowland_version"])
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}.") from None
    except LowlandError:  # too little memory says nothing about the file
        raise
    except (OSError, *FAILURES, *MALFORMED) as error:
        kind = "cannot be read" if isinstance(error, PermissionError) else "is damaged"
        raise ModelFileError(
            f"{path}: {kind} or is not a lowland model file ({_reason(error)})."
        ) from error


def _parse(text: bytes) -> dict[str, Any]:
    """The manifest, its outer structure checked."""
    try:
        manifest = json.loads(
            text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"has a manifest that is not valid JSON ({error})") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"is not a lowland model file: its manifest is not {FORMAT!r}")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"has a manifest with the impossible format version {version!r}")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"was made by a newer lowland (format {version}, this one reads up to "
            f"{FORMAT_VERSION}); upgrade lowland"
        )
    if version < OLDEST_VERSION:
        raise ModelFileError(
            f"was made by an unreleased lowland (format {version}, this one reads from "
            f"{OLDEST_VERSION} on); fit the model again"
        )
    if wrong := sorted(manifest.keys() ^ KEYS):
        raise ModelFileError(f"has a manifest with a missing or unknown entry, {wrong[0][:80]!r}")
    for name, kind in (
        ("class", str),
        ("lowland_version", str),
        ("params", dict),
        ("state", dict),
        ("arrays", dict),
    ):
        if type(manifest[name]) is not kind:
            raise ModelFileError(f"has a manifest whose entry {name!r} is not a {kind.__name__}")
    return manifest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(entries := dict(pairs)) != len(pairs):
        raise ValueError("an entry occurs twice")
    return entries


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _declarations(entries: dict[str, Any]) -> dict[str, Any]:
    from lowland._core.persistence.npy import Declaration

    declared = {}
    for name, entry in entries.items():
        try:
            declared[name] = Declaration.from_json(entry)
        except ValueError as error:
            raise ModelFileError(
                f"has a manifest that misdeclares {name[:80]!r}: {error}"
            ) from None
    return declared


def _decode(
    manifest: dict[str, Any], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Params and state, having used every array exactly once."""
    from lowland._core.persistence.decoding import MALFORMED, Decoder

    decoder = Decoder(arrays)
    groups: list[dict[str, Any]] = []
    for group in (manifest["params"], manifest["state"]):
        values = {}
        for name, code in group.items():
            try:
                values[name] = decoder.decode(code)
            except MALFORMED as error:
                raise ModelFileError(
                    f"has a manifest whose entry {name[:80]!r} is malformed ({_reason(error)})"
                ) from None
        groups.append(values)
    if decoder.arrays:
        raise ModelFileError(f"has the array {min(decoder.arrays)!r} that nothing refers to")
    return groups[0], groups[1]


def _reason(error: BaseException) -> str:
    """Why, in one line without its own period."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(text.split()).rstrip(".")


def _own_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("lowland")
    except metadata.PackageNotFoundError:  # run from a source folder that is not installed
        return "0+unknown"
