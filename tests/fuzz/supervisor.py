"""Runs workers, notices when one crashes or hangs, and collects the findings."""

from __future__ import annotations

import collections
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from fuzz.cases import AREAS, Finding

CPU_SECONDS = 60.0  # of all threads; most need a second or two, wrappers fit hundreds of models
WALL_SECONDS = 240.0  # longer than the limit of processor time takes on a busy machine
CASES_PER_WORKER = 3000  # then a new process: memory that leaks slowly is not what we look for
COMMAND = "python tests/fuzz --case"


class Worker:
    """A process for many cases; the case that ends it is a finding, and the next has a new one."""

    def __init__(
        self, cpu_seconds: float = CPU_SECONDS, wall_seconds: float = WALL_SECONDS
    ) -> None:
        self.cpu_seconds, self.wall_seconds = cpu_seconds, wall_seconds
        self.process: subprocess.Popen[str] | None = None
        self.errors: IO[bytes] | None = None
        self.count = 0
        self.history: collections.deque[str] = collections.deque(maxlen=30)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *details: object) -> None:
        self._end()

    def run(self, case: str) -> tuple[float, Finding | None]:
        """Seconds that the case took, and what it found."""
        if self.count >= CASES_PER_WORKER:
            self._end()
        process = self.process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        self.count += 1
        self.history.append(case)
        start = time.monotonic()
        try:
            process.stdin.write(f"{case}\n")
            process.stdin.flush()
            line = _line_within(process.stdout, self.wall_seconds)
        except BrokenPipeError:
            line = ""
        if line:
            answer = json.loads(line)
            found = answer["finding"]
            return answer["seconds"], None if found is None else Finding(*found)
        finding = self._post_mortem(case, hangs=line is None)
        self._end()
        return time.monotonic() - start, finding

    def _start(self) -> subprocess.Popen[str]:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.count = 0
        self.history.clear()
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent), "--work", str(self.cpu_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "MPLBACKEND": "agg"},
        )
        return self.process

    def _post_mortem(self, case: str, *, hangs: bool) -> Finding:
        assert self.process is not None
        assert self.errors is not None
        if hangs:
            self.process.send_signal(signal.SIGPROF)  # it says where it is, and ends
            time.sleep(1.0)
            self.process.kill()
        code = self.process.wait()
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace")[-4000:]
        places = re.findall(r'File ".*?lowland/([\w/]+\.py)", line \d+ in (\w+)', text)
        where = f"{Path(places[0][0]).name}:{places[0][1]}" if places else ""
        if hangs:
            return Finding(case, "Hang", f"no answer within {self.wall_seconds:g} s", where)
        if code == -signal.SIGPROF:
            return Finding(
                case, "Slow", f"more than {self.cpu_seconds:g} s of processor time", where
            )
        ended = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        last = text.strip().splitlines()[-1:] if code >= 0 else []
        return Finding(case, "Crash", " ".join([f"the process ended by {ended}", *last]), where)

    def _end(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.kill()
            self.process.communicate()
        if self.errors is not None:
            self.errors.close()
        self.process = self.errors = None


def _line_within(stream: IO[str], seconds: float) -> str | None:
    """A line; an empty one if the stream has ended, None if it took too long."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return stream.readline() if selector.select(seconds) else None


def run_all(cases: Iterable[str]) -> list[Finding]:
    """Run the given cases one after the other."""
    with Worker() as worker:
        found = [worker.run(case)[1] for case in cases]
    return [finding for finding in found if finding is not None]


class Campaign:
    """Random cases of several areas until the time is over, by several workers."""

    def __init__(self, seed: int, minutes: float, areas: list[str]) -> None:
        self.seed, self.areas = seed, areas
        self.end = time.monotonic() + 60 * minutes
        self.count: collections.Counter[str] = collections.Counter()
        self.seconds: collections.Counter[str] = collections.Counter()
        self.groups: dict[tuple[str, ...], list[Finding]] = collections.defaultdict(list)
        # cases of the same process up to each first finding: one of them may be the cause
        self.before: dict[str, list[str]] = {}
        self.lock = threading.Lock()

    def run(self, workers: int, say: Any) -> None:
        threads = [threading.Thread(target=self._drive, args=(say,)) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _drive(self, say: Any) -> None:
        with Worker() as worker:
            for case in self._cases():
                seconds, finding = worker.run(case)
                with self.lock:
                    self.seconds[case.split(":")[0]] += seconds
                    if finding is None:
                        continue
                    group = self.groups[finding.group]
                    group.append(finding)
                    if len(group) == 1:
                        self.before[finding.case] = list(worker.history)
                        say(f"{finding.kind} in {finding.where}: {finding.message}")
                        say(f"    {COMMAND} {case}")

    def _cases(self) -> Iterator[str]:
        """Each time from the area that has had the smallest part of its share."""
        while time.monotonic() < self.end:
            with self.lock:
                area = min(self.areas, key=lambda name: self.seconds[name] / AREAS[name].share)
                number = self.seed * 1_000_000 + self.count[area]
                self.count[area] += 1
                self.seconds[area] += 1e-3  # so that several workers start in several areas
            yield f"{area}:{number}"
