"""Errors in the C++ kernels, made by a few rules for text, and a build that contains one of them.

The build is a tree of its own below build/, of one instruction set: both are compiled from the same
sources. An error is built by compiling its file again, or all files that include its header.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from mutation.copies import PACKAGE, ROOT
from mutation.sites import Site

FOLDER = ROOT / "build" / "mutants" / "native"
# What binds kernels to Python checks arguments and words messages.
LEFT_OUT_FILES = re.compile(r"(^|/)(bind_\w+\.cpp|bindings\.h|module\.cpp)$")
# Comments, declarations of templates, directives, and text.
LEFT_OUT_LINES = re.compile(r'^\s*(//|\*|#|template\b|static_assert|typedef|using\b)|"')
CONDITION = re.compile(r"\b(if|for|while)\b|\?")

# Each rule: what it is called, what it looks for, and what takes its place. Types and pointers have
# no space on both sides of < and *, so that those with two spaces are operators.
RULES = [
    ("comparison", re.compile(r"(?<= )(<|<=|>|>=|==|!=)(?= )"),
     {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}),
    ("boolean", re.compile(r"(?<= )(&&|\|\|)(?= )"), {"&&": "||", "||": "&&"}),
    ("arithmetic", re.compile(r"(?<= )([-+*/])(?= )"), {"+": "-", "-": "+", "*": "/", "/": "*"}),
    ("arithmetic", re.compile(r"(?<= )([-+*]=)(?= )"), {"+=": "-=", "-=": "+=", "*=": "/="}),
    ("constant", re.compile(r"(?<=[-+] )(1)(?![\w.])"), {"1": "0"}),
    ("constant", re.compile(r"(?<![\w.])(0\.5|1\.0|2\.0)(?![\w.])"),
     {"0.5": "0.25", "1.0": "2.0", "2.0": "1.0"}),
    ("statement", re.compile(r"^\s*([\w.\[\]>-]+ [-+*/]?= [^;{}]*;)$"), {}),
]  # fmt: skip


def kernel_sites() -> list[Site]:
    """All errors that the rules make in the kernels."""
    paths = [*PACKAGE.glob("_native/**/*.cpp"), *PACKAGE.glob("_native/**/*.h")]
    files = sorted(str(path.relative_to(PACKAGE)) for path in paths)
    return [site for file in files for site in sites_of(file, (PACKAGE / file).read_bytes())]


def sites_of(file: str, source: bytes) -> list[Site]:
    if LEFT_OUT_FILES.search(file):
        return []
    found, begin = [], 0
    for number, raw in enumerate(source.splitlines(keepends=True), 1):
        line = raw.decode("ascii", "replace")  # one character per byte
        code = line.partition("//")[0].rstrip()
        for operator, pattern, others in [] if LEFT_OUT_LINES.search(line) else RULES:
            if operator == "comparison" and not CONDITION.search(code):
                continue
            for match in pattern.finditer(code):
                new = others.get(match[1], ";")
                start, end = begin + match.start(1), begin + match.end(1)
                found.append(Site(file, number, (number, number), False, operator, start, end, new))
        begin += len(raw)
    return found


def build(file: str, content: bytes) -> bytes | None:
    """The compiled kernels with another content of one file; None if that is not a program."""
    source, tree = FOLDER / "source", FOLDER / "tree"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # there is one tree for all workers
        for path in [ROOT / "CMakeLists.txt", *PACKAGE.glob("_native/**/*.[ch]*")]:
            text = content if path == PACKAGE / file else path.read_bytes()
            _write(source / path.relative_to(ROOT), text)
        if not (tree / "build.ninja").exists():
            given = f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release"
            one = "-DLOWLAND_ONE_SET=ON"
            _cmake("-G", "Ninja", "-S", source, "-B", tree, *given, one).check_returncode()
        built = _cmake("--build", tree, "-j", "1").returncode == 0
        return next(tree.glob("kernels.*.so")).read_bytes() if built else None


def _cmake(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    folder = Path(sys.executable).parent  # of cmake and ninja, too
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    program = shutil.which("cmake", path=environment["PATH"]) or "cmake"
    command = [program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, check=False)


def _write(path: Path, content: bytes) -> None:
    """Write what differs only, because a build looks at the times of files."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
