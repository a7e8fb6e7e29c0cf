"""Ways to spoil the bytes of a file."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from fuzz.data import pick

GIANTS = (b"999999999", b"1000000000000", b"18446744073709551615", b"-1", b"0", b"1e999", b"nan")
WORDS = (0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1, 2**40)

PIECES = (b"\x00", b"\xff\xfe", b'"', b"\n\n", b",,,", b"\t", b"1e400", b"\xef\xbb\xbf", b"\r")
PIECES += (b"{", b"[" * 3000, b"x" * 70000, "\U0001f600".encode())


def _flip_bits(rng: np.random.Generator, old: bytes) -> bytes:
    new = bytearray(old)
    for place in rng.integers(0, len(new), int(pick(rng, [1, 1, 2, 8, 40]))):
        new[place] ^= 1 << int(rng.integers(8))
    return bytes(new)


def _cut(rng: np.random.Generator, old: bytes) -> bytes:
    return old[: int(rng.integers(0, len(old)))]


def _cut_start(rng: np.random.Generator, old: bytes) -> bytes:
    return old[int(rng.integers(0, len(old))) :]


def _double(rng: np.random.Generator, old: bytes) -> bytes:
    start, stop = np.sort(rng.integers(0, len(old) + 1, 2))
    return old[:stop] + old[start:stop] + old[stop:]


def _remove(rng: np.random.Generator, old: bytes) -> bytes:
    start, stop = np.sort(rng.integers(0, len(old) + 1, 2))
    return old[:start] + old[stop:]


def _swap(rng: np.random.Generator, old: bytes) -> bytes:
    a, b, c = np.sort(rng.integers(0, len(old) + 1, 3))
    return old[:a] + old[b:c] + old[a:b] + old[c:]


def _noise(rng: np.random.Generator, old: bytes) -> bytes:
    start = int(rng.integers(0, len(old)))
    length = int(rng.integers(1, 64))
    return old[:start] + rng.bytes(min(length, len(old) - start)) + old[start + length :]


def _hostile_number(rng: np.random.Generator, old: bytes) -> bytes:
    """A number in text becomes another one; most headers have some."""
    found = list(re.finditer(rb"[0-9]+", old[:4000]))
    if not found:
        return _hostile_word(rng, old)
    match = pick(rng, found)
    return old[: match.start()] + pick(rng, GIANTS) + old[match.end() :]


def _hostile_word(rng: np.random.Generator, old: bytes) -> bytes:
    """A binary size or offset becomes another one, near the start or near the end."""
    size = int(pick(rng, [2, 4, 8]))
    if len(old) <= size:
        return b""
    near = min(len(old) - size, 400)
    place = int(rng.integers(0, near + 1))
    if rng.random() < 0.5:
        place = len(old) - size - place
    word = (pick(rng, WORDS) & (256**size - 1)).to_bytes(size, "little")
    return old[:place] + word + old[place + size :]


def _text(rng: np.random.Generator, old: bytes) -> bytes:
    place = int(rng.integers(0, len(old) + 1))
    piece = pick(rng, PIECES)
    return old[:place] + piece + old[place:]


WAYS: list[Callable[[np.random.Generator, bytes], bytes]] = [
    _flip_bits, _flip_bits, _cut, _cut_start, _double, _remove, _swap, _noise,
    _hostile_number, _hostile_number, _hostile_word, _hostile_word, _text,
]  # fmt: skip


def damage(rng: np.random.Generator, content: bytes) -> bytes:
    """The content, spoiled in one way or in two."""
    for _ in range(int(pick(rng, [1, 1, 1, 2]))):
        content = pick(rng, WAYS)(rng, content or b"0")
    return content
