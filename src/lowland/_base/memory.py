"""How much memory the process may still use, and the refusal to ask for more.

The environment variable ``LOWLAND_MEMORY_LIMIT`` ("8GB", "500 MB", "2GiB", or plain bytes) takes
the place of what the operating system says.
"""

from __future__ import annotations

import os
import re
import sys
from decimal import Decimal
from pathlib import Path, PurePosixPath

from lowland._base.errors import MemoryLimitError, ParameterError

# The Linux control groups of this process, which bound its cores and its memory in containers.


def control_groups(controller: str, root: str | Path = "/") -> list[Path]:
    """Folders of the groups that bind this process: its own and all their ancestors.

    Both hierarchies are listed (version 2, and version 1 of ``controller``), because hybrid
    systems mount both. Empty where there are no control groups. ``root`` is for tests.
    """
    mount = Path(root) / "sys/fs/cgroup"
    found: dict[Path, None] = {}
    for line in (read_text(Path(root) / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if number == "0" and not controllers:
            bases = [mount, mount / "unified"]
        elif controller in controllers.split(","):
            bases = [mount / controllers, mount / controller]
        else:
            continue
        # A container may see its host's path here while its own group is mounted as the root:
        # folders that do not exist are skipped and the mount itself is always asked.
        parts = [part for part in PurePosixPath(group).parts if part not in ("/", "..")]
        for base in bases:
            for depth in range(len(parts), -1, -1):
                found.setdefault(base.joinpath(*parts[:depth]))
    return [folder for folder in found if folder.is_dir()]


def read_text(path: Path) -> str | None:
    """The text of a small system file, or None when it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None


def read_numbers(path: Path) -> list[int]:
    """The integers in the words of a small system file; other words (``max``) are left out."""
    return [int(word) for word in (read_text(path) or "").split() if word.lstrip("-").isdecimal()]


VARIABLE = "LOWLAND_MEMORY_LIMIT"
PREFIXES = "kMGTPE"
SMALL = 64_000_000  # below this a check would cost more than it protects


def available_memory(root: str | Path = "/") -> int:
    """Bytes the process may still use, the least of what machine, containers and limits leave.

    Limits are those of the process (``ulimit -v`` and ``ulimit -d``), of which what it uses now is
    subtracted. ``LOWLAND_MEMORY_LIMIT`` overrides all of it. Where the system does not tell what is
    free (macOS), it is the installed memory; where the system does not report it (Windows), a huge
    number. ``root`` is the root of the file system, for tests.
    """
    override = os.environ.get(VARIABLE, "").strip()
    if override:
        try:
            return parse_bytes(override)
        except ParameterError as error:
            raise ParameterError(f"environment variable {VARIABLE}: {error}") from None
    groups = [_left_in_group(folder) for folder in control_groups("memory", root)]
    bounds = [*groups, *left_for_process(root).values()]
    return max(0, min([_left_on_machine(root), *(left for left in bounds if left is not None)]))


def left_for_process(root: str | Path = "/") -> dict[str, int]:
    """Bytes left below each limit of the process: of its address space and of its data."""
    try:
        import resource
    except ImportError:  # Windows
        return {}
    page = resource.getpagesize()
    used = read_numbers(Path(root) / "proc/self/statm") or [0] * 6
    left = {}
    for kind, pages in (("RLIMIT_AS", used[0]), ("RLIMIT_DATA", used[5])):
        limit = resource.getrlimit(getattr(resource, kind))[0]
        if limit != resource.RLIM_INFINITY:
            left[kind] = limit - pages * page
    return left


def _left_on_machine(root: str | Path) -> int:
    free = _field(Path(root) / "proc/meminfo", "MemAvailable:")
    if free is not None:
        return free * 1024
    try:
        # "AVPHYS" would be free memory without caches, which is far too little to decide on
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return sys.maxsize


def _left_in_group(group: Path) -> int | None:
    """Bytes left in a control group; None when it sets no bound."""
    for limit_file, used_file, cache_field in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        limit, used = read_numbers(group / limit_file), read_numbers(group / used_file)
        if limit and used:
            # unused pages of files are counted as used, but the kernel gives them back
            cache = _field(group / "memory.stat", cache_field) or 0
            return limit[0] - max(0, used[0] - cache)
    return None


def _field(path: Path, name: str) -> int | None:
    """The number after ``name`` in a system file of one field per line."""
    for line in (read_text(path) or "").splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == name and words[1].isdecimal():
            return int(words[1])
    return None


def format_bytes(n: int, digits: int = 2) -> str:
    """A size for people, in decimal units.

    >>> format_bytes(1_532_000_000), format_bytes(37_200_000_000), format_bytes(512)
    ('1.5 GB', '37 GB', '512 B')
    """
    if n < 1000:
        return f"{int(n)} B"
    # rounded first, so that 999 999 is "1.0 MB" and not "1000 kB"
    rounded = Decimal(f"{Decimal(int(n)):.{digits - 1}e}")
    exponent = min(rounded.adjusted() // 3, len(PREFIXES))
    value = rounded.scaleb(-3 * exponent)
    decimals = max(0, digits - 1 - value.adjusted())
    return f"{value:.{decimals}f} {PREFIXES[exponent - 1]}B"


def parse_bytes(text: str) -> int:
    """The number of bytes that ``text`` spells; the unit's case does not matter.

    >>> parse_bytes("500 MB"), parse_bytes("2GiB"), parse_bytes("1.5k"), parse_bytes("4096")
    (500000000, 2147483648, 1500, 4096)
    """
    spelled = re.fullmatch(
        r"\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*(?:([kmgtpe])(i?))?b?\s*", text, re.IGNORECASE
    )
    if spelled is None:
        raise ParameterError(
            f"{text!r} is not a size; give a number of bytes with or without a unit, "
            'such as "8GB", "500 MB" or "2GiB".'
        )
    number, prefix, binary = spelled.groups()
    base = 1024 if binary else 1000
    power = PREFIXES.lower().index(prefix.lower()) + 1 if prefix else 0
    return int(Decimal(number) * base**power)


def require_memory(n_bytes: int, *, task: str, alternative: str) -> None:
    """Raise ``MemoryLimitError`` when ``n_bytes`` are more than the process may use.

    ``task`` is the subject of the sentence and ``alternative`` its advice: "<task> needs 37 GB,
    but the process may use 12 GB; <alternative>, or set LOWLAND_MEMORY_LIMIT.". Small needs are
    let through without asking the system, unless the user set the limit.
    """
    limited = bool(os.environ.get(VARIABLE, "").strip())
    if n_bytes < SMALL and not limited:
        return
    available = available_memory()
    if n_bytes <= available:
        return
    need, have = next(  # as many digits as it takes to show that the one exceeds the other
        pair
        for digits in range(2, 40)
        if len(set(pair := (format_bytes(n_bytes, digits), format_bytes(available, digits)))) == 2
    )
    raise MemoryLimitError(
        f"{task} needs {need}, but the process may use {have}; {alternative}, "
        f"or {'raise' if limited else 'set'} {VARIABLE}."
    )
