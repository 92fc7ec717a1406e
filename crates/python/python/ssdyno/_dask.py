"""Sweeps over the workers of Dask.

A task is a few designs. Their rows depend on the plan and their numbers alone, so Dask may run a task again when it
loses a worker.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from . import _ssdyno
from ._errors import UsageError

#: Seconds that a task should take. Dask, its workers and the connection take about 10 ms of CPU for a task: eight workers on
#: two cores had 0.70 of the local speed with one design of 12 ms per task.
_TASK_SECONDS = 0.5


def worker_version() -> str:
    """The version of ssdyno where this is called."""
    import ssdyno

    return ssdyno.__version__


def run_designs(plan: str, designs: list[int], version: str) -> tuple[list[str], float]:
    """On a worker: the rows of these designs, and the seconds that they took."""
    found = worker_version()
    # A worker that came after the sweep had begun was not asked.
    if found != version:
        from distributed import get_worker

        raise _unlike({get_worker().address: found}, version)
    begin = time.perf_counter()
    return _ssdyno.sweep_rows(plan, designs), time.perf_counter() - begin


def _size(left: int, threads: int, seconds: float | None) -> int:
    """Designs of the next task. One, while the ``seconds`` of a design are unknown; later as many as take
    ``_TASK_SECONDS``, but few enough near the end that all threads end together."""
    wanted = 1 if seconds is None else int(_TASK_SECONDS / max(seconds, 1e-6))
    return max(1, min(wanted, -(-left // (2 * threads))))


def rows(client: Any, plan: str, designs: list[int]) -> Iterator[list[str]]:
    """The rows of these designs of the plan, as they come. What is not done is cancelled when the iteration ends."""
    from distributed import as_completed

    version = worker_version()
    open_tasks: dict[Any, int] = {}
    tasks = as_completed()
    first = done = 0
    spent = 0.0

    def submit(threads: int) -> None:
        nonlocal first
        size = _size(len(designs) - first, threads, spent / done if done else None)
        part = designs[first : first + size]
        first += size
        future = client.submit(run_designs, plan, part, version, pure=False)
        open_tasks[future] = len(part)
        tasks.add(future)

    try:
        while first < len(designs) or open_tasks:
            # Workers come and go. Without any, Dask keeps tasks for those that come.
            threads = max(1, sum(client.nthreads().values()))
            # Two for each thread, so that none waits for the next.
            while first < len(designs) and len(open_tasks) < 2 * threads:
                submit(threads)
            future = next(tasks)
            found, seconds = future.result()
            done += open_tasks.pop(future)
            spent += seconds
            yield found
    finally:
        client.cancel(list(open_tasks))


def sweep(
    client: Any, plan: str, folder: dict[str, Any], csv: bool, tell: Callable[[str], Any] | None
) -> Any:
    """The outcome of the plan, whose designs the workers of ``client`` run."""
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("`client` needs Dask", key="client", help="type: pip install distributed") from None
    if not isinstance(client, Client) or client.asynchronous:
        raise UsageError(
            "`client` is not a synchronous distributed.Client", key="client", help="give distributed.Client(ADDRESS)"
        )
    check_workers(client)
    spread = _ssdyno.Spread(plan, **folder)
    count = spread.designs
    done = 0
    try:
        with closing(rows(client, plan, list(range(count)))) as parts:
            for part in parts:
                spread.add(part)
                done += len(part)
                if tell:
                    step = f"{done} of {count} designs"
                    tell(json.dumps({"phase": "loaded", "done": done, "of": count, "step": step}))
    except BaseException as error:
        # What is done goes with the error, as it does without workers.
        return _Cut(spread.finish(csv=csv), error) if done else _Cut(None, error)
    return spread.finish(csv=csv)


class _Cut:
    """An outcome that an exception cut off."""

    failure = None

    def __init__(self, outcome: Any, interrupt: BaseException) -> None:
        self.json = outcome.json if outcome else None
        self.rows = outcome.rows if outcome else None
        self.place = outcome.place if outcome else None
        self.interrupt = interrupt


def check_workers(client: Any) -> None:
    """Refuses workers without this version of ssdyno."""
    version = worker_version()
    found = client.run(worker_version, on_error="return")
    if not found:
        raise UsageError("`client` has no workers", key="client", help="start workers: dask worker ADDRESS")
    lost = {worker: error for worker, error in found.items() if isinstance(error, BaseException)}
    for worker, error in lost.items():
        raise UsageError(
            f"the worker {worker} cannot use ssdyno: {error}", key="client", help=f"install ssdyno {version} there"
        ) from error
    unlike = {worker: other for worker, other in found.items() if other != version}
    if unlike:
        raise _unlike(unlike, version)


def _unlike(workers: dict[str, str], version: str) -> Exception:
    named = ", ".join(f"{worker} has ssdyno {other}" for worker, other in sorted(workers.items()))
    return UsageError(f"{named}; this program has {version}", key="client", help=f"install ssdyno {version} there")
