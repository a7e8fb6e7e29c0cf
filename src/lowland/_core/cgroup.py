"""The Linux control groups of this process, which bound its cores and its memory in containers."""

from __future__ import annotations

from pathlib import Path, PurePosixPath


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
