"""The command line of the fuzzer."""

from __future__ import annotations

import argparse
import os
import sys
import time

from fuzz.cases import AREAS, run_case
from fuzz.supervisor import COMMAND, Campaign, run_all
from fuzz.worker import work


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """0: nothing was found; 1: there are findings."""
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--areas", default=",".join(AREAS), help="default: %(default)s")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--case", help="repeat one case, such as api:123 or fixed:NAME")
    parser.add_argument("--here", action="store_true", help="--case in this process: a traceback")
    parser.add_argument("--work", type=float, help=argparse.SUPPRESS)  # what a worker is given
    given = parser.parse_args(arguments)
    if given.work is not None:
        return work(given.work)
    if given.case:
        return one_case(given.case, here=given.here)
    seed = int(time.time()) % 100_000 if given.seed is None else given.seed
    return campaign(seed, given.minutes, given.areas.split(","), given.workers)


def one_case(case: str, *, here: bool) -> int:
    """One case, or several with commas between, in one process."""
    cases = case.split(",")
    found = [run_case(name, debug=True) for name in cases] if here else run_all(cases)
    for finding in filter(None, found):
        say(f"{finding.case}: {finding.kind} in {finding.where}: {finding.message}")
    if not any(found):
        say(f"{case}: fine")
    return int(any(found))


def campaign(seed: int, minutes: float, areas: list[str], workers: int) -> int:
    """Fixed cases first, then random ones; a table of both at the end."""
    from fuzz.fixed_cases import FIXED  # not needed by workers that run other cases

    say(f"seed {seed}, {minutes:g} minutes, {workers} workers; {len(FIXED)} fixed cases first")
    fixed = run_all(f"fixed:{name}" for name in FIXED)
    for finding in fixed:
        say(f"{finding.kind} in {finding.where}: {finding.message}\n    {COMMAND} {finding.case}")
    run = Campaign(seed, minutes, areas)
    run.run(workers, say)
    say("")
    for area in areas:
        rate = 60 * run.count[area] / max(run.seconds[area], 1e-9)
        kinds = sum(group[0] == area for group in run.groups)
        say(f"{area:10} {run.count[area]:8} cases {rate:8.0f} a minute {kinds:5} kinds of findings")
    groups = sorted(run.groups.values(), key=len, reverse=True)
    repeated = {finding.case for finding in run_all(group[0].case for group in groups)}
    for group in groups:
        finding = group[0]
        again = finding.case in repeated
        say(f"\n{len(group)} x {finding.kind} in {finding.where}: {finding.message}")
        say(f"    {COMMAND} {finding.case if again else ','.join(run.before[finding.case])}")
    return int(bool(fixed or run.groups))
