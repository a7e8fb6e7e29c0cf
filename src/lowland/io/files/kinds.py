"""What a file holds, by its first bytes; its suffix may be wrong or missing."""

from __future__ import annotations

import codecs
import json
import zipfile
from pathlib import Path

# How files of the formats begin that can be told from their first bytes.
STARTS = (
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"\xff\xff\xff\xff", ".arrow"),  # a stream
    (b"FEA1", ".feather"),
    (b"\x93NUMPY", ".npy"),
    (b"\x89HDF", ".h5ad"),
    (b"%%MatrixMarket", ".mtx"),
)
FORMATS = {
    ".arrow": "Arrow",
    ".csv": "delimited text",
    ".feather": "Arrow",
    ".h5ad": "H5AD",
    ".mtx": "MatrixMarket",
    ".ndjson": "NDJSON",
    ".npy": "NPY",
    ".npz": "NPZ",
    ".parquet": "Parquet",
    ".tsv": "delimited text",
    ".xlsx": "Excel",
}
TEXTS = (".csv", ".dat", ".data", ".tab", ".tsv", ".txt")
ALIKE = (TEXTS, (".jsonl", ".ndjson"), (".arrow", ".feather", ".ipc"), (".xlsm", ".xlsx"))
# The mark of UTF-32 in little-endian order begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LOOKED_AT = 4096


def told_suffix(path: Path) -> str:
    """The suffix of the format that the first bytes tell; "" for text and for what is unknown."""
    with path.open("rb") as file:
        start = file.read(LOOKED_AT)
        rest = b"" if b"\n" in start else file.readline(1 << 24)
    for magic, suffix in STARTS:
        if start.lstrip(b" \r\n").startswith(magic):
            return suffix
    if start.startswith(b"PK"):
        return _archive(path)
    first = (start + rest).lstrip().split(b"\n")[0]
    return ".ndjson" if first.startswith(b"{") and _is_object(first) else ""


def _archive(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return ".npz"  # its reader says what is wrong
    return ".xlsx" if any(name.startswith("xl/") for name in names) else ".npz"


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def sniffed_suffix(path: Path) -> str:
    """The suffix of what a stream delivered; text is CSV, or TSV if its first line has tabs."""
    told = told_suffix(path)
    if told:
        return told
    with path.open("rb") as file:
        start = file.read(LOOKED_AT).lstrip(b" \r\n")
    if start.startswith(b"{"):
        return ".ndjson"  # its reader says what is wrong
    return ".tsv" if b"\t" in start.split(b"\n")[0] else ".csv"


def is_text(path: Path) -> bool:
    """Whether the first bytes of a file are those of a text in an encoding that is read."""
    with path.open("rb") as file:
        start = file.read(LOOKED_AT)
    if any(start.startswith(mark) for mark, _ in MARKS):
        return True
    control = start.translate(None, delete=bytes([*range(32, 256), *b"\t\n\v\f\r"]))
    return bool(start) and not control


def same_kind(one: str, other: str) -> bool:
    """Whether two suffixes name the same format."""
    return one == other or any(one in group and other in group for group in ALIKE)
