"""The connection to a cluster: an address, processes of this machine, or a client that exists."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import warnings
from collections.abc import Iterator
from typing import Any

import lowland
from lowland._core.errors import ClusterError, ParameterError
from lowland._core.memory import VARIABLE, available_memory
from lowland._core.wording import shown
from lowland.distributed.cluster.failures import missing_extra, unreachable
from lowland.distributed.cluster.remote import facts

# A process that is seen to be away some seconds after it died is given up for good, even if it died
# a second time meanwhile and is about to start again.
KEEP = {"distributed.deploy.lost-worker-timeout": "1 hour"}
MOST_WORKERS = 256  # processes of this machine
LONGEST_WAIT = 10.0  # seconds, for an answer of the scheduler
ADDRESS = re.compile(r"([a-z]+://)?(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5}/?")


class Connection:
    """A client, the address of its scheduler for messages, and what is known of its workers."""

    def __init__(self, client: Any, address: str, *, is_local: bool) -> None:
        self.client, self.address, self.is_local = client, address, is_local
        self.known: dict[str, tuple[str, ...]] = {}  # instruction sets of the workers
        self.warned = False

    def inspect(self) -> int:
        """The number of threads of all workers. New workers must have our version of lowland."""
        try:
            threads = self.client.nthreads()
            new = sorted(set(threads) - set(self.known))
            told = self.client.run(facts, workers=new, on_error="return") if new else {}
        except (OSError, RuntimeError):  # of a scheduler that ended: the futures tell it
            return 0
        for worker, found in told.items():
            self._note(worker, found)
        if len(set(self.known.values())) > 1 and not self.warned:
            self.warned = True
            sets = sorted({found[-1] for found in self.known.values()})
            warnings.warn(
                f"{self.address}: the workers have different instruction sets ({', '.join(sets)}), "
                "so the last bits of results may depend on which worker did what.",
                stacklevel=2,
            )
        return sum(threads.values())

    def _note(self, worker: str, found: Any) -> None:
        if isinstance(found, ImportError):
            raise ClusterError(f"{worker}: the worker has no lowland; install it there ({found}).")
        if isinstance(found, BaseException):  # it died meanwhile
            return
        version, sets = found
        if version != lowland.__version__:
            raise ClusterError(
                f"{worker}: the worker has lowland {version}, but this process "
                f"{lowland.__version__}; install one version everywhere."
            )
        self.known[worker] = sets

    def has_workers(self) -> bool:
        """Whether there are workers; also if the scheduler ended, which the futures tell."""
        try:
            return bool(self.client.nthreads())
        except (OSError, RuntimeError):
            return True


@contextlib.contextmanager
def connected(scheduler: Any, timeout: float) -> Iterator[Connection]:
    """The connection that ``scheduler`` asks for, closed at the end if it was opened here."""
    try:
        import distributed
    except ImportError:
        raise missing_extra() from None
    if isinstance(scheduler, distributed.Client):
        if scheduler.asynchronous:
            raise ParameterError("scheduler: the client is asynchronous; give a synchronous one.")
        yield Connection(scheduler, _address(scheduler), is_local=False)
        return
    if not isinstance(scheduler, str) or not ADDRESS.fullmatch(scheduler):
        raise _not_a_scheduler(scheduler)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet())
        is_local = scheduler.startswith("local:")
        target = stack.enter_context(_processes(scheduler)) if is_local else scheduler
        patience = min(timeout, LONGEST_WAIT)
        try:
            client = distributed.Client(target, timeout=patience, set_as_default=False)
        except Exception as error:  # of the network, of TLS, of another protocol
            raise unreachable(scheduler, error) from error
        stack.callback(_close, client)
        yield Connection(client, _address(client), is_local=is_local)


@contextlib.contextmanager
def _processes(scheduler: str) -> Iterator[Any]:
    """Worker processes of this machine, with one thread each, which share its memory."""
    import dask

    import distributed

    n = int(scheduler.removeprefix("local:").rstrip("/"))
    if not 1 <= n <= MOST_WORKERS:
        raise _not_a_scheduler(scheduler)
    environment = {"POLARS_MAX_THREADS": "1"}
    if os.environ.get(VARIABLE):  # the limit is one for all processes
        environment[VARIABLE] = str(available_memory() // n)
    try:
        cluster = distributed.LocalCluster(
            n_workers=n,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            # Memory is refused before it is allocated. The limits of Dask would pause or end a
            # worker that has reached some share, and tables that fit would never be done.
            memory_limit=0,
            env=environment,
        )
    except Exception as error:
        raise ClusterError(
            f"{scheduler}: the worker processes do not start ({' '.join(str(error).split())}); a "
            'script must call them below `if __name__ == "__main__":`.'
        ) from error
    with cluster, dask.config.set(KEEP):
        yield cluster


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep tracebacks of lost connections out of the terminal: they become errors in one line."""
    loggers = [
        logging.getLogger(name)
        for name in ("distributed", *logging.root.manager.loggerDict)
        if name.split(".")[0] == "distributed"
    ]
    before = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", client.scheduler))


def _close(client: Any) -> None:
    """Close a client, also one whose scheduler is gone."""
    with contextlib.suppress(OSError, RuntimeError):
        client.close(timeout=2)


def _not_a_scheduler(value: object) -> ParameterError:
    return ParameterError(
        f"scheduler={shown(value)} is not allowed; expected an address as 'tcp://host:8786', "
        f"'local:4' for so many processes of this machine (at most {MOST_WORKERS}), or a "
        "distributed.Client."
    )
