"""A copy of the package with one error in it, and runs of tests that import this copy.

To start Python with pytest, numpy, scipy and the others takes longer than most tests. So they are
imported once, and each run of tests is a fork that then imports lowland from the copy.
"""

from __future__ import annotations

import compileall
import contextlib
import importlib
import multiprocessing
import os
import py_compile
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "lowland"
# Marks choose nothing here: tests are named one by one, slow ones, too.
PYTEST = ["-q", "-p", "no:cacheprovider", "--tb=short", "-m", ""]
# fmt: off
IMPORTED = [
    "pytest", "hypothesis", "numpy.testing", "scipy.linalg", "scipy.sparse.linalg", "scipy.stats",
    "scipy.sparse.csgraph", "scipy.optimize", "scipy.spatial.distance", "sklearn.decomposition",
    "sklearn.manifold", "sklearn.datasets", "sklearn.utils.estimator_checks", "polars", "pandas",
    "matplotlib.figure",
]
# fmt: on
TEST_SECONDS = 120.0  # the most that a test may take
IDLE_SECONDS = 180.0  # the most that collection or what lies between two tests may take


class Run(NamedTuple):
    """How a run of tests ended: the exit code of pytest, or minus the signal that killed it."""

    code: int
    started: list[str]  # node ids
    failed: list[str]
    text: str

    @property
    def culprit(self) -> str:
        """The test that failed first, or that ran when a signal ended the process."""
        return next(iter(self.failed if self.code > 0 else self.started[-1:]), "")


class Copy:
    """A copy of the package in a folder of its own, in which tests run."""

    def __init__(self, folder: Path, kernels: Path) -> None:
        self.folder, self.package = folder, folder / "lowland"
        self.kernels = self.package / "_native" / kernels.name
        ignored = shutil.ignore_patterns("*.cpp", "*.h", "*.so", "*.pyd", "__pycache__")
        shutil.copytree(PACKAGE, self.package, ignore=ignored)
        shutil.copy2(kernels, self.kernels)
        # valid by the content of the source: a planted file and a restored one are compiled anew
        compileall.compile_dir(
            self.package,
            quiet=1,
            invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH,
        )

    def environment(self) -> dict[str, str]:
        held = {name: value for name, value in os.environ.items() if name != "LOWLAND_DATA"}
        return {
            **held,
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # to import them takes longer than most tests
        }

    @contextlib.contextmanager
    def planted(self, path: Path, content: bytes) -> Iterator[None]:
        """A file of the copy with another content, until the block ends."""
        held = path.read_bytes()
        path.write_bytes(content)
        try:
            yield
        finally:
            path.write_bytes(held)

    def run(
        self,
        tests: Sequence[str],
        *options: str,
        seconds: Callable[[str], float] = lambda _: TEST_SECONDS,
        idle: float = IDLE_SECONDS,
    ) -> Run:
        """Run tests in a fork; it ends itself if a test takes longer than ``seconds`` of it."""
        with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as notes:
            child = os.fork()
            if child == 0:
                self._run_here([*PYTEST, *options, *tests], text, _Watch(notes, seconds, idle))
            try:
                _, status = os.waitpid(child, 0)
            finally:  # also what tests have started and left behind
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
            for file in (text, notes):
                file.seek(0)
            noted = notes.read().decode().splitlines()
            words = {sign: [line[1:] for line in noted if line[0] == sign] for sign in "+-"}
            code = os.waitstatus_to_exitcode(status)
            return Run(code, words["+"], words["-"], text.read().decode("utf-8", "replace"))

    def _run_here(self, arguments: list[str], text: Any, watch: _Watch) -> None:
        """Become the process of one run, and end with the exit code of pytest."""
        code = 99
        try:
            os.setsid()
            os.chdir(ROOT)
            for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (text, 1), (text, 2)):
                os.dup2(source if isinstance(source, int) else source.fileno(), target)
            os.environ.clear()
            os.environ.update(self.environment())
            sys.dont_write_bytecode = True
            sys.path.insert(0, str(self.folder))
            import pytest

            code = int(pytest.main(arguments, plugins=[watch]))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


class _Watch:
    """A plugin that notes what starts (+) and fails (-), and sets an alarm for tests that hang.

    Nothing handles the alarm, so that it also ends the process inside of a kernel.
    """

    def __init__(self, notes: Any, seconds: Callable[[str], float], idle: float) -> None:
        self.notes, self.seconds, self.idle = notes, seconds, idle
        signal.setitimer(signal.ITIMER_REAL, idle)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_REAL, self.seconds(nodeid))
        self._note("+", nodeid)

    def pytest_runtest_logfinish(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self.idle)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._note("-", report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._note("-", report.nodeid)

    def _note(self, sign: str, nodeid: str) -> None:
        self.notes.write(f"{sign}{nodeid}\n".encode())
        self.notes.flush()


_here: list[Copy] = []


def here() -> Copy:
    """The copy of this worker."""
    return _here[0]


@contextlib.contextmanager
def workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that have imported the libraries but not lowland, each with a copy of its own."""
    kernels = installed_kernels()
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # as tests/conftest.py does
    for name in IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert "lowland" not in sys.modules, "a fork would keep the lowland that is imported already"
    with tempfile.TemporaryDirectory(prefix="lowland-mutants-") as folder:

        def prepare() -> None:
            _here.append(Copy(Path(folder) / str(os.getpid()), kernels))

        check_path(Path(folder))
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(count, mp_context=context, initializer=prepare) as pool:
            try:
                yield pool
            finally:
                pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the others


def check_path(folder: Path) -> None:
    """Refuse to go on if tests would import another lowland than the one on their path."""
    probe = folder / "probe" / "lowland" / "__init__.py"
    probe.parent.mkdir(parents=True)
    probe.touch()
    found = _printed("lowland.__file__", {**os.environ, "PYTHONPATH": str(probe.parents[1])})
    if found != str(probe):
        raise SystemExit(
            f"tests would import {found} instead of a copy, as they do with an editable install; "
            "run `make mutants`, which installs the wheel."
        )


def installed_kernels() -> Path:
    """The compiled kernels of the lowland that is installed."""
    return Path(_printed("__import__('lowland._native.kernels')._native.kernels.__file__"))


def _printed(expression: str, environment: Any = None) -> str:
    return subprocess.run(
        [sys.executable, "-c", f"import lowland; print({expression})"],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
